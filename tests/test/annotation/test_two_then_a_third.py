"""Two people are asked first, a third only where they differ: money, labels, exclusions, rates."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from annotation_world import GOOD, answer_all, make_submission
from django.test import Client
from django.utils import timezone
from test_annotation_money import dying
from undone import undone

from annotation.budget import promises
from annotation.budget.give_back import release_unneeded_money
from annotation.budget.promises import committed_money
from annotation.hits import ask_again, publish
from annotation.interfaces.relation.interface import Relation
from annotation.labels import exclude, recount, settle
from annotation.models import HIT, Assignment, Question, Response, Signal, Worker
from annotation.quality import agreement
from annotation.questions import ask
from annotation.questions.limits import expected_people, people_asked_text
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.evaluation.judges import count_answers_and_dissent
from kbpo.instances.models import Label, Target
from kbpo.money.models import Purpose
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.check.annotation.test_annotation_relation import PARTS, answer, question

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("in_stages")]
NO = {"a": "0-3", "b": "other", "none": "1"}
FLAG = {"problem": "text"}
EACH = Decimal("0.06")


@pytest.fixture
def two(track: Track, targets: list[Target]) -> Submission:
    """A submission with two questions in the pool, and just the money for three answers to each."""
    submission = make_submission(track, targets[:2], "Small", money="0.36")
    ask.tick()
    publish.tick()
    return submission


def seen(client: Client) -> Worker:
    """Who uses this client, seen a moment ago."""
    worker = worker_of_user(User.objects.get(pk=client.session["_auth_user_id"]))
    Worker.objects.filter(pk=worker.pk).update(last_seen_at=timezone.now())
    return worker


def say(client: Client, *answers: dict[str, Any]) -> None:
    """One answer after the other, to the questions in their order."""
    from annotation.hits.lease import lease_next
    from annotation.hits.submit import submit_answer

    for one in answers:
        held = lease_next(seen(client))
        assert held is not None
        raw = {name: value if isinstance(value, list) else [value] for name, value in one.items()}
        submit_answer(held, raw)


def turn() -> dict[str, int]:
    settle.tick()
    publish.tick()
    return Question.objects.counts()


def test_a_third_is_asked_where_two_differ_and_the_rest_of_the_money_comes_back(
    two: Submission, clients: list[Client]
) -> None:
    ada, bo, cy = clients
    purpose = two.purpose
    assert committed_money(purpose) == 6 * EACH == balance(purpose=purpose).open
    say(ada, GOOD, GOOD)
    say(bo, NO, GOOD)
    assert turn() == {"settled": 1, "published": 1}
    assert Label.objects.filter(target__kind="pair").count() == 1, "nothing is said before"
    assert balance(purpose=purpose).spent == 4 * EACH
    assert committed_money(purpose) == EACH, "of the third place; the other one is free"
    assert answer_all(cy) == 1
    assert turn() == {"settled": 2}
    labels = Label.objects.filter(target__kind="pair").order_by("n")
    assert [(label.n, label.disagreement > 0) for label in labels] == [(2, False), (3, True)]
    assert all(label.value["holds"] == GOOD["holds"] for label in labels)
    assert committed_money(purpose) == 0 and balance(purpose=purpose).spent == 5 * EACH
    Submission.objects.filter(pk=two.pk).update(status="scored")
    assert release_unneeded_money(two)
    sums = balance(purpose=purpose)
    assert (sums.open, sums.spent, sums.released) == (0, 5 * EACH, EACH)


def test_a_kill_on_the_way_to_the_third_asks_one_and_pays_each_once(
    two: Submission, clients: list[Client]
) -> None:
    ada, bo, _ = clients
    say(ada, GOOD, GOOD)
    say(bo, NO, GOOD)
    points = [
        (recount, "ask_one_more"),
        (recount, "record_labels"),
        (recount, "_close_hits"),
        (HIT.objects, "bulk_create"),
        (Question, "move"),
    ]
    for (owner, name), before in product(points, (True, False)):
        with undone():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(owner, name, dying(getattr(owner, name), 1, before))
                with pytest.raises(BaseException, match=r"^$"):
                    settle.tick()
            assert turn() == {"settled": 1, "published": 1}, (name, before)
            divided = Question.objects.get(status="published")
            assert divided.answers_wanted == 3
            places = divided.hits.values_list("max_assignments", flat=True)
            assert sorted(places) == [1, 2]
            assert balance(purpose=two.purpose).spent == 4 * EACH


def test_one_to_one_to_one_gets_a_fourth_if_somebody_is_there_and_the_money_reaches(
    track: Track, targets: list[Target], clients: list[Client], annotator: Callable[[str], User]
) -> None:
    for money, status in (("0.18", "settled"), ("0.24", "published")):
        with undone():
            make_submission(track, targets[:1], "Small", money=money)
            ask.tick()
            publish.tick()
            fourth = annotator("fourth")
            Worker.objects.filter(pk=worker_of_user(fourth).pk).update(last_seen_at=timezone.now())
            for client, one in zip(clients, (GOOD, NO, FLAG), strict=True):
                say(client, one)
                turn()
            assert Question.objects.get().status == status


@pytest.mark.parametrize(("money", "published"), [("0.36", 0), ("0.42", 1), ("0.47", 1)])
def test_more_are_asked_as_far_as_the_money_reaches_which_is_counted_once(
    track: Track,
    targets: list[Target],
    clients: list[Client],
    monkeypatch: pytest.MonkeyPatch,
    money: str,
    published: int,
) -> None:
    submission = make_submission(track, targets[:2], "Small", money=money)
    ask.tick()
    publish.tick()
    for client, one in zip(clients, (GOOD, NO, FLAG), strict=True):
        turn()
        say(client, one, one)
    counted: list[Purpose] = []

    def count(payer: Purpose) -> Decimal:
        counted.append(payer)
        return committed_money(payer)

    monkeypatch.setattr(promises, "committed_money", count)
    monkeypatch.setattr(ask_again, "has_other_worker", lambda question: True)
    settle.tick()
    assert Question.objects.filter(status="published").count() == published
    assert counted == [submission.purpose]


def test_an_excluded_answer_reopens_its_place(
    track: Track, targets: list[Target], clients: list[Client]
) -> None:
    make_submission(track, targets[:1], "Small", money="1.00")
    ask.tick()
    publish.tick()
    ada, bo, cy = clients
    say(ada, GOOD)
    say(bo, GOOD)
    assert turn() == {"settled": 1}
    exclude.exclude_worker(seen(bo), "Guesses.")
    assert turn() == {"published": 1} and Label.objects.filter(target__kind="pair", n=1).exists()
    say(cy, GOOD)
    assert turn() == {"settled": 1}
    assert Label.objects.filter(target__kind="pair").order_by("-pk")[0].n == 2
    exclude.reinstate_worker(seen(bo))
    turn()
    assert Label.objects.filter(target__kind="pair").order_by("-pk")[0].n == 3


def test_rates_rest_on_the_first_two(two: Submission, clients: list[Client]) -> None:
    ada, bo, cy = clients
    say(ada, GOOD, GOOD)
    say(bo, NO, GOOD)
    turn()
    say(cy, GOOD)
    turn()
    held = Signal.objects.filter(kind="majority")
    against = dict(held.values_list("assignment", "against"))
    of = {
        worker: [against[one.pk] for one in Assignment.objects.filter(worker=worker).order_by("pk")]
        for worker in (seen(ada), seen(bo))
    }
    assert [sum(of[worker]) for worker in (seen(ada), seen(bo))] == [0, 1]
    assert not held.filter(assignment__worker=seen(cy)).exists()
    rows = agreement.unit_values_by_interface(list(Question.objects.values_list("pk", flat=True)))
    assert {row.worker for row in rows["relation"]} == {seen(ada).pk, seen(bo).pk}
    ids = np.array(sorted(Question.objects.values_list("target", flat=True)))
    answers, differ = count_answers_and_dissent(ids)
    assert answers.tolist() == [2, 2] and sorted(differ.tolist()) == [0, 1]


def test_a_quote_expects_two_and_the_share_of_thirds(two: Submission, track: Track) -> None:
    track.kind = "kbp"
    assert people_asked_text(track) == "2 people, and a third where they differ"
    assert expected_people(track) == Decimal("2.15")
    Question.objects.update(status="settled", answers_wanted=3)
    assert expected_people(track) == 2 + (3 + 2) / Decimal(22)
    track.workers_per_question = 2
    assert expected_people(track) == 2


def test_labels_are_those_of_three_people() -> None:
    """10,000 questions of three parts, each of which each person says rightly nine times of ten."""

    @cache
    def labels(*people: tuple[bool, bool, bool]) -> tuple[bool, list[Any]]:
        """Whether these people differ in any part, and what their labels say."""
        responses = [
            Response(target_id=one.target_id, criterion=one.criterion, value=one.value)
            for *holds, first_name in people
            for one in Relation().parse(
                question(),
                answer("0-7" if first_name else "19-30", *(PARTS[k] for k in (0, 1) if holds[k])),
            )
        ]
        of = {label.target_id: label for label in Relation().aggregate(question(), responses)}
        said = [of[1].value["holds"], of[7].value.get("canonical")]
        return Relation().is_split(question(), responses), said

    rng, n = np.random.default_rng(20_261_128), 10_000
    true = rng.random((n, 1, 3)) < 0.4
    said = (rng.random((n, 3, 3)) < 0.9) == true
    thirds = 0
    for people in said.tolist():
        first, second, third = (tuple(one) for one in people)
        is_split, staged = labels(first, second)
        thirds += is_split
        three = labels(first, second, third)[1]
        assert (three if is_split else staged) == three
    assert 0.42 < thirds / n < 0.48
