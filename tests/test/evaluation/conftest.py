"""The made-up world that scores are tested in."""

from __future__ import annotations

import pytest

from tests.conftest import Toy
from tests.test.evaluation.world import World


@pytest.fixture
def world(toy: Toy) -> World:
    return World(toy, is_study=True)
