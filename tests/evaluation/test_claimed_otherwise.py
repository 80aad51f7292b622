"""Who claims something else of what was judged for others waits for its own answers; the others do
not: a score that is out stays, whatever somebody states on the same pairs afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import pytest
from undone import undone

from kbpo import clock
from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate, finished
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import DocumentSample, FollowUp, Sample
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw
from scoring.default import Centred
from tests.conftest import Toy
from tests.evaluation.replay import Replay
from tests.evaluation.test_who_has_seen_what import honest

pytestmark = pytest.mark.django_db
N, SHARE = 400, 0.4
OTHER = "per:employee_or_member_of"


def claim_otherwise(
    world: Replay,
    which: Iterable[int] = range(N),
    besides: Iterable[int] = (),
    team: str = "Neural",
) -> Submission:
    """A run of another team, confirmed and drawn, that states another relation on some pairs, and
    the same as others do on those `besides`.
    """
    other = next(row for name, row in world.toy.predicates.items() if name != "per:place_of_birth")
    base = Instance.objects.in_bulk([world.instance[at] for at in which])
    row = world.store(team, [*which, *besides], status="read")
    for prediction in row.predictions.filter(instance__in=base):
        one = base[prediction.instance_id]
        prediction.instance = Instance.objects.create(
            target_id=one.target_id,
            document_id=one.document_id,
            subject_begin=one.subject_begin,
            subject_end=one.subject_end,
            object_begin=one.object_begin,
            object_end=one.object_end,
            predicate=other,
        )
        prediction.save(update_fields=["instance"])
    distribution.tick()
    row.refresh_from_db()
    confirm(row, row.user)
    draw.tick()
    evaluate(world.toy.track, [])
    return row


@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_a_score_that_is_out_waits_for_nobody_elses_claims(toy: Toy, design: str) -> None:
    world, first = Replay.judged(toy, N, SHARE, design=design)
    before = world.number(first)
    row = claim_otherwise(world)
    after = world.number(first)
    assert (after.kind, after.n_labels) == (before.kind, before.n_labels)
    assert before.value is not None and after.value is not None
    assert abs(after.value - before.value) < 0.25 * (before.high80 - before.low80)
    assert after.high80 - after.low80 < 1.1 * (before.high80 - before.low80)
    assert world.number(row).value is None, "nothing of its own is judged yet"
    withdraw(Submission.objects.get(pk=row.pk), toy.users["Tim"], "no")
    evaluate(toy.track, [])
    again = world.number(first)
    assert again.value == pytest.approx(after.value) and again.n_labels == before.n_labels


@pytest.mark.parametrize("design", ["poisson", "iid"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_run_that_waits_counts_what_was_answered_to_it_in_order(
    toy: Toy, design: str, share: float
) -> None:
    world, first = Replay.judged(toy, N, SHARE, design=design)
    row = claim_otherwise(world)
    answer(world, row, share)
    data = read(toy.track)
    # By draws with replacement what others' hold, and its own do not, was never asked for it.
    assert (data.systems.index(row.pk) in data.disclosed) == (share < 1 or design == "iid")
    assert not data.saw
    evaluate(toy.track, [])
    assert honest(world.number(row), world.truth(range(N)))
    assert honest(world.number(first), world.truth(range(N)))


@pytest.mark.parametrize("besides", [range(0), range(N // 2, N)])
def test_a_second_run_that_claims_otherwise_of_what_its_team_saw_unjudged_has_an_interval(
    toy: Toy, besides: range
) -> None:
    """Draws from before it came are no sample of what it claims: neither now, nor at the moment at
    which its team saw that they had not held a pair.
    """
    world, _ = Replay.judged(toy, N, SHARE, design="iid")
    row = claim_otherwise(world, range(N - len(besides)), besides, team="Patterns")
    answer(world, row, 1.0)
    evaluate(toy.track, finished(toy.track))
    data, number = read(toy.track), world.number(row)
    column = data.systems.index(row.pk)
    assert data.disclosed[column].unjudged.any(), "its team saw what was not judged"
    own = Centred(data).pi_of(column)[data.pool.predicted(column)]
    assert (own > 0).all(), "whatever it claims could be asked"
    assert number.variance is not None and 0 < number.variance < 0.01
    assert honest(number, world.truth(range(N)))


def test_before_a_follow_up_no_draw_had_asked_what_is_claimed_since(toy: Toy) -> None:
    world, _ = Replay.judged(toy, N, SHARE, design="iid")
    row = claim_otherwise(world)
    answer(world, row, 1.0)
    evaluate(toy.track, finished(toy.track))
    now, nothing = clock.now(), Decimal(0)
    follow_up = FollowUp.objects.create(
        track=toy.track,
        workers=3,
        price=nothing,
        reward=nothing,
        seconds=1,
        ordered_at=now,
        settled_at=now,
    )
    read_whole = DocumentSample.objects.create(
        track=toy.track, document=world.documents[0], probability=1 / 8, settled_at=now
    )
    follow_up.documents.add(read_whole)
    data = read(toy.track)
    own, common = (some.chances for some in (data.own[data.systems.index(row.pk)], data.inclusion))
    np.testing.assert_allclose(own.before, own.asked, rtol=1e-9)
    assert (common.before > own.before).all(), "others' draws asked what they claim"


@pytest.mark.soak
@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_on_average_both_are_right_whatever_part_is_answered(toy: Toy, design: str) -> None:
    off = []
    for seed in range(500, 524):
        with undone():
            world = Replay.of(toy, N, SHARE, design=design, seed=seed)
            first = world.judge(world.upload("Patterns", range(N)))
            row = claim_otherwise(world)
            answer(world, row, 0.5)
            evaluate(toy.track, [])
            truth = world.truth(range(N))
            off.append([float(world.number(one).value or 0) - truth for one in (first, row)])
    errors = np.array(off)
    assert (abs(errors.mean(axis=0)) < 3 * errors.std(axis=0, ddof=1) / len(off) ** 0.5).all()


@pytest.mark.soak
def test_by_draws_with_replacement_a_later_run_leans_to_nothing_that_it_says_elsewhere(
    toy: Toy,
) -> None:
    """What others' draws hold was not asked for it: where it is mostly right there, and wrong
    elsewhere, its own draws alone tell how often.
    """
    off = []
    for seed in range(600, 616):
        with undone():
            world = Replay.of(toy, N, SHARE, design="iid", seed=seed)
            false = np.flatnonzero(~world.true).tolist()
            held = [*np.flatnonzero(world.true).tolist(), *false[:40]]
            first = world.judge(world.upload("Patterns", held))
            row = claim_otherwise(world, held, besides=false[40:])
            answer(world, row, 1.0)
            evaluate(toy.track, [])
            truths = world.truth(held), world.truth(range(N))
            numbers = world.number(first), world.number(row)
            pairs = zip(numbers, truths, strict=True)
            off.append([float(number.value or 0) - truth for number, truth in pairs])
    errors = np.array(off)
    assert (abs(errors.mean(axis=0)) < 2.5 * errors.std(axis=0, ddof=1) / len(off) ** 0.5).all()


def answer(world: Replay, row: Submission, share: float) -> None:
    """People answer a part of what a run waits for, in its order: all relations that are claimed of
    a pair hold, or none does.
    """
    drawn = set(Sample.objects.filter(batch__submission=row).values_list("target", flat=True))
    asked = Target.objects.filter(pk__in=drawn).order_by("u", "pk").values_list("pk", flat=True)
    claimed = Instance.objects.filter(target__in=drawn, predictions__isnull=False)
    parts_of: dict[int, set[str]] = {}
    for target, name in claimed.values_list("target", "predicate__name"):
        parts_of.setdefault(target, set()).add(f"{name}>")
    true = {pk for pk, holds in zip(world.target, world.true, strict=True) if holds}
    record(
        NewLabel(
            pk,
            {"shown": sorted(parts_of[pk]), "holds": sorted(parts_of[pk]) if pk in true else []},
            "crowd",
            "majority",
            3,
            "again",
        )
        for pk in list(asked)[: int(share * len(drawn))]
    )


@pytest.mark.parametrize("design", ["poisson", "iid"])
def test_a_score_that_is_out_stays_near_where_some_of_its_answers_are_taken_out(
    toy: Toy, design: str
) -> None:
    """What its run is asked again is missing to it alone, and nothing else."""
    world, first = Replay.judged(toy, N, SHARE, design=design)
    row = claim_otherwise(world)
    answer(world, row, 1.0)
    evaluate(toy.track, finished(toy.track))
    row.refresh_from_db()
    assert row.status == "scored"
    before = world.number(row), world.number(first)
    taken = Label.objects.filter(origin="again").order_by("pk").values_list("pk", flat=True)[:20]
    Label.objects.filter(pk__in=list(taken)).delete()
    evaluate(toy.track, [])
    after = world.number(row), world.number(first)
    for then, now in zip(before, after, strict=True):
        assert abs((now.value or 0) - (then.value or 0)) < then.high80 - then.low80
        assert now.high80 - now.low80 < 1.4 * (then.high80 - then.low80)
