"""When a track is closed everybody sees its judgments, and nothing of what another track asks on
the same corpus.
"""

from __future__ import annotations

import numpy as np
import pytest

from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.web.research.judged import describe, verdicts
from tests.conftest import Toy
from tests.evaluation.world import LIVES, World

pytestmark = pytest.mark.django_db


def test_a_later_judgment_for_another_track_is_not_public(toy: Toy) -> None:
    world = World(toy)
    row = world.system("one", lambda one: True)
    row.move("scored")
    asked = world.sample(row)
    lives = {one.target_id: one for one in world.instances if one.predicate.name == LIVES}
    # Of one target nobody asked whether she lives there; of another it was found true.
    [silent, known] = [one for one in asked if one.pk in lives][:2]
    world.truth[lives[known.pk].pk] = True
    world.answer(asked)
    Label.objects.filter(target=silent).update(
        value={"shown": ["org:founded_by>"], "holds": [], "votes": {}}
    )
    close_track(freeze_track(world.track))
    row.refresh_from_db()
    before = verdicts(row, public=True)
    ids = dict(row.predictions.values_list("instance_id", "pk"))
    mine = [ids[lives[one.pk].pk] for one in (silent, known)]
    told = describe(row, mine, public=True)
    assert [one.relation for one in told] == [None, True]

    for target in (
        silent,
        known,
    ):  # another track, which is open, asks both, and hears of both that it is wrong
        parts = [f"{LIVES}{end}" for end in "<>"]
        label = {"shown": parts, "holds": [], "votes": dict.fromkeys(parts, 0)}
        record([NewLabel(target.pk, label, "crowd", "majority", 5, "question:other")])
    after = verdicts(row, public=True)
    assert before.prediction == after.prediction
    assert np.array_equal(before.value, after.value, equal_nan=True)
    again = describe(row, mine, public=True)
    assert [(one.relation, one.votes) for one in again] == [
        (one.relation, one.votes) for one in told
    ]
    private = describe(row, mine, public=False)
    assert [(one.relation, one.votes) for one in private] == [
        (False, "5 of 5"),
        (False, "5 of 8"),
    ], "its team predicts both, and three had said before that the second is right"
