"""Plans know that a target may be judged because its document was annotated whole: they ask for
less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from django.utils import timezone

from estimators.poisson import planned_variance
from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate, finished
from kbpo.sampling import draw
from kbpo.sampling.designs.state import TOGETHER, State, worth
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Submission
from scoring.combine import any_of
from tests.conftest import Toy
from tests.evaluation.followed_up import FollowedUp
from tests.evaluation.world import World
from tests.sampling.ways import pi_of

pytestmark = pytest.mark.django_db
DOCUMENTS, READ, PI = 12, 4, 0.3
BETA = READ / DOCUMENTS
WORTH = BETA / (BETA + TOGETHER * (1 - BETA))


@pytest.fixture
def followed_up(toy: Toy) -> FollowedUp:
    return FollowedUp(toy)


@dataclass
class Read:
    """Twelve documents, four of them annotated whole, so that what nobody marked in them is wrong;
    two systems.
    """

    world: World
    late: Submission

    @classmethod
    def of(cls, toy: Toy, *, annotate: bool, read: int = READ) -> Read:
        world = World(toy, n_documents=DOCUMENTS)
        first = world.system("first", lambda one: one.pk % 5 != 0)
        world.answer(world.sample(first, PI))
        first.batches.update(settled_at=first.confirmed_at)
        if annotate:
            world.read_in_full(world.documents[:read], lambda one: True, closed=True)
            settle_documents(world.track, [one.pk for one in world.documents[:read]])
        late = world.system("late", lambda one: one.pk % 2 == 0, team="Neural")
        Submission.objects.filter(pk=late.pk).update(
            status="planned", confirmed_at=None, sampled_at=None
        )
        late.refresh_from_db()
        return cls(world, late)


def test_without_annotated_documents_nothing_comes_in_by_them(toy: Toy) -> None:
    state = State(Read.of(toy, annotate=False).late)
    assert (state.by_document == 0).all()
    assert np.array_equal(state.chance, state.start) and set(state.start.round(9)) == {0.0, PI}


def test_a_plan_reckons_with_either_way_and_reaches_its_goal_by_both_together(toy: Toy) -> None:
    state = State(Read.of(toy, annotate=True).late)
    np.testing.assert_allclose(state.by_document, WORTH)
    np.testing.assert_allclose(state.chance, 1 - (1 - state.start) * (1 - WORTH))
    goal = state.planned / 3
    raised = state.raised(goal)
    assert (raised >= state.start).all() and (raised > state.start).any()
    both = any_of(raised, state.by_document)
    assert planned_variance(state.p, both[state.row], state.v, target=state.row) == pytest.approx(
        goal
    )
    assert np.array_equal(state.raised(2 * state.planned), state.start), (
        "nothing is raised for what is there already"
    )
    size = np.sqrt(np.bincount(state.row, weights=state.p**2 * state.v))
    moved = raised > state.start
    np.testing.assert_allclose(both[moved], np.minimum(1, state.multiplier(goal) * size[moved]))


def test_it_asks_for_fewer_than_a_plan_that_knows_of_questions_alone(toy: Toy) -> None:
    state = State(Read.of(toy, annotate=True).late)
    goal = state.planned / 3
    knowing = state.raised(goal)
    state.by_document = np.zeros(state.by_document.size)
    alone = state.raised(goal)
    assert knowing.sum() < 0.9 * alone.sum()
    assert planned_variance(state.p, alone[state.row], state.v, target=state.row) == pytest.approx(
        goal
    )


def test_which_documents_were_drawn_changes_no_threshold(toy: Toy) -> None:
    made = Read.of(toy, annotate=True)
    state = State(made.late)
    state.v = np.full(state.v.size, 0.25)  # of the model no two predictions are alike
    raised = dict(
        zip(state.target_id.tolist(), state.raised(state.planned / 3).tolist(), strict=True)
    )
    inside = {one.pk for one in made.world.documents[:READ]}
    of: dict[bool, set[float]] = {True: set(), False: set()}
    for one in made.world.instances:
        if (
            one.pk % 2 == 0 and one.pk % 5
        ):  # both systems predict it, so that all have the same past
            of[one.document_id in inside].add(round(raised[one.target_id], 9))
    assert of[True] == of[False] and len(of[True]) == 1


def test_a_plan_starts_from_the_probabilities_that_its_estimates_take(toy: Toy) -> None:
    made = Read.of(toy, annotate=True)
    state = State(made.late)
    Submission.objects.filter(pk=made.late.pk).update(
        status="judging", confirmed_at=made.late.received_at, sampled_at=made.late.received_at
    )
    evaluate(made.world.track)
    data = read(made.world.track)
    now = dict(
        zip(data.pool.target_id.tolist(), pi_of(data.inclusion.chances).tolist(), strict=True)
    )
    np.testing.assert_allclose(
        any_of(state.start, np.full(state.start.size, BETA)), [now[t] for t in state.target_id]
    )
    np.testing.assert_allclose(state.chances(), state.chance)


def test_what_documents_bring_counts_for_what_it_leaves_of_variance() -> None:
    beta = np.array([0.0, 0.1, 0.5, 1.0])
    assert worth(beta)[[0, 3]].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(1 / worth(beta[1:3]) - 1, TOGETHER * (1 / beta[1:3] - 1))


@pytest.mark.statistical
@pytest.mark.parametrize("asked", [0.0, 0.1, 0.4])
def test_a_worth_is_right_where_errors_go_together_as_much_as_it_supposes(asked: float) -> None:
    """40 of 120 documents of five targets; errors whose sums over documents vary twice as much as
    if independent.
    """
    rng = np.random.default_rng(11)
    D, n, size = 120, 40, 5
    within = (TOGETHER - 1) / (size - 1)
    error = np.sqrt(within) * rng.normal(size=(D, 1)) + np.sqrt(1 - within) * rng.normal(
        size=(D, size)
    )
    pi = 1 - (1 - asked) * (1 - n / D)
    totals = []
    for _ in range(4000):
        read_whole = np.isin(np.arange(D), rng.permutation(D)[:n])[:, None]
        totals.append((error * (read_whole | (rng.random((D, size)) < asked))).sum() / pi)
    chance = any_of(np.array(asked), worth(np.array(n / D)))
    assert np.var(totals) == pytest.approx((error**2).sum() * (1 / chance - 1), rel=0.2)


def test_where_documents_tell_enough_nothing_is_asked_and_it_is_scored(toy: Toy) -> None:
    made = Read.of(toy, annotate=True, read=DOCUMENTS)
    plan = {"chosen": "0.030", "options": {"0.030": {"each": "0.15"}}}
    Submission.objects.filter(pk=made.late.pk).update(
        status="confirmed", confirmed_at=timezone.now(), plan=plan
    )
    assert (State(made.late).chance == 1).all()
    assert draw.tick() == 1
    evaluate(made.world.track, finished(made.world.track))
    made.late.refresh_from_db()
    [batch] = made.late.batches.all()
    assert (made.late.status, made.late.stage_reason, batch.size) == ("scored", "target", 0)
    assert not batch.thresholds.exists()
    assert batch.settings["realised_variance"] == pytest.approx(0)
    printed = made.world.track.evaluations.latest("number").estimates.get(
        submission=made.late, quantity="precision", method="centred", criterion="relation", slice=""
    )
    mine = [one for one in made.world.instances if one.pk % 2 == 0]
    assert printed.value == pytest.approx(made.world.share_true(mine))


def test_what_a_follow_up_did_not_ask_about_has_no_second_route(followed_up: FollowedUp) -> None:
    followed_up.follow_up()
    late = followed_up.add_late()
    state = State(late)
    data = read(followed_up.world.track)
    beta = dict(
        zip(data.pool.target_id.tolist(), data.inclusion.chances.document.tolist(), strict=True)
    )
    expected = [beta[one] for one in state.target_id.tolist()]
    np.testing.assert_allclose(state.by_document, worth(np.array(expected)))
    assert len(set(np.round(expected, 9))) == 2, (
        "some were predicted when the follow-up was ordered, some only later"
    )
