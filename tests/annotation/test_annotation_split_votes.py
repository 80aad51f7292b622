"""The clock queues for experts what people were most divided about, as many at once as the track
says.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from annotation_world import PARTS, answer_all
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from annotation.desk import adjudicate, split_votes
from annotation.labels import settle
from annotation.models import Policy
from kbpo.accounts.models import Audit, User
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
YES = {"a": ["0-3"], "b": ["other"], "holds": [PARTS[0]]}
NO = {"a": ["0-3"], "b": ["other"], "none": ["1"]}


@pytest.fixture(autouse=True)
def none_at_random(request: pytest.FixtureRequest, track: Track) -> None:
    """The clock draws nothing at random where that is not what is tested."""
    if "at_random" not in request.fixturenames:
        Policy.objects.create(track=track, random_limit=0)


@pytest.fixture
def at_random() -> None:
    """The clock draws at random as the default is."""


@pytest.fixture
def judged(published: Submission, clients: list[Client], keep: Any) -> Submission:
    """Two of three say yes to everything; of two pairs all are of one mind."""

    def play() -> None:
        for client, said in zip(clients, (YES, YES, NO), strict=True):
            answer_all(client, said)
        settle.tick()
        pairs = Label.objects.filter(target__kind="pair").order_by("pk")
        agreed = list(pairs.values_list("pk", flat=True)[:2])
        Label.objects.filter(pk__in=agreed).update(disagreement=0.0)

    keep("of two pairs all are of one mind", play)
    return published


def later() -> None:
    """The clock may look again."""
    Policy.objects.update(split_looked_at=timezone.now() - timedelta(hours=1))


def test_the_clock_queues_what_people_were_divided_about_and_says_so(judged: Submission) -> None:
    assert split_votes.tick() == 4
    rows = ExpertCheck.objects.filter(kind="disagreement", status="open")
    assert rows.count() == 4 and set(rows.values_list("raised_by", flat=True)) == {None}
    entry = Audit.objects.get(what="queue for experts")
    assert (entry.who, entry.track, entry.why) == (
        None,
        judged.track.slug,
        "The clock keeps up to 20 waiting for experts",
    )
    later()
    assert split_votes.tick() == 0 and rows.count() == 4, "each is queued once"
    assert Audit.objects.filter(what="queue for experts").count() == 1, (
        "and nothing is noted of nothing"
    )


def test_no_more_wait_than_the_track_says_and_an_answer_makes_room(
    judged: Submission, admin: User
) -> None:
    split_votes.set_limit(judged.track, 2, admin, "One expert is away.")
    assert split_votes.tick() == 2
    later()
    assert split_votes.tick() == 0
    adjudicate.answer(ExpertCheck.objects.filter(status="open")[0], YES, admin)
    assert split_votes.tick() == 0, "it looks every ten minutes"
    later()
    assert split_votes.tick() == 1
    assert ExpertCheck.objects.filter(status="open").count() == 2
    entry = Audit.objects.get(what="split votes limit")
    assert (entry.who, entry.before, entry.after, entry.why) == (
        admin,
        "20",
        "2",
        "One expert is away.",
    )


def test_none_leaves_it_to_the_button(judged: Submission, admin: User) -> None:
    split_votes.set_limit(judged.track, 0, admin, "We choose ourselves.")
    assert split_votes.tick() == 0
    assert adjudicate.queue_split_votes(judged.track, 3, admin) == 3
    split_votes.set_limit(judged.track, 2, admin, "Again.")
    assert split_votes.tick() == 0, "what somebody queued counts too"


def test_closed_tracks_are_left_alone_and_a_broken_one_keeps_nobody_waiting(
    judged: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(split_votes, "queue_split_votes", lambda *_, **__: 1 / 0)
        assert split_votes.tick() == 0
    assert Policy.objects.get().split_looked_at is None, "what failed is tried again"
    Track.objects.update(status="closed")
    assert split_votes.tick() == 0
    Track.objects.update(status="open")
    assert split_votes.tick() == 4


@pytest.mark.parametrize(
    ("limit", "why", "sentence"), [(501, "x", "between 0 and 500"), (3, " ", "say why")]
)
def test_a_limit_takes_a_number_and_a_reason(
    judged: Submission, admin: User, limit: int, why: str, sentence: str
) -> None:
    with pytest.raises(adjudicate.CannotAsk, match=sentence):
        split_votes.set_limit(judged.track, limit, admin, why)
    assert Policy.objects.get().split_limit == 20


def at_random_now() -> QuerySet[ExpertCheck]:
    return ExpertCheck.objects.filter(kind="random")


def test_the_clock_mixes_in_what_it_draws_at_random_and_says_so(
    judged: Submission, at_random: None
) -> None:
    """Five of six pairs, each with its chance; among them also what nobody was divided about."""
    assert split_votes.tick() == 4 + 5
    rows = at_random_now()
    assert rows.count() == 5 and set(rows.values_list("round__probability", "raised_by")) == {
        (5 / 6, None)
    }
    assert rows.values("round__seed").distinct().count() == 1 and None not in rows.values_list(
        "round__seed", flat=True
    )
    why = "The clock keeps up to 5 of each kind, drawn at random, waiting for experts"
    assert Audit.objects.get(why=why).after == "5 random, of pairs that were asked alone"
    later()
    assert split_votes.tick() == 0, "they wait"


def test_it_draws_anew_once_half_are_answered_and_each_once(
    judged: Submission, at_random: None, admin: User
) -> None:
    track = judged.track
    split_votes.set_limit(track, 0, admin, "Only random ones.")
    split_votes.set_limit(track, 4, admin, "There is little time.", split_votes.RANDOM)
    assert Audit.objects.get(what="random limit").after == "4"
    assert split_votes.tick() == 4
    adjudicate.answer(at_random_now().filter(status="open")[0], YES, admin)
    later()
    assert split_votes.tick() == 0, "more than half wait"
    adjudicate.answer(at_random_now().filter(status="open")[0], YES, admin)
    later()
    assert split_votes.tick() == 2, "the two that are left, for sure"
    assert (
        sorted(at_random_now().values_list("round__probability", flat=True))
        == [4 / 6] * 4 + [1.0] * 2
    )
    assert at_random_now().values("target").distinct().count() == 6
    while row := at_random_now().filter(status="open").first():
        adjudicate.answer(row, YES, admin)
    later()
    assert split_votes.tick() == 0, "nothing is left to draw"


def test_no_limit_draws_nothing(judged: Submission, at_random: None, admin: User) -> None:
    split_votes.set_limit(judged.track, 0, admin, "We draw ourselves.", split_votes.RANDOM)
    assert split_votes.tick() == 4 and not at_random_now().exists()


def test_a_draw_always_finds_as_many_as_it_says(judged: Submission, admin: User) -> None:
    """One that found nothing would leave no record of the chance that it gave."""
    for left in range(6, 0, -1):
        assert adjudicate.queue_random(judged.track, 1, admin) == 1
        assert at_random_now().latest("pk").round.probability == pytest.approx(1 / left)
