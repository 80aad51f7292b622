"""Who claims something else of what was judged for others waits for its own answers; the others do
not: a score that is out stays, whatever somebody states on the same pairs afterwards.
"""

from __future__ import annotations

import numpy as np
import pytest

from kbpo.evaluation.data import read
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Instance, Target
from kbpo.instances.record import NewLabel, record
from kbpo.sampling import distribution, draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Prediction, Submission
from kbpo.submissions.withdraw import withdraw
from tests.conftest import Toy
from tests.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N, SHARE = 400, 0.4
OTHER = "per:employee_or_member_of"


def claim_otherwise(world: Replay) -> Submission:
    """A run of another team, confirmed and drawn, that states another relation on each pair."""
    other = next(row for name, row in world.toy.predicates.items() if name != "per:place_of_birth")
    base = Instance.objects.in_bulk(world.instance)
    stated = Instance.objects.bulk_create(
        Instance(
            target_id=one.target_id,
            document_id=one.document_id,
            subject_begin=one.subject_begin,
            subject_end=one.subject_end,
            object_begin=one.object_begin,
            object_end=one.object_end,
            predicate=other,
        )
        for one in (base[pk] for pk in world.instance)
    )
    row = world.store("Neural", range(N), status="read")
    for prediction, one in zip(row.predictions.order_by("pk"), stated, strict=True):
        Prediction.objects.filter(pk=prediction.pk).update(instance=one)
    distribution.tick()
    row.refresh_from_db()
    confirm(row, world.toy.users["Tim"])
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
    # Draws with replacement ask a later run about some of these pairs only: what it claims of the
    # others passes for unanswered, in whatever relation, and widens intervals.
    most = 1.1 if design == "poisson" else 2.0
    assert after.high80 - after.low80 < most * (before.high80 - before.low80)
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
    """Nothing that it claims is true: by what is answered it stands near 0, and half of it says as
    much with a wider interval.
    """
    world, first = Replay.judged(toy, N, SHARE, design=design)
    row = claim_otherwise(world)
    drawn = Sample.objects.filter(batch__submission=row).values_list("target", flat=True)
    waiting = list(
        Target.objects.filter(pk__in=drawn).order_by("u", "pk").values_list("pk", flat=True)
    )
    [part] = {f"{one.predicate.name}>" for one in _stated(row)}
    record(
        NewLabel(pk, {"shown": [part], "holds": []}, "crowd", "majority", 3, "again")
        for pk in waiting[: int(share * len(waiting))]
    )
    data = read(toy.track)
    column = data.systems.index(row.pk)
    assert (column in data.disclosed) == (share < 1)
    evaluate(toy.track, [])
    printed = world.number(row)
    assert printed.value is not None
    assert printed.low80 <= 0.02 and printed.high80 < 0.2
    assert np.isclose(world.number(first).value or 0, world.truth(range(N)), atol=0.1)


def _stated(row: Submission) -> list[Instance]:
    found = Prediction.objects.filter(submission=row).select_related("instance__predicate")
    return [one.instance for one in found[:3]]
