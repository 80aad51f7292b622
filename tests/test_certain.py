"""Chance is the same in every run of a test, whatever ran before it in the process."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.db import connection
from hypothesis import settings

from annotation.quality.gold import DICE
from kbpo.accounts.models import User

NUMBERS: set[int] = set()


def test_secrets_and_dice_follow_from_the_name_of_the_test(request: pytest.FixtureRequest) -> None:
    same = random.Random(request.node.nodeid)
    assert secrets.token_hex(8) == same.randbytes(8).hex()
    assert DICE.random() == (int.from_bytes(same.randbytes(7)) >> 3) * 2**-53


@pytest.mark.parametrize("again", [False, True])
def test_primary_keys_and_the_databases_dice_come_again(
    make_user: Callable[..., User], again: bool
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (random() * 1000000)::int")
        NUMBERS.update((make_user("vera").pk, cursor.fetchone()[0]))
    assert len(NUMBERS) == 2


@pytest.mark.parametrize("again", [False, True])
def test_the_cache_is_empty(again: bool) -> None:
    assert cache.get("kept") is None
    cache.set("kept", "yes")
    assert cache.get("kept") == "yes"


def test_hypothesis_looks_at_the_same_examples_and_at_no_clock() -> None:
    assert settings.default is not None and settings.default.deadline is None
    if settings.get_current_profile_name() == "certain":
        assert settings.default.derandomize
