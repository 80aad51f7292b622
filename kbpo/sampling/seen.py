"""Who has seen what: which targets of a submission its team knew of when it decided on it; what
that leaves to chance.

A team that deletes what it was shown to be wrong and uploads the rest would be scored on its own
key. So a target that an earlier submission of the team states is split by its state at that moment:
with a judgment it counts for itself alone, with certainty; without one it is known to have u ≥
π_old, so that it is asked with (π − π_old)/(1 − π_old). That holds for every way in by itself, for
they are independent: the threshold, the draws, the annotated documents.

Documents say more than their single judgments do: from what a team sees marked in one it knows that
all of it was read. So for a team that could see any judgment of its own, the documents that were
read by then are no chance, whatever it states in them: what is judged there now counts for itself
alone, and other targets come in with documents that were read since, or not with documents at all.

All of these follow from conditioning on the state at that moment, which is right whatever the team
looked at; what is left to others' judgments is only what the team could know nothing of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from django.db.models import Q
from django.utils import timezone
from numpy.typing import NDArray

from estimators.seen import recondition, threshold
from kbpo.accounts.models import Team
from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Label
from kbpo.pool.pool import Pool
from kbpo.sampling.inclusion import NOTHING, Inclusion, Private, chance_of_draw, either, spread
from kbpo.sampling.models import DocumentSample, Sample, SampleBatch
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

Bools = NDArray[np.bool_]
TINY = 1e-9
"""A smaller probability is an error of rounding."""


@dataclass(frozen=True)
class Seen:
    """What the team of one submission could see of a pool's targets when it decided, shape (t,)."""

    exact: Bools
    """Judged (or given up) by then, and stated by the team before: it counts for itself alone"""
    unjudged: Bools
    """Stated by the team before, and not judged by then"""
    threshold: Floats
    """Design poisson: below this number all u were judged by then (in an open batch: the share
    that was answered)"""
    drawn: Floats
    """Design iid: the probability that a target would have been drawn, for anybody whose draws
    count, and judged"""
    inside: Bools
    """In a document that had been annotated by then"""
    beta: float
    """The probability with which a document had been annotated by then"""

    @property
    def known(self) -> Bools:
        """Stated by the team before, or public: it could see whether they were judged."""
        return self.exact | self.unjudged

    def of(self, targets: Ids) -> Seen:
        """The same of some of the targets."""
        return Seen(
            self.exact[targets],
            self.unjudged[targets],
            self.threshold[targets],
            self.drawn[targets],
            self.inside[targets],
            self.beta,
        )

    def folded(self, now: Inclusion, unasked: Bools) -> Seen:
        """The same with what documents that were annotated by then bring in now: it counts for
        itself alone too. Not so the targets of which the submission states something that nobody
        was asked there.
        """
        certain = self.inside & (now.beta > 0) & ~unasked
        return replace(self, exact=self.exact | certain, unjudged=self.unjudged & ~certain)

    def own(self, now: Inclusion) -> Floats:
        """The probability of each target for this submission, given its inclusion now; 0 where it
        has none.
        """
        return np.where(self.exact, 1.0, either(*self.ways(now)))

    def ways(self, now: Inclusion) -> tuple[Floats, Floats]:
        """The probabilities, of targets that are not exact, of having been asked, and of having
        come in with their document since then.
        """
        asked = either(_given(now.by_threshold, self.threshold), _given(now.by_draw, self.drawn))
        return np.where(self.unjudged, asked, now.asked), self.by_document(now.beta)

    def by_document(self, beta: Floats) -> Floats:
        """The probability of each target of having come in with its document since then, where β is
        that of now.
        """
        return _given(beta, np.where(beta > 0, self.beta, 0.0))

    def before(self, now: Inclusion) -> Floats:
        """The probability of having been labelled since then, and before a sweep asked
        (`Inclusion.before`).
        """
        given = _given(now.before, either(self.threshold, self.drawn))
        return np.where(self.unjudged, given, now.before)

    def start(self, thresholds: Floats) -> Floats:
        """Design poisson: the same of thresholds, from which a plan of this submission starts."""
        return np.where(
            self.exact, 1.0, np.where(self.unjudged, _given(thresholds, self.threshold), thresholds)
        )

    def raised(self, own: Floats, thresholds: Floats) -> Floats:
        """The thresholds that give the submission these probabilities of its own: nowhere below
        what they are.
        """
        base = np.where(self.unjudged, self.threshold, 0.0)
        return np.where(self.exact, thresholds, np.maximum(thresholds, threshold(own, base)))


