"""Authenticates requests to the API by token: `Authorization: Token kbpo_…`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from kbpo import clock
from kbpo.accounts.models import Token, User


class TokenAuthentication(BaseAuthentication):
    """The user of a token; a refusal says in a sentence what is wrong with it."""

    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        word, _, secret = header.partition(" ")
        if word not in ("Token", "Bearer") or not secret.strip():
            raise AuthenticationFailed("The Authorization header must read 'Token kbpo_…'.")
        token = Token.find(secret.strip())
        if token is None:
            raise AuthenticationFailed("There is no such token. Make one on your account page.")
        if token.refusal:
            raise AuthenticationFailed(token.refusal)
        if not token.allows(_needed(request)):
            raise PermissionDenied(
                f"This token may only {token.get_scope_display().lower()}. Make one that may do"
                " more on your account page."
            )
        if token.last_used_at is None or token.last_used_at < clock.now() - timedelta(minutes=1):
            Token.objects.filter(pk=token.pk).update(last_used_at=clock.now())
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


def _needed(request: Request) -> str:
    """Return the scope that a request needs: to change anything takes all, where its view says no
    less.
    """
    if request.method in SAFE_METHODS:
        return Token.Scope.READ
    view = request.parser_context["view"] if request.parser_context else None
    return str(getattr(view, "scope", Token.Scope.ALL))


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the API's schema tells programs of tokens; without it every endpoint would seem to be
    public.
    """

    target_class = "kbpo.web.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of yours, from your account page.",
        }
