"""However long a scoring takes, answers are settled and people are paid meanwhile."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from annotation_world import answer_all
from django.db import connection
from django.test import Client
from test_annotation_locks import Beside

from annotation.labels import settle
from annotation.models import Assignment, Question
from kbpo.evaluation import run
from kbpo.evaluation.models import Evaluation
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.data import Data

pytestmark = pytest.mark.django_db(transaction=True)


def test_answers_are_settled_and_paid_while_a_scoring_is_held_open(
    two_published: Submission,
    clients: list[Client],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    settings.DEBOUNCE_SECONDS = 0
    begun, go = threading.Event(), threading.Event()

    def read_slowly(track: Track) -> Data:
        begun.set()
        go.wait(60)
        raise RuntimeError("a scoring that took long, and came to nothing")

    monkeypatch.setattr(run, "read", read_slowly)
    scoring = Beside(run.tick)
    try:
        assert begun.wait(60), "nothing was scored"
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '5s'")
        sent = sum(answer_all(client) for client in clients)
        assert sent
        while settle.tick():
            pass
        assert scoring.is_alive()
        assert set(Question.objects.values_list("status", flat=True)) == {"settled"}
        assert set(Assignment.objects.values_list("status", flat=True)) == {"approved"}
        assert Label.objects.exists()
        assert Ledger.objects.filter(key__startswith="assignment:").count() >= sent
        assert not Evaluation.objects.exists()
    finally:
        go.set()
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    scoring.ended()
