"""The route of design poisson: a target is asked iff its random number u lies below its threshold.

The threshold of a target is the highest that any batch set. Questions go out in the order of u/π,
so what is answered at any moment is a sample too: with r the smallest u/π among targets that still
wait, a target counts iff u < max(π of settled batches, r π). A judgment beyond that is not lost: it
counts as soon as the gap before it closes. What a withdrawn run left open never does: of its own
thresholds the part below r counts, r as it was when nobody asked for it any more. A later r would
depend on what others had answered since.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from kbpo.corpus.fetch import fetch_arrays
from kbpo.corpus.kept import Arrays, kept
from kbpo.inclusion.route import NOTHING, Moment, Private, Route, under_way
from kbpo.sampling.models import SampleBatch
from kbpo.tracks.models import Track
from scoring.arrays import Bools, Floats, Ids
from scoring.pool import Pool

KEPT = 16
"""Readings that are kept in files: one for all, and one for each team that could see judgments"""


@dataclass(frozen=True, eq=False)
class Thresholds(Route):
    """Thresholds of a track on the targets of a pool, but for those that are `private`."""

    track: Track
    pool: Pool
    waiting: Bools
    """(t,) drawn, by any design, and without a judgment"""
    private: Private
    asks_again: bool = False
    """Settled batches count as if they were open: what they asked is asked again"""
    gone: Bools | None = None
    """(t,) What waits and nobody is asked about any more; None: nothing"""

    @cached_property
    def highest(self) -> Floats:
        """(t,) The highest threshold so far, answered or not; 0: never considered."""
        return np.asarray(self._stored["highest"])

    @property
    def settled(self) -> Floats:
        """(t,) The same of settled batches alone."""
        return np.asarray(self._stored["settled"])

    @cached_property
    def _stored(self) -> Arrays:
        """`highest`, and the same of settled batches alone, and with those that are judged: labels
        change none of them.
        """
        of_track = SampleBatch.objects.filter(submission__track=self.track).order_by("pk")
        batches = list(of_track.values_list("pk", "drawn_at", "settled_at", "answered_below"))
        settled = [pk for pk, _, ended, below in batches if ended or below is not None]
        every = [pk for pk, *_ in batches]
        still = list(of_track.filter(under_way()).values_list("pk", flat=True))
        pairs = np.array(_pairs(self.private), dtype=np.int64)
        hidden, fixed = hashlib.sha256(pairs.tobytes()).hexdigest(), self.pool.fixed
        return kept(
            f"thresholds-{self.track.pk}",
            # Their moments, too: after a restore another batch may have the number of a lost one.
            (*fixed, batches, still, hidden) if fixed else None,
            lambda: {
                "highest": _of_batches(every, self.pool.target_id, self.private),
                "under way": _of_batches(still, self.pool.target_id, self.private),
                "settled": _of_batches(settled, self.pool.target_id, self.private),
            },
            newest=KEPT,
        )

    @cached_property
    def released(self) -> float:
        """r: the smallest u/π among targets that wait and will be asked; 1 when everything drawn is
        answered.
        """
        thresholds = self._stored["under way"]
        above = np.full(self.pool.u.size, np.inf)
        ratio = np.divide(self.pool.u, thresholds, out=above, where=thresholds > 0)
        waiting = self.waiting if self.gone is None else self.waiting & ~self.gone
        gaps = ratio[waiting & (ratio < 1)]
        return float(gaps.min()) if gaps.size else 1.0

    def chance(self) -> Floats:
        open_part = np.asarray(self._stored["under way"] * self.released)
        return open_part if self.asks_again else np.maximum(self.settled, open_part)

    def realised(self) -> Bools:
        return np.asarray(self.pool.u < self.chance())

    def at(self, moment: Moment) -> Floats:
        """The threshold up to which everything was judged by then, on any track of the corpus: they
        share the u.

        Of what open batches had asked, only a share was answered. Which u these were does not
        matter: of those between the two thresholds, just that share is known not to be unjudged.
        What was marked is not asked, and so is not among them.
        """
        stored = fetch_arrays(
            {
                "target": "h.target_id",
                "highest": "max(h.pi)",
                "settled": "coalesce(max(h.pi) FILTER (WHERE b.settled_at <= %(when)s), 0)",
            },
            "FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id"
            " JOIN submissions_submission s ON s.id = b.submission_id"
            " JOIN tracks_track t ON t.id = s.track_id"
            " WHERE t.corpus_id = %(corpus)s AND b.drawn_at <= %(when)s GROUP BY h.target_id",
            {"when": moment.when, "corpus": self.track.corpus_id},
            reals=("highest", "settled"),
        )
        highest = spread(stored["target"], stored["highest"], self.pool.target_id)
        settled = spread(stored["target"], stored["settled"], self.pool.target_id)
        asked = (settled <= self.pool.u) & (self.pool.u < highest)
        return settled + (highest - settled) * moment.share(asked)


def thresholds(
    track: Track, target_ids: Ids, *, private: Private = NOTHING, until: datetime | None = None
) -> Floats:
    """Return the highest threshold of each target on a track (0: none); only of batches drawn up to
    a moment, if asked. What a submission set on its `private` targets is left out.
    """
    batches = SampleBatch.objects.filter(submission__track=track)
    if until is not None:
        batches = batches.filter(drawn_at__lte=until)
    return _of_batches(list(batches.values_list("pk", flat=True)), target_ids, private)


def _of_batches(batches: list[int], target_ids: Ids, private: Private) -> Floats:
    """(t,) the highest threshold that some batches set."""
    owners, targets = _pairs(private)
    highest = fetch_arrays(
        {"target": "h.target_id", "pi": "max(h.pi * coalesce(b.answered_below, 1))"},
        "FROM sampling_threshold h JOIN sampling_samplebatch b ON b.id = h.batch_id"
        " WHERE h.batch_id = ANY(%s) AND (b.submission_id, h.target_id) NOT IN"
        " (SELECT * FROM unnest(%s::bigint[], %s::bigint[])) GROUP BY h.target_id",
        [batches, owners, targets],
        reals=("pi",),
    )
    return spread(highest["target"], highest["pi"], target_ids)


def _pairs(private: Private) -> tuple[list[int], list[int]]:
    owners: list[int] = []
    targets: list[int] = []
    for owner, hidden in private.items():
        owners += [owner] * hidden.size
        targets += hidden.tolist()
    return owners, targets


def spread(targets: Ids, values: Floats, target_ids: Ids) -> Floats:
    """Return the values of some targets over ascending `target_ids`; 0 where there is none, and
    without those of other targets.
    """
    spread_values = np.zeros(target_ids.size)
    inside = np.isin(targets, target_ids)
    spread_values[np.searchsorted(target_ids, targets[inside])] = values[inside]
    return spread_values
