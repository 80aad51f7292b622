"""Makes chance the same in every run: what the service draws from the operating system, a test
draws from a seed.

The keys of tracks and corpora, the dice of gold and adjudication, seeds and tokens are secret and
random, and what targets are drawn depends on them and on primary keys. Left alone, a test whose
draw is unlucky fails once in a while. Here every test begins with the same secrets and the same
next primary keys, whatever ran before it in the process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4
from zlib import crc32

import hypothesis
import numpy as np
import pytest
from django.db import connection

# A busy machine is no fault of the code. `pytest --hypothesis-profile=explore` looks elsewhere than
# every other run; so does `--tier soak`.
PROFILE = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("certain", PROFILE, derandomize=True)
hypothesis.settings.register_profile("explore", PROFILE)
hypothesis.settings.load_profile("certain")

_NOT_OURS = ("django_", "auth_")
"""Tables that Django fills by itself, whenever a database was emptied"""


def number_from(base: int) -> None:
    """Nothing; the next primary keys follow this number. They differ by table, lest one be taken
    for another.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT "
            + ", ".join(
                f"setval('{name}', {base + crc32(name.encode()) % 900})"
                for name in _sequences(connection.settings_dict["NAME"])
            )
        )


def next_keys() -> dict[str, int]:
    """What the rows of each table were numbered up to."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sequencename, last_value FROM pg_sequences")
        return {name: last for name, last in cursor.fetchall() if last is not None}


@cache
def _sequences(database: str) -> list[str]:
    """What numbers the rows of our tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"
            " ORDER BY sequencename"
        )
        return [name for (name,) in cursor.fetchall() if not name.startswith(_NOT_OURS)]


@pytest.fixture(autouse=True)
def _own_cache(settings: Any) -> None:
    """The cache is empty: it outlives the rows of other tests and runs, whose primary keys come
    again here.
    """
    settings.CACHES = {"default": settings.CACHES["default"] | {"KEY_PREFIX": uuid4().hex}}


@pytest.fixture(autouse=True)
def _same_chance(request: pytest.FixtureRequest) -> Iterator[None]:
    """What `secrets` and every SystemRandom of this process give depends on the name of the test
    (and on `--seed`) alone.
    """
    name = request.config.option.seed + request.node.nodeid.replace("tests/test/", "tests/", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "_urandom", random.Random(name).randbytes)
        random.seed(name)
        np.random.seed(crc32(name.encode()))
        yield


@pytest.fixture(autouse=True)
def _same_keys(request: pytest.FixtureRequest, _django_db_marker: None) -> None:
    """The next primary keys are those of every other run, and so are the database's own random
    numbers.
    """
    if not {"db", "transactional_db", "live_server"} & set(request.fixturenames) and not any(
        request.node.iter_markers("django_db")
    ):
        return
    request.getfixturevalue("db")
    number_from(1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
