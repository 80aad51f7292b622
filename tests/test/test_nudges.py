"""A step that moved something asks for the next over Redis, once its transaction is through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty
from typing import Any

import pytest
from django.db import transaction

from kbpo.celery import app
from kbpo.queue import wake_step


@pytest.fixture
def asked(settings: Any) -> Iterator[Callable[[], list[str]]]:
    """The steps that workers have been asked for since the last call, oldest first."""
    settings.NUDGES = True
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("files")
        queue.clear()

        def take() -> list[str]:
            steps = []
            while True:
                try:
                    message = queue.get_nowait()
                except Empty:
                    return steps
                message.ack()
                steps.append(message.payload[0][0])

        yield take
        queue.close()


@pytest.mark.django_db(transaction=True)
def test_a_step_is_asked_for_once_its_transaction_is_through(
    asked: Callable[[], list[str]],
) -> None:
    with transaction.atomic():
        wake_step("plan")
        assert asked() == []
    assert asked() == ["plan"]
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        wake_step("plan")
        raise ZeroDivisionError
    assert asked() == []


@pytest.mark.django_db(transaction=True)
def test_without_nudges_a_step_waits_for_the_clock(
    asked: Callable[[], list[str]], settings: Any
) -> None:
    settings.NUDGES = False
    wake_step("plan")
    assert asked() == []
