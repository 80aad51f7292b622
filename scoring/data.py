"""The inputs of a track's estimates: draws, probabilities, verdicts, annotated documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimators.ratings import rating_variance_of_outputs, verdict_variance
from estimators.sums import occurring_codes
from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.documents import Annotated, Facts
from scoring.inclusion import Inclusion
from scoring.pool import Pool

LIKE, THESE = "like", "these"
"""The populations of numbers: inputs like these, or only these inputs"""
ENDINGS = {LIKE: "_like", THESE: "_these"}
"""Suffixes of methods for a population that a board does not print first"""


@dataclass(frozen=True)
class Draws:
    """All draws of one distribution (design iid), one row for each draw: a multiplicity of 3 gives
    three rows.
    """

    kind: str
    row: Ids
    """(n,) index into the pool's instances"""
    owner: Ids
    """(n,) column of the submission from whose distribution it was drawn"""
    P: Floats
    """(n, m) probability of each drawn instance under each system"""
    overlap: Floats
    """(m, m) overlap of the systems"""


@dataclass(frozen=True, eq=False)
class SingleRatings:
    """The k single ratings of n instances by known annotators."""

    at: NDArray[np.int64]
    """(k,) index of the rated instance"""
    judge: NDArray[np.int64]
    """(k,) code of the annotator"""
    value: NDArray[np.float64]
    """(k,) rating"""
    who: tuple[str, ...] = ()
    """Annotator of each code, if known here"""

    def select_instances(self, rows: NDArray[np.int64]) -> SingleRatings:
        """Return the ratings restricted to the instances at these rows, which are renumbered from
        0.
        """
        place = np.full(max(int(rows.max(initial=-1)), int(self.at.max(initial=-1))) + 1, -1)
        place[rows] = np.arange(rows.size)
        kept = place[self.at] >= 0
        return SingleRatings(place[self.at[kept]], self.judge[kept], self.value[kept], self.who)


