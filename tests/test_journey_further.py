"""More is ordered over HTTP after scoring, by two presses at once: paid once, judged by people, a
narrower interval.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from processes import Service, wait_for
from travel import make_travel

pytestmark = [pytest.mark.journey, pytest.mark.soak]
RUN = "Harbor_2"
SUMS = """
    SELECT kind, sum(amount), count(*) FROM money_ledger
    WHERE track_id = (SELECT id FROM tracks_track WHERE slug = %s)
        AND purpose_kind <> 'tutorial' GROUP BY 1
"""
OPEN = """
    SELECT coalesce(sum(CASE kind WHEN 'reserve' THEN amount ELSE -amount END), 0) FROM money_ledger
    WHERE purpose_kind <> 'tutorial'
"""
ORDERS = "SELECT key, amount FROM money_ledger WHERE key LIKE 'order:%%'"


def half_width(told: dict[str, Any]) -> float:
    """Half of the 80 % interval of the guaranteed number."""
    wanted = ("precision", "correct", "entity_relation", "centred")
    names = ("quantity", "criterion", "distribution", "method")
    [found] = [one for one in told["scores"] if tuple(one[name] for name in names) == wanted]
    return float(found["high80"] - found["low80"]) / 2


def test_more_is_ordered_judged_and_paid_once(service: Service, tmp_path: Path) -> None:
    travel = make_travel(service, tmp_path, "Further", seed=5, design="poisson")
    with travel.judging():
        first = travel.travel(RUN)
        [pk] = travel.submissions
        before, answers = half_width(first), travel.work.answers
        offer = wait_for(lambda: travel.told(pk)["further"], "what more would take")
        width = min(offer["options"])
        said = {"half_width": width, "order": offer["order"]}
        with ThreadPoolExecutor(2) as presses:
            told = list(
                presses.map(lambda _: travel.call(f"submissions/{pk}/order/", RUN, said), range(2))
            )
        assert [one["orders"] for one in told] == [1, 1]
        assert travel.service.fetch(ORDERS) == [
            (f"order:{pk}:1", Decimal(offer["options"][width]["at_most"]))
        ]
        after = travel.follow(pk, "scored")
        wait_for(
            lambda: travel.service.fetch(OPEN)[0][0] == 0, "what was not needed to be given back"
        )
    assert travel.work.answers > answers
    assert half_width(after) < before
    # Where judgments happen to differ more than was to be expected, it is a little wider.
    assert after["stage_reason"] != "target" or half_width(after) < 1.25 * float(width)
    sums = {kind: amount for kind, amount, _ in travel.rows(SUMS)}
    assert sums["spend"] == travel.work.answers * Decimal("0.05")
    assert sums["reserve"] == sums["spend"] + sums.get("release", 0)
    assert travel.work.errors == []
