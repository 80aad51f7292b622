"""A marketplace worker's id is no password: whoever writes another one's into an address reads
nothing of theirs, fails in nobody's name, and keeps nobody from working.
"""

from __future__ import annotations

from decimal import Decimal
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from annotation_world import GOOD
from django.test import Client
from mturk_world import Turk, form_of, rounds

from annotation.labels import exclude
from annotation.marketplace import keep_draft
from annotation.models import HIT, Assignment, Qualification, Worker
from annotation.workers import consent, teach
from annotation.workers.models import Appeal, Feedback, Intake, Leaving, TutorialRun
from kbpo import clock
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.web.marketplace.task import NOT_FOR_YOU

pytestmark = pytest.mark.django_db
VICTIM = "WONEOFAKIND"


def path_of(src: str, **other: str) -> str:
    """The address of a task page on our side, with other words in it."""
    parts = urlsplit(src)
    words = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return f"{parts.path}?{urlencode(words | other)}"


def invented(src: str, number: int, worker: str = "") -> str:
    return path_of(src, assignmentId=f"INVENTED{number}", workerId=worker or f"WINVENTED{number}")


@pytest.fixture
def victim(up: Submission, turk: Turk) -> Worker:
    """Somebody who did one HIT, was excluded and told so."""
    turk.do(VICTIM, turk.hits()[0])
    rounds()
    worker = Worker.objects.get()
    exclude.exclude(worker, "5 of 9 answers to questions with a known answer are wrong.")
    rounds()
    return worker


def say_of(page: str) -> str:
    begin = page.index("/annotate/say/")
    return page[begin : page.index('"', begin)]


def test_whoever_knows_an_id_reads_nothing_that_was_written_to_it(
    victim: Worker, turk: Turk
) -> None:
    _, src = turk.accept("WSOMEBODY", turk.hits()[1])
    page = Client().get(invented(src, 1, VICTIM)).content.decode()
    assert "5 of 9" not in page
    address = say_of(page)
    shown = Client().get(address).content.decode()
    assert "5 of 9" not in shown and "Why we offer you nothing more" not in shown
    Client().post(address, {"verb": "appeal", "text": "Please let me in again."})
    assert not Appeal.objects.exists()
    said = {"verb": "feedback", "clear": "no", "fair": "yes", "comment": "Step 2."}
    assert "Thank you" in Client().post(address, said).content.decode()
    assert Feedback.objects.count() == 1


@pytest.mark.soak
def test_the_page_opens_once_the_platform_has_listed_the_assignment(
    up: Submission, turk: Turk
) -> None:
    assignment, src = turk.accept(VICTIM, turk.hits()[0])
    page = Client().get(path_of(src)).content.decode()
    address = say_of(page)
    assert (
        "What we wrote to you, and where you can appeal" in Client().get(address).content.decode()
    )
    sent = Client().post(path_of(src), (form_of(page, "answer") or {}) | GOOD).content.decode()
    turk.send(form_of(sent, "send") or {})
    rounds()
    assert Assignment.objects.get().external_id == assignment
    exclude.exclude(Worker.objects.get(), "Always the first button.")
    assert "Always the first button." in Client().get(address).content.decode()


def test_invented_names_take_the_places_of_one_another_and_of_nobody_who_sent_something_in(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_draft, "MOST", 1)
    hit = HIT.objects.get(external_id=turk.hits()[0])
    known = Worker.objects.create(platform="mturk", handle="known")
    Assignment.objects.create(
        hit=HIT.objects.get(external_id=turk.hits()[1]),
        worker=known,
        status="approved",
        leased_until=clock.now(),
        raw={},
    )
    places = keep_draft.MOST * hit.max_assignments

    def come(number: int) -> bool:
        return keep_draft.keep_draft(hit, f"A{number}", f"invented {number}", None).leased

    assert all(come(number) for number in range(places))
    assert keep_draft.keep_draft(hit, "A", known.handle, None).leased
    assert all(come(number) for number in range(places, 3 * places))
    held = set(hit.assignments.filter(status="leased").values_list("worker__handle", flat=True))
    assert known.handle in held and len(held) == places
    assert Worker.objects.count() == places, "of the others nothing is left"


@pytest.mark.soak
def test_invented_names_keep_nobody_out(up: Submission, turk: Turk) -> None:
    _, src = turk.accept(VICTIM, turk.hits()[0])
    hit = HIT.objects.get(external_id=turk.hits()[0])
    for number in range(3 * keep_draft.MOST * hit.max_assignments):
        assert Client().get(invented(src, number)).status_code == 200
    assert hit.assignments.filter(status="leased").count() == keep_draft.MOST * hit.max_assignments
    page = Client().get(path_of(src)).content.decode()
    assert form_of(page, "answer") is not None, page
    sent = Client().post(path_of(src), (form_of(page, "answer") or {}) | GOOD).content.decode()
    turk.send(form_of(sent, "send") or {})
    rounds()
    assert Assignment.objects.filter(worker__identity__external_id=VICTIM, status="paid").exists()


