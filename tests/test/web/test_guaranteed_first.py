"""What a track guarantees comes first, wherever its scores are shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from scoring.report import Figure, Key
from tests.conftest import Toy
from tests.reports import keep

pytestmark = pytest.mark.django_db
VALUES = {"instance": 0.31, "relation": 0.41, "entity": 0.51, "entity_relation": 0.61}


@pytest.fixture
def run(toy: Toy) -> Submission:
    """A scored run whose precision and F1 are other ones under each distribution and criterion."""
    row = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Patterns"],
        name="run",
        status="scored",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="x",
        counts={"relations": 9},
    )
    evaluation = Evaluation.objects.create(track=toy.track, number=1)
    keep(evaluation, documents=2, of_documents=4)
    figures = {}
    for criterion, more in (("relation", 0.02), ("correct", 0.0), ("linking", 0.04)):
        for kind, value in VALUES.items():
            for quantity in ("precision", "f1", "recall"):
                if (quantity, kind) in [
                    ("recall", "relation"),
                    ("recall", "entity"),
                    ("recall", "entity_relation"),
                ]:
                    continue
                if criterion == "linking" and quantity != "precision":
                    continue
                at = value + more
                figures[Key(row.pk, quantity, criterion, kind, "centred")] = Figure(
                    value=at,
                    low80=at - 0.02,
                    high80=at + 0.02,
                    low95=at - 0.03,
                    high95=at + 0.03,
                    n_labels=80,
                )
    keep(evaluation, figures)
    return row


@pytest.mark.parametrize(
    ("distribution", "criterion", "options"),
    [
        ("entity_relation", "correct", None),
        ("relation", "relation", None),
        ("entity", "correct", ["entity", "relation"]),
        ("entity", "linking", ["relation", "entity"]),
    ],
)
def test_boards_lead_with_the_guaranteed_pair(
    toy: Toy, run: Submission, distribution: str, criterion: str, options: list[str] | None
) -> None:
    toy.track.distribution, toy.track.criterion = distribution, criterion
    toy.track.distributions = options or toy.track.distributions
    toy.track.save()
    wanted = VALUES[distribution] + {"relation": 0.02, "correct": 0.0, "linking": 0.04}[criterion]
    page = Client().get(reverse("board", args=["toy"]))
    assert page.status_code == 200
    assert (page.context["view"].distribution, page.context["view"].criterion) == (
        distribution,
        criterion,
    )
    [row] = page.context["board"].rows
    assert row.figures["precision"].value == pytest.approx(wanted)
    told = Client().get("/api/tracks/toy/board/").json()
    assert (told["distribution"], told["criterion"]) == (distribution, criterion)
    assert told["systems"][0]["precision"]["value"] == pytest.approx(wanted)
    name = Client().get(reverse("board-csv", args=["toy"]))["Content-Disposition"]
    assert f"toy-{distribution}-{criterion}.csv" in name


@pytest.mark.parametrize(
    ("distribution", "criterion"), [("entity_relation", "correct"), ("relation", "relation")]
)
def test_a_submissions_page_leads_with_it_and_names_what_f1_combines(
    toy: Toy, run: Submission, distribution: str, criterion: str
) -> None:
    toy.track.distribution, toy.track.criterion = distribution, criterion
    toy.track.save()
    words = {"entity_relation": "entity × relation", "relation": "every relation"}[distribution]
    page = Client().get(reverse("submission", args=[run.pk]))
    first = page.context["tables"][0]
    assert first["criterion"] == criterion
    precise = [row for row in first["rows"] if row["name"].startswith("Precision")]
    assert (
        precise[0]["guaranteed"]
        and precise[0]["name"] == f"Precision, {words}"
        and len(precise) == 4
    )
    assert not any(
        row["guaranteed"]
        for table in page.context["tables"]
        for row in table["rows"]
        if row != precise[0]
    )
    [f1] = [row for row in first["rows"] if row["name"].startswith("F1")]
    assert f1["name"] == f"F1 of recall and precision, {words}"
    assert f1["figure"].value == precise[0]["figure"].value
    assert page.content.decode().count(">guaranteed<") == 1


@pytest.mark.parametrize(
    ("scope", "footer", "words"),
    [
        ("sentence", "scope: sentence", "within one sentence."),
        ("neighbours", "scope: neighbours", "within one sentence or two that follow each other."),
        ("document", "scope: document", "anywhere in one document."),
    ],
)
def test_recall_names_its_scope(
    toy: Toy, run: Submission, scope: str, footer: str, words: str
) -> None:
    toy.track.scope = scope
    toy.track.save()
    board = Client().get(reverse("board", args=["toy"])).content.decode()
    assert f"2 of 4 documents read in full, {footer})" in board
    told = re.findall(r"(\d+)\s+(?:of them|documents were) read in full", board)
    assert told == ["2", "2"], "as the evaluation says, in all places"
    page = Client().get(reverse("submission", args=[run.pk]))
    said = f"Recall and F1 count facts whose two mentions are {words}"
    with_recall = {row["criterion"] for row in page.context["tables"] if row["scope"]}
    assert with_recall == {"correct", "relation"}, "linking has precision alone"
    assert page.content.decode().count(said) == 2
