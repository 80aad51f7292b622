"""Documents that were swept: what nobody marked in them was asked, and their judgments count as a second way in."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from annotation import sweep
from estimators import horvitz_thompson
from estimators import recall as totals
from estimators.design import Design
from estimators.misses import found_share, with_misses
from kbpo.corpus.models import Document
from kbpo.evaluation.centred import Centred
from kbpo.evaluation.corrected import frame_of
from kbpo.evaluation.data import Data, read
from kbpo.evaluation.estimate import evaluate, state_of
from kbpo.evaluation.slices import slice_scores
from kbpo.instances.models import Instance, Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.documents import order_documents, settle_documents, waiting_documents
from kbpo.sampling.models import Sweep
from kbpo.sampling.pool import read_pool
from kbpo.sampling.second_stage import draw_second_stage
from kbpo.sampling.seen import seen
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from tests.conftest import Toy
from tests.evaluation.world import World

pytestmark = pytest.mark.django_db
PI, DOCUMENTS, READ = 0.4, 12, 5
MOST = Decimal(10_000)


def marked(one: Instance) -> bool:
    """What readers mark of what is true."""
    return one.pk % 3 != 0


def early(one: Instance) -> bool:
    """What the first system states."""
    return one.pk % 5 != 0


def late(one: Instance) -> bool:
    """What the late system states: some of it nobody had stated."""
    return one.pk % 5 in (0, 1)


class Swept:
    """Twelve documents of which five are read and swept; one system before, one after."""

    def __init__(self, toy: Toy) -> None:
        self.world = World(toy, n_documents=DOCUMENTS)
        self.first = self.world.system("first", early)
        self.world.answer(self.world.sample(self.first, PI))
        self.documents = self.world.documents[:READ]
        self.read_whole(self.documents)

    def read_whole(self, documents: list[Document]) -> None:
        self.world.read_in_full(documents, marked)
        settle_documents(self.world.track, [one.pk for one in documents])

    def sweep(self) -> Sweep:
        """An order, everything that it asks about answered."""
        row = sweep.order_sweep(self.world.track, MOST)
        self.answer(row)
        sweep.tick()
        row.refresh_from_db()
        assert row.settled_at is not None and row.closed_at is not None
        return row

    def answer(self, row: Sweep, *, but: Iterable[int] = ()) -> None:
        asked = set(row.targets.values_list("target", flat=True)) - set(but)
        self.world.answer(list(Target.objects.filter(pk__in=asked)))

    def add_late(self) -> Submission:
        row = self.world.system("late", late, team="Neural")
        self.world.answer(self.world.sample(row, PI))
        return row

    def targets(self, states: Any) -> set[int]:
        return {one.target_id for one in self.world.instances if states(one)}

    @property
    def inside(self) -> set[int]:
        read = {one.pk for one in self.documents}
        return {one.target_id for one in self.world.instances if one.document_id in read}


@pytest.fixture
def swept(toy: Toy) -> Swept:
    return Swept(toy)


def of_targets(data: Data, values: np.ndarray) -> dict[int, Any]:
    return dict(zip(data.pool.target_id.tolist(), np.asarray(values).tolist(), strict=True))


def test_what_was_stated_has_two_ways_in_and_what_came_later_one(swept: Swept) -> None:
    before = read(swept.world.track).inclusion
    assert before.n_clusters == 0 and (before.beta == 0).all()
    swept.sweep()
    swept.add_late()
    data = read(swept.world.track)
    now, beta = data.inclusion, READ / DOCUMENTS
    pi, cluster, counts = (of_targets(data, one) for one in (now.pi, now.cluster, now.counts))
    old, new = swept.targets(early), swept.targets(late) - swept.targets(early)
    assert new & swept.inside and new - swept.inside
    for target in old:
        assert pi[target] == pytest.approx(1 - (1 - PI) * (1 - beta)), "inside or outside of what was read"
        assert (cluster[target] >= 0) == (target in swept.inside)
        assert counts[target] or target not in swept.inside
    for target in new:
        assert pi[target] == pytest.approx(PI) and cluster[target] == -1
    assert {target for target in new & swept.inside if not counts[target]}, "marked or not, it was not drawn"


def test_what_a_withdrawn_submission_stated_stays_eligible(swept: Swept) -> None:
    """Else a team could choose by what it saw which targets have two ways in."""
    swept.sweep()
    swept.add_late()
    before = read(swept.world.track).inclusion
    Submission.objects.filter(pk=swept.first.pk).update(status="withdrawn")
    after = read(swept.world.track).inclusion
    np.testing.assert_array_equal(after.pi, before.pi)
    np.testing.assert_array_equal(after.cluster, before.cluster)


def test_the_figures_are_what_the_estimators_give(swept: Swept) -> None:
    swept.sweep()
    swept.add_late()
    world, beta = swept.world, READ / DOCUMENTS
    data = read(world.track)
    evaluation = evaluate(world.track)
    old, new = swept.targets(early), swept.targets(late) - swept.targets(early)
    place = {one.pk: at for at, one in enumerate(world.documents)}  # the five are the first
    u = dict(Target.objects.values_list("pk", "u"))
    rows = [one for one in world.instances if one.target_id in old | new]
    rows = [one for one in rows if u[one.target_id] < PI or (one.target_id in old & swept.inside)]
    code = {target: at for at, target in enumerate(sorted({one.target_id for one in rows}))}
    target = np.array([code[one.target_id] for one in rows])
    f = np.array([float(world.truth[one.pk]) for one in rows])
    pi = np.array([PI if one.target_id in new else 1 - (1 - PI) * (1 - beta) for one in rows])
    cluster = np.array([place[one.document_id] if one.target_id in old & swept.inside else -1 for one in rows])
    first = np.zeros((2, len(code)))
    first[:, target] = pi, cluster
    design = Design(first[0], cluster=first[1].astype(int), beta=beta, n_clusters=READ)
    g = dict(zip(data.pool.instance.tolist(), data.g["relation"].tolist(), strict=True))
    guess = np.array([g[one.pk] for one in rows])
    systems = {"first": early, "late": late}
    mine = {name: [one for one in world.instances if states(one)] for name, states in systems.items()}
    for name, states in systems.items():
        p = np.array([states(one) / len(mine[name]) for one in rows])
        total = sum(g[one.pk] for one in mine[name]) / len(mine[name])
        found = horvitz_thompson.centred(p, pi, f, guess, total, target=target, design=design)
        printed = evaluation.estimates.get(
            submission__name=name, quantity="precision", criterion="relation", method="centred", slice=""
        )
        assert printed.value == pytest.approx(float(found.value))
        assert printed.variance >= float(found.variance) * (1 - 1e-9)
        arranged = Centred(data).precision("instance", "relation")
        at = data.systems.index(printed.submission_id)
        assert np.asarray(arranged.variance)[at] == pytest.approx(float(found.variance))
    stated = [one for one in world.instances if early(one) or late(one)]
    members = np.array([[early(one), late(one)] for one in rows], dtype=float)
    missed = np.zeros(READ, dtype=int)
    for one in world.instances:
        if one not in stated and one.document_id in [row.pk for row in swept.documents]:
            missed[place[one.document_id]] += world.truth[one.pk] and marked(one)
    recall = totals.recall(
        members, pi, f, guess, [sum(g[one.pk] for one in some) for some in mine.values()],
        sum(g[one.pk] for one in stated), missed, DOCUMENTS, target=target, document=cluster,
    )  # fmt: skip
    inside = [one for one in world.instances if early(one) and one.target_id in swept.inside]
    share = found_share(
        [float(world.truth[one.pk]) for one in inside], [world.truth[one.pk] and marked(one) for one in inside],
        np.ones(len(inside)), np.ones(len(inside)), [place[one.document_id] for one in inside], recall.design,
    )  # fmt: skip
    corrected = with_misses(recall, share).recall
    told = evaluation.settings["misses"]
    assert told["share"] == pytest.approx(float(share.value)) and told["n"] > 20
    for at, name in enumerate(systems):
        for quantity, expected in (("recall", recall.recall), ("recall_corrected", corrected)):
            printed = evaluation.estimates.get(
                submission__name=name, quantity=quantity, criterion="relation", method="centred", slice=""
            )
            assert printed.value == pytest.approx(float(np.asarray(expected.value)[at]))
            assert printed.variance >= float(np.asarray(expected.variance)[at]) * (1 - 1e-9)
    assert 0 < told["low80"] < told["share"] < told["high80"] < 1
    assert list(slice_scores(world.track, data))


def test_a_document_that_is_read_later_ends_it_until_the_next_sweep(swept: Swept) -> None:
    swept.sweep()
    swept.add_late()
    assert read(swept.world.track).inclusion.n_clusters == READ
    newer = swept.world.documents[READ : READ + 2]
    swept.read_whole(newer)
    data = read(swept.world.track)
    assert data.inclusion.n_clusters == 0 and data.swept is None
    assert set(data.inclusion.pi.round(9)) == {PI}
    state = state_of(swept.world.track)
    plan = sweep.plan_sweep(swept.world.track)
    docs = {one.pk for one in newer}
    everything = swept.targets(lambda one: early(one) or late(one))
    left = everything & {one.target_id for one in swept.world.instances if one.document_id in docs}
    left |= swept.inside & (swept.targets(late) - swept.targets(early))
    answered = dict.fromkeys(plan.submissions, left)
    assert set(plan.targets) == set().union(*kind_of(swept.world.track).unanswered(answered).values())
    swept.sweep()
    assert state_of(swept.world.track) != state
    data = read(swept.world.track)
    beta = (READ + 2) / DOCUMENTS
    assert data.inclusion.n_clusters == READ + 2
    np.testing.assert_allclose(data.inclusion.pi, 1 - (1 - PI) * (1 - beta))  # the late one's too


def test_an_open_sweep_counts_for_nothing_and_one_that_is_covered_stays_in_force(swept: Swept) -> None:
    row = sweep.order_sweep(swept.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    swept.answer(row, but=asked[:3])
    sweep.tick()
    data = read(swept.world.track)
    assert data.inclusion.n_clusters == 0
    drawn = set(Target.objects.filter(u__lt=PI).values_list("pk", flat=True))
    assert {one for one, counts in of_targets(data, data.inclusion.counts).items() if counts} <= drawn
    swept.answer(row)
    for question in swept.world.track.questions.all():
        question.move("settled")
    sweep.tick()
    assert read(swept.world.track).inclusion.n_clusters == READ
    swept.add_late()
    second = sweep.order_sweep(swept.world.track, MOST)
    assert read(swept.world.track).inclusion.n_clusters == READ, "the first one holds while the second is judged"
    swept.answer(second)
    sweep.tick()
    assert set(read(swept.world.track).inclusion.cluster >= 0) == {True, False}
    np.testing.assert_allclose(read(swept.world.track).inclusion.beta, READ / DOCUMENTS)


def test_documents_that_a_team_could_know_count_for_themselves(swept: Swept) -> None:
    """Its second run knows which documents were read: in them what it states is known, elsewhere it must be drawn."""
    swept.sweep()
    world = swept.world
    again = world.system("again", lambda one: early(one) or late(one))
    asked = world.sample(again, 0.7)
    world.answer(asked)
    other = world.system("other", lambda one: early(one) or late(one), team="Neural")
    data = read(world.track)
    at, there = (data.systems.index(row.pk) for row in (again, other))
    assert at in data.seen and there not in data.seen
    exact, own = (of_targets(data, one) for one in (data.seen[at].exact, data.seen[at].own(data.own[at])))
    u = dict(Target.objects.values_list("pk", "u"))
    old, new = swept.targets(early), swept.targets(late) - swept.targets(early)
    for target in old:
        assert exact[target] == (target in swept.inside or u[target] < PI)
        if not exact[target]:
            assert own[target] == pytest.approx((0.7 - PI) / (1 - PI)), "no document brings it in"
    for target in new:
        assert own[target] == pytest.approx(0.7) and not exact[target]
    pi = of_targets(data, data.inclusion.pi)
    assert {round(pi[target], 9) for target in old} == {round(1 - (1 - PI) * (1 - READ / DOCUMENTS), 9)}
    # documents read since then are chance for it as well
    swept.read_whole(world.documents[READ : READ + 3])
    swept.sweep()
    data = read(world.track)
    own = of_targets(data, data.seen[at].own(data.own[at]))
    later = 3 / (DOCUMENTS - READ)
    for target in new - swept.inside:
        assert own[target] == pytest.approx(1 - 0.3 * (1 - later)), "for itself it was swept"
    only = new - swept.targets(lambda one: False)
    pi = of_targets(data, data.inclusion.pi)
    beta = (READ + 3) / DOCUMENTS
    for target in only:  # the other team stated it too before the second sweep
        assert pi[target] == pytest.approx(1 - 0.3 * (1 - beta))


def test_what_only_a_team_that_knew_the_documents_states_has_no_second_way_in(swept: Swept) -> None:
    swept.sweep()
    again = swept.world.system("again", lambda one: early(one) or late(one))
    swept.world.answer(swept.world.sample(again, 0.7))
    swept.sweep()
    data = read(swept.world.track)
    at = data.systems.index(again.pk)
    common, own = (of_targets(data, one.beta) for one in (data.inclusion, data.own[at]))
    for target in swept.targets(late) - swept.targets(early):
        assert common[target] == own[target] == 0, "its variance would have no clusters"


@pytest.mark.parametrize("knows", [False, True], ids=["another team", "a team that knew the documents"])
def test_another_relation_that_is_said_of_a_pair_later_takes_the_pair_out(swept: Swept, knows: bool) -> None:
    """Nobody was asked about it where readers had marked the first: it would be known just where that is not true."""
    swept.sweep()
    before = of_targets(swept_data := read(swept.world.track), swept_data.inclusion.beta)
    said = {one.pk for one in swept.world.also_said([one for one in swept.world.instances if early(one)][::4])}
    row = swept.world.system("late", lambda one: one.pk in said, team="Patterns" if knows else "Neural")
    swept.world.answer(swept.world.sample(row, PI))
    data = read(swept.world.track)
    after, cluster = of_targets(data, data.inclusion.beta), of_targets(data, data.inclusion.cluster)
    pairs = swept.targets(lambda one: one.pk in said)
    assert all(before[target] > 0 for target in pairs)
    if knows:
        assert after == before, "what may depend on the documents decides nothing"
    else:
        assert all(after[target] == 0 and cluster[target] == -1 for target in pairs)
        assert all(after[target] == value for target, value in before.items() if target not in pairs)


def test_a_plan_tells_of_documents_so_who_had_one_knew_them(swept: Swept) -> None:
    swept.sweep()
    stranger = swept.world.system("one", late, team="Neural")
    draft = Submission.objects.get(pk=swept.world.system("two", late, team="Neural").pk)
    Submission.objects.filter(pk=draft.pk).update(sampled_at=None, confirmed_at=None, status="planned")
    data = read(swept.world.track)
    assert data.systems.index(stranger.pk) not in data.seen_drawn, "what it uploaded besides was not read by then"
    Submission.objects.filter(pk=draft.pk).update(read_at=stranger.confirmed_at)
    data = read(swept.world.track)
    assert data.seen_drawn[data.systems.index(stranger.pk)].beta == pytest.approx(READ / DOCUMENTS)


@pytest.mark.parametrize("closed", [False, True])
def test_one_document_brings_nothing_in(toy: Toy, closed: bool) -> None:
    """One cluster has no variance: every interval would be from 0 to 100."""
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    world.read_in_full(world.documents[:1], marked, closed=closed)
    settle_documents(world.track, [world.documents[0].pk])
    inclusion = read(world.track).inclusion
    assert inclusion.n_clusters == 0 and (inclusion.beta == 0).all()
    with pytest.raises(sweep.CannotOrder, match="false, as" if closed else "takes 2 documents that count as read; 1"):
        sweep.plan_sweep(world.track)


def test_a_sweep_of_which_little_was_answered_brings_nothing_in(swept: Swept) -> None:
    row = sweep.order_sweep(swept.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    lost = asked[: len(asked) * 2 // 3]
    swept.answer(row, but=lost)
    record(NewLabel(pk, {}, "crowd", "given_up", 0, "question:x/given_up") for pk in lost)
    sweep.tick()
    inclusion = read(swept.world.track).inclusion
    assert inclusion.n_clusters == 0
    np.testing.assert_allclose(inclusion.pi, PI)


@pytest.mark.parametrize("status", ["draft", "closed"])
def test_a_track_that_is_not_open_asks_nothing(swept: Swept, status: str) -> None:
    Track.objects.filter(pk=swept.world.track.pk).update(status=status)
    swept.world.track.refresh_from_db()
    with pytest.raises(sweep.CannotOrder, match=f"is {status}: nothing is asked on it"):
        sweep.order_sweep(swept.world.track, MOST)


def test_what_others_state_later_changes_nothing_of_what_was_known(toy: Toy) -> None:
    """A document all of which was marked is judged; it stays so when somebody states more in it. Else what was asked
    for nobody would have no probability, and the interval no end."""
    world = World(toy, n_documents=4)
    mine = [one for one in world.instances if one.document_id == world.documents[0].pk and one.pk % 2]
    for one in world.instances:
        world.truth[one.pk] = one in mine
    elsewhere = [one.pk for one in world.instances if one.document_id != world.documents[0].pk and one.pk % 3]
    world.read_in_full(world.documents[:1], lambda one: True)
    states = {*(one.pk for one in mine), *elsewhere}
    world.answer(world.sample(world.system("first", lambda one: one.pk in states), PI))
    again = world.system("again", lambda one: one.pk in states)

    def known(systems: list[int]) -> dict[int, bool]:
        pool = read_pool(world.track, systems)
        found = seen(pool, again)
        assert found is not None
        exact = dict(zip(pool.target_id.tolist(), found.exact.tolist(), strict=True))
        return {one.pk: exact[one.target_id] for one in world.instances if one.pk in states}

    before = known([again.pk - 1, again.pk])
    assert all(before[one.pk] for one in mine)
    late = world.system("late", lambda one: one.pk not in states, team="Neural")
    assert known([again.pk - 1, again.pk, late.pk]) == before


def test_a_run_that_was_decided_on_before_the_documents_were_read_knows_nothing_of_them(toy: Toy) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    again = world.system("again", early)
    world.answer(world.sample(again, 0.7))
    world.read_in_full(world.documents[:READ], marked)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    row = sweep.order_sweep(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    sweep.tick()
    data = read(world.track)
    at = data.systems.index(again.pk)
    seen, own = data.seen[at], data.seen[at].own(data.own[at])
    assert seen.unjudged.any() and not seen.inside.any()
    np.testing.assert_allclose(own[seen.unjudged], 1 - (1 - (0.7 - PI) / (1 - PI)) * (1 - READ / DOCUMENTS))


def test_what_a_sweep_answered_does_not_say_how_far_a_sample_had_come(toy: Toy) -> None:
    """Half of a sample is judged; then a sweep judges documents, whatever was drawn in them."""
    world = World(toy, n_documents=DOCUMENTS)
    asked = world.sample(world.system("first", early), 0.8)
    half = [one for one in asked if one.u < 0.4]
    world.answer(half)
    inside = {one.pk for one in world.documents[:READ]}
    world.read_in_full(world.documents[:READ], marked)
    settle_documents(world.track, sorted(inside))
    row = sweep.order_sweep(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    sweep.tick()
    again = world.system("again", early)
    data = read(world.track)
    seen = data.seen_drawn[data.systems.index(again.pk)]
    outside = [[one for one in some if one.document_id not in inside] for some in (half, asked)]
    expected = 0.8 * len(outside[0]) / len(outside[1])
    assert seen.unjudged.any() and 0.3 < expected < 0.5
    np.testing.assert_allclose(seen.threshold[seen.unjudged], expected)


def test_where_documents_have_unequal_chances_a_sweep_tells_only_what_readers_miss(toy: Toy) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    order_documents(world.track, 6, "two_stage", seed=2)
    texts = {one.pk: one for one in world.documents}
    for _ in range(2):
        waiting = waiting_documents(world.track)
        world.read_in_full([texts[pk] for pk in waiting], marked)
        settle_documents(world.track, waiting)
        draw_second_stage(world.track, seed=3)
    row = sweep.order_sweep(world.track, MOST)
    world.answer(list(Target.objects.filter(pk__in=row.targets.values("target"))))
    sweep.tick()
    data = read(world.track)
    assert data.documents.inclusion is not None and data.inclusion.n_clusters == 0
    np.testing.assert_allclose(data.inclusion.pi, PI)
    weight = dict(zip(data.documents.documents, (1 / data.documents.inclusion).tolist(), strict=True))
    true = [one for one in world.instances if early(one) and one.document_id in weight and world.truth[one.pk]]
    share = sum(weight[one.document_id] for one in true if marked(one)) / sum(weight[one.document_id] for one in true)
    evaluation = evaluate(world.track)
    assert evaluation.settings["misses"]["share"] == pytest.approx(share)
    plain, corrected = (
        evaluation.estimates.get(quantity=name, criterion="relation", method="centred", slice="").value
        for name in ("recall", "recall_corrected")
    )
    assert corrected < plain


def test_what_is_given_up_in_a_swept_document_is_missing_and_the_rest_stands_for_it(swept: Swept) -> None:
    row = sweep.order_sweep(swept.world.track, MOST)
    asked = sorted(row.targets.values_list("target", flat=True))
    lost = asked[::4]
    swept.answer(row, but=lost)
    record(NewLabel(pk, {}, "crowd", "given_up", 0, "question:x/given_up") for pk in lost)
    sweep.tick()
    data = read(swept.world.track)
    arranged = Centred(data)
    inside = arranged.answered_inside[0]
    assert 0.7 < inside < 1 and set(arranged.answered) == {1.0}
    beta = READ / DOCUMENTS
    share = arranged.answered_inside[data.pool.target]
    np.testing.assert_allclose(arranged.pi, 1 - (1 - PI) * (1 - beta * share))
    np.testing.assert_allclose(arranged.given_document[data.pool.target], 1 - (1 - PI) * (1 - share))
    known = ~np.isnan(arranged.verdicts[:, 0])
    alone = arranged._row_mark >= 0
    assert alone.any() and 0 < known[alone].mean() < 1, "marks count as often as questions were answered"
    for estimate, design in (
        (Centred(data).precision("instance", "relation"), Centred(data).design),
        (Centred(data).recall("relation").recall, Centred(data).recall("relation").design),
    ):
        assert np.isfinite(estimate.value).all() and np.isfinite(np.asarray(design.variance(estimate.influence))).all()


def test_experts_check_what_was_drawn(swept: Swept) -> None:
    """What counts only by its document could not have been checked by a round before the sweep."""
    before = frame_of(swept.world.track, read(swept.world.track))
    swept.sweep()
    after = frame_of(swept.world.track, read(swept.world.track))
    assert after.target_id.tolist() == before.target_id.tolist()
    np.testing.assert_allclose(after.inclusion, PI)
    np.testing.assert_allclose(after.a, before.a)


def test_closed_annotation_leaves_nothing_to_ask(toy: Toy) -> None:
    world = World(toy, n_documents=DOCUMENTS)
    world.answer(world.sample(world.system("first", early), PI))
    world.read_in_full(world.documents[:READ], lambda one: True, closed=True)
    settle_documents(world.track, [one.pk for one in world.documents[:READ]])
    with pytest.raises(sweep.CannotOrder, match="What is not marked in these documents is false"):
        sweep.plan_sweep(world.track)
