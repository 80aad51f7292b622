"""What people give up, before and after documents are read and followed up, and what marks count
for then.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from django.utils import timezone

from annotation.questions import follow_up
from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate
from kbpo.inclusion.follow_ups import FollowUps
from kbpo.inclusion.marks import in_documents
from kbpo.instances.models import Target
from kbpo.instances.record import NewLabel, record
from kbpo.pool.pool import read_pool
from kbpo.sampling.documents.draw import settle_documents
from scoring.default import Centred
from scoring.documents import NEVER, NO_MARK
from tests.conftest import Toy
from tests.evaluation.followed_up import DOCUMENTS, MOST, PI, READ, FollowedUp, early, late, marked
from tests.evaluation.world import World

pytestmark = pytest.mark.django_db


def give_up(followed_up: FollowedUp, every: int) -> list[int]:
    """A follow-up of which each so many-th question is given up: their targets."""
    row = follow_up.order_follow_up(followed_up.world.track, MOST)
    lost = sorted(row.targets.values_list("target", flat=True))[::every]
    followed_up.answer(row, but=lost)
    unanswered(lost)
    follow_up.tick()
    return lost


def unanswered(targets: Iterable[int]) -> None:
    record(NewLabel(pk, {}, "crowd", "nonresponse", 0, "question:x/nonresponse") for pk in targets)


def test_a_follow_up_of_which_little_was_answered_brings_nothing_in(
    followed_up: FollowedUp,
) -> None:
    row = follow_up.order_follow_up(followed_up.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    lost = asked[: len(asked) * 2 // 3]
    followed_up.answer(row, but=lost)
    unanswered(lost)
    follow_up.tick()
    inclusion = read(followed_up.world.track).inclusion
    assert inclusion.n_clusters == 0
    np.testing.assert_allclose(inclusion.chances.threshold, PI)


def test_what_is_given_up_in_a_swept_document_is_missing_and_the_rest_stands_for_it(
    followed_up: FollowedUp,
) -> None:
    give_up(followed_up, 4)
    data = read(followed_up.world.track)
    arranged = Centred(data)
    inside = arranged.answered_inside[0]
    assert 0.7 < inside < 1 and set(arranged.answered) == {1.0}
    beta = READ / DOCUMENTS
    share = arranged.answered_inside[data.pool.target]
    np.testing.assert_allclose(arranged.pi, 1 - (1 - PI) * (1 - beta * share))
    np.testing.assert_allclose(
        arranged.given_document[data.pool.target], 1 - (1 - PI) * (1 - share)
    )
    known = ~np.isnan(arranged.verdicts[:, 0])
    alone = arranged._row_mark >= 0
    assert alone.any() and 0 < known[alone].mean() < 1, (
        "marks count as often as questions were answered"
    )
    for estimate, design in (
        (Centred(data).precision("instance", "relation"), Centred(data).design),
        (Centred(data).recall("relation").recall, Centred(data).recall("relation").design),
    ):
        assert (
            np.isfinite(estimate.value).all()
            and np.isfinite(np.asarray(design.variance(estimate.influence))).all()
        )


@pytest.mark.soak
def test_a_follow_up_that_was_stopped_brings_nothing_in_until_another_asked_what_it_left(
    followed_up: FollowedUp,
) -> None:
    row = follow_up.order_follow_up(followed_up.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    row.stopped_at = (
        timezone.now()
    )  # as stopping its questions does, which leaves them without a label
    row.save()
    followed_up.answer(row, but=asked[::3])
    follow_up.tick()
    data = read(followed_up.world.track)
    assert data.in_documents is not None and not data.in_documents.covered.any()
    assert data.inclusion.n_clusters == 0
    np.testing.assert_allclose(data.inclusion.chances.threshold, PI)
    second = follow_up.order_follow_up(followed_up.world.track, MOST)
    assert sorted(second.targets.values_list("target", flat=True)) == asked[::3]
    followed_up.answer(second, but=asked[::6])
    unanswered(asked[::6])
    follow_up.tick()
    data = read(followed_up.world.track)
    assert data.inclusion.n_clusters == READ and data.in_documents is not None
    assert sorted(data.pool.target_id[data.in_documents.asked].tolist()) == asked, (
        "by the one or by the other"
    )
    q = set(Centred(data).answered_inside.tolist())
    assert data.fold.answered == pytest.approx(1 - len(asked[::6]) / len(asked))
    assert 0.7 < min(q) <= max(q) < 1


@pytest.mark.soak
def test_what_is_drawn_after_a_follow_up_is_known_there_as_often_as_that_was_answered(
    followed_up: FollowedUp,
) -> None:
    """There it is not asked again: that it was drawn makes nothing known, and no mark certain."""
    lost = give_up(followed_up, 3)
    higher = 0.8
    followed_up.world.sample(followed_up.first, higher)
    followed_up.world.answer(
        [one for one in Target.objects.filter(u__lt=higher, kind="pair") if not one.labels.exists()]
    )
    data = read(followed_up.world.track)
    arranged, beta = Centred(data), READ / DOCUMENTS
    q = arranged.answered_inside
    assert q.max() < 0.8 and set(arranged.answered) == {1.0}
    np.testing.assert_allclose(data.inclusion.chances.before, PI)
    inside = PI + (1 - PI) * q
    np.testing.assert_allclose(arranged.pi, ((1 - beta) * higher + beta * inside)[data.pool.target])
    assert data.in_documents is not None
    drawn = data.in_documents.spared[data.pool.target[arranged.row]] & (arranged._row_cluster >= 0)
    drawn &= data.pool.u[data.pool.target[arranged.row]] < higher
    known = ~np.isnan(arranged.verdicts[drawn, 0])
    assert 0 < known.mean() < 1, "of the marked as many as of the others"
    alone = Centred(data.drawn_alone())  # the probabilities given which documents were read
    covered = data.in_documents.covered
    expected = np.where(covered, PI + (higher - PI) * alone.answered_inside, higher)
    np.testing.assert_allclose(alone.pi, expected[data.pool.target])
    assert set(lost) & set(data.pool.target_id[data.in_documents.asked].tolist()) == set(lost)


@pytest.mark.soak
def test_what_was_drawn_before_is_told_for_each_follow_up_and_who_was_there_then(
    followed_up: FollowedUp,
) -> None:
    followed_up.follow_up()
    higher = 0.6
    followed_up.world.answer(
        [
            one
            for one in followed_up.world.sample(followed_up.first, higher)
            if not one.labels.exists()
        ]
    )
    newer = followed_up.world.documents[READ : READ + 3]
    followed_up.read_whole(newer)
    row = followed_up.add_late()
    followed_up.follow_up()
    pool = read_pool(followed_up.world.track, [followed_up.first.pk, row.pk])
    before = dict(
        zip(
            pool.target_id.tolist(),
            FollowUps(followed_up.world.track, pool).labelled_before().tolist(),
            strict=True,
        )
    )
    first, second = (
        followed_up.targets(early),
        followed_up.targets(late) - followed_up.targets(early),
    )
    both = (READ * PI + 3 * higher) / (READ + 3)
    assert {round(before[one], 9) for one in first} == {round(both, 9)}
    assert {round(before[one], 9) for one in second} == {round(PI, 9)}, (
        "none was asked by the first follow-up"
    )


@pytest.mark.soak
def test_what_readers_find_is_told_from_marks_and_from_what_stands_for_the_given_up(
    followed_up: FollowedUp,
) -> None:
    """What was marked is known for certain, also where it had been drawn; only the unmarked have
    others stand for.
    """
    lost = set(give_up(followed_up, 3))
    world, inside = followed_up.world, {one.pk for one in followed_up.documents}
    mine = [one for one in world.instances if early(one) and one.document_id in inside]
    found = [one for one in mine if marked(one) and world.truth[one.pk]]
    rest = [one for one in mine if one not in found]
    asked = [one for one in rest if one.target_id not in lost]
    assert any(one.target.u < PI for one in found) and len(asked) < len(rest)
    missed = sum(world.truth[one.pk] for one in asked) * len(rest) / len(asked)
    share = evaluate(world.track).settings["misses"]["share"]
    assert share == pytest.approx(len(found) / (len(found) + missed))


def test_what_lies_outside_the_scope_is_covered_by_no_follow_up(followed_up: FollowedUp) -> None:
    """There a sample asks, as anywhere else."""
    followed_up.world.track.scope = "sentence"
    followed_up.world.track.save()
    give_up(followed_up, 3)
    data = read(followed_up.world.track)
    assert data.in_documents is not None and data.facts is not None
    outside = ~data.facts.in_scope & (data.facts.inside >= 0)
    inside = data.facts.in_scope & (data.facts.inside >= 0)
    assert outside.any() and inside.any()
    covered = data.in_documents.covered[data.pool.target]
    assert covered[inside].all() and not covered[~inside].any()
    np.testing.assert_allclose(Centred(data).pi[outside], PI)


@pytest.mark.soak
def test_a_mark_says_nothing_of_what_was_asked_in_vain_and_no_more_than_an_answer_of_the_rest(
    toy: Toy,
) -> None:
    """Without any follow-up: where questions are given up, what readers mark would be known too
    often.
    """
    world = World(toy, n_documents=DOCUMENTS)
    row = world.system("first", early)
    asked = world.sample(row, PI)
    lost = [one.pk for one in asked[::3]]
    world.answer([one for one in asked if one.pk not in lost])
    unanswered(lost)
    world.read_in_full(world.documents[:READ], marked)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    later = [one for one in world.sample(row, 0.8) if not one.labels.exists()]
    unanswered(one.pk for one in later[::3])
    world.answer([one for at, one in enumerate(later) if at % 3])
    data = read(world.track)
    told, arranged = (
        in_documents(
            world.track,
            data.pool,
            np.ones(data.pool.target_id.size, dtype=bool),
            FollowUps(world.track, data.pool),
        ),
        Centred(data),
    )
    by_target = dict(zip(data.pool.target_id.tolist(), told.mark.tolist(), strict=True))
    judged = {one.pk for one in asked if one.pk not in lost}
    has_mark = {
        one.target_id
        for one in world.instances
        if one.document_id in _pks(world) and marked(one) and world.truth[one.pk]
    }
    assert {by_target[pk] for pk in judged} == {NO_MARK}
    assert {by_target[pk] for pk in lost if pk in has_mark} == {NEVER}
    assert {by_target[pk] for pk in lost if pk not in has_mark} == {NO_MARK}
    alone = [pk for pk, mark in by_target.items() if 0 <= mark < 1]
    assert set(alone) == {
        pk for pk in has_mark & set(by_target) if pk not in judged and pk not in lost
    }
    share = arranged.answered[0]
    assert 0.5 < share < 0.8
    known = dict(
        zip(
            data.pool.target_id[data.pool.target[arranged.row]].tolist(),
            ~np.isnan(arranged.verdicts[:, 0]),
            strict=True,
        )
    )
    assert not any(known[pk] for pk in lost)
    answered = dict(zip(data.pool.target_id.tolist(), arranged.answered.tolist(), strict=True))
    assert {pk: known[pk] for pk in alone if pk in known} == {
        pk: by_target[pk] < answered[pk] for pk in alone if pk in known
    }
    np.testing.assert_allclose(arranged.pi, 0.8 * arranged.answered[data.pool.target])
    drawn = [
        one
        for one in world.instances
        if early(one)
        and one.document_id in _pks(world)
        and world.truth[one.pk]
        and known.get(one.target_id)
    ]
    weight = {one.pk: 1 / answered[one.target_id] for one in drawn}
    share = sum(weight[one.pk] for one in drawn if marked(one)) / sum(weight.values())
    assert evaluate(world.track).settings["misses"]["share"] == pytest.approx(share)


def test_closed_annotation_has_no_marks_that_say_more(toy: Toy) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    world.read_in_full(world.documents[:READ], lambda one: True, closed=True)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    data = read(world.track)
    assert data.in_documents is not None
    assert not data.in_documents.marked.any() and set(data.in_documents.mark) == {NO_MARK}
    assert not np.isnan(Centred(data).verdicts).any()


def _pks(world: World) -> set[int]:
    return {one.pk for one in world.documents[:READ]}
