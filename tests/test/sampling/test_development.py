"""Development predictions are judged for learning; no score, stage or slice has them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kbpo.corpus.models import Document, Part
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Target
from kbpo.sampling import plan
from kbpo.sampling.confirm import CannotConfirm, confirm_plan
from kbpo.sampling.models import SampleBatch, SamplingDistribution
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.web.research.score_tables import sampling_stages
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay

pytestmark = pytest.mark.django_db
N, DOCUMENTS = 160, 8
N_DEV = N // DOCUMENTS


def shared_world(toy: Toy, design: str) -> Replay:
    """A shared track of which one document in eight is of the development part."""
    world = Replay.of(toy, N, 0.5, design=design, documents=DOCUMENTS)
    toy.track.is_study, toy.track.owner = False, None
    toy.track.save()
    Document.objects.filter(pk=world.documents[0].pk).update(part=Part.DEV)
    Target.objects.filter(document=world.documents[0]).update(is_dev=True)
    toy.corpus.n_dev = 1
    toy.corpus.save()
    return world


def upload(world: Replay, team: str) -> Submission:
    """A planned run that predicts everything."""
    row = world.store(team, range(N), status="read")
    row.predictions.filter(instance__document=world.documents[0]).update(is_dev=True)
    plan.tick()
    row.refresh_from_db()
    assert row.status == "planned", row.reason
    return row


def test_overlaps_are_those_of_test_predictions(toy: Toy) -> None:
    world = shared_world(toy, "iid")
    upload(world, "Patterns")
    upload(world, "Neural")
    stored = SamplingDistribution.objects.order_by("submission").values_list("overlaps", flat=True)
    values = [value for overlaps in stored for value in overlaps.values()]
    assert values == pytest.approx([1 / (N - N_DEV)] * 3)


def test_the_price_that_was_looked_at_covers_development_predictions(toy: Toy) -> None:
    world = shared_world(toy, "poisson")
    row = upload(world, "Patterns")
    development, option = row.plan["development"], row.plan["options"]["0.050"]
    assert development["available"] == N_DEV
    sample, dev = Decimal(option["at_most"]), 4 * Decimal(development["each"])
    with pytest.raises(CannotConfirm, match=f"at most \\${sample + dev} now"):
        confirm_plan(row, toy.users["Admin"], development=4, at_most=sample + dev - Decimal("0.01"))
    assert confirm_plan(row, toy.users["Admin"], development=4, at_most=sample + dev).confirmed_at


def test_a_track_is_scored_and_closed_without_its_development_part(toy: Toy) -> None:
    world = shared_world(toy, "poisson")
    row = world.judge(upload(world, "Patterns"))
    assert SampleBatch.objects.filter(design=SampleBatch.DEVELOPMENT).count() == 1
    told = sampling_stages(row)
    assert told is not None
    assert len(told["stages"]) == row.batches.test_part().count() < row.batches.count()
    close_track(toy.track)
    toy.track.refresh_from_db()
    score_track(toy.track)
    precision = world.number(row)
    test = world.truth(at for at in range(N) if at % DOCUMENTS)
    assert precision.low95 < test < precision.high95
