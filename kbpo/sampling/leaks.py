"""Tests a new run, before its sample is drawn, against what was judged for earlier ones of others:
was it made by somebody who had read the answers?

Given which targets could be drawn, and with which probability, a run that was made without the
answers predicts of the drawn ones what chance would have it (`estimators.leaks`). That needs an
earlier run which depends on no draw either. What a team predicts again after it saw judgments does:
what was drawn of it is what was found right, and whoever is often right would predict too much of
that. Of such a run only draws count that were still to come when its team decided. The test is made
once, and kept; what follows from it is up to `kbpo.inclusion.disclosure` and the model.

A run says more than what it predicts of an earlier sample: how sure it is, and what else it claims
of the same pairs, subjects and objects, what it gives weight, and what names it links to. From that
the model learns, or a score is made, so that answers could be written into each
(`LeakTest.Channel`). Each is cut at several places; the split that speaks most clearly is tested in
the same way, and its p-value taken as often as there are splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimators.leaks import (
    ALIKE,
    GRADES,
    Channel,
    ShareTest,
    amounts_test,
    clearest_splits,
    contrast_test,
    document_test,
    either,
    holm,
    levels,
    share_test,
)
from kbpo import clock
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.inclusion.disclosure import decided, disclosed, earlier, private, shown_to
from kbpo.inclusion.route import Private
from kbpo.inclusion.thresholds import thresholds
from kbpo.pool.pool import read_pool
from kbpo.sampling.models import DocumentSample, LeakTest, Sample, SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.channels import Said
from scoring.inclusion import Disclosed
from scoring.pool import Pool

LEVEL = 0.001
"""A run that nobody made from answers is taken for one of those with at most this probability."""


def look_for_leaks(submission: Submission) -> list[LeakTest]:
    """The tests of a run that is about to be sampled, one for each earlier run whose judgments its
    team could not see; they are kept.
    """
    track = submission.track
    beside = Track.objects.filter(corpus=track.corpus_id, kind=track.kind).order_by("pk")
    tests = [test for beside_track in beside for test in _against(beside_track, submission)]
    adjusted = holm([test.p_value for _, _, test in tests]).tolist()
    row_of = dict[int, LeakTest]()
    for (other, channel, test), p in zip(tests, adjusted, strict=True):
        row = LeakTest(
            submission=submission,
            earlier_id=other,
            **counts_of(test),
            adjusted=p,
            channel=channel,
            seen=p <= LEVEL,
        )
        before = row_of.setdefault(other, row)
        # What is said in documents has an effect of its own: it must not be lost beside another.
        if p < before.adjusted or (row.seen and channel == LeakTest.Channel.DOCUMENTS):
            row_of[other] = row
    leak_tests = list(row_of.values())
    found = [row for row in leak_tests if row.seen]
    leak_tests = _with_same_words(submission, leak_tests)
    LeakTest.objects.bulk_create(leak_tests)
    for row in found:
        tell(row)
    return leak_tests


def counts_of(test: ShareTest) -> dict[str, Any]:
    """What is kept of a test, by the names of `LeakTest`."""
    return {
        "size": test.size,
        "predicted": test.predicted,
        "expected": test.expected,
        "p_value": test.p_value,
        "of_unlikely": test.of_unlikely,
    }


def tell(row: LeakTest) -> None:
    """Nothing; the log says what was found."""
    note(
        "leak found",
        row.submission.purpose,
        after=f"as if it had seen submission:{row.earlier_id}",
        why=in_words(row),
        track=row.submission.track.slug,
    )


def _with_same_words(submission: Submission, tests: list[LeakTest]) -> list[LeakTest]:
    """The tests of a run of texts, and with them the earlier runs of others that it repeats word
    for word, if only once: it counts as one that saw these.

    Who leaves out right claims, to hide among them the wrong ones that it leaves out, loses recall;
    who takes one text for another loses nothing, and no draw tells why it took it.
    """
    row_of = {row.earlier_id: row for row in tests}
    for other, same in _same_words(submission).items():
        row = row_of.setdefault(
            other,
            LeakTest(
                submission=submission,
                earlier_id=other,
                size=same,
                predicted=same,
                expected=same,
                p_value=1.0,
                adjusted=1.0,
                seen=False,
            ),
        )
        if not row.seen:
            row.seen, row.channel, row.decided_at = True, LeakTest.Channel.SAME, clock.now()
    return list(row_of.values())


def _same_words(submission: Submission) -> dict[int, int]:
    """Earlier run, whose judgments the team could not see -> how many texts both wrote, or how many
    pairs of texts both take part in by a text that was there.
    """
    corpus = Submission.objects.filter(track__corpus=submission.track.corpus_id)
    sampled = corpus.filter(sampled_at__lte=decided(submission)).exclude(pk=submission.pk)
    others = sampled.exclude(pk__in=earlier(submission)).order_by("pk").values_list("pk", flat=True)
    return kind_of(submission.track).repeated(submission.pk, list(others))


def in_words(row: LeakTest) -> str:
    """What was found, in a sentence."""
    if row.channel == LeakTest.Channel.DOCUMENTS:
        compared = "more" if row.predicted > row.expected else "less"
        return (
            f"In the {row.size} documents that were read it says {compared}"
            " than in the others. Each document counts by its rank, from 0 where it says nothing"
            f" to {GRADES}, so that no long one decides: these add up to {row.predicted}, where"
            f" {row.expected:.0f} were to be expected of a run that was made without knowing which"
            f" they are: {odds(row.adjusted)}."
        )
    if row.channel == LeakTest.Channel.READ:
        return (
            f"Of {row.size} judged answers in documents that were read {row.predicted} count as"
            f" right, where {row.expected:.0f} were to be expected by how right it is in all"
            f" documents, had it been made without knowing which they are: {odds(row.adjusted)}."
            f" Only {100 * ALIKE:.0f} in a hundred of what is right there count: people who judge"
            f" single answers may miss the other {100 * (1 - ALIKE):.0f}, which readers find."
        )
    which = " to what few other runs predict" if row.of_unlikely else ""
    return (
        f"Of {row.size} judged answers{which} {row.get_channel_display()} {row.predicted}, where"
        f" {row.expected:.0f} were to be expected of a run that was made without them:"
        f" {odds(row.adjusted)}."
    )


def explained_otherwise(row: LeakTest) -> str:
    """What else would show the same, in a sentence; empty where nothing honest does but chance."""
    if row.channel == LeakTest.Channel.READ:
        return (
            "The same shows where people who judge single answers miss more of what is right than"
            f" {100 * (1 - ALIKE):.0f} in a hundred, or leave many questions unanswered."
        )
    if row.channel != LeakTest.Channel.RIGHT:
        return ""
    return (
        "The same shows where people judge otherwise since than they did before: others who are"
        " less careful, new guidelines, answers that were excluded."
    )


def odds(p: float) -> str:
    """How rare that is by chance, in words."""
    return "less than once in a million times by chance" if p < 1e-6 else f"p = {p:.2g}"


def decide(row: LeakTest, who: User, why: str, *, lift: bool) -> None:
    """Nothing; an admin confirmed what the test found, or lifted what follows from it."""
    row.decided_at, row.decided_by, row.lifted, row.why = clock.now(), who, lift, why
    row.save(update_fields=["decided_at", "decided_by", "lifted", "why"])
    note(
        "leak lifted" if lift else "leak confirmed",
        row.submission.purpose,
        who=who,
        after=f"submission:{row.earlier_id}",
        why=why,
        track=row.submission.track.slug,
    )


ChannelTest: TypeAlias = tuple[str, ShareTest]
"""A channel of `LeakTest`, and a test of what a run says by it"""


def _against(track: Track, submission: Submission) -> Iterator[tuple[int, str, ShareTest]]:
    """Each earlier run of a track that tells something, with a channel and its test. What is said
    in documents that were read is held against the one that says most there.
    """
    when = decided(submission)
    sampled = Submission.objects.filter(track=track, sampled_at__lte=when).exclude(pk=submission.pk)
    systems = list(sampled.order_by("pk").values_list("pk", flat=True))
    own = set(earlier(submission))
    if not systems:
        return
    judged = Judged.of(track, read_pool(track, [*systems, submission.pk]), submission)
    for column, other in enumerate(systems):
        if other not in own:
            channel, test = judged.against(column)
            if test.size:
                yield other, channel, test
    if track.closed_at is not None and track.closed_at <= when:
        return  # everybody may learn from what its readers marked
    others = [column for column, other in enumerate(systems) if other not in own]
    amount, column = judged.in_documents(others or range(len(systems)))
    if amount.size:
        yield systems[column], LeakTest.Channel.DOCUMENTS.value, amount


@dataclass(frozen=True, eq=False)
class Judged:
    """What was drawn on a track by a moment, of targets that the team of a run could not look up;
    the run is the pool's last column.
    """

    track: Track
    pool: Pool
    when: datetime
    hidden: Private
    """What earlier second runs asked for themselves alone depends on judgments: it is no sample"""
    open: Bools
    """(t,) its team could not look up whether it is judged"""
    second: Mapping[int, Disclosed]
    """Column -> what its team could see, of runs whose teams had seen judgments"""

    @classmethod
    def of(cls, track: Track, pool: Pool, submission: Submission) -> Judged:
        disclosures = disclosed(pool)
        hidden = private(pool, disclosures)
        unseen = ~shown_to(pool, submission)
        return cls(track, pool, decided(submission), hidden, unseen, disclosures)

    def against(self, column: int) -> ChannelTest:
        """Return the test against what was drawn of all that an earlier run predicts, for its team
        could see that: the one that speaks most clearly.
        """
        predicting = self.predicted(column)
        both = self.count(predicting & self.predicted(-1))
        mine = self.count(predicting)
        predicts, exposed = (mine > 0) & self.open, self.exposed(column)
        before, pi = self._thresholds(column, exposed)
        # Where nothing had been drawn, u is as likely to lie anywhere above.
        domain = predicts & (before <= self.pool.u)
        chance = (np.maximum(pi, before) - before) / np.where(before < 1, 1 - before, 1.0)
        predicted = both == mine
        base = self.count(predicting & self.predicted(self._nearest)) > 0
        stratum = base.astype(np.int64)
        sample = chance[domain], (self.pool.u < pi)[domain], predicted[domain]
        level = self._levels(predicting, mine, domain, chance)
        batches = self._batches_after(column, exposed)
        by_level = _draws(batches, predicts, predicted, level)
        of_verdicts = contrast_test(
            *sample,
            level[domain],
            draw_probability=by_level.chance,
            draw_predicted=by_level.hit,
            draw_level=by_level.level,
        )
        drawn = _Drawn(domain, predicts, chance, self.pool.u < pi, batches)
        document, read, known_documents = self.documents(column)
        in_documents = predicts & ~known_documents
        of_documents = document_test(
            document[in_documents],
            read[in_documents],
            predicted[in_documents],
            stratum=stratum[in_documents],
        )
        what_it_predicts = either(
            of_verdicts, drawn.test(predicts, predicted, stratum=stratum), of_documents
        )
        channels = [
            Channel(name, among & predicts & (stratum == one), value)
            for name, among, value in self._channels(column)
            for one in (0, 1)
        ]
        others = [drawn.clearest(channels)]
        if self.open.all():  # else it may follow from documents that its team saw read
            others.append(_clearest_of_documents(channels, document, read, in_documents))
        channel, _ = min(others, key=lambda tested: (tested[1].size == 0, tested[1].p_value))
        what_else = either(*(test for _, test in others))
        best = either(what_it_predicts, what_else)
        is_other = what_else.size > 0 and what_else.p_value < what_it_predicts.p_value
        return (channel if is_other else LeakTest.Channel.PREDICTED.value), best

    def _channels(self, column: int) -> Iterator[Channel]:
        """Yields by what else the run may tell which answers were read (`scoring.channels`)."""
        pool = self.pool
        theirs = {kind: _column(pool.p[kind], column) for kind in self._said.weight}
        linked = kind_of(self.track).linked_otherwise(pool.systems[-1], pool.systems[column])
        yield from self._said.beside(self.predicted(column), theirs, np.isin(pool.instance, linked))

    @cached_property
    def _said(self) -> Said:
        pool = self.pool
        return Said(
            target=pool.target,
            n_targets=pool.target_id.size,
            subject=pool.subject,
            object=pool.object,
            relation=pool.stratum,
            predicted=self.predicted(-1),
            confidence=_column(pool.confidence, -1),
            weight={kind: _column(pool.p[kind], -1) for kind in sorted(pool.p)},
        )

    def exposed(self, column: int) -> Bools:
        """(t,) the targets on which what an earlier run predicts may depend on who had been drawn:
        its team could see them; all of them, if the run was made from others' answers.
        """
        seen = self.second.get(column)
        if seen is None or seen.history is None:
            return np.zeros(self.pool.target_id.size, dtype=np.bool_)
        return np.full(self.pool.target_id.size, True) if seen.leaked else seen.history.known

    def _thresholds(self, column: int, exposed: Bools) -> tuple[Floats, Floats]:
        """(t,) what had been drawn, u below it, when the team of an earlier run decided on it, of
        what it depends on, on any track of the corpus; and what has been drawn since.
        """
        if column not in self.second:
            return np.zeros_like(self._pi), self._pi
        ids, owner = self.pool.target_id, self.pool.systems[column]
        corpus = Track.objects.filter(corpus=self.track.corpus_id)
        each = [thresholds(track, ids, until=self._decided(column)) for track in corpus]
        hidden_of_others = {
            submission_id: targets
            for submission_id, targets in self.hidden.items()
            if submission_id != owner
        }
        now = thresholds(self.track, ids, private=hidden_of_others, until=self.when)
        return np.where(exposed, np.max(each, axis=0), 0.0), now

    def _decided(self, column: int) -> datetime | None:
        """When the team of an earlier run decided on it, if it had seen judgments."""
        seen = self.second.get(column)
        return seen.history.when if seen is not None and seen.history is not None else None

    def predicted(self, column: int) -> Bools:
        """(u,) whether a run predicts each instance."""
        return np.asarray(self._member[:, column] > 0)

    @cached_property
    def _member(self) -> Floats:
        return np.asarray(self.pool.member.toarray())

    def count(self, instances: Bools) -> Ids:
        """(t,) how many of some instances each target has."""
        counts = np.bincount(self.pool.target[instances], minlength=self.pool.target_id.size)
        return counts.astype(np.int64)

    @cached_property
    def _pi(self) -> Floats:
        ids = self.pool.target_id
        return thresholds(self.track, ids, private=self.hidden, until=self.when)

    @cached_property
    def _nearest(self) -> int:
        """The run that this one is most like, of those that depend on no judgment: who changed it
        by what was read took things away inside, and added some outside.
        """
        mine = self._member[:, -1] > 0
        inside = (self._member[:, :-1] > 0).T @ mine.astype(np.float64)
        together = (self._member[:, :-1] > 0).sum(axis=0) + mine.sum() - inside
        likeness = np.asarray(inside / np.maximum(together, 1))
        likeness[[run for run in self.second if run < likeness.size]] = -1.0
        return int(likeness.argmax())

    def documents(self, column: int) -> tuple[Ids, Bools, Bools]:
        """(t,) the document of each target; whether it was drawn to be read whole, of those that
        are a uniform sample; and whether what an earlier run predicts there may depend on that: it
        was drawn before a team decided that had seen judgments.

        What only a second stage drew, or came with an import that was no sample, counts as not
        drawn.
        """
        drawn = DocumentSample.objects.filter(track__corpus=self.track.corpus_id)
        uniform = drawn.filter(track=self.track, stage=1, drawn_at__lte=self.when)
        uniform = uniform.exclude(batch=None, seed=None)
        decided_at = self._decided(column)
        drawn_before = drawn.filter(drawn_at__lte=decided_at) if decided_at else drawn.none()
        document = np.zeros(self.pool.target_id.size, dtype=np.int64)
        document[self.pool.target] = self.pool.document
        read, before = (
            np.isin(document, list(documents.values_list("document_id", flat=True)))
            for documents in (uniform, drawn_before)
        )
        return document, read, before

    def in_documents(self, columns: Sequence[int]) -> tuple[ShareTest, int]:
        """Return the test of how much the run says in the documents that were drawn to be read
        whole, and of how much that none says which depends on no judgment; and which of some
        earlier runs says most there.

        What people marked in a document anybody can find who knows that it was read. A team that
        could see judgments may know it, and leave out there what is wrong: of its runs only is
        tested whether they say more there that is new.
        """
        _, read, _ = self.documents(columns[0])
        is_read = read[self.pool.target]
        mine, beside = self.predicted(-1), self.beside
        row = np.unique(self.pool.document[mine | beside], return_inverse=True)[1]
        drawn = np.bincount(row, weights=is_read[mine | beside]) > 0
        said, new = (
            np.bincount(row, weights=some[mine | beside], minlength=drawn.size)
            for some in (mine, mine & ~beside)
        )
        amount = amounts_test(said, new, drawn, may_look=not self.open.all())
        return amount, self.most_read(columns)

    def most_read(self, columns: Sequence[int]) -> int:
        """Which of some earlier runs says most in the documents that were drawn to be read
        whole.
        """
        read = self.documents(columns[0])[1][self.pool.target]
        return max(columns, key=lambda c: int((self.predicted(c) & read).sum()))

    @property
    def beside(self) -> Bools:
        """(u,) whether any earlier run predicts each instance that depends on no judgment."""
        return self._others > 0

    def _levels(self, predicting: Bools, mine: Ids, domain: Bools, chance: Floats) -> Ids:
        """(t,) how likely what an earlier run predicts is right, as a level: by how many other runs
        predict it that depend on no judgment.
        """
        held = np.bincount(
            self.pool.target[predicting], weights=self._others[predicting], minlength=mine.size
        ) / np.maximum(mine, 1)
        weight = chance[domain] if chance[domain].any() else np.ones(int(domain.sum()))
        level = np.zeros(mine.size, dtype=np.int64)
        level[domain] = levels(held[domain], weight)
        return level

    @cached_property
    def _others(self) -> Ids:
        """(u,) how many runs predict each instance that depend on no judgment."""
        free = np.ones(self._member.shape[1] - 1, dtype=np.bool_)
        free[[column for column in self.second if column < free.size]] = False
        return np.asarray((self._member[:, :-1][:, free] > 0).sum(axis=1))

    def _batches_after(self, column: int, exposed: Bools) -> list[Batch]:
        """Each batch of draws with replacement, without what depended on it of an earlier run."""
        decided_at = self._decided(column)
        if decided_at is None:
            return self.batches
        return [
            batch if batch.drawn_at > decided_at else batch.without(exposed)
            for batch in self.batches
        ]

    @cached_property
    def batches(self) -> list[Batch]:
        pool = self.pool
        sample_batches = SampleBatch.objects.filter(
            submission__in=pool.systems, submission__track=self.track, design="iid"
        ).filter(drawn_at__lte=self.when)
        batches = []
        for pk, kind, owner, drawn_at, settled_at in sample_batches.order_by("pk").values_list(
            "pk", "distribution__kind", "submission_id", "drawn_at", "settled_at"
        ):
            hidden = np.isin(pool.target_id, self.hidden.get(owner, []))
            p = pool.by_target(kind)[:, [pool.systems.index(owner)]].toarray().ravel()
            drawn = np.zeros(pool.target_id.size, dtype=np.int64)
            samples = Sample.objects.filter(batch=pk, target__in=pool.target_id[~hidden].tolist())
            for target, times in samples.values_list("target_id", "multiplicity"):
                drawn[np.searchsorted(pool.target_id, target)] += times
            column, is_settled = pool.systems.index(owner), settled_at is not None
            batches.append(Batch(column, drawn_at, is_settled, p * ~hidden, drawn))
        return batches


def _column(matrix: Matrix, column: int) -> Floats:
    """(u,) one column of a table."""
    return np.asarray(matrix[:, [column % matrix.shape[1]]].toarray().ravel(), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What was drawn for earlier runs of what one of them predicts, by either design."""

    domain: Bools
    """(t,) it could be drawn by its random number"""
    predicts: Bools
    """(t,) the earlier run predicts it"""
    chance: Floats
    """(t,) with this probability"""
    drawn: Bools
    """(t,) it was"""
    batches: list[Batch]

    def test(self, among: Bools, says: Bools, *, stratum: Ids | None = None) -> ShareTest:
        """Return the exact test of what a run says of some targets (t,)."""
        inside, none = self.domain & among, np.zeros(among.size, dtype=np.int64)
        draws = _draws(self.batches, self.predicts & among, says, none)
        return share_test(
            self.chance[inside],
            self.drawn[inside],
            says[inside],
            draw_probability=draws.chance,
            draw_predicted=draws.hit,
            stratum=None if stratum is None else stratum[inside],
        )

    def clearest(self, channels: list[Channel]) -> tuple[str, ShareTest]:
        """Return the test of the split of some channels that speaks most clearly, and its
        channel.
        """
        can = self.domain & (self.chance > 0) & (self.chance < 1)
        counts: list[tuple[NDArray[Any], Floats]] = [
            (can & self.drawn, can * self.chance),
            (can & ~self.drawn, can * (1 - self.chance)),
            *((self.predicts * batch.drawn, self.predicts * batch.p) for batch in self.batches),
        ]
        splits, number = clearest_splits(channels, counts)
        tests = [(split.name, self.test(split.among, split.above)) for split in splits]
        return _best(tests, number)


