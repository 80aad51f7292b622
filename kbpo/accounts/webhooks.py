"""Calls an address that somebody gave, signed; it never leads into a network of ours.

When, and how often, is said by `kbpo.accounts.deliver`.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from kbpo import clock

LONGEST = 10.0
"""Seconds that a call may take in all, whatever comes back how slowly"""
AGENT = "KBP-Online-Webhook/1"
LONGEST_HOST, LONGEST_LABEL = 253, 63
"""Letters of a host's name, and of each of its parts (RFC 1035, section 2.3.4)"""


class CannotCall(Exception):
    """No call was made, or none that counts; the text is a sentence for whoever gave
    the address.
    """


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
    if len(parts.hostname) > LONGEST_HOST or any(
        len(label) > LONGEST_LABEL for label in parts.hostname.split(".")
    ):
        raise CannotCall(
            f"No host has this name: one has at most {LONGEST_HOST} letters, and at most"
            f" {LONGEST_LABEL} between two points."
        )
    return parts


def check_new(url: str) -> None:
    """Nothing. Raises CannotCall for an address that will not be called; what a name leads to is
    looked up when it is called, for that may change.
    """
    host = str(check_url(url).hostname)
    ours = host == "localhost" or host.endswith(".localhost")
    with suppress(OSError, UnicodeError):
        number = "127.0.0.1" if ours else host
        _refuse_private(host, _addresses(number, 0, flags=socket.AI_NUMERICHOST))


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
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [str(address[4][0]).partition("%")[0] for address in resolved]


def _refuse_private(host: str, addresses: list[str]) -> None:
    if settings.WEBHOOKS_TO_PRIVATE:
        return
    for address in addresses:
        if not is_public(address):
            leads = "" if host == address else f"{host[:80]} leads to "
            raise CannotCall(
                f"{leads}{address}{', which' if leads else ''} is not a public address."
            )


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
    # Whatever drips in slowly is cut off, the handshake too:
    # a timeout of the socket counts from byte to byte.
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
