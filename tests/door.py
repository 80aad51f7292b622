"""The door of the live server. Between two tests it is shut: no request meets the emptying of the
tables.

A page saves as it is closed, and what it asked for may still be under way. Such a request holds
locks that emptying the tables waits for, and waits for others: a deadlock. Whoever comes while it
is shut waits for the next test.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started

PATIENCE = 20.0


class Door:
    """Knows the threads whose requests are inside. The test client's are not among them."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._open = True
        self._inside: set[threading.Thread] = set()
        request_started.connect(self._enter)
        request_finished.connect(self._leave)

    @property
    def is_empty(self) -> bool:
        """Whoever broke off without a word, as where tests may not use the database, is gone with
        their thread.
        """
        return not any(one.is_alive() for one in self._inside)

    def open(self) -> None:
        with self._change:
            self._open = True
            self._change.notify_all()

    def forget(self) -> None:
        """Nobody is waited for who came before: they belong to an earlier test, and may be stuck in
        what it left half sent.
        """
        with self._change:
            self._inside.clear()

    def shut(self) -> None:
        """Lets nobody in any more."""
        with self._change:
            self._open = False

    def wait_until_empty(self) -> None:
        with self._change:
            end = monotonic() + PATIENCE
            while not self.is_empty and monotonic() < end:
                self._change.wait(0.05)  # the end of a thread tells nobody
            self._inside.clear()  # one test waits for who never leaves, not all that follow

    def _enter(self, sender: object, **signal: Any) -> None:
        if not _is_server(sender):
            return
        with self._change:
            self._change.wait_for(lambda: self._open, PATIENCE)
            self._inside.add(threading.current_thread())

    def _leave(self, sender: object, **signal: Any) -> None:
        if not _is_server(sender):
            return
        with self._change:
            self._inside.discard(threading.current_thread())
            self._change.notify_all()


def _is_server(sender: object) -> bool:
    """The live server answers by one of several handlers."""
    return isinstance(sender, type) and issubclass(sender, WSGIHandler)


DOOR = Door()
