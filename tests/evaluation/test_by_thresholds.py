"""Simple and joint under thresholds: unbiased, whatever is given up and whoever had seen
judgments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.test import Client
from undone import undone

from kbpo.evaluation.data import read
from kbpo.evaluation.models import Estimate
from kbpo.evaluation.run import evaluate
from kbpo.instances.record import NewLabel, record
from kbpo.instances.targets import Place, targets_at
from kbpo.sampling import draw
from kbpo.sampling.confirm import confirm
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import OwnThresholds, Sample, TrackKey
from scoring.by_thresholds import ByThresholds
from scoring.data import Data
from scoring.default import effective, worth_of_all
from tests.conftest import Toy
from tests.evaluation.replay import PART, Replay

pytestmark = pytest.mark.django_db
N, SHARE, DOCUMENTS, READ = 240, 0.5, 24, 12
REPEATS = 4
RUNS = (
    ("Patterns", range(140)),
    ("Neural", range(60, 200)),
    ("Patterns", range(30, 170)),  # they have seen judgments
)


class Tired(Replay):
    """A replay in which people cannot answer one question in five."""

    def answer(self, most: int | None = None) -> int:
        waiting = Sample.objects.filter(target__labels__isnull=True).order_by("target__u")
        todo = list(dict.fromkeys(waiting.values_list("target", flat=True)))[:most]
        which = {pk: at for at, pk in enumerate(self.target)}
        lost = {pk for pk in todo if which[pk] % 5 == 0}
        record(NewLabel(pk, {}, "crowd", "nonresponse", 0, "q") for pk in lost)
        said = {pk: [PART] if self.true[which[pk]] else [] for pk in todo if pk not in lost}
        return record(
            NewLabel(pk, {"shown": [PART], "holds": holds}, "crowd", "majority", 3, "q")
            for pk, holds in said.items()
        )


def play(toy: Toy, seed: int, kind: type[Replay] = Replay) -> tuple[Replay, Data]:
    """A world in which all runs are judged, and half of the documents were read in full."""
    TrackKey.objects.create(track=toy.track, secret=f"world {seed}")
    world = kind.of(toy, N, SHARE, documents=DOCUMENTS, seed=seed)
    chosen = np.random.default_rng(seed).choice(DOCUMENTS, READ, replace=False)
    read_whole(world, {world.documents[at].pk for at in chosen})
    for team, which in RUNS:
        world.judge(world.upload(team, which))
    return world, read(toy.track)


def read_whole(world: Replay, documents: set[int]) -> None:
    """Nothing; readers mark in these documents all that is true."""
    places = [Place("document", pk) for pk in sorted(documents)]
    found = targets_at(world.toy.corpus, places)
    marked = [
        pk
        for at, pk in enumerate(world.target)
        if world.true[at] and world.documents[at % DOCUMENTS].pk in documents
    ]
    record(
        NewLabel(pk, {"shown": [PART], "holds": [PART]}, "document", "majority", 3, "read")
        for pk in marked
    )
    record(
        NewLabel(found[one], {"closed": False}, "document", "majority", 3, "read") for one in places
    )
    settle_documents(world.toy.track, sorted(documents))


def told(world: Replay, data: Data) -> np.ndarray[Any, Any]:
    """(2, 3, 2): error and standard error of simple and joint precision of every run."""
    found, truth = ByThresholds(data), [world.truth(which) for _, which in RUNS]
    some = [found.precision("instance", "relation", method) for method in ("simple", "joint")]
    assert all(np.isfinite(np.asarray(one.value)).all() for one in some)
    return np.stack(
        [
            np.stack(
                [one.value - np.array(truth), np.sqrt(np.maximum(one.variance, one.anticipated))],
                axis=1,
            )
            for one in some
        ]
    )


def test_a_heavy_claim_that_is_hardly_ever_asked_leaves_nothing_to_be_told() -> None:
    """Where it happens not to be drawn, the fifty light ones alone seemed worth hundreds."""
    p, pi = np.r_[0.5, np.full(50, 0.01)], np.r_[0.001, np.full(50, 0.9)]
    light = p[1:] / pi[1:]
    assert effective(light, pi[1:]) > 400
    assert worth_of_all(p, pi, np.arange(51)) < 0.01
    assert worth_of_all(p, np.r_[0.0, pi[1:]], np.arange(51)) == 0
    assert worth_of_all(p, np.ones(51), np.arange(51)) == np.inf


@pytest.mark.statistical
def test_both_are_unbiased_and_their_intervals_hold(toy: Toy) -> None:
    """In a few worlds of the service; in hundreds without a database:
    `test_by_thresholds_replay`.
    """
    found = []
    for seed in range(REPEATS):
        with undone():
            found.append(told(*play(toy, seed, Tired if seed % 2 else Replay)))
    error, deviation = np.stack(found)[..., 0], np.stack(found)[..., 1]
    # What so few errors differ by among themselves says nothing: they may lie close by luck.
    of_mean = np.sqrt((deviation**2).mean(axis=0) / REPEATS)
    assert (np.abs(error.mean(axis=0)) < 4 * of_mean).all() and of_mean.max() < 0.05
    for method in range(2):
        inside = np.abs(error[:, method]) < 1.2816 * deviation[:, method]
        assert 0.8 - 4 * (0.16 / inside.size) ** 0.5 < inside.mean()
    assert (deviation[:, 1] < 1.001 * deviation[:, 0]).mean() > 0.9, (
        "joint knows all that simple knows"
    )


@pytest.mark.soak
def test_what_lies_below_ones_own_thresholds_was_asked_for_oneself(toy: Toy) -> None:
    world, data = play(toy, 1)
    assert set(data.alone) == {0, 1, 2}
    less = 0
    for column, own in data.alone.items():
        asked = Sample.objects.filter(batch__submission=data.systems[column]).values_list(
            "target", flat=True
        )
        inside = data.pool.u < own
        assert set(data.pool.target_id[inside].tolist()) <= set(asked)
        every = data.own[column].threshold if column in data.own else data.inclusion.threshold
        assert (own <= every).all() and inside.any()
        less += int(np.isin(data.pool.target_id, list(asked)).sum() - inside.sum())
    assert less > 0, "others' thresholds were higher somewhere"
    evaluate(toy.track)
    rows = Estimate.objects.filter(evaluation__track=toy.track, slice="", criterion="relation")
    latest = rows.filter(evaluation=toy.track.evaluations.order_by("-number").first())
    kinds = set(latest.filter(value__isnull=False).values_list("quantity", "method"))
    assert {
        ("precision", "simple"),
        ("precision", "joint"),
        ("recall", "joint"),
        ("f1", "joint"),
    } <= kinds
    drawn, page = (
        set(data.pool.target_id[data.inclusion.drawn]),
        Client().get("/tracks/toy/?criterion=relation"),
    )
    printed = {
        row["submission"].pk: {
            figure["label"].removeprefix("P, "): figure["n"]
            for figure in row["published"]
            if figure["quantity"] == "precision"
        }
        for row in page.context["rows"]
    }
    for column, (pk, (_, which)) in enumerate(zip(data.systems, RUNS, strict=True)):
        mine = {world.target[at] for at in which}
        below = set(data.pool.target_id[data.pool.u < data.alone[column]])
        simple, joint = (
            latest.get(submission=pk, quantity="precision", method=name).n_labels
            for name in ("simple", "joint")
        )
        if column not in data.disclosed:
            assert (simple, joint) == (len(mine & below), len(mine & drawn))
        assert (
            0 < simple <= joint
            and printed[pk]["simple"] == simple
            and printed[pk]["joint"] == joint
        )
        recall = latest.get(submission=pk, quantity="recall", method="joint")
        truth = world.true[list(which)].sum() / world.true.sum()
        assert abs(recall.value - truth) < 4 * recall.variance**0.5 < 0.4


def test_of_an_open_stage_counts_what_is_answered(toy: Toy) -> None:
    world = Replay.of(toy, N, SHARE, documents=DOCUMENTS)
    row = world.upload("Patterns", range(200))
    confirm(row, toy.users["Admin"])
    draw.tick()
    world.answer(most=12)
    data = read(toy.track)
    [own] = data.alone.values()
    inside = data.pool.u < own
    assert 0 < inside.sum() <= 12
    np.testing.assert_array_equal(
        own, data.inclusion.chances.threshold
    )  # nobody else has asked anything
    world.answer()
    [whole] = read(toy.track).alone.values()
    assert (whole > own)[own > 0].all()


@pytest.mark.soak
def test_of_what_was_drawn_before_own_thresholds_were_kept_there_is_no_simple(toy: Toy) -> None:
    _, data = play(toy, 1)
    OwnThresholds.objects.filter(batch__submission=data.systems[0]).delete()
    found = ByThresholds(read(toy.track))
    simple, joint = (
        found.precision("instance", "relation", method) for method in ("simple", "joint")
    )
    assert np.isnan(simple.value).tolist() == [True, False, False]
    assert np.isfinite(joint.value).all()
