"""Which tests run, by what they cost: `pytest --tier check|test|soak`.

`check` is what every commit waits for: no page, no track that is played, no process, no browser, no
test that commits. `test` is what must hold before anything is published: `check`, pages, played
tracks, real HTTP, a browser, a kill. `soak` is the rest, for a night: it begins from another seed
each time, and says which. Without the option every test that is named runs, and chance is the same
in every run.

A test's tier follows from what it asks for. A claim about chance on arrays is in `check`; one
through the database, held by enumeration and on arrays as well, in `soak`. Of a family of pages
`test` walks through a browser once (the mark `walk`), `soak` through all of it. The marks `slow`
(it costs more than a second and tells no more than its neighbours) and `soak` (it looks for what
nobody has thought of, what it holds is held faster elsewhere, or it is about the misfortunes of a
marketplace that nobody uses today) move a test up. `longer` runs it
in a soak as well, at length, and so does Hypothesis.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

import hypothesis
import pytest

TIERS = ("check", "test", "soak")
REAL_PARTS = frozenset({"chromium", "endpoint", "live_server", "service", "transactional_db"})
"""Fixtures that start something beside this process, or commit."""
REAL_MARKS = frozenset({"browser", "journey", "kill", "slow"})
DATABASE = frozenset({"db", "transactional_db", "live_server"})
PLAYED = frozenset(
    {"annotation", "evaluation", "golden", "inclusion", "releases", "sampling", "scores", "web"}
)
"""Folders whose tests go through pages, or play whole tracks:
with a database no part of `check`.
"""
WORLDS = frozenset({"golden", "inclusion", "releases"})
"""Folders whose tests each play a whole world: 4 to 26 seconds each, on two cores."""
LIGHT = 2
LEFT_OUT = pytest.StashKey[list[str]]()
"""Tests that were named one by one and are of another tier"""
"""The weight of a module that is neither slow nor a journey."""
LONGER = 20
"""Examples of Hypothesis in a soak for each one otherwise."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=TIERS, help="which tests run; all without it")
    group.addoption(
        "--seed",
        default="",
        help="what chance follows from besides the name of a test; `--tier soak` draws one",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.tier == "soak" and not config.option.seed:
        given = getattr(config, "workerinput", {}).get("seed")
        config.option.seed = given or secrets.token_hex(4)
    if config.option.seed:
        hypothesis.settings.load_profile("explore")
        config.option.hypothesis_seed = config.option.hypothesis_seed or config.option.seed


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process that runs tests beside others which seed they all have."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _put_first_what_takes_longest(items)
    if (wanted := config.option.tier) is None:
        return
    stay = [item for item in items if runs_in(item, wanted)]
    others = [item for item in items if not runs_in(item, wanted)]
    config.hook.pytest_deselected(items=others)
    config.stash[LEFT_OUT] = [item.nodeid for item in others if _is_named(config, item)]
    items[:] = stay
    if wanted == "soak":
        for item in filter(_by_hypothesis, items):
            _look_longer(item.obj)  # type: ignore[attr-defined]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if (seed := config.option.seed) and "PYTEST_XDIST_WORKER" not in os.environ:
        terminalreporter.write_line(f"The seed was {seed}; --seed {seed} runs the same again.")
    for name in config.stash.get(LEFT_OUT, []):
        terminalreporter.write_line(f"Not run, for it is of another tier: {name}")


def _is_named(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether somebody asked for this very test."""
    return any("::" in one and item.nodeid.startswith(one) for one in config.args)


def runs_in(item: pytest.Item, wanted: str) -> bool:
    """Whether a test runs when that tier is asked for."""
    if wanted == "soak" and (item.get_closest_marker("longer") or _by_hypothesis(item)):
        return True
    return (
        tier_of(item) in {"check": {"check"}, "test": {"check", "test"}, "soak": {"soak"}}[wanted]
    )


def _put_first_what_takes_longest(items: list[pytest.Item]) -> None:
    """Sorts modules so that no process is left alone with a long one at the end, and so that the
    running service is needed by one test after the other.
    """
    weights: dict[Any, int] = {}
    for item in items:
        weights[item.path] = min(_weight(item), weights.get(item.path, LIGHT))
    items.sort(key=lambda item: weights[item.path])


def _weight(item: pytest.Item) -> int:
    """How early a test's module is begun: 0 is first."""
    if "service" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if WORLDS & set(item.path.parts) or item.get_closest_marker("slow") else LIGHT


def _by_hypothesis(item: pytest.Item) -> bool:
    return hypothesis.is_hypothesis_test(getattr(item, "obj", None))


def _look_longer(test: Any) -> None:
    """Lets Hypothesis try many times as many examples as it does in the other tiers."""
    name = "_hypothesis_internal_use_settings"  # the decorator refuses to be used twice
    few = getattr(test, name)
    setattr(test, name, hypothesis.settings(few, max_examples=LONGER * few.max_examples))


def tier_of(item: pytest.Item) -> str:
    """The lowest tier in which a test runs."""
    marks = {mark.name for mark in item.iter_markers()}
    fixtures = set(getattr(item, "fixturenames", ()))
    if "soak" in marks:
        return "soak"
    if "browser" in marks and "walk" not in marks:
        return "soak"
    if "statistical" in marks and ("django_db" in marks or fixtures & DATABASE):
        return "soak"
    if PLAYED & set(item.path.parts) and ("django_db" in marks or fixtures & DATABASE):
        return "test"
    commits = any(mark.kwargs.get("transaction") for mark in item.iter_markers("django_db"))
    if commits or marks & REAL_MARKS or fixtures & REAL_PARTS:
        return "test"
    return "check"
