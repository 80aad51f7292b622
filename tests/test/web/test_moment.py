"""A page tells one moment: nothing that is judged or paid while it is made contradicts itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import InternalError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from kbpo.accounts.models import Team
from kbpo.instances.merge import merged_values
from kbpo.instances.models import Target
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.web import http
from kbpo.web.http import in_snapshot

pytestmark = pytest.mark.django_db(transaction=True)
ONE_MOMENT = http.database_snapshot
"""As the service has it, without what tests watch besides"""


def arrive(name: str) -> None:
    """Another process commits."""
    Team.objects.create(name=name, slug=name)
    connection.close()


@in_snapshot
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


@in_snapshot
def founds(request: HttpRequest) -> HttpResponse:
    """A page that writes, whoever asks for it."""
    Team.objects.create(name="New", slug="new")
    return HttpResponse()


def test_a_page_that_is_read_at_one_moment_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two who looked at a run at once the database refused one: both had written a row."""
    asked = RequestFactory()
    monkeypatch.setattr(http, "database_snapshot", ONE_MOMENT)
    with pytest.raises(InternalError, match="read-only transaction"):
        founds(asked.get("/"))
    assert not Team.objects.exists() and not connection.in_atomic_block
    founds(asked.post("/"))
    assert Team.objects.count() == 1


@in_snapshot
def judged(request: HttpRequest) -> HttpResponse:
    """A page that tells twice what a target was judged to be, between which it is judged anew."""
    target = Target.objects.filter(kind="pair").earliest("pk")
    first = {pk: value for pk, value, _ in merged_values([target.pk], merge_labels)}
    with CaptureQueriesContext(connection) as asked:
        again = {pk: value for pk, value, _ in merged_values([target.pk], merge_labels)}
    return JsonResponse({"same": first == again, "asked": len(asked), "value": first})
