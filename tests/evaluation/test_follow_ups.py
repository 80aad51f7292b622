"""Documents that were followed up: what nobody marked in them was asked, and their judgments count
as a second inclusion route.
"""

from __future__ import annotations

import numpy as np
import pytest

from annotation.questions import follow_up
from estimators import horvitz_thompson
from estimators import recall as totals
from estimators.design import Design
from estimators.misses import found_share, with_misses
from kbpo.evaluation.correction.checkable import frame_of
from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate, state_of
from kbpo.evaluation.slices.estimate import slice_scores
from kbpo.instances.models import Target
from kbpo.sampling.documents.draw import order_documents, settle_documents, waiting_documents
from kbpo.sampling.documents.second_stage import draw_second_stage
from kbpo.sampling.left_open import keep_answered
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.default import Centred
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
from tests.sampling.ways import pi_of

pytestmark = pytest.mark.django_db


def test_what_was_predicted_has_two_routes_and_what_came_later_one(followed_up: FollowedUp) -> None:
    before = read(followed_up.world.track).inclusion
    assert before.n_clusters == 0 and (before.chances.document == 0).all()
    followed_up.follow_up()
    followed_up.add_late()
    data = read(followed_up.world.track)
    now, beta = data.inclusion, READ / DOCUMENTS
    pi, cluster, counts = (
        of_targets(data, one) for one in (pi_of(now.chances), now.cluster, now.counts)
    )
    old, new = followed_up.targets(early), followed_up.targets(late) - followed_up.targets(early)
    assert new & followed_up.inside and new - followed_up.inside
    for target in old:
        assert pi[target] == pytest.approx(1 - (1 - PI) * (1 - beta)), (
            "inside or outside of what was read"
        )
        assert (cluster[target] >= 0) == (target in followed_up.inside)
        assert counts[target] or target not in followed_up.inside
    for target in new:
        assert pi[target] == pytest.approx(PI) and cluster[target] == -1
    assert {target for target in new & followed_up.inside if not counts[target]}, (
        "marked or not, it was not drawn"
    )


def test_what_a_withdrawn_submission_predicted_stays_eligible(followed_up: FollowedUp) -> None:
    """Else a team could choose by what it saw which targets have two inclusion routes."""
    followed_up.follow_up()
    followed_up.add_late()
    before = read(followed_up.world.track).inclusion
    Submission.objects.filter(pk=followed_up.first.pk).update(status="withdrawn")
    keep_answered(followed_up.world.track)
    after = read(followed_up.world.track).inclusion
    np.testing.assert_array_equal(pi_of(after.chances), pi_of(before.chances))
    np.testing.assert_array_equal(after.cluster, before.cluster)


