"""A way out, a choice, a correction: stopping, choosing kinds, keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from annotation_world import GOOD, PARTS, take
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from annotation.hits import lease
from annotation.models import (
    HIT,
    Assignment,
    Question,
    Worker,
)
from kbpo.accounts.models import User
from kbpo.submissions.models import Submission

pytestmark = pytest.mark.django_db
NONE = {"a": "0-3", "b": "other", "none": "1"}
CHOSEN = f'value="{escape(PARTS[0])}" checked'
JSON = {"HTTP_ACCEPT": "application/json"}


def text(response: Any) -> str:
    found: str = response.content.decode()
    return found


def test_who_stops_gives_the_question_back_and_finds_it_again_with_the_draft(
    published: Submission, ada: Client
) -> None:
    address = take(ada)
    page = text(ada.post(address + "stop/", {"a": "0-3"}, follow=True))
    assert "You stopped. Your draft is saved" in page and "6 questions wait for you" in page
    row = Assignment.objects.get()
    assert (row.status, row.returned_by, row.draft) == ("returned", "stopped", {"a": ["0-3"]})
    Assignment.objects.update(accepted_at=row.accepted_at - timedelta(seconds=8))
    Assignment.objects.update(status_since=timezone.now() - timedelta(hours=3))
    began = Assignment.objects.get().accepted_at
    assert take(ada) == address and 'value="0-3" checked' in text(ada.get(address))
    row = Assignment.objects.get()
    assert row.status == "leased"
    assert timedelta(hours=3) <= row.accepted_at - began < timedelta(hours=3, minutes=1)


def test_what_somebody_stopped_at_goes_to_others_and_is_then_theirs(
    published: Submission, clients: list[Client]
) -> None:
    address = take(clients[0])
    HIT.objects.exclude(pk=Assignment.objects.get().hit_id).update(order=9)
    HIT.objects.filter(pk=Assignment.objects.get().hit_id).update(max_assignments=1)
    clients[0].post(address + "stop/", {"a": "0-3"})
    clients[1].post(take(clients[1]), GOOD)
    again = take(clients[0])
    assert again != address
    assert Assignment.objects.get(token=again.split("/")[2]).draft is None


def test_nobody_stops_for_another(published: Submission, clients: list[Client]) -> None:
    address = take(clients[0])
    clients[1].post(address + "stop/", {"a": "other"})
    row = Assignment.objects.get()
    assert (row.status, row.draft) == ("leased", None)


def test_home_says_what_the_open_work_earns_kind_by_kind(
    published: Submission, ada: Client
) -> None:
    page = text(ada.get("/annotate/"))
    assert "$0.30" in page and "?kind=relation" in page
    take(ada)
    worker = Worker.objects.get()
    offer = lease.offers_by_interface(worker, ["relation", "entities"])["relation"]
    assert (offer.n, str(offer.earns)) == (5, "0.25")
    assert offer.seconds == 5 * Question.objects.all()[0].seconds
    assert lease.offers_by_interface(worker, ["entities"])["entities"].n == 0


def test_a_kind_is_chosen_and_kept(published: Submission, ada: Client) -> None:
    other = Question.objects.filter(hits__order__gt=0).order_by("-order")[0]
    Question.objects.filter(pk=other.pk).update(interface="entities")
    assert ada.get("/annotate/next/?kind=entities")["Location"] == take(ada)
    worker = Worker.objects.get()
    held = Assignment.objects.get(status="leased")
    assert worker.wants == "entities" and held.hit == other.hits.get()
    sentence = ada.get("/annotate/next/?kind=relation")["Location"]
    held.refresh_from_db()
    assert (held.status, held.returned_by) == ("returned", "stopped")
    for _ in range(4):
        sentence = ada.post(sentence, GOOD)["Location"]
    page = text(ada.post(sentence, GOOD, follow=True))
    assert "No more questions of that kind" in page
    assert Worker.objects.get().wants == ""
    assert ada.get("/annotate/next/?kind=nonsense")["Location"] == take(ada) != ""


def test_keys_are_kept_with_the_person(published: Submission, ada: Client) -> None:
    wanted = {"off": False, "keys": {"z": "u"}}
    assert ada.post("/annotate/keys/", {"keys": json.dumps(wanted)}).status_code == 204
    assert "&quot;z&quot;: &quot;u&quot;" in text(ada.get(take(ada)))


def test_a_form_older_than_the_login_comes_back_with_the_answer(
    published: Submission, annotator: Callable[[str], User]
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(annotator("ada"))
    address = take(strict)
    answer = strict.post(address, GOOD | {"csrfmiddlewaretoken": "0" * 64})
    page = text(answer)
    assert answer.status_code == 403 and CHOSEN in page
    assert "as you have logged in again" in page
    assert Assignment.objects.get().status == "leased"
    told = strict.post(address, GOOD, **JSON)
    assert told.status_code == 403 and told.json()["csrf"]
    sent = GOOD | {"csrfmiddlewaretoken": told.json()["csrf"]}
    assert strict.post(address, sent, **JSON).status_code == 200
    elsewhere = strict.post("/annotate/", {"action": "appeal", "text": "no"})
    assert elsewhere.status_code == 403
    assert "your login changed or cookies are blocked" in text(elsewhere)
