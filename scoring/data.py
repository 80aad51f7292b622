"""What a track's estimates are functions of: draws, probabilities, verdicts,
annotated documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimators.ratings import variances_of_rows, verdict_variance
from estimators.sums import present
from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.documents import Annotated, Facts, InDocuments, KnownDocuments
from scoring.inclusion import Disclosed, Inclusion
from scoring.pool import Pool


@dataclass(frozen=True)
class Draws:
    """All draws of one distribution (design iid), one row a draw: a multiplicity of 3 is three
    rows.
    """

    kind: str
    row: Ids
    """(n,) index into the pool's instances"""
    owner: Ids
    """(n,) column of the submission from whose distribution it was drawn"""
    P: Floats
    """(n, m)"""
    overlap: Floats
    """(m, m)"""


@dataclass(frozen=True)
class FollowedUp:
    """The predictions in annotated documents that a follow-up covers: all are judged, whatever was
    drawn.
    """

    row: Ids
    """(k,) rows of the pool"""
    true: Floats
    """(k,) 1 where the relation holds, 0 where not, NaN where nobody could tell"""


@dataclass(frozen=True, eq=False)
class SingleRatings:
    """k single ratings of n instances, of those people who are known."""

    at: NDArray[np.int64]
    """(k,) which instance each is of"""
    judge: NDArray[np.int64]
    """(k,) a code of who gave it"""
    value: NDArray[np.float64]
    """(k,)"""
    who: tuple[str, ...] = ()
    """Whose code each is, where that is known here"""

    def of(self, rows: NDArray[np.int64]) -> SingleRatings:
        """The ratings of some of the instances, which are counted anew."""
        place = np.full(max(int(rows.max(initial=-1)), int(self.at.max(initial=-1))) + 1, -1)
        place[rows] = np.arange(rows.size)
        kept = place[self.at] >= 0
        return SingleRatings(place[self.at[kept]], self.judge[kept], self.value[kept], self.who)


