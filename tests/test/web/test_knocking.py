"""Every address, by every method, for everybody, with keys of another team's rows; and forms filled
in with what no form offers: no answer is a fault, tells what is another's, or writes to it.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.knocking import (
    SECRETS,
    SIGNED,
    STRANGERS,
    Answer,
    Fields,
    Knocker,
    addresses_of,
    forms_of,
    kept,
    knockers,
)
from tests.test.web.test_every_page import Page, world

pytestmark = pytest.mark.django_db
__all__ = ["world"]
METHODS = ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
FORM = "application/x-www-form-urlencoded"
FEW, MANY = 400, 6000


@pytest.fixture
def site(
    judged: Submission, toy: Toy, draft: Callable[..., Submission], world: dict[str, list[Page]]
) -> tuple[dict[str, Knocker], list[str]]:
    """Everybody, and every address of a service on which everything has happened once."""
    draft(name="secret-of-rosa")
    who = knockers(toy)
    shown = [page[1] for some in world.values() for page in some]
    return who, list(dict.fromkeys([*shown, *addresses_of(judged, toy)]))


def test_what_no_stranger_changes_is_there_to_be_watched() -> None:
    assert kept()


@pytest.mark.soak
def test_nobody_gets_or_changes_what_is_anothers(
    site: tuple[dict[str, Knocker], list[str]],
) -> None:
    who, addresses = site
    forms = forms_of(list(who.values()), addresses)
    assert len(forms) > 60, "the forms of the pages are found"
    before, asked = kept(), 0
    for address in dict.fromkeys([*addresses, *forms]):
        for role, knocker in who.items():
            for method in METHODS:
                bodies = [{}, *forms.get(address, [])] if method == "POST" else [{}]
                for fields in bodies:
                    stranger = role in STRANGERS and not address.startswith(SIGNED)
                    others = [] if role == "admin" else others_secrets(role)
                    said = urlencode(filled_in_by(fields, others), doseq=True).encode()
                    answer = knocker.ask(method, address, said, before=before if stranger else "")
                    is_in_order(answer, f"{role}: {method} {address} {fields}")
                    for secret in others:
                        assert secret.encode() not in answer.body, (role, method, address)
                    asked += 1
    print(f"{asked:,} requests to {len(addresses)} addresses, {len(forms)} forms")


def others_secrets(role: str) -> list[str]:
    """What nobody in that role may be shown."""
    return [secret for owner in SECRETS.keys() - {role} for secret in SECRETS[owner]]


def filled_in_by(fields: Fields, others: list[str]) -> Fields:
    """A form as somebody sends it who does not know others' secrets:
    pages give back what was typed.
    """
    pattern = "|".join(map(re.escape, others)) or "$^"
    return {
        name: [re.sub(pattern, "nobody@example.org", value) for value in values]
        for name, values in fields.items()
    }


@pytest.mark.soak
def test_no_form_and_no_address_is_put_out_by_what_it_is_sent(
    site: tuple[dict[str, Knocker], list[str]], request: pytest.FixtureRequest
) -> None:
    who, addresses = site
    seed = request.config.getoption("--seed") or "0"
    forms = forms_of(list(who.values()), addresses)
    filled = [(address, fields) for address, some in forms.items() for fields in some]
    pages = [(address, {}) for address in addresses]
    n = MANY if request.config.getoption("--tier") == "soak" else FEW
    for number in range(n):
        dice = random.Random(f"{seed}/{number}")
        role = dice.choice(list(who))
        address, fields = dice.choice(filled if dice.random() < 0.7 else pages)
        method, address, data, kind, headers = spoilt(address, fields, dice)
        answer = who[role].ask(method, address, data, kind, **headers)
        is_in_order(
            answer,
            f"request {number} of seed {seed}: {role} {method} {address[:300]} {kind} {headers}"
            f" {data[:500]!r}",
        )
    print(f"{n:,} requests, seed {seed}")


def is_in_order(answer: Answer, what: str) -> None:
    """Fails unless the answer is no fault, and a refusal says something."""
    assert answer.status < 500 and not answer.raised, (what, answer.status, answer.raised)
    assert b"Traceback" not in answer.body, what
    if answer.status >= 400 and " HEAD " not in what and answer.status != 405:
        assert len(answer.body) > 10, (what, answer.status, answer.body)


TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud83d",
    "x" * 70_000,
    "-1",
    "0",
    "1",
    "-0.0",
    "1e400",
    "nan",
    "inf",
    "9" * 30,
    "9" * 5_000,
    "2147483648",
    "9223372036854775808",
    "0x10",
    "١",
    "null",
    "true",
    "[]",
    "{}",
    '{"a":',
    "[[[[",
    '"',
    "'; --",
    "%",
    "%s%n%00",
    "{{7*7}}",
    "<script>x</script>",
    "../../../etc/passwd",
    "\u202e",
    "\ufffe",
    "\r\nX: y",
    "=1+1",
    "2026-02-30",
    "0000-00-00",
    "٠",
    "toy",
    "submission:1",
    "submission:x",
    "0-5",
    "5-0",
    "-1-2",
    "e\u0301" * 300,
    "\U0010ffff",
]
NESTED: Any = functools.reduce(lambda inside, _: [inside], range(600), 1)
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [[]],
    {},
    {"a": {}},
    [None],
    [1, 2],
    "\x00",
    "\ud800",
    [[[[[[]]]]]],
    NESTED,
    {"": ""},
    "9" * 1000,
]
KINDS = [
    FORM,
    "application/json",
    "application/json; charset=utf-32",
    "application/json; charset=no",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary=\xff",
    "multipart/form-data; boundary=b; charset=utf-16",
    "text/plain",
    "",
    "x",
    "application/xml",
    f"{FORM}; charset=utf-7",
    f"{FORM}; charset=nonsense",
    "application/octet-stream",
]
HEADERS = {
    "HTTP_AUTHORIZATION": ["Token", "Token \xff\xfe", "Token a b", "Basic x", "Token kbpo_\x00"],
    "HTTP_ACCEPT": ["", "x", "application/xml", "*/*;q=nonsense", "text/html;version=\x00"],
    "HTTP_IF_NONE_MATCH": ["*", '"', 'W/"x', "\xff"],
    "HTTP_IF_MODIFIED_SINCE": ["nonsense", "Thu, 01 Jan 0000 00:00:00 GMT"],
    "HTTP_IDEMPOTENCY_KEY": ["", "x" * 5_000, "\x00", "\xff"],
    "HTTP_X_FORWARDED_FOR": ["", "x", "1.2.3.4, ::::", "\x00", "9" * 999],
    "HTTP_REFERER": ["", "javascript:x", "http://[", "\xff", "/\x00"],
    "HTTP_ORIGIN": ["null", "http://[", "x"],
    "HTTP_RANGE": ["bytes=9-1", "bytes=x", "bytes=0-99999999999999999999"],
    "HTTP_X_REQUESTED_WITH": ["XMLHttpRequest", "\x00"],
    "HTTP_ACCEPT_ENCODING": ["gzip;q=x", "\xff", "identity;q=0"],
    "HTTP_CONTENT_ENCODING": ["gzip", "x"],
    "HTTP_X_HTTP_METHOD_OVERRIDE": ["DELETE", "\x00"],
}


def spoilt(
    address: str, fields: Fields, dice: random.Random
) -> tuple[str, str, bytes, str, dict[str, str]]:
    """A request that no page makes: method, address, body, content type, headers."""
    method = dice.choice(["POST"] * 6 + ["GET"] * 2 + ["PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
    if dice.random() < 0.3:
        address = _spoilt_path(address, dice)
    if dice.random() < 0.3:
        said = [(dice.choice(["q", "sort", "page", "next", *fields]), text(dice)) for _ in "ab"]
        address += ("&" if "?" in address else "?") + urlencode(said, errors="surrogatepass")
    data, kind = _spoilt_body(address, fields, dice)
    names = dice.sample(sorted(HEADERS), dice.choice([0, 0, 0, 1, 2]))
    return method, address, data, kind, {name: dice.choice(HEADERS[name]) for name in names}


def text(dice: random.Random) -> str:
    if dice.random() < 0.1:
        return "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randint(1, 30)))
    return dice.choice(TEXTS)


def _spoilt_path(address: str, dice: random.Random) -> str:
    path, _, query = address.partition("?")
    parts = path.split("/")
    at = dice.randrange(1, max(2, len(parts)))
    odd = quote(text(dice)[:3000], safe="", errors="surrogatepass")
    parts[at : at + 1] = [odd] if dice.random() < 0.8 else [odd, ""]
    return "/".join(parts) + (f"?{query}" if query else "")


def _spoilt_body(address: str, fields: Fields, dice: random.Random) -> tuple[bytes, str]:
    """Mostly the form with one or two fields that are odd, missing or doubled, and what is needed
    beside them as it was.
    """
    sent = {name: list(values) for name, values in fields.items()}
    for _ in range(dice.choice([1, 1, 2, 5])):
        name = dice.choice([*sent, "verb", "why", "n", "file", "track", "name"])
        change = dice.random()
        if change < 0.7:
            sent[name] = [text(dice)]
        elif change < 0.8:
            sent.pop(name, None)
        else:
            sent[name] = [*sent.get(name, []), text(dice)]
    if address.startswith("/api/") or dice.random() < 0.15:
        return _json(sent, dice), dice.choice(["application/json"] * 6 + KINDS)
    if dice.random() < 0.2:
        return _multipart(sent, dice), "multipart/form-data; boundary=b"
    return urlencode(sent, doseq=True, errors="surrogatepass").encode(), (
        FORM if dice.random() < 0.9 else dice.choice(KINDS)
    )


def _json(sent: Fields, dice: random.Random) -> bytes:
    known = ["half_width", "good_lines_only", "n", "description", "name", "anyway", *sent]
    value: Any = {name: dice.choice(VALUES) for name in dice.sample(known, min(3, len(known)))}
    if dice.random() < 0.2:
        value = dice.choice(VALUES)
    said = json.dumps(value).encode()
    return (
        said
        if dice.random() < 0.8
        else dice.choice([said[:-1], b"\xff" + said, b"[" * 50_000, b'{"name":' * 50_000])
    )


def _multipart(sent: Fields, dice: random.Random) -> bytes:
    parts = []
    for name, values in sent.items():
        for value in values:
            file = dice.random() < 0.3
            extra = f'; filename="{text(dice)[:300]}"' if file else ""
            head = f'Content-Disposition: form-data; name="{name}"{extra}\r\n\r\n'
            parts.append(head.encode(errors="surrogatepass") + value.encode(errors="surrogatepass"))
    body = b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"
    return body if dice.random() < 0.8 else body[: dice.randrange(len(body))]
