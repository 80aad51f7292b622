"""Decides whether money is better spent on one more answer to a question or on one more
question.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from estimators import checks


def variance_reduction_of_answer(
    p: ArrayLike, table: ArrayLike, *, values: ArrayLike, weight: float, price: float
) -> float:
    """Return the reduction of an estimate's variance by one more answer to a question, per unit of
    price.

    The number contains ``weight · f(y)`` of the question's unknown label y. One more answer r
    lowers the variance of f(y) by ``Σ_r p(r) (E[f | r] − E f)²`` in expectation, which is all of it
    that an answer explains.

    Parameters
    ----------
    p : (K,) array
        Probabilities of the labels after the answers so far.
    table : (K, K) array
        p(response | label) of the next person.
    values : (K,) array
        f of each label.
    weight : float
        a = p/π, the weight of the question in the number.
    price : float
        What one answer costs.

    Returns
    -------
    float
        Variance for each unit of money; 0 where the label is certain.

    Examples
    --------
    >>> table = [[0.75, 0.25], [0.25, 0.75]]
    >>> variance_reduction_of_answer([0.5, 0.5], table, values=[0, 1], weight=0.5, price=4.0)
    0.00390625
    """
    prior = checks.check_probabilities("p", p)
    f = checks.check_finite("values", values)
    responses = checks.check_probabilities("table", table)
    if not price > 0:
        raise ValueError(f"price must be positive; got {price}")
    chance = prior @ responses
    mean_given = np.divide(
        (prior * f) @ responses, chance, out=np.zeros_like(chance), where=chance > 0
    )
    explained = float(chance @ (mean_given - prior @ f) ** 2)
    return weight**2 * explained / price


def variance_reduction_of_question(variance: float, n: int, price: float) -> float:
    """Return the reduction of an estimate's variance by one more question, per unit of price.

    A variance V that is proportional to 1/n falls by ``V/(n + 1)``.

    Parameters
    ----------
    variance : float
        V, of the number that n questions give.
    n : int
        Number of questions so far, at least 1.
    price : float
        What one question costs, with all answers that it needs.

    Returns
    -------
    float
        Variance for each unit of money.

    Examples
    --------
    >>> variance_reduction_of_question(0.01, 99, 0.5)
    0.0002
    """
    if not (price > 0 and n > 0 and variance >= 0):
        raise ValueError(
            f"price and n must be positive and variance at least 0; got {price}, {n} and {variance}"
        )
    return variance / (n + 1) / price


def is_another_answer_better(
    p: ArrayLike,
    table: ArrayLike,
    *,
    values: ArrayLike,
    weight: float,
    price: float,
    variance: float,
    n: int,
    price_of_question: float,
) -> bool:
    """Return whether one more answer reduces the variance more than a new question, per unit of
    price.

    Parameters
    ----------
    p, table, values, weight, price
        As for :func:`variance_reduction_of_answer`.
    variance, n
        As for :func:`variance_reduction_of_question`.
    price_of_question : float
        What a new question costs, with all answers that it needs.

    Returns
    -------
    bool
        True if :func:`variance_reduction_of_answer` exceeds :func:`variance_reduction_of_question`.

    Examples
    --------
    >>> table = [[0.75, 0.25], [0.25, 0.75]]
    >>> about = {"values": [0, 1], "price": 1.0, "variance": 0.001, "n": 99}
    >>> about["price_of_question"] = 3.0
    >>> is_another_answer_better([0.5, 0.5], table, weight=0.01, **about)
    True
    >>> is_another_answer_better([0.1, 0.9], table, weight=0.005, **about)
    False
    """
    one_more = variance_reduction_of_answer(p, table, values=values, weight=weight, price=price)
    return one_more > variance_reduction_of_question(variance, n, price_of_question)
