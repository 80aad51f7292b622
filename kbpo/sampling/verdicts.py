"""Tests a run, whenever a stage of it has ended, by what was judged right of it: before its team
decided on it, and since.

Who reads the answers and leaves out what is wrong can leave out as much blindly beside it, and then
predicts of each sample what chance would have it (`kbpo.sampling.leaks` finds nothing). But of what
was judged it kept what is right, and what is judged later tells how much is right of the rest. Of a
target that is judged by now it is chance, with known probabilities, whether it already was judged
then: π then / π now. What is right cannot depend on that, unless somebody looked; nor can what is
judged right, as long as people judge alike then and now.

That needs answers that were not there before. So each run asks a few among the targets that others
had brought in (`kbpo.sampling.designs.poisson.CHECK`), and more where these leave a doubt: none is
scored by such answers alone as were out before it came.

Who knows which documents were read whole finds by himself what is true there, and can say as much
elsewhere that is not. So what is asked of a run whatever document it lies in tells, too, whether it
is right the oftener in those than chance had it (`estimators.leaks.verdict_test`). No reader's
finding is shown before its track is closed; but who reads, or sees of one account that all is
judged in a document, may tell another account.

What a run repeats of texts counts as seen anyway, whether they are judged one by one or compared
two by two, which leaves nothing to test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimators.leaks import ShareTest, holm, share_test, verdict_test
from kbpo import clock
from kbpo.inclusion.disclosure import Decision
from kbpo.inclusion.own_thresholds import settled
from kbpo.pool.pool import read_pool
from kbpo.sampling.leaks import LEVEL, Batch, Judged, counts_of, tell
from kbpo.sampling.models import LeakTest, SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids


def look_again(submission: Submission) -> list[LeakTest]:
    """The tests of a run one of whose stages has just ended in which it shows that the answers to
    an earlier run were read; they are kept, and told.

    It is looked after each stage, and what is found at the k-th look counts 2ᵏ times: together they
    raise no more false alarms than one look would.
    """
    tests = list(_against(submission))
    stages = list(submission.batches.filter(settled_at__isnull=False).order_by("pk"))
    times = 2.0 ** _number_of_look(stages, tests)
    p_values = np.array([test.p_value for _, _, test in tests])
    adjusted = np.minimum(1.0, times * holm(p_values))
    # More questions about what others had asked settle a doubt of these alone.
    of_others = np.array([channel == LeakTest.Channel.RIGHT for _, channel, _ in tests], dtype=bool)
    if stages and (of_others.any() or "doubt" in stages[-1].settings):
        doubt = min(1.0, times * p_values[of_others & (adjusted > LEVEL)].min(initial=1.0))
        stages[-1].settings["doubt"] = doubt
        stages[-1].save(update_fields=["settings"])
    row_of = dict[int, LeakTest]()
    for (other, channel, test), p in zip(tests, adjusted.tolist(), strict=True):
        if p > LEVEL or submission.leak_tests.filter(earlier=other, lifted=True).exists():
            continue
        row_of[other], _ = LeakTest.objects.update_or_create(
            submission=submission,
            earlier_id=other,
            defaults={
                **counts_of(test),
                "adjusted": p,
                "channel": channel,
                "seen": True,
                "tested_at": clock.now(),
                "decided_at": None,
            },
        )
    for row in row_of.values():
        tell(row)
    return list(row_of.values())


def _number_of_look(
    stages: Sequence[SampleBatch], tests: Sequence[tuple[int, str, ShareTest]]
) -> int:
    """Which look this is, at least as many as stages have ended; the latest of these remembers it.

    A run may be judged anew without a stage more, if answers to it were excluded: that is another
    look. Where it shows the same as the one before, nothing new is tested.
    """
    if not stages:
        return 0
    shown = [[other, *counts_of(test).values()] for other, _, test in tests]
    looks = [stage.settings["look"] for stage in stages if "look" in stage.settings]
    last = stages[-1].settings.get("look")
    if last is not None and last["shown"] == shown:
        return int(last["number"])
    number = max([len(stages), *(look["number"] + 1 for look in looks)])
    stages[-1].settings["look"] = {"number": number, "shown": shown}
    stages[-1].save(update_fields=["settings"])
    return int(number)


def _against(submission: Submission) -> Iterator[tuple[int, str, ShareTest]]:
    """Each earlier run of the track that tells something, with a channel and its test; the last one
    is of documents that were read, held against the one that says most there.
    """
    decision, track = Decision(submission), submission.track
    when, own = decision.when, set(decision.earlier())
    sampled = Submission.objects.filter(track=track, sampled_at__lte=when)
    systems = list(sampled.exclude(pk=submission.pk).order_by("pk").values_list("pk", flat=True))
    others = [column for column, other in enumerate(systems) if other not in own]
    if not others:
        return
    verdicts = _Verdicts(Judged.of(track, read_pool(track, [*systems, submission.pk]), submission))
    for column in others:
        test = verdicts.against(column)
        if test.size:
            yield systems[column], LeakTest.Channel.RIGHT.value, test
    is_told = track.closed_at is not None and track.closed_at <= when
    if not is_told and not decision.shows_documents():
        test = verdicts.in_documents()
        if test.size:
            most = verdicts.then.most_read(others)
            yield systems[most], LeakTest.Channel.READ.value, test


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """What is judged of a run, and when it came in; the run is the pool's last column."""

    then: Judged
    """What had been drawn when its team decided"""

    def against(self, column: int) -> ShareTest:
        """Return the test by the targets that an earlier run predicts, too."""
        then = self.then
        mine, theirs = then.count(then.predicted(-1)), then.count(then.predicted(column))
        # What its team still predicts of what it saw judged is right the oftener.
        chance = (mine > 0) & (theirs > 0) & then.open & ~then.exposed(column)
        known = chance & ~np.isnan(self._right)
        right = np.zeros(mine.size, dtype=np.bool_)
        if known.any():
            right[known] = self._right[known] > self._right[known].mean()
        at, before, was_before = self._came_in(column, known)
        return share_test(before, was_before, right[at])

    def in_documents(self) -> ShareTest:
        """Return the test of how often the run is right in the documents that were drawn to be read
        whole, of what was asked for it by itself; what no run says which depends on no judgment is
        tested apart.

        A team that could see judgments may know these documents, and leave out there what is wrong:
        of its runs nothing is tested.
        """
        then = self.then
        if not then.open.all():
            return ShareTest(0, 0, 0.0, 1.0)
        u, mine = then.pool.u, then.count(then.predicted(-1)) > 0
        own = self._own[1].get(len(then.pool.systems) - 1, np.zeros(u.size))
        drawn = sum(
            (batch.drawn for batch in self._batches_since), np.zeros(u.size, dtype=np.int64)
        )
        at = np.flatnonzero(mine & ((u < own) | (drawn > 0)) & ~np.isnan(self._right))
        if not at.size:
            return ShareTest(0, 0, 0.0, 1.0)
        below = (u < own)[at]
        uniform = np.where(below, u[at] / np.where(below, own[at], 1.0), u[at])
        document, read, _ = then.documents(-1)
        is_right = self._right[at] > self._right[at].mean()
        is_new = then.count(then.predicted(-1) & ~then.beside)[at] > 0
        return verdict_test(
            document[at], read[at], is_right, uniform, stratum=is_new.astype(np.int64)
        )

    def _came_in(self, column: int, known: Bools) -> tuple[Ids, Floats, Bools]:
        """(k,) each target among some that is asked by now, and each draw of one: which it is, the
        probability that it was asked by then, and whether it was.
        """
        pi_then, pi_now = self._thresholds(column)
        u, tiny = self.then.pool.u, np.finfo(float).tiny
        batches = self._batches_before(column), self._batches_since
        asked = np.flatnonzero(known & (u < pi_now))
        places, chances, came = (
            [asked],
            [pi_then[asked] / pi_now[asked]],
            [u[asked] < pi_then[asked]],
        )
        expected = [
            sum((b.drawn.sum() * b.p / max(b.p.sum(), tiny) for b in some), np.zeros(u.size))
            for some in batches
        ]
        share = expected[0] / np.maximum(expected[0] + expected[1], tiny)
        for is_before, some in zip((True, False), batches, strict=True):
            for batch in some:
                drawn = np.repeat(np.flatnonzero(known), batch.drawn[known])
                places.append(drawn)
                chances.append(share[drawn])
                came.append(np.full(drawn.size, is_before))
        return np.concatenate(places), np.concatenate(chances), np.concatenate(came)

    @cached_property
    def _right(self) -> Floats:
        """(t,) how right what the run predicts of each target was judged, in [0, 1]; NaN: not
        known.
        """
        then = self.then
        own = np.flatnonzero(then.predicted(-1))
        verdicts = kind_of(then.track).judge(then.pool.instance[own], then.pool.systems[-1:])
        value, target = verdicts[then.track.criterion][:, 0], then.pool.target[own]
        total = np.bincount(target, weights=value, minlength=then.pool.target_id.size)
        return np.asarray(total / np.maximum(np.bincount(target, minlength=total.size), 1))

    def _thresholds(self, column: int) -> tuple[Floats, Floats]:
        """(t,) below what u was asked for an earlier run by itself, by batches from before; and for
        that one or the run by now.

        What was asked on top of others' thresholds will not do, nor what others asked: a run that
        was made from answers raised what was judged right alone.
        """
        pool, nothing = self.then.pool, np.zeros(self.then.pool.target_id.size)
        hidden = np.isin(pool.target_id, self.then.hidden.get(pool.systems[column], []))
        before = np.where(hidden, 0.0, self._own[0].get(column, nothing))
        return before, np.maximum(before, self._own[1].get(len(pool.systems) - 1, nothing))

    @cached_property
    def _own(self) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Column -> its own thresholds by settled batches: of those from before, and of all."""
        return settled(self.then.pool, until=self.then.when), settled(self.then.pool)

    def _batches_before(self, column: int) -> list[Batch]:
        """The settled batches of draws with replacement of an earlier run, from before."""
        return [b for b in self._ended if b.column == column and b.drawn_at <= self.then.when]

    @cached_property
    def _batches_since(self) -> list[Batch]:
        """Those of the run."""
        return [b for b in self._ended if b.column == len(self.then.pool.systems) - 1]

    @cached_property
    def _ended(self) -> list[Batch]:
        """The settled batches of draws with replacement so far."""
        return [b for b in replace(self.then, when=clock.now()).batches if b.is_settled]
