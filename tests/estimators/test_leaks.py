"""The test of leaked answers: exact over all that may be drawn, and powerful against who reads."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom

from estimators.leaks import (
    ALIKE,
    Channel,
    amount_test,
    amounts_test,
    clearest_splits,
    contrast_test,
    document_test,
    either,
    holm,
    levels,
    number_law,
    share_test,
    verdict_test,
)

PI = np.array([0.2, 0.3, 0.5, 0.5, 0.7, 0.9, 1.0, 0.0])
PREDICTED = np.array([True, False, True, False, True, False, True, False])
STRATUM = np.array([0, 0, 0, 1, 1, 1, 1, 0])


def never_more_often(outcomes: list[tuple[float, float]]) -> None:
    """Each p-value comes up, or a smaller one, with at most that probability."""
    chance, p = (np.array(column) for column in zip(*outcomes, strict=True))
    assert chance.sum() == pytest.approx(1)
    for level in np.unique(p):
        assert chance[p <= level + 1e-12].sum() <= level + 1e-9


@pytest.mark.parametrize("stratum", [None, STRATUM])
def test_over_all_samples_no_p_value_is_too_small(stratum: np.ndarray | None) -> None:
    outcomes = []
    for drawn in product([False, True], repeat=PI.size):
        chance = float(np.where(drawn, PI, 1 - PI).prod())
        if chance > 0:
            found = share_test(PI, drawn, PREDICTED, stratum=stratum)
            outcomes.append((chance, found.p_value))
    never_more_often(outcomes)
    assert min(p for _, p in outcomes) < 0.5, "it can tell something"


def test_over_all_draws_with_replacement_no_p_value_is_too_small() -> None:
    p_predicted = np.array([0.3, 0.3, 0.3, 0.6, 0.6])
    outcomes = []
    for hit in product([False, True], repeat=p_predicted.size):
        found = share_test([], [], [], draw_probability=p_predicted, draw_predicted=hit)
        outcomes.append((float(np.where(hit, p_predicted, 1 - p_predicted).prod()), found.p_value))
    never_more_often(outcomes)


def test_given_the_size_it_is_fishers_test_where_all_are_alike() -> None:
    from scipy.stats import hypergeom

    drawn = np.arange(20) < 8
    predicted = np.isin(np.arange(20), [0, 1, 10, 11, 12, 13, 14, 15])
    found = share_test(np.full(20, 0.4), drawn, predicted)
    lower, upper = hypergeom.cdf(2, 20, 8, 8), hypergeom.sf(1, 20, 8, 8)
    assert found.p_value == pytest.approx(2 * min(lower, upper))
    assert (found.size, found.predicted) == (8, 2)
    assert found.expected == pytest.approx(8 * 8 / 20)


def test_who_deletes_or_adds_what_was_judged_is_found_and_who_did_not_read_is_not() -> None:
    rng = np.random.default_rng(3)
    n = 500
    pi = rng.uniform(0.2, 0.45, n)
    true = rng.random(n) < 0.4
    drawn = rng.random(n) < pi
    honest = rng.random(n) < 0.3 + 0.5 * true
    assert share_test(pi, drawn, honest).p_value > 0.01
    assert share_test(pi, drawn, honest & ~(drawn & ~true)).p_value < 1e-6, "the wrong are deleted"
    assert share_test(pi, drawn, honest & ~(drawn & true)).p_value < 1e-6, "the right are deleted"
    small = rng.random(n) < 0.3
    assert share_test(pi, drawn, small | (drawn & true)).p_value < 1e-4, "the right are added"
    both = (honest | (drawn & true)) & ~(drawn & ~true)
    assert share_test(pi, drawn, both, stratum=honest.astype(int)).p_value < 1e-6


def test_later_verdicts_find_who_hides_what_was_deleted_among_more() -> None:
    rng = np.random.default_rng(4)
    n = 1500
    then, now = np.full(n, 0.3), np.full(n, 0.6)
    u, true = rng.random(n), rng.random(n) < 0.4
    drawn = u < then
    kept = ~(drawn & ~true) & (drawn | (rng.random(n) < 0.4))
    assert share_test(then, drawn, kept).p_value > 0.01, "as much is deleted of what was not judged"
    judged = kept & (u < now)
    found = share_test((then / now)[judged], drawn[judged], true[judged])
    assert found.p_value < 1e-9 and found.predicted > found.expected


def test_over_all_samples_no_p_value_of_a_contrast_is_too_small() -> None:
    pi = np.array([0.2, 0.3, 0.5, 0.4, 0.5, 0.3, 0.5, 0.5, 0.6, 1.0, 0.0])
    predicted = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1], dtype=bool)
    level = np.array([0, 0, 0, 0, 3, 3, 3, 3, 2, 1, 0])
    outcomes = []
    for drawn in product([False, True], repeat=pi.size):
        chance = float(np.where(drawn, pi, 1 - pi).prod())
        if chance > 0:
            outcomes.append((chance, contrast_test(pi, drawn, predicted, level).p_value))
    never_more_often(outcomes)
    assert min(p for _, p in outcomes) < 0.2, "it can tell something"


def test_over_all_draws_with_replacement_no_p_value_of_a_contrast_is_too_small() -> None:
    p_predicted, level = np.array([0.3, 0.3, 0.7, 0.7, 0.7, 0.5]), [0, 0, 3, 3, 3, 2]
    outcomes = []
    for hit in product([False, True], repeat=p_predicted.size):
        found = contrast_test(
            [], [], [], [], draw_probability=p_predicted, draw_predicted=hit, draw_level=level
        )
        outcomes.append((float(np.where(hit, p_predicted, 1 - p_predicted).prod()), found.p_value))
    never_more_often(outcomes)
    assert min(p for _, p in outcomes) < 0.1, "it can tell something"


def test_who_hides_what_was_deleted_among_more_is_found_by_what_others_state() -> None:
    rng = np.random.default_rng(5)
    n = 1500
    pi, true = np.full(n, 0.2), rng.random(n) < 0.5
    others = rng.binomial(8, np.where(true, 0.55, 0.35))
    drawn = rng.random(n) < pi
    hidden = ~(drawn & ~true) & (drawn | (rng.random(n) < 0.5))
    level = levels(others, pi)
    assert share_test(pi, drawn, hidden).p_value > 0.001, "as much is deleted elsewhere"
    found = contrast_test(pi, drawn, hidden, level)
    assert found.p_value < 1e-5 and found.predicted < found.expected
    better = rng.random(n) < 0.2 + 0.7 * true
    assert contrast_test(pi, drawn, better, level).p_value > 0.01, "an honest run that is better"


def test_levels_hold_as_many_draws_each_and_equals_stay_together() -> None:
    pi = np.array([0.1, 0.4, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1])
    assert levels(np.arange(8), pi).tolist() == [0, 0, 1, 2, 3, 3, 3, 3]
    assert set(levels(np.ones(8), pi).tolist()) == {2}, "nothing tells them apart"
    assert levels([], []).size == 0
    with pytest.raises(ValueError, match="must have 8 entries"):
        levels([1.0], pi)
    with pytest.raises(ValueError, match="must have a level"):
        contrast_test(pi, pi > 1, pi > 1, [0])
    with pytest.raises(ValueError, match="0 to 3"):
        contrast_test([0.5], [True], [True], [4])


def test_what_can_tell_nothing_says_so() -> None:
    assert share_test([], [], []).p_value == 1
    assert share_test([0.5, 1.0], [True, True], [True, True]).p_value == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1.5], [True], [True]), "1.5"),
        (([0.5], [True, False], [True]), r"\(2,\)"),
        (([0.5, 0.5], [True, False], [True]), r"\(1,\)"),
    ],
)
def test_what_is_at_fault_is_named(arguments: tuple[list[float], ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        share_test(*arguments)


def test_the_law_of_a_number_and_holms_adjustment() -> None:
    np.testing.assert_allclose(number_law([0.1, 0.5, 0.9], 3), [0.045, 0.455, 0.455, 0.045])
    np.testing.assert_allclose(number_law([0.1, 0.5, 0.9], 1), [0.045, 0.455])
    np.testing.assert_allclose(holm([0.01, 0.5, 0.02]), [0.03, 0.5, 0.04])
    assert holm([]).size == 0


@pytest.mark.parametrize("stratum", [None, np.arange(14) % 2])
@pytest.mark.parametrize("lacks", [[0, 2, 3, 9], [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]])
def test_over_all_draws_of_documents_no_p_value_is_too_small(
    stratum: np.ndarray | None, lacks: list[int]
) -> None:
    document = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 5, 6, 6])
    predicted = ~np.isin(np.arange(14), lacks)
    outcomes = []
    for some in combinations(range(9), 4):  # in two of them there is nothing
        found = document_test(document, np.isin(document, some), predicted, stratum=stratum)
        outcomes.append((1 / 126, found.p_value))
    never_more_often(outcomes)
    assert min(p for _, p in outcomes) < 0.3, "it can tell something"


def test_who_deletes_or_adds_what_was_read_in_documents_is_found_and_who_did_not_is_not() -> None:
    rng = np.random.default_rng(3)
    document = rng.integers(0, 300, 1200)
    true = rng.random(1200) < 0.4
    read = np.isin(document, rng.choice(300, 40, replace=False))
    honest = rng.random(1200) < 0.3 + 0.5 * true
    assert document_test(document, read, honest).p_value > 0.01
    assert document_test(document, read, np.ones(1200, dtype=bool)).p_value == 1, "a copy"
    assert document_test(document, read, ~(read & ~true)).p_value < 1e-9, "the wrong are deleted"
    assert document_test(document, read, ~(read & true)).p_value < 1e-6, "the right are deleted"
    of_another = (honest | (read & true)) & ~(read & ~true)
    base = honest.astype(int)
    assert document_test(document, read, of_another, stratum=base).p_value < 1e-6
    with pytest.raises(ValueError, match="for all of its targets or for none"):
        document_test([0, 0], [True, False], [True, True])


@pytest.mark.parametrize("stratum", [None, np.arange(14) % 2])
@pytest.mark.parametrize("right", [[0, 2, 3, 9], [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]])
def test_over_all_draws_of_documents_no_p_value_of_verdicts_is_too_small(
    stratum: np.ndarray | None, right: list[int]
) -> None:
    """In drawn documents all is found that is right, in others what has a number below `ALIKE`."""
    document = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 5, 6, 6])
    is_right, uniform = np.isin(np.arange(14), right), np.random.default_rng(1).random(14)
    assert (uniform[right] >= ALIKE).any()
    outcomes = []
    for some in combinations(range(9), 4):  # in two of them nothing was asked
        drawn = np.isin(document, some)
        said = is_right & (drawn | (uniform < ALIKE))
        found = verdict_test(document, drawn, said, uniform, stratum=stratum)
        outcomes.append((1 / 126, found.p_value))
    never_more_often(outcomes)


def test_who_is_right_where_documents_were_read_alone_is_found_and_who_is_elsewhere_is_not() -> (
    None
):
    rng = np.random.default_rng(7)
    document, uniform = rng.integers(0, 300, 400), rng.random(400)
    read = np.isin(document, rng.choice(300, 60, replace=False))
    honest = rng.random(400) < 0.9
    crowd = np.where(read, honest, honest & (rng.random(400) < 0.75))
    assert verdict_test(document, read, crowd, uniform).p_value > 0.01, "readers miss nothing"
    assert verdict_test(document, read, ~read, uniform).p_value == 1
    found = verdict_test(document, read, read | (rng.random(400) < 0.3), uniform)
    assert found.p_value < 1e-6 and found.predicted > found.expected
    new = rng.random(400) < 0.5
    hidden = np.where(new, read, ~read)
    assert verdict_test(document, read, hidden, uniform).p_value > 0.01
    apart = verdict_test(document, read, hidden, uniform, stratum=new.astype(int))
    assert apart.p_value < 1e-6, "right in what is new there, and elsewhere in what is not"
    assert verdict_test([], [], [], []).p_value == 1
    with pytest.raises(ValueError, match="for all of its targets or for none"):
        verdict_test([0, 0], [True, False], [True, True], [0.5, 0.5])
    with pytest.raises(ValueError, match="as many entries"):
        verdict_test([0, 0], [True, True], [True, True], [0.5])


def test_where_people_miss_a_quarter_of_what_readers_find_no_honest_run_is_flagged() -> None:
    """It is right in 90 %, in documents of very unequal sizes; 450 questions are answered."""
    rng, n, runs = np.random.default_rng(11), 450, 150
    size = rng.pareto(1.5, 500)
    p_values = []
    for _ in range(runs):
        document, uniform = rng.choice(500, n, p=size / size.sum()), rng.random(n)
        read = np.isin(document, rng.choice(500, 100, replace=False))
        right = (rng.random(n) < 0.9) & (read | (rng.random(n) < 0.75))
        p_values.append(verdict_test(document, read, right, uniform).p_value)
    flagged = int((np.array(p_values) <= 0.001).sum())
    assert flagged <= binom.ppf(0.99, runs, 0.001)


@pytest.mark.parametrize(
    "amount", [[0, 0, 0, 1, 1, 2, 5, 9, 30], [1, 1, 1, 1, 0, 0, 0, 0, 0], [2] * 9]
)
def test_over_all_draws_of_documents_no_p_value_of_an_amount_is_too_small(
    amount: list[int],
) -> None:
    found = [amount_test(amount, np.isin(np.arange(9), some)) for some in combinations(range(9), 4)]
    never_more_often([(1 / 126, test.p_value) for test in found])
    expected = np.mean([test.predicted for test in found])
    assert found[0].expected == pytest.approx(expected) and found[0].size == 4


def test_who_says_more_where_documents_were_read_is_found_and_who_does_not_is_not() -> None:
    rng = np.random.default_rng(4)
    said = rng.poisson(6, 300) * rng.integers(1, 5, 300)
    read = np.isin(np.arange(300), rng.choice(300, 40, replace=False))
    assert amount_test(said, read).p_value > 0.01
    assert amount_test(said + 15 * read, read).p_value < 1e-6
    assert amount_test(said * ~read, read).p_value < 1e-6
    assert amount_test(said * ~read, read, more=True).p_value == 1
    long = amount_test(
        np.where(~read & (np.arange(300) == np.argmin(read)), 9e4, said + 15 * read),
        read,
        more=True,
    )
    assert long.predicted > long.expected and long.p_value < 1e-6, "one document decides nothing"
    less, new = said * ~read, said + 15 * read
    assert amounts_test(less, less, read).p_value < 1e-6
    assert amounts_test(less, less, read, may_look=True).p_value == 1, "it may leave out the wrong"
    assert amounts_test(less, new, read, may_look=True).p_value < 1e-6
    assert amount_test(np.ones(300), read).p_value == 1
    assert amount_test(said, np.zeros(300)).p_value == amount_test([], []).p_value == 1
    with pytest.raises(ValueError, match="must not be negative"):
        amount_test([-1.0], [True])
    with pytest.raises(ValueError, match="as many entries"):
        amount_test([1.0], [True, False])


def test_of_many_documents_the_test_is_as_exact_and_does_not_take_long() -> None:
    from time import perf_counter

    from scipy.stats import hypergeom

    rng = np.random.default_rng(5)
    read = np.arange(2000) < 600
    says = rng.random(2000) < np.where(read, 0.35, 0.4)
    alike = hypergeom(2000, int(says.sum()), 600).cdf(int((says & read).sum()))
    assert amount_test(says, read).p_value == pytest.approx(2 * alike, rel=1e-9)
    begin = perf_counter()
    found = amount_test(rng.poisson(5, 2000) + (rng.random(2000) < 0.8) * read, read)
    assert perf_counter() - begin < 2, "half a minute, if all sums of all counts are worked out"
    assert 1e-9 < found.p_value < 1e-3


def test_two_ways_to_have_read_are_two_tests() -> None:
    nothing = document_test([], [], [])
    clear = share_test(np.full(12, 0.5), np.arange(12) < 6, np.arange(12) >= 6)
    assert either(clear, nothing) == clear
    assert either(nothing, clear) == clear
    weak = document_test(np.arange(4), [True, False, False, False], [True, True, True, False])
    assert either(weak, clear).p_value == pytest.approx(2 * clear.p_value)


def test_over_all_samples_no_p_value_of_the_clearest_split_is_too_small() -> None:
    """However the split is chosen that is tested, its p-value counts as often as there are some."""
    values = np.array([3.0, 1, 4, 1, 5, 9, 2, 6]), np.array([2.0, 7, 1, 8, 2, 8, 1, 8])
    channels = [
        Channel("a", np.ones(8, dtype=bool), values[0]),
        Channel("b", np.arange(8) != 2, values[1]),
    ]
    pi = np.array([0.2, 0.8, 0.5, 0.5, 0.3, 0.6, 0.7, 0.4])
    outcomes = []
    for outcome in product([False, True], repeat=8):
        drawn = np.array(outcome)
        splits, number = clearest_splits(channels, [(drawn, pi), (~drawn, 1 - pi)])
        tests = [
            share_test(pi[split.among], drawn[split.among], split.above[split.among])
            for split in splits
        ]
        p = min(1.0, number * min(test.p_value for test in tests))
        outcomes.append((float(np.where(drawn, pi, 1 - pi).prod()), p))
    never_more_often(outcomes)
    assert min(p for _, p in outcomes) < 0.5, "it can tell something"


def test_the_clearest_split_is_where_what_was_drawn_lies_apart() -> None:
    rng = np.random.default_rng(3)
    n = 400
    pi, value = np.full(n, 0.4), rng.random(n)
    drawn = rng.random(n) < np.where(value > 0.9, 0.95, 0.35)
    noise = Channel("noise", np.ones(n, dtype=bool), rng.random(n))
    told = Channel("told", np.ones(n, dtype=bool), value)
    [best, *rest], number = clearest_splits([noise, told], [(drawn, pi), (~drawn, 1 - pi)])
    assert (best.name, number, len(rest)) == ("told", 18, 2)
    assert value[best.above].min() == pytest.approx(0.9, abs=0.03)
    same = Channel("same", np.ones(n, dtype=bool), np.ones(n))
    nobody = Channel("nobody", np.zeros(n, dtype=bool), value)
    assert clearest_splits([same, nobody], [(drawn, pi)]) == ([], 0)
    with pytest.raises(ValueError, match="as many targets"):
        clearest_splits([told], [(drawn[1:], pi[1:])])


def test_the_numbers_of_a_test_lie_on_the_side_of_its_p_value() -> None:
    """Of documents read the run says more in each, and yet less in all; of two strata one is
    predicted too seldom, the other as often as chance has it, or too often; and so on.
    """
    read = np.arange(60) < 20
    amount = np.where(read, 3 + np.arange(60) % 2, 1)
    amount[40] = 900
    said = amount_test(amount, read)
    assert said.p_value < 1e-3 and said.predicted > said.expected

    drawn, half = np.arange(200) % 4 == 0, np.arange(200) < 100
    lacks = np.where(half, ~drawn, np.arange(200) % 4 < 2)
    both = share_test(np.full(200, 0.25), drawn, lacks, stratum=half.astype(int))
    assert both.p_value < 1e-3 and (both.size, both.predicted) == (25, 0) and both.expected > 15

    document = np.repeat(np.arange(40), np.where(np.arange(40) < 12, 9, 3))
    is_read = document < 12
    within = np.concatenate([np.arange(9 if one < 12 else 3) for one in range(40)])
    predicted = np.where(is_read, within >= 3, within < 3)
    fewer = document_test(document, is_read, predicted)
    assert fewer.p_value < 1e-3 and fewer.predicted < fewer.expected


def test_the_numbers_of_a_contrast_lie_on_its_side_where_the_lower_half_does_not() -> None:
    level = np.repeat([0, 1, 2, 3], 60)
    drawn = np.tile(np.arange(60) < 30, 4)
    at = np.tile(np.arange(60), 4)
    lacks = {0: (0, 25), 1: (30, 60)}  # of level 0 what was drawn, of level 1 all that was not
    predicted = np.full(240, True)
    for number, (begin, end) in lacks.items():
        predicted[(level == number) & (begin <= at) & (at < end)] = False
    found = contrast_test(np.full(240, 0.5), drawn, predicted, level)
    assert found.p_value < 0.01 and found.of_unlikely
    assert found.predicted < found.expected and found.size == 30, "those of the lowest level alone"
