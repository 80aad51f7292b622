"""The contracts say what they cannot do in words, or do nothing: no caller meets a half-made
part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from annotation.platforms.base import Platform, Refused
from annotation.platforms.pool.platform import Pool
from kbpo.tracks.base import Criterion, Track

CALLS: dict[str, Callable[[Platform, Any], object]] = {
    "renew": lambda pool, row: pool.renew(row, row),
    "dispose": lambda pool, row: pool.dispose(row),
    "qualify": lambda pool, row: pool.qualify(row, "tutorial", True),
    "compensate": lambda pool, row: pool.compensate(row),
    "message": lambda pool, row: pool.message(row, "subject", "text"),
}


@pytest.mark.parametrize("name", CALLS)
def test_our_own_pages_refuse_in_a_sentence_what_only_a_marketplace_can_do(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        CALLS[name](Pool(), None)
    assert str(refusal.value).endswith(".") and len(str(refusal.value)) > 40


def test_a_track_that_experts_cannot_check_says_nothing_of_any_answer() -> None:
    class Plain(Track):
        kind, criteria = "plain", (Criterion("overall", "Overall"),)
        new_report = read = store = questions = judge = None  # type: ignore[assignment]
        unanswered = verdicts = describe = None  # type: ignore[assignment]

    plain = Plain(None)  # type: ignore[arg-type]
    assert list(plain.again([1, 2])) == []
    found = plain.rejudge(np.array([1, 2, 3]), [7, 8], {1: {1: {}}})
    assert (
        set(found) == {"overall"}
        and found["overall"].shape == (3, 2)
        and np.isnan(found["overall"]).all()
    )
