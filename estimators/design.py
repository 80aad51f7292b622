"""Variances and covariances of estimates, computed from influences and the sampling design."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks
from estimators.checks import FloatArray, IntArray, Numbers, float_or_array
from estimators.estimate import Estimate
from estimators.sums import sum_by_code


class Design:
    """How the labelled targets (and annotated documents) were sampled: their inclusion
    probabilities.

    The rows of a design are labelled targets and, where recall is estimated, annotated documents.
    Row τ was included with probability π(τ), and its influence z is its term in the estimate.

    Without clusters (Poisson sampling) ``V = Σ (1 − π) z²``, exactly unbiased.

    Annotated documents are rows of their own. With b_d the term of document d and b̄ their mean
    weighted by 1 − β_d,

        V = Σ (1 − π) z² + n_d/(n_d − 1) Σ_d (1 − β_d)(b_d − b̄)² − Σ (1 − β) b²

    whose first sum, over the rows of documents (π = β), cancels with the last. For n_d of D
    documents drawn without replacement (β = n_d/D) this is exactly unbiased; for unequal β_d and a
    fixed number it is Hájek's (1964) approximation. Documents with β = 1 (a first stage on which
    all else is conditioned) add nothing.

    Parameters
    ----------
    pi : (t,) array
        Inclusion probability of each row, in (0, 1].
    cluster : (t,) integer array, optional
        Code of the annotated document that the row is of; −1: it is a target.
    beta : float or (n_d,) array, optional
        Probability with which a document was annotated. Needed with ``cluster``.
    n_clusters : int, optional
        Number of annotated documents; the highest code + 1 if left out.

    Raises
    ------
    ValueError
        If a probability leaves (0, 1], or shapes disagree.

    Examples
    --------
    >>> import numpy as np
    >>> design = Design(np.array([0.5, 0.25, 1.0]))
    >>> design.variance(np.array([0.2, -0.4, 3.0]))
    0.14
    >>> print(design.covariance(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 5.0])))
    0.0
    """

    pi: FloatArray
    cluster: IntArray | None
    beta: FloatArray | None
    n_clusters: int

    def __init__(
        self,
        pi: ArrayLike,
        *,
        cluster: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        n_clusters: int | None = None,
    ) -> None:
        self.pi = checks.check_positive_probabilities("pi", pi)
        if self.pi.ndim != 1:
            raise ValueError(f"pi must have one dimension; got shape {self.pi.shape}")
        if (cluster is None) != (beta is None):
            raise ValueError("cluster and beta go together; got only one of them")
        self.cluster, self.beta, self.n_clusters = None, None, 0
        if cluster is not None and beta is not None:
            self._set_clusters(cluster, beta, n_clusters)

    def _set_clusters(self, cluster: ArrayLike, beta: ArrayLike, n_clusters: int | None) -> None:
        self.cluster = checks.check_codes("cluster", cluster, self.pi.size, lowest=-1)
        least = int(self.cluster.max(initial=-1)) + 1
        self.n_clusters = least if n_clusters is None else n_clusters
        if self.n_clusters < least:
            raise ValueError(
                f"n_clusters must be at least {least}, the highest code + 1; got {n_clusters!r}"
            )
        chance = checks.check_positive_probabilities("beta", beta)
        if chance.shape not in ((), (self.n_clusters,)):
            raise ValueError(
                f"beta must be one number or have shape ({self.n_clusters},); got {chance.shape}"
            )
        self.beta = np.broadcast_to(chance, (self.n_clusters,)).astype(np.float64)

    def variance(self, influence: ArrayLike) -> Numbers:
        """Return the variance of each estimate: a number for (t,), an (m,) array for (t, m)."""
        z, single = self._check_influence_rows("influence", influence)
        total = np.einsum("t,tm,tm->m", 1 - self.pi, z, z)
        if self.cluster is not None:
            total = total + self._between_document_variance(z, z, diagonal=True)
        total = np.where(np.isfinite(total), np.maximum(total, 0.0), np.nan)
        return float(total[0]) if single else total

    def covariance(self, a: ArrayLike, b: ArrayLike | None = None) -> Numbers:
        """Return Cov(a, b): a number for two (t,), an (m, k) matrix for (t, m) and (t, k). ``b``
        defaults to ``a``.
        """
        left, left_single = self._check_influence_rows("a", a)
        right, right_single = (
            (left, left_single) if b is None else self._check_influence_rows("b", b)
        )
        total: FloatArray = (left * (1 - self.pi)[:, None]).T @ right
        if self.cluster is not None:
            total = total + self._between_document_variance(left, right, diagonal=False)
        return float_or_array(
            total[0 if left_single else slice(None), 0 if right_single else slice(None)]
        )

    def _between_document_variance(
        self, a: FloatArray, b: FloatArray, *, diagonal: bool
    ) -> FloatArray:
        """Return Hájek's variance of the documents' terms, minus the part that single rows have
        contributed already.
        """
        assert self.cluster is not None and self.beta is not None
        inside = self.cluster >= 0
        code = self.cluster[inside]
        open_document = 1 - self.beta
        left, right = a[inside], b[inside]
        product = "tm,tm->m" if diagonal else "tm,tk->mk"
        within = np.einsum(product, left * open_document[code][:, None], right)
        drawn = int((open_document > 0).sum())
        if drawn == 0:
            return np.zeros_like(within)
        if drawn == 1:
            return np.full_like(within, np.nan)
        share = open_document / open_document.sum()
        left_sum = _centred_sums(sum_by_code(left, code, self.n_clusters), share)
        right_sum = _centred_sums(sum_by_code(right, code, self.n_clusters), share)
        spread: FloatArray = np.einsum(product, left_sum * open_document[:, None], right_sum)
        total: FloatArray = spread * (drawn / (drawn - 1)) - within
        return total

    def _check_influence_rows(self, name: str, influence: ArrayLike) -> tuple[FloatArray, bool]:
        z = np.asarray(influence, dtype=np.float64)
        if z.ndim not in (1, 2) or z.shape[0] != self.pi.size:
            raise ValueError(
                f"{name} must have {self.pi.size} rows, one for each pi; got shape {z.shape}"
            )
        return (z[:, None], True) if z.ndim == 1 else (z, False)


def _centred_sums(sums: FloatArray, share: FloatArray) -> FloatArray:
    centred: FloatArray = sums - share @ sums
    return centred


def rescale_to_design(influence: ArrayLike, pi_own: ArrayLike, pi: ArrayLike) -> FloatArray:
    """Return an influence (each row's term in an estimate) that was computed with other
    probabilities, scaled to a common design.

    Scaled by ``√((1 − π_own)/(1 − π))`` its variance ``Σ (1 − π) z²`` under the common design is
    that under its own; covariances take the geometric mean of both factors.

    Parameters
    ----------
    influence : (t,) or (t, m) array
        Made with ``pi_own``.
    pi_own, pi : (t,) array
        Own and common probabilities of the targets; a target with π = 1 keeps its term.

    Returns
    -------
    (t,) or (t, m) array
        Of the shape of ``influence``.

    Examples
    --------
    >>> import numpy as np
    >>> rescale_to_design(np.array([1.0, 1.0]), np.array([0.0, 1.0]),
    ...     np.array([0.75, 1.0])).tolist()
    [2.0, 1.0]
    """
    z = checks.check_finite("influence", influence)
    own, common = (
        checks.check_probabilities("pi_own", pi_own),
        checks.check_positive_probabilities("pi", pi),
    )
    if own.shape != common.shape or z.shape[:1] != common.shape:
        raise ValueError(
            f"influence, pi_own and pi must have as many rows; got {z.shape}, {own.shape},"
            f" {common.shape}"
        )
    open_ = common < 1
    factor = np.sqrt(np.divide(1 - own, 1 - common, out=np.ones(common.shape), where=open_))
    scaled: FloatArray = (z.T * factor).T
    return scaled


def target_probabilities(
    pi: ArrayLike, target: ArrayLike, *, n_targets: int | None = None
) -> FloatArray:
    """Return the inclusion probability π of every target, from the π of rows that carry target
    codes.

    Parameters
    ----------
    pi : (n,) array
        Inclusion probability of each row's target.
    target : (n,) integer array
        Code of each row's target.
    n_targets : int, optional
        Number of targets; the highest code + 1 if left out. A target without a row gets 1: it has
        no term either.

    Returns
    -------
    (n_targets,) array
        In (0, 1].

    Raises
    ------
    ValueError
        If two rows of one target disagree about its probability.

    Examples
    --------
    >>> import numpy as np
    >>> target_probabilities(np.array([0.5, 0.5, 0.2]), np.array([0, 0, 1])).tolist()
    [0.5, 0.2]
    """
    chance = checks.check_positive_probabilities("pi", pi)
    code = checks.check_codes("target", target, chance.size)
    out = np.ones(int(code.max(initial=-1)) + 1 if n_targets is None else n_targets)
    out[code] = chance
    differs = ~np.isclose(out[code], chance, rtol=1e-9, atol=0)
    if differs.any():
        raise ValueError(
            f"pi must be one number a target; target {code[differs][0]} has"
            f" {chance[differs][0]!r} too"
        )
    return out


def estimate_difference(a: Estimate, b: Estimate, design: Design) -> Estimate:
    """Return the difference a − b of two estimates from the same targets, with the variance of the
    difference.

    The influence of a difference is the difference of the influences, so shared terms cancel; two
    separate half-widths would not show that.

    Parameters
    ----------
    a, b : Estimate
        Estimates whose influences have one row for each row of ``design``.
    design : Design
        How those rows came in.

    Returns
    -------
    Estimate
        ``n`` is the smaller of the two, the degrees of freedom likewise.

    Raises
    ------
    ValueError
        If the influences differ in shape.

    Examples
    --------
    >>> import numpy as np
    >>> a = Estimate(0.5, 0.01, 2, np.array([0.1, 0.1]))
    >>> twin = Estimate(0.5, 0.01, 2, np.array([0.1, 0.1]))
    >>> estimate_difference(a, twin, Design(np.array([0.5, 0.5]))).variance
    0.0
    """
    if a.influence.shape != b.influence.shape:
        raise ValueError(
            f"influences must have the same shape; got {a.influence.shape} and {b.influence.shape}"
        )
    influence = a.influence - b.influence
    return Estimate(
        value=float_or_array(np.asarray(a.value) - np.asarray(b.value)),
        variance=design.variance(influence),
        n=_count_as_number(np.minimum(a.n, b.n)),
        influence=influence,
        degrees_of_freedom=float_or_array(np.minimum(a.degrees_of_freedom, b.degrees_of_freedom)),
    )


def _count_as_number(n: ArrayLike) -> int | IntArray:
    array = np.asarray(n, dtype=np.int64)
    return int(array) if array.ndim == 0 else array
