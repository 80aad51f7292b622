"""Serves the endpoint over HTTP, a thread a request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from rehearsal.mturk.app import Endpoint
from rehearsal.mturk.store import Store


class Threads(ThreadingMixIn, WSGIServer):
    """A server that does not wait for one client to answer the next."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected."""


class Quiet(WSGIRequestHandler):
    """A handler that writes no line for each request, and does not ask who is at the other end."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def address_string(self) -> str:
        return str(self.client_address[0])


@contextmanager
def serving(
    path: Path | str, port: int = 0, host: str = "127.0.0.1"
) -> Iterator[tuple[str, Store]]:
    """Return the address and the store of an endpoint that runs in threads of this process."""
    store = Store(path)
    server = make_server(host, port, Endpoint(store), server_class=Threads, handler_class=Quiet)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}", store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        store.close()