@dataclass(frozen=True, eq=False)
class Noise:
    """The disagreement of annotators (annotator noise) about n instances under a criterion with
    single ratings.
    """

    count: NDArray[np.int64]
    """(n,) number of ratings of each instance"""
    variance: float
    """σ_a², the variance of single ratings of one target; NaN if random second opinions do not
    suffice to estimate it"""
    single: SingleRatings
    """Single ratings with their annotators"""
    lowers: Bools | None = None
    """(n, m) whether a rating v counts as 1 − v for a system, which wrote the second text of a
    pair; None if for none"""
    within: Floats | None = None
    """(n,) Σ (y − ȳ)² of the ratings of instances with random second opinions, NaN for others;
    None: not known, as in older releases"""
    opinions: Sequence[Sequence[float]] = ()
    """(n) ratings of each instance by single people, only one if the others were not drawn at
    random; empty if unknown, as in a release"""

    @property
    def is_separable(self) -> bool:
        """Return whether annotator noise can be separated from the variance between instances."""
        return bool(np.isfinite(self.variance))

    @property
    def degrees_of_freedom(self) -> float:
        """Return the degrees of freedom of `variance`: the number of ratings beyond the first of
        each instance with random second opinions. Infinite if `variance` or `within` is unknown.
        """
        if not self.is_separable or self.within is None:
            return np.inf
        return float(np.maximum(self.count - 1, 0)[~np.isnan(self.within)].sum())

    def select_instances(self, rows: NDArray[np.int64]) -> Noise:
        """Return the annotator noise restricted to the instances at these rows."""
        lowers = None if self.lowers is None else self.lowers[rows]
        within = None if self.within is None else self.within[rows]
        opinions = [self.opinions[row] for row in rows.tolist()] if self.opinions else ()
        single = self.single.select_instances(rows)
        return Noise(self.count[rows], self.variance, single, lowers, within, opinions)

    def rating_variances(self, member: NDArray[np.bool_], verdict: Floats) -> Floats:
        """Return (n, m) the variance of single ratings (σ_a²) of each instance for each system. If
        it cannot be separated from the variance between instances, return the variance of the
        system's mean ratings (n, m), an upper bound of the noise in each of them.
        """
        shape = member.shape
        if not self.is_separable:
            return np.broadcast_to(verdict_variance(verdict, member), shape)
        if self.within is None:
            return np.full(shape, self.variance)
        drawn = ~np.isnan(self.within)
        rows = rating_variance_of_outputs(
            np.where(drawn, self.within, 0.0),
            np.where(drawn, self.count, np.minimum(self.count, 1)),
            member,
            self.variance,
        )
        return np.broadcast_to(rows[:, None], shape)

    def ratings_per_mean(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of ratings of each of these instances by which the variance of
        `rating_variances` is divided to get the variance of their mean.
        """
        count = self.count[rows]
        return count if self.is_separable else np.minimum(count, 1)

    def rating_sign(self, rows: NDArray[np.int64]) -> Floats | float:
        """Return (k, m) −1 where a rating of one of these instances lowers a system, else 1; a
        single 1 if none lowers any.
        """
        return 1.0 if self.lowers is None else np.where(self.lowers[rows], -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """The model's guesses for a pool, and their expected accuracy."""

    g: Floats
    """(u,) guesses in (0, 1)"""
    rho: float
    """Correlation of the errors of instances with the same target; 1 while unknown"""
    labels: int
    """Number of labels that it was fitted to; 0 if there were too few, and the guess is ½
    everywhere
    """
    error: Floats | None = None
    """(u,) the expected squared error, if labels are ratings; None: g (1 − g)"""


@dataclass(frozen=True)
class Data:
    """All inputs of a track's estimates. Columns of every (·, m) array are the pool's `systems`:
    all sampled submissions; `shown` marks those that were not withdrawn.
    """

    pool: Pool
    shown: Bools
    judged: Ids
    """(k,) rows of the pool whose targets were drawn, ascending"""
    f: dict[str, Floats]
    """criterion -> (k, m): 1 right, 0 wrong, NaN missing"""
    draws: dict[str, Draws]
    inclusion: Inclusion
    g: dict[str, Floats] = field(repr=False)
    """criterion -> (u,) the model's guess"""
    rho: dict[str, float] = field(repr=False)
    """criterion -> correlation of its errors within a target"""
    base: str
    """The criterion on which others and recall are based: whether the claim holds at all"""
    unweighed: str
    """The distribution with equal weights; recall is stored under it"""
    facts: Facts | None
    """Facts, scope and annotated documents, for recall; None if the track's kind has no recall"""
    documents: Annotated = field(default_factory=lambda: Annotated([], []))
    """The annotated documents in use, in the order of the facts' codes"""
    closed_documents: bool = False
    """Whether unmarked relations in the annotated documents are false, so that nothing is missed"""
    mark: Floats = field(default_factory=lambda: np.zeros(0))
    """(t,) `NO_MARK`; if only readers judged a target, a random number in [0, 1), by which the mark
    is used as often as questions got an answer; `NEVER` if an earlier question got no answer
    """
    noise: dict[str, Noise] = field(default_factory=dict)
    """criterion -> annotator noise on the judged rows, if single ratings count"""
    found_also: dict[str, str] = field(default_factory=dict)
    """criterion -> another criterion that must hold too for a system to have found a fact"""
    mean: str = "mean"
    """Name of the weighted mean of verdicts in the track's kind"""
    error: dict[str, Floats] = field(default_factory=dict, repr=False)
    """criterion -> (u,) the expected squared error of the guess, if single ratings count"""
    input: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(u,) code of each instance's input; empty for relations, which have documents"""
    population: str = ""
    """Population of the numbers that are printed first, `LIKE` or `THESE`; empty for kinds with a
    single population"""
    unaided: dict[str, Guess] = field(default_factory=dict, repr=False)
    """criterion -> the guess without metrics and judges, if they help"""
    later: Data | None = field(default=None, repr=False)
    """The same data for judges that were added after judgments, without a statement that they were
    not tuned on them: targets labelled before their scores are certain, and the guess is fitted to
    later labels only. None without such a judge, or with too few later labels"""

    @cached_property
    def counted(self) -> dict[str, tuple[Ids, Ids]]:
        """Return the cache of `scoring.score.count_targets`, by criterion. It is empty at first."""
        return {}

    @property
    def systems(self) -> list[int]:
        """Return the submission ids in column order."""
        return self.pool.systems

    def without_scorers(self) -> Data | None:
        """Return the data without the help of metrics and judges; None if none helps."""
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
            later=None,
        )

    def select_targets(self, targets: Ids) -> Data:
        """Return the data with a smaller pool: with the judgments of some targets only."""
        return replace(
            self, inclusion=self.inclusion.select_targets(targets), mark=self.mark[targets]
        )

    def restrict_to_rows(self, rows: Ids, p: dict[str, Matrix]) -> Data:
        """Return the data restricted to some rows of the pool (ascending) and to their targets,
        with the weights `p`. Draws, facts and confidences are dropped.
        """
        pool = self.pool
        targets, target = occurring_codes(pool.target[rows], pool.target_id.size)
        inside = np.zeros(pool.target.size, dtype=np.bool_)
        inside[rows] = True
        judged = np.flatnonzero(inside[self.judged])
        return replace(
            self.select_targets(targets),
            pool=pool.restrict_to_rows(rows, p, targets, target),
            judged=np.searchsorted(rows, self.judged[judged]),
            f={criterion: verdicts[judged] for criterion, verdicts in self.f.items()},
            g={criterion: guesses[rows] for criterion, guesses in self.g.items()},
            error={criterion: errors[rows] for criterion, errors in self.error.items()},
            noise={name: noise.select_instances(judged) for name, noise in self.noise.items()},
            input=self.input[rows] if self.input.size else self.input,
            unaided={},
            later=None,
            draws={},
            facts=None,
        )


def method_suffix(data: Data) -> str:
    """Return the suffix of methods for a population that a board does not print first."""
    return ENDINGS[THESE if data.population == LIKE else LIKE]
