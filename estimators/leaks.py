"""Whether a new run was made by somebody who had read the answers of an earlier sample.

Accounts are not people: a second account can upload the first one's run without what was judged
wrong. But everything except who was drawn is known. A run that was made without the answers is
independent of the draw; so, given its size, the judged sample must hold what the run predicts as
often as chance would have it. What was deleted because it was judged is found among the judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, rankdata

from estimators import checks
from estimators.checks import FloatArray

TOGETHER = 64
"""Parts that are added up at once, at the most"""
LEVELS = 4
"""Into how many parts `levels` cuts a sample"""
CUTS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
"""Quantiles of what a run says in numbers at which `clearest_splits` cuts"""
CLEAREST = 3
"""How many splits `clearest_splits` returns: the first look is rough"""
GRADES = 8
"""Into how many grades `amount_test` puts documents by how much is said in them"""
ALIKE = 0.7
"""How often people find right, at least, what readers of whole documents find right"""
NOTHING = 1e-20
"""What is rarer adds nothing to a p-value that anybody asks for."""


@dataclass(frozen=True)
class ShareTest:
    """How many of a judged sample a run predicts, against chance.

    Attributes
    ----------
    size : int
        Targets (and draws) of the sample that the run might or might not have predicted.
    predicted : int
        Those of them that it predicts.
    expected : float
        How many it would predict on average, had it been made without the answers. These three are
        what was compared where the p-value is from, and lie on the side on which it is small; of
        several parts that were tested, those of the one that speaks most clearly.
    p_value : float
        Two-sided: the chance to be at least as far out on the side where it is, twice.
    of_unlikely : bool
        Whether the numbers count only the less likely of the targets (`contrast_test`).

    Examples
    --------
    >>> share_test([0.5, 0.5], [True, False], [True, False]).size
    1
    """

    size: int
    predicted: int
    expected: float
    p_value: float
    of_unlikely: bool = False


def share_test(
    probability: ArrayLike,
    drawn: ArrayLike,
    predicted: ArrayLike,
    *,
    draw_probability: ArrayLike = (),
    draw_predicted: ArrayLike = (),
    stratum: ArrayLike | None = None,
) -> ShareTest:
    """Return the exact randomisation test of a run against an earlier judged sample.

    Redrawing the sample with its stored π while the run stays as it is, the number of drawn targets
    that the run predicts, given how many are drawn, is N₁ | N₁ + N₀ = n with N₁ and N₀ independent
    sums of Bernoulli(π) over what it predicts and what it does not (Fisher's exact test for unequal
    probabilities). Its law is computed, not simulated. Somebody who deletes what was judged (wrong,
    or right) lowers it; somebody who adds what was judged raises it.

    The verdicts of what was not drawn are unknown, so the test does not use them. Where some were
    judged *later*, the same test tells verdicts apart: ``probability`` is then π_then / π_now of
    what is judged by now, ``drawn`` whether it was judged then, ``predicted`` whether it is right.

    Parameters
    ----------
    probability : (n,) array
        π of each target that could have been drawn, as stored.
    drawn : (n,) boolean array
        Whether it was.
    predicted : (n,) boolean array
        Whether the new run predicts it.
    draw_probability : (k,) array, optional
        Of each draw with replacement the probability that it falls on something that the run
        predicts.
    draw_predicted : (k,) boolean array, optional
        Whether it did.
    stratum : (n,) integer array, optional
        Codes, made without looking at who was drawn: each stratum is tested by itself, and the
        least p-value counts as often as there are strata that can tell anything. Draws are a
        stratum of their own.

    Returns
    -------
    ShareTest
        With p = 1 where the sample can tell nothing.

    Raises
    ------
    ValueError
        If a probability is out of range, lengths differ, or something was drawn that could not be.

    Examples
    --------
    Of ten targets, each drawn with probability ½, the run lacks just the five that were drawn:

    >>> import numpy as np
    >>> drawn = np.arange(10) < 5
    >>> found = share_test(np.full(10, 0.5), drawn, ~drawn)
    >>> found.size, found.predicted, round(found.p_value, 4)
    (5, 0, 0.0079)
    """
    pi, is_drawn, is_predicted = _checked(probability, drawn, predicted)
    code = np.zeros(pi.size, dtype=np.int64) if stratum is None else np.asarray(stratum)
    if code.shape != pi.shape:
        raise ValueError(f"stratum must have {pi.size} entries; got shape {code.shape}")
    p_draw, hit, _ = _checked(draw_probability, draw_predicted, draw_predicted)
    parts = list[_Part]()
    for stratum_code in np.unique(code):
        inside = (code == stratum_code) & (pi > 0) & (pi < 1)
        size = int(is_drawn[inside].sum())
        law = _given_size(pi[inside & is_predicted], pi[inside & ~is_predicted], size)
        observed = int((is_drawn & is_predicted)[inside].sum())
        parts.append(_Part(size, observed, _mean(law), _two_sided(law, observed)))
    if p_draw.size:
        law, observed = number_law(p_draw, p_draw.size), int(hit.sum())
        parts.append(_Part(p_draw.size, observed, _mean(law), _two_sided(law, observed)))
    return _clearest(parts)


def levels(likely: ArrayLike, probability: ArrayLike) -> checks.IntArray:
    """Return for each target the level of how likely it is right, 0 to 3, of which each holds about
    as many draws.

    Parameters
    ----------
    likely : (n,) array
        How likely each is right, in any unit, by what was known before anything was judged.
    probability : (n,) array
        π of each, as stored: how much it counts.

    Returns
    -------
    (n,) integer array
        Equally likely ones have the same level, so that there may be fewer than four.

    Examples
    --------
    >>> levels([1, 5, 2, 2, 9], [0.5, 0.5, 0.5, 0.5, 0.5]).tolist()
    [0, 2, 1, 1, 3]
    """
    value, weight = np.asarray(likely, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    if value.shape != weight.shape:
        raise ValueError(f"likely must have {weight.size} entries; got shape {value.shape}")
    total = float(weight.sum())
    if not total > 0:
        return np.zeros(value.size, dtype=np.int64)
    names, row = np.unique(value, return_inverse=True)
    held = np.bincount(row, weights=weight, minlength=names.size)
    middle = (np.cumsum(held) - held / 2) / total
    return np.minimum((LEVELS * middle).astype(np.int64), LEVELS - 1)[row]


def contrast_test(
    probability: ArrayLike,
    drawn: ArrayLike,
    predicted: ArrayLike,
    level: ArrayLike,
    *,
    draw_probability: ArrayLike = (),
    draw_predicted: ArrayLike = (),
    draw_level: ArrayLike = (),
) -> ShareTest:
    """Return the exact randomisation test whether a run tells right from wrong better among what
    was judged than elsewhere.

    Who deletes as much of what was not judged as of what was, blindly, leaves `share_test` nothing
    to see. But what he deletes among the judged is wrong, and so mostly of a low level; elsewhere
    it is of any. So Σ (2ℓ + 1 − k) N_ℓ over the k levels ℓ = 0 … k − 1 that there are is too large,
    where N_ℓ of the drawn targets of level ℓ are predicted: given how many are drawn of each level,
    the N_ℓ are independent, and each has the law that `share_test` has.

    Parameters
    ----------
    probability, drawn, predicted, draw_probability, draw_predicted
        As of `share_test`.
    level : (n,) integer array
        Of each target, 0 to 3, made without looking at who was drawn (`levels`).
    draw_level : (k,) integer array, optional
        The same of each draw; its ``draw_probability`` is then that among what has this level.

    Returns
    -------
    ShareTest
        ``size``, ``predicted`` and ``expected`` are those of the lower half of the levels, or where
        these do not lie on the side on which p is small, of the lowest one, of the upper half or of
        the highest; p = 1 where the sample can tell nothing.

    Raises
    ------
    ValueError
        If a probability or a level is out of range, lengths differ, or something was drawn that
        could not be.

    Examples
    --------
    Ten targets, of which five were drawn; the run lacks the two of these that are unlikely, and two
    likely ones that were not drawn:

    >>> import numpy as np
    >>> at = np.arange(10)
    >>> found = contrast_test(np.full(10, 0.5), at < 5, ~np.isin(at, [0, 1, 5, 6]),
    ...                       np.where(np.isin(at, [0, 1, 7, 8, 9]), 0, 3))
    >>> found.size, found.predicted, round(found.p_value, 4)
    (2, 0, 0.02)
    """
    pi, is_drawn, is_predicted = _checked(probability, drawn, predicted)
    p_draw, is_hit, _ = _checked(draw_probability, draw_predicted, draw_predicted)
    of_target, of_draw = np.asarray(level), np.asarray(draw_level, dtype=np.int64)
    if of_target.shape != pi.shape or of_draw.shape != p_draw.shape:
        raise ValueError("each target and each draw must have a level")
    if np.any(~np.isin(of_target, range(LEVELS))) or np.any(~np.isin(of_draw, range(LEVELS))):
        raise ValueError(f"a level must be 0 to {LEVELS - 1}")
    can = (pi > 0) & (pi < 1)
    names = np.unique(np.concatenate([of_target[can], of_draw]))
    law, observed = np.ones(1), 0
    of_level = list[tuple[int, _Part]]()
    for name, weight in zip(names, range(1 - names.size, names.size, 2), strict=True):
        inside, here = can & (of_target == name), of_draw == name
        of_targets = _given_size(
            pi[inside & is_predicted], pi[inside & ~is_predicted], int(is_drawn[inside].sum())
        )
        own_law = np.convolve(of_targets, number_law(p_draw[here], int(here.sum())))
        count, most = (
            int((is_drawn & is_predicted)[inside].sum() + is_hit[here].sum()),
            own_law.size - 1,
        )
        law = np.convolve(law, _times(weight, own_law))
        # The law of a sum with negative parts begins at its least value, not at 0.
        observed += weight * count if weight > 0 else -weight * (most - count)
        of_level.append((weight, _Part(most, count, _mean(own_law))))
    p_value = min(_two_sided(law, observed), default=1.0)
    return _of_side(of_level, observed > _mean(law), p_value)


def document_test(
    document: ArrayLike, drawn: ArrayLike, predicted: ArrayLike, *, stratum: ArrayLike | None = None
) -> ShareTest:
    """Return the same test of a run against documents that were drawn uniformly and read whole.

    Redrawing the documents while the run stays as it is, the number of targets in them that the run
    predicts (or lacks: whichever are fewer in all, for these tell more) has a law that depends on
    how many there are in each document alone. It is computed, given how many of the documents in
    which there is any such target are drawn.

    Parameters
    ----------
    document : (n,) integer array
        The document of each target, as a code.
    drawn : (n,) boolean array
        Whether it was drawn; the same for all targets of a document.
    predicted : (n,) boolean array
        Whether the new run predicts the target.
    stratum : (n,) integer array, optional
        As of `share_test`.

    Returns
    -------
    ShareTest
        ``size`` counts targets in drawn documents; where what the run lacks is fewer, ``expected``
        is ``size`` less what it would lack there; p = 1 where these can tell nothing.

    Raises
    ------
    ValueError
        If lengths differ, or a document is drawn for some of its targets only.

    Examples
    --------
    Ten documents with a target each; the run lacks those of the five that were read:

    >>> import numpy as np
    >>> read = np.arange(10) < 5
    >>> found = document_test(np.arange(10), read, ~read)
    >>> found.size, found.predicted, found.expected, round(found.p_value, 4)
    (5, 0, 2.5, 0.0079)
    """
    names, is_drawn = np.asarray(document), np.asarray(drawn, dtype=np.bool_)
    is_predicted = np.asarray(predicted, dtype=np.bool_)
    code = np.zeros(names.shape, dtype=np.int64) if stratum is None else np.asarray(stratum)
    if not names.shape == is_drawn.shape == is_predicted.shape == code.shape:
        raise ValueError("document, drawn, predicted and stratum must have as many entries")
    parts = list[_Part]()
    for stratum_code in np.unique(code):
        inside = code == stratum_code
        targets, chosen, held = _by_document(names[inside], is_drawn[inside], is_predicted[inside])
        is_of_lacking = int(held.sum()) > int((targets - held).sum())
        fewer = targets - held if is_of_lacking else held
        n, size = int(chosen.sum()), int(targets[chosen].sum())
        expected = n / targets.size * float(fewer.sum())
        if is_of_lacking:
            expected = max(0.0, size - expected)
        p_values = _twice(_sum_tails(fewer, n, int(fewer[chosen].sum())))
        parts.append(_Part(size, int(held[chosen].sum()), expected, p_values))
    return _clearest(parts)


def verdict_test(
    document: ArrayLike,
    drawn: ArrayLike,
    right: ArrayLike,
    uniform: ArrayLike,
    *,
    stratum: ArrayLike | None = None,
) -> ShareTest:
    """Return the test whether a run is right the oftener in documents that were drawn uniformly and
    read whole than in the others, by what was asked of it whatever document it lies in.

    Who knows which documents were read can say what is true there, and elsewhere as much that is
    not. But readers judge in the former, other people in the latter. So of what is right in drawn
    documents a share ``ALIKE`` counts, at random: then each is right there as often as it would be
    outside, if there just so many of what readers find right are found right; less often, if more
    are. Redrawing the documents, the sum over the drawn ones of how many more are right than the
    run's share of all has it has a law that is computed, given how many of the documents in which
    anything was asked are drawn.

    Parameters
    ----------
    document : (n,) integer array
        The document of each target that was asked and is judged, as a code.
    drawn : (n,) boolean array
        Whether it was drawn; the same for all targets of a document.
    right : (n,) boolean array
        Whether the run is right there.
    uniform : (n,) array
        Of each target a number that is equally likely anywhere in [0, 1), whatever is right.
    stratum : (n,) integer array, optional
        As of `share_test`.

    Returns
    -------
    ShareTest
        ``size`` counts targets in drawn documents, ``predicted`` those of them that count as right,
        ``expected`` how many would; p = 1 where it is not right the oftener there.

    Raises
    ------
    ValueError
        If lengths differ, or a document is drawn for some of its targets only.

    Examples
    --------
    Forty documents with a target each; the run is right in the ten that were read alone:

    >>> import numpy as np
    >>> read = np.arange(40) < 10
    >>> found = verdict_test(np.arange(40), read, read, np.arange(40) % 10 / 10)
    >>> found.size, found.predicted, found.expected, found.p_value < 1e-4
    (10, 7, 1.75, True)
    >>> verdict_test(np.arange(40), read, ~read, np.arange(40) % 10 / 10).p_value
    1.0
    """
    names, is_drawn = np.asarray(document), np.asarray(drawn, dtype=np.bool_)
    is_right, number = np.asarray(right, dtype=np.bool_), np.asarray(uniform, dtype=np.float64)
    code = np.zeros(names.shape, dtype=np.int64) if stratum is None else np.asarray(stratum)
    if not names.shape == is_drawn.shape == is_right.shape == number.shape == code.shape:
        raise ValueError("document, drawn, right, uniform and stratum must have as many entries")
    counted = is_right & ~(is_drawn & (number >= ALIKE))
    parts = list[_Part]()
    for stratum_code in np.unique(code):
        inside = code == stratum_code
        targets, chosen, held = _by_document(names[inside], is_drawn[inside], counted[inside])
        share, n, size = held.sum() / targets.sum(), int(chosen.sum()), int(targets[chosen].sum())
        more = np.rint(GRADES * (held - share * targets)).astype(np.int64)
        count, expected = int(held[chosen].sum()), float(share * size)
        tails = _sum_tails(more, n, int(more[chosen].sum()))[1:] if count > expected else [1.0]
        parts.append(_Part(size, count, expected, _twice(tails)))
    return _clearest(parts)


def _by_document(
    names: checks.IntArray, drawn: checks.BoolArray, held: checks.BoolArray
) -> tuple[checks.IntArray, checks.BoolArray, checks.IntArray]:
    """Of each document how many targets it has, whether it was drawn, and how many are held."""
    row = np.unique(names, return_inverse=True)[1]
    targets = np.bincount(row)
    read = np.bincount(row, weights=drawn)
    if np.any((read > 0) & (read < targets)):
        raise ValueError("a document is drawn for all of its targets or for none")
    return targets, read > 0, np.bincount(row, weights=held).astype(np.int64)


def amount_test(amount: ArrayLike, drawn: ArrayLike, *, more: bool = False) -> ShareTest:
    """Return the exact test of how much a run says in documents that were drawn uniformly, against
    how much it says in the others.

    Somebody who knows which documents were read, and finds by himself what is true there, copies no
    answer, and yet says more in these than elsewhere. What is said in a document counts by its rank
    in ``GRADES`` grades, 0 where nothing is said, so that few long documents decide nothing.

    It costs a fifth of a second for 2,000 documents of which 600 were drawn, and three times as
    much for twice as many.

    Parameters
    ----------
    amount : (n,) array
        How much the run says in each document, not negative; in any unit.
    drawn : (n,) boolean array
        Whether the document was drawn.
    more : bool
        Whether only that more is said there counts, by the grades as well: where less is, p = 1.

    Returns
    -------
    ShareTest
        ``size`` counts drawn documents, ``predicted`` and ``expected`` are what their grades add up
        to; p = 1 where these can tell nothing.

    Raises
    ------
    ValueError
        If lengths differ, or an amount is negative.

    Examples
    --------
    Of twelve documents four were read, and a run says something in just these:

    >>> import numpy as np
    >>> read = np.arange(12) < 4
    >>> found = amount_test(3 * read, read)
    >>> found.size, found.predicted, round(found.expected, 3), round(found.p_value, 4)
    (4, 20, 6.667, 0.004)
    """
    said, is_drawn = np.asarray(amount, dtype=np.float64), np.asarray(drawn, dtype=np.bool_)
    if said.shape != is_drawn.shape or said.ndim != 1:
        raise ValueError("amount and drawn must have as many entries")
    if (said < 0).any():
        raise ValueError("amount must not be negative")
    n = int(is_drawn.sum())
    grade = np.zeros(said.size, dtype=np.int64)
    if (some := said > 0).any():
        below = rankdata(said[some], method="average") / some.sum()
        grade[some] = np.ceil(GRADES * below).astype(np.int64)
    observed = int(grade[is_drawn].sum())
    tails = _sum_tails(grade, n, observed)
    p_values = _twice(tails[1:] if more else tails)
    expected = n / max(said.size, 1) * float(grade.sum())
    return ShareTest(n, observed, expected, min(p_values, default=1.0))


def amounts_test(
    amount: ArrayLike, new: ArrayLike, drawn: ArrayLike, *, may_look: bool = False
) -> ShareTest:
    """Return the test of how much a run says in documents that were drawn uniformly, and of how
    much of it no earlier run says.

    Parameters
    ----------
    amount, new : (n,) arrays
        How much the run says in each document, and how much that is new, as of `amount_test`.
    drawn : (n,) boolean array
        Whether the document was drawn.
    may_look : bool
        Whether its team could see judgments. It may know which documents were read, and leave out
        there what is wrong: then only is tested whether it says more there that is new.

    Returns
    -------
    ShareTest
        Of `amount_test`; of size 0 where the team may look and says no more there.

    Examples
    --------
    >>> import numpy as np
    >>> read = np.arange(12) < 4
    >>> said = np.where(read, 1, 3)
    >>> round(amounts_test(said, 0 * said, read).p_value, 4)
    0.0081
    >>> amounts_test(said, 0 * said, read, may_look=True).p_value
    1.0
    """
    of_new = amount_test(new, drawn, more=may_look)
    if not may_look:
        return either(amount_test(amount, drawn), of_new)
    return of_new if of_new.p_value < 1 else ShareTest(0, 0, 0.0, 1.0)


class Channel(NamedTuple):
    """What a run says in numbers of n targets, made without looking at who was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> Channel("sure", np.full(2, True), np.array([0.9, 0.4])).name
    'sure'
    """

    name: str
    among: checks.BoolArray
    """(n,) the targets of which it could say something so"""
    value: FloatArray
    """(n,) what it says of them, in any unit"""


class Split(NamedTuple):
    """The targets of a channel in two parts.

    Examples
    --------
    >>> import numpy as np
    >>> int(Split("sure", np.full(2, True), np.array([True, False])).above.sum())
    1
    """

    name: str
    among: checks.BoolArray
    """(n,)"""
    above: checks.BoolArray
    """(n,) those of them of which the run says more"""


def clearest_splits(
    channels: Sequence[Channel], counts: Sequence[tuple[ArrayLike, ArrayLike]]
) -> tuple[list[Split], int]:
    """Return the splits of some channels between whose parts what was drawn lies most unlike
    chance, three at most, and how many splits there are: a test of one counts so often.

    Every channel is cut at nine quantiles of its values. How unlike chance a split is is told by
    Σ n (s log s/q + (1 − s) log (1 − s)/(1 − q)) over all kinds of counts, n of what is counted, of
    which s lie above the cut where q are expected: a rough look, since the test that follows is
    exact.

    Parameters
    ----------
    channels : sequence of Channel
        Of the same n targets.
    counts : sequence of pairs of (n,) arrays
        How often each target was drawn, and how often it would be, in any unit; likewise how often
        not.

    Returns
    -------
    list of Split, int

    Raises
    ------
    ValueError
        If lengths differ.

    Examples
    --------
    Of ten targets five were drawn, and these are what the run is least sure of:

    >>> import numpy as np
    >>> drawn = np.arange(10) < 5
    >>> sure = Channel("sure", np.full(10, True), np.arange(10.0))
    >>> [best, *_], number = clearest_splits([sure], [(drawn, np.full(10, 0.5))])
    >>> best.above.tolist() == (~drawn).tolist(), number
    (True, 7)
    """
    each = [
        (np.asarray(count, dtype=np.float64), np.asarray(expected, dtype=np.float64))
        for count, expected in counts
    ]
    rated: list[tuple[float, int, float]] = []
    for at, (_, among, value) in enumerate(channels):
        inside = np.flatnonzero(among)
        if any(array.shape != among.shape for pair in each for array in (value, *pair)):
            raise ValueError("channels and counts must be of as many targets")
        if not inside.size:
            continue
        of_these = value[inside]
        cuts = np.unique(np.quantile(of_these, CUTS, method="higher"))
        cuts = cuts[cuts > of_these.min()]
        part = np.searchsorted(cuts, of_these, side="right")
        held = [[_sums(part, weights[inside], cuts.size + 1) for weights in pair] for pair in each]
        told = sum((_unlike(count, expected) for count, expected in held), np.zeros(cuts.size))
        rated += [(float(one), at, float(cut)) for one, cut in zip(told, cuts, strict=True)]
    clearest = sorted(rated, key=lambda split: -split[0])[:CLEAREST]
    return [
        Split(channels[at].name, channels[at].among, channels[at].value >= cut)
        for _, at, cut in clearest
    ], len(rated)


def _sums(part: checks.IntArray, weights: FloatArray, n: int) -> FloatArray:
    return np.bincount(part, weights=weights, minlength=n).astype(np.float64)


def _unlike(count: FloatArray, expected: FloatArray) -> FloatArray:
    """(k,) n KL(share counted above a cut ‖ share expected), from k + 1 parts between cuts."""
    n, of_all = float(count.sum()), float(expected.sum())
    if not n or not of_all:
        return np.zeros(count.size - 1)
    above, chance = (np.cumsum(part[::-1])[::-1][1:] for part in (count / n, expected / of_all))
    told = np.zeros(above.size)
    for s, q in ((above, chance), (1 - above, 1 - chance)):
        some = s > 0
        told[some] += s[some] * np.log(s[some] / np.maximum(q[some], NOTHING))
    return np.asarray(n * np.maximum(told, 0.0))


def either(*tests: ShareTest) -> ShareTest:
    """Return the test that speaks most clearly of several of one run, its p-value times as many as
    can tell anything: whichever way answers were read, one of them finds it.

    Parameters
    ----------
    *tests : ShareTest
        At least one.

    Returns
    -------
    ShareTest
        One of them, with a larger p-value.

    Examples
    --------
    >>> either(ShareTest(9, 1, 5.0, 0.01), ShareTest(7, 4, 4.0, 0.9)).p_value
    0.02
    """
    informative = sum(test.size > 0 for test in tests)
    clearest = min(tests, key=lambda test: (test.size == 0, test.p_value))
    return replace(clearest, p_value=min(1.0, max(informative, 1) * clearest.p_value))


def number_law(probability: ArrayLike, most: int) -> FloatArray:
    """Return the probabilities that 0, 1, …, ``most`` of some independent things happen.

    One thing after the other (Poisson-binomial); all terms are positive, so that small ones are as
    accurate as large ones.

    Parameters
    ----------
    probability : (n,) array
        Of each thing.
    most : int
        The largest number that is asked for; what lies beyond is left out.

    Returns
    -------
    (most + 1,) array
        Sums to at most 1.

    Examples
    --------
    >>> number_law([0.5, 0.5], 2).tolist()
    [0.25, 0.5, 0.25]
    """
    p = checks.probabilities("probability", probability)
    width = int(np.clip(p.size // TOGETHER, 1, TOGETHER))
    rounds = np.pad(p, (0, -p.size % width)).reshape(-1, width, 1)
    laws = np.zeros((width, most + 1))
    laws[:, 0] = 1.0
    for chance in rounds:  # a thing of each part at once
        laws[:, 1:] = laws[:, 1:] * (1 - chance) + laws[:, :-1] * chance
        laws[:, :1] *= 1 - chance
    law = laws[0]
    for part in laws[1:]:
        law = np.convolve(law, part)[: most + 1]
    return np.asarray(law)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values adjusted for their number (Holm 1979).

    A family in which those at most α are believed errs with probability at most α, however they
    depend on each other.

    Parameters
    ----------
    p_values : (k,) array
        One a test.

    Returns
    -------
    (k,) array
        In the same order, nowhere below what was given.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02]).tolist()
    [0.03, 0.5, 0.04]
    """
    p = checks.probabilities("p_values", p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


class _Part(NamedTuple):
    """What was compared of a part of the targets, with its p-value, if it can tell anything."""

    size: int
    predicted: int
    expected: float
    p_values: Sequence[float] = ()

    def with_part(self, other: _Part) -> _Part:
        """Return both, untested."""
        added = (one + two for one, two in zip(self[:3], other[:3], strict=True))
        return _Part(*added)  # type: ignore[arg-type]


def _clearest(parts: Sequence[_Part]) -> ShareTest:
    """The test of the part that speaks most clearly, its p-value times as many as can tell
    anything; of all together, if none can.
    """
    telling = [part for part in parts if part.p_values]
    if not telling:
        return ShareTest(*_sum_of(parts)[:3], 1.0)
    clearest = min(telling, key=lambda part: min(part.p_values))
    least = min(1.0, len(telling) * min(clearest.p_values))
    return ShareTest(*clearest[:3], least)


def _sum_of(parts: Sequence[_Part]) -> _Part:
    added = _Part(0, 0, 0.0)
    for part in parts:
        added = added.with_part(part)
    return added


def _of_side(of_level: Sequence[tuple[int, _Part]], is_more: bool, p_value: float) -> ShareTest:
    """The test of a contrast of levels, each with its weight, in numbers that lie on its side: too
    few of the unlikely, or too many of the likely where it `is_more`; else the other way round.
    """
    unlikely = [part for weight, part in of_level if weight < 0]
    likely = [part for weight, part in of_level if weight > 0]
    side = 1 if is_more else -1
    for parts, sign in (
        (unlikely, -side),
        (unlikely[:1], -side),
        (likely, side),
        (likely[-1:], side),
    ):
        part = _sum_of(parts)
        if sign * (part.predicted - part.expected) > 0:
            return ShareTest(*part[:3], p_value, of_unlikely=sign == -side)
    return ShareTest(*_sum_of(unlikely)[:3], p_value, of_unlikely=True)


def _checked(
    probability: ArrayLike, drawn: ArrayLike, predicted: ArrayLike
) -> tuple[FloatArray, checks.BoolArray, checks.BoolArray]:
    pi = checks.probabilities("probability", probability)
    is_drawn, is_predicted = (
        np.asarray(drawn, dtype=np.bool_),
        np.asarray(predicted, dtype=np.bool_),
    )
    if not is_drawn.shape == is_predicted.shape == pi.shape:
        raise ValueError(
            "probability, drawn and predicted must have as many entries; got"
            f" {pi.shape}, {is_drawn.shape}, {is_predicted.shape}"
        )
    return pi, is_drawn, is_predicted


def _given_size(predicted: FloatArray, other: FloatArray, size: int) -> FloatArray:
    """The law of how many of the drawn are predicted, given how many are drawn."""
    both = number_law(predicted, size) * number_law(other, size)[::-1]
    total = both.sum()
    if not total > 0:
        raise ValueError(
            f"{size} targets cannot have been drawn of {predicted.size + other.size}"
            " with these probabilities"
        )
    return np.asarray(both / total)


def _sum_tails(number: checks.IntArray, n: int, observed: int) -> list[float]:
    """The probabilities that a sum over n of some things, drawn uniformly, each of which adds a
    number, is at most what was observed, and at least; none where only one outcome was possible.

    Drawn by themselves with the same chance they are n of them by chance, and then all sets of n
    are alike; so of each number the count is binomial, and the law is that given all counts. It is
    never put together: of what the smaller numbers add and the larger ones, tails are enough.
    """
    value, times = np.unique(number, return_counts=True)
    if value.size < 2 or not 0 < n < number.size:
        return []
    share, half = n / number.size, int(np.searchsorted(np.cumsum(times), number.size / 2)) or 1
    low, high = (
        _counts_law(value[part], times[part], share) for part in (slice(half), slice(half, None))
    )
    at_most = np.pad(np.cumsum(high.law, axis=1), ((0, 0), (1, 0)))
    at_least = np.pad(np.cumsum(high.law[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    tails, total = np.zeros(2), 0.0
    for row, law in enumerate(low.law):
        other = n - (low.first + row) - high.first
        if not 0 <= other < high.law.shape[0]:
            continue
        added = (low.first + row) * low.each + (other + high.first) * high.each
        rest = observed - added - low.least - high.least - np.arange(law.size)
        most = high.law.shape[1]
        tails[0] += law @ at_most[other, np.clip(rest + 1, 0, most)]
        tails[1] += law @ at_least[other, np.clip(rest, 0, most)]
        total += float(law.sum() * high.law[other].sum())
    return [float(tail) / total for tail in tails]


class _CountsLaw(NamedTuple):
    """How many of some things are drawn, each by itself, and what they add up to."""

    law: FloatArray
    """By the count, and by the sum beyond as often what one adds on average, rounded"""
    first: int
    """The first of the counts"""
    least: int
    """The first of the sums"""
    each: int
    """What one adds on average, rounded"""


def _counts_law(value: checks.IntArray, times: checks.IntArray, share: float) -> _CountsLaw:
    """The law of things each of which is drawn with the same chance, without what is too rare."""
    each = int(np.rint(value @ times / times.sum()))
    law, first_count, first_sum = np.ones((1, 1)), 0, 0
    for step, n in zip((value - each).tolist(), times.tolist(), strict=True):
        chance = binom.pmf(np.arange(n + 1), n, share)
        drawn = np.flatnonzero(chance > NOTHING)
        begin, width = int(drawn[0]), int(drawn[-1] - drawn[0])
        before, law = law, np.zeros((law.shape[0] + width, law.shape[1] + abs(step) * width))
        for k in range(width + 1):
            at = step * k if step >= 0 else -step * (width - k)
            law[k : k + before.shape[0], at : at + before.shape[1]] += chance[begin + k] * before
        likely = law > NOTHING
        rows, columns = (np.flatnonzero(likely.any(axis=axis)) for axis in (1, 0))
        law = law[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        first_count += begin + int(rows[0])
        first_sum += step * (begin if step >= 0 else begin + width) + int(columns[0])
    return _CountsLaw(law, first_count, first_sum, each)


def _times(weight: int, law: FloatArray) -> FloatArray:
    """The law of a multiple of a number, from its least value on."""
    if weight == 0:
        return np.ones(1)
    stretched = np.zeros(abs(weight) * (law.size - 1) + 1)
    stretched[:: abs(weight)] = law
    return stretched if weight > 0 else stretched[::-1]


def _mean(law: FloatArray) -> float:
    return float(law @ np.arange(law.size))


def _two_sided(law: FloatArray, observed: int) -> list[float]:
    """The p-value; none where only one outcome was possible."""
    if np.count_nonzero(law) < 2:
        return []
    return _twice([float(law[: observed + 1].sum()), float(law[observed:].sum())])


def _twice(tails: list[float]) -> list[float]:
    """The two-sided p-value of two tails, if there are any."""
    return [min(1.0, 2 * min(tails))] if tails else []
