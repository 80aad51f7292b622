"""How many statements each page costs: as many where three times as much is shown. A page that asks
once a row is quick in a demo, and stands still in a service.

The addresses are the pages of `test_every_page`, and the files and lists that are named here.
"""

from __future__ import annotations

from typing import Any

import pytest
from copied import copy, ours, rows
from django.core.cache import cache
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from undone import undone

from kbpo.accounts.models import Token
from kbpo.evaluation.models import Evaluation, Headline
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.reports import figures_of, keep
from tests.test.web.test_every_page import Page, world

pytestmark = [pytest.mark.django_db, pytest.mark.soak]
__all__ = ["world"]
Rows = dict[type[models.Model], list[dict[str, Any]]]
PEOPLE = (
    "accounts.User",
    "accounts.Team",
    "accounts.Membership",
    "accounts.Former",
    "annotation.Worker",
    "annotation.WorkerIdentity",
)
PLACES = ("corpus.Corpus", "corpus.Predicate", "tracks.Track")
OF_TRACK = (
    "board-csv",
    "api-board",
    "api-track",
    "api-documents",
    "api-mention-types",
    "api-judges",
    "api-releases",
    "api-schema-of-track",
)
OF_RUN = (
    "submission-explore?format=csv",
    "submission-explore?format=jsonl",
    "submission-problems?format=tsv",
    "submission?format=csv",
    "submission?part=live",
    "api-submission",
    "api-problems",
    "api-slices",
    "api-predictions",
)
OF_TEAM = (
    "runs?format=csv",
    "api-submissions",
    "api-tracks",
    "own-data",
    "account",
)
OF_ADMIN = (
    "desk?part=live",
    "desk-log?format=csv",
    "desk-money?format=csv",
    "desk-payouts?format=csv",
    "api-submissions",
    "own-data",
)
GROWS = {
    "a row of its own is read of each declared form": {
        "annotate", "annotate_feedback", "desk-money", "desk-gold",
    },
    "the money of each track is added up by itself": {"runs", "team"},
    "the money of each payer is added up by itself, and each batch's state": {
        "desk", "desk?part=live",
    },
    "each worker about whom an admin decides is read with each of their answers": {
        "desk-requests",
    },
    "the experts' questions of each track are counted by themselves": {"desk-quality"},
}  # fmt: skip
"""Why a page costs more where more is shown -> its name. To be mended: nothing is added to this."""


def test_three_times_as_many_rows_cost_no_more_statements(
    world: dict[str, list[Page]], judged: Submission, toy: Toy
) -> None:
    asked = {
        (name, *page): 0
        for name, pages in (world | further(judged)).items()
        for page in pages
        if len(page) == 2
    }
    assert len(asked) > 150
    base, clients = rows(), {who: client_of(toy, who) for _, who, _ in asked}
    grow(base, 1)
    few = {page: statements(clients[page[1]], page[2]) for page in asked}
    for mark in range(2, 6):
        grow(base, mark)
    many = {page: statements(clients[page[1]], page[2]) for page in asked}
    known = {name for names in GROWS.values() for name in names}
    more = {page: (n, many[page]) for page, n in few.items() if many[page] > n}
    assert not {page: told for page, told in more.items() if page[0] not in known}
    assert {page[0] for page in more} == known, "what no longer grows is taken off the list"


def grow(base: Rows, mark: int) -> None:
    """Everything once more: for the same people, for others, elsewhere; and an evaluation of it."""
    copy(base, 10 * mark + 1, (*PEOPLE, *PLACES, Evaluation._meta.label))
    copy(base, 10 * mark + 2, (*PLACES, Evaluation._meta.label))
    copy(base, 10 * mark + 3)
    keys = {row["id"] for row in base[Evaluation]}
    headlines = [row for row in rows()[Headline] if row["evaluation_id"] in keys]
    others = {model._meta.label for model in ours()} - {
        Evaluation._meta.label,
        Headline._meta.label,
    }
    copy(base | {Headline: headlines}, 10 * mark + 4, others)
    for evaluation in Evaluation.objects.all():  # a report names submissions, and is not copied
        figures = figures_of(evaluation)
        one = next(iter(figures)).submission if figures else 0
        runs = Submission.objects.filter(track=evaluation.track).that_have_score()
        for pk in runs.values_list("pk", flat=True):
            own = figures_of(evaluation, submission=one).items()
            figures |= {key._replace(submission=pk): figure for key, figure in own}
        keep(evaluation, figures)


def further(row: Submission) -> dict[str, list[tuple[str, str]]]:
    """What is no page: files, and lists of the API."""
    found: dict[str, list[tuple[str, str]]] = {}
    for who, names, args in (
        ("Rosa", OF_TRACK, ["toy"]),
        ("Rosa", OF_RUN, [row.pk]),
        ("Rosa", OF_TEAM, []),
        ("Admin", OF_ADMIN, []),
        # To teams these are told once the track is closed.
        ("Admin", ("submission-missed?format=csv", "submission-missed?format=jsonl"), [row.pk]),
        ("Admin", ("desk-reading?format=csv",), ["toy"]),
        ("Ada", ("own-data",), []),
    ):
        for name in names:
            page, mark, query = name.partition("?")
            address = reverse(page, args=args) + mark + query
            found.setdefault(name, []).append((who, address))
    return found


def client_of(toy: Toy, who: str) -> Client:
    """A browser that somebody is logged in with, and that sends a token besides."""
    client = Client()
    if who:
        client.force_login(toy.users[who])
        token = Token.create_with_secret(toy.users[who], "counted")[1]
        client.defaults["HTTP_AUTHORIZATION"] = f"Token {token}"
    return client


def statements(client: Client, address: str) -> int:
    """How many statements the second of two requests costs; savepoints are the test's own."""
    cache.clear()
    with undone():
        read_whole(client, address)
        with CaptureQueriesContext(connection) as captured:
            read_whole(client, address)
    return sum("SAVEPOINT" not in one["sql"] for one in captured)


def read_whole(client: Client, address: str) -> None:
    """Nothing; the page was read to its end, so that no cursor of it outlives the transaction."""
    answer = client.get(address, follow=True)
    if answer.streaming:
        b"".join(answer.streaming_content)
    assert answer.status_code == 200, address
