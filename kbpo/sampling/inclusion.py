"""Inclusion probabilities of targets: derived from all batches as they were stored, for what is
answered so far.

A target of design poisson is asked iff u < π, π its highest threshold. Questions go out in the
order of u/π, so what is answered at any moment is a sample too: with r the smallest u/π among
targets that still wait, a target counts iff u < max(π of settled batches, r π). A judgment beyond
that is not lost: it counts as soon as the gap before it closes. A drawn target of design iid counts
with 1 − Π_j (1 − p_j(τ))^n_j, in open batches times the least u that waits. Documents that were
drawn uniformly and annotated whole, and in which all is known, bring their targets in too: those of
them for which that is a way in (`kbpo.sampling.fold_in`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from estimators.documents import folded_in
from estimators.horvitz_thompson import inclusion_iid
from kbpo.corpus.fetch import fetch
from kbpo.pool.pool import Pool
from kbpo.sampling.models import Sample, SampleBatch
from kbpo.sampling.probabilities import Floats, Ids
from kbpo.tracks.models import Track

Private: TypeAlias = Mapping[int, Ids]
"""submission -> targets that it was asked about for itself alone (`kbpo.sampling.seen.private`)"""
NOTHING: Private = {}


@dataclass(frozen=True)
class Inclusion:
    """For every target of a pool, shape (t,)."""

    pi: Floats
    """Probability that it counts now, by any way in"""
    by_threshold: Floats
    """Design poisson: it counts iff its u lies below this"""
    by_draw: Floats
    """Design iid: the probability that it was drawn, and that its judgment counts"""
    drawn: NDArray[np.bool_]
    """It was drawn, and its judgment counts now"""
    counts: NDArray[np.bool_]
    """That, or it came in with its document"""
    cluster: Ids
    """Position of its document among `documents`; −1: in none of them, or they are no way in for
    it"""
    beta: Floats
    """Probability of coming in with its document; 0 where that is no way in"""
    of_document: float
    """Probability with which each of `documents` was annotated"""
    n_clusters: int
    threshold: Floats
    """Highest threshold so far (poisson), answered or not; 0: never considered"""
    before: Floats
    """Probability that it had been drawn and labelled before a sweep asked about what had no
    label in its document: what is drawn of that later is not asked again"""
    released: float
    """Share of the open batches that is released: 1 when everything drawn is answered"""

    @property
    def asked(self) -> Floats:
        """Probability that it was drawn, and that its judgment counts: whatever its document is"""
        return either(self.by_threshold, self.by_draw)

    def without_documents(self) -> Inclusion:
        """The same if no document brought anything in."""
        nothing = np.zeros(self.pi.size)
        return replace(
            self,
            pi=self.asked,
            counts=self.drawn,
            cluster=np.full(self.pi.size, -1),
            beta=nothing,
            of_document=0.0,
            n_clusters=0,
        )


def either(one: Floats, other: Floats) -> Floats:
    """The probability of coming in by either of two ways that are independent."""
    return 1 - (1 - one) * (1 - other)


def thresholds(
    track: Track, target_ids: Ids, *, settled: bool = False, private: Private = NOTHING
) -> Floats:
    """The highest threshold of each target on a track (0: none); only of settled batches if asked.

    Raises of a submission on its `private` targets are left out.
    """
    condition = " AND b.settled_at IS NOT NULL" if settled else ""
    owners = (
        np.repeat(list(private), [some.size for some in private.values()])
        if private
        else np.zeros(0)
    )
    targets = np.concatenate(list(private.values())) if private else np.zeros(0)
    rows = fetch(
        "SELECT h.target_id, max(h.pi) FROM sampling_threshold h JOIN sampling_samplebatch b ON"
        " b.id = h.batch_id JOIN submissions_submission s ON s.id = b.submission_id WHERE"
        f" s.track_id = %s AND h.target_id = ANY(%s){condition} AND (s.id, h.target_id) NOT IN"
        " (SELECT * FROM unnest(%s::bigint[], %s::bigint[])) GROUP BY h.target_id",
        [
            track.pk,
            target_ids.tolist(),
            owners.astype(np.int64).tolist(),
            targets.astype(np.int64).tolist(),
        ],
    )
    return spread(rows, target_ids)


def inclusion(
    track: Track,
    pool: Pool,
    waiting: set[int],
    documents: Sequence[int] = (),
    private: Private = NOTHING,
    eligible: NDArray[np.bool_] | None = None,
    before: Floats | None = None,
) -> Inclusion:
    """The inclusion of every target of a pool; what was asked for a submission on its `private`
    targets is left out.

    `waiting` are drawn targets without a judgment; `documents` those whose labels are folded in,
    drawn uniformly (all of the track's annotated documents, or none: else they would not be a
    sample); `eligible` (t,) the targets for which that is a way in, whatever document they lie in:
    all, if left out; `before` (t,) as in the result.
    """
    still = np.isin(pool.target_id, np.fromiter(waiting, dtype=np.int64, count=len(waiting)))
    threshold = thresholds(track, pool.target_id, private=private)
    settled = thresholds(track, pool.target_id, settled=True, private=private)
    ratio = np.divide(pool.u, threshold, out=np.full(pool.u.size, np.inf), where=threshold > 0)
    open_ones = still & (ratio < 1)
    released = float(ratio[open_ones].min()) if open_ones.any() else 1.0
    poisson = np.maximum(settled, threshold * released)
    done, drawn_and_done = _drawn_with_replacement(track, pool, private, settled=True)
    iid, drawn = _drawn_with_replacement(track, pool, private, settled=False)
    gap = float(pool.u[still & drawn].min()) if (still & drawn).any() else 1.0
    asked = (pool.u < poisson) | drawn_and_done | (drawn & (pool.u < gap))
    by_draw = 1 - (1 - done) * (1 - iid * gap)
    cluster, share = _cluster(pool, documents), track.corpus.share(len(documents))
    beta = np.full(pool.target_id.size, share)
    if eligible is not None:
        cluster, beta = np.where(eligible, cluster, -1), np.where(eligible, beta, 0.0)
    return Inclusion(
        pi=folded_in(either(poisson, by_draw), beta),
        by_threshold=poisson,
        by_draw=by_draw,
        drawn=asked & ~still,
        counts=(asked & ~still) | (cluster >= 0),
        cluster=cluster,
        beta=beta,
        of_document=share,
        n_clusters=len(documents),
        threshold=threshold,
        before=np.zeros(pool.target_id.size) if before is None else before,
        released=min(released, gap),
    )


def _drawn_with_replacement(
    track: Track, pool: Pool, private: Private, *, settled: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """π of design iid and whether a target was drawn, over all settled (or all open) batches of the
    track.
    """
    batches = SampleBatch.objects.filter(
        submission__track=track,
        submission__in=pool.systems,
        design="iid",
        settled_at__isnull=not settled,
    )
    hidden = {(owner, target) for owner, some in private.items() for target in some.tolist()}
    rows = (
        Sample.objects.filter(batch__in=batches)
        .values_list("batch__submission_id", "target_id")
        .distinct()
    )
    drawn = [row[1] for row in rows if row not in hidden]
    return chance_of_draw(pool, batches, private), np.isin(pool.target_id, drawn)


def chance_of_draw(
    pool: Pool, batches: QuerySet[SampleBatch], private: Private = NOTHING
) -> Floats:
    """The probability that each target is drawn at least once by batches of design iid, for none
    that it is private to.
    """
    missed = np.ones(pool.target_id.size)
    sizes = list(batches.values_list("distribution__kind", "submission_id", "size"))
    for kind in sorted(
        {row[0] for row in sizes}
    ):  # in one order: rounding is the same in every process
        n = np.zeros(len(pool.systems), dtype=np.int64)
        for name, submission, size in sizes:
            n[pool.systems.index(submission)] += size if name == kind else 0
        p = pool.by_target(kind).toarray()
        for submission in set(private) & set(pool.systems):
            p[np.isin(pool.target_id, private[submission]), pool.systems.index(submission)] = 0
        missed *= 1 - inclusion_iid(p, n)
    return 1 - missed


def _cluster(pool: Pool, documents: Sequence[int]) -> Ids:
    place = {document: at for at, document in enumerate(documents)}
    cluster = np.full(pool.target_id.size, -1, dtype=np.int64)
    cluster[pool.target] = [place.get(one, -1) for one in pool.document.tolist()]
    return cluster


def spread(rows: list[tuple[int, float]], target_ids: Ids) -> Floats:
    """The values of (target, value) rows over ascending `target_ids`; 0 where there is none."""
    values = np.zeros(target_ids.size)
    if rows:
        target, pi = (np.array(column) for column in zip(*rows, strict=True))
        values[np.searchsorted(target_ids, target.astype(np.int64))] = pi
    return values
