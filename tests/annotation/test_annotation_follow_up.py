"""A follow-up from its order to labels by the document route: price, questions, answers, money,
kills, and what it leaves.
"""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from follow_up_world import PI, judge, make_world, move, order

from annotation.hits import publish
from annotation.hits.batch import stop_batch
from annotation.labels import settle
from annotation.models import Assignment, Payment, Question
from annotation.questions import ask, follow_up
from annotation.questions.order import CannotOrder
from kbpo.accounts.models import Audit
from kbpo.inclusion.documents import covering
from kbpo.instances.models import Label, Target
from kbpo.money.models import Budget, Ledger
from kbpo.money.spend import OverBudget, balance, reserve
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import FollowUp, FollowUpTarget
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(toy: Toy) -> World:
    return make_world(toy)


def open_targets(world: World) -> set[int]:
    """What the first system predicts in the two documents, and no label answers: by hand."""
    read = {one.pk for one in world.documents[:2]}
    marked: dict[int, bool] = {}
    for one in world.instances:
        if one.document_id in read and one.pk % 4 != 0:
            known = world.truth[one.pk] and one.pk % 3 != 0
            marked[one.target_id] = marked.get(one.target_id, True) and known
    drawn = set(Target.objects.filter(u__lt=PI).values_list("pk", flat=True))
    return {target for target, known in marked.items() if not known and target not in drawn}


def ordered_after_a_sample(world: World) -> tuple[Submission, FollowUp, set[int]]:
    """A submission whose sample is being asked about, a follow-up ordered then, and the targets
    that both want.
    """
    second = world.system("second", lambda one: one.pk % 4 != 0, team="Neural")
    mine = {one.pk for one in world.sample(second, 0.9)}
    reserve(world.track, None, second.purpose, Decimal("50.00"), key="second")
    ask.tick()
    row = order(world)
    return second, row, mine & set(row.targets.values_list("target", flat=True))


