"""Money moves once, also when the process dies in the middle of settling."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pytest
from annotation_world import answer_all, make_submission, make_target
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from undone import undone

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Assignment, Payment, Question, Response
from annotation.questions import ask
from kbpo import clock
from kbpo.accounts.models import Audit
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.queue import MAX_ATTEMPTS
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """The process is gone: nothing after this line runs, and the transaction is rolled back."""


def dying(function, after: int, before: bool):  # type: ignore[no-untyped-def]
    calls = 0

    def wrapped(*args, **kwargs):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls == after and before:
            raise Killed
        result = function(*args, **kwargs)
        if calls == after:
            raise Killed
        return result

    return wrapped


POINTS = [
    "annotation.labels.settle.note_answer_speed",
    "annotation.labels.recount.record_labels",
    "annotation.budget.accrue.spend_bill_groups",
    "annotation.budget.accrue.Payment.objects.bulk_create",
    "kbpo.queue.MovingQuerySet.move",
    "annotation.labels.recount._close_hits",
    "kbpo.queue._claim_new_rows",
]


@pytest.mark.parametrize(
    ("after", "together"),
    [
        (1, 200),
        pytest.param(1, 1, marks=pytest.mark.soak),
        pytest.param(2, 1, marks=pytest.mark.soak),
    ],
)
def test_a_kill_at_any_point_of_settling_loses_and_doubles_nothing(
    two_published: Submission, clients: list[Client], after: int, together: int
) -> None:
    for client in clients:
        answer_all(client)
    for point, before in product(POINTS, (True, False)):
        with undone():
            _settle_with_a_kill(point, before, after, together)
            left = _what_is_left(two_published)
        assert left == ALL_SETTLED, (point, before)


def _settle_with_a_kill(point: str, before: bool, after: int, together: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        module, _, name = point.rpartition(".")
        owner = _resolve(module)
        patch.setattr(owner, name, dying(getattr(owner, name), after, before))
        patch.setattr(settle, "BATCH", together)
        with pytest.raises(Killed):
            settle.tick()
    settle.tick()


ALL_SETTLED = {
    "questions": {"settled": 2},
    "responses": 6 * 3,
    "labels": 2,
    "payments": 6,
    "spends": 6,
    "spent": Decimal("0.36"),
}


def _what_is_left(submission: Submission) -> dict[str, object]:
    return {
        "questions": Question.objects.counts(),
        "responses": Response.objects.count(),
        "labels": Label.objects.filter(target__kind="pair").count(),
        "payments": Payment.objects.count(),
        "spends": Ledger.objects.filter(kind="spend").count(),
        "spent": balance(purpose=submission.purpose).spent,
    }


def _resolve(path: str) -> object:
    from importlib import import_module

    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            owner: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            owner = getattr(owner, name)
        return owner
    raise ModuleNotFoundError(path)


def test_what_fails_alone_holds_nobody_up(two_published: Submission, clients: list[Client]) -> None:
    for client in clients:
        answer_all(client)
    bad = Assignment.objects.order_by("pk")[3]
    whole = settle.answer_to_question

    def breaks(question: Question, raw: dict) -> dict:
        if raw.get("broken"):
            raise RuntimeError("a bug of ours")
        return whole(question, raw)

    Assignment.objects.filter(pk=bad.pk).update(raw=bad.raw | {"broken": ["1"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "answer_to_question", breaks)
        settle.tick()
        assert Assignment.objects.counts() == {"submitted": 1, "approved": 5}
        bad.refresh_from_db()
        assert bad.status == "submitted" and "internal error (RuntimeError)" in bad.reason
        for _ in range(MAX_ATTEMPTS):
            Assignment.objects.update(next_try_at=clock.now())
            settle.tick()
    assert Assignment.objects.counts() == {"failed": 1, "approved": 5}


def test_what_kills_its_worker_is_given_up_and_takes_nothing_with_it(
    two_published: Submission, clients: list[Client]
) -> None:
    for client in clients:
        answer_all(client)
    bad = Assignment.objects.order_by("pk")[3]
    Assignment.objects.filter(pk=bad.pk).update(raw=bad.raw | {"deadly": ["1"]})
    whole = settle.answer_to_question

    def kills(question: Question, raw: dict) -> dict:
        if raw.get("deadly"):
            raise Killed
        return whole(question, raw)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settle, "answer_to_question", kills)
        for _ in range(MAX_ATTEMPTS):
            with pytest.raises(Killed):
                settle.tick()
        settle.tick()
    assert Assignment.objects.counts() == {"failed": 1, "approved": 5}
    bad.refresh_from_db()
    assert "Started 5 times and never finished" in bad.reason


def test_settling_takes_no_more_queries_for_more_answers(
    track: Track, clients: list[Client]
) -> None:
    """What grows with the answers is Python's work, not the number of round trips to the
    database.
    """
    asked = []
    for begin, n in ((1, 3), (10, 12)):
        make_submission(
            track, [make_target(track, begin + i, 0.05 * i) for i in range(n)], f"Of {n}"
        )
        for tick in (ask.tick, publish.tick):
            tick()
        for client in clients:
            answer_all(client)
        assert Assignment.objects.filter(status="submitted").count() == 3 * n
        with CaptureQueriesContext(connection) as queries:
            settle.tick()
        asked.append(len(queries))
    assert Question.objects.counts() == {"settled": 15}
    # Who answers as fast as a program is warned, once: a row for the person, not for an answer.
    warned = Audit.objects.filter(what="warn").count()
    assert warned <= len(clients)
    assert asked[1] <= asked[0] + 5 + 9 * warned, asked