def _given(pi: Floats, old: Floats) -> Floats:
    """P(u < π | u ≥ π_old); 0 where π was not raised, on this track, since then."""
    old = np.minimum(old, 1 - TINY)
    chance = recondition(np.maximum(pi, old), old)
    return np.where(chance > TINY, chance, 0.0)


def decided(submission: Submission) -> datetime:
    """When the team decided on a submission: at its confirmation, not at its upload.

    Else a team could leave drafts lying, wait for the judgments of one, and confirm the draft that
    has least of what is wrong.
    """
    return submission.confirmed_at or timezone.now()


def earlier(submission: Submission) -> list[int]:
    """The submissions whose judgments this one's team could see when it decided on it, in the order
    of upload.

    Those of its own team, of teams that share a member with it or whose run one of its members
    uploaded, and of closed tracks; each only if its sample was drawn by then. What became of it
    later does not matter: a withdrawn one was seen, and a draft shows nothing.
    """
    when = decided(submission)
    of_all = Q(track__status=Track.Status.CLOSED, track__closed_at__lte=when)
    return _sampled(submission, when, _of_its_people(submission) | of_all)


def _of_its_people(submission: Submission) -> Q:
    people = set(submission.team.members.values_list("pk", flat=True)) | {submission.user_id}
    teams = {
        submission.team_id,
        *Team.objects.filter(members__in=people - {None}).values_list("pk", flat=True),
    }
    return Q(team__in=teams) | Q(user__in=people - {None})


def _planned_before(submission: Submission, when: datetime) -> bool:
    """Whether the team had another submission by then of which it was told anything, if only what
    it would cost.
    """
    others = Submission.objects.filter(track__corpus=submission.track.corpus_id).exclude(
        pk=submission.pk
    )
    return others.filter(_of_its_people(submission), read_at__lte=when).exists()


def _sampled(submission: Submission, when: datetime, which: Q) -> list[int]:
    known = Submission.objects.filter(track__corpus=submission.track.corpus_id).exclude(
        pk=submission.pk
    )
    shown = known.filter(sampled_at__lte=when).filter(which)
    return list(shown.order_by("received_at", "pk").values_list("pk", flat=True))


def seen(pool: Pool, submission: Submission, documents: Sequence[int] = ()) -> Seen | None:
    """What the team of a submission of the pool could see when it decided; None if that is
    nothing.
    """
    return all_seen(pool, documents).get(pool.systems.index(submission.pk))


def all_seen(pool: Pool, documents: Sequence[int] = ()) -> dict[int, Seen]:
    """Column of the pool -> what its team could see, for every submission that states something its
    team had seen.

    `documents` are those whose annotation brings targets in, as for `inclusion`.
    """
    rows = (
        Submission.objects.filter(pk__in=pool.systems)
        .select_related("track__corpus", "team")
        .in_bulk()
    )
    known = {column: _known(pool, rows[pk]) for column, pk in enumerate(pool.systems)}
    read = {
        column: _could_know(rows[pk], documents, known[column])
        for column, pk in enumerate(pool.systems)
    }
    known = {column: targets for column, targets in known.items() if targets.any() or read[column]}
    hidden = {pool.systems[column]: pool.target_id[targets] for column, targets in known.items()}
    return {
        column: _seen(pool, rows[pool.systems[column]], targets, read[column], hidden)
        for column, targets in known.items()
    }


def _could_know(submission: Submission, documents: Sequence[int], known: Bools) -> list[int]:
    """Those of the documents that were annotated when the team decided, if it could see any
    judgment by then.

    Or what a plan tells of them: a draft that states things of one document alone is told how many
    are judged there.
    """
    when = decided(submission)
    if not documents or not (known.any() or _planned_before(submission, when)):
        return []
    return _annotated(submission.track, documents, when)


def _known(pool: Pool, submission: Submission) -> Bools:
    """The targets that a submission states and whose state its team could see when it decided."""
    shown = np.isin(pool.target_id, _targets(earlier(submission))) | _public(
        pool, decided(submission)
    )
    return _stated(pool, submission) & shown


