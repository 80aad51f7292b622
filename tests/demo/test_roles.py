"""The demo says what its systems are for, whoever has their row in hand at that moment."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connections, transaction

from kbpo.submissions.models import Submission
from rehearsal import demonstrate


@pytest.mark.django_db(transaction=True)
def test_a_role_is_given_once_nobody_holds_the_row_and_else_it_says_why(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Patterns"],
        name="one",
        file="x",
        file_name="x",
        file_size=1,
        user=toy.users["Rosa"],
    )
    held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Submission.objects.select_for_update().get(pk=row.pk)
            held.set()
            may_go.wait(60)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2 * len(demonstrate.PAUSES):  # the second time it is let go at last
            may_go.set()
            holder.join(60)

    monkeypatch.setattr(demonstrate.time, "sleep", wait)
    with pytest.raises(demonstrate.DemoFailed, match="being read just now"):
        demonstrate.give_role(row.pk, "baseline")
    demonstrate.give_role(row.pk, "baseline")
    row.refresh_from_db()
    assert row.role == "baseline"
