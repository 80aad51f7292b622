"""Every cent: after whatever happened, the page's sums are the ledger's, and the books agree."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal

import pytest
from annotation_world import (
    ToyTrack,
    learn,
    make_submission,
    make_target,
    says_where_the_money_goes,
)
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import F, Sum

from annotation.budget import give_back, halts, promises
from annotation.budget.cents import GIVEN_BACK, SET_ASIDE, money_by_state
from annotation.budget.check_books import check_books, last_check_result, queue_check
from annotation.budget.check_books import tick as check_books_tick
from annotation.hits import collect, lease, publish, submit, take_down
from annotation.labels import exclude, reject, settle
from annotation.models import HIT, Assignment, Halt, Payment, Question, Worker
from annotation.questions import ask
from annotation.workers import leave, payout, teach
from annotation.workers.models import Intake
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.instances.models import Target
from kbpo.money.models import BooksCheck, Budget, Ledger, Purpose
from kbpo.money.spend import BadCap, OverBudget, balance, release_money, reserve_money, set_cap
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
RAW = {"a": ["0-3"], "b": ["other"], "holds": ["per:schools_attended>"]}


def sums_of_ledger() -> dict[Purpose, dict[str, Decimal]]:
    found: dict[Purpose, dict[str, Decimal]] = defaultdict(dict)
    rows = (
        Ledger.objects.exclude(state="failed")
        .values_list("purpose_kind", "purpose_number", "kind")
        .annotate(Sum("amount"))
        .order_by()
    )
    for what, number, kind, amount in rows:
        found[Purpose(what, number)][kind] = amount
    return found


def check_sums() -> None:
    """The parts of every purpose sum to what the ledger says, kind by kind, and no part is
    negative.
    """
    page: dict[Purpose, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for one in money_by_state():
        assert one.amount > 0, one
        kind = {GIVEN_BACK: "release", SET_ASIDE: "open"}.get(one.state, "spend")
        page[one.purpose][kind] += one.amount
    for purpose, kinds in sums_of_ledger().items():
        assert page[purpose]["release"] == kinds.get("release", 0), purpose
        assert page[purpose]["spend"] == kinds.get("spend", 0), purpose
        assert sum(page[purpose].values()) == kinds["reserve"], purpose
    owed = Payment.objects.filter(status="owed").aggregate(sum=Sum("amount"))["sum"] or 0
    assert sum(one.amount for one in money_by_state() if one.state == "owed") == owed
    assert [one.sentence for one in check_books()] == []


class World:
    """A track on which anything may happen, in any order."""

    def __init__(self, track: Track, rng: random.Random) -> None:
        self.track, self.rng = track, rng
        self.admin = User.objects.create(username="anna", is_staff=True)
        self.targets = [make_target(track, number, rng.random()) for number in range(1, 9)]
        self.people = 0
        Intake.objects.create(tutorial_reward=Decimal("0.75"))
        Budget.objects.create(track=track, scope="track", cap=Decimal("60.00"))
        for _ in range(4):
            self.somebody_comes()
        self.a_submission()

    @property
    def workers(self) -> list[Worker]:
        return list(Worker.objects.exclude(user=None).select_related("user").order_by("pk"))

    def step(self) -> str:
        verb: Callable[[], None] = self.rng.choice(
            [
                self.ticks,
                self.ticks,
                self.answers,
                self.answers,
                self.answers,
                self.pays,
                self.leaves,
                self.rejects,
                self.withdraws,
                self.stops,
                self.a_submission,
                self.somebody_comes,
                self.excludes,
                self.caps,
            ]
        )
        verb()
        return verb.__name__

    def ticks(self) -> None:
        for tick in (
            ask.tick,
            publish.tick,
            take_down.tick,
            collect.tick,
            settle.tick,
            give_back.tick,
            leave.tick,
        ):
            tick()

    def answers(self) -> None:
        for worker in self.rng.sample(self.workers, k=min(3, len(self.workers))):
            held = lease.lease_next(worker)
            if held is None:
                continue
            if self.rng.random() < 0.15:
                lease.return_to_queue(held)
            else:
                submit.submit_answer(held, dict(RAW))

    def pays(self) -> None:
        for one in payout.list_debts()[:2]:
            says_where_the_money_goes(one.worker)
            payout.record_payout(
                one.worker,
                upto=one.upto,
                amount=one.amount,
                reference="bank",
                key=f"{self.rng.random()}",
                who=self.admin,
            )

    def leaves(self) -> None:
        if len(self.workers) > 3:
            leave.ask_to_leave(self.rng.choice(self.workers), waives=self.rng.random() < 0.7)

    def rejects(self) -> None:
        row = Assignment.objects.filter(
            status__in=["accepted", "approved"], payment__status="owed"
        ).first()
        if row is not None:
            reject.reject_answer(row, self.admin, "The same button each time, in under a second.")

    def withdraws(self) -> None:
        rows = list(Submission.objects.filter(status="judging").order_by("pk"))
        if len(rows) > 1:
            self.rng.choice(rows).move("withdrawn")

    def stops(self) -> None:
        if Halt.objects.filter(lifted_at=None).exists():
            halts.lift_halts(None, self.admin, "It is mended")
        else:
            take_down.take_down_open_hits(None, self.admin, "A look at the books")

    def a_submission(self) -> None:
        n = Submission.objects.count()
        if n < 4:
            some = self.rng.sample(self.targets, k=5)
            money = self.rng.choice(["0.40", "2.00", "9.00"])
            with suppress(OverBudget), transaction.atomic():  # its cap may be lowered just now
                make_submission(self.track, some, f"Run{n}", money=money)

    def somebody_comes(self) -> None:
        self.people += 1
        if self.people > 8:
            return
        user = User.objects.create(username=f"w{self.people}", is_annotator=True)
        worker = worker_of_user(user)
        if self.rng.random() < 0.2:
            teach.begin_tutorial(worker, teach.tutorials()["relation"])
        else:
            learn(worker)

    def excludes(self) -> None:
        worker = self.rng.choice(self.workers)
        if worker.excluded_at:
            exclude.reinstate_worker(worker, self.admin)
        else:
            exclude.exclude_worker(worker, "To be looked at", self.admin)

    def caps(self) -> None:
        set_cap(
            self.track,
            "track",
            Decimal(self.rng.choice(["1.00", "5.00", "60.00"])),
            who=self.admin,
            why="A test",
        )


@pytest.mark.usefixtures("untaught")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))]
)
def test_whatever_happens_every_cent_is_somewhere_once(
    track: Track, toy_kind: type[ToyTrack], seed: int
) -> None:
    world = World(track, random.Random(seed))
    done = []
    for _ in range(45):
        done.append(world.step())
        check_sums()
        open_ones = [
            balance(purpose=row.purpose).open - promises.committed_money(row.purpose)
            for row in Submission.objects.all()
        ]
        assert min(open_ones) >= 0, done
    assert Payment.objects.exists() and Ledger.objects.filter(kind="spend").exists(), done


def test_disagreements_are_found_and_told(published: Submission, clients: list) -> None:
    from annotation_world import answer_all

    answer_all(clients[0])
    settle.tick()
    call_command("check_books")
    first, second, third, fourth, fifth, _ = Payment.objects.order_by("pk")
    Payment.objects.filter(pk=first.pk).update(status="paid")
    Payment.objects.filter(pk=second.pk).update(amount=Decimal("0.50"))
    Ledger.objects.filter(key=f"assignment:{third.assignment_id}").update(state="failed")
    Assignment.objects.filter(pk=fourth.assignment_id).update(status="rejected")
    Payment.objects.filter(pk=fifth.pk).delete()
    release_money(published.track, published.purpose, key="all")
    Ledger.objects.filter(kind="release").update(amount=F("amount") + 1)
    assert {one.check for one in check_books()} == {
        "overspent",
        "unpaid",
        "not_approved",
        "wrong_amount",
        "no_spending",
        "spent_for_nobody",
        "paid_without_payout",
    }
    with pytest.raises(CommandError, match="disagreements"):
        call_command("check_books")


def test_the_clock_checks_the_books_every_ten_minutes_and_when_asked(track: Track) -> None:
    from datetime import timedelta

    assert (check_books_tick(), check_books_tick()) == (1, 0)
    first = BooksCheck.objects.get()
    assert first.finished_at is not None and first.findings == [] and first.trouble == ""
    assert queue_check(None) and not queue_check(None), "asked twice, it is checked once"
    assert last_check_result().queued and last_check_result().row == first
    assert (check_books_tick(), check_books_tick()) == (1, 0)
    assert not last_check_result().queued and BooksCheck.objects.count() == 2
    BooksCheck.objects.update(finished_at=F("finished_at") - timedelta(minutes=11))
    assert check_books_tick() == 1
    BooksCheck.objects.update(finished_at=F("finished_at") - timedelta(days=31))
    assert check_books_tick() == 1
    assert BooksCheck.objects.count() == 1, "old results are not kept for ever"


def test_the_kill_switch_takes_everything_down_and_lifting_it_puts_everything_back(
    published: Submission, clients: list, annotator: Callable
) -> None:
    held = lease.lease_next(worker_of_user(User.objects.get(username="ada")))
    assert held is not None
    anna = User.objects.create(username="anna", is_staff=True)
    assert take_down.take_down_open_hits(None, anna, "Something is wrong") == 6
    assert HIT.objects.counts() == {"expired": 6}
    assert lease.lease_next(worker_of_user(User.objects.get(username="bo"))) is None
    assert submit.submit_answer(held, dict(RAW)) is submit.Outcome.STORED, (
        "work in hand is finished and paid"
    )
    for tick in (collect.tick, settle.tick, publish.tick, take_down.tick):
        tick()
    assert HIT.objects.counts() == {"expired": 6} and Payment.objects.count() == 1
    halts.lift_halts(None, anna, "It is mended")
    assert take_down.tick() == 6 and take_down.tick() == 0
    assert HIT.objects.counts() == {"open": 6}
    assert lease.lease_next(worker_of_user(User.objects.get(username="bo"))) is not None


def test_a_lowered_cap_holds_publishing_back_and_gives_nothing_up(submission: Submission) -> None:
    track = submission.track
    with pytest.raises(BadCap, match="Say why"):
        set_cap(track, "track", Decimal("0.40"), who=None, why=" ")
    with pytest.raises(BadCap, match="whole cents"):
        set_cap(track, "track", Decimal("0.405"), who=None, why="x")
    with pytest.raises(BadCap, match="what is capped"):
        set_cap(track, "moon", Decimal("1"), who=None, why="x")
    set_cap(track, "track", Decimal("0.40"), who=None, why="Less money came in")
    ask.tick()
    publish.tick()
    assert Question.objects.counts() == {"published": 2, "waiting": 4}
    assert "cap, which was lowered" in Question.objects.filter(status="waiting")[0].reason
    set_cap(track, "track", None, who=None, why="It came after all")
    publish.tick()
    assert Question.objects.counts() == {"published": 6}


def test_money_of_yesterday_that_comes_back_makes_no_room_today(track: Track) -> None:
    from datetime import timedelta

    from django.utils import timezone

    set_cap(track, "day", Decimal("10"), who=None, why="A day's worth")
    reserve_money(track, None, Purpose("gold", 1), Decimal("10"), key="yesterday")
    Ledger.objects.update(created_at=timezone.now() - timedelta(days=1))
    release_money(track, Purpose("gold", 1), key="back")
    reserve_money(track, None, Purpose("gold", 2), Decimal("10"), key="today")
    with pytest.raises(OverBudget, match=r"\$0.00 is left under today's cap"):
        reserve_money(track, None, Purpose("gold", 3), Decimal("0.01"), key="more")


def test_who_asks_first_pays_and_the_others_reuse_it(
    track: Track, targets: list[Target], clients: list
) -> None:
    from annotation.questions.limits import TargetsByPayer, targets_by_payer

    first = make_submission(track, targets[:4], "First")
    ask.tick()
    second = make_submission(track, targets[2:], "Second")
    ask.tick()
    assert targets_by_payer(first) == TargetsByPayer(own=4, others=0, lent=2)
    assert targets_by_payer(second) == TargetsByPayer(own=2, others=2, lent=0)
    assert not Worker.objects.exclude(leaves_at=None).exists()
