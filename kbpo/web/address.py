"""Where a request comes from, seen past the proxies that we know of."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """Return the client's address; of one of version 6 its network (/64), which one person has.

    Each of `PROXIES` proxies appends to `X-Forwarded-For` who spoke to it. What stands further left
    was written by the client, and is not believed. Where the header is shorter than that, or says
    no address, it is who spoke to us.
    """
    peer = str(request.META.get("REMOTE_ADDR", ""))
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    visitor = hops[-settings.PROXIES] if 0 < settings.PROXIES <= len(hops) else peer
    return _network(visitor) or _network(peer) or peer


def network_of(request: HttpRequest) -> str:
    """Return the network of the client's address, which one provider has: /24 of version 4, /48 of
    version 6.
    """
    address = address_of(request)
    try:
        network = ip_network(address)
    except ValueError:
        return address[:64]
    return str(network.supernet(new_prefix=24 if network.version == 4 else 48))


def _network(text: str) -> str:
    try:
        address = ip_address(text.removeprefix("[").partition("]")[0].partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"
