"""Spares the processes that run tests what tells nothing: they look for garbage seldom, and of
those that run side by side each rewrites the assertions of its share of modules, not of all.

Collecting makes half a million objects that stay; looking through them again and again took a
quarter of a process's start, and a tenth of the tests.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

SELDOM = 20_000, 20, 20
"""Objects that are made, and rounds of the younger generations, before garbage is looked for"""

gc.disable()  # until all is collected


def pytest_collection(session: pytest.Session) -> None:
    """Nothing; this process's share of the modules is imported before all others: what one of them
    compiled, the others read.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode:
        return
    at, of = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    modules = list(_modules(session.config.args))
    for path in modules[at::of]:
        if sys.path[0] != str(path.parent):  # as pytest does
            sys.path.insert(0, str(path.parent))
        with suppress(Exception, pytest.skip.Exception):  # collecting tells it
            import_module(path.stem)


def _modules(args: list[str]) -> Iterator[Path]:
    """The modules of tests in what is asked for."""
    for given in args:
        path = Path(given.partition("::")[0]).absolute()
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def pytest_collection_finish() -> None:
    """Nothing; what was made so far stays, and is not looked at again."""
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()
