"""What is told of a draft before anybody confirms depends on no hidden judgment. The price suffices
all the same.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from undone import undone

from annotation.budget.give_back import release_unneeded_money
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N = 300


def plans(world: Replay) -> dict[str, Any]:
    """The plans of drafts of a team, as the API tells them, after another team's run was judged."""
    world.judge(world.upload("Patterns", range(N)))
    drafts = {"all": range(N), "some": range(40, 200), "few": range(30, 36), "one": [17]}
    return {name: world.upload("Neural", which).plan for name, which in drafts.items()}


@pytest.mark.parametrize("design", [pytest.param("poisson", marks=pytest.mark.soak), "iid"])
def test_worlds_that_differ_in_hidden_judgments_alone_plan_the_same(toy: Toy, design: str) -> None:
    told = []
    for flip in (False, True):
        with undone():
            world = Replay.of(toy, N, 0.2, design=design)
            # other answers, and so other stages, thresholds and judged targets
            world.true = ~world.true if flip else world.true
            told.append(plans(world))
    for plan in (plan for some in told for plan in some.values()):
        plan.pop("allowance")  # of the track, whose spending is public
    assert told[0] == told[1]


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_a_draft_says_of_no_relation_whether_others_had_it_judged(toy: Toy, design: str) -> None:
    world, _ = Replay.judged(toy, N, 0.5, design=design)
    judged = set(Label.objects.values_list("target_id", flat=True))
    known = next(at for at in range(N) if world.target[at] in judged)
    unknown = next(at for at in range(N) if world.target[at] not in judged)
    first, second = (world.upload("Neural", [at]).plan["options"] for at in (known, unknown))
    assert first == second
    assert {one["new"] for one in first.values()} == {1}


@pytest.mark.parametrize("design", ["poisson", pytest.param("iid", marks=pytest.mark.soak)])
def test_the_price_that_was_told_suffices_and_what_others_had_judged_goes_back(
    toy: Toy, design: str
) -> None:
    world, _ = Replay.judged(toy, N, 0.5, design=design)
    before = Label.objects.filter(target__in=world.target).count()
    row = world.upload("Neural", range(20, N))
    option = row.plan["options"]["0.050"]
    assert option["judged"] == 0 < option["new"]
    world.judge(row)
    assert row.stage_reason == "target"
    new = Label.objects.filter(target__in=world.target).count() - before
    assert new < option["new"] / 2, "others' judgments counted"
    assert Decimal(option["each"]) * new <= Decimal(option["at_most"])
    release_unneeded_money(row)
    assert balance(purpose=row.purpose).open == 0
