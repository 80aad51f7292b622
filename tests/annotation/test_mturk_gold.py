"""Gold in the HITs of a marketplace: mixed in, told apart by nobody, paid, and what follows from
wrong answers.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import GOOD, make_submission, make_target
from django.test import Client
from mturk_world import Turk, check_books, form_of, rounds

from annotation.budget import promises
from annotation.hits import publish
from annotation.labels import exclude
from annotation.models import (
    HIT,
    Assignment,
    Comparison,
    Gold,
    Payment,
    Question,
    Response,
    Signal,
    Warned,
    Worker,
)
from annotation.quality import gold
from annotation.quality.warn import set_exclude_for
from annotation.questions import ask
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.money.spend import balance
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
RAW = {"a": ["0-3"], "b": ["other"], "holds": ["per:schools_attended>"]}
WRONG = {"a": "0-3", "b": "other", "none": "1"}


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)


@pytest.fixture
def made(turk: Turk, track: Track, targets: list[Target], admin: User) -> Gold:
    """A gold question on a marketplace's track; everything that is published from now on gets
    gold.
    """
    make_submission(track, targets[:1], "First")
    ask.tick()
    publish.tick()
    turk.all_do("A1", "A2", "A3")
    rounds()
    gold.set_aside(track, Decimal("5.00"), admin, "It is needed.", key="1")
    gold.set_rate(track, 0.5, admin, "To try it.")
    return gold.make_gold(gold.candidates(track)[0], RAW, admin, "All three said so.")


def put_up(track: Track, targets: list[Target], name: str) -> list[HIT]:
    before = list(HIT.objects.values_list("pk", flat=True))
    make_submission(track, targets, name)
    ask.tick()
    publish.tick()
    return list(HIT.objects.exclude(pk__in=before).order_by("pk"))


def pages_of(src: str, answer: dict[str, Any]) -> list[str]:
    """Every page that a worker sees of a HIT, to the form that sends it in."""
    client, path = Client(), "/" + src.partition("//")[2].partition("/")[2]
    found = [client.get(path).content.decode()]
    while (form := form_of(found[-1], "answer")) is not None:
        found.append(client.post(path, form | answer).content.decode())
    return found


@pytest.mark.soak
def test_making_gold_puts_nothing_up_by_itself(made: Gold, turk: Turk) -> None:
    rounds()
    assert not made.question.hits.exists()
    assert not HIT.objects.filter(status="intent").exists() and len(turk.hits()) == 1


@pytest.mark.soak
def test_gold_goes_out_in_a_hit_and_its_pay_is_part_of_the_reward(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    [hit] = put_up(track, targets[1:2], "Second")
    assert set(hit.questions.all()) == {made.question, Question.objects.get(target=targets[1])}
    assert hit.reward == Decimal("0.10")
    assert promises.committed(gold.purpose_of(track)) == Decimal("0.18")  # three places at 0.06
    for worker in ("W1", "W2", "W3"):
        turk.do(worker, hit.external_id)
    rounds()
    assert (
        Payment.objects.filter(assignment__hit=hit, status="paid", amount=Decimal("0.10")).count()
        == 3
    )
    assert balance(purpose=gold.purpose_of(track)).spent == Decimal("0.18")
    assert promises.committed(gold.purpose_of(track)) == 0
    assert Comparison.objects.filter(kind="gold", against=False).count() == 3
    assert Label.objects.filter(origin=made.question.origin).count() == 0
    assert gold.standings(track)[0].answers == 3
    made.refresh_from_db()
    assert made.question.status == "gold"
    hit.refresh_from_db()
    assert hit.status == "disposed"
    check_books(turk)


@pytest.mark.soak
def test_no_page_tells_which_question_is_gold(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    [hit] = put_up(track, targets[1:2], "Second")
    _, src = turk.accept("W1", hit.external_id)
    for page in pages_of(src, GOOD):
        assert "gold" not in page.lower()
        assert 'holds" value="per:schools_attended>" checked' not in page


@pytest.mark.soak
def test_it_stands_now_first_and_now_last(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    more = [make_target(track, number, 0.5) for number in range(20, 40)]
    first = {gold.asked_of(hit, None)[0] == made.question for hit in put_up(track, more, "Many")}
    assert first == {True, False}


@pytest.mark.soak
def test_somebody_who_met_it_is_not_asked_again_and_is_paid_the_same(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    hits = put_up(track, targets[1:3], "Second")
    for hit in hits:
        turk.do("W1", hit.external_id)
        rounds()
    assert Response.objects.filter(question=made.question, criterion="relation").count() == 1
    assert Comparison.objects.filter(kind="gold").count() == 1
    assert set(Assignment.objects.filter(hit__in=hits).values_list("status", flat=True)) == {"paid"}
    mine = Payment.objects.filter(assignment__hit__in=hits, status="paid")
    assert set(mine.values_list("amount", flat=True)) == {Decimal("0.10")} and mine.count() == 2
    # whoever answered the question that the gold was made of is not asked it as gold either
    turk.do("A1", hits[0].external_id)
    rounds()
    assert Response.objects.filter(question=made.question, criterion="relation").count() == 1


@pytest.mark.soak
def test_gold_that_is_cut_out_of_an_answer_is_missed(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    [hit] = put_up(track, targets[1:2], "Second")
    _, src = turk.accept("W1", hit.external_id)
    form = turk.fill_in(src)
    said = {
        name: value
        for name, value in json.loads(form["answer"]).items()
        if not name.startswith(f"q{made.question.pk}.")
    }
    turk.send(form | {"answer": json.dumps(said)})
    rounds()
    row = Assignment.objects.get(hit=hit)
    assert row.status == "failed" and "cannot be used" in row.reason


@pytest.mark.soak
def test_without_money_no_gold_goes_out(
    made: Gold, turk: Turk, track: Track, targets: list[Target]
) -> None:
    more = [make_target(track, number, 0.5) for number in range(20, 60)]
    hits = put_up(track, more, "Many")
    with_gold = [hit for hit in hits if hit.questions.count() == 2]
    assert len(with_gold) == 27  # 5.00 for three places at 0.06 each
    assert promises.committed(gold.purpose_of(track)) <= Decimal("5.00")


@pytest.mark.soak
def test_whoever_is_wrong_on_gold_is_excluded_and_the_platform_is_told(
    made: Gold, turk: Turk, track: Track, targets: list[Target], admin: User, settings: Any
) -> None:
    set_exclude_for(track, ["gold"], None, "Gold alone")
    for number in range(
        3
    ):  # three more gold questions: beyond the limit are more than three wrong answers
        source = make_target(track, 10 + number, 0.5)
        put_up(track, [source], f"Source {number}")
        HIT.objects.latest("pk").questions.remove(made.question)
        turk.all_do("A1", "A2", "A3")
        rounds()
        gold.make_gold(Question.objects.get(target=source), RAW, admin, "Sure.")
    more = [make_target(track, number, 0.5) for number in range(20, 28)]
    put_up(track, more, "Many")
    for hit in turk.offered("BAD"):
        turk.do("BAD", hit, WRONG)
    for number in range(2):  # others are at work too: the last few are never excluded by themselves
        turk.all_do(f"W{number}")
    rounds()
    bad = Worker.objects.get(identity__external_id="BAD")
    failed = Signal.objects.filter(worker=bad, kind="gold_failed")
    assert failed.count() == 4 and bad.excluded_at is None, "all at once: warned, and no more yet"
    assert Warned.objects.filter(worker=bad, kind="gold").update(against=1) == 1
    failed.update(reviewed=False)
    assert exclude.review() == 1, "as if the warning had come after the first"
    rounds()
    bad.refresh_from_db()
    assert bad.excluded_at is not None and "known answer are wrong" in bad.excluded_reason
    assert bad.qualifications.get(name="excluded").told is True
    put_up(track, [make_target(track, 90, 0.5)], "Later")
    assert turk.offered("BAD") == [] and turk.offered("W0")


@pytest.mark.soak
def test_gold_that_is_retired_is_still_paid_where_it_is_up(
    made: Gold, turk: Turk, track: Track, targets: list[Target], admin: User
) -> None:
    [hit] = put_up(track, targets[1:2], "Second")
    gold.retire(made, admin, "It is doubtful.")
    hit.refresh_from_db()
    assert hit.status == "open"
    for worker in ("W1", "W2", "W3"):
        turk.do(worker, hit.external_id)
    rounds()
    assert Payment.objects.filter(assignment__hit=hit, status="paid").count() == 3
    check_books(turk)
