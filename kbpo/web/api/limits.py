"""How many requests the API takes, of a person or else of an address."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from kbpo.accounts.limits import Limit
from kbpo.web.address import address_of

MINUTE = 60


class RateLimit(BaseThrottle):
    """So many requests a minute; one that is too many is told when to come again."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Whether this request, which is counted, is still within the limit."""
        if request.user.is_authenticated:
            return Limit("api.user", settings.API_RATE, MINUTE).count(str(request.user.pk))
        address = address_of(request)
        return Limit("api.address", settings.API_RATE_OF_STRANGERS, MINUTE).count(address)

    def wait(self) -> float:
        """Seconds after which the count begins anew, at the latest."""
        return MINUTE
