"""Every page there is: axe-core finds no serious violation, and nothing scrolls sideways on a
phone.

Every named address is a page with an example here, or stands in a list that says why it is none: a
new page fails this test until it is looked at too. SCREENSHOTS=folder keeps a picture of each, to
be read by a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from playwright.sync_api import Browser

from annotation.hits import publish
from annotation.labels import exclude
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Question,
    Signal,
    Worker,
    WorkerIdentity,
)
from annotation.platforms import proof
from annotation.quality import gold
from annotation.questions import ask
from annotation.questions.ask import can_be_gold
from annotation.workers import consent, payout, speak, teach
from annotation.workers.worker import worker_handle, worker_of_user
from kbpo.accounts.models import Invitation, User, Webhook
from kbpo.evaluation import correction
from kbpo.evaluation.run import tick as estimate
from kbpo.sampling.confirm import confirm_plan
from kbpo.sampling.draw import tick as draw
from kbpo.submissions.models import Submission
from kbpo.tracks.texts.declared import store_form
from kbpo.web.desk.forms import EXAMPLE
from kbpo.web.judging.lessons import load_examples
from tests.conftest import Toy
from tests.test.annotation.annotation_world import learn
from tests.test.annotation.documents_world import order
from tests.test.tracks.test_declared_forms import BETTER
from tests.test.web.conftest import OTHERS
from tests.test.web.test_axe import context_of, looked_at

pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]
SITE = "https://worker.mturk.com"
FRAME = f"assignmentId=3A&workerId=W9&turkSubmitTo={SITE}"
PICTURES = os.environ.get("SCREENSHOTS", "")
Page = tuple[str, str] | tuple[str, str, dict[str, Any]]
"""Who looks at it ("" is nobody), its address, and what is sent from there by a form, if it
shows only then."""
SEND = """(said) => {
  const form = Object.assign(document.createElement("form"), { method: "post", hidden: true });
  const token = document.querySelector("input[name=csrfmiddlewaretoken]").value;
  for (const [name, values] of Object.entries({ ...said, csrfmiddlewaretoken: token }))
    for (const value of [values].flat())
      form.append(Object.assign(document.createElement("input"), { name, value }));
  document.body.append(form);
  form.submit();
}"""

NO_PAGE = {
    "forms alone, answered by a redirect": {
        "annotate_return", "annotate_stop",
        "logout", "submission-dispute",
        "notices-webhook",
        "token-revoke", "tokens",
    },
    "a way to another page": {
        "annotate_next", "client", "compare", "expert-next",
        "explore", "favicon",
        "try",
        "try-it",
    },
    "read by a script": {
        "annotate_draft", "annotate_keys",
        "expert-draft",
        "task_draft", "task_notify", "api-board",
        "api-confirm", "api-dispute", "api-retry",
        "api-slices",
        "api-order", "api-problems", "api-schema", "api-submission", "api-submissions",
        "api-tracks", "api-withdraw", "api-compare", "api-predictions", "api-schema-of-track",
        "api-track", "api-track-judgments",
        "api-judges", "api-missed", "api-releases", "api-scores",
        "api-unscored",
        "api-metrics",
        "healthz", "service-metrics",
    },
    "a file": {
        "api-documents", "api-mention-types", "baseline",
        "board-csv", "desk-export",
        "own-data",
        "client-file", "release",
        "upload-example", "upload-file",
    },
}  # fmt: skip


@pytest.fixture
def world(
    judged: Submission,
    toy: Toy,
    draft: Callable[..., Submission],
    settings: Any,
) -> dict[str, list[Page]]:
    """A service on which everything has happened once; the name of every page -> examples of it."""
    settings.MTURK_WORKER_SITES, settings.MTURK_ENDPOINT_URL = [SITE], "http://127.0.0.1:8010"
    admin, ada = toy.users["Admin"], worker_of_user(toy.users["Ada"])
    estimate()
    pages = _public(toy) | _tried()
    pages |= _of_ada(toy, ada) | _of_rosa(judged, toy, draft)
    confirm_plan(draft(OTHERS, by="Tim", name="more"), toy.users["Tim"])  # asked, and not answered
    draw()
    pages |= _of_admin(judged, toy, ada)
    pages["annotate_question"] += _in_hand(toy)
    pages["annotate_tutorial_question"] += _being_learned(toy)
    client = Client()
    client.force_login(admin)
    pages |= _decided(client, toy)
    pages |= _in_a_frame(toy)
    return pages | {"gold_know": _asked_of_nobody(toy)}


def _asked_of_nobody(toy: Toy) -> list[Page]:
    """Gold of what nobody is asked any more."""
    asked = Question.objects.filter(
        track=toy.track, interface="relation", status="published", hits__assignments=None
    )
    one = asked.latest("pk")
    Question.objects.filter(target=one.target_id).update(status="cancelled")
    assert can_be_gold(toy.track, one.target_id)
    return [("Admin", reverse("gold_know", args=["toy", one.target_id]))]


def _public(toy: Toy) -> dict[str, list[Page]]:
    names = (
        "home",
        "tracks",
        "ask",
        "forgotten",
        "about",
        "help",
        "methods",
        "api",
        "login",
        "annotate_volunteer",
        "annotate_gone",
        "annotate_terms",
    )
    found: dict[str, list[Page]] = {name: [("", reverse(name))] for name in names}
    invited = Invitation.objects.create(role="annotator", made_by=toy.users["Admin"])
    return found | {
        "board": [("", reverse("board", args=["toy"]))],
        "guidelines": [("", reverse("guidelines", args=["toy"]))],
        "track": [("", reverse("track", args=["toy"])), ("Rosa", reverse("track", args=["toy"]))],
        "track-documents": [("", reverse("track-documents", args=["toy"]) + "?q=Berg")],
        "track-document": [("Rosa", reverse("track-document", args=["toy", "d1"]))],
        "compare-track": [("", reverse("compare-track", args=["toy"]))],
        "metrics": [("", reverse("metrics", args=["toy"]))],
        "join": [("", reverse("join", args=[invited.code]))],
        "password_reset_confirm": [("", reverse("password_reset_confirm", args=["MQ", "x"]))],
    }


def _tried() -> dict[str, list[Page]]:
    """Every example, and what it says once it is answered."""
    found: list[Page] = []
    for number, example in enumerate(load_examples(), start=1):
        address = reverse("try_question", args=[number])
        said = example.get("right", {"a": "other", "b": "other", "none": "1"})
        found += [("", address), ("", address, said)]
    return {"try_question": found}


def _of_ada(toy: Toy, ada: Worker) -> dict[str, list[Page]]:
    """The pages of an annotator who was paid once, was written to, and holds a document."""
    speak.send_message_from_admin(ada, "Thank you", "Well done.", toy.users["Admin"])
    speak.store_feedback(
        ada, "relation", clear=True, fair=False, comment="A little more would be fair."
    )
    payout.set_payout_address(ada, "Harbour Bank 12-345, Ada Lee")
    [owed] = [one for one in payout.list_debts() if one.worker == ada]
    paid = payout.record_payout(
        ada,
        upto=owed.upto,
        amount=owed.amount,
        reference="bank 7",
        key="k" * 16,
        who=toy.users["Admin"],
    )
    order(toy.track, 2)
    client = Client()
    client.force_login(toy.users["Ada"])
    held = client.get(reverse("annotate_next"))["Location"]
    token = held.split("/")[2]
    names = (
        "annotate",
        "annotate_history",
        "annotate_messages",
        "annotate_payee",
        "annotate_feedback",
        "annotate_receipts",
        "annotate_leave",
        "account",
        "password",
    )
    found: dict[str, list[Page]] = {name: [("Ada", reverse(name))] for name in names}
    return found | {
        "annotate_answer": [
            ("Ada", reverse("annotate_answer", args=[one.pk]))
            for one in Assignment.objects.filter(worker=ada).exclude(submitted_at=None)[:1]
        ],
        "annotate_receipt": [("Ada", reverse("annotate_receipt", args=[paid.number]))],
        "annotate_tutorial": [("Ada", reverse("annotate_tutorial", args=["relation"]))],
        "annotate_tutorial_question": [
            ("Ada", reverse("annotate_tutorial_question", args=[interface, 1]))
            for interface in ("relation", "entities", "relations_exhaustive")
        ],
        "annotate_question": [("Ada", held)],
        "annotate_document": [("Ada", reverse("annotate_document", args=[token]))],
        "desk-receipt": [("Admin", reverse("desk-receipt", args=[paid.number]))],
    }


def _in_hand(toy: Toy) -> list[Page]:
    """A question about a pair that Cy holds."""
    ask.tick()
    publish.tick()
    hit = HIT.objects.filter(questions__interface="relation", status="open")[0]
    held = Assignment.objects.create(
        status="leased",
        hit=hit,
        worker=worker_of_user(toy.users["Cy"]),
        leased_until=timezone.now() + timedelta(hours=1),
    )
    return [("Cy", reverse("annotate_question", args=[held.token]))]


def _being_learned(toy: Toy) -> list[Page]:
    """The first question of each tutorial, as somebody new is asked it; Ada's are explained, for
    she answered them.
    """
    toy.users["Dee"] = User.objects.create(username="dee", is_annotator=True)
    dee = worker_of_user(toy.users["Dee"])
    consent.store_consent(dee, consent.current_terms().version)
    for tutorial in teach.tutorials().values():
        assert teach.begin_tutorial(dee, tutorial) is not None
    return [
        ("Dee", reverse("annotate_tutorial_question", args=[name, 1])) for name in teach.tutorials()
    ]


def _of_rosa(row: Submission, toy: Toy, draft: Callable[..., Submission]) -> dict[str, list[Page]]:
    names = (
        "submission",
        "submission-problems",
        "submission-explore",
        "submission-missed",
        "submission-edit",
    )
    found: dict[str, list[Page]] = {
        name: [("Rosa", reverse(name, args=[row.pk]))] for name in names
    }
    team = toy.users["Rosa"].team()
    assert team is not None
    Webhook.objects.create(user=toy.users["Rosa"], url="https://rosa.example.org/kbp")
    waits, broken = (
        draft(name="waits"),
        draft(name="broken", body=b"{no line of ours", until="read"),
    )
    draft(name="lost").move("failed", "The disk was full.")
    steps = {
        name: [("Rosa", reverse(name, args=[waits.pk]))]
        for name in ("upload-describe", "upload-confirm")
    }
    checked = [("Rosa", reverse("upload-check", args=[one.pk])) for one in (waits, broken)]
    return (
        found
        | steps
        | {
            "submit": [("Rosa", reverse("submit"))],
            "runs": [("Rosa", reverse("runs"))],
            "runs-ledger": [("Rosa", reverse("runs-ledger"))],
            "evaluations": [("", reverse("evaluations", args=["toy"]))],
            "evaluation": [
                (
                    "",
                    reverse(
                        "evaluation", args=["toy", toy.track.evaluations.latest("number").number]
                    ),
                )
            ],
            "board-embed": [("", reverse("board-embed", args=["toy"]))],
            "team": [("Rosa", reverse("team", args=[team.slug]))],
            "notices": [("Rosa", reverse("notices"))],
            "account-close": [("Rosa", reverse("account-close"))],
            "upload-check": checked,
        }
    )


def _of_admin(row: Submission, toy: Toy, ada: Worker) -> dict[str, list[Page]]:
    """The admins' pages, with somebody excluded, an appeal, a marketplace's worker, and gold."""
    admin = toy.users["Admin"]
    bo = worker_of_user(toy.users["Bo"])
    cy = worker_of_user(toy.users["Cy"])
    exclude.exclude_worker(cy, "Two people share the account.", admin)
    cy.refresh_from_db()
    speak.store_appeal(cy, "It is I alone.")
    far = Worker.objects.create(platform="mturk", handle="cd" * 16)
    WorkerIdentity.objects.create(worker=far, external_id="W1")
    Bonus.objects.create(
        status="owed",
        track=toy.track,
        worker=far,
        amount=Decimal("0.50"),
        fee=Decimal("0.10"),
        why="x",
    )
    doubted = Assignment.objects.filter(worker=ada).exclude(raw=None)[
        :4
    ]  # an admin is asked for a decision
    Signal.objects.bulk_create(
        [Signal(assignment=one, kind="gold", against=True) for one in doubted]
    )
    assert len(exclude.undecided_workers()) == 1
    gold.reserve_gold_money(toy.track, Decimal("1.00"), admin, "It is needed.", key="1")
    candidate = gold.gold_candidates(toy.track)[0]
    answer = Assignment.objects.filter(worker=ada, hit__questions=candidate).get()
    assert isinstance(answer.raw, dict)
    gold.make_gold(candidate, answer.raw, admin, "Sure.")
    other = Question.objects.filter(status="settled", gold_made=None).exclude(pk=candidate.pk)[0]
    declared = [store_form(form).name for form in (EXAMPLE.read_text(encoding="utf-8"), BETTER)]
    names = (
        "desk",
        "desk-workers",
        "desk-requests",
        "desk-rules",
        "desk-payouts",
        "desk-people",
        "desk-quality",
        "desk-log",
        "desk-forms",
        "desk-platforms",
        "desk-money",
        "desk-tracks",
        "desk-corpora",
        "desk-track-new",
    )
    by_track = (
        "desk-track",
        "desk-annotations",
        "desk-track-describe",
        "desk-track-judgments",
        "desk-track-quality",
        "desk-gold",
        "desk-scores",
        "desk-reading",
        "desk-experts",
    )
    found: dict[str, list[Page]] = {name: [("Admin", reverse(name))] for name in names}
    found |= {name: [("Admin", reverse(name, args=["toy"]))] for name in by_track}
    bos = Assignment.objects.filter(worker=bo).exclude(raw=None)[0]
    return found | {
        "desk-worker": [
            ("Admin", reverse("desk-worker", args=[one.handle])) for one in (ada, bo, far)
        ],
        "desk-answer": [
            ("Admin", reverse("desk-answer", args=[bos.pk]) + said) for said in ("", "?refuse")
        ],
        "desk-batch": [("Admin", reverse("desk-batch", args=[row.purpose]))],
        "desk-form": [
            ("Admin", reverse("desk-form", args=[name]) + said)
            for name in declared
            for said in ("", "?preview")
        ],
        "gold_make": [("Admin", reverse("gold_make", args=[other.pk]))],
        "annotate_preview": [
            ("Admin", reverse("annotate_preview", args=[one.pk]))
            for one in (candidate, Question.objects.filter(interface="entities")[0])
        ],
    }


def _decided(client: Client, toy: Toy) -> dict[str, list[Page]]:
    """What an expert is asked, and what was answered."""
    address = reverse("desk-experts", args=["toy"])
    said = client.post(address, {"verb": "draw", "budget": "25", "why": "x"})
    assert said.status_code == 302, said.content.decode()
    assert correction.tick() == 1
    first = client.get(reverse("expert-next", args=["toy"]))["Location"]
    said = client.post(first, {"a": "other", "b": "other", "none": "1"})
    assert said.status_code == 302, said.content.decode()
    check = client.get(reverse("expert-next", args=["toy"]))["Location"]
    pk, done = (int(page.rstrip("/").rpartition("/")[2]) for page in (check, first))
    return {
        "desk-trail": [("Admin", reverse("desk-trail", args=["toy", done]))],
        "expert-question": [("Admin", check)],
        "expert-document": [("Admin", reverse("expert-document", args=["toy", pk]))],
    }


def _in_a_frame(toy: Toy) -> dict[str, list[Page]]:
    """A marketplace's pages: preview, terms, question, why not, a payment, and what its worker may
    say.
    """
    hits = []
    for interface in ("relation", "entities"):
        question = Question.objects.filter(interface=interface, gold=None).order_by("-pk")[0]
        Question.objects.filter(pk=question.pk).update(status="published")
        hit = HIT.objects.create(
            status="open",
            track=toy.track,
            platform="mturk",
            external_id=f"3{interface}",
            reward=question.reward,
        )
        hit.questions.add(question)
        hits.append(hit)
    newcomer, learner = FRAME.replace("W9", "WNEW"), FRAME.replace("W9", "WLEARNS")
    stranger = Worker.objects.create(platform="mturk", handle=worker_handle("mturk", "WSTRANGE"))
    learner_of_it = Worker.objects.create(
        platform="mturk", handle=worker_handle("mturk", "WLEARNS")
    )
    consent.store_consent(learner_of_it, consent.current_terms().version)
    known = Worker.objects.create(platform="mturk", handle=worker_handle("mturk", "W9"))
    learn(known)
    out = Worker.objects.create(platform="mturk", handle=worker_handle("mturk", "WOUT"))
    exclude.exclude_worker(out, "Always the first button")
    out.refresh_from_db()
    bonus = Bonus.objects.get()
    asked = hits[0].questions.get()
    task = proof.task_path(hits[0])
    mine = proof.sign_form(hits[0].pk, "3A", known.handle, SITE)
    goes = (FRAME, newcomer, learner, FRAME.replace("W9", "WOUT"))
    return {
        "task": [
            *(("", proof.task_path(hit)) for hit in hits),
            ("", f"{proof.task_path(hits[1])}?{FRAME}"),
            *(("", f"{task}?{go}") for go in goes),
            ("", _complete(hits[0])),
        ],
        "task_document": [("", f"{task}document/{asked.pk}/?proof={mine}")],
        "task_thanks": [("", f"{proof.thanks_path(bonus)}?{FRAME}")],
        "task_say": [("", proof.feedback_path(out))],
        "task_learn": [
            ("", proof.tutorial_path(one)) for one in (stranger, learner_of_it, known, out)
        ],
    }


def _complete(hit: HIT) -> str:
    """A HIT that its worker has answered whole: it shows the form that sends everything in."""
    done = Worker.objects.create(platform="mturk", handle=worker_handle("mturk", "WDONE"))
    learn(done)
    said = {
        "proof": proof.sign_form(hit.pk, "3DONE", done.handle, SITE),
        "a": "other",
        "b": "other",
        "none": "1",
    }
    sent = Client().post(proof.task_path(hit), said)
    assert sent.status_code == 200 and "send.js" in re.sub(
        r"\.[0-9a-f]{12}", "", sent.content.decode()
    )
    return f"{proof.task_path(hit)}?{FRAME.replace('W9', 'WDONE').replace('3A', '3DONE')}"


def names_of_all() -> Iterator[str]:
    for one in get_resolver().url_patterns:
        inner = getattr(one, "url_patterns", None)
        for pattern in inner if inner is not None else [one]:
            if isinstance(pattern, URLPattern) and pattern.name:
                yield pattern.name


def each(
    browser: Browser, live_server: Any, toy: Toy, pages: list[Page]
) -> Iterator[tuple[str, Any]]:
    """Every page, opened by who looks at it."""
    for who in sorted({one[0] for one in pages}):
        context = context_of(browser, live_server.url, toy.users[who] if who else None)
        context.route(
            re.compile(r"/shared/send(\.[0-9a-f]{12})?\.js"), lambda route: route.abort()
        )  # it would leave at once
        page, faults = context.new_page(), list[str]()
        page.on("pageerror", lambda error, faults=faults: faults.append(error.stack))
        for _, address, *said in (one for one in pages if one[0] == who):
            response = page.goto(live_server.url + address)
            if said:
                with page.expect_navigation() as sent:
                    page.evaluate(SEND, said[0])
                response = sent.value
            assert response is not None and response.status == 200, (
                address,
                response and response.status,
            )
            yield f"{address} sent" if said else address, page
            assert not faults, f"A script of {address} failed: {faults}"
        context.close()


def keep_pictures(page: Any, width: int, *, number: int, address: str) -> None:
    name = re.sub(r"[^a-z0-9]+", "-", address.partition("?")[0])[:60].strip("-")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.screenshot(
            path=Path(PICTURES) / f"{number:03}-{name}-{width}-{scheme}.png", full_page=True
        )


def test_no_page_has_a_serious_violation_or_scrolls_sideways(
    browser: Browser, live_server: Any, toy: Toy, world: dict[str, list[Page]]
) -> None:
    none = set().union(*NO_PAGE.values())
    assert set(world) & none == set()
    assert set(names_of_all()) - none == set(world), (
        "a page without an example, or one that is gone"
    )
    pages = [page for some in world.values() for page in some]
    found: list[str] = []
    for number, (address, page) in enumerate(each(browser, live_server, toy, pages)):
        picture = partial(keep_pictures, number=number, address=address) if PICTURES else None
        found += looked_at(page, address, picture)
    assert "\n".join(found) == ""


def test_every_page_of_an_admin_says_whether_money_is_real_and_no_other_does(
    toy: Toy, world: dict[str, list[Page]]
) -> None:
    wrong: list[str] = []
    for who, address, *said in (page for some in world.values() for page in some):
        client = Client()
        if who:
            client.force_login(toy.users[who])
        answer = client.post(address, said[0]) if said else client.get(address, follow=True)
        of_admins = who == "Admin"
        if answer.content.decode().count('id="real-money"') != of_admins:
            wrong.append(f"{address} ({answer.status_code})")
    assert "\n".join(wrong) == ""
