"""Gold questions: mixed in, told apart by nobody, paid, and never a label."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from annotation_world import GOOD, answer_all, take
from django.core.cache import cache
from django.test import Client

from annotation.hits import collect
from annotation.interfaces.base import BadAnswer
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
from annotation.quality import gold
from annotation.quality.agreement import reliability_of_track
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
RAW = {"a": ["0-3"], "b": ["other"], "holds": ["per:schools_attended>"]}
WRONG = {"a": "0-3", "b": "other", "none": "1"}


def dealt(worker: Worker, hit: HIT) -> HIT | None:
    """What is leased in the place of a HIT at the rate of its track."""
    return gold.pick_gold_hit(worker, hit.pk, hit.track_id, gold.gold_policy(hit.track).gold_rate)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch, track: Track, admin: User) -> None:
    """Every question is gold, as long as there is any."""
    gold.set_gold_rate(track, 0.5, admin, "To try it.")
    monkeypatch.setattr(gold.DICE, "random", lambda: 0.0)


@pytest.fixture
def made(published: Submission, clients: list[Client], admin: User, track: Track) -> Gold:
    """A gold question made of a settled one, with money for it; nobody but ada, bo and cy has met
    its target.
    """
    for client in clients:
        answer_all(client)
    settle.tick()
    gold.reserve_gold_money(track, Decimal("1.00"), admin, "It is needed.", key="1")
    return gold.make_gold(gold.gold_candidates(track)[0], RAW, admin, "All three said so.")


@pytest.fixture
def dana(annotator: Callable[[str], User]) -> Client:
    client = Client()
    client.force_login(annotator("dana"))
    return client


def open_some(submission: Submission) -> None:
    """The questions of a submission are asked anew, so that there is something to mix gold into."""
    Label.objects.all().delete()
    Question.objects.filter(gold=None).update(status="published")
    HIT.objects.filter(questions__gold=None).update(status="open", max_assignments=9)


def test_candidates_are_what_people_were_of_one_mind_about(
    published: Submission, clients: list[Client], track: Track
) -> None:
    for client in clients[:2]:
        answer_all(client)
    address = take(clients[2])
    clients[2].post(address, WRONG)
    answer_all(clients[2])
    settle.tick()
    divided = Assignment.objects.get(token=address.split("/")[2]).hit.questions.get()
    found = gold.gold_candidates(track)
    assert len(found) == 5 and divided not in found


def test_a_gold_answer_is_checked_like_any_answer(made: Gold, admin: User) -> None:
    source = gold.gold_candidates(made.question.track)[0]
    with pytest.raises(BadAnswer):
        gold.make_gold(source, {"a": ["0-3"]}, admin, "Sure.")
    with pytest.raises(gold.CannotMake, match="Remove the flag"):
        gold.make_gold(source, {"problem": ["text"]}, admin, "Sure.")
    assert made.source is not None
    for unsaid in (
        lambda: gold.make_gold(source, RAW, admin, " "),
        lambda: gold.retire_gold(made, admin, ""),
        lambda: gold.set_gold_rate(source.track, 0.1, admin, ""),
        lambda: gold.reserve_gold_money(source.track, Decimal("1.00"), admin, "", key="2"),
    ):
        with pytest.raises(gold.CannotMake, match="It is logged"):
            unsaid()
    assert (
        not Gold.objects.exclude(retired_at=None).exists()
        and gold.gold_policy(source.track).gold_rate == 0
    )
    with pytest.raises(gold.CannotMake, match="gold already"):
        gold.make_gold(made.source, RAW, admin, "Sure.")


def test_gold_is_dealt_in_the_place_of_the_next_question_and_its_page_does_not_tell(
    made: Gold, always: None, published: Submission, dana: Client
) -> None:
    open_some(published)
    address = take(dana)
    page = dana.get(address).content.decode()
    assert Assignment.objects.get(token=address.split("/")[2]).hit.questions.get() == made.question
    assert made.source is not None
    ordinary = Assignment.objects.create(
        status="leased",
        hit=made.source.hits.get(),
        worker=Worker.objects.get(user__username="dana"),
        leased_until=Assignment.objects.get(status="leased").leased_until,
    )
    other = dana.get(f"/annotate/{ordinary.token}/").content.decode()
    assert blank(page) == blank(other), "gold and its source look the same but for their tokens"
    assert "gold" not in page.lower()


def blank(page: str) -> str:
    """A page without its tokens and clock."""
    return re.sub(
        r"[0-9a-f]{64}|[A-Za-z0-9]{64}|data-elapsed=\"\d+\"|<b>\d</b> of \d|max=\"\d\"", "", page
    )


def test_gold_is_paid_and_makes_no_label(
    made: Gold, always: None, published: Submission, dana: Client
) -> None:
    open_some(published)
    dana.post(take(dana), GOOD)
    settle.tick()
    assert Signal.objects.get(kind="gold").against is False
    assert Payment.objects.filter(worker__user__username="dana").get().amount == Decimal("0.05")
    purpose = gold.gold_purpose(made.question.track)
    assert balance(purpose=purpose).spent == Decimal("0.06")
    assert gold.gold_money_left(made.question.track) == Decimal("0.94")
    assert not Label.objects.filter(target=made.question.target).exists()
    collect.tick()
    assert made.question.hits.get().status == "open", "the next one meets it too"


def test_a_wrong_answer_to_gold_is_a_signal_and_is_paid_all_the_same(
    made: Gold, always: None, published: Submission, dana: Client
) -> None:
    open_some(published)
    dana.post(take(dana), WRONG)
    settle.tick()
    assert Signal.objects.get(kind="gold").against is True
    assert Payment.objects.filter(worker__user__username="dana").exists()
    [standing] = gold.gold_results(made.question.track)
    assert (standing.answers, standing.against, standing.is_doubtful) == (1, 1, False)


def test_nobody_meets_gold_of_a_target_that_they_know(
    made: Gold, always: None, published: Submission, clients: list[Client], dana: Client
) -> None:
    open_some(published)
    worker = Worker.objects.get(user__username="ada")
    assert dealt(worker, HIT.objects.filter(questions__gold=None)[0]) is None
    dana.post(take(dana), GOOD)
    assert (
        Assignment.objects.get(token=take(dana).split("/")[2]).hit.questions.get() != made.question
    )


def test_without_money_or_rate_there_is_no_gold(
    made: Gold, published: Submission, admin: User, track: Track
) -> None:
    open_some(published)
    worker = Worker.objects.create(platform="pool", handle="x")
    hit = HIT.objects.filter(questions__gold=None)[0]
    assert dealt(worker, hit) is None, "the rate is nil"
    gold.set_gold_rate(track, 0.5, admin, "To try it.")
    gold.DICE.random = lambda: 0.0  # type: ignore[method-assign]
    try:
        assert dealt(worker, hit) is not None
        Question.objects.filter(pk=made.question_id).update(price=Decimal("1.01"))
        assert dealt(worker, hit) is None, "more than is set aside"
    finally:
        del gold.DICE.random


def test_gold_that_was_retired_is_dealt_no_more_and_is_in_the_log(
    made: Gold, always: None, published: Submission, dana: Client, admin: User
) -> None:
    open_some(published)
    assert gold.retire_gold(made, admin, "The text is ambiguous.") and not gold.retire_gold(
        made, admin, "Again."
    )
    assert (
        Assignment.objects.get(token=take(dana).split("/")[2]).hit.questions.get() != made.question
    )
    entry = Audit.objects.get(what="retire gold")
    assert (entry.who, entry.why) == (admin, "The text is ambiguous.")


def test_how_people_agree_and_err_on_gold_is_known_of_all_of_them_together(
    made: Gold,
    always: None,
    published: Submission,
    annotator: Callable[[str], User],
) -> None:
    track = made.question.track
    assert reliability_of_track(track).gold_error is None, "nobody has answered it"
    open_some(published)
    Policy.objects.update(gold_rate=0.5)
    for name, answer in (("dana", WRONG), ("eve", RAW)):
        cache.clear()
        who = Client()
        who.force_login(annotator(name))
        who.post(take(who), answer)
        settle.tick()
        graded = Signal.objects.get(kind="gold", assignment__worker__user__username=name)
        assert graded.against == (name == "dana")
        assert reliability_of_track(track).gold_answers == (0 if name == "dana" else 2), (
            "one person's answers are nobody's business"
        )
    odd = Response.objects.filter(question__gold=None, criterion="relation").order_by("pk")[0]
    odd.value = odd.value | {"holds": []}
    odd.save(update_fields=["value"])
    cache.clear()
    known = reliability_of_track(track)
    assert known.kappa is not None and known.kappa < 1 and known.gold_error == 0.5
