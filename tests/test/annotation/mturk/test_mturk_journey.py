"""From a question to a paid, labelled, disposed HIT at the local endpoint, over HTTP with boto3."""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import make_submission
from django.test import Client
from mturk_world import Turk, check_books, collect_and_reconcile, due, rounds

from annotation.budget import halts
from annotation.hits import publish
from annotation.labels import settle
from annotation.marketplace import give, pay_out
from annotation.models import (
    HIT,
    Assignment,
    Bonus,
    Payment,
    PlatformBooks,
    Question,
    Response,
    Worker,
    WorkerIdentity,
)
from annotation.questions import ask
from kbpo.instances.models import Label, Target
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def test_the_whole_way_from_question_to_a_hit_that_is_paid_and_gone(
    up: Submission, turk: Turk
) -> None:
    assert HIT.objects.counts() == {"open": 6}
    assert turk.all_do("W1", "W2", "W3") == 18
    rounds()
    assert Question.objects.counts() == {"settled": 6}
    label = Label.objects.filter(target__kind="pair").first()
    assert label is not None and (label.n, label.source) == (3, "crowd")
    assert Assignment.objects.counts() == {"paid": 18}
    assert Payment.objects.counts() == {"paid": 18}
    assert HIT.objects.counts() == {"disposed": 6}
    assert balance(purpose=up.purpose).spent == Decimal("0.06") * 18
    assert {row["disposed"] for row in turk.rows("SELECT disposed FROM hit")} == {1}
    assert turk.rows("SELECT count(*) AS n FROM hit_type") == [{"n": 1}]
    books = PlatformBooks.objects.get()
    assert (books.differences, books.trouble) == ([], "")
    assert (
        books.available is not None
        and books.available == Decimal("10000.00") - Decimal("0.06") * 18
    )
    check_books(turk)


@pytest.mark.soak
def test_a_worker_is_known_by_a_hash_everywhere_but_in_one_table(
    up: Submission, turk: Turk
) -> None:
    turk.do("W1SECRETNAME", turk.hits()[0])
    rounds()
    assert WorkerIdentity.objects.get().external_id == "W1SECRETNAME"
    worker = Worker.objects.get()
    assert worker.platform == "mturk" and "W1SECRETNAME" not in worker.handle
    assert "W1SECRETNAME" not in str(Assignment.objects.values().get())
    assert "W1SECRETNAME" not in str(list(Response.objects.values()))


@pytest.mark.soak
def test_a_hit_takes_nine_workers_and_a_sibling_the_rest(
    turk: Turk, track: Track, targets: list[Target]
) -> None:
    Track.objects.update(workers_per_question=11)
    track.refresh_from_db()
    make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    assert sorted(HIT.objects.values_list("max_assignments", flat=True)) == [2, 9]
    nine, two = HIT.objects.order_by("-max_assignments")
    for number in range(9):
        turk.do(f"W{number}", nine.external_id)
    rounds()
    assert Question.objects.counts() == {"published": 1}  # two more are to come
    assert (
        "This HIT is not for you"
        in Client().get(_path(turk.accept("W0", two.external_id)[1])).content.decode()
    )
    turk.give_back("W0", turk.rows("SELECT id FROM assignment WHERE status = 'Accepted'")[0]["id"])
    for number in (20, 21):
        turk.do(f"W{number}", two.external_id)
    rounds()
    assert Label.objects.get(target__kind="pair").n == 11
    assert turk.rows("SELECT DISTINCT fee FROM hit") == [{"fee": 1}]  # 20 %, not 40 %
    check_books(turk)


def _path(src: str) -> str:
    return "/" + src.partition("//")[2].partition("/")[2]


def test_a_preview_shows_the_question_and_stores_nothing(up: Submission, turk: Turk) -> None:
    src = turk.preview("W1", turk.hits()[0])
    assert "workerId" not in src and "ASSIGNMENT_ID_NOT_AVAILABLE" in src
    page = Client().get(_path(src))
    assert page.status_code == 200
    assert (
        "Accept the HIT to answer" in page.content.decode()
        and "Elm College" in page.content.decode()
    )
    assert "fieldset" in page.content.decode() and "submit-bar" not in page.content.decode()
    assert not page.cookies
    assert Assignment.objects.count() == Worker.objects.count() == 0


