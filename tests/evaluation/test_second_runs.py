"""Runs of teams that have seen judgments are printed without bias, whatever brings the judgments
in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from undone import undone

from kbpo.evaluation.data import read
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import TrackKey
from scoring.default import Centred
from tests.conftest import Toy
from tests.evaluation.replay import Replay

N, SHARE, DOCUMENTS = 240, 0.5, 24
REPEATS = 12
"""With 60 the mean errors are within 1.7 standard errors, and 0.73 to 0.83 of the 80 % intervals
hold."""
RUNS = (
    ("Patterns", range(160)),
    ("Patterns", range(40, 200)),
    ("Neural", range(60, 240)),
    ("Neural", range(20, 220)),
)


def errors(toy: Toy, seed: int, design: str, read_in_full: int) -> np.ndarray[Any, Any]:
    """(4, 2): the error of each printed precision, and its standard error, in a world of its
    own.
    """
    TrackKey.objects.create(track=toy.track, secret=f"world {seed}")
    world = Replay.of(toy, N, SHARE, design=design, documents=DOCUMENTS, seed=seed)
    if read_in_full:
        chosen = np.random.default_rng(seed).choice(DOCUMENTS, read_in_full, replace=False)
        read_whole(world, [world.documents[at].pk for at in chosen])
    for team, which in RUNS:
        row = world.upload(team, which)
        world.judge(row)
    data = read(toy.track)
    found = Centred(data).precision("instance", "relation")
    truth = [world.truth(which) for _, which in RUNS]
    assert np.isfinite(np.asarray(found.anticipated)).all()
    return np.stack(
        [np.asarray(found.value) - truth, np.sqrt(np.maximum(found.variance, found.anticipated))],
        axis=1,
    )


def read_whole(world: Replay, documents: list[int]) -> None:
    """Nothing; what is not marked in these documents is false."""
    corpus = world.toy.corpus
    places = [Place("document", pk) for pk in documents]
    found = targets_at(corpus, places)
    record(
        NewLabel(found[one], {"closed": True}, "import", "import", 1, "import") for one in places
    )
    held = [
        pk for at, pk in enumerate(world.target) if world.true[at] and _of(world, at) in documents
    ]
    part = "per:place_of_birth>"
    record(
        NewLabel(pk, {"shown": [part], "holds": [part]}, "import", "import", 1, "import")
        for pk in held
    )
    settle_documents(world.toy.track, documents)


def _of(world: Replay, at: int) -> int:
    return world.documents[at % DOCUMENTS].pk


@pytest.mark.django_db
@pytest.mark.statistical
def test_second_runs_are_printed_without_bias(toy: Toy) -> None:
    found = []
    for seed in range(REPEATS):
        with undone():
            found.append(errors(toy, seed, "iid", 6))
    error, deviation = np.stack(found)[..., 0], np.stack(found)[..., 1]
    of_mean = error.std(axis=0, ddof=1) / np.sqrt(REPEATS)
    assert (np.abs(error.mean(axis=0)) < 4 * of_mean).all()
    inside = np.abs(error) < 1.2816 * deviation
    assert 0.8 - 4 * (0.16 / inside.size) ** 0.5 < inside.mean()
