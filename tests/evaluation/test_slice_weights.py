"""Slices that an admin weighs by numbers or by confidence, or keeps to the documents of some
days.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from kbpo.corpus.models import Document
from kbpo.evaluation.data import read as read_data
from kbpo.evaluation.models import Slice
from kbpo.evaluation.run import evaluate
from kbpo.evaluation.slices.estimate import slice_scores
from kbpo.evaluation.slices.rule import BadRule, read
from kbpo.instances.models import Instance
from kbpo.submissions.models import Submission
from scoring.data import Data
from scoring.report import Figure
from scoring.score import Score
from tests.evaluation.world import BASED, LIVES, WORKS, World, half_asked
from tests.reports import figure_of

pytestmark = pytest.mark.django_db
KNOWN: dict[str, Any] = {
    "traits": {
        "predicate": [WORKS, BASED],
        "subject_type": ["PER", "ORG"],
        "object_type": ["PER", "ORG"],
        "frequency": ["low", "medium", "high"],
    },
    "weights": ["instance", "relation"],
}
TABLE = {"predicate": {WORKS: 3, BASED: 0}, "other": 0.5}


def sure(one: Instance) -> float:
    return (0.0, 0.25, 0.9)[one.pk % 3]


@pytest.fixture
def whole(world: World) -> Submission:
    """A system that predicts everything, all of it judged; documents of two years, and one without
    a date.
    """
    row = world.system("whole", lambda one: True, confidence=sure)
    world.answer(world.sample(row))
    days = ["2013-01-01", "2013-06-15", "2013-12-31", "2014-01-01", "2014-05-05", ""]
    for one, day in zip(world.documents, days, strict=True):
        Document.objects.filter(pk=one.pk).update(date=day)
        one.date = day
    return row


def scored(row: Submission, rule: Any) -> Figure:
    Slice.objects.create(track=row.track, name="Mine", rule=rule)
    of = {"quantity": "precision", "criterion": "relation", "slice": "own:Mine"}
    return figure_of(evaluate(row.track), row, **of)


def mean(world: World, weight: dict[int, float]) -> float:
    """The weighted share of instances that is true."""
    return sum(weight[one.pk] * world.truth[one.pk] for one in world.instances) / sum(
        weight.values()
    )


@pytest.mark.parametrize(
    ("weight", "of"),
    [
        (TABLE, lambda one: {WORKS: 3.0, BASED: 0.0, LIVES: 0.5}[one.predicate.name]),
        (
            {"subject_type": {"ORG": 2, "PER": 5}},
            lambda one: 2.0 if one.predicate.name == BASED else 5.0,
        ),
        ({"object_type": {"GPE": 1}}, lambda one: float(one.predicate.name != WORKS)),
        ("confidence", sure),
    ],
)
def test_predictions_count_as_much_as_they_weigh(
    world: World, whole: Submission, weight: Any, of: Any
) -> None:
    weights = {one.pk: of(one) for one in world.instances}
    found = scored(whole, {"weight": weight})
    assert found.value == pytest.approx(mean(world, weights))
    assert found.value != pytest.approx(world.share_true(world.instances), abs=1e-6)
    weighed = {one.target_id for one in world.instances if weights[one.pk] > 0}
    assert found.n_predictions == len(weighed)  # what weighs nothing is none of it
    assert found.low80 <= found.value <= found.high80


@pytest.mark.parametrize(
    ("days", "kept"),
    [
        (["2013-01-01", "2013-12-31"], {"2013-01-01", "2013-06-15", "2013-12-31"}),
        (["2013-12-31", "2014-01-01"], {"2013-12-31", "2014-01-01"}),
        (
            ["0001-01-01", "9999-12-31"],
            {"2013-01-01", "2013-06-15", "2013-12-31", "2014-01-01", "2014-05-05"},
        ),
    ],
)
def test_a_slice_keeps_to_the_documents_of_some_days(
    world: World, whole: Submission, days: list[str], kept: set[str]
) -> None:
    found = scored(whole, {"date": days})
    day = {one.pk: one.date for one in world.documents}
    inside = [one for one in world.instances if day[one.document_id] in kept]
    assert found.n_predictions == len({one.target_id for one in inside})
    assert found.value == pytest.approx(world.share_true(inside))


@pytest.mark.soak
@pytest.mark.statistical
@pytest.mark.parametrize("weight", [TABLE, "confidence"])
def test_weighed_slices_of_a_sample_are_unbiased_and_covered(
    world: World, whole: Submission, weight: Any
) -> None:
    """With half of the targets asked, on one set of data."""
    Slice.objects.create(track=world.track, name="Mine", rule={"weight": weight})
    data, rng = read_data(world.track), np.random.default_rng(3)

    def value(part: Data) -> Score:
        return next(one.score for one in slice_scores(world.track, part) if one.slice == "own:Mine")

    true, errors, hits = value(data).value, [], []
    for _ in range(60):
        score = value(half_asked(data, rng))
        errors.append(score.value - true)
        hits.append(score.low80 <= true <= score.high80)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors)) + 0.005
    assert 0.62 < np.mean(hits) < 0.97


@pytest.mark.parametrize(
    "raw",
    [
        {"weight": {"predicate": {WORKS: 3.0, BASED: 1.5}, "other": 0.5}},
        {"weight": {"frequency": {"low": 2.0}}},
        {"weight": "confidence", "date": ["2013-01-01", "2013-12-31"]},
    ],
)
def test_what_was_said_reads_back(raw: Any) -> None:
    once = read(raw, **KNOWN).as_json()
    assert once == raw and read(json.loads(json.dumps(once)), **KNOWN).as_json() == raw


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"weight": {}}, "A table of weights names one of predicate"),
        ({"weight": {"other": 2}}, "A table of weights names one of"),
        (
            {"weight": {"predicate": {WORKS: 1}, "frequency": {"low": 1}}},
            "A table of weights names one of",
        ),
        ({"weight": {"document": {"a": 1}}}, "A table of weights names one of"),
        ({"weight": {"predicate": [WORKS]}}, "A table of weights names one of"),
        ({"weight": {"predicate": {}}}, "a list of names"),
        ({"weight": {"predicate": {"per:nothing": 1}}}, "no predicate “per:nothing”"),
        ({"weight": {"frequency": {"rare": 1}}}, "no frequency “rare”"),
        ({"weight": {"predicate": {WORKS: -1}}}, f"The weight of {WORKS} must be a number from 0"),
        ({"weight": {"predicate": {WORKS: True}}}, "must be a number from 0"),
        ({"weight": {"predicate": {WORKS: "3"}}}, "must be a number from 0"),
        ({"weight": {"predicate": {WORKS: float("inf")}}}, "must be a number from 0"),
        ({"weight": {"predicate": {WORKS: float("nan")}}}, "must be a number from 0"),
        ({"weight": {"predicate": {WORKS: 10**400}}}, "must be a number from 0"),
        ({"weight": {"predicate": {WORKS: 1}, "other": -1}}, "The weight of other"),
        ({"weight": {"predicate": {WORKS: 0}}}, "a number above 0"),
        ({"weight": 3}, "or a table of numbers"),
        ({"date": "2013-01-01"}, "two days like"),
        ({"date": ["2013-01-01"]}, "two days like"),
        ({"date": ["2013-01-02", "2013-01-01"]}, "the earlier first"),
        ({"date": ["2013-13-01", "2014-01-01"]}, "two days like"),
        ({"date": [2013, 2014]}, "two days like"),
        ({"date": {"2013-01-01": 1, "2013-02-01": 2}}, "two days like"),
        ({"date": None}, "two days like"),
    ],
)
def test_a_bad_weight_or_date_is_refused_with_a_sentence(raw: Any, sentence: str) -> None:
    with pytest.raises(BadRule, match=sentence):
        read(raw, **KNOWN)


def test_an_admin_defines_one_on_the_page_and_it_stands_on_the_submissions(
    world: World, whole: Submission
) -> None:
    admin = Client()
    admin.force_login(world.toy.users["Admin"])
    address = reverse("desk-slices", args=["world"])
    refused = admin.post(
        address, {"name": "Heavy", "rule": '{"weight": {"predicate": {"nothing": 1}}}'}
    )
    assert refused.status_code == 422 and "no predicate “nothing”" in refused.content.decode()
    rule = json.dumps({"weight": TABLE, "date": ["2013-01-01", "2013-12-31"]})
    assert admin.post(address, {"name": "Heavy", "rule": rule}).status_code == 302
    assert "Heavy" in admin.get(address).content.decode()
    evaluate(world.track)
    whole.move("scored", stage_reason="target")
    page = admin.get(reverse("submission", args=[whole.pk]), {"by": "own"})
    [row] = page.context["slices"]["rows"]
    assert row["name"] == "Heavy" and row["figure"].value is not None
