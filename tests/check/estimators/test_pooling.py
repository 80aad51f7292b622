"""Tests of estimators.pooling: the worked example of the literature, and what leaving a team out
can and cannot do.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators import pooling

NAN = float("nan")
# Chaganty 2018, figure 3.2: instances 1 to 6 with the relations that they predict; systems A, B and
# C of a team each.
RELATION = np.array([1, 2, 3, 2, 3, 4])
LABEL = np.array([1, 1, 1, 1, 0, 1])
HUMAN = np.array([1, 1, 1, 0, 0, 0])
A, B, C = [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 1]
MEMBER = np.column_stack([A, B, C])
EXAMPLE = {
    "membership": MEMBER,
    "label": LABEL,
    "relation": RELATION,
    "team": [0, 1, 2],
    "human": HUMAN,
}


def test_the_worked_example():
    bias = pooling.pooling_bias(**EXAMPLE)
    assert bias.true.precision == pytest.approx([1, 1 / 2, 1])
    assert bias.true.recall == pytest.approx([2 / 4, 1 / 4, 3 / 4])
    assert bias.unpooled.precision[2] == pytest.approx(2 / 3)
    assert bias.unpooled.recall[2] == pytest.approx(2 / 3)
    assert bias.precision == pytest.approx([0, 0, 1 / 3])
    assert bias.recall[2] == pytest.approx(3 / 4 - 2 / 3)
    assert bias.f1[2] == pytest.approx(6 / 7 - 2 / 3)


def test_any_document_will_do_for_anydoc():
    bias = pooling.pooling_bias(**EXAMPLE, metric="anydoc")
    assert bias.true.precision == pytest.approx([1, 1, 1])
    assert bias.true.recall == pytest.approx([2 / 4, 2 / 4, 3 / 4])
    assert bias.unpooled.precision[2] == pytest.approx(2 / 3)
    assert bias.precision[:2] == pytest.approx([0, 0])


def test_a_teams_systems_leave_the_pool_together():
    # B's instance 4 is also C's: in one team with C it is nobody else's find. Relation 2 stays,
    # through instance 2.
    bias = pooling.pooling_bias(**{**EXAMPLE, "team": [0, 7, 7]})
    assert bias.unpooled.precision == pytest.approx([1, 0, 1 / 3])
    assert bias.unpooled.recall == pytest.approx([2 / 4, 0, 1 / 3])


def test_what_people_found_stays():
    bias = pooling.pooling_bias(**{**EXAMPLE, "human": np.ones(6)})
    assert bias.precision == pytest.approx([0, 0, 0])
    assert bias.recall == pytest.approx([0, 0, 0])


def test_one_system_alone_keeps_only_what_people_found():
    bias = pooling.pooling_bias(MEMBER[:, [2]], LABEL, RELATION, [0], human=HUMAN)
    assert bias.unpooled.precision == pytest.approx([1 / 3])
    assert bias.unpooled.recall == pytest.approx([1 / 3])


def test_identical_systems_of_two_teams_lose_nothing():
    bias = pooling.pooling_bias(np.column_stack([C, C]), LABEL, RELATION, [0, 1], human=HUMAN)
    assert bias.f1 == pytest.approx([0, 0])


def test_the_undefined_is_nan():
    silent = pooling.pooling_bias(np.zeros((6, 1)), LABEL, RELATION, [0], human=HUMAN)
    assert np.isnan(silent.true.precision).all()
    assert silent.true.recall.tolist() == [0]
    all_wrong = pooling.pooling_bias(MEMBER, np.zeros(6), RELATION, [0, 1, 2], human=HUMAN)
    assert all_wrong.true.precision.tolist() == [0, 0, 0]
    assert np.isnan(all_wrong.true.recall).all()
    wrong_only = pooling.pooling_bias(
        np.column_stack([[0, 0, 0, 0, 1, 0]]), LABEL, RELATION, [0], human=HUMAN
    )
    assert wrong_only.true.f1.tolist() == [0]
    unassessed = pooling.pooling_bias(MEMBER, np.full(6, NAN), RELATION, [0, 1, 2], human=HUMAN)
    assert unassessed.true.precision.tolist() == [0, 0, 0]
    empty = pooling.pooling_bias(np.zeros((0, 2)), [], np.zeros(0, dtype=int), [0, 1], human=[])
    assert np.isnan(empty.true.f1).all()


tables = st.lists(st.tuples(*[st.integers(0, 1)] * 5, st.integers(0, 3)), min_size=1, max_size=12)


@given(rows=tables, metric=st.sampled_from(pooling.METRICS))
def test_precision_is_never_overrated_and_without_unique_finds_nothing_changes(rows, metric):
    table = np.array(rows)
    member, label, human, relation = table[:, :3], table[:, 3], table[:, 4], table[:, 5]
    bias = pooling.pooling_bias(member, label, relation, [0, 1, 1], human=human, metric=metric)
    defined = ~np.isnan(bias.true.precision)
    assert (bias.precision[defined] >= 0).all()
    shared = (member.sum(axis=1) != 1) & ~((member[:, 0] == 0) & (member[:, 1:].all(axis=1))) | (
        human == 1
    )
    if shared.all():
        assert bias.precision[defined] == pytest.approx(0)


@given(rows=tables, order=st.permutations(range(3)))
def test_renaming_systems_renames_the_bias(rows, order):
    table, order, team = np.array(rows), np.array(order), np.array([4, 9, 9])
    arguments = {"label": table[:, 3], "relation": table[:, 5], "human": table[:, 4]}
    here = pooling.pooling_bias(table[:, :3], team=team, **arguments)
    there = pooling.pooling_bias(table[:, order], team=team[order], **arguments)
    for name in ("precision", "recall", "f1"):
        assert np.array_equal(getattr(there, name), getattr(here, name)[order], equal_nan=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "lenient"}, "got 'lenient'"),
        ({"label": [1, 1, 1, 1, 0.5, 1]}, r"got 0\.5"),
        ({"label": [1]}, r"shape \(6,\)"),
        ({"membership": MEMBER * 2}, "membership must be 0 or 1"),
        ({"membership": A}, "two dimensions"),
        ({"human": [1, 0]}, r"human must have shape \(6,\)"),
        ({"team": [0, 1]}, r"team must have shape \(3,\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        pooling.pooling_bias(**{**EXAMPLE, **change})
