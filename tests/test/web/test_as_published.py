"""The published estimators stand beside ours, folded away: precision, recall and F1, by both."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.report import Figure
from tests.conftest import Toy
from tests.reports import drop, keep, put
from tests.test.web.scored import make_board

pytestmark = pytest.mark.django_db
VALUES = {
    ("f1", "simple"): 0.211,
    ("recall", "simple"): 0.123,
    ("f1", "joint"): 0.221,
    ("recall", "joint"): 0.132,
    ("precision", "simple"): 0.643,
    ("precision", "joint"): 0.754,
}


@pytest.fixture
def published(toy: Toy) -> Evaluation:
    """Two systems; what the published estimators say of the first."""
    evaluation = make_board(toy, 2)
    row = Submission.objects.order_by("pk")[0]
    drop(evaluation, submission=row.pk, method=("simple", "joint"))
    for (quantity, method), value in VALUES.items():
        for kind, more in (
            ("instance", 0.0 if quantity == "recall" else 0.1),
            ("entity_relation", 0.0),
        ):
            if quantity == "recall" and kind != "instance":
                continue
            at = value + more
            ends = {
                "low80": at - 0.01,
                "high80": at + 0.01,
                "low95": at - 0.02,
                "high95": at + 0.02,
            }
            figure = Figure(value=at, n_labels=80, **ends)
            put(evaluation, row, figure, quantity, "correct", kind, method)
    return evaluation


def test_the_page_folds_away_all_six(toy: Toy, published: Evaluation) -> None:
    page = Client().get(reverse("board", args=["toy"])).content.decode()
    for label, figure in (
        ("F1, simple", "21.1"),
        ("R, simple", "12.3"),
        ("F1, joint", "22.1"),
        ("P, simple", "64.3"),
        ("P, joint", "75.4"),
        ("R, joint", "13.2"),
    ):
        assert f'<span class="label">{label}</span> <span class="figures"><b>{figure}</b>' in page
    assert "Wilson" in page and "bootstrap" in page


def test_files_and_the_api_tell_them_too(toy: Toy, published: Evaluation) -> None:
    first = Submission.objects.order_by("pk")[0].pk
    ends = {"simple": {first: (0.61, 0.68)}, "joint": {first: (0.72, 0.78)}}
    keep(published, bootstrap={(toy.track.criterion, toy.track.distribution): ends})
    rows = list(
        csv.DictReader(
            io.StringIO(Client().get(reverse("board-csv", args=["toy"])).content.decode())
        )
    )
    row = next(one for one in rows if one["system"] == "run 0")
    names = {"joint_f1": 0.221, "joint_recall": 0.132, "simple": 0.643, "joint": 0.754}
    names |= {"simple_f1": 0.211, "simple_recall": 0.123}
    assert {name: float(row[f"{name}_value"]) for name in names} == names
    told = Client().get("/api/tracks/toy/board/").json()["systems"]
    found = next(one for one in told if one["name"] == "run 0")
    assert {name: found[name]["value"] for name in names} == names
    for name, by_system in ends.items():
        low, high = by_system[first]
        assert found[name]["bootstrap"] == [low, high]
        told_ends = [row[f"{name}_bootstrap_{end}"] for end in ("low80", "high80")]
        assert told_ends == [str(low), str(high)]
    other = next(one for one in told if one["name"] == "run 1")
    assert "bootstrap" not in other["simple"] and "joint_recall_bootstrap_low80" not in row


@pytest.mark.parametrize(("design", "has_note"), [("poisson", False), ("iid", True)])
def test_only_draws_with_replacement_are_described_as_published(
    toy: Toy, published: Evaluation, design: str, has_note: bool
) -> None:
    Track.objects.update(design=design)
    page = Client().get(reverse("board", args=["toy"])).content.decode()
    assert ('class="published-note"' in page) == has_note
