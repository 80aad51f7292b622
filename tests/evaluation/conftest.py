"""The made-up world that scores are tested in."""

from __future__ import annotations

import pytest

from tests.conftest import Toy
from tests.evaluation.followed_up import FollowedUp
from tests.evaluation.world import World


@pytest.fixture
def world(toy: Toy) -> World:
    return World(toy)


@pytest.fixture
def followed_up(toy: Toy) -> FollowedUp:
    return FollowedUp(toy)
