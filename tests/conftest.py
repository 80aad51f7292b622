"""The cast and the toy corpus: small enough to check every number by hand.

Systems: **Patterns** (small, precise), **Neural** (large, sloppy), **Twin** (a copy of Patterns).
Workers: **Ada** (always right), **Bo** (right seven times in ten), **Cy** (always the first
button).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from django.test import override_settings

from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.money.models import Budget, Price
from kbpo.tracks.models import Track

pytest_plugins = [
    "browsing",
    "certain",
    "emptying",
    "kept",
    "migrated",
    "processes",
    "redis_server",
    "starting",
    "tiers",
]

PASSWORD = "correct horse battery"
ALONE = re.compile(r" checked>(?=[^<]*</label>\s*<label[^>]*><input[^>]* value=\"other\")")
"""How the only name of a mention is picked beforehand, for whoever is asked"""

TEXTS = {
    "d1": (
        "Mara Lindt founded Nordwerk in 1990. Lindt was born in Halden. Nordwerk is"
        " based in Bergen."
    ),
    "d2": "Ola Berg works for Nordwerk. Berg is the son of Per Berg. He met Mara Lindt in Bergen.",
    "d3": "Per Berg was born in Bergen. Mara Lindt lives in Oslo. Nordwerk owns Fjordlys.",
    "d4": "Fjordlys is based in Oslo. Ola Berg joined Fjordlys. Per Berg died in Oslo.",
}
SCHEMA = {
    "entity_types": [
        {"name": "PER", "description": "person"},
        {"name": "ORG", "description": "organisation"},
        {"name": "GPE", "description": "place"},
    ],
    "predicates": [
        {
            "name": name,
            "label": label,
            "template": "{subject} " + label + " {object}",
            "types": [[subject, object_]],
            "inverse": None,
        }
        for name, label, subject, object_ in [
            ("per:place_of_birth", "was born in", "PER", "GPE"),
            ("per:place_of_residence", "lives in", "PER", "GPE"),
            ("per:place_of_death", "died in", "PER", "GPE"),
            ("per:employee_or_member_of", "works for", "PER", "ORG"),
            ("per:organizations_founded", "founded", "PER", "ORG"),
            ("per:parents", "is a child of", "PER", "PER"),
            ("org:place_of_headquarters", "is based in", "ORG", "GPE"),
            ("org:subsidiaries", "owns", "ORG", "ORG"),
        ]
    ],
}


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a toy text: they all end in '.' and are joined by one blank."""
    spans, at = [], 0
    for part in text.split(". "):
        end = min(at + len(part) + 1, len(text))
        spans.append((at, end))
        at = end + 1
    return spans


def tokens_of(text: str) -> list[tuple[int, int]]:
    """Spans of the tokens of a toy text: words and full stops."""
    import re

    return [match.span() for match in re.finditer(r"\w+|\.", text)]


@dataclass
class Toy:
    """The toy corpus, its track and its people."""

    corpus: Corpus
    track: Track
    documents: dict[str, Document]
    teams: dict[str, Team]
    users: dict[str, User]
    predicates: dict[str, Predicate] = field(default_factory=dict)

    def span(self, document: str, text: str, which: int = 0) -> tuple[int, int]:
        """The which-th occurrence of a text in a document."""
        at = -1
        for _ in range(which + 1):
            at = self.documents[document].text.index(text, at + 1)
        return at, at + len(text)


@pytest.fixture(scope="session", autouse=True)
def quick_settings() -> Iterator[None]:
    """No test waits for a slow password hash (a third of a second each), nor for its clients to
    look through all static files, nor a second at the desk for Celery's workers. No step asks for
    the next one: a test runs the steps itself. Boards and arrays are not cached: rows of one test
    have the primary keys of another's. Toy runs predict a handful; that a shared track refuses
    fewer than 100 is tested where plans are.
    """
    with (
        override_settings(
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
            WHITENOISE_AUTOREFRESH=True,
            NUDGES=False,
            ARRAYS_ROOT=None,
            PAGES_KEPT_SECONDS=0,
            FEWEST_PREDICTIONS=1,
        ),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("kbpo.web.desk.health.PATIENCE", 0.02)
        yield


@pytest.fixture
def never_resting(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """A test that plays the clock scores whenever something has come: how long the last scoring
    took, or is ago, decides nothing on a busy machine.
    """
    settings.DEBOUNCE_SECONDS = 0
    monkeypatch.setattr("kbpo.evaluation.run.REST", 0)


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    return new_user


def new_user(name: str, **flags: bool) -> User:
    return User.objects.create_user(name, f"{name}@example.org", PASSWORD, **flags)


@pytest.fixture
def toy(keep: Callable[..., Toy]) -> Toy:
    """Four documents, one open track (±3 %, design iid), two teams, three annotators, one admin."""
    return keep("toy", make_toy)


def make_toy() -> Toy:
    corpus = Corpus.objects.create(name="Toy", slug="toy", schema=SCHEMA, n_documents=len(TEXTS))
    documents = {}
    for key, text in TEXTS.items():
        tokens, sentences = tokens_of(text), sentences_of(text)
        documents[key] = Document.objects.create(
            corpus=corpus,
            key=key,
            title=key,
            text=text,
            token_begin=[b for b, _ in tokens],
            token_end=[e for _, e in tokens],
            sentence_begin=[b for b, _ in sentences],
            sentence_end=[e for _, e in sentences],
        )
    names = [predicate["name"] for predicate in SCHEMA["predicates"]]
    predicates = {
        name: Predicate.objects.create(corpus=corpus, name=name, position=at)
        for at, name in enumerate(names)
    }
    track = Track.objects.create(
        corpus=corpus, name="Toy track", slug="toy", status="open", scope="sentence", design="iid"
    )
    Price.objects.create(track=track, interface="relation", reward=Decimal("0.05"), seconds=20)
    Budget.objects.create(track=track, scope="track", cap=Decimal("500.00"))
    users = {
        "Rosa": new_user("rosa", is_researcher=True),
        "Tim": new_user("tim", is_researcher=True),
        "Ada": new_user("ada", is_annotator=True),
        "Bo": new_user("bo", is_annotator=True),
        "Cy": new_user("cy", is_annotator=True),
        "Admin": new_user("admin", is_staff=True),
    }
    teams = {
        name: Team.objects.create(name=name, slug=name.lower()) for name in ("Patterns", "Neural")
    }
    teams["Patterns"].members.add(users["Rosa"])
    teams["Neural"].members.add(users["Tim"])
    return Toy(corpus, track, documents, teams, users, predicates)