def test_the_figures_are_what_the_estimators_give(followed_up: FollowedUp) -> None:
    followed_up.follow_up()
    followed_up.add_late()
    world, beta = followed_up.world, READ / DOCUMENTS
    data = read(world.track)
    evaluation = evaluate(world.track)
    old, new = followed_up.targets(early), followed_up.targets(late) - followed_up.targets(early)
    place = {one.pk: at for at, one in enumerate(world.documents)}  # the five are the first
    u = dict(Target.objects.values_list("pk", "u"))
    rows = [one for one in world.instances if one.target_id in old | new]
    rows = [
        one for one in rows if u[one.target_id] < PI or (one.target_id in old & followed_up.inside)
    ]
    code = {target: at for at, target in enumerate(sorted({one.target_id for one in rows}))}
    target = np.array([code[one.target_id] for one in rows])
    f = np.array([float(world.truth[one.pk]) for one in rows])
    pi = np.array([PI if one.target_id in new else 1 - (1 - PI) * (1 - beta) for one in rows])
    cluster = np.array(
        [
            place[one.document_id] if one.target_id in old & followed_up.inside else -1
            for one in rows
        ]
    )
    first = np.zeros((2, len(code)))
    first[:, target] = pi, cluster
    design = Design(first[0], cluster=first[1].astype(int), beta=beta, n_clusters=READ)
    g = dict(zip(data.pool.instance.tolist(), data.g["relation"].tolist(), strict=True))
    guess = np.array([g[one.pk] for one in rows])
    systems = {"first": early, "late": late}
    mine = {
        name: [one for one in world.instances if predicts(one)]
        for name, predicts in systems.items()
    }
    for name, predicts in systems.items():
        p = np.array([predicts(one) / len(mine[name]) for one in rows])
        total = sum(g[one.pk] for one in mine[name]) / len(mine[name])
        found = horvitz_thompson.centred(p, pi, f, guess, total, target=target, design=design)
        printed = evaluation.estimates.get(
            submission__name=name,
            quantity="precision",
            criterion="relation",
            method="centred",
            slice="",
        )
        assert printed.value == pytest.approx(float(found.value))
        assert printed.variance >= float(found.variance) * (1 - 1e-9)
        arranged = Centred(data).precision("instance", "relation")
        at = data.systems.index(printed.submission_id)
        assert np.asarray(arranged.variance)[at] == pytest.approx(float(found.variance))
    predicted = [one for one in world.instances if early(one) or late(one)]
    members = np.array([[early(one), late(one)] for one in rows], dtype=float)
    missed = np.zeros(READ, dtype=int)
    for one in world.instances:
        if one not in predicted and one.document_id in [row.pk for row in followed_up.documents]:
            missed[place[one.document_id]] += world.truth[one.pk] and marked(one)
    recall = totals.recall(
        members,
        pi,
        f,
        guess,
        [sum(g[one.pk] for one in some) for some in mine.values()],
        sum(g[one.pk] for one in predicted),
        missed,
        DOCUMENTS,
        target=target,
        document=cluster,
    )
    inside = [one for one in world.instances if early(one) and one.target_id in followed_up.inside]
    share = found_share(
        [float(world.truth[one.pk]) for one in inside],
        [world.truth[one.pk] and marked(one) for one in inside],
        np.ones(len(inside)),
        np.ones(len(inside)),
        [place[one.document_id] for one in inside],
        recall.design,
    )
    corrected = with_misses(recall, share).recall
    told = evaluation.settings["misses"]
    assert told["share"] == pytest.approx(float(share.value)) and told["n"] > 20
    for at, name in enumerate(systems):
        for quantity, expected in (("recall", recall.recall), ("recall_corrected", corrected)):
            printed = evaluation.estimates.get(
                submission__name=name,
                quantity=quantity,
                criterion="relation",
                method="centred",
                slice="",
            )
            assert printed.value == pytest.approx(float(np.asarray(expected.value)[at]))
            assert printed.variance >= float(np.asarray(expected.variance)[at]) * (1 - 1e-9)
    assert 0 < told["low80"] < told["share"] < told["high80"] < 1
    assert list(slice_scores(world.track, data))


@pytest.mark.soak
def test_a_document_that_is_read_later_ends_it_until_the_next_follow_up(
    followed_up: FollowedUp,
) -> None:
    followed_up.follow_up()
    followed_up.add_late()
    assert read(followed_up.world.track).inclusion.n_clusters == READ
    newer = followed_up.world.documents[READ : READ + 2]
    followed_up.read_whole(newer)
    data = read(followed_up.world.track)
    assert data.inclusion.n_clusters == 0 and data.followed_up is None
    assert set(pi_of(data.inclusion.chances).round(9)) == {PI}
    state = state_of(followed_up.world.track)
    plan = follow_up.plan_follow_up(followed_up.world.track)
    docs = {one.pk for one in newer}
    everything = followed_up.targets(lambda one: early(one) or late(one))
    left = everything & {
        one.target_id for one in followed_up.world.instances if one.document_id in docs
    }
    left |= followed_up.inside & (followed_up.targets(late) - followed_up.targets(early))
    answered = dict.fromkeys(plan.submissions, left)
    assert set(plan.targets) == set().union(
        *kind_of(followed_up.world.track).unanswered(answered).values()
    )
    followed_up.follow_up()
    assert state_of(followed_up.world.track) != state
    data = read(followed_up.world.track)
    beta = (READ + 2) / DOCUMENTS
    assert data.inclusion.n_clusters == READ + 2
    np.testing.assert_allclose(
        pi_of(data.inclusion.chances), 1 - (1 - PI) * (1 - beta)
    )  # the late one's too


