"""Recall of instances: every pair of mentions counts, where the board's recall counts a fact
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.db import connection

from kbpo.evaluation.data import load_data
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Instance, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.sampling.documents.draw import settle_documents
from kbpo.sampling.models import DocumentSample
from kbpo.submissions.models import Submission
from scoring.default import Centred
from scoring.report import Figure
from tests.conftest import Toy
from tests.reports import newest
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db
Fact = tuple[int, int, tuple[int, int], tuple[int, int]]


def name(one: Instance, side: str = "subject") -> str:
    begin, end = getattr(one, f"{side}_begin"), getattr(one, f"{side}_end")
    return str(one.document.text[begin:end])


def cluster(one: Instance, side: str) -> tuple[int, int]:
    """Firms and people of the third sentence are those of the second; every other name is its
    own.
    """
    text, word = one.document.text, name(one, side)
    other = word[:-1] + "1" if word.startswith(("Carl", "Firm")) and word.endswith("2") else word
    return text.index(other), text.index(other) + len(other)


def fact(one: Instance) -> Fact:
    return one.document_id, one.predicate_id, cluster(one, "subject"), cluster(one, "object")


def join(world: World) -> None:
    """Nothing; experts have said which names go together."""
    spans = {
        (one.document_id, (getattr(one, f"{side}_begin"), getattr(one, f"{side}_end"))): cluster(
            one, side
        )
        for one in world.instances
        for side in ("subject", "object")
    }
    found = make_targets(
        world.corpus, [Place("mention", document, span) for document, span in spans]
    )
    record_labels(
        NewLabel(
            pk,
            {"canonical": list(spans[place.document, place.a]), "type": "PER"},
            "expert",
            "expert",
            1,
            "joined",
        )
        for place, pk in found.items()
    )


def recalls(world: World, predicts: list[Any]) -> tuple[list[float], list[float]]:
    """The true recall of systems, by facts and by instances."""
    true = [one for one in world.instances if world.truth[one.pk]]
    facts = {fact(one) for one in true}
    return (
        [len({fact(one) for one in true if said(one)}) / len(facts) for said in predicts],
        [sum(said(one) for one in true) / len(true) for said in predicts],
    )


def stored(world: World, row: Submission, quantity: str) -> Figure:
    of = {"criterion": "relation", "method": "centred", "distribution": "instance"}
    return newest(row, quantity=quantity, **of)


PREDICTS = [
    lambda one: name(one)[-1] in "12" or name(one) == "Anna",
    lambda one: name(one)[-1] in "23",
]


@pytest.fixture
def known(toy: Toy) -> tuple[World, list[Submission]]:
    """Everything that two systems predict is judged, and every document read."""
    world = World(toy, is_study=True, n_documents=8)
    first: dict[Fact, bool] = {}
    for one in world.instances:  # a fact holds wherever it is predicted
        world.truth[one.pk] = first.setdefault(fact(one), world.truth[one.pk])
    rows = [
        world.system(f"run {at}", said, team=team)
        for at, (said, team) in enumerate(zip(PREDICTS, ("Patterns", "Neural"), strict=True))
    ]
    for row in rows:
        world.answer(world.sample(row))
    world.read_in_full(world.documents, lambda one: True)
    join(world)
    settle_documents(world.track, [one.pk for one in world.documents])
    return world, rows


def test_where_all_is_known_both_recalls_are_exact(known: tuple[World, list[Submission]]) -> None:
    world, rows = known
    score_track(world.track)
    by_fact, by_instance = recalls(world, PREDICTS)
    assert by_fact[0] != pytest.approx(by_instance[0], abs=1e-3)  # else this would show nothing
    for at, row in enumerate(rows):
        assert stored(world, row, "recall").value == pytest.approx(by_fact[at])
        assert stored(world, row, "instance_recall").value == pytest.approx(by_instance[at])


@pytest.mark.soak
@pytest.mark.statistical
def test_from_samples_it_is_right_on_average(toy: Toy) -> None:
    """Half of the targets and six of eight documents, drawn anew each time; the truth is known."""
    world = World(toy, is_study=True, n_documents=8)
    for said, team in zip(PREDICTS, ("Patterns", "Neural"), strict=True):
        row = world.system("run", said, team=team)
        world.sample(row, 0.5)
        row.batches.update(settled_at=row.confirmed_at)
    world.answer(
        list(
            Target.objects.filter(instances__predictions__submission__track=world.track).distinct()
        )
    )
    world.read_in_full(world.documents, lambda one: True)
    documents = [one.pk for one in world.documents]
    rng, targets = np.random.default_rng(8), list(Target.objects.values_list("pk", flat=True))
    errors, deviations = [], []
    for _ in range(60):
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE instances_target t SET u = n.u FROM unnest(%s::bigint[], %s::float8[]) AS n"
                " (id, u) WHERE t.id = n.id",
                [targets, rng.random(len(targets)).tolist()],
            )
        DocumentSample.objects.all().delete()
        settle_documents(world.track, sorted(rng.choice(documents, 6, replace=False).tolist()))
        found = Centred(load_data(world.track)).recall("relation", unit="mention")
        assert found is not None
        errors.append(np.asarray(found.recall.value) - recalls(world, PREDICTS)[1])
        deviations.append(np.sqrt(np.asarray(found.recall.variance)))
    error, deviation = np.stack(errors), np.stack(deviations)
    of_mean = error.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert (of_mean > 0).all() and (np.abs(error.mean(axis=0)) < 4 * of_mean).all()
    assert 0.6 < (np.abs(error) < 1.2816 * deviation).mean() < 0.95
