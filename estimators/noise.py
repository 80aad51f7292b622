"""Crowd labels corrected by a few expert checks: prediction-powered estimates, and the allocation
of checks.

The crowd's score c replaces the label, and experts who check a subset with known probabilities e
estimate the resulting error (Angelopoulos et al. 2023; two-phase sampling: Särndal, Swensson and
Wretman 1992, section 9.8). The sum is unbiased whatever the crowd's errors depend on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray
from estimators.design import Design, target_probabilities
from estimators.estimate import Estimate
from estimators.horvitz_thompson import difference_estimate
from estimators.labelled import columns
from estimators.recall import Recall, Totals, recall_from_totals
from estimators.sums import sum_by_code

LEAST_DOUBT = (
    0.01  # even certain judgments are checked sometimes, or errors in them would never be found
)


def ppi_estimate(
    p: ArrayLike,
    pi: ArrayLike,
    crowd: ArrayLike,
    g: ArrayLike,
    expert: ArrayLike,
    expert_probability: ArrayLike,
    total_g: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
) -> Estimate:
    """Return precision from crowd scores, corrected by expert checks.

    ``π̂ = Σ p g + Σ_S a (c − g) + Σ_E (a/e)(f* − c)`` with a = p/π, and

        V = Σ_S a² (1 − π)(c − g)² + Σ_E (a/e)² (1 − eπ)(f* − c)² + 2 Σ_E (a²/e)(1 − π)(c − g)(f* −
        c)

    with all terms summed per target before they are multiplied; both are exactly unbiased under
    Poisson sampling of targets and of checks.

    Parameters
    ----------
    p : (n,) or (n, m) array
        Weight of each labelled prediction under each system.
    pi : (n,) array
        Inclusion probability of the row's target, in (0, 1].
    crowd : (n,) array
        Calibrated crowd score c in [0, 1]; NaN is missing and leaves the row out.
    g : (n,) array
        Cross-fitted guesses.
    expert : (n,) array
        f* in [0, 1], NaN where not checked. A target is checked as a whole.
    expert_probability : (n,) array
        e, the probability with which the row's target was to be checked once it was labelled, in
        (0, 1].
    total_g : float or (m,) array
        Σ p g over all predictions.
    target, n_targets
        As for :func:`estimators.horvitz_thompson.difference_estimate`.

    Returns
    -------
    Estimate
        The influence has 2t rows for t targets: ``Σ a (c − g) + Σ (a/e)(f* − c)`` for each, then
        ``√π Σ (a/e)(f* − c)`` for each. :func:`expert_design` is the design of these rows; it gives
        V and every covariance.

    Raises
    ------
    ValueError
        If shapes disagree or a value is out of range; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> estimate = ppi_estimate(np.full(2, 0.5), np.ones(2), np.array([1.0, 1.0]), np.full(2, 0.5),
    ...                np.array([0.0, np.nan]), np.full(2, 0.5), 0.5)
    >>> estimate.value, estimate.variance
    (0.0, 0.5)
    """
    score, truth = checks.check_labels("crowd", crowd), checks.check_labels("expert", expert)
    n = np.shape(p)[0]
    for name, array in (("crowd", score), ("g", np.asarray(g)), ("expert", truth)):
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},); got {array.shape}")
    code = np.arange(n) if target is None else checks.check_codes("target", target, n)
    alone = difference_estimate(p, pi, score, g, total_g, target=code, n_targets=n_targets)
    design = Design(target_probabilities(pi, code, n_targets=n_targets))
    return correct_by_expert_checks(
        alone, design, p, pi, score, truth, expert_probability, target=code
    )


def correct_by_expert_checks(
    estimate: Estimate,
    design: Design,
    p: ArrayLike,
    pi: ArrayLike,
    crowd: ArrayLike,
    expert: ArrayLike,
    expert_probability: ArrayLike,
    *,
    target: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
) -> Estimate:
    """Return an estimate that is based on the crowd's scores, corrected by expert checks.

    Adds ``Σ_E (a/e)(f* − c)`` with a = p/π to any estimate that is a sum of terms over labelled
    targets (difference, centred), with the variance of both phases as for :func:`ppi_estimate`. The
    correction is exactly unbiased for what the expert would have changed in all p f, whatever the
    first estimate is.

    Parameters
    ----------
    estimate : Estimate
        From crowd scores; its influence has one row a target.
    design : Design
        Of the influence: the labelled targets, with clusters where labels came in with documents.
    p, pi, crowd, expert, expert_probability, target
        As for :func:`ppi_estimate`; crowd and expert may be (n, m), for criteria that depend on the
        system.
    scale : float or (t,) array
        What the influence was multiplied with, for :func:`estimators.design.rescale_to_design`;
        ``pi`` is then the system's own.

    Returns
    -------
    Estimate
        With 2t rows of influence, as :func:`ppi_estimate`.

    Raises
    ------
    ValueError
        If shapes disagree or a value is out of range; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> half, crowd, expert = np.full(2, 0.5), np.array([1.0, 1.0]), np.array([0.0, np.nan])
    >>> alone = difference_estimate(half, np.ones(2), crowd, half, 0.5)
    >>> both = correct_by_expert_checks(alone, Design(np.ones(2)), half, np.ones(2), crowd, expert,
    ...     half)
    >>> alone.value, both.value, both.variance
    (1.0, 0.0, 0.5)
    """
    weight, chance = (
        checks.check_non_negative("p", p),
        checks.check_positive_probabilities("pi", pi),
    )
    e = checks.check_positive_probabilities("expert_probability", expert_probability)
    n, single = weight.shape[0], weight.ndim == 1
    for name, array in (("pi", chance), ("expert_probability", e)):
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},); got {array.shape}")
    weight, score, truth = columns(
        weight, checks.check_labels("crowd", crowd), checks.check_labels("expert", expert)
    )
    for name, array in (("crowd", score), ("expert", truth)):
        if array.shape not in ((n, 1), weight.shape):
            raise ValueError(
                f"{name} must have {n} rows and one column or {weight.shape[1]}; got {array.shape}"
            )
    code = np.arange(n) if target is None else checks.check_codes("target", target, n)
    second = np.nan_to_num(weight * (truth - score)) / (chance * e)[:, None]
    n_targets = design.pi.size
    both = expert_design(chance, e, target=code, n_targets=n_targets, design=design)
    factor = np.reshape(
        np.broadcast_to(np.asarray(scale, dtype=np.float64), (n_targets,)), (n_targets, 1)
    )
    z = np.reshape(estimate.influence, (n_targets, weight.shape[1])) + factor * sum_by_code(
        second, code, n_targets
    )
    influence = np.concatenate([z, sum_by_code(np.sqrt(chance)[:, None] * second, code, n_targets)])
    value = np.asarray(estimate.value) + second.sum(axis=0)
    # Unanimous labels, unless an expert disagreed.
    agreed = np.where(np.all(second == 0, axis=0), estimate.agreed, np.nan)
    if not single:
        return replace(
            estimate,
            value=value,
            variance=both.variance(influence),
            influence=influence,
            agreed=agreed,
        )
    z = influence[:, 0]
    return replace(
        estimate,
        value=float(value[0]),
        variance=both.variance(z),
        influence=z,
        agreed=float(agreed[0]),
    )


def expert_design(
    pi: ArrayLike,
    expert_probability: ArrayLike,
    *,
    target: ArrayLike | None = None,
    n_targets: int | None = None,
    design: Design | None = None,
) -> Design:
    """Return the sampling design for the terms of :func:`ppi_estimate`: inclusion probabilities π
    of the t targets, then check probabilities e of the same targets.

    With ``z = Σ a (c − g) + Σ (a/e)(f* − c)`` and ``y = √π Σ (a/e)(f* − c)`` the variance of
    :func:`ppi_estimate` is ``Σ (1 − π) z² + Σ (1 − e) y²``, so one quadratic form serves both
    phases.

    Parameters
    ----------
    pi, expert_probability : (n,) array
        As for :func:`ppi_estimate`.
    target, n_targets
        As for :func:`ppi_estimate`.
    design : Design, optional
        Of the t targets, in the place of ``pi``: where labels came in with documents.

    Returns
    -------
    Design
        2t rows, t the number of targets.

    Examples
    --------
    >>> import numpy as np
    >>> expert_design(np.array([0.5, 0.8]), np.array([0.1, 0.2])).pi.tolist()
    [0.5, 0.8, 0.1, 0.2]
    """
    chance = checks.check_positive_probabilities("pi", pi)
    code = (
        np.arange(chance.size)
        if target is None
        else checks.check_codes("target", target, chance.size)
    )
    checked = target_probabilities(expert_probability, code, n_targets=n_targets)
    labelled = (
        Design(target_probabilities(chance, code, n_targets=n_targets))
        if design is None
        else design
    )
    if checked.shape != labelled.pi.shape:
        raise ValueError(
            f"design must have {checked.size} rows, one a target; got {labelled.pi.size}"
        )
    both = np.concatenate([labelled.pi, checked])
    if labelled.cluster is None or labelled.beta is None:
        return Design(both)
    cluster = np.concatenate([labelled.cluster, np.full(checked.size, -1, dtype=np.int64)])
    return Design(both, cluster=cluster, beta=labelled.beta, n_clusters=labelled.n_clusters)


def recall_from_corrected_totals(
    recall: Recall, systems: Estimate, pool: Estimate, expert_probability: ArrayLike
) -> Recall:
    """Return recall from totals corrected by expert checks.

    ``r_i = (T_i + C_i)/(T + C + M)`` with ``C_i = Σ_{E ∩ X_i} (f* − c)/(πe)`` and C the same over
    the pool, so that what the expert takes from a system's finds is taken from what there is to
    find, too. The term of a target is ``(1{x ∈ X_i} − r_i) [(c − g)/π + (f* − c)/(πe)]/(T + M)``,
    that of its check, and of a document, likewise. M stays as it is: what people found in documents
    and nobody predicted is not checked by experts.

    Parameters
    ----------
    recall : Recall
        From crowd scores, see :func:`estimators.recall.recall`; t targets, then documents.
    systems, pool : Estimate
        Its totals as :func:`correct_by_expert_checks` returns them: 2t rows of influence, all on
        one design.
    expert_probability : (t,) array
        Of every target's check: as in that design.

    Returns
    -------
    Recall
        Its design has the t targets, their t checks, then the documents; precision as
        :func:`correct_by_expert_checks` returns it has its rows at the same places, so
        :func:`estimators.recall.f1` joins the two.

    Raises
    ------
    ValueError
        If the numbers of rows disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.recall import estimate_recall
    >>> sure, half, crowd, expert = np.ones(2), np.full(2, 0.5), np.ones(2), np.array([0.0, np.nan])
    >>> found = estimate_recall(np.ones((2, 1)), sure, crowd, half, [1.0], 1.0, [1, 1], 2)
    >>> part = Design(sure), np.ones((2, 1)), sure, crowd, expert, half
    >>> systems = correct_by_expert_checks(found.totals.systems, *part)
    >>> pool = correct_by_expert_checks(found.totals.pool, part[0], np.ones(2), *part[2:])
    >>> both = recall_from_corrected_totals(found, systems, pool, half)
    >>> found.recall.value.tolist(), both.recall.value.tolist()
    ([0.5], [0.0])
    """
    n = recall.totals.pool.influence.size
    e = checks.check_positive_probabilities("expert_probability", expert_probability)
    if e.shape != (n,):
        raise ValueError(f"expert_probability must have shape ({n},); got {e.shape}")
    for name, estimate in (("systems", systems), ("pool", pool)):
        if estimate.influence.shape[0] != 2 * n:
            raise ValueError(
                f"{name} must have {2 * n} rows of influence; got {estimate.influence.shape[0]}"
            )
    return recall_from_totals(
        Totals(systems, pool), recall.unseen, _insert_checks(recall.design, n, e)
    )


def _insert_checks(design: Design, n: int, e: FloatArray) -> Design:
    """Return the design with the checks of its first n rows inserted after these rows."""
    pi = np.insert(design.pi, n, e)
    if design.cluster is None or design.beta is None:
        return Design(pi)
    cluster = np.insert(design.cluster, n, np.full(n, -1))
    return Design(pi, cluster=cluster, beta=design.beta, n_clusters=design.n_clusters)


def expert_probabilities(a: ArrayLike, doubt: ArrayLike, *, budget: float) -> FloatArray:
    """Return the probabilities with which to check each labelled target, for a given expected
    number of checks.

    ``e ∝ √(Σ_i a_i²) · √doubt``, at most 1, summing to the budget: the least variance for the
    budget, if ``doubt = q (1 − q)`` is the true error variance of the crowd. A doubt below 0.01
    counts as 0.01, so that no target with weight is beyond checking.

    Parameters
    ----------
    a : (n,) or (n, m) array
        p/π of each target under each system that matters.
    doubt : (n,) array
        q (1 − q) with q the probability that the crowd's answer is right, in [0, ¼].
    budget : float
        Expected number of checks, > 0; if it covers every target with weight, all of those get 1.

    Returns
    -------
    (n,) array
        In [0, 1]; 0 only where no system has weight.

    Raises
    ------
    ValueError
        If a weight is negative, a doubt leaves [0, ¼], or the budget is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> expert_probabilities(np.array([1.0, 1.0, 2.0]), np.full(3, 0.25), budget=1.0).tolist()
    [0.25, 0.25, 0.5]
    """
    weight, unsure = checks.check_non_negative("a", a), checks.check_non_negative("doubt", doubt)
    if unsure.shape != weight.shape[:1]:
        raise ValueError(f"doubt must have shape {weight.shape[:1]}; got {unsure.shape}")
    if np.any(unsure > 0.25):
        raise ValueError(f"doubt must be at most 0.25; got {unsure[unsure > 0.25][0]!r}")
    if not budget > 0:
        raise ValueError(f"budget must be positive; got {budget!r}")
    squared = weight**2 if weight.ndim == 1 else (weight**2).sum(axis=1)
    size = np.sqrt(squared * np.maximum(unsure, LEAST_DOUBT))
    return _capped_proportional_shares(size, budget)


def _capped_proportional_shares(size: FloatArray, budget: float) -> FloatArray:
    """Return min(1, λ size) with the sum ``budget``, where λ is chosen so that values cut off at 1
    are redistributed among the others.
    """
    chance: FloatArray = np.where(size > 0, 1.0, 0.0)
    if budget >= chance.sum():
        return chance
    order = np.argsort(-size, kind="stable")
    remaining = np.cumsum(size[order][::-1])[::-1]
    n_certain = int(
        np.argmax(size[order] * (budget - np.arange(size.size)) <= remaining)
    )  # so many are certain
    chance = np.minimum(1.0, (budget - n_certain) / remaining[n_certain] * size)
    chance[order[:n_certain]] = 1.0
    return chance
