"""The admins' pages of annotators, batches, quality and the log."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import (
    HIT,
    Assignment,
    Gold,
    Payment,
    Policy,
    Question,
    Response,
    Signal,
    Worker,
)
from annotation.questions import ask
from kbpo.accounts.models import Audit
from kbpo.money.models import Ledger
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.draw import tick as draw
from kbpo.submissions.models import Submission
from tests.conftest import ALONE, Toy
from tests.test.web.scored import make_study

As = Callable[[str], Client]
Draft = Callable[..., Submission]
Keep = Callable[..., Any]
pytestmark = pytest.mark.django_db
EVIDENCE = "Everything was answered within one second."


def test_the_desk_asks_for_a_decision_where_signals_leave_nobody_out(
    judged: Submission, as_user: As
) -> None:
    admin, worker = as_user("Admin"), Worker.objects.get(user__username="bo")
    desk, address = reverse("desk"), reverse("desk-worker", args=[worker.handle])
    assert 'id="undecided"' not in admin.get(desk).content.decode()
    hit = worker.assignments.all()[0].hit
    for _ in range(12):
        made = HIT.objects.create(
            status="closed", track=hit.track, platform="pool", reward=hit.reward
        )
        go = Assignment.objects.create(
            status="approved", hit=made, worker=worker, leased_until=timezone.now(), raw={}
        )
        Signal.objects.create(assignment=go, kind="gold", against=True)
    page = admin.get(desk).content.decode()
    assert (
        "1 annotator waits for your decision" in page
        and "12 of 12 answers to questions with a known" in page
    )
    assert "Everything is running; nothing failed" not in page
    page = admin.get(address).content.decode()
    assert "please decide" in page and "Keep them" in page
    assert admin.post(address, {"verb": "keep", "why": ""}).status_code == 422
    admin.post(address, {"verb": "keep", "why": "The gold was wrong."})
    assert 'id="undecided"' not in admin.get(desk).content.decode()
    Worker.objects.update(reinstated_at=None)
    admin.post(address, {"verb": "exclude", "why": "12 of 12 answers are wrong."})
    worker.refresh_from_db()
    assert (
        worker.excluded_at is not None and 'id="undecided"' not in admin.get(desk).content.decode()
    )
    assert (
        "already excluded"
        in admin.post(address, {"verb": "keep", "why": "Too late."}).content.decode()
    )


def test_a_worker_is_excluded_and_reinstated_with_reasons(judged: Submission, as_user: As) -> None:
    admin, worker = as_user("Admin"), Worker.objects.get(user__username="bo")
    address = reverse("desk-worker", args=[worker.handle])
    assert admin.post(address, {"verb": "exclude", "why": " "}).status_code == 422
    assert admin.post(address, {"verb": "fly", "why": "x"}).status_code == 422
    done = admin.post(
        address, {"verb": "exclude", "why": "Two people share the account."}, follow=True
    )
    n = Response.objects.filter(counts=False).count()
    assert (
        n
        and f"Excluded: {n} judgments; 0 labels changed, 4 questions asked again. All work"
        in done.content.decode()
    )
    page = admin.get(address).content.decode()
    assert f"No longer counted: {n} judgments; 0 labels changed, 4 questions" in page
    assert "Two people share the account. (admin)" in page and "Reinstate" in page
    admin.post(address, {"verb": "reinstate", "why": "They do not."})
    worker.refresh_from_db()
    assert worker.excluded_at is None
    page = admin.get(address).content.decode()
    assert "They do not." in page and "Exclude from labels and work" in page
    assert admin.get(reverse("desk-worker", args=["nobody"])).status_code == 404


def test_refusing_pay_takes_evidence_and_a_second_click_and_is_undone(
    judged: Submission, as_user: As
) -> None:
    admin = as_user("Admin")
    answer = Assignment.objects.filter(worker__user__username="bo")[0]
    address = reverse("desk-answer", args=[answer.pk]) + "?refuse"
    assert admin.post(address, {"evidence": "bad"}).status_code == 422
    page = admin.post(address, {"evidence": EVIDENCE}).content.decode()
    assert "Are you sure?" in page and EVIDENCE in page
    answer.refresh_from_db()
    assert answer.status == "approved", "one click changes nothing"
    admin.post(address, {"evidence": EVIDENCE, "sure": "yes"})
    answer.refresh_from_db()
    assert (
        answer.status == "rejected" and Payment.objects.get(assignment=answer).status == "withheld"
    )
    page = admin.get(reverse("desk-worker", args=[answer.worker.handle])).content.decode()
    assert "Refused by admin" in page
    unsaid = admin.post(reverse("desk-answer", args=[answer.pk]), {"action": "undo"}, follow=True)
    assert "Nothing was undone: say why" in unsaid.content.decode()
    assert Payment.objects.get(assignment=answer).status == "withheld"
    admin.post(
        reverse("desk-answer", args=[answer.pk]),
        {"action": "undo", "why": "The text was ambiguous."},
    )
    assert Audit.objects.get(what="undo rejection").why == "The text was ambiguous."
    assert Payment.objects.get(assignment=answer).status == "owed"
    assert (
        admin.post(
            reverse("desk-answer", args=[answer.pk]), {"action": "undo"}, follow=True
        ).status_code
        == 200
    )
    assert admin.get(reverse("desk-answer", args=[10**9]) + "?refuse").status_code == 404


def test_a_batch_is_paused_and_stopped_on_its_page(toy: Toy, draft: Draft, as_user: As) -> None:
    row = confirm_plan(draft(), toy.users["Rosa"])
    draw()
    ask.tick()
    publish.tick()
    admin, address = as_user("Admin"), reverse("desk-batch", args=[row.purpose])
    admin.post(address, {"verb": "pause", "why": "Wrong prices."})
    assert "Wrong prices." in admin.get(address).content.decode()
    admin.post(address, {"verb": "go on"})
    assert "Wrong prices." in admin.get(address).content.decode(), (
        "it does not go on without a reason"
    )
    admin.post(address, {"verb": "go on", "why": "It is mended."})
    refused = admin.post(address, {"verb": "stop", "why": "Wrong prices.", "word": "stpo"})
    assert refused.status_code == 422 and "type the word stop" in refused.content.decode()
    assert Question.objects.filter(status="published").exists()
    admin.post(address, {"verb": "stop", "why": "Wrong prices.", "word": "stop"})
    settle.tick()
    assert not Question.objects.filter(status="published").exists()
    assert "Nothing is open" in admin.get(address).content.decode()
    assert admin.get(reverse("desk-batch", args=["submission:9999"])).status_code == 404
    assert admin.post(address, {"verb": "fly"}).status_code == 422


def test_gold_is_made_rated_paid_for_and_retired(judged: Submission, as_user: As) -> None:
    admin, address = as_user("Admin"), reverse("desk-gold", args=["toy"])
    question = Question.objects.filter(status="settled")[0]
    assert reverse("gold_make", args=[question.pk]) in admin.get(address).content.decode()
    make = reverse("gold_make", args=[question.pk])
    page = admin.get(make).content.decode()
    assert "checked" in page, "it begins with an answer that was given"
    assert admin.post(make, {"a": "other"}).status_code == 422
    part = question.payload["predicates"][0]
    holds = " ".join([part["part"], *part.get("also", [])])
    right = {"a": "other", "b": "other", "holds": holds}
    unsaid = admin.post(make, right)
    assert (
        unsaid.status_code == 422
        and "Say how you know that this is right" in unsaid.content.decode()
    )
    assert admin.post(make, right | {"why": "All three said so."})["Location"] == address
    gold = Gold.objects.get()
    assert (
        gold.why == "All three said so."
        and "All three said so." in admin.get(address).content.decode()
    )
    assert gold.made_by is not None and gold.made_by.username == "admin"
    for wrong in (
        {"verb": "rate", "percent": "80"},
        {"verb": "rate", "percent": "x"},
        {"verb": "money", "amount": "0"},
        {"verb": "money", "amount": "1.001"},
        {"verb": "money", "amount": "9999"},
        {"verb": "retire"},
        {"verb": "rate", "percent": "5", "why": " "},
        {"verb": "money", "amount": "3.00", "key": "k"},
        {"verb": "retire", "gold": str(gold.pk)},
        {},
    ):
        refused = admin.post(address, wrong)
        assert refused.status_code == 422 and 'role="alert"' in refused.content.decode(), wrong
    admin.post(address, {"verb": "rate", "percent": "5", "why": "It is usual."})
    for _ in range(2):  # the same form sent twice sets aside once
        admin.post(address, {"verb": "money", "amount": "3.00", "key": "k", "why": "For a month."})
    assert Policy.objects.get().gold_rate == 0.05
    assert Ledger.objects.get(**gold.question.payer.filter_condition("purpose")).amount == Decimal(
        "3.00"
    )
    admin.post(address, {"verb": "retire", "gold": str(gold.pk), "why": "It is ambiguous."})
    gold.refresh_from_db()
    assert gold.retired_at is not None
    told = dict(Audit.objects.filter(what__contains="gold").values_list("what", "why"))
    assert told == {
        "make gold": "All three said so.",
        "gold rate": "It is usual.",
        "retire gold": "It is ambiguous.",
    }


def test_the_log_has_states_and_money_with_who_and_why(judged: Submission, as_user: As) -> None:
    admin = as_user("Admin")
    page = admin.get(reverse("desk-log"), {"about": str(judged.purpose)}).content.decode()
    assert (
        "planned → confirmed" in page
        and "rosa" in page
        and "the service" in page
        and "reserve" in page
    )
    states = admin.get(reverse("desk-log"), {"book": "states", "who": "rosa"}).content.decode()
    assert "confirmed" in states and "reserve" not in states
    assert (
        "No entry matches" in admin.get(reverse("desk-log"), {"track": "nowhere"}).content.decode()
    )
    Audit.objects.create(what="note", about="x", why="=cmd|' /C calc'!A0", at=timezone.now())
    response: Any = admin.get(reverse("desk-log") + "?format=csv")
    rows = list(csv.reader(b"".join(response.streaming_content).decode().splitlines()))
    assert rows[0][:4] == ["at", "what", "about", "who"]
    assert rows[1][6] == "'=cmd|' /C calc'!A0", "no cell is a formula"
    assert len(rows) == 1 + Audit.objects.count() + Ledger.objects.count()


def test_a_team_disputes_and_an_expert_answers_blind(
    judged: Submission, toy: Toy, as_user: As
) -> None:
    make_study(toy.track, toy.teams["Patterns"])
    page = as_user("Rosa").get(reverse("submission-explore", args=[judged.pk])).content.decode()
    assert "I think this judgment is wrong" in page
    assert (
        "I think this judgment is wrong"
        not in as_user("Tim").get(reverse("submission-explore", args=[judged.pk])).content.decode()
    )
    prediction = judged.predictions.order_by("pk")[0]
    address = reverse("submission-dispute", args=[judged.pk, prediction.pk])
    note = "It is the town beside it."
    for who, status in (("Tim", 404), ("", 302)):
        assert as_user(who).post(address, {"note": note}).status_code == status
    assert (
        "10 characters"
        in as_user("Rosa").post(address, {"note": "no"}, follow=True).content.decode()
    )
    assert (
        "An expert will judge it again"
        in as_user("Rosa").post(address, {"note": note}, follow=True).content.decode()
    )
    admin = as_user("Admin")
    desk = admin.get(reverse("desk-experts", args=["toy"])).content.decode()
    assert note in desk
    entry = re.search(r'name="entry" value="(\d+)"', desk)
    unsaid = admin.post(
        reverse("desk-experts", args=["toy"]), {"verb": "drop", "entry": entry and entry[1]}
    )
    assert (
        unsaid.status_code == 409
        and "Nothing was dismissed: give a reason" in unsaid.content.decode()
    )
    question = admin.get(reverse("expert-next", args=["toy"]))["Location"]
    blind = ALONE.sub("", admin.get(question).content.decode())
    assert (
        note not in blind
        and "checked" not in blind.split('data-step="a"')[1].split('class="flag"')[0]
    )
    assert as_user("Rosa").get(question).status_code == 403
    assert admin.post(question, {"a": "other"}).status_code == 422
    trail = admin.post(question, {"a": "other", "b": "other", "none": "1"})["Location"]
    shown = admin.get(trail).content.decode()
    assert note in shown and "disagrees" in shown
    admin.post(trail, {"remark": "The text says “near”."})
    page = as_user("Rosa").get(reverse("submission-explore", args=[judged.pk])).content.decode()
    assert "disagrees" in page and "The text says “near”." in page