@pytest.mark.soak
def test_an_open_follow_up_counts_for_nothing_and_one_that_is_covered_stays_in_force(
    followed_up: FollowedUp,
) -> None:
    row = follow_up.order_follow_up(followed_up.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    followed_up.answer(row, but=asked[:3])
    follow_up.tick()
    data = read(followed_up.world.track)
    assert data.inclusion.n_clusters == 0
    drawn = set(Target.objects.filter(u__lt=PI).values_list("pk", flat=True))
    assert {
        one for one, counts in of_targets(data, data.inclusion.counts).items() if counts
    } <= drawn
    followed_up.answer(row)
    for question in followed_up.world.track.questions.all():
        question.move("settled")
    follow_up.tick()
    assert read(followed_up.world.track).inclusion.n_clusters == READ
    followed_up.add_late()
    second = follow_up.order_follow_up(followed_up.world.track, MOST)
    assert read(followed_up.world.track).inclusion.n_clusters == READ, (
        "the first one holds while the second is judged"
    )
    followed_up.answer(second)
    follow_up.tick()
    assert set(read(followed_up.world.track).inclusion.cluster >= 0) == {True, False}
    np.testing.assert_allclose(
        read(followed_up.world.track).inclusion.chances.document, READ / DOCUMENTS
    )


@pytest.mark.parametrize("closed", [False, True])
def test_one_document_brings_nothing_in(toy: Toy, closed: bool) -> None:
    """One cluster has no variance: every interval would be from 0 to 100."""
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    world.read_in_full(world.documents[:1], marked, closed=closed)
    settle_documents(world.track, [world.documents[0].pk])
    inclusion = read(world.track).inclusion
    assert inclusion.n_clusters == 0 and (inclusion.chances.document == 0).all()
    with pytest.raises(
        follow_up.CannotOrder,
        match="false, as" if closed else "takes 2 documents that count as read; 1",
    ):
        follow_up.plan_follow_up(world.track)


@pytest.mark.parametrize("status", ["draft", "closed"])
def test_a_track_that_is_not_open_asks_nothing(followed_up: FollowedUp, status: str) -> None:
    Track.objects.filter(pk=followed_up.world.track.pk).update(status=status)
    followed_up.world.track.refresh_from_db()
    with pytest.raises(follow_up.CannotOrder, match=f"is {status}: nothing is asked on it"):
        follow_up.order_follow_up(followed_up.world.track, MOST)


@pytest.mark.soak
def test_where_documents_have_unequal_chances_a_follow_up_tells_only_what_readers_miss(
    toy: Toy,
) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    order_documents(world.track, 6, "two_stage", seed=2)
    texts = {one.pk: one for one in world.documents}
    for _ in range(2):
        waiting = waiting_documents(world.track)
        world.read_in_full([texts[pk] for pk in waiting], marked)
        settle_documents(world.track, waiting)
        draw_second_stage(world.track, seed=3)
    row = follow_up.order_follow_up(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    follow_up.tick()
    data = read(world.track)
    assert data.documents.inclusion is not None and data.inclusion.n_clusters == 0
    np.testing.assert_allclose(pi_of(data.inclusion.chances), PI)
    weight = dict(
        zip(data.documents.documents, (1 / data.documents.inclusion).tolist(), strict=True)
    )
    true = [
        one
        for one in world.instances
        if early(one) and one.document_id in weight and world.truth[one.pk]
    ]
    share = sum(weight[one.document_id] for one in true if marked(one)) / sum(
        weight[one.document_id] for one in true
    )
    evaluation = evaluate(world.track)
    assert evaluation.settings["misses"]["share"] == pytest.approx(share)
    plain, corrected = (
        evaluation.estimates.get(
            quantity=name, criterion="relation", method="centred", slice=""
        ).value
        for name in ("recall", "recall_corrected")
    )
    assert corrected < plain


def test_experts_check_what_was_drawn(followed_up: FollowedUp) -> None:
    """What counts by its document alone could not have been checked by a round before that."""
    before = frame_of(followed_up.world.track, read(followed_up.world.track))
    followed_up.follow_up()
    after = frame_of(followed_up.world.track, read(followed_up.world.track))
    assert after.target_id.tolist() == before.target_id.tolist()
    np.testing.assert_allclose(after.inclusion, PI)
    np.testing.assert_allclose(after.a, before.a)


def test_closed_annotation_leaves_nothing_to_ask(toy: Toy) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    world.read_in_full(world.documents[:READ], lambda one: True, closed=True)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    with pytest.raises(
        follow_up.CannotOrder, match="What is not marked in these documents is false"
    ):
        follow_up.plan_follow_up(world.track)
