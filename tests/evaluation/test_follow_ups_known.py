"""Who knew which documents were read and followed up, and what they predict since then."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.questions import follow_up
from kbpo.evaluation.data import read
from kbpo.inclusion.disclosure import disclosed
from kbpo.instances.models import Target
from kbpo.pool.pool import read_pool
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.evaluation.followed_up import (
    DOCUMENTS,
    MOST,
    PI,
    READ,
    FollowedUp,
    early,
    late,
    marked,
    of_targets,
)
from tests.evaluation.world import World
from tests.sampling.ways import own as own_of
from tests.sampling.ways import pi_of

pytestmark = pytest.mark.django_db


def test_documents_that_a_team_could_know_count_for_themselves(followed_up: FollowedUp) -> None:
    """Its second run knows which documents were read: in them what it predicts is known, elsewhere
    it must be drawn.
    """
    followed_up.follow_up()
    world = followed_up.world
    again = world.system("again", lambda one: early(one) or late(one))
    asked = world.sample(again, 0.7)
    world.answer(asked)
    other = world.system("other", lambda one: early(one) or late(one), team="Neural")
    data = read(world.track)
    at, there = (data.systems.index(row.pk) for row in (again, other))
    assert at in data.disclosed and there not in data.disclosed
    certainty, own = (
        of_targets(data, one)
        for one in (data.disclosed[at].certainty, own_of(data.disclosed[at], data.own[at]))
    )
    u = dict(Target.objects.values_list("pk", "u"))
    old, new = followed_up.targets(early), followed_up.targets(late) - followed_up.targets(early)
    for target in old:
        assert certainty[target] == (target in followed_up.inside or u[target] < PI)
        if not certainty[target]:
            assert own[target] == pytest.approx((0.7 - PI) / (1 - PI)), "no document brings it in"
    for target in new:
        assert own[target] == pytest.approx(0.7) and not certainty[target]
    pi = of_targets(data, pi_of(data.inclusion.chances))
    assert {round(pi[target], 9) for target in old} == {
        round(1 - (1 - PI) * (1 - READ / DOCUMENTS), 9)
    }
    # documents read since then are chance for it as well
    followed_up.read_whole(world.documents[READ : READ + 3])
    followed_up.follow_up()
    data = read(world.track)
    own = of_targets(data, own_of(data.disclosed[at], data.own[at]))
    later = 3 / (DOCUMENTS - READ)
    for target in new - followed_up.inside:
        assert own[target] == pytest.approx(1 - 0.3 * (1 - later)), "for itself it was followed up"
    only = new - followed_up.targets(lambda one: False)
    pi = of_targets(data, pi_of(data.inclusion.chances))
    beta = (READ + 3) / DOCUMENTS
    for target in only:  # the other team predicted it too before the second follow-up
        assert pi[target] == pytest.approx(1 - 0.3 * (1 - beta))


@pytest.mark.soak
def test_what_only_a_team_that_knew_the_documents_predicts_has_no_second_route(
    followed_up: FollowedUp,
) -> None:
    followed_up.follow_up()
    again = followed_up.world.system("again", lambda one: early(one) or late(one))
    followed_up.world.answer(followed_up.world.sample(again, 0.7))
    followed_up.follow_up()
    data = read(followed_up.world.track)
    at = data.systems.index(again.pk)
    common, own = (of_targets(data, one.chances.document) for one in (data.inclusion, data.own[at]))
    for target in followed_up.targets(late) - followed_up.targets(early):
        assert common[target] == own[target] == 0, "its variance would have no clusters"


@pytest.mark.parametrize(
    "knows", [False, True], ids=["another team", "a team that knew the documents"]
)
@pytest.mark.soak
def test_another_relation_that_is_said_of_a_pair_later_takes_the_pair_out(
    followed_up: FollowedUp, knows: bool
) -> None:
    """Nobody was asked about it where readers had marked the first: it would be known just where
    that is not true.
    """
    followed_up.follow_up()
    before = of_targets(
        followed_up_data := read(followed_up.world.track),
        followed_up_data.inclusion.chances.document,
    )
    said = {
        one.pk
        for one in followed_up.world.also_said(
            [one for one in followed_up.world.instances if early(one)][::4]
        )
    }
    row = followed_up.world.system(
        "late", lambda one: one.pk in said, team="Patterns" if knows else "Neural"
    )
    followed_up.world.answer(followed_up.world.sample(row, PI))
    data = read(followed_up.world.track)
    after, cluster = (
        of_targets(data, data.inclusion.chances.document),
        of_targets(data, data.inclusion.cluster),
    )
    pairs = followed_up.targets(lambda one: one.pk in said)
    assert all(before[target] > 0 for target in pairs)
    if knows:
        assert after == before, "what may depend on the documents decides nothing"
    else:
        assert all(after[target] == 0 and cluster[target] == -1 for target in pairs)
        assert all(
            after[target] == value for target, value in before.items() if target not in pairs
        )


@pytest.mark.soak
def test_a_plan_tells_of_documents_so_who_had_one_knew_them(followed_up: FollowedUp) -> None:
    followed_up.follow_up()
    stranger = followed_up.world.system("one", late, team="Neural")
    draft = Submission.objects.get(pk=followed_up.world.system("two", late, team="Neural").pk)
    Submission.objects.filter(pk=draft.pk).update(
        sampled_at=None, confirmed_at=None, status="planned"
    )
    data = read(followed_up.world.track)
    assert data.systems.index(stranger.pk) not in data.disclosed_drawn, (
        "what it uploaded besides was not read by then"
    )
    Submission.objects.filter(pk=draft.pk).update(read_at=stranger.confirmed_at)
    data = read(followed_up.world.track)
    assert data.disclosed_drawn[data.systems.index(stranger.pk)].document[0] == pytest.approx(
        READ / DOCUMENTS
    )


def test_what_others_state_later_changes_nothing_of_what_was_known(toy: Toy) -> None:
    """A document all of which was marked is judged; it stays so when somebody predicts more in it.
    Else what was asked for nobody would have no probability, and the interval no end.
    """
    world = World(toy, n_documents=4)
    mine = [
        one for one in world.instances if one.document_id == world.documents[0].pk and one.pk % 2
    ]
    for one in world.instances:
        world.truth[one.pk] = one in mine
    elsewhere = [
        one.pk for one in world.instances if one.document_id != world.documents[0].pk and one.pk % 3
    ]
    world.read_in_full(world.documents[:1], lambda one: True)
    predicts = {*(one.pk for one in mine), *elsewhere}
    world.answer(world.sample(world.system("first", lambda one: one.pk in predicts), PI))
    again = world.system("again", lambda one: one.pk in predicts)

    def known(systems: list[int]) -> dict[int, bool]:
        pool = read_pool(world.track, systems)
        found = disclosed(pool)[systems.index(again.pk)]
        certainty = dict(zip(pool.target_id.tolist(), found.certainty.tolist(), strict=True))
        return {one.pk: certainty[one.target_id] for one in world.instances if one.pk in predicts}

    before = known([again.pk - 1, again.pk])
    assert all(before[one.pk] for one in mine)
    late = world.system("late", lambda one: one.pk not in predicts, team="Neural")
    assert known([again.pk - 1, again.pk, late.pk]) == before


@pytest.mark.soak
def test_a_run_that_was_decided_on_before_the_documents_were_read_knows_nothing_of_them(
    toy: Toy,
) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    again = world.system("again", early)
    world.answer(world.sample(again, 0.7))
    world.read_in_full(world.documents[:READ], marked)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    row = follow_up.order_follow_up(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    follow_up.tick()
    data = read(world.track)
    at = data.systems.index(again.pk)
    disclosed, own = data.disclosed[at], own_of(data.disclosed[at], data.own[at])
    assert disclosed.unjudged.any() and not disclosed.inside.any()
    np.testing.assert_allclose(
        own[disclosed.unjudged], 1 - (1 - (0.7 - PI) / (1 - PI)) * (1 - READ / DOCUMENTS)
    )


@pytest.mark.soak
def test_what_a_follow_up_answered_does_not_say_how_far_a_sample_had_come(toy: Toy) -> None:
    """Half of a sample is judged; then a follow-up judges documents, whatever was drawn in them."""
    world = World(toy, n_documents=DOCUMENTS)
    asked = world.sample(world.system("first", early), 0.8)
    half = [one for one in asked if one.u < 0.4]
    world.answer(half)
    inside = {one.pk for one in world.documents[:READ]}
    world.read_in_full(world.documents[:READ], marked)
    settle_documents(world.track, sorted(inside))
    row = follow_up.order_follow_up(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    follow_up.tick()
    again = world.system("again", early)
    data = read(world.track)
    disclosed = data.disclosed_drawn[data.systems.index(again.pk)]
    outside = [[one for one in some if one.document_id not in inside] for some in (half, asked)]
    expected = 0.8 * len(outside[0]) / len(outside[1])
    assert disclosed.unjudged.any() and 0.3 < expected < 0.5
    np.testing.assert_allclose(disclosed.threshold[disclosed.unjudged], expected)
