"""Money moves once, also when the process dies in the middle of settling."""

from __future__ import annotations

from decimal import Decimal

import pytest
from annotation_world import answer_all
from django.test import Client

from annotation import settle
from annotation.models import Payment, Question, Response
from kbpo.instances.models import Label
from kbpo.money.models import Ledger
from kbpo.money.spend import balance
from kbpo.submissions.models import Submission

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
    ("annotation.settle.note_signals", True), ("annotation.settle.note_signals", False),
    ("annotation.settle.record", True), ("annotation.settle.record", False),
    ("annotation.settle.spend", True), ("annotation.settle.spend", False),
    ("annotation.settle.Payment.objects.get_or_create", True),
    ("annotation.settle.Payment.objects.get_or_create", False), ("annotation.models.Assignment.move", True),
    ("annotation.models.Assignment.move", False), ("annotation.models.Question.move", True),
    ("annotation.models.Question.move", False), ("kbpo.queue._claim", False),
]  # fmt: skip


@pytest.mark.parametrize(("point", "before"), POINTS)
@pytest.mark.parametrize("after", [1, 2])
def test_a_kill_at_any_point_of_settling_loses_and_doubles_nothing(
    two_published: Submission, clients: list[Client], point: str, before: bool, after: int
) -> None:
    for client in clients:
        answer_all(client)
    with pytest.MonkeyPatch.context() as patch:
        module, _, name = point.rpartition(".")
        owner = _resolve(module)
        patch.setattr(owner, name, dying(getattr(owner, name), after, before))
        with pytest.raises(Killed):
            settle.tick()
    settle.tick()
    assert Question.objects.counts() == {"settled": 2}
    assert Response.objects.count() == 6 * 3
    assert Label.objects.filter(target__kind="pair").count() == 2
    assert Payment.objects.count() == 6
    assert Ledger.objects.filter(kind="spend").count() == 6
    assert balance(purpose=two_published.purpose).spent == Decimal("0.36")


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
