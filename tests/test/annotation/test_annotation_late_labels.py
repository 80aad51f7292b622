"""What people say for a track that has closed meanwhile is seen by everybody from its settling on,
and nothing else.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from annotation_world import GOOD, answer_all, make_submission, take
from django.db import connection, transaction
from django.test import Client

from annotation.labels import recount, settle
from annotation.labels.settle import parse_accepted_answers
from annotation.models import Assignment, Question
from kbpo.accounts.models import User
from kbpo.instances.models import Label, Target
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


def everybody_answers(clients: list[Client]) -> None:
    for client in clients:
        answer_all(client)
    settle.tick()


def test_what_settles_after_the_closing_is_public_from_its_settling_on(
    two_published: Submission, clients: list[Client], admin: User
) -> None:
    for client in clients:
        client.post(take(client), GOOD)
    settle.tick()
    early = set(Label.objects.values_list("pk", flat=True))
    assert early and not Label.objects.exclude(public_at=None).exists()
    track = close_track(two_published.track, admin, "The year is over.")
    everybody_answers(clients)
    late = Label.objects.exclude(pk__in=early)
    assert late.exists() and {one.public_at for one in Label.objects.filter(pk__in=early)} == {
        track.closed_at
    }
    for label in late:
        assert label.public_at == label.created_at > track.closed_at, (
            "a label knows since when who could see it"
        )


def another(track: Track, targets: list[Target], name: str = "Other") -> Submission:
    """A submission to another track on the same corpus, with samples of these targets."""
    other = Track.objects.create(
        corpus=track.corpus, name=name, slug=name.lower(), status="open", design=track.design
    )
    return make_submission(other, targets, f"{name}'s")


def test_what_an_open_track_asks_for_itself_stays_hidden(
    two_published: Submission, targets: list[Target], clients: list[Client], admin: User
) -> None:
    closed = another(two_published.track, targets[2:])
    close_track(closed.track, admin, "The year is over.")
    everybody_answers(clients)
    assert Label.objects.exists() and not Label.objects.exclude(public_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_closing_in_the_midst_of_a_settling_hides_nothing(
    two_published: Submission, clients: list[Client], admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The track is closed after the settling looked whether it is, and before the labels are there
    to be seen.
    """
    for client in clients:
        answer_all(client)
    closer = threading.Thread(target=close, args=[two_published.track, admin])
    real = recount.record_labels

    def slowly(labels: Any) -> int:
        closer.start()
        closer.join(1.0)  # it must wait for us; else it has closed now, and has not seen our labels
        return real(labels)

    monkeypatch.setattr(recount, "record_labels", slowly)
    with transaction.atomic():
        parse_accepted_answers(list(Assignment.objects.filter(status="submitted")))
        recount.settle_questions(list(Question.objects.filter(status="answered")))
    closer.join()
    assert Label.objects.exists() and not Label.objects.filter(public_at=None).exists()


def close(track: Track, admin: User) -> None:
    try:
        close_track(track, admin, "The year is over.")
    finally:
        connection.close()