def _seen(
    pool: Pool, submission: Submission, known: Bools, read: Sequence[int], hidden: Private
) -> Seen:
    track, when = submission.track, decided(submission)
    answered = _answered(pool, track, when, _stated_by(pool, submission, when))
    judged = answered.judged
    others = {owner: targets for owner, targets in hidden.items() if owner != submission.pk}
    return Seen(
        exact=known & judged,
        unjudged=known & ~judged,
        threshold=_thresholds(pool, track, when, answered),
        drawn=_drawn(pool, track, when, answered, others),
        inside=_in_documents(pool, read),
        beta=track.corpus.share(len(read)),
    )


def labelled_by(pool: Pool, track: Track, when: datetime, then: Bools) -> tuple[Floats, Floats]:
    """The probabilities, by thresholds and by draws of design iid, that a target was asked and had
    a label by then.

    `then` (t,) are the targets of the pool that there were. Of what readers marked it is the same
    as of the others: it may depend on nothing that is true.
    """
    answered = _answered(pool, track, when, then)
    answered = replace(
        answered, marked=np.zeros_like(answered.marked), then=then & ~answered.marked
    )
    return _thresholds(pool, track, when, answered), _drawn(pool, track, when, answered, NOTHING)


def _answered(pool: Pool, track: Track, when: datetime, then: Bools) -> _Answered:
    judged, marked = _judged(pool, track, when, then)
    return _Answered(judged, marked, _in_documents(pool, _read_by(track, when)), then)


def private(pool: Pool, found: Mapping[int, Seen], *, but: int | None = None) -> Private:
    """Submission -> the targets that its team had seen: what was asked of them for it counts for it
    alone.

    Whether it asked depends on what was known of each target, by what the team deleted: for others
    that is no sample.
    `but` is a column that is left out: of the submission for which it does count.
    """
    return {pool.systems[at]: pool.target_id[one.known] for at, one in found.items() if at != but}


def _stated(pool: Pool, submission: Submission) -> Bools:
    """Whether the submission states something on each target."""
    rows = pool.member[:, [pool.systems.index(submission.pk)]].toarray().ravel() > 0
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    found[pool.target[rows]] = True
    return found


def _targets(submissions: Sequence[int]) -> Ids:
    """The targets on which some submissions state anything."""
    if not submissions:
        return np.zeros(0, dtype=np.int64)
    rows = fetch(
        "SELECT DISTINCT i.target_id FROM submissions_prediction p JOIN instances_instance i ON"
        " i.id = p.instance_id WHERE p.submission_id = ANY(%s)",
        [list(submissions)],
    )
    return np.array([row[0] for row in rows], dtype=np.int64)


def _stated_by(pool: Pool, submission: Submission, when: datetime) -> Bools:
    """The targets of the pool when a submission was decided on: what came since must not change
    what was known.
    """
    sampled = Submission.objects.filter(pk__in=pool.systems).filter(
        Q(sampled_at__lte=when) | Q(pk=submission.pk)
    )
    columns = [pool.systems.index(pk) for pk in sampled.values_list("pk", flat=True)]
    rows = np.asarray(pool.member[:, columns].sum(axis=1)).ravel() > 0
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    found[pool.target[rows]] = True
    return found


def _judged(pool: Pool, track: Track, when: datetime, then: Bools) -> tuple[Bools, Bools]:
    """Whether each target was judged by then (one that was given up has an empty label), and
    whether only the annotation of its document marked it.

    A mark alone is no judgment: people mark what is true, so that judged targets would be the true
    ones. It counts for one where the target was drawn by a batch that is settled, or where all
    targets of the document that there were
    `then` have a label: there whether it is judged does not depend on whether it is true.
    """
    labelled = _with_label(pool, "created_at <= %s", when)
    by_itself = _with_label(
        pool, "source <> ALL(%s) AND created_at <= %s", list(Label.OF_DOCUMENTS), when
    )
    of_target = np.zeros(pool.target_id.size, dtype=np.int64)
    of_target[pool.target] = pool.document
    complete = ~np.isin(of_target, of_target[~labelled & then])
    settled = SampleBatch.objects.filter(
        submission__track__corpus=track.corpus_id, settled_at__lte=when
    )
    drawn = Sample.objects.filter(batch__in=settled).values_list("target_id", flat=True).distinct()
    marked = labelled & ~by_itself & ~complete
    return labelled & (~marked | np.isin(pool.target_id, list(drawn))), marked


