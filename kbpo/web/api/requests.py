"""Authentication, rate limits and conditional responses of the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from kbpo import clock
from kbpo.accounts.limits import Limit
from kbpo.accounts.models import ANOTHER_TOKEN, Token, User
from kbpo.web.http import client_address


class TokenAuthentication(BaseAuthentication):
    """Authenticates by token; each refusal has a sentence."""

    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        word, _, secret = header.partition(" ")
        if word not in ("Token", "Bearer") or not secret.strip():
            raise AuthenticationFailed("The Authorization header must read 'Token kbpo_…'.")
        token = Token.find_by_secret(secret.strip())
        if token is None:
            raise AuthenticationFailed("There is no such token. Make one on your account page.")
        if token.refusal:
            raise AuthenticationFailed(token.refusal)
        if not token.allows(_required_scope(request)):
            raise PermissionDenied(
                f"This token may only {token.get_scope_display().lower()}. {ANOTHER_TOKEN}"
            )
        if token.last_used_at is None or token.last_used_at < clock.now() - timedelta(minutes=1):
            Token.objects.filter(pk=token.pk).update(last_used_at=clock.now())
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


def _required_scope(request: Request) -> str:
    """Return the token scope that a request needs: `read` for safe methods, else the scope that the
    view declares, `all` by default.
    """
    if request.method in SAFE_METHODS:
        return Token.Scope.READ
    view = request.parser_context["view"] if request.parser_context else None
    return str(getattr(view, "scope", Token.Scope.ALL))


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes tokens in the schema, so that endpoints are not shown as public."""

    target_class = "kbpo.web.api.requests.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of yours, from your account page.",
        }


MINUTE = 60


class RateLimit(BaseThrottle):
    """Limits requests per minute by user, or by address without a token."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count this request, and return whether it is within the limit."""
        if request.user.is_authenticated:
            self.who = str(request.user.pk)
            self.limit = Limit("api.user", settings.API_RATE, MINUTE)
        else:
            self.who = client_address(request)
            self.limit = Limit("api.address", settings.API_RATE_OF_STRANGERS, MINUTE)
        return self.limit.count_action(self.who)

    def wait(self) -> float:
        """Return the seconds until the limit is reset."""
        return self.limit.seconds_until_retry(self.who)


class UnchangedMiddleware(ConditionalGetMiddleware):
    """Adds an ETag to responses of the API and answers 304 if nothing changed. Pages
    set their own.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Return the answer, or 304."""
        if not request.path.startswith("/api/"):
            return response
        return super().process_response(request, response)
