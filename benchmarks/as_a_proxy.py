"""Sends requests to a web server like the proxy in front of it, over a connection for each request,
with little work in this process, so that the server is measured.
"""

from __future__ import annotations

import socket
from typing import NamedTuple


class Reply(NamedTuple):
    """The response of a server: status, headers and body."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str:
        """Return a header's value; empty where there is none."""
        at = self.head.lower().find(f"\r\n{name.lower()}: ".encode())
        if at < 0:
            return ""
        begin = at + len(name) + 4
        return self.head[begin : self.head.index(b"\r\n", begin)].decode()


def send_request(
    port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> Reply:
    """Return the response of a server on this machine. Raises OSError if the connection breaks."""
    given = {"Host": "127.0.0.1", "Connection": "close"} | headers
    if body is not None:
        given["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + (body or b""))
        return _read_reply(line)


def _read_reply(line: socket.socket) -> Reply:
    """Read and return a response. Raises ConnectionError if it ends too soon, and ValueError if it
    does not state its length.
    """
    data = _read_line(line)
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _read_line(line)
    reply = Reply(int(data[9:12]), data[: end + 2], b"")
    said = reply.header("content-length")
    if not said and reply.status not in (204, 304):
        raise ValueError(f"an answer of no said length: {reply.head[:300]!r}")
    whole = end + 4 + int(said or 0)
    while len(data) < whole:
        data += _read_line(line)
    return reply._replace(body=data[end + 4 : whole])


def _read_line(line: socket.socket) -> bytes:
    data = line.recv(1 << 17)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data
