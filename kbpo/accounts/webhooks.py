"""Calls webhooks with a signature, and never an address in a private network.
`kbpo.accounts.notices` decides when.
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
"""Greatest total seconds of a call, however slowly the response arrives"""
LOOKUP_SECONDS = 5.0
"""Greatest seconds of a name lookup; the system's own limit is much longer"""
NOT_PUBLIC = "The address does not lead to the public internet."
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""All IPv6 global unicast addresses (RFC 4291)"""
USER_AGENT = "KBP-Online-Webhook/1"
LONGEST_HOST, LONGEST_LABEL = 253, 63
"""Greatest length of a host name, and of each of its labels (RFC 1035, section 2.3.4)"""


class CannotCall(Exception):
    """Raised for a webhook call that was not made or failed; the text is a sentence for the
    owner.
    """


def signature_header(secret: str, moment: int, body: bytes) -> str:
    """Return the value of the header X-KBPO-Signature: the time, and the HMAC-SHA256 of time and
    body.
    """
    signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
    return f"t={moment},v1={signed.hexdigest()}"


def check_url(url: str) -> SplitResult:
    """Return the parts of a valid address. Raises CannotCall."""
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
        raise CannotCall("The address must be ASCII: write a host as xn--…, and the rest with %.")
    if len(parts.hostname) > LONGEST_HOST or any(
        len(label) > LONGEST_LABEL for label in parts.hostname.split(".")
    ):
        raise CannotCall(
            f"Host names have at most {LONGEST_HOST} letters, and {LONGEST_LABEL} between points."
        )
    return parts


def check_new_url(url: str) -> None:
    """Raise CannotCall for an address that will not be called. A host name is not resolved here but
    at each call, since its address may change.
    """
    host = str(check_url(url).hostname)
    ours = host == "localhost" or host.endswith(".localhost")
    with suppress(OSError, UnicodeError):
        number = "127.0.0.1" if ours else host
        _refuse_private(_resolve_addresses(number, 0, flags=socket.AI_NUMERICHOST))


def resolve_host(host: str, port: int) -> str:
    """Return the network address of a host. Raises CannotCall if any of its addresses is not
    public, since the call could reach our own network.
    """
    found: list[list[str]] = []

    def resolve_into_result() -> None:
        with suppress(OSError, UnicodeError):
            found.append(_resolve_addresses(host, port))

    # The system's look-up has no time-out, so a thread that may be left behind does it.
    thread = threading.Thread(target=resolve_into_result, daemon=True)
    thread.start()
    thread.join(LOOKUP_SECONDS)
    if thread.is_alive():
        raise CannotCall(f"{host[:80]} was not found within {LOOKUP_SECONDS:.0f} seconds.")
    if not found or not found[0]:
        raise CannotCall(f"There is no host {host[:80]}.")
    _refuse_private(found[0])
    return found[0][0]


def _resolve_addresses(host: str, port: int, *, flags: int = 0) -> list[str]:
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [str(address[4][0]).partition("%")[0] for address in resolved]


def _refuse_private(addresses: list[str]) -> None:
    """Raise CannotCall if any address is not public. The sentence does not name it, since that
    would reveal our network.
    """
    if not settings.WEBHOOKS_TO_PRIVATE and not all(map(is_public, addresses)):
        raise CannotCall(NOT_PUBLIC)


def is_public(address: str) -> bool:
    """Return whether an address is public. For IPv6 these are global unicast addresses that do not
    wrap an IPv4 address.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        wraps = ip.sixtofour is not None or ip.teredo is not None
        return ip in GLOBAL_UNICAST and ip.is_global and not wraps
    return ip.is_global and not ip.is_multicast


def call_webhook(url: str, secret: str, event: str, body: bytes, number: int) -> int:
    """Return the HTTP status of a call. The host is resolved once and that address is called;
    redirects are not followed. Raises CannotCall.
    """
    parts = check_url(url)
    is_tls, host = parts.scheme == "https", str(parts.hostname)
    port = parts.port or (443 if is_tls else 80)
    began = time.monotonic()
    address = resolve_host(host, port)
    left = LONGEST - (time.monotonic() - began)
    try:
        plain = socket.create_connection((address, port), timeout=left)
    except OSError:
        raise CannotCall(f"{host[:80]} could not be reached.") from None
    # Whatever drips in slowly is cut off, the handshake too:
    # a timeout of the socket counts from byte to byte.
    held = [plain]
    alarm = threading.Timer(
        max(0.0, LONGEST - (time.monotonic() - began)), _close_below_tls, [held]
    )
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
            "User-Agent": USER_AGENT,
            "X-KBPO-Event": event,
            "X-KBPO-Delivery": str(number),
            "X-KBPO-Signature": signature_header(secret, moment, body),
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


def _close_below_tls(sockets: list[socket.socket]) -> None:
    """Close a connection below TLS, whose own shutdown would wait for the peer."""
    with suppress(OSError):
        socket.socket.shutdown(sockets[0], socket.SHUT_RDWR)
