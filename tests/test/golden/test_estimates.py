"""Every number of two fixed worlds is what it was:
estimates, interim intervals, comparisons, batches and plans.

The numbers are in `estimates/`, a file a world. Where a change means to change one, write them anew
and say so in the commit:

    GOLDEN=write .venv/bin/python -m pytest tests/test/golden
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.test.golden.worlds import WORLDS, kept, read, written

HERE = Path(__file__).parent / "estimates"
RELATIVE, ABSOLUTE = 1e-12, 1e-14
SHOWN = 12
"""Differences that are told."""


@pytest.fixture
def _at_once(settings: Any) -> None:
    settings.DEBOUNCE_SECONDS = 0


@pytest.mark.django_db
@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(
    "on_disk",
    [
        pytest.param(True, id="kept on disk"),
        pytest.param(False, id="read anew", marks=pytest.mark.soak),
    ],
)
def test_every_number_of_a_fixed_world_is_what_it_was(
    name: str, on_disk: bool, tmp_path: Path, settings: Any
) -> None:
    settings.ARRAYS_ROOT = tmp_path / "arrays" if on_disk else None
    now = kept(WORLDS[name](tmp_path))
    assert not on_disk or list((tmp_path / "arrays").iterdir())
    path = HERE / f"{name}.tsv"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(written(now), encoding="utf-8")
        pytest.skip(f"{path.name} was written anew")
    wrong = differences(read(path), now)
    assert not wrong, f"{len(wrong)} numbers of {name} have changed:\n" + "\n".join(wrong[:SHOWN])


def differences(before: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[str]:
    """A line for every row that is missing, is new, or has another value in some column."""
    wrong = [f"{name}: is no more" for name in before if name not in now]
    wrong += [f"{name}: is new" for name in now if name not in before]
    for name in sorted(before.keys() & now.keys()):
        for column in before[name].keys() | now[name].keys():
            old, new = (rows[name].get(column, "no such column") for rows in (before, now))
            if not same(old, new):
                wrong.append(f"{name}: {column} was {old!r}, is {new!r}")
    return wrong


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int) and not isinstance(other, bool):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(one == other)


def test_a_number_that_moves_in_the_eleventh_digit_is_seen() -> None:
    rows = {"a": {"value": 0.5, "n": 3}, "b": {"value": None, "n": 0}}
    assert (
        differences(rows, {"a": {"value": 0.5 + 1e-13, "n": 3}, "b": {"value": None, "n": 0}}) == []
    )
    assert len(differences(rows, {"a": {"value": 0.5 + 1e-11, "n": 4}, "c": {"value": 1.0}})) == 4
