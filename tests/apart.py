"""Lets several test processes run side by side: each has a PostgreSQL and a Redis of its own
(`pytest -n 2`).

A plugin, and not part of conftest.py, because the place has to be known before Django reads its
settings.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

if WORKER:
    os.environ["KBPO_VAR"] = str(Path(os.environ.get("KBPO_VAR", ROOT / "var")) / WORKER)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stops the servers of this process: nobody else knows of them."""
    if WORKER:
        from kbpo import embedded

        embedded.stop()
