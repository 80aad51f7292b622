"""How many requests the API takes, of a person or else of an address."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from kbpo.accounts.limits import Limit
from kbpo.web.http import address_of

MINUTE = 60


class RateLimit(BaseThrottle):
    """So many requests a minute; one that is too many is told when to come again."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether this request, which is counted, is still within the limit."""
        if request.user.is_authenticated:
            self.who = str(request.user.pk)
            self.limit = Limit("api.user", settings.API_RATE, MINUTE)
        else:
            self.who = address_of(request)
            self.limit = Limit("api.address", settings.API_RATE_OF_STRANGERS, MINUTE)
        return self.limit.count(self.who)

    def wait(self) -> float:
        """Seconds after which the count of what was just refused begins anew."""
        return self.limit.wait(self.who)
