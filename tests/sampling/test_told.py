"""A plan that is shown before anything is paid says of no single relation whether others had it
judged.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from annotation.budget.give_back import give_back
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.sampling.designs import design_of
from kbpo.sampling.disclosure_control import FEW, STEP, _told
from tests.conftest import Toy
from tests.evaluation.replay import Replay

N = 300


def option(targets: int, new: int, bound: int | None = None) -> dict[str, Any]:
    more = {} if bound is None else {"new_at_most": bound}
    return {
        "targets": targets,
        "judged": targets - new,
        "new": new,
        "each": "0.15",
        "at_most": "9",
        "seconds_each": 60,
        "work_seconds": 60 * new,
    } | more


@pytest.mark.parametrize("own", [1, 5, FEW - 1])
def test_of_few_nothing_is_told(own: int) -> None:
    said = {
        str(_told(option(own, new, new), own, shift))
        for new in range(own + 1)
        for shift in range(STEP)
    }
    assert len(said) == 1
    found = _told(option(own, 0, 0), own, 0)
    assert (found["told"], found["new"], found["judged"]) == ("hidden", own, 0)
    assert Decimal(found["at_most"]) == Decimal("0.15") * own and found["work_seconds"] == 60 * own


def test_counts_are_multiples_that_suffice() -> None:
    for n in range(FEW, 90, 3):
        for new in range(0, n + 1, 7):
            for shift in range(STEP):
                found = _told(option(n, new, new + 5), 500, shift)
                assert found["told"] == "rounded"
                assert found["targets"] % STEP == found["judged"] % STEP == 0
                assert found["targets"] == found["judged"] + found["new"] >= n
                assert new <= found["new"] <= new + 4 * STEP
                assert found["new_at_most"] >= max(found["new"], new + 5)
                assert Decimal(found["at_most"]) == Decimal("0.15") * found["new_at_most"]


def test_a_line_more_changes_what_is_told_one_time_in_ten_wherever_the_count_stands() -> None:
    """Two drafts that differ by a line have their rounding fall in places that nobody can foresee
    or choose.
    """
    for judged in range(60):
        one, other = (
            [_told(option(60, 60 - j), 500, shift)["judged"] for shift in range(STEP)]
            for j in (judged, judged + 1)
        )
        assert sum(a != b for a, b in zip(one, other, strict=True)) <= 1


@pytest.mark.django_db
def test_the_first_plan_of_a_corpus_is_exact(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    row = world.upload("Patterns", range(N))
    exact = design_of(toy.track).options(row, ["0.050"])["0.050"]
    assert row.plan["options"]["0.050"] == exact | {"told": "exact"}


@pytest.mark.django_db
@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_a_draft_of_one_line_says_nothing_of_it(toy: Toy, design: str) -> None:
    world = Replay.of(toy, N, 0.5, design=design)
    world.judge(world.upload("Patterns", range(N)))
    judged = set(Label.objects.values_list("target_id", flat=True))
    known = next(at for at in range(N) if world.target[at] in judged)
    unknown = next(at for at in range(N) if world.target[at] not in judged)
    rows = [world.upload("Neural", [at]) for at in (known, unknown)]
    plans = [row.plan["options"] for row in rows]
    assert plans[0] == plans[1], "the plans are one and the same"
    assert {one["told"] for one in plans[0].values()} == {"hidden"}
    exact = [design_of(toy.track).options(row, ["0.050"])["0.050"]["new"] for row in rows]
    assert exact == [0, 1], "which the counts themselves would give away"


@pytest.mark.django_db
def test_two_drafts_that_differ_by_a_line_are_told_in_tens_and_the_price_suffices(toy: Toy) -> None:
    world = Replay.of(toy, N, 0.5)
    world.judge(world.upload("Patterns", range(N)))
    judged = set(Label.objects.values_list("target_id", flat=True))
    known = next(at for at in range(N) if world.target[at] in judged)
    base = [at for at in range(N) if at != known and at % 3]
    drafts = [world.upload("Neural", some) for some in (base, [*base, known])]
    for row in drafts:
        for one in row.plan["options"].values():
            assert one["told"] == "rounded"
            assert one["judged"] % STEP == 0
            assert one["targets"] % STEP == 0 or one["targets"] == row.counts["relations"]
    again = world.upload("Neural", base)
    assert again.plan["options"] == drafts[0].plan["options"], "the same lines are told the same"
    exact = design_of(toy.track).options(again, list(again.plan["options"]))
    for width, one in again.plan["options"].items():
        assert Decimal(one["at_most"]) >= Decimal(exact[width]["at_most"])
    row = world.judge(again)
    assert row.stage_reason == "target", "what was reserved was enough"
    give_back(row)
    assert balance(purpose=row.purpose).open == 0, "and what was not needed went back"
