"""Calls the addresses that people gave, signed: at least once each, until one answers or we give up.

No call is made inside a transaction: a short one claims the row and says when it is due again, the
call follows, a second one notes what came of it. A process that dies in between leaves a row that is
due again; whoever is called tells repeats by the delivery's number.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from datetime import timedelta
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.db import transaction

from kbpo import clock
from kbpo.accounts.models import Delivery

MOST_TRIES = 8
FIRST_WAIT = timedelta(seconds=30)
"""After the first try; each later wait is three times as long: the last try is nine hours on"""
LONGEST = 10.0
"""Seconds that a call may take in all, whatever comes back how slowly"""
A_ROUND, A_ROUND_SECONDS = 50, 15.0
"""Calls of one round, and when it ends: slow ones do not hold a worker for minutes"""
KEPT = timedelta(days=30)
AGENT = "KBP-Online-Webhook/1"


class CannotCall(Exception):
    """No call was made, or none that counts; the text is a sentence for whoever gave the address."""


def tick() -> int:
    """Return how many calls were tried; what is long done is forgotten."""
    tried, end = 0, time.monotonic() + A_ROUND_SECONDS
    while tried < A_ROUND and time.monotonic() < end and (row := _claim()) is not None:
        _try(row)
        tried += 1
    old = Delivery.objects.filter(made_at__lt=clock.now() - KEPT).exclude(status="waiting")
    old.delete()
    return tried


@transaction.atomic
def _claim() -> Delivery | None:
    """Return the next call that is due, which nobody else tries meanwhile."""
    deliveries = Delivery.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
    row = deliveries.due("waiting").select_related("hook").first()
    if row is not None:
        row.attempts += 1
        row.next_try_at = clock.now() + FIRST_WAIT * 3 ** (row.attempts - 1)
        row.save(update_fields=["attempts", "next_try_at"])
    return row


def _try(row: Delivery) -> None:
    try:
        row.answered = call(row.hook.url, row.hook.secret, row.event, _text_of(row), row.pk)
        trouble = "" if 200 <= row.answered < 300 else f"It answered {row.answered}."
    except CannotCall as problem:
        row.answered, trouble = None, str(problem)
    gives_up = bool(trouble) and row.attempts >= MOST_TRIES
    status = "failed" if gives_up else "waiting" if trouble else "sent"
    mine = Delivery.objects.filter(pk=row.pk, status="waiting", attempts=row.attempts)
    mine.update(
        status=status, status_since=clock.now(), reason=trouble[:300], answered=row.answered
    )


def _text_of(row: Delivery) -> bytes:
    said = {"id": row.pk, "event": row.event, "at": row.made_at.isoformat(), **row.body}
    return json.dumps(said, ensure_ascii=False).encode()


def signature(secret: str, moment: int, body: bytes) -> str:
    """Return what the header X-KBPO-Signature says: the time, and the HMAC-SHA256 over time and
    body.
    """
    signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


def check_url(url: str) -> SplitResult:
    """Return the parts of an address that may be called. Raises CannotCall."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise CannotCall("This is no address of the web.") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise CannotCall("The address has to begin with https:// or http:// and name a host.")
    if parts.username or parts.password:
        raise CannotCall("The address holds a name or password: calls are signed instead.")
    if any(not 32 < ord(sign) < 127 for sign in url):
        raise CannotCall(
            "The address holds a space, a line break or a letter that is not ASCII: write a host"
            " as xn--…, and the rest with %."
        )
    return parts


def check_new(url: str) -> None:
    """Nothing. Raises CannotCall for an address that will not be called; what a name leads to is
    looked up when it is called, for that may change.
    """
    host = str(check_url(url).hostname)
    if host == "localhost" or host.endswith(".localhost"):
        host = "127.0.0.1"
    with suppress(OSError, UnicodeError):
        _refuse_private(host, _addresses(host, 0, flags=socket.AI_NUMERICHOST))


def resolve(host: str, port: int) -> str:
    """Return the address on the network that is called for a host. Raises CannotCall where any of
    its addresses is not a public one: it could lead into our own network.
    """
    try:
        addresses = _addresses(host, port)
    except (OSError, UnicodeError):
        raise CannotCall(f"There is no host {host[:80]}.") from None
    _refuse_private(host, addresses)
    return addresses[0]


def _addresses(host: str, port: int, *, flags: int = 0) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [str(one[4][0]).partition("%")[0] for one in found]


def _refuse_private(host: str, addresses: list[str]) -> None:
    if settings.WEBHOOKS_TO_PRIVATE:
        return
    for address in addresses:
        if not is_public(address):
            raise CannotCall(f"{host[:80]} leads to {address}, which is not a public address.")


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public network, also where it wraps another one."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def call(url: str, secret: str, event: str, body: bytes, number: int) -> int:
    """Return the status with which an address answered. It is looked up once, and that very address
    is called; no redirect is followed. Raises CannotCall.
    """
    parts = check_url(url)
    is_tls, host = parts.scheme == "https", str(parts.hostname)
    port = parts.port or (443 if is_tls else 80)
    address = resolve(host, port)
    began = time.monotonic()
    try:
        plain = socket.create_connection((address, port), timeout=LONGEST)
    except OSError:
        raise CannotCall(f"{host[:80]} could not be reached.") from None
    # Whatever drips in slowly is cut off, the handshake too: a timeout of the socket counts from byte to byte.
    held = [plain]
    alarm = threading.Timer(LONGEST - (time.monotonic() - began), _cut, [held])
    alarm.daemon = True
    alarm.start()
    connection = http.client.HTTPConnection(host, port, timeout=LONGEST)
    try:
        if is_tls:
            context = ssl.create_default_context()
            tls = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
            held[0] = tls
            tls.do_handshake()
        connection.sock = held[0]
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        moment = int(clock.now().timestamp())
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": AGENT,
            "X-KBPO-Event": event,
            "X-KBPO-Delivery": str(number),
            "X-KBPO-Signature": signature(secret, moment, body),
            "Connection": "close",
        }
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    except ssl.SSLError:
        raise CannotCall(f"{host[:80]} has no certificate that can be trusted.") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise CannotCall(f"{host[:80]} did not answer within {LONGEST:.0f} seconds.") from None
    finally:
        alarm.cancel()
        connection.close()
        held[0].close()


def _cut(held: list[socket.socket]) -> None:
    """Ends a connection below TLS, whose own goodbye would wait for an answer."""
    with suppress(OSError):
        socket.socket.shutdown(held[0], socket.SHUT_RDWR)
