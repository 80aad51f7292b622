"""Arrays and files that follow from what never changes are made once, and anew where lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbpo.corpus import cache as module
from kbpo.corpus.cache import NEWEST, Arrays, cached_arrays


class Maker:
    """Makes arrays, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Arrays:
        self.times += 1
        return {"number": np.arange(5), "p of it": np.linspace(0, 1, 3), "none": np.zeros(1)}


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.ARRAYS_ROOT = tmp_path / "arrays"
    return tmp_path / "arrays" / "pool"


def test_what_was_made_once_is_read_and_cannot_be_written_to(folder: Path) -> None:
    maker = Maker()
    for _ in range(3):
        found = cached_arrays("pool", (1, "a"), maker)
        assert found["number"].tolist() == [0, 1, 2, 3, 4]
        assert found["p of it"].tolist() == [0, 0.5, 1]
        with pytest.raises(ValueError, match="read-only"):
            found["number"][0] = 7
    assert maker.times == 1


def test_another_state_is_made_by_itself_and_only_the_newest_stay(folder: Path) -> None:
    maker = Maker()
    for state in range(NEWEST + 2):
        cached_arrays("pool", state, maker)
    assert maker.times == NEWEST + 2
    assert len(list(folder.iterdir())) == NEWEST
    cached_arrays("pool", NEWEST + 1, maker)
    assert maker.times == NEWEST + 2
    cached_arrays("pool", 0, maker)
    assert maker.times == NEWEST + 3


def test_nothing_is_kept_without_a_state_or_a_place(folder: Path, settings: Any) -> None:
    maker = Maker()
    cached_arrays("pool", None, maker)
    settings.ARRAYS_ROOT = None
    cached_arrays("pool", 1, maker)
    assert maker.times == 2
    assert not folder.exists()


def test_a_full_disk_costs_time_and_no_score(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.np, "save", full)
    maker = Maker()
    for _ in range(2):
        assert cached_arrays("pool", 1, maker)["number"].sum() == 10
    assert maker.times == 2
    assert not list(folder.iterdir())
