"""Lets several test processes run side by side (`pytest -n 2`): they share a PostgreSQL, where each
has databases of its own, and each has a Redis and a folder of its own.

A plugin, and not part of conftest.py, because the place has to be known before Django reads its
settings. The servers are those of the tests alone, and stop with them: so they need not wait for
the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbpo import embedded

ROOT = Path(__file__).resolve().parent.parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

if WORKER:
    os.environ["DATABASE_URL"] = os.environ.get("DATABASE_URL") or embedded.database_url()
    os.environ["KBPO_VAR"] = str(Path(os.environ["KBPO_VAR"]) / WORKER)
else:
    os.environ["KBPO_VAR"] = str(Path(os.environ.get("KBPO_VAR") or ROOT / "var") / "tests")
    os.environ["KBPO_EMBEDDED_FSYNC"] = "false"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stops the servers of this process: nobody else knows of them."""
    embedded.stop_server()
