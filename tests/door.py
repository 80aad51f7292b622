"""The door of the live server. Between two tests it is shut: no request meets the emptying of the tables.

A page saves as it is closed, and what it asked for may still be under way. Such a request holds locks that emptying the
tables waits for, and waits for others: a deadlock. Whoever comes while it is shut waits for the next test.
"""

from __future__ import annotations

import threading
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started

PATIENCE = 20.0


class Door:
    """Counts the requests inside. The test client's are not among them."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._open = True
        self._inside = 0
        request_started.connect(self._enter)
        request_finished.connect(self._leave)

    @property
    def is_empty(self) -> bool:
        return self._inside == 0

    def open(self) -> None:
        with self._change:
            self._open = True
            self._change.notify_all()

    def shut(self) -> None:
        """Lets nobody in any more."""
        with self._change:
            self._open = False

    def wait_until_empty(self) -> None:
        """Whoever broke off without a word, as where tests may not use the database, is forgotten in the end."""
        with self._change:
            if not self._change.wait_for(lambda: self.is_empty, PATIENCE):
                self._inside = 0

    def _enter(self, sender: object, **signal: Any) -> None:
        if not _is_server(sender):
            return
        with self._change:
            self._change.wait_for(lambda: self._open, PATIENCE)
            self._inside += 1

    def _leave(self, sender: object, **signal: Any) -> None:
        if not _is_server(sender):
            return
        with self._change:
            self._inside = max(0, self._inside - 1)
            self._change.notify_all()


def _is_server(sender: object) -> bool:
    """The live server answers by one of several handlers."""
    return isinstance(sender, type) and issubclass(sender, WSGIHandler)


DOOR = Door()