def test_the_price_is_that_of_what_has_no_label_and_nothing_is_spent_before_the_order(
    world: World,
) -> None:
    plan = follow_up.plan_follow_up(world.track)
    assert set(plan.targets) == open_targets(world) and plan.predictions == len(plan.targets)
    assert plan.at_most == len(plan.targets) * 3 * Decimal("0.05")
    assert plan.work_seconds == len(plan.targets) * 3 * 20
    assert plan.documents == sorted(one.pk for one in world.documents[:2])
    assert not FollowUp.objects.exists() and not Ledger.objects.exists()
    out = StringIO()
    call_command("order_follow_up", "world", stdout=out)
    assert (
        f"{len(plan.targets)} questions to 3 people each, at most ${plan.at_most}" in out.getvalue()
    )
    assert not FollowUp.objects.exists()
    call_command("order_follow_up", "world", "--yes", stdout=out)
    row = FollowUp.objects.get()
    assert balance(purpose=row.purpose).reserved == plan.at_most
    assert set(row.targets.values_list("target", flat=True)) == set(plan.targets)
    for wrong, sentence in (
        (["nowhere"], "There is no track"),
        (["world", "--yes"], "still being judged"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("order_follow_up", *wrong)


def test_it_goes_from_the_order_to_labels_by_the_document_route(world: World) -> None:
    row = order(world)
    n = row.targets.count()
    move()
    asked = Question.objects.filter(**row.purpose.at("payer"))
    assert asked.filter(status="published").count() == n
    places = dict(row.targets.values_list("target", "order"))
    assert all(one.order == places[one.target_id] for one in asked)
    assert all((one.answers_wanted, one.price) == (3, Decimal("0.05")) for one in asked)
    move()
    assert Question.objects.count() == n, "nothing is asked twice"
    row.refresh_from_db()
    assert (
        row.settled_at is None
        and covering(world.track, [one.pk for one in world.documents[:2]]) is None
    )
    assert judge(world) == 3 * n
    for _ in range(3):
        move()
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is not None
    assert covering(world.track, [one.pk for one in world.documents[:2]]) == row
    assert Label.objects.filter(target__in=places, source="crowd", target__kind="pair").count() == n
    sums = balance(purpose=row.purpose)
    assert sums.spent == sum(one.amount for one in Payment.objects.all()) == 3 * n * Decimal("0.05")
    assert sums.open == 0
    [told] = follow_up.follow_ups(world.track)
    assert (told.targets, told.done, told.holds) == (n, n, True)
    with pytest.raises(CannotOrder, match="is judged already"):
        follow_up.plan_follow_up(world.track)
    assert Audit.objects.get(what="order follow-up").about == str(row.purpose)


def test_what_a_sample_draws_too_is_asked_once(world: World) -> None:
    row = order(world)
    second = world.system("second", lambda one: one.pk % 4 != 0, team="Neural")
    both = {one.pk for one in world.sample(second, 0.9)} & set(
        row.targets.values_list("target", flat=True)
    )
    assert both
    reserve(world.track, None, second.purpose, Decimal("50.00"), key="second")
    follow_up.tick()
    for _ in range(2):
        ask.tick()
        follow_up.tick()
    rows = Question.objects.filter(target__in=both)
    assert rows.count() == len(both) and {question.payer for question in rows} == {row.purpose}
    assert Question.objects.filter(**second.purpose.at("payer")).exists(), (
        "what is not in the documents"
    )


def test_what_a_sample_asked_first_is_not_paid_again_and_is_asked_anew_if_that_ends(
    world: World,
) -> None:
    second, row, both = ordered_after_a_sample(world)
    follow_up.tick()
    assert not Question.objects.filter(**row.purpose.at("payer"), target__in=both).exists()
    rest = row.targets.exclude(target__in=both)
    assert Question.objects.filter(**row.purpose.at("payer")).count() == rest.count()
    Submission.objects.filter(pk=second.pk).update(status="withdrawn")
    publish.tick()
    follow_up.tick()
    assert Question.objects.filter(**row.purpose.at("payer")).count() == row.targets.count()
    publish.tick()
    assert not Question.objects.filter(**row.purpose.at("payer"), status="waiting").exists(), (
        "its money was set aside"
    )


def test_nothing_is_ordered_above_the_price_that_was_shown_or_a_cap(world: World) -> None:
    plan = follow_up.plan_follow_up(world.track)
    with pytest.raises(CannotOrder, match="Look at the price again"):
        follow_up.order_follow_up(world.track, plan.at_most - Decimal("0.01"))
    Budget.objects.filter(track=world.track).update(cap=plan.at_most - Decimal("0.01"))
    with pytest.raises(OverBudget):
        follow_up.order_follow_up(world.track, plan.at_most)
    assert (
        not FollowUp.objects.exists()
        and not FollowUpTarget.objects.exists()
        and not Audit.objects.exists()
    )


@pytest.mark.soak
def test_killed_anywhere_each_step_happens_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    plan = follow_up.plan_follow_up(world.track)
    for name in ("reserve", "note"):
        with monkeypatch.context() as patch, pytest.raises(RuntimeError):
            patch.setattr(follow_up, name, killed)
            follow_up.order_follow_up(world.track, plan.at_most)
        assert not FollowUp.objects.exists() and not Ledger.objects.exists()
    row = order(world)
    monkeypatch.setattr(follow_up, "BATCH", 3)
    with monkeypatch.context() as patch:
        patch.setattr(follow_up, "nudge", killed)  # the last thing of a batch
        follow_up.tick()
    assert not Question.objects.exists()
    with pytest.raises(CannotOrder, match="still being judged"):
        follow_up.order_follow_up(world.track, plan.at_most)
    for _ in range(2):
        follow_up.tick()
    assert Question.objects.filter(**row.purpose.at("payer")).count() == len(plan.targets)
    publish.tick()
    judge(world)
    settle.tick()
    with monkeypatch.context() as patch:
        patch.setattr(follow_up, "release", killed)
        follow_up.tick()
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is None
    settled = row.settled_at
    for _ in range(2):
        settle.tick()
        follow_up.tick()
    row.refresh_from_db()
    assert row.settled_at == settled and row.closed_at is not None
    assert balance(purpose=row.purpose).open == 0


def test_one_that_is_stopped_is_settled_with_what_is_known_and_gives_its_money_back(
    world: World,
) -> None:
    row = order(world)
    move()
    judge(world, most=4)
    settle.tick()
    answered = Question.objects.filter(status="settled").count()
    assert answered
    assert (
        stop_batch(row.purpose, world.toy.users["Admin"], "Enough.")
        == row.targets.count() - answered
    )
    for _ in range(3):
        move()
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is None, "somebody has one in hand"
    Assignment.objects.filter(status="leased").update(status="returned")
    follow_up.tick()
    row.refresh_from_db()
    assert row.closed_at is not None and balance(purpose=row.purpose).open == 0
    assert not Label.objects.filter(value={}).exists(), "nobody was asked without an answer"
    [told] = follow_up.follow_ups(world.track)
    assert told.stopped_at is not None and not told.holds
    assert covering(world.track, [one.pk for one in world.documents[:2]]) is None
    left = set(row.targets.filter(target__labels=None).values_list("target", flat=True))
    assert len(left) == row.targets.count() - answered
    assert set(follow_up.plan_follow_up(world.track).targets) == left


def stopped(world: World) -> set[int]:
    """What a follow-up left open that was stopped before anybody answered."""
    row = order(world)
    move()
    stop_batch(row.purpose, world.toy.users["Admin"], "Enough.")
    for _ in range(3):
        move()
    row.refresh_from_db()
    assert row.closed_at is not None and balance(purpose=row.purpose).open == 0
    return set(row.targets.values_list("target", flat=True))


def test_what_was_stopped_is_asked_by_a_sample_that_draws_it(world: World) -> None:
    left = stopped(world)
    second = world.system("second", lambda one: one.pk % 4 != 0, team="Neural")
    mine = {one.pk for one in world.sample(second, 0.9)} & left
    assert mine
    reserve(world.track, None, second.purpose, Decimal("50.00"), key="second")
    for _ in range(2):
        move()
    again = Question.objects.filter(**second.purpose.at("payer"), target__in=left)
    assert set(again.values_list("target", flat=True)) == mine and {one.round for one in again} == {
        2
    }
    n = Question.objects.count()
    move()
    assert Question.objects.count() == n, "once"


def test_what_was_stopped_is_asked_by_the_next_follow_up_which_then_counts(world: World) -> None:
    left = stopped(world)
    row = order(world)
    assert set(row.targets.values_list("target", flat=True)) == left
    move()
    assert (
        set(Question.objects.filter(**row.purpose.at("payer")).values_list("target", flat=True))
        == left
    )
    judge(world)
    for _ in range(3):
        move()
    [last, first] = follow_up.follow_ups(world.track)
    assert (last.holds, first.holds) == (True, False)
    documents = sorted(one.pk for one in world.documents[:2])
    assert covering(world.track, documents) == row


def test_one_that_is_stopped_asks_nothing_more(world: World) -> None:
    """Not even what a sample had been asking, when that ends."""
    second, row, both = ordered_after_a_sample(world)
    assert both
    move()
    stop_batch(row.purpose, world.toy.users["Admin"], "Enough.")
    follow_up.tick()
    row.refresh_from_db()
    assert row.settled_at is None, "others are asking some of it"
    Submission.objects.filter(pk=second.pk).update(status="withdrawn")
    publish.tick()
    follow_up.tick()
    row.refresh_from_db()
    assert row.settled_at is not None
    assert not Question.objects.filter(**row.purpose.at("payer"), target__in=both).exists()


@pytest.mark.soak
def test_one_that_is_open_goes_on_when_its_track_closes(world: World) -> None:
    """As an order of documents does: it is paid for, and what it finds is for everybody."""
    row = order(world)
    move()
    freeze_track(world.track)
    close_track(world.track)
    judge(world)
    for _ in range(3):
        move()
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is not None and row.stopped_at is None
    assert balance(purpose=row.purpose).open == 0
    world.track.refresh_from_db()
    with pytest.raises(CannotOrder, match="is closed"):
        follow_up.plan_follow_up(world.track)


def test_where_nothing_can_be_asked_the_reason_is_a_sentence(toy: Toy) -> None:
    world = World(toy, n_documents=2)
    with pytest.raises(CannotOrder, match="No document counts as read yet"):
        follow_up.plan_follow_up(world.track)
    world.read_in_full(world.documents, lambda one: True)
    settle_documents(world.track, [one.pk for one in world.documents])
    with pytest.raises(CannotOrder, match="No system predicts anything yet"):
        follow_up.plan_follow_up(world.track)


def test_where_all_is_judged_an_order_costs_nothing_and_is_settled_at_once(world: World) -> None:
    world.answer(list(Target.objects.filter(kind="pair", corpus=world.corpus)))
    row = order(world)
    assert not row.targets.exists() and not Ledger.objects.exists()
    follow_up.tick()
    row.refresh_from_db()
    assert row.settled_at is not None and row.closed_at is not None


def test_what_lies_outside_the_scope_is_not_asked(world: World) -> None:
    everything = set(follow_up.plan_follow_up(world.track).targets)
    world.track.scope = "sentence"
    world.track.save()
    inside = set(follow_up.plan_follow_up(world.track).targets)
    of = {one.target_id: one for one in world.instances}
    across = {
        target
        for target in everything
        if "Town" in _between(of[target]) or "." in _between(of[target])
    }
    assert across and inside == everything - across


def _between(one: Any) -> str:
    begin, end = sorted(((one.subject_begin, one.subject_end), (one.object_begin, one.object_end)))
    return str(one.document.text[begin[1] : end[0]])
