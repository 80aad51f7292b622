"""Requests to every address there is, made by anybody;
what each did is looked at and taken back.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.core.cache import cache
from django.core.signals import got_request_exception
from django.db import connection
from django.test import Client
from django.urls import get_resolver
from undone import undone

from kbpo.accounts.models import Invitation, Token
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.test_every_address import PART, patterns, value_of

Fields = dict[str, list[str]]
CAST = {
    "nobody": "",
    "another team": "Tim",
    "its team": "Rosa",
    "annotator": "Ada",
    "admin": "Admin",
}
STRANGERS = ("nobody", "another team", "annotator")
SECRETS = {
    "its team": ["rosa@example.org", "secret-of-rosa"],
    "annotator": ["ada@example.org", "Harbour Bank 12-345"],
}
"""What a page may show to them and to an admin alone"""
SIGNED = ("/annotate/task/", "/annotate/say/", "/annotate/learn/", "/join/", "/reset/")
"""Who holds such an address is who it was made for."""


@dataclass
class Answer:
    """What was answered: a status, the whole body, and whatever was raised on the way."""

    status: int
    headers: Any
    body: bytes
    raised: list[BaseException] = field(default_factory=list)


@dataclass
class Knocker:
    """Somebody with a browser and a token, who stays logged in whatever is asked."""

    role: str
    client: Client

    def ask(
        self,
        method: str,
        address: str,
        data: bytes = b"",
        content_type: str = "application/x-www-form-urlencoded",
        *,
        before: str = "",
        **headers: str,
    ) -> Answer:
        """The answer; whatever the request did is taken back. With `before` it must have left
        everything that is not a stranger's as it was.
        """
        cache.clear()
        cookies = copy.deepcopy(self.client.cookies)
        raised: list[BaseException] = []

        def note(**signal: Any) -> None:
            raised.extend(filter(None, [sys.exc_info()[1]]))

        got_request_exception.connect(note)
        path, _, query = address.partition("?")
        already = written() if before else 0
        try:
            with undone():
                answer: Any = self.client.generic(
                    method, path, data, content_type, QUERY_STRING=query, **headers
                )
                body = b"".join(answer) if answer.streaming else answer.content
                if before and written() != already:
                    assert kept() == before, f"{self.role} changed something: {method} {address}"
        finally:
            got_request_exception.disconnect(note)
            self.client.cookies = cookies
        return Answer(answer.status_code, answer.headers, body, raised)


def knockers(toy: Toy) -> dict[str, Knocker]:
    """One for each role."""
    found = {}
    for role, name in CAST.items():
        client = Client(raise_request_exception=False)
        if name:
            client.force_login(toy.users[name])
            secret = Token.create_with_secret(toy.users[name], f"secret-of-{name.lower()}")[1]
            client.defaults["HTTP_AUTHORIZATION"] = f"Token {secret}"
        found[role] = Knocker(role, client)
    return found


def addresses_of(row: Submission, toy: Toy) -> list[str]:
    """Every address that is declared, with the primary keys of rows of a submission's team."""
    invitation = Invitation.objects.create(role="researcher", team=row.team, made_by=row.user)
    token = Token.objects.filter(user=row.user)[0]
    found = []
    for pattern in sorted(patterns(get_resolver().url_patterns)):
        own = {"teams/": invitation.pk, "account/tokens/": token.pk}
        pks = [pk for where, pk in own.items() if pattern.startswith(where)]

        def put(part: Any, pattern: str = pattern, pks: list[int] = pks) -> str:
            if part[1] == "pk" and pks:
                return str(pks[0])
            return value_of(part[1], pattern, row)

        found.append("/" + PART.sub(put, pattern))
    return found


class _Forms(HTMLParser):
    """The forms of a page that post: where each goes, and what it would send."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Fields]] = []
        self.select = self.area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        if tag == "form" and have.get("method", "").lower() == "post":
            self.found.append((have.get("action", ""), {}))
        if not self.found:
            return
        fields = self.found[-1][1]
        if tag in ("input", "button") and have.get("name"):
            fields.setdefault(have["name"], []).append(have.get("value", "on"))
        elif tag == "select":
            self.select = have.get("name", "")
        elif tag == "option" and self.select:
            fields.setdefault(self.select, []).append(have.get("value", ""))
        elif tag == "textarea":
            self.area = have.get("name", "")
            fields.setdefault(self.area, []).append("")

    def handle_data(self, data: str) -> None:
        if self.area and self.found:
            self.found[-1][1][self.area][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self.select = ""
        elif tag == "textarea":
            self.area = ""


def forms_of(who: list[Knocker], addresses: list[str]) -> dict[str, list[Fields]]:
    """Where the forms of these pages go -> what each would send, one value a field."""
    found: dict[str, list[Fields]] = {}
    for address in addresses:
        for knocker in who:
            answer = knocker.ask("GET", address)
            if answer.status == 200 and "html" in answer.headers.get("Content-Type", ""):
                for action, fields in _forms(answer.body):
                    target = urlsplit(urljoin(address, action))
                    path = f"{target.path}?{target.query}" if target.query else target.path
                    if not target.netloc and fields not in found.setdefault(path, []):
                        found[path].append(fields)
    return found


def _forms(body: bytes) -> Iterator[tuple[str, Fields]]:
    reader = _Forms()
    reader.feed(body.decode())
    for action, fields in reader.found:
        fields.pop("csrfmiddlewaretoken", None)  # another one on every page
        yield action, {name: values[:1] for name, values in fields.items()}


NOBODYS = (
    "submissions_prediction",
    "sampling_samplebatch",
    "sampling_sample",
    "accounts_team",
    "accounts_team_members",
    "accounts_invitation",
    "tracks_track",
    "money_budget",
    "money_price",
    "instances_label",
    "evaluation_headline",
    "annotation_payment",
    "annotation_bonus",
    "annotation_policy",
    "annotation_gold",
    "annotation_halt",
    "sampling_expertchance",
    "sampling_expertcheck",
    "sampling_expertround",
)
"""Tables in which no stranger changes anything by a request"""
ROWS = {
    "submissions_submission": "team_id = (SELECT id FROM accounts_team WHERE slug = 'patterns')",
    "accounts_token": "user_id = (SELECT id FROM accounts_user WHERE username = 'rosa')",
}
"""Rows in which no stranger does"""
_OF_TABLES = " UNION ALL ".join(
    f"SELECT '{table}' AS name, md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"
    f" WHERE {rows}"
    for table, rows in [*((table, "true") for table in NOBODYS), *ROWS.items()]
)
_OF_PEOPLE = (
    "SELECT 'people', md5(string_agg(concat_ws(' ', id, username, is_staff, is_superuser,"
    " is_researcher, is_active, email), ' ' ORDER BY id)) FROM accounts_user"
    " WHERE username IN ('rosa', 'tim', 'admin')"
)


def written() -> int:
    """How many rows this transaction has written so far, also what it took back: who wrote none
    changed nothing, and the digest need not be made.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_stat_get_xact_tuples_inserted(oid)"
            " + pg_stat_get_xact_tuples_updated(oid)"
            " + pg_stat_get_xact_tuples_deleted(oid)) FROM pg_class WHERE relkind = 'r' AND"
            " relnamespace = 'public'::regnamespace"
        )
        return int(cursor.fetchone()[0])


def kept() -> str:
    """A digest of everything that a stranger's request leaves as it is."""
    with connection.cursor() as cursor:
        cursor.execute(f"{_OF_TABLES} UNION ALL {_OF_PEOPLE} ORDER BY 1")
        return repr(cursor.fetchall())