@pytest.mark.soak
def test_who_gave_up_a_place_to_a_stranger_finds_the_draft_again(
    up: Submission, turk: Turk
) -> None:
    _, src = turk.accept(VICTIM, turk.hits()[0])
    page = Client().get(path_of(src)).content.decode()
    fields = form_of(page, "answer") or {}
    address = urlsplit(src).path + "draft/"
    assert Client().post(address, fields | {"a": "0-3"}).status_code == 200
    mine = Assignment.objects.get()
    for number in range(3 * keep_draft.MOST * mine.hit.max_assignments):
        Client().get(invented(src, number))
    mine.refresh_from_db()
    assert mine.status == "returned" and "0-3" in str(mine.draft)
    Client().get(path_of(src))
    mine.refresh_from_db()
    assert mine.status == "leased" and "0-3" in str(mine.draft)


def fail_tutorial(path: str) -> None:
    for _ in range(teach.ATTEMPTS):
        page = Client().get(path).content.decode()
        if (form := form_of(page, "consent")) is not None:
            page = Client().post(path, form | {"agree": "yes"}).content.decode()
        Client().post(path, form_of(page, "begin") or {})
        for _ in teach.tutorials()["relation"].questions:
            page = Client().get(path).content.decode()
            Client().post(path, (form_of(page, "answer") or {}) | {"problem": "text"})


@pytest.mark.usefixtures("untaught")
def test_nobody_fails_the_tutorial_in_the_name_of_another(up: Submission, turk: Turk) -> None:
    _, src = turk.accept(VICTIM, turk.hits()[0])
    fail_tutorial(invented(src, 1, VICTIM))
    told = Client().get(invented(src, 1, VICTIM)).content.decode()
    assert "not passed in two attempts" in told
    assert TutorialRun.objects.filter(passed=False).count() == 2
    page = Client().get(path_of(src)).content.decode()
    assert "not passed in two attempts" not in page
    # What she is asked first is whether she agrees: nobody agreed in her name either.
    assert form_of(page, "consent") is not None, page


def pass_tutorial(path: str) -> str:
    """The page after the terms and the tutorial, which is passed."""
    page = Client().get(path).content.decode()
    page = Client().post(path, (form_of(page, "consent") or {}) | {"agree": "yes"}).content.decode()
    Client().post(path, form_of(page, "begin") or {})
    for question in teach.tutorials()["relation"].questions:
        page = Client().get(path).content.decode()
        Client().post(path, (form_of(page, "answer") or {}) | question["right"])
    return Client().get(path).content.decode()


@pytest.mark.usefixtures("untaught")
@pytest.mark.soak
def test_nobody_agrees_or_passes_the_tutorial_in_the_name_of_another(
    up: Submission, turk: Turk
) -> None:
    assignment, src = turk.accept(VICTIM, turk.hits()[0])
    assert "data-tutorial" not in pass_tutorial(invented(src, 1, VICTIM))
    worker, run = Worker.objects.get(), TutorialRun.objects.get()
    assert run.passed and consent.has_consented(worker, run.assignment)
    assert "relation" in teach.taught(worker, run.assignment)
    for in_hand in ("", assignment):
        assert not consent.has_consented(worker, in_hand)
        assert "relation" not in teach.taught(worker, in_hand)
    assert not Qualification.objects.exists()
    page = Client().get(path_of(src)).content.decode()
    assert form_of(page, "consent") is not None

    page = pass_tutorial(path_of(src))
    sent = Client().post(path_of(src), (form_of(page, "answer") or {}) | GOOD).content.decode()
    assert not Qualification.objects.exists()
    turk.send(form_of(sent, "send") or {})
    rounds()
    assert consent.has_consented(worker) and "relation" in teach.taught(worker)
    assert Qualification.objects.get().wanted


@pytest.mark.parametrize("why", ["excluded", "leaving", "met"])
@pytest.mark.soak
def test_whoever_knows_an_id_is_not_told_why_it_is_refused(
    why: str, up: Submission, turk: Turk
) -> None:
    first, second = turk.hits()[:2]
    turk.do(VICTIM, first)
    rounds()
    worker = Worker.objects.get()
    if why == "excluded":
        exclude.exclude(worker, "5 of 9 answers to questions with a known answer are wrong.")
    elif why == "leaving":
        Leaving.objects.create(worker=worker, waives=False)
    _, src = turk.accept("WSOMEBODY", first if why == "met" else second)
    page = Client().get(invented(src, 1, VICTIM)).content.decode()
    assert NOT_FOR_YOU in unescape(page)


@pytest.mark.usefixtures("untaught")
def test_strangers_hold_back_no_more_money_than_a_few_tutorials(
    up: Submission, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    Intake.objects.create(tutorial_reward=Decimal("0.75"))
    monkeypatch.setattr(teach, "MOST_UNCLAIMED", 3)
    before = balance(track=up.track).open
    _, src = turk.accept(VICTIM, turk.hits()[0])
    for number in range(5):
        path = invented(src, number)
        page = Client().get(path).content.decode()
        page = Client().post(path, (form_of(page, "consent") or {}) | {"agree": "yes"})
        Client().post(path, form_of(page.content.decode(), "begin") or {})
    assert TutorialRun.objects.count() == 5
    assert balance(track=up.track).open == before + 3 * Decimal("0.90")
