"""Signals, exclusion and rejection: soft, with a reason, and undone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from annotation_world import GOOD, answer_all, take
from django.test import Client
from django.utils import timezone

from annotation.budget import accrue
from annotation.labels import exclude, reject, settle
from annotation.models import (
    Assignment,
    Payment,
    Rejection,
    Response,
    Signal,
    Worker,
)
from annotation.quality import signals
from annotation.quality.signals import Flag, differing_units
from annotation.quality.warn import set_excluding_signals
from kbpo.accounts.models import Audit, User
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
WRONG = {"a": "0-3", "b": "other", "none": "1"}
EVIDENCE = "The same button, six times in two seconds."
ONE, TWO = ("relation", "p1>"), ("linking", "7")


@pytest.fixture
def settled(published: Submission, clients: list[Client]) -> Worker:
    """Six questions that ada and bo answer alike and cy otherwise. Returns cy."""
    answer_all(clients[0])
    answer_all(clients[1])
    answer_all(clients[2], WRONG)
    Assignment.objects.update(
        seconds=1.0
    )  # however busy the machine was: too fast for three sentences
    settle.tick()
    return Worker.objects.get(user__username="cy")


def test_an_answer_differs_only_from_what_two_others_agree_on() -> None:
    yes, no = {ONE: "yes"}, {ONE: "no"}
    assert differing_units(no, [yes, yes]) == [ONE]
    assert differing_units(yes, [yes, yes]) == []
    assert differing_units(no, [yes, no]) is None, "the others are divided"
    assert differing_units(no, [yes]) is None, "one other is no majority"
    assert differing_units({ONE: "no", TWO: "3-4"}, [{ONE: "yes", TWO: "3-4"}] * 2) == [ONE]


def test_who_stands_alone_gets_a_signal_and_who_agrees_none(settled: Worker) -> None:
    against = Signal.objects.filter(against=True, kind="majority")
    assert list(against.values_list("assignment__worker", flat=True)) == [settled.pk] * 6
    # What ada says is held against bo and cy, who are divided in the relation and agree in the
    # links.
    assert Signal.objects.filter(kind="majority").count() == 18
    assert signals.flags_by_worker([settled.pk])[settled.pk] == [
        Flag("majority", 6, 6),
        Flag("too_fast", 6, 6),
        Flag("unread", 0, 6),
    ]
    assert settled.excluded_at is None, "six are not more than ten"


@pytest.mark.parametrize(
    ("flag", "beyond"),
    [
        (Flag("majority", 11, 40), True),
        (Flag("majority", 10, 20), False),
        (Flag("majority", 11, 55), False),
        (Flag("gold", 4, 10), True),
        (Flag("gold", 3, 3), False),
    ],
)
def test_a_flag_takes_a_number_and_a_share(flag: Flag, beyond: bool) -> None:
    assert flag.is_past_limit is beyond


def many_against(worker: Worker, n: int = 12) -> None:
    """So many more answers of a worker that most of the others contradict."""
    hit = Assignment.objects.filter(worker=worker)[0].hit
    for _ in range(n):
        other = type(hit).objects.create(
            status="closed", track=hit.track, platform="pool", reward=hit.reward
        )
        other.questions.set(hit.questions.all())
        made = Assignment.objects.create(
            status="approved",
            hit=other,
            worker=worker,
            leased_until=timezone.now(),
            raw={},
            submitted_at=timezone.now(),
        )
        Signal.objects.create(assignment=made, kind="majority", against=True)


def warned(worker: Worker, kind: str = "majority") -> None:
    """A worker was warned when half as much was against them."""
    worker.warned[kind] = 6
    worker.save(update_fields=["warned"])


def crowd(n: int) -> None:
    for number in range(n):
        Worker.objects.create(platform="pool", handle=f"other{number}", last_seen_at=timezone.now())


def test_signals_beyond_the_limit_leave_a_worker_out_softly_and_say_why(
    settled: Worker, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    many_against(settled)
    warned(settled)
    crowd(3)
    paid = Payment.objects.count()
    assert exclude.exclude_flagged() == 1 and exclude.exclude_flagged() == 0
    settled.refresh_from_db()
    assert (
        settled.excluded_reason
        == "18 of 18 answers differ from what most of the others said (100\xa0%)."
    )
    assert Payment.objects.count() == paid
    entry = Audit.objects.get(what="leave out")
    assert entry.who is None and entry.about == f"worker:{settled.handle}"
    assert (
        settled.excluded_reason.split("(")[0].strip()
        in clients[2].get("/annotate/").content.decode()
    )


def test_signals_never_exclude_the_last_few(settled: Worker) -> None:
    many_against(settled)
    assert exclude.exclude_flagged() == 0, "ada, bo and cy are all there are"


def test_a_signal_that_the_policy_does_not_name_leaves_it_to_a_person(
    settled: Worker, track: Track
) -> None:
    set_excluding_signals(track, ["gold"], None, "To try.")
    many_against(settled)
    warned(settled)
    crowd(5)
    assert exclude.exclude_flagged() == 0


def test_who_waits_for_an_admin_is_told_with_the_reason(
    settled: Worker, admin: User, track: Track
) -> None:
    assert exclude.undecided_workers() == []
    many_against(settled)
    warned(settled)
    assert exclude.exclude_flagged() == 0
    found = exclude.undecided_workers()
    assert [(one.worker, one.reason_in_sentences) for one in found] == [
        (settled, "18 of 18 answers differ from what most of the others said (100\xa0%).")
    ]
    assert found[0].why == "No more than 4 annotators are active, so signals exclude nobody."
    crowd(5)
    set_excluding_signals(track, ["gold"], None, "To try.")
    assert exclude.undecided_workers()[0].why == "The track's policy leaves this to a person."
    with pytest.raises(ValueError, match="Say why they stay"):
        exclude.note_worker_reviewed(settled, admin, " ")
    exclude.note_worker_reviewed(settled, admin, "The others are wrong.")
    assert exclude.undecided_workers() == [] and exclude.exclude_flagged() == 0
    entry = Audit.objects.get(what="keep")
    assert (entry.who, entry.why) == (admin, "The others are wrong.") and entry.before.startswith(
        "18 of 18 answers"
    )
    exclude.exclude_worker(settled, "Seen again.", admin)
    with pytest.raises(ValueError, match="reinstate them"):
        exclude.note_worker_reviewed(settled, admin, "As before.")


def in_hand(client: Client, seconds: float) -> None:
    """The next question, answered as if it had been in hand for so long."""
    address = take(client)
    token = address.split("/")[2]
    Assignment.objects.filter(token=token).update(
        accepted_at=timezone.now() - timedelta(seconds=seconds)
    )
    assert client.post(address, GOOD).status_code == 302


def held() -> list[bool]:
    return list(
        Signal.objects.filter(kind="unread").order_by("pk").values_list("against", flat=True)
    )


def test_an_answer_before_anybody_could_have_read_the_text_is_told(
    published: Submission, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds in (0.0, 5.0):
        in_hand(ada, seconds)
        settle.tick()
    assert held() == [True, False]
    assert Signal.objects.get(kind="unread", against=True).detail.startswith(
        "11 words, answered in 0."
    )
    monkeypatch.setattr(signals, "FEWEST_WORDS", 12)
    in_hand(ada, 0.0)
    settle.tick()
    assert len(held()) == 2, "of so short a text the time tells nothing"


def test_what_was_known_when_somebody_was_reinstated_does_not_leave_them_out_again(
    settled: Worker, admin: User
) -> None:
    many_against(settled)
    warned(settled)
    crowd(5)
    exclude.exclude_flagged()
    settled.refresh_from_db()
    exclude.reinstate_worker(settled, admin, "A misunderstanding about dates.")
    assert exclude.exclude_flagged() == 0
    assert signals.flags_by_worker([settled.pk]) == {}
    assert Audit.objects.get(what="reinstate").why == "A misunderstanding about dates."


def one_of(worker: Worker) -> Assignment:
    return Assignment.objects.filter(worker=worker, raw__isnull=False).order_by("pk")[0]


def test_a_rejection_takes_evidence_keeps_the_answer_and_withholds_the_pay(
    settled: Worker, admin: User
) -> None:
    answer = one_of(settled)
    with pytest.raises(reject.CannotReject, match="20 characters"):
        reject.reject_answer(answer, admin, "bad")
    owed = accrue.total_owed()
    reject.reject_answer(answer, admin, EVIDENCE)
    answer.refresh_from_db()
    assert (answer.status, answer.reason) == ("rejected", EVIDENCE) and answer.raw
    assert Payment.objects.get(assignment=answer).status == "withheld"
    assert accrue.total_owed() == owed - Decimal("0.05")
    assert not Response.objects.filter(assignment=answer, counts=True).exists()
    with pytest.raises(reject.CannotReject, match="already"):
        reject.reject_answer(answer, admin, EVIDENCE)
    entry = Audit.objects.get(what="reject")
    assert (entry.who, entry.why, entry.before, entry.after) == (
        admin,
        EVIDENCE,
        "approved",
        "rejected",
    )


def test_an_undone_rejection_pays_once(settled: Worker, admin: User) -> None:
    answer = one_of(settled)
    reject.reject_answer(answer, admin, EVIDENCE)
    reject.undo_rejection(answer := one_of(settled), admin, "The text was ambiguous.")
    with pytest.raises(reject.CannotReject, match="not rejected"):
        reject.undo_rejection(one_of(settled), admin, "")
    settle.tick()
    assert Payment.objects.get(assignment=answer).status == "owed"
    assert Payment.objects.count() == 18
    assert not Response.objects.filter(counts=False).exists()
    assert Rejection.objects.get().undone_by == admin


def test_what_was_paid_is_not_asked_back(settled: Worker, admin: User) -> None:
    Payment.objects.update(status="paid")
    with pytest.raises(reject.CannotReject, match="not asked back"):
        reject.reject_answer(one_of(settled), admin, EVIDENCE)
    assert Rejection.objects.count() == 0


def test_reinstating_somebody_does_not_undo_a_rejection(settled: Worker, admin: User) -> None:
    reject.reject_answer(one_of(settled), admin, EVIDENCE)
    exclude.exclude_worker(settled, "Too fast.", admin)
    exclude.reinstate_worker(settled, admin, "Slower now.")
    assert Response.objects.filter(counts=False).count() == 3, "those of the rejected answer"
