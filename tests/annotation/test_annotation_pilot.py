"""Pilots: k workers on n items, what they cost, and what they tell."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, product

import numpy as np
import pytest
from annotation_world import ToyTrack, answer_all, make_submission
from django.test import Client

from annotation.budget import give_back
from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Question
from annotation.quality import agreement, fewer
from annotation.quality.agreement import Row
from annotation.questions import pilot
from estimators.agreement import fleiss_kappa
from kbpo.accounts.models import User
from kbpo.instances.models import Instance, Target
from kbpo.money.models import Budget
from kbpo.money.spend import OverBudget, balance
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.fixture
def predicted(track: Track, targets: list[Target], monkeypatch: pytest.MonkeyPatch) -> Submission:
    """A submission that predicts all six pairs; nobody was asked about them."""
    monkeypatch.setattr("annotation.questions.pilot.kind_of", ToyTrack)
    row = make_submission(track, targets)
    for instance in Instance.objects.filter(target__in=targets):
        Prediction.objects.create(
            submission=row,
            instance=instance,
            subject_canonical_begin=0,
            subject_canonical_end=3,
            object_canonical_begin=0,
            object_canonical_end=3,
            provenance=[],
            subject_entity=0,
            object_entity=1,
            same_predicate=1,
            same_subject=1,
            subject_facts=1,
        )
    return row


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_user("root", is_staff=True)


def test_the_union_of_more_workers_finds_more() -> None:
    one, two, three = (0, 2), (3, 4), (5, 6)
    marked = [{one, two}, {one}, {one, (7, 8)}]
    # A span found by f of 3: by one of them f/3, by two 1 − C(3 − f, 2)/3, by all three if f > 0.
    assert pilot.union_recall(marked, {one, two, three}) == {
        1: pytest.approx((1 + 1 / 3 + 0) / 3),
        2: pytest.approx((1 + 2 / 3 + 0) / 3),
        3: pytest.approx(2 / 3),
    }
    assert pilot.union_recall(marked, set()) == {}


def rows_of(table: list[str]) -> list[Row]:
    """Answers to as many questions, a letter each; a space is no answer."""
    return [
        Row(question, worker, ("relation", "r"), value)
        for question, said in enumerate(table)
        for worker, value in enumerate(said)
        if value != " "
    ]


def counts_of(table: list[str]) -> list[list[int]]:
    return [[said.count("y"), said.count("n")] for said in table]


def test_kappa_of_fewer_people_is_that_of_all_their_choices() -> None:
    divided, of_one_mind = ["yyn", "yny", "nyn"], ["yyy", "nnn", "yyy", "nnn", "nnn"]
    two, three = fewer.lines("relation", "relation", rows_of(divided + of_one_mind))
    assert (two.workers, three.workers, two.questions) == (2, 3, 8)
    assert three.kappa == pytest.approx(fleiss_kappa(counts_of(divided + of_one_mind))), (
        "all can be chosen in one way"
    )
    pairs = [["".join(pair) for pair in combinations(said, 2)] for said in divided]
    ways = [
        fleiss_kappa(counts_of([*chosen, *(said[:2] for said in of_one_mind)]))
        for chosen in product(*pairs)
    ]
    assert two.kappa == pytest.approx(np.mean(ways), abs=0.05)
    assert two.low80 is not None and two.high80 is not None and two.low80 < two.kappa < two.high80
    assert two.high80 - two.low80 > (three.high80 or 0) - (three.low80 or 0), (
        "fewer people know it less well"
    )


def test_agreement_on_pairs_is_told_of_the_one_choice_that_is_published() -> None:
    """Of single predicates most are "no" for everybody: that agreement is another number."""
    said = {1: ({"works"}, {"works"}), 2: ({"works"}, set()), 3: ({"lives"}, {"lives", "works"})}
    rows = [
        agreement.Row(question, worker, ("relation", name), "yes" if name in names else "no")
        for question, people in said.items()
        for worker, names in enumerate(people)
        for name in ("works", "lives", "born")
    ]
    rows += [agreement.Row(1, worker, ("linking", "7"), "0-3") for worker in range(2)]
    found = agreement.one_choice(rows)
    assert {(row.question, row.worker): row.value for row in found} == {
        (1, 0): "works",
        (1, 1): "works",
        (2, 0): "works",
        (2, 1): "",
        (3, 0): "lives",
        (3, 1): "lives|works",
    }
    kinds = {what: mine for _, what, mine in agreement.by_kind({"relation": rows})}
    assert kinds["choice"] == found and set(kinds) == {"choice", "linking", "relation"}, (
        "every table tells it: that of fewer people had none, and nothing to hold beside it"
    )
    told = agreement.agreement("relation", agreement.CHOICE, found)
    # Six answers: works 3, "" 1, lives 1, both 1; two of six pairs agree.
    expected = (3 / 6) ** 2 + 3 * (1 / 6) ** 2
    assert told.units == 3 and told.observed == pytest.approx(1 / 3)
    assert told.kappa == pytest.approx((1 / 3 - expected) / (1 - expected))


def test_a_pilot_asks_reserves_and_gives_back(
    predicted: Submission, track: Track, root: User, clients: list[Client]
) -> None:
    made = pilot.launch_pilot(track, root, workers=3, items=4, seed=1, why="To learn.")
    assert Question.objects.filter(**made.payer.at("payer"), answers_wanted=3).count() == 4
    assert balance(purpose=made.payer).open == Decimal("0.72")
    publish.tick()
    for client in clients[:2]:
        answer_all(client)
    answer_all(clients[2], {"a": "0-3", "b": "other", "none": "1"})
    settle.tick()
    assert Question.objects.counts() == {"settled": 4}
    found = {one.what: one for one in pilot.pilot_report(track, made).agreement}
    assert (found["relation"].questions, found["relation"].workers) == (4, 3)
    assert found["linking"].alpha is None or found["linking"].alpha > 0.99
    assert give_back.tick() == 0, "everything was spent"
    assert balance(purpose=made.payer).spent == Decimal("0.72")


def test_a_stopped_pilot_gives_its_money_back(
    predicted: Submission, track: Track, root: User
) -> None:
    from annotation.hits import batch

    made = pilot.launch_pilot(track, root, workers=2, items=6, why="To learn.")
    publish.tick()
    batch.stop_batch(made.payer, root, "Wrong texts.")
    settle.tick()
    assert give_back.tick() == 1 and give_back.tick() == 0
    assert balance(purpose=made.payer).open == 0


def test_the_same_seed_draws_the_same_items(
    predicted: Submission, track: Track, root: User
) -> None:
    first = pilot.launch_pilot(track, root, workers=2, items=3, seed=7, why="To learn.")
    chosen = set(
        Question.objects.filter(**first.payer.at("payer")).values_list("target", flat=True)
    )
    Question.objects.all().delete()
    again = pilot.launch_pilot(track, root, workers=2, items=3, seed=7, why="To learn.")
    assert (
        set(Question.objects.filter(**again.payer.at("payer")).values_list("target", flat=True))
        == chosen
    )


@pytest.mark.parametrize(("workers", "items"), [(1, 10), (10, 10), (5, 0), (5, 2001)])
def test_a_pilot_of_nonsense_is_refused(
    workers: int, items: int, predicted: Submission, track: Track
) -> None:
    with pytest.raises(pilot.CannotPilot, match="2 to 9 workers"):
        pilot.launch_pilot(track, None, workers=workers, items=items)


def test_without_items_or_money_nothing_is_asked(
    predicted: Submission, track: Track, root: User
) -> None:
    Budget.objects.create(track=track, scope="track", cap=Decimal("100.10"))
    with pytest.raises(OverBudget):
        pilot.launch_pilot(track, root, workers=5, items=6, why="To learn.")
    assert not Question.objects.exists()
    Prediction.objects.all().delete()
    with pytest.raises(pilot.CannotPilot, match="nothing to ask"):
        pilot.launch_pilot(track, root, why="To learn.")


def test_a_form_that_is_sent_twice_launches_one_pilot(
    predicted: Submission, track: Track, root: User
) -> None:
    first = pilot.launch_pilot(track, root, workers=2, items=2, key="k" * 32, why="To learn.")
    assert (
        pilot.launch_pilot(track, root, workers=2, items=2, key="k" * 32, why="To learn.") == first
    )
    assert (
        pilot.launch_pilot(track, root, workers=2, items=2, key="l" * 32, why="To learn.") != first
    )
