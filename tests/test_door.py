"""The door of the live server counts requests, keeps them out while it is shut, and waits for those
inside.
"""

from __future__ import annotations

import urllib.request
from threading import Event, Thread
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_started
from door import DOOR
from processes import wait_for


@pytest.mark.django_db(transaction=True)
def test_whoever_comes_to_a_shut_door_waits_and_whoever_is_inside_is_waited_for(
    live_server: Any,
) -> None:
    came, may_go = Event(), Event()

    def linger(**signal: Any) -> None:
        came.set()
        may_go.wait(30)

    def ask() -> None:
        with urllib.request.urlopen(live_server.url + "/about/", timeout=60):
            pass

    request_started.connect(linger)
    try:
        first = Thread(target=ask, daemon=True)
        first.start()
        assert came.wait(30)
        DOOR.shut()
        emptied = Thread(target=DOOR.wait_until_empty, daemon=True)
        emptied.start()
        emptied.join(0.3)
        assert emptied.is_alive(), "somebody is inside"
        may_go.set()
        first.join(30)
        emptied.join(30)
        assert not emptied.is_alive()
        second = Thread(target=ask, daemon=True)
        second.start()
        second.join(0.5)
        assert second.is_alive(), "it is shut"
    finally:
        request_started.disconnect(linger)
        DOOR.open()
    second.join(30)
    assert not second.is_alive()
    wait_for(lambda: DOOR.is_empty, "the last one to be through")


def test_whoever_breaks_off_without_a_word_is_not_waited_for() -> None:
    gone = Thread(target=request_started.send, args=(WSGIHandler,), kwargs={"environ": {}})
    gone.start()
    gone.join(30)
    assert DOOR.is_empty
    DOOR.wait_until_empty()


def test_whom_an_earlier_test_left_inside_is_not_waited_for() -> None:
    may_go = Event()

    def stay() -> None:
        request_started.send(WSGIHandler, environ={})
        may_go.wait(30)

    stuck = Thread(target=stay, daemon=True)
    stuck.start()
    try:
        wait_for(lambda: not DOOR.is_empty, "somebody inside")
        DOOR.forget()
        assert DOOR.is_empty
    finally:
        may_go.set()