@dataclass(frozen=True, eq=False)
class Noise:
    """What people differ by under a criterion whose ratings stay single, over n instances."""

    count: NDArray[np.int64]
    """(n,) how many ratings each has; 0 where there is none"""
    variance: float
    """Of single ratings about one target, σ_a²; NaN where second opinions drawn at random do not
    tell it"""
    single: SingleRatings
    """Who gave each rating"""
    lowers: Bools | None = None
    """(n, m) where a rating v is 1 − v for a system: it wrote the second text of a pair; None: for
    none"""
    within: Floats | None = None
    """(n,) Σ (y − ȳ)² of the ratings of each whose second opinions were drawn at random, NaN of the
    others; None: not known, as in releases of before"""

    @property
    def is_separable(self) -> bool:
        """Whether annotator noise is known apart from what instances differ by."""
        return bool(np.isfinite(self.variance))

    @property
    def freedom(self) -> float:
        """Second opinions that `variance` was learnt from; infinite where it was not."""
        if not self.is_separable or self.within is None:
            return np.inf
        return float(np.maximum(self.count - 1, 0)[~np.isnan(self.within)].sum())

    def of(self, rows: NDArray[np.int64]) -> Noise:
        """The same of some of the instances."""
        lowers = None if self.lowers is None else self.lowers[rows]
        within = None if self.within is None else self.within[rows]
        return Noise(self.count[rows], self.variance, self.single.of(rows), lowers, within)

    def variances(self, member: NDArray[np.bool_], verdict: Floats) -> Floats:
        """Return (n, m) σ_a² of each instance as each system's. Where noise is not separable: what
        the mean ratings (n, m) of the system vary by, an upper bound of the noise in each of them.
        """
        shape = member.shape
        if not self.is_separable:
            return np.broadcast_to(verdict_variance(verdict, member), shape)
        if self.within is None:
            return np.full(shape, self.variance)
        drawn = ~np.isnan(self.within)
        rows = variances_of_rows(
            np.where(drawn, self.within, 0.0),
            np.where(drawn, self.count, np.minimum(self.count, 1)),
            member,
            self.variance,
        )
        return np.broadcast_to(rows[:, None], shape)

    def per_mean(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many ratings share the variance that `variances` gives for these instances."""
        count = self.count[rows]
        return count if self.is_separable else np.minimum(count, 1)

    def sign(self, rows: NDArray[np.int64]) -> Floats | float:
        """(k, m) −1 where a rating of one of these instances lowers a system, else 1; one 1 where
        none lowers any.
        """
        return 1.0 if self.lowers is None else np.where(self.lowers[rows], -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """What the model says of a pool, and how far it may be trusted."""

    g: Floats
    """(u,) in (0, 1)"""
    rho: float
    """How much the errors of instances that share a target go together; 1 as long as nobody
    knows"""
    labels: int
    """Labels that it was learnt from; 0: there were too few, and it says ½ of everything"""
    error: Floats | None = None
    """(u,) the squared error that is expected of it, where labels are ratings; None: g (1 − g)"""


@dataclass(frozen=True)
class Data:
    """What a track's estimates are functions of. Columns of every (·, m) array are the pool's
    `systems`: all submissions that were sampled; `shown` marks those that still take part.
    """

    pool: Pool
    shown: Bools
    judged: Ids
    """(k,) rows of the pool with a verdict: drawn, in an annotated document, or seen by a team
    before it uploaded"""
    f: dict[str, Floats]
    """criterion -> (k, m): 1 right, 0 wrong, NaN missing"""
    draws: dict[str, Draws]
    inclusion: Inclusion
    g: dict[str, Floats] = field(repr=False)
    """criterion -> (u,) the model's guess"""
    rho: dict[str, float] = field(repr=False)
    """criterion -> how much its errors go together in a target"""
    base: str
    """The criterion that others and recall rest on: what is claimed holds at all"""
    unweighed: str
    """The distribution under which every prediction counts the same; recall is stored under it"""
    facts: Facts | None
    """Facts, scope and annotated documents, for recall; None if the track's kind has no recall"""
    documents: Annotated = field(default_factory=lambda: Annotated([], []))
    """The annotated documents that count, in the order of the facts' codes"""
    disclosed: dict[int, Disclosed] = field(default_factory=dict)
    """column -> what its team could see of the pool when it confirmed, where that is anything;
    what is judged now in documents that it could know of then is among what counts for itself.
    Nothing, of those that saw nothing and of which `own` differs still"""
    own: dict[int, Inclusion] = field(default_factory=dict)
    """the same columns -> inclusion with what was asked for it alone, before what its team could
    see"""
    fold: KnownDocuments = field(default_factory=KnownDocuments)
    """What the annotated documents bring in"""
    followed_up: FollowedUp | None = None
    """What is judged in them whatever was drawn; None if no follow-up covers them"""
    in_documents: InDocuments | None = None
    """What readers marked and follow-ups asked, in whatever documents; None if nobody read any"""
    disclosed_drawn: dict[int, Disclosed] = field(default_factory=dict)
    """`disclosed` if documents brought in nothing"""
    alone: dict[int, Floats] = field(default_factory=dict)
    """column -> (t,) below which u a target is in the system's own sample and judged; where that
    is known"""
    noise: dict[str, Noise] = field(default_factory=dict)
    """criterion -> what people differ by on the judged rows, where single ratings count"""
    found_also: dict[str, str] = field(default_factory=dict)
    """criterion -> another one, which has to be right too where a system is to have found a fact"""
    mean: str = "mean"
    """What the track's kind calls the weighted mean of verdicts"""
    error: dict[str, Floats] = field(default_factory=dict, repr=False)
    """criterion -> (u,) the squared error that is expected of the guess, where single ratings
    count"""
    unaided: dict[str, Guess] = field(default_factory=dict, repr=False)
    """criterion -> the guess without metrics and judges, where they help"""
    pending: Bools | None = None
    """(k,) judged rows without a verdict that a system predicts which waits for one, or for which
    nobody was asked about them, although their targets count for others; None: no such row"""

    @cached_property
    def counted(self) -> dict[str, tuple[Ids, Ids]]:
        """What `scoring.score.counts` has counted."""
        return {}

    @property
    def saw(self) -> list[int]:
        """Columns of those whose teams could see anything."""
        return [column for column, saw in self.disclosed.items() if not saw.is_nothing]

    @property
    def systems(self) -> list[int]:
        """Submission ids in the order of the columns."""
        return self.pool.systems

    def without_aid(self) -> Data | None:
        """The same as if no metric and no judge had said anything; None if none helps."""
        if not self.unaided:
            return None
        errors = {
            name: guess.error for name, guess in self.unaided.items() if guess.error is not None
        }
        return replace(
            self,
            g={criterion: guess.g for criterion, guess in self.unaided.items()},
            rho={criterion: guess.rho for criterion, guess in self.unaided.items()},
            error=errors,
            unaided={},
        )

    def of_targets(self, targets: Ids) -> Data:
        """The same but for the pool: what is said of each target, of some of them alone."""
        inside = self.in_documents
        return replace(
            self,
            inclusion=self.inclusion.of(targets),
            own={column: inclusion.of(targets) for column, inclusion in self.own.items()},
            disclosed={
                column: disclosure.of(targets) for column, disclosure in self.disclosed.items()
            },
            disclosed_drawn={
                column: disclosure.of(targets)
                for column, disclosure in self.disclosed_drawn.items()
            },
            alone={column: thresholds[targets] for column, thresholds in self.alone.items()},
            in_documents=None if inside is None else inside.of(targets),
        )

    def of_rows(self, rows: Ids, p: dict[str, Matrix]) -> Data:
        """The same of some rows of the pool (ascending) and their targets, which weigh `p`; without
        draws, facts and confidences.
        """
        pool = self.pool
        targets, target = present(pool.target[rows], pool.target_id.size)
        inside = np.zeros(pool.target.size, dtype=np.bool_)
        inside[rows] = True
        judged = np.flatnonzero(inside[self.judged])
        followed_up = self.followed_up
        if followed_up is not None:
            kept = inside[followed_up.row]
            followed_up = FollowedUp(
                np.searchsorted(rows, followed_up.row[kept]), followed_up.true[kept]
            )
        return replace(
            self.of_targets(targets),
            pool=pool.of_rows(rows, p, targets, target),
            judged=np.searchsorted(rows, self.judged[judged]),
            f={criterion: verdicts[judged] for criterion, verdicts in self.f.items()},
            g={criterion: guesses[rows] for criterion, guesses in self.g.items()},
            error={criterion: errors[rows] for criterion, errors in self.error.items()},
            noise={name: noise.of(judged) for name, noise in self.noise.items()},
            pending=None if self.pending is None else self.pending[judged],
            followed_up=followed_up,
            unaided={},
            draws={},
            facts=None,
        )

    def drawn_alone(self) -> Data:
        """The same if no follow-up brought anything in: what counts because it was drawn."""
        return self if self.fold.closed or not self.fold.documents else self.without_documents()

    def without_documents(self) -> Data:
        """The same if no document brought anything in, whatever is known in it."""
        own = {column: inclusion.without_documents() for column, inclusion in self.own.items()}
        return replace(
            self,
            inclusion=self.inclusion.without_documents(),
            own=own,
            disclosed=self.disclosed_drawn,
            fold=KnownDocuments(),
        )
