"""Which tests run: `pytest --tier check|test|soak`. The folder of a test says its tier.

`tests/check` is what every commit waits for: no page, no track that is played, no process, no
browser, no test that commits. `tests/test` is what must hold before anything is published; the
tier `test` runs `check`, too. `tests/soak` is for a night: it begins from another seed each time,
and says which. Without the option every test that is named runs, and chance is the same in every
run.

The mark `soak` moves a test up, or one of its parameters: it costs much and tells little more than
its neighbours. Of tests that drive a browser those with the mark `walk` are in `test`, the others
in `soak`. What has the mark `longer` runs in a soak as well, at length, and so does Hypothesis.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import hypothesis
import pytest

TIERS = ("check", "test", "soak")
RUN_BY = {"check": {"check"}, "test": {"check", "test"}, "soak": {"soak"}}
TESTS = Path(__file__).resolve().parent
WORLDS = frozenset({"golden", "inclusion", "releases"})
"""Folders whose tests each play a whole world: 4 to 26 seconds each, on two cores."""
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
    tiers = RUN_BY.get(config.option.tier, set()) - {"soak"}  # marks move tests into a soak
    if tiers and config.args_source == config.ArgsSource.TESTPATHS:
        config.args = [str(TESTS / tier) for tier in sorted(tiers)]  # others are not imported
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
    weights: dict[Any, int] = {}
    for item in items:  # no process is left alone with a long module at the end
        weights[item.path] = min(_weight(item), weights.get(item.path, 2))
    items.sort(key=lambda item: weights[item.path])
    if (wanted := config.option.tier) is None:
        return
    config.hook.pytest_deselected(items=[item for item in items if not runs_in(item, wanted)])
    items[:] = [item for item in items if runs_in(item, wanted)]
    if wanted == "soak":
        for item in filter(_by_hypothesis, items):
            _look_longer(item.obj)  # type: ignore[attr-defined]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if (seed := config.option.seed) and "PYTEST_XDIST_WORKER" not in os.environ:
        terminalreporter.write_line(f"The seed was {seed}; --seed {seed} runs the same again.")


def runs_in(item: pytest.Item, wanted: str) -> bool:
    """Whether a test runs when that tier is asked for."""
    if wanted == "soak" and (item.get_closest_marker("longer") or _by_hypothesis(item)):
        return True
    return tier_of(item) in RUN_BY[wanted]


def tier_of(item: pytest.Item) -> str:
    """The lowest tier in which a test runs."""
    marks = {mark.name for mark in item.iter_markers()}
    if "soak" in marks or ("browser" in marks and "walk" not in marks):
        return "soak"
    return item.path.relative_to(TESTS).parts[0]


def _weight(item: pytest.Item) -> int:
    """How early a test's module is begun: first those of the running service, then worlds."""
    if "service" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if WORLDS & set(item.path.parts) else 2


def _by_hypothesis(item: pytest.Item) -> bool:
    return hypothesis.is_hypothesis_test(getattr(item, "obj", None))


def _look_longer(test: Any) -> None:
    """Lets Hypothesis try many times as many examples as it does in the other tiers."""
    name = "_hypothesis_internal_use_settings"  # the decorator refuses to be used twice
    few = getattr(test, name)
    setattr(test, name, hypothesis.settings(few, max_examples=LONGER * few.max_examples))
