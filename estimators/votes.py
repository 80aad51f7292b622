"""Aggregation of several people's answers to a question: majority, majority by token, and the model
of Dawid and Skene.

:mod:`estimators.agreement` offers these functions too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from estimators import checks
from estimators.checks import BoolArray, FloatArray, IntArray

TIES = ("missing", "lowest", "highest")
FEWEST_ANSWERS = 10  # median a person; below it the model cannot tell people apart
ENOUGH_ANSWERS = (
    20  # of each person of a unit; with fewer the model does not overturn a unanimous vote
)


@dataclass(frozen=True, eq=False)
class Votes:
    """Answers as columns: the value of each answer, the unit (question) that it is about, and its
    annotator.
    """

    value: FloatArray
    unit: IntArray
    annotator: IntArray


def check_votes(values: ArrayLike, unit: ArrayLike, annotator: ArrayLike | None) -> Votes:
    """Return the answers that are not NaN. Raises ValueError if an annotator answers a unit
    twice.
    """
    answers = np.asarray(values, dtype=np.float64)
    if answers.ndim != 1 or np.isinf(answers).any():
        raise ValueError(
            f"values must be finite or NaN, in one dimension; got shape {answers.shape}"
        )
    units = checks.check_codes("unit", unit, answers.size)
    people = (
        np.arange(answers.size)
        if annotator is None
        else checks.check_codes("annotator", annotator, answers.size)
    )
    kept = ~np.isnan(answers)
    votes = Votes(answers[kept], units[kept], people[kept])
    pairs, times = np.unique(
        np.column_stack([votes.unit, votes.annotator]), axis=0, return_counts=True
    )
    for twice, person in pairs[times > 1]:
        raise ValueError(
            f"an annotator must answer a unit once; got annotator {person} on unit {twice} again"
        )
    return votes


@dataclass(frozen=True, eq=False)
class Majority:
    """The most frequent answer to each unit: `unit` (U,) codes in rising order, `value` (U,) with
    NaN for a tie that is not broken, `share` (U,) of the votes that it got, `n` (U,) votes.

    Examples
    --------
    >>> found = majority_answers([1, 1, 0, 0], [7, 7, 7, 9])
    >>> found.unit.tolist(), found.value.tolist(), found.n.tolist()
    ([7, 9], [1.0, 0.0], [3, 1])
    """

    unit: IntArray
    value: FloatArray
    share: FloatArray
    n: IntArray


def majority_answers(
    values: ArrayLike, unit: ArrayLike, annotator: ArrayLike | None = None, *, ties: str = "missing"
) -> Majority:
    """Return the most frequent answer to each unit.

    Parameters
    ----------
    values : array_like of float, shape (v,)
        Answers, any numbers as codes; NaN is no answer.
    unit : array_like of int, shape (v,)
        Code of what was asked about.
    annotator : array_like of int, shape (v,), optional
        Who answered; only to refuse people who answer twice.
    ties : {"missing", "lowest", "highest"}
        What a unit gets whose most frequent answers are equally frequent: NaN, or the lowest or
        highest of them.

    Returns
    -------
    Majority
        Units without an answer do not occur.

    Raises
    ------
    ValueError
        Unknown ties; codes that are no codes; an annotator who answers a unit twice.

    References
    ----------
    Chaganty 2018, section 3.5.

    Examples
    --------
    >>> result = majority_answers([1, 1, 0, 0, 1], unit=[7, 7, 7, 8, 8])
    >>> result.unit.tolist(), result.value.tolist(), result.n.tolist()
    ([7, 8], [1.0, nan], [3, 2])
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}")
    votes = check_votes(values, unit, annotator)
    units, categories, table = count_votes(votes)
    counts = table.toarray()
    if not units.size:
        return Majority(units, np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    most = counts.max(axis=1)
    lowest, highest = counts.argmax(axis=1), counts.shape[1] - 1 - counts[:, ::-1].argmax(axis=1)
    value = categories[highest if ties == "highest" else lowest]
    if ties == "missing":
        value = np.where(lowest == highest, value, np.nan)
    total = counts.sum(axis=1)
    return Majority(units, value, most / total, total.astype(np.int64))


def count_votes(votes: Votes) -> tuple[IntArray, FloatArray, sparse.csr_array]:
    """Return the units (U,) and values (K,) that occur, ascending, and the table (U, K) of counts.
    The table is sparse, since there may be as many values as units.
    """
    units, row = np.unique(votes.unit, return_inverse=True)
    categories, column = np.unique(votes.value, return_inverse=True)
    return units, categories, cooccurrence_table(row, column, (units.size, categories.size))


def cooccurrence_table(row: IntArray, column: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """Return how often each pair of row and column occurs, as a sparse table.

    Parameters
    ----------
    row, column : array of int, shape (v,)
        Codes, e.g. of units and of the values that they were given.
    shape : tuple of int
        Numbers of rows and of columns.

    Returns
    -------
    scipy.sparse.csr_array, of that shape

    Examples
    --------
    >>> cooccurrence_table(np.array([0, 0, 1]), np.array([1, 1, 0]), (2, 2)).toarray().tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    return sparse.coo_array((np.ones(row.size), (row, column)), shape=shape).tocsr()


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans of tokens: `spans` (k, 2) half-open, `share` (k,) the mean share of annotators who
    marked their tokens.

    Examples
    --------
    >>> found = token_majority([(0, 2), (0, 2), (1, 2)], [0, 1, 2], 3, 3)
    >>> found.spans.tolist(), found.share.round(2).tolist()
    ([[0, 2]], [0.83])
    """

    spans: IntArray
    share: FloatArray


def token_majority(
    spans: ArrayLike, annotator: ArrayLike, n_tokens: int, n_annotators: int
) -> Spans:
    """Return the spans made of the tokens that more than half of the annotators marked.

    Tokens side by side make one span, unless among the annotators who marked both of them more
    begin a new span at the second than go on.

    Parameters
    ----------
    spans : array_like of int, shape (s, 2)
        Spans of tokens, half-open, of all annotators.
    annotator : array_like of int, shape (s,)
        Who marked each, 0 … `n_annotators` − 1.
    n_tokens, n_annotators : int
        Length of the text, and how many people read it, those who marked nothing among them.

    Returns
    -------
    Spans
        In the order of the text.

    Raises
    ------
    ValueError
        A span that is empty or leaves the text; an annotator's code that is too high.

    References
    ----------
    Chaganty 2018, section 3.5.3.

    Examples
    --------
    >>> spans, annotator = [[0, 2], [0, 3], [1, 3], [5, 6]], [0, 1, 2, 2]
    >>> result = token_majority(spans, annotator, n_tokens=8, n_annotators=3)
    >>> result.spans.tolist()
    [[0, 3]]
    """
    marked, begins = _marked_tokens(spans, annotator, n_tokens, n_annotators)
    votes = marked.sum(axis=0)
    inside = 2 * votes > n_annotators
    before = np.zeros_like(marked)
    before[:, 1:] = marked[:, :-1]
    both = marked & before
    split = 2 * (both & begins).sum(axis=0) > both.sum(axis=0)
    goes_on = np.zeros(n_tokens, dtype=np.bool_)
    goes_on[1:] = inside[1:] & inside[:-1] & ~split[1:]
    starts = np.flatnonzero(inside & ~goes_on)
    ends = np.flatnonzero(inside & ~np.append(goes_on[1:], False)) + 1
    share = [votes[a:b].mean() / n_annotators for a, b in zip(starts, ends, strict=True)]
    return Spans(
        np.column_stack([starts, ends]).astype(np.int64), np.array(share, dtype=np.float64)
    )


def _marked_tokens(
    spans: ArrayLike, annotator: ArrayLike, n_tokens: int, n_annotators: int
) -> tuple[BoolArray, BoolArray]:
    """Return which tokens each annotator marked and where their spans begin, both (n_annotators,
    n_tokens).
    """
    ranges = np.asarray(spans, dtype=np.int64).reshape(-1, 2)
    people = checks.check_codes("annotator", annotator, len(ranges))
    if (people >= n_annotators).any():
        raise ValueError(f"annotator must be less than {n_annotators}; got {int(people.max())}")
    marked = np.zeros((n_annotators, n_tokens), dtype=np.bool_)
    begins = np.zeros_like(marked)
    for (begin, end), person in zip(ranges, people, strict=True):
        if not 0 <= begin < end <= n_tokens:
            raise ValueError(
                f"a span must lie in 0 … {n_tokens} and not be empty; got [{begin}, {end})"
            )
        marked[person, begin:end] = True
        begins[person, begin] = True
    return marked, begins


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """The model's posterior for every unit, and its estimates for every annotator.

    Attributes
    ----------
    unit : (U,) array
        Codes of the units, in rising order.
    posterior : (U, K) array
        Probability of each class for each unit; rows sum to 1.
    prior : (K,) array
        Share of each class.
    annotator : (A,) array
        Codes of the annotators, in rising order.
    confusion : (A, K, K) array
        `confusion[a, k, l]`: probability that annotator a answers l where k is true.
    n_iterations : int
        Rounds of expectation and maximisation.
    converged : bool
        Whether no posterior moved by more than the tolerance in the last one.
    reason : str
        Why the model was not fitted, as a sentence; then `posterior` holds the shares of the votes,
        and `confusion` NaN. Empty where it was fitted.

    Examples
    --------
    >>> found = dawid_skene([1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1])
    >>> found.posterior.argmax(axis=1).tolist(), found.reason
    ([1, 0], 'Half of the people gave 2 answers or fewer; the model needs 10.')
    """

    unit: IntArray
    posterior: FloatArray
    prior: FloatArray
    annotator: IntArray
    confusion: FloatArray
    n_iterations: int
    converged: bool
    reason: str


def dawid_skene(
    values: ArrayLike,
    unit: ArrayLike,
    annotator: ArrayLike,
    *,
    n_classes: int | None = None,
    times: ArrayLike | None = None,
    smoothing: float = 0.1,
    max_iterations: int = 200,
    tolerance: float = 1e-8,
) -> DawidSkene:
    """Return the posterior classes of all units and the annotators' confusion matrices, by
    expectation-maximisation.

    posterior(u, k) ∝ prior(k) Π_{votes l of a on u} confusion(a, k, l), begun at the shares of the
    votes. `smoothing` is added to every count of a confusion matrix and of the prior, so that no
    probability is 0, and one right answer a class to each confusion matrix, so that people are
    taken to be better than chance until their answers show otherwise.

    Where the median person answered fewer than 10 units, the data do not identify the model: it is
    not fitted, and the posterior holds the shares of the votes. A unanimous vote stands unless each
    of its people answered at least 20 units. At one answer a person the fitted model overturned 43
    per cent of simulated unanimous votes.

    Parameters
    ----------
    values : array_like, shape (v,)
        Classes 0 … K − 1; NaN is no answer.
    unit, annotator : array_like of int, shape (v,)
        Codes.
    n_classes : int, optional
        K; the highest class that occurs, plus 1, if left out.
    times : array_like, shape (highest unit + 1,), optional
        How many units with these very votes each code stands for; 1 if left out.
    smoothing, max_iterations, tolerance
        Positive.

    Returns
    -------
    DawidSkene
        Units without an answer do not occur.

    Raises
    ------
    ValueError
        A value that is no class; an annotator who answers a unit twice; options or times that are
        not positive.

    References
    ----------
    Dawid and Skene 1979.

    Examples
    --------
    Two people agree, a third says the opposite of them each time: his answers still count, turned
    round.

    >>> votes, unit = [1, 1, 0, 0, 0, 1] * 10, np.repeat(np.arange(20), 3)
    >>> result = dawid_skene(votes, unit, annotator=[0, 1, 2] * 20)
    >>> result.posterior[:3, 1].round(2).tolist(), result.confusion[2, 0].round(1).tolist()
    ([1.0, 0.0, 1.0], [0.1, 0.9])
    """
    for name, option in (
        ("smoothing", smoothing),
        ("max_iterations", max_iterations),
        ("tolerance", tolerance),
    ):
        if not option > 0:
            raise ValueError(f"{name} must be positive; got {option!r}")
    votes = check_votes(values, unit, annotator)
    answer, k = _check_classes(votes.value, n_classes)
    units, row = np.unique(votes.unit, return_inverse=True)
    people, person = np.unique(votes.annotator, return_inverse=True)
    alike = np.ones(units.size) if times is None else np.asarray(times, dtype=np.float64)[units]
    if not np.all(alike > 0):
        raise ValueError(f"times must be positive; got {float(alike.min())}")
    shares = _normalise_counts(
        np.bincount(row * k + answer, minlength=units.size * k).reshape(units.size, k), axis=1
    )
    answered = np.bincount(person, weights=alike[row], minlength=people.size)
    if people.size and (typical := float(np.median(answered))) < FEWEST_ANSWERS:
        return DawidSkene(
            units,
            shares,
            _normalise_counts(shares.T @ alike, axis=0),
            people,
            np.full((people.size, k, k), np.nan),
            0,
            False,
            f"Half of the people gave {typical:g} answers or fewer;"
            f" the model needs {FEWEST_ANSWERS}.",
        )
    posterior = shares
    prior, confusion = np.full(k, 1 / max(k, 1)), np.zeros((people.size, k, k))
    rounds, moved = 0, np.inf
    while rounds < max_iterations and moved > tolerance:
        counted = posterior * alike[:, None]
        prior = _normalise_counts(counted.sum(axis=0) + smoothing, axis=0)
        counts = np.tile(smoothing + np.eye(k), (people.size, 1, 1))
        np.add.at(counts.transpose(0, 2, 1), (person, answer), counted[row])
        confusion = _normalise_counts(counts, axis=2)
        logs = np.tile(np.log(prior), (units.size, 1))
        np.add.at(logs, row, np.log(confusion[person, :, answer]))
        updated = _normalise_counts(
            np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf)), axis=1
        )
        moved = float(np.abs(updated - posterior).max(initial=0))
        posterior, rounds = updated, rounds + 1
    if units.size:
        few = np.bincount(row, weights=answered[person] < ENOUGH_ANSWERS) > 0
        overruled = few & (shares.max(axis=1) == 1)
        overruled &= posterior.argmax(axis=1) != shares.argmax(axis=1)
        posterior = np.where(overruled[:, None], shares, posterior)
    return DawidSkene(
        units, posterior, prior, people, confusion, rounds, bool(moved <= tolerance), ""
    )


def _check_classes(value: FloatArray, n_classes: int | None) -> tuple[IntArray, int]:
    for odd in value[(value < 0) | (value != np.floor(value))]:
        raise ValueError(f"values must be classes 0, 1, …; got {float(odd)!r}")
    answer = value.astype(np.int64)
    highest = int(answer.max(initial=-1))
    k = highest + 1 if n_classes is None else n_classes
    if highest >= k:
        raise ValueError(f"values must be less than n_classes = {k}; got {highest}")
    return answer, k


def _normalise_counts(
    counts: np.ndarray[tuple[int, ...], np.dtype[np.generic]], *, axis: int
) -> FloatArray:
    table = counts.astype(np.float64)
    shares: FloatArray = table / table.sum(axis=axis, keepdims=True)
    return shares
