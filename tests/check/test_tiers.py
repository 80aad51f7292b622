"""Every test runs in the tier of its folder, and the Makefile runs all tiers."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiers import TESTS, TIERS, runs_in, tier_of


def item(folder: str, *names: str) -> Any:
    """What is asked of a test: where it lies, and its marks."""
    marks = [SimpleNamespace(name=name) for name in names]
    return SimpleNamespace(
        path=TESTS / folder / "test_something.py",
        iter_markers=lambda: marks,
        get_closest_marker=lambda name: name in names,
    )


@pytest.mark.parametrize(
    ("folder", "marks", "tier"),
    [
        ("check/estimators", (), "check"),
        ("test/web", (), "test"),
        ("soak/web", (), "soak"),
        ("check", ("soak",), "soak"),
        ("test/web", ("browser",), "soak"),
        ("test/web", ("browser", "walk"), "test"),
    ],
)
def test_the_folder_of_a_test_says_its_tier(folder: str, marks: tuple[str, ...], tier: str) -> None:
    one = item(folder, *marks)
    assert tier_of(one) == tier
    assert [wanted for wanted in TIERS if runs_in(one, wanted)] == {
        "check": ["check", "test"],
        "test": ["test"],
        "soak": ["soak"],
    }[tier]


def test_some_tests_run_longer_in_a_soak() -> None:
    assert runs_in(item("test", "longer"), "test") and runs_in(item("test", "longer"), "soak")


def test_the_makefile_runs_every_tier() -> None:
    makefile = (TESTS.parent / "Makefile").read_text()
    assert set(re.findall(r"--tier (\w+)", makefile)) == set(TIERS)


def test_every_test_lies_in_the_folder_of_a_tier() -> None:
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")} == set(TIERS)


def test_no_two_files_of_tests_have_one_name() -> None:
    names = [path.name for path in Path(TESTS).rglob("test_*.py")]
    assert [name for name in set(names) if names.count(name) > 1] == [], "pytest takes one of them"