def _clearest_of_documents(
    channels: list[Channel], document: Ids, read: Bools, inside: Bools
) -> tuple[str, ShareTest]:
    """The same of documents that were read whole: (t,) the document of each target, whether it was
    read, and whether what was read there could be chance.
    """
    within = [Channel(name, among & inside, value) for name, among, value in channels]
    ones = inside.astype(np.float64)
    splits, number = clearest_splits(within, [(inside & read, ones), (inside & ~read, ones)])
    tests = [
        (
            split.name,
            document_test(document[split.among], read[split.among], split.above[split.among]),
        )
        for split in splits
    ]
    return _best(tests, number)


def _best(tests: list[tuple[str, ShareTest]], number: int) -> tuple[str, ShareTest]:
    """The test with the least p-value, which is taken as often as there are splits."""
    nothing = "", ShareTest(0, 0, 0.0, 1.0)
    name, test = min(tests, key=lambda one: (one[1].size == 0, one[1].p_value), default=nothing)
    return name, replace(test, p_value=min(1.0, max(number, 1) * test.p_value))


class Batch(NamedTuple):
    """A batch of draws with replacement; 0 where nothing was a sample."""

    column: int
    """The run that it was drawn for"""
    drawn_at: datetime
    is_settled: bool
    """All that it drew has an answer, or was given up"""
    p: Floats
    """(t,) the probability that a draw falls on each target"""
    drawn: Ids
    """(t,) how often it did"""

    def without(self, targets: Bools) -> Batch:
        """Return the same of other targets alone."""
        return self._replace(p=self.p * ~targets, drawn=self.drawn * ~targets)


class _Draws(NamedTuple):
    """Draws with replacement from earlier runs."""

    chance: Floats
    """(k,) the probability that a draw, among what has its level, falls on what the run predicts"""
    hit: Bools
    """(k,) whether it did"""
    level: Ids
    """(k,) the level of what was drawn"""


def _draws(batches: list[Batch], domain: Bools, predicted: Bools, level: Ids) -> _Draws:
    """Return the draws with replacement that fell into the domain, level by level."""
    chances, hits, of_level = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)], [level[:0]]
    for batch in batches:
        p, drawn = batch.p, batch.drawn
        for number in np.unique(level[domain & (drawn > 0)]):
            here = domain & (level == number)
            n = int(drawn[here].sum())
            share = min(1.0, float(p[here & predicted].sum() / p[here].sum()))
            chances.append(np.full(n, share))
            hits.append(np.arange(n) < drawn[here & predicted].sum())
            of_level.append(np.full(n, number))
    return _Draws(np.concatenate(chances), np.concatenate(hits), np.concatenate(of_level))
