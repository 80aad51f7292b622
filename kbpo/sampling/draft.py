"""Predicts how many judgments a study or a draft takes, from the variances measured so far or,
before anybody was asked, from those of other studies.

The plan of a draft is computed as if no target had been judged. Drafts are free: if their plans
depended on others' judgments, drafts could be made up to read these judgments. Existing judgments
can only reduce the number of questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from estimators.components import VarianceComponents, combine_with_prior
from estimators.poisson import water_fill
from kbpo.pool.probabilities import submission_support
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Floats, Ids
from scoring.data import LIKE
from scoring.report import Worth

WIDTHS = (0.05, 0.04, 0.03, 0.02)
CURVE = (25, 50, 75, 100, 150, 200, 300, 400, 600, 800)
"""Numbers of judgments at which the width is printed"""


@dataclass(frozen=True)
class Study:
    """Variances from which the number of judgments under a criterion is planned, as measured or
    taken from another study.
    """

    components: VarianceComponents
    rho: float
    """Correlation of the model with mean human judgments; 0 without metrics and judges"""
    is_prior: bool
    """Whether nothing was measured on this track yet"""
    leans: bool = False
    """Whether another study is combined with the measurements on this track"""

    def error(self, *, people: int = 1, rho: float | None = None, noise: bool = True) -> float:
        """Return the expected squared error of the model for a mean rating of this many people;
        with `noise` False as if people never differed.
        """
        explained = (self.rho if rho is None else rho) ** 2
        of_people = self.components.sigma_a2 / people if noise else 0.0
        return self.components.sigma_f2 * (1 - explained) + of_people

    def variance_of_mean_rating(self, *, people: int = 1, noise: bool = True) -> float:
        """Return the variance of mean ratings of this many people."""
        return self.error(people=people, rho=0.0, noise=noise)


def planning_variances(kind: Kind, criterion: str, worth: Worth) -> Study | None:
    """Return the variances to plan from, given the worth of a criterion that an evaluation stored;
    None if neither this track nor another study provides them. Another study is used as long as the
    measured variances carry a warning: few outputs have two judgments, or a variance is negative.
    """
    measured = worth.components
    prior = kind.measures.criterion(criterion).prior
    if measured is None and prior is None:
        return None
    if measured is None or measured.sigma_f2 is None or measured.sigma_a2 is None:
        if prior is None:
            return None
        sigma_a2, sigma_f2 = prior
        return Study(combine_with_prior(None, sigma_f2=sigma_f2, sigma_a2=sigma_a2), 0.0, True)
    sigma_a2, sigma_f2 = measured.sigma_a2, measured.sigma_f2
    components = VarianceComponents(
        sigma_f2,
        sigma_a2,
        measured.gamma if measured.gamma is not None else float("nan"),
        worth.rated,
        worth.judgments,
        measured.repeated,
        measured.warnings,
        None,
    )
    leans = prior is not None and bool(components.warnings)
    if prior is not None and leans:
        components = combine_with_prior(components, sigma_f2=prior[1], sigma_a2=prior[0])
    if components.sigma_f2 < 0 or components.sigma_a2 < 0:
        return None
    r = (worth.together.r if worth.together is not None else None) or 0.0
    explained = r * r * (sigma_f2 + sigma_a2)
    return Study(
        components, _disattenuated_correlation(explained, components.sigma_f2), False, leans
    )


def _disattenuated_correlation(explained: float, sigma_f2: float) -> float:
    """Return the correlation with mean human judgments, at most 1, of a predictor that explains
    this much of the variance of single judgments. It can be computed if too few items were judged
    twice to measure ρ directly.
    """
    return min(1.0, explained / sigma_f2) ** 0.5 if sigma_f2 > 0 else 0.0


def planning_study(track: Track) -> Study | None:
    """Return the variances that a track's guaranteed number is planned from, according to its
    newest evaluation; None if there are none.
    """
    kind, latest = kind_of(track), track.evaluations.order_by("-number").first()
    worth = latest.report.worth if latest is not None else {}
    return planning_variances(kind, track.criterion, worth.get(track.criterion, Worth()))


NOBODY_KNOWS = 0.25
"""The expected squared error of an uninformative guess"""


LEAST_LEFT = 0.01
"""Smallest share of a planned variance that thresholds must control; if more of it remains when all
targets are judged, all targets are drawn
"""


@dataclass(frozen=True)
class Draft:
    """A draft's predictions under one distribution: n instances of t targets."""

    p: Floats
    """(n,) probability of each instance"""
    row: Ids
    """(n,) the code of each instance's target"""
    n_targets: int
    error: float = NOBODY_KNOWS
    """The expected squared error of the model"""
    left: float = 0.0
    """The variance that remains when all targets are judged, from other inputs and from annotator
    noise
    """

    @classmethod
    def from_submission(cls, submission: Submission, kind: str) -> Draft:
        """Return a draft's predictions as the arrays of this class."""
        _, target, p = submission_support(submission, kind)
        target_id, row = np.unique(target, return_inverse=True)
        draft, track = cls(p, row.astype(np.int64), target_id.size), submission.track
        if kind_of(track).measures.population != LIKE:
            return draft
        study, people = planning_study(track), track.workers_per_question
        if study is None:
            return replace(draft, left=NOBODY_KNOWS * float(p @ p))
        return draft.with_study(study, people=people)

    @classmethod
    def with_equal_weights(cls, n: int) -> Draft:
        """Return a draft of one output for each of n inputs with equal weights."""
        return cls(np.full(n, 1 / n), np.arange(n), n)

    def with_study(self, study: Study, *, people: int = 1, with_scorers: bool = True) -> Draft:
        """Return the draft with the error and the remaining variance that a study predicts for
        inputs like these.
        """
        return replace(
            self,
            error=study.error(people=people, rho=None if with_scorers else 0.0),
            left=study.variance_of_mean_rating(people=people) * float(self.p @ self.p),
        )

    def thresholds(self, goal: float) -> Floats:
        """Return the inclusion probabilities (t,) of the targets with which the planned variance is
        `goal`.
        """
        pi, left = np.zeros(self.n_targets), max(goal - self.left, LEAST_LEFT * goal)
        pi[self.row] = water_fill(
            self.p, np.zeros(self.p.size), self.error, target_variance=left, target=self.row
        )
        return pi

    def variance(self, n: int) -> float:
        """Return the variance when n of the targets are judged, drawn with equal probabilities."""
        return self.left + self.error * float(self.p @ self.p) * (self.n_targets / n - 1)

    def questions(self, pi: Floats, *, spread: float = 0.0) -> int:
        """Return the expected number of questions under some thresholds, plus `spread` standard
        deviations.
        """
        more = spread * float(np.sqrt(pi @ (1 - pi)))
        return min(pi.size, int(np.ceil(pi.sum() + more - 1e-9)))
