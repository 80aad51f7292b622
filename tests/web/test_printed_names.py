"""A number that is printed of a system has one name: on boards, in mails, over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.models import Team
from kbpo.corpus.models import Corpus
from kbpo.evaluation.leaderboard import headlines
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import class_of
from scoring.report import Figure
from tests.reports import put

SHOWS = "Some passage shows it"


@pytest.fixture
def scored(db: Any) -> Submission:
    """A run on a track of answers, with a score."""
    corpus = Corpus.objects.create(name="Asked", slug="asked", schema={})
    track = Track.objects.create(
        corpus=corpus,
        name="Answers",
        slug="answers",
        kind="answers",
        status="open",
        criterion="any_correct",
        distribution="instance",
        distributions=["instance"],
    )
    team = Team.objects.create(name="Harbor", slug="harbor")
    row = Submission.objects.create(
        track=track, team=team, name="run 1", status="scored", file="x", file_name="x", file_size=1
    )
    evaluation = Evaluation.objects.create(track=track, number=1, standing=[row.pk])
    for criterion in ("any_correct", "avg_correct"):
        ends = {"low80": 0.38, "high80": 0.42, "low95": 0.37, "high95": 0.43}
        figure = Figure(value=0.4, n_labels=80, **ends)
        put(evaluation, row, figure, "mean", criterion, "instance", "centred")
    return row


def test_a_number_is_called_by_what_is_judged_everywhere(scored: Submission) -> None:
    quantity, _ = headlines(scored.track.evaluations.get(), [scored.pk])[scored.pk]
    assert (quantity.label, quantity.in_text) == (SHOWS, f"“{SHOWS}”")
    stranger = Client()
    for name in ("board", "board-embed"):
        page = stranger.get(reverse(name, args=["answers"])).content.decode()
        assert SHOWS in page and "Mean" not in page, name
    board = stranger.get(reverse("api-board", args=["answers"])).json()
    assert [column["label"] for column in board["columns"]] == [SHOWS]


def test_other_numbers_keep_their_names() -> None:
    kbp = class_of("kbp")
    assert [kbp.printed(name, "correct").label for name in ("f1", "precision")] == [
        "F1",
        "Precision",
    ]


def test_no_page_and_no_mail_asks_another_function_for_such_a_name() -> None:
    for room in ("web", "evaluation", "submissions"):
        for path in sorted((Path(__file__).parents[2] / "kbpo" / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            assert ".quantity(kind.mean)" not in text, path
