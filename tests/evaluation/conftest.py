"""The made-up world that scores are tested in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Toy
from tests.evaluation.swept import Swept
from tests.evaluation.world import World


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def world(toy: Toy) -> World:
    return World(toy)


@pytest.fixture
def swept(toy: Toy) -> Swept:
    return Swept(toy)
