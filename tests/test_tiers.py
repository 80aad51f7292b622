"""Every test runs in a tier, each tier holds what it says, and the Makefile runs all of them."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiers import TIERS, pytest_collection_modifyitems, tier_of

ROOT = Path(__file__).resolve().parent.parent


class Item:
    """What is asked of a test: its fixtures and its marks."""

    def __init__(
        self, fixtures: str = "", *marks: pytest.MarkDecorator, folder: str = "estimators"
    ) -> None:
        self.nodeid = ""
        self.path = ROOT / "tests" / folder / "test_something.py"
        self.fixturenames = fixtures.split()
        self._marks = [mark.mark for mark in marks]

    def iter_markers(self, name: str = "") -> list[Any]:
        return [mark for mark in self._marks if name in ("", mark.name)]

    def get_closest_marker(self, name: str) -> Any:
        return next(iter(self.iter_markers(name)), None)


EXAMPLES = [
    (Item(), "check"),
    (Item("db", pytest.mark.django_db), "check"),
    (Item("", pytest.mark.statistical), "check"),
    (Item("db", pytest.mark.statistical), "soak"),
    (Item("", pytest.mark.statistical, pytest.mark.django_db), "soak"),
    (Item("chromium live_server", pytest.mark.browser, pytest.mark.walk), "test"),
    (Item("chromium live_server", pytest.mark.browser), "soak"),
    (Item("db", folder="web"), "test"),
    (Item("db", folder="evaluation"), "test"),
    (Item("", folder="evaluation"), "check"),
    (Item("", folder="web"), "check"),
    (Item("db", pytest.mark.slow), "test"),
    (Item("transactional_db"), "test"),
    (Item("", pytest.mark.django_db(transaction=True)), "test"),
    (Item("live_server db"), "test"),
    (Item("", pytest.mark.kill), "test"),
    (Item("", pytest.mark.kill, pytest.mark.soak), "soak"),
    (Item("", pytest.mark.slow, pytest.mark.soak), "soak"),
]
LONGER: Any = Item("", pytest.mark.kill, pytest.mark.longer)


@pytest.mark.parametrize(("item", "tier"), EXAMPLES)
def test_a_test_is_in_the_lowest_tier_that_has_what_it_asks_for(item: Any, tier: str) -> None:
    assert tier_of(item) == tier


def run_by(tier: str | None) -> list[Any]:
    """The examples that run when that tier is asked for."""
    items: list[Any] = [LONGER, *(item for item, _ in EXAMPLES)]
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    config: Any = SimpleNamespace(
        option=SimpleNamespace(tier=tier), hook=hook, args=[], stash=pytest.Stash()
    )
    pytest_collection_modifyitems(config, items)
    return items


def test_check_is_a_part_of_test_and_soak_is_the_rest() -> None:
    check, test, soak = (run_by(tier) for tier in TIERS)
    assert check == [item for item, tier in EXAMPLES if tier == "check"]
    assert set(check) < set(test)
    assert set(test) & set(soak) == {LONGER}
    assert set(test) | set(soak) == set(run_by(None)) == {LONGER, *(item for item, _ in EXAMPLES)}


def test_the_makefile_runs_every_tier() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"--tier (\w+)", makefile)) == set(TIERS)


def test_no_two_files_of_tests_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in set(names) if names.count(name) > 1] == [], "pytest takes one of them"
