"""A page tells one moment: nothing that is judged or paid while it is made contradicts itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import InternalError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from kbpo.accounts.models import Team, User
from kbpo.instances.merge import values_of
from kbpo.instances.models import Target
from kbpo.tracks.kbp.merge import together
from kbpo.web import http
from kbpo.web.http import at_one_moment
from kbpo.web.research import runs

pytestmark = pytest.mark.django_db(transaction=True)
ONE_MOMENT = http.one_moment
"""As the service has it, without what tests watch besides"""


def arrive(name: str) -> None:
    """Another process commits."""
    Team.objects.create(name=name, slug=name)
    connection.close()


@at_one_moment
def counts(request: HttpRequest) -> HttpResponse:
    """A page that tells the same twice, between which something else comes in."""
    first = Team.objects.count()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(arrive, f"team-{first}-{request.method}").result()
    return HttpResponse(f"{first} {Team.objects.count()}")


def test_what_a_page_tells_twice_is_one_number_whatever_comes_in_meanwhile() -> None:
    asked = RequestFactory()
    assert counts(asked.get("/")).content == b"0 0"
    assert counts(asked.get("/")).content == b"1 1", "the next one sees what has come"
    assert counts(asked.post("/")).content == b"2 3", "who changes something sees the last word"
    assert not connection.in_atomic_block


@at_one_moment
def founds(request: HttpRequest) -> HttpResponse:
    """A page that writes, whoever asks for it."""
    Team.objects.create(name="New", slug="new")
    return HttpResponse()


def test_a_page_that_is_read_at_one_moment_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who looked at a run at once the database refused one: both had written a row."""
    asked = RequestFactory()
    monkeypatch.setattr(http, "one_moment", ONE_MOMENT)
    with pytest.raises(InternalError, match="read-only transaction"):
        founds(asked.get("/"))
    assert not Team.objects.exists() and not connection.in_atomic_block
    founds(asked.post("/"))
    assert Team.objects.count() == 1


@at_one_moment
def judged(request: HttpRequest) -> HttpResponse:
    """A page that tells twice what a target was judged to be, between which it is judged anew."""
    target = Target.objects.filter(kind="pair").earliest("pk")
    first = {pk: value for pk, value, _ in values_of([target.pk], together)}
    with CaptureQueriesContext(connection) as asked:
        again = {pk: value for pk, value, _ in values_of([target.pk], together)}
    return JsonResponse({"same": first == again, "asked": len(asked), "value": first})


def test_the_runs_of_a_team_and_its_money_are_told_as_of_one_moment(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run is judged, the row said 36 of 53 and the news above it 39 of 53."""
    rosa = User.objects.create_user("rosa", is_researcher=True)
    team = Team.objects.create(name="Patterns", slug="patterns")
    team.members.add(rosa)
    levels, money_of = [], runs.money_of

    def looked(*args: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            levels.append(cursor.fetchone()[0])
        return money_of(*args)

    monkeypatch.setattr(runs, "money_of", looked)
    client.force_login(rosa)
    assert client.get("/runs/").status_code == 200
    assert levels == ["repeatable read"]