def _public(pool: Pool, when: datetime) -> Bools:
    """Whether everybody could see a judgment of each target by then."""
    return _with_label(pool, "value <> '{}'::jsonb AND public_at <= %s", when)


def _with_label(pool: Pool, condition: str, *parameters: object) -> Bools:
    rows = fetch(
        f"SELECT DISTINCT target_id FROM instances_label WHERE target_id = ANY(%s) AND {condition}",
        [pool.target_id.tolist(), *parameters],
    )
    return np.isin(pool.target_id, [row[0] for row in rows])


def _annotated(track: Track, documents: Sequence[int], when: datetime) -> list[int]:
    """Those of the documents whose annotation was complete by then."""
    rows = DocumentSample.objects.filter(track=track, document__in=documents, settled_at__lte=when)
    return list(rows.values_list("document_id", flat=True))


def _read_by(track: Track, when: datetime) -> list[int]:
    """The documents that were annotated whole by then, for any track of the corpus."""
    rows = DocumentSample.objects.filter(track__corpus=track.corpus_id, settled_at__lte=when)
    return list(rows.values_list("document_id", flat=True).distinct())


def _in_documents(pool: Pool, documents: Sequence[int]) -> Bools:
    found = np.zeros(pool.target_id.size, dtype=np.bool_)
    found[pool.target[np.isin(pool.document, list(documents))]] = True
    return found


@dataclass(frozen=True)
class _Answered:
    """Which targets were judged at a moment, and of which that tells how far open batches had come,
    shape (t,).
    """

    judged: Bools
    marked: Bools
    inside: Bools
    """In documents that were annotated whole: there people may have been asked for the
    documents' sake"""
    then: Bools
    """In the pool as it was"""

    def share(self, asked: Bools) -> Floats:
        """The share of what open batches had asked that was answered; 0 for what was marked, which
        is not asked.
        """
        asked = asked & ~self.marked & self.then
        among = asked & ~self.inside if (asked & ~self.inside).any() else asked
        return np.where(self.marked, 0.0, self.judged[among].mean() if among.any() else 1.0)


def _thresholds(pool: Pool, track: Track, when: datetime, answered: _Answered) -> Floats:
    """The threshold up to which everything was judged by then, on any track of the corpus: they
    share the u.

    Of what open batches had asked, only a share was answered. Where between the two thresholds it
    lies does not matter: of the u in between, just that share is known not to be among the
    unjudged. What was marked is not asked, and so is in none of them.
    """
    rows = fetch(
        "SELECT h.target_id, max(h.pi), coalesce(max(h.pi) FILTER (WHERE b.settled_at <= %(when)s),"
        " 0) FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id JOIN"
        " submissions_submission s ON s.id = b.submission_id JOIN tracks_track t ON t.id ="
        " s.track_id WHERE t.corpus_id = %(corpus)s AND b.drawn_at <= %(when)s AND h.target_id ="
        " ANY(%(targets)s) GROUP BY h.target_id",
        {"when": when, "corpus": track.corpus_id, "targets": pool.target_id.tolist()},
    )
    highest = spread([(row[0], row[1]) for row in rows], pool.target_id)
    settled = spread([(row[0], row[2]) for row in rows], pool.target_id)
    asked = (settled <= pool.u) & (pool.u < highest)
    return settled + (highest - settled) * answered.share(asked)


def _drawn(
    pool: Pool, track: Track, when: datetime, answered: _Answered, private: Private
) -> Floats:
    """The probability that each target was drawn (design iid) and judged by then.

    What was drawn for others that it is private to is no way in, now or then; it says nothing of
    the draws that are.
    """
    batches = SampleBatch.objects.filter(
        submission__track=track, submission__in=pool.systems, design="iid", drawn_at__lte=when
    )
    settled, still = batches.filter(settled_at__lte=when), batches.exclude(settled_at__lte=when)
    waiting = Sample.objects.filter(batch__in=still).values_list("target_id", flat=True).distinct()
    share = answered.share(np.isin(pool.target_id, list(waiting)))
    return 1 - (1 - chance_of_draw(pool, settled, private)) * (
        1 - share * chance_of_draw(pool, still, private)
    )
