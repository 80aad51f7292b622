"""A new interface and a new platform are one directory and one line of a registry each: what they
ask is asked, answered, settled and paid, and no other file names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from annotation_world import GOOD, ToyTrack, make_submission, take
from django.template import engines
from django.test import Client
from toys.platforms.corkboard.platform import Corkboard

from annotation.hits import publish
from annotation.interfaces.registry import INTERFACES
from annotation.labels import settle
from annotation.marketplace import pay_out, reconcile
from annotation.models import HIT, Payment, Question, Worker
from annotation.platforms.registry import MARKETPLACES
from annotation.questions import ask
from kbpo.instances.models import Label, Target
from kbpo.money.models import Price
from kbpo.money.spend import balance
from kbpo.tracks.base import Asking, QuestionDraft
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
TOYS = Path(__file__).with_name("toys")


@pytest.fixture
def thumbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the toy interface; here its templates lie with the tests."""
    monkeypatch.setitem(INTERFACES, "thumbs", "toys.interfaces.thumbs.interface.Thumbs")
    engine = engines["django"].engine
    monkeypatch.setattr(engine, "dirs", [*engine.dirs, TOYS])


@pytest.fixture
def corkboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Corkboard]]:
    """The line of the toy platform, and an empty board."""
    monkeypatch.setitem(MARKETPLACES, "corkboard", "toys.platforms.corkboard.platform.Corkboard")
    yield Corkboard
    for kept in (Corkboard.notes, Corkboard.answers, Corkboard.decided):
        kept.clear()


def test_a_question_of_a_toy_interface_is_asked_answered_settled_and_paid(
    thumbs: None,
    track: Track,
    targets: list[Target],
    toy_kind: type[ToyTrack],
    clients: list[Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drafts(
        kind: ToyTrack, target_ids: list[int], submissions: list[int]
    ) -> list[QuestionDraft]:
        payload = {"text": "Ann Lee studied at Elm College."}
        return [QuestionDraft(target, "thumbs", payload) for target in target_ids]

    monkeypatch.setattr(toy_kind, "asking", (Asking("thumbs", Decimal("0.02"), 5),))
    monkeypatch.setattr(toy_kind, "draft_questions", drafts)
    submission = make_submission(track, targets[:1])
    ask.tick()
    publish.tick()
    for client, thumb in zip(clients, ("up", "down", "up"), strict=True):
        address = take(client)
        assert "Ann Lee studied" in client.get(address).content.decode()
        assert client.post(address, {}).status_code == 422, "a thumb is missing"
        client.post(address, {"thumb": thumb})
    settle.tick()
    label = Label.objects.get()
    assert (label.value, label.n) == ({"thumb": "up"}, 3)
    assert [payment.amount for payment in Payment.objects.all()] == [Decimal("0.02")] * 3
    assert balance(purpose=submission.purpose).spent == Decimal("0.06")


def test_a_question_on_a_toy_platform_is_published_answered_settled_and_paid(
    corkboard: type[Corkboard], track: Track, targets: list[Target]
) -> None:
    Track.objects.filter(pk=track.pk).update(platform="corkboard")
    Price.objects.update(fee_rate=Decimal("0.1"))
    submission = make_submission(Track.objects.get(), targets[:2])
    ask.tick()
    publish.tick()
    assert len(corkboard.notes) == 2 and HIT.objects.counts() == {"open": 2}
    raw = {name: value if isinstance(value, list) else [value] for name, value in GOOD.items()}
    for who in ("ada", "bo", "cy"):
        corkboard.answer_all(who, raw)
    reconcile.tick()
    settle.tick()
    assert Question.objects.counts() == {"settled": 2}
    assert set(Worker.objects.values_list("platform", flat=True)) == {"corkboard"}
    pay_out.tick()
    assert set(corkboard.decided.values()) == {"approved"} and len(corkboard.decided) == 6
    assert Payment.objects.counts() == {"paid": 6}
    assert balance(purpose=submission.purpose).spent == Decimal("0.06") * 6
