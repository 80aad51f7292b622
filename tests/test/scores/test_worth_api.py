"""What metrics are worth over the API: the page's tables, in pages."""

from __future__ import annotations

import csv
import io

import pytest
from django.db import transaction
from django.test import Client

from kbpo import clock
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.web.public.metrics import FIGURES
from tests.test.scores.conftest import World

pytestmark = pytest.mark.django_db
ADDRESS = "/api/tracks/answers/metrics/"


def score(studied: World) -> None:
    with transaction.atomic():
        score_track(studied.track)
    Submission.objects.update(status="scored")
    Label.objects.update(public_at=clock.now())


def test_every_table_of_the_page_is_had_over_the_api(studied: World) -> None:
    score(studied)
    for criterion in ("overall", "edit"):
        for figure in FIGURES:
            chosen = {"format": "csv", "figure": figure, "criterion": criterion}
            file = b"".join(Client().get("/tracks/answers/metrics/", chosen))
            lines = list(csv.DictReader(io.StringIO(file.decode())))
            asked = f"{ADDRESS}?figure={figure}&criterion={criterion}&limit=1000"
            told = Client().get(asked).json()
            assert told["count"] == len(lines) > 0, figure
            assert (told["figure"], told["criterion"]) == (figure, criterion)
            as_text = [
                {name: "" if value is None else str(value) for name, value in row.items()}
                for row in told["results"]
            ]
            assert as_text == lines, figure


def test_what_is_not_there_is_said(studied: World) -> None:
    assert Client().get(ADDRESS).json()["results"] == [], "nothing is scored"
    assert Client().get(ADDRESS).json()["evaluation"] is None
    for name, offered in (("figure", "systems"), ("criterion", "overall")):
        refused = Client().get(ADDRESS, {name: "z"})
        assert refused.status_code == 400 and offered in refused.json()["fields"][name][0]
    studied.track.status = "draft"
    studied.track.save()
    assert Client().get(ADDRESS).status_code == 404
