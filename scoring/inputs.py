"""Weighted means about inputs like these: the inputs of a track are a sample of others.

Estimates are about the inputs at hand: where all is judged, and people do not differ, nothing is
left to chance. What a system writes for other inputs of the kind may be better or worse, though.
With weights w that sum to W, a = w/π of what is judged, Â = Σ a, μ = Σ a (y − g)/Â and ḡ = Σ w g/W,
input d adds to a mean

    e_d = Σ_{x∈d} w (g − ḡ)/W + Σ_{judged x∈d} a (y − g − μ)/Â,        V = D/(D − 1) Σ_d e_d²

which holds what inputs differ by, what was drawn of them, and what people differ by at random. All
that was written for one input, repeated generations too, is one term.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from estimators.design import Design
from estimators.estimate import Estimate
from scoring.arrays import Bools, Floats, Matrix
from scoring.data import Data
from scoring.default import Centred

SAME = 1e-9
"""Ratings that differ by less are the same"""
HALF = 0.5
"""π of rows whose terms count in full: (1 − ½) (√2 e)² = e²"""

Key = tuple[str, str, str]
"""(quantity, criterion, distribution)"""


def about_inputs_like(
    data: Data, estimates: Mapping[Key, tuple[Estimate, Design]]
) -> dict[Key, tuple[Estimate, Design]]:
    """The weighted means of every system as estimates for inputs like these, with one design; none
    where a track has no inputs. `estimates` are about these inputs.
    """
    if not data.input.size or not data.judged.size:
        return {}
    arranged = Centred(data)
    return {
        key: _like(arranged, key, estimate)
        for key, (estimate, _) in estimates.items()
        if key[0] == data.mean
    }


def _like(arranged: Centred, key: Key, these: Estimate) -> tuple[Estimate, Design]:
    _, criterion, kind = key
    data, under = arranged.data, arranged.under(criterion)
    p, n_inputs = data.pool.p[kind], int(data.input.max()) + 1
    of_all = _by_input(data.input, n_inputs)
    of_rows = of_all[:, under.row]
    verdict, weight = under.verdicts, p[under.row].toarray()
    known = ~np.isnan(verdict) & (weight > 0)
    a = np.where(known, weight / under.row_pi[:, None], 0.0)
    if criterion not in data.noise:  # what is judged as a whole is the truth (`Centred.settled`)
        whole = np.where(known, weight, 0.0).sum(axis=0) > np.asarray(p.sum(axis=0)) - SAME
        a = np.where(known & whole, weight, a)
    total = np.maximum(a.sum(axis=0), np.finfo(float).tiny)
    residual = np.where(known, verdict - data.g[criterion][under.row, None], 0.0)
    sampled = a * (residual - (a * residual).sum(axis=0) / total) / total
    terms = of_rows @ sampled + _of_guesses(of_all, p, data.g[criterion])
    n = np.asarray((of_all @ data.pool.member > 0).sum(axis=0)).ravel()
    judged = np.asarray((of_rows @ known > 0).sum(axis=0)).ravel()
    terms *= np.sqrt(n / np.maximum(n - 1, 1))
    is_binary = _is_binary(under, verdict, known)
    floor = _floor(under, kind, these, judged, _are_alike(verdict, known), is_binary)
    noise = data.noise.get(criterion)
    if noise is None or noise.is_separable:  # else an upper bound, which is not of inputs
        floor = np.maximum(floor, np.maximum(these.variance, these.anticipated))
    is_duel = noise is not None and noise.lowers is not None  # what one wins the other loses
    joined = is_binary and not is_duel
    apart = _apart(data.pool.member, n) if joined else np.zeros((0, n.size))
    influence = np.concatenate([terms, apart]) / np.sqrt(1 - HALF)
    like = replace(
        these,
        variance=(terms**2).sum(axis=0),
        anticipated=floor,
        n=judged,
        influence=influence,
        degrees_of_freedom=np.maximum(judged - 1.0, 0.0),
        half_step=0.0,
    )
    return like, Design(np.full(influence.shape[0], HALF))


def _by_input(code: np.ndarray, n: int) -> Matrix:
    """(n, u): 1 where an instance is of an input."""
    entries = np.ones(code.size)
    return sparse.csr_array((entries, (code, np.arange(code.size))), shape=(n, code.size)).tocsc()


def _of_guesses(of_all: Matrix, p: Matrix, g: Floats) -> Floats:
    """(D, m) what the guesses of each input add: Σ w (g − ḡ)/W."""
    total = np.asarray(p.sum(axis=0)).ravel()
    share = 1 / np.where(total > 0, total, 1.0)
    mean = np.asarray(g @ p).ravel() * share
    guessed = of_all @ sparse.csr_array(p.multiply(g[:, None]))
    return np.asarray((guessed.toarray() - (of_all @ p).toarray() * mean) * share)


def _are_alike(verdict: Floats, known: Bools) -> Bools:
    """(m,) systems all of whose ratings are the same."""
    low = np.where(known, verdict, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, verdict, -np.inf).max(axis=0, initial=-np.inf)
    return np.asarray(high - low < SAME)


def _is_binary(under: Centred, verdict: Floats, known: Bools) -> bool:
    """Whether single ratings under a criterion are 0 or 1, or have two values alone."""
    noise = under.data.noise.get(under.criterion)
    count = noise.count[under.at] if noise is not None else np.ones(verdict.shape[0])
    value, n = verdict[known], np.broadcast_to(count[:, None], verdict.shape)[known]
    whole = np.abs(value * n - np.round(value * n)) < SAME
    return bool(whole.all() or (np.unique(value.round(9)).size <= 2 and (n == 1).all()))


def _floor(
    under: Centred, kind: str, these: Estimate, judged: np.ndarray, alike: Bools, is_binary: bool
) -> Floats:
    """(m,) the least variance: of ratings of two values, that of such a share; where all are rated
    alike, that of as many inputs as were judged.
    """
    p, n = under.data.pool.p[kind], np.maximum(judged, 1)
    inside = np.clip(np.nan_to_num(np.asarray(these.value)), 0.5 / n, 1 - 0.5 / n)
    spread = inside * (1 - inside)
    squares = np.asarray(p.power(2).sum(axis=0)).ravel()
    sampled = np.asarray(under.precision(kind, under.criterion).anticipated)
    floor = np.where(alike, spread / n, 0.0)
    return np.maximum(floor, spread * squares + sampled) if is_binary else floor


def _apart(member: Matrix, n: np.ndarray) -> Floats:
    """(k, m) terms by which the difference of two systems has a variance of 1/(D + 2)² at least
    (Agresti and Min 2005), k systems that wrote different things: copies differ by nothing.
    """
    columns = sparse.csc_array(member)
    wrote = [columns.indices[slice(*columns.indptr[i : i + 2])].tobytes() for i in range(n.size)]
    first = np.array([wrote.index(of_system) for of_system in wrote])
    return np.asarray((np.arange(n.size)[:, None] == first) * np.sqrt(0.5) / (n + 2))


def left_once_judged(p: Floats, g: Floats, error: Floats) -> float:
    """The variance that one system's mean has about inputs like these once all is judged, as the
    model expects it, from its weights, the guesses and their squared errors: Σ p² ((g − ḡ)² + v).
    """
    return float(p**2 @ ((g - p @ g / max(p.sum(), SAME)) ** 2 + error))


def expected_variance(data: Data, key: Key, these: Estimate) -> Floats:
    """(m,) the variance that the model expects of each system's mean, which judging is held
    against: about inputs like these, where there are any.
    """
    _, criterion, kind = key
    anticipated = np.broadcast_to(these.anticipated, np.shape(these.value))
    if not data.input.size:
        return anticipated
    under = Centred(data).under(criterion)
    sampled = np.asarray(under.precision(kind, criterion).anticipated)
    g = data.g[criterion]
    error = data.error.get(criterion, g * (1 - g))
    left = np.zeros(sampled.size)
    for column in range(left.size):
        rows, p = data.pool.of(kind, column)
        left[column] = left_once_judged(p, g[rows], error[rows])
    return sampled + left
