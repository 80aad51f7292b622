"""The model never replaces a judgment: what has none of its own has no score, wherever scores are
shown.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from kbpo.evaluation.latest import Latest
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Instance, Target
from kbpo.sampling.documents.draw import settle_documents
from kbpo.submissions.models import Submission
from scoring.build import COUNTS_NOT, NO_LABEL, NOT_ALL, OF_BOTH, TOO_FEW
from tests.conftest import Toy
from tests.reports import figures_of, keep
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db
ENDS = ("value", "low80", "high80", "low95", "high95")


def last_sentence(one: Instance) -> bool:
    """What only the newcomer predicts: what begins in the last sentence of each document."""
    said = one.document.text[one.subject_begin : one.subject_end]
    return said.endswith(("x4", "y4"))


@pytest.fixture
def newcomer(toy: Toy) -> tuple[World, Submission, Submission, Target]:
    """A system that is judged, one whose targets wait, and documents that people read in full."""
    world = World(toy, is_study=True, n_documents=8)
    old = world.system("old", lambda one: not last_sentence(one))
    world.answer(world.sample(old))
    old.batches.update(settled_at=timezone.now())
    new = world.system("new", last_sentence, team="Neural")
    waiting = world.sample(new)
    world.read_in_full(world.documents, lambda one: not last_sentence(one))
    settle_documents(world.track, [one.pk for one in world.documents])
    Submission.objects.filter(pk__in=[old.pk, new.pk]).update(status="scored")
    return world, old, new, waiting[0]


def test_without_a_judgment_of_its_own_nothing_is_stored_but_a_note(newcomer: Any) -> None:
    world, old, new, _ = newcomer
    evaluation = score_track(world.track)
    of = {row: figures_of(evaluation, submission=row.pk, slice="").items() for row in (old, new)}
    assert {key.quantity for key, _ in of[new]} >= {"precision", "recall", "f1"}
    for key, one in of[new]:
        assert [getattr(one, end) for end in (*ENDS, "variance")] == [None] * 6, key
        if (
            key.criterion == "linking"
        ):  # the names are settled, in documents that were read; that is no answer yet
            published = {"f1": OF_BOTH, "recall": TOO_FEW, "precision": TOO_FEW}
            if key.method not in ("simple", "joint"):
                published = {}
            elif key.method == "simple":
                published["recall"] = NOT_ALL
            assert one.note == published.get(key.quantity, COUNTS_NOT) and one.n_labels > 0
        else:
            assert one.note == NO_LABEL and one.n_labels == 0 and one.n_missing > 0
    assert all(one.note for _, one in of[old] if one.value is None)
    assert {key.quantity for key, one in of[old] if one.value is not None} >= {
        "precision",
        "recall",
        "f1",
    }


def test_one_judgment_of_its_own_is_enough(newcomer: Any) -> None:
    world, _, new, first = newcomer
    world.answer([first])
    score_track(world.track)
    new.refresh_from_db()
    precision = Latest.read_latest(new).figures["precision", "relation", "instance", "centred"]
    assert precision.n_labels == 1 and precision.value is not None and not precision.note
    assert (
        precision.low80 is not None
        and precision.high80 is not None
        and precision.high80 - precision.low80 > 0.3
    )


def test_boards_files_and_pages_say_unknown(newcomer: Any) -> None:
    world, _, new, _ = newcomer
    score_track(world.track)
    address = reverse("board", args=["world"])
    rows = list(
        csv.DictReader(
            io.StringIO(Client().get(reverse("board-csv", args=["world"])).content.decode())
        )
    )
    [mine] = [row for row in rows if row["system"] == "new"]
    assert {value for name, value in mine.items() if name.rpartition("_")[2] in ENDS} == {""}
    shown = Client().get("/api/tracks/world/board/?distribution=instance").json()
    [told] = [one for one in shown["systems"] if one["name"] == "new"]
    for part in ("f1", "precision", "recall"):
        assert [told[part][end] for end in ENDS] == [None] * 5 and told[part]["note"] == NO_LABEL
    for page in (address, reverse("submission", args=[new.pk])):
        answer = Client().get(page)
        assert answer.status_code == 200 and "nan" not in answer.content.decode().lower().replace(
            "finan", ""
        )
    facts = " ".join(Client().get(address).content.decode().split())
    assert "judged one by one, each by" in facts
    evaluation = world.track.evaluations.latest("pk")
    assert (
        evaluation.report.documents
        and "<code>targets</code> counts these documents’ relations" in facts
    )
    keep(evaluation, documents=0)
    cache.clear()
    assert (
        "<code>targets</code> counts these documents’ relations"
        not in Client().get(address).content.decode()
    )
    schema = Client().get("/api/schema/?format=json").json()
    assert "`targets`" in schema["paths"]["/api/tracks/{slug}/board/"]["get"]["description"]
