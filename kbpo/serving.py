"""Configures gunicorn: `gunicorn --config python:kbpo.serving kbpo.wsgi`."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from gunicorn.glogging import Logger

from kbpo.accounts.secret_links import MaskSecretLinks

keepalive = 0
"""0: a connection ends after its response. A thread would read a kept connection to the end of a
refused body, however slowly that arrives; the proxy keeps the browsers' connections.
"""
LINGERS = 0.5
"""Greatest seconds for which the rest of a refused body is read, so that a fast sender still gets
the response
"""


class MaskingLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's logger, with secret links masked, since the access log contains all paths."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for log in (self.access_log, self.error_log):
            if not any(isinstance(known, MaskSecretLinks) for known in log.filters):
                log.addFilter(MaskSecretLinks())


logger_class = MaskingLogger


def post_request(_worker: Any, request: Any, environ: dict[str, Any], _answer: Any) -> None:
    """Stop reading from the browser. Otherwise the only thread that accepts connections would wait
    up to two seconds for the browser to close its end.
    """
    connection: socket.socket = environ["gunicorn.socket"]
    with suppress(TimeoutError):
        _discard_body(connection, _unread_bytes(request), time.monotonic() + LINGERS)
    with suppress(OSError):  # it has gone
        connection.shutdown(socket.SHUT_RD)


def _unread_bytes(request: Any) -> int:
    """Return how many bytes of a body are still to arrive; 0 if unknown."""
    left = getattr(request.body.reader, "length", 0)
    return left - len(request.unreader.buf.getvalue()) if left else 0


def _discard_body(connection: socket.socket, size: int, until: float) -> None:
    while size > 0 and (patience := until - time.monotonic()) > 0:
        connection.settimeout(patience)
        if not (some := connection.recv(65536)):
            return
        size -= len(some)