def test_an_answer_that_misses_something_is_shown_again_with_a_sentence(
    up: Submission, turk: Turk
) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    client = Client()
    page = client.get(_path(src)).content.decode()
    proof = page.split('name="proof" value="')[1].split('"')[0]
    answer = client.post(_path(src), {"proof": proof, "answer": "{}", "a": "0-3"})
    assert answer.status_code == 422
    assert "Step 2 is missing" in answer.content.decode()


def test_the_kill_switch_takes_everything_down_and_lifting_it_puts_it_up_again(
    up: Submission, turk: Turk
) -> None:
    _, src = turk.accept("W1", turk.hits()[0])
    halts.pause_work(None, None, "The schema is wrong.")
    rounds()
    assert turk.offered("W2") == []
    turk.send(turk.fill_in(src))  # who was at work may finish, and is paid
    rounds()
    assert Payment.objects.counts() == {"paid": 1}
    assert HIT.objects.filter(status="open").count() == 6
    halts.lift_halts(None, None, "It is mended")
    rounds()
    assert len(turk.offered("W2")) == 6
    assert HIT.objects.filter(renewed_at=None).count() == 6  # a halt is no renewal


@pytest.mark.soak
def test_a_rejection_tells_its_reason_and_can_be_taken_back(up: Submission, turk: Turk) -> None:
    assignment = turk.do("W1", turk.hits()[0])
    due()
    collect_and_reconcile()
    Assignment.objects.get().move(
        "rejected", "Every answer was the first button, 40 times in a row."
    )
    pay_out.tick()
    row = turk.rows("SELECT status, feedback FROM assignment WHERE id = ?", assignment)[0]
    assert row == {
        "status": "Rejected",
        "feedback": "Every answer was the first button, 40 times in a row.",
    }
    answer = Assignment.objects.get()
    answer.move("submitted")
    settle.tick()
    pay_out.tick()
    assert turk.rows("SELECT status FROM assignment WHERE id = ?", assignment) == [
        {"status": "Approved"}
    ]
    assert Payment.objects.counts() == {"paid": 1}


@pytest.mark.soak
def test_a_bonus_and_a_compensation_are_paid_once(up: Submission, turk: Turk) -> None:
    turk.do("W1", turk.hits()[0])
    rounds()
    worker = Worker.objects.get()
    bonus = give.grant_bonus(
        worker,
        up.track,
        Decimal("0.50"),
        "You found a mistake of ours.",
        assignment=Assignment.objects.get(),
    )
    owed = give.grant_bonus(worker, up.track, Decimal("0.20"), "Our page failed while you worked.")
    rounds()
    assert turk.rows("SELECT cents, fee FROM bonus") == [{"cents": 50, "fee": 10}]
    [hit] = [
        row["id"]
        for row in turk.rows("SELECT id FROM hit WHERE annotation LIKE 'kbpo-compensation%'")
    ]
    assert hit not in turk.offered("W2") and hit in turk.offered("W1")
    assignment, src = turk.accept("W1", hit)
    print(Client().get(_path(src)).content.decode()[-900:])
    assert "Our page failed" in Client().get(_path(src)).content.decode()
    turk.send({"assignmentId": assignment, "thanks": "taken"})
    rounds()
    bonus.refresh_from_db()
    owed.refresh_from_db()
    assert (bonus.status, owed.status) == ("paid", "paid")
    assert turk.rows("SELECT status FROM assignment WHERE id = ?", assignment) == [
        {"status": "Approved"}
    ]
    assert Bonus.objects.count() == 2 and turk.calls("SendBonus") == 1
    assert PlatformBooks.objects.get().differences == []


def test_whose_id_nobody_knows_is_refused_before_anything_is_set_aside(up: Submission) -> None:
    worker = Worker.objects.create(platform="mturk", handle="ab" * 16)
    rows = Ledger.objects.count()
    with pytest.raises(ValueError, match="own id on the platform"):
        give.grant_bonus(worker, up.track, Decimal("0.20"), "Our page failed while you worked.")
    assert not Bonus.objects.exists() and Ledger.objects.count() == rows
