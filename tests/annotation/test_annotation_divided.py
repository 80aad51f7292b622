"""The clock queues for experts what people were most divided about, as many at once as the track says."""

from __future__ import annotations

from datetime import timedelta

import pytest
from annotation_world import PARTS, answer_all
from django.test import Client
from django.utils import timezone

from annotation import adjudicate, divided, settle
from annotation.models import Adjudication, Policy
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
YES = {"a": ["0-3"], "b": ["other"], "holds": [PARTS[0]]}
NO = {"a": ["0-3"], "b": ["other"], "none": ["1"]}


@pytest.fixture
def judged(published: Submission, clients: list[Client]) -> Submission:
    """Two of three say yes to everything; of two pairs all are of one mind."""
    for client, said in zip(clients, (YES, YES, NO), strict=True):
        answer_all(client, said)
    settle.tick()
    agreed = Label.objects.filter(target__kind="pair").order_by("pk").values_list("pk", flat=True)[:2]
    Label.objects.filter(pk__in=list(agreed)).update(disagreement=0.0)
    return published


def later() -> None:
    """The clock may look again."""
    Policy.objects.update(divided_at=timezone.now() - timedelta(hours=1))


def test_the_clock_queues_what_people_were_divided_about_and_says_so(judged: Submission) -> None:
    assert divided.tick() == 4
    rows = Adjudication.objects.filter(kind="disagreement", status="open")
    assert rows.count() == 4 and set(rows.values_list("raised_by", flat=True)) == {None}
    entry = Audit.objects.get(what="queue for experts")
    assert (entry.who, entry.track, entry.why) == (
        None, judged.track.slug, "The clock keeps up to 20 waiting for experts",
    )  # fmt: skip
    later()
    assert divided.tick() == 0 and rows.count() == 4, "each is queued once"
    assert Audit.objects.filter(what="queue for experts").count() == 1, "and nothing is noted of nothing"


def test_no_more_wait_than_the_track_says_and_an_answer_makes_room(judged: Submission, admin: User) -> None:
    divided.set_limit(judged.track, 2, admin, "One expert is away.")
    assert divided.tick() == 2
    later()
    assert divided.tick() == 0
    adjudicate.answer(Adjudication.objects.filter(status="open")[0], YES, admin)
    assert divided.tick() == 0, "it looks every ten minutes"
    later()
    assert divided.tick() == 1
    assert Adjudication.objects.filter(status="open").count() == 2
    entry = Audit.objects.get(what="divided limit")
    assert (entry.who, entry.before, entry.after, entry.why) == (admin, "20", "2", "One expert is away.")


def test_none_leaves_it_to_the_button(judged: Submission, admin: User) -> None:
    divided.set_limit(judged.track, 0, admin, "We choose ourselves.")
    assert divided.tick() == 0
    assert adjudicate.queue_divided(judged.track, 3, admin) == 3
    divided.set_limit(judged.track, 2, admin, "Again.")
    assert divided.tick() == 0, "what somebody queued counts too"


def test_closed_tracks_are_left_alone_and_a_broken_one_keeps_nobody_waiting(
    judged: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(divided, "queue_divided", lambda *_, **__: 1 / 0)
        assert divided.tick() == 0
    assert not Policy.objects.exists(), "what failed is tried again"
    Track.objects.update(status="closed")
    assert divided.tick() == 0
    Track.objects.update(status="open")
    assert divided.tick() == 4


@pytest.mark.parametrize(("limit", "why", "sentence"), [(501, "x", "between 0 and 500"), (3, " ", "say why")])
def test_a_limit_takes_a_number_and_a_reason(
    judged: Submission, admin: User, limit: int, why: str, sentence: str
) -> None:
    with pytest.raises(adjudicate.CannotAsk, match=sentence):
        divided.set_limit(judged.track, limit, admin, why)
    assert not Policy.objects.exists()
