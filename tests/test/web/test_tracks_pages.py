"""The admins' pages: the desk, people, tracks. Only admins see them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.budget import halts
from kbpo.accounts.models import Audit, Invitation, Team
from kbpo.clock import served
from kbpo.money.models import Budget, Price
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.web.desk import health
from tests.conftest import Toy

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
NEW = {
    "corpus": "toy", "name": "Second", "kind": "kbp", "distribution": "relation",
    "criterion": "correct",
    "target_half_width": "0.050", "design": "iid", "scope": "sentence",
    "workers_per_question": "5", "platform": "pool",
    "budget": "100.00", "team": "20.00", "reward": "0.10", "seconds": "30",
    "why": "For the second season.",
}  # fmt: skip


def test_a_quiet_desk_says_so_and_a_late_row_is_named(as_user: As, draft: Draft) -> None:
    admin = as_user("Admin")
    served.record_beat()
    cache.set(health.COUNT_KEPT, 1, 60)
    assert "Everything is running; nothing failed" in admin.get(reverse("desk")).content.decode()
    row = draft(until="received")
    Submission.objects.filter(pk=row.pk).update(status_since=timezone.now() - timedelta(minutes=27))
    page = admin.get(reverse("desk")).content.decode()
    assert "Read uploads: the oldest of 1 waits 27" in page and 'class="late"' in page


def test_what_was_given_up_stands_with_its_reason_and_can_be_tried_again(
    as_user: As, draft: Draft
) -> None:
    row = draft()
    row.move("failed", "The disk was full.")
    page = as_user("Admin").get(reverse("desk")).content.decode()
    assert "The disk was full." in page and "failed" in page
    as_user("Admin").post(reverse("desk"), {"action": "retry", "kind": "submission", "pk": row.pk})
    row.refresh_from_db()
    assert (row.status, row.reason) == ("planned", "")
    said = Audit.objects.get(what="retry")
    assert (
        said.who is not None
        and said.why == "Tried again from the desk. It had stopped because: The disk was full."
    )


def test_stopping_takes_the_word_and_a_reason(as_user: As, toy: Toy) -> None:
    admin = as_user("Admin")
    admin.post(reverse("desk"), {"action": "stop", "word": "stpo", "why": "prices are wrong"})
    admin.post(reverse("desk"), {"action": "stop", "word": "stop", "why": " "})
    assert not halts.current_halts()
    admin.post(reverse("desk"), {"action": "stop", "word": "stop", "why": "prices are wrong"})
    assert [halt.why for halt in halts.current_halts()] == ["prices are wrong"]
    assert "prices are wrong" in admin.get(reverse("desk")).content.decode()
    admin.post(reverse("desk"), {"action": "resume", "why": " "})
    assert halts.current_halts(), "it goes on for a reason too"
    admin.post(reverse("desk"), {"action": "resume", "why": "It is mended."})
    assert not halts.current_halts()


def test_a_link_for_a_researcher_makes_the_team_that_it_names(as_user: As, toy: Toy) -> None:
    admin = as_user("Admin")
    said = {"role": "researcher", "team": " New  Team ", "uses": "3"}
    assert admin.post(reverse("desk-people"), said).status_code == 302
    invitation = Invitation.objects.get()
    assert invitation.team == Team.objects.get(name="New Team") and invitation.uses_left == 3
    assert (
        reverse("join", args=[invitation.code])
        in admin.get(reverse("desk-people")).content.decode()
    )
    admin.post(reverse("desk-people"), said | {"team": "new team"})
    assert Team.objects.filter(name__iexact="new team").count() == 1
    admin.post(
        reverse("desk-people"),
        {"action": "take-back", "pk": invitation.pk, "why": "It was sent to the wrong list."},
    )
    told = set(Audit.objects.values_list("what", "why"))
    assert told == {
        ("invite", "Invited from the desk."),
        ("withdraw invitation", "It was sent to the wrong list."),
    }
    assert Client().get(reverse("join", args=[invitation.code])).status_code == 410


@pytest.mark.parametrize(
    "said",
    [
        {"role": "admin"},
        {"role": "researcher", "team": "!!"},
        {"role": "annotator", "uses": "0"},
        {"uses": "²"},
    ],
)
def test_a_wrong_invitation_is_refused_in_a_sentence(
    said: dict[str, str], as_user: As, toy: Toy
) -> None:
    page = as_user("Admin").post(reverse("desk-people"), {"role": "annotator"} | said)
    assert (
        page.status_code == 422
        and 'role="alert"' in page.content.decode()
        and not Invitation.objects.exists()
    )


def test_a_study_is_made_for_its_team(as_user: As, toy: Toy) -> None:
    team = toy.teams["Patterns"]
    assert as_user("Admin").post(reverse("desk-track-new"), NEW | {"owner": team.slug})["Location"]
    track = Track.objects.get(name="Second")
    assert track.is_study and track.owner == team and track.runs_in_all is None


def test_a_track_is_made_opened_frozen_and_closed(as_user: As, toy: Toy) -> None:
    admin = as_user("Admin")
    assert "per:place_of_birth" in admin.get(reverse("desk-track-new")).content.decode()
    address = admin.post(reverse("desk-track-new"), NEW)["Location"]
    track = Track.objects.get(name="Second")
    assert address == reverse("desk-track", args=["second"]) and track.status == "draft"
    assert Audit.objects.get(what="make track").why == "For the second season."
    assert (track.distribution, track.workers_per_question) == ("relation", 5)
    assert Price.objects.get(track=track).reward == Decimal("0.10")
    caps = dict(Budget.objects.filter(track=track).values_list("scope", "cap"))
    assert caps == {"track": Decimal("100.00"), "team": Decimal("20.00")}
    assert Client().get(reverse("board", args=["second"])).status_code == 404, "nobody sees a draft"

    assert "spend its budget" in admin.get(address).content.decode()
    unfinished = admin.post(address, {"verb": "open"})
    assert unfinished.status_code == 409
    said = unfinished.content.decode()
    assert "Public page, Reading, for recall is missing" in said
    assert "<li>Public page: Missing: a description, who pays" in said
    word = {"verb": "open", "word": "second"}
    budget = Budget.objects.filter(track=track, scope="track")
    budget.update(cap=0)
    assert "nothing is left of its budget" in admin.post(address, word).content.decode()
    budget.update(cap=100)
    admin.post(address, word)
    assert Client().get(reverse("board", args=["second"])).status_code == 200
    unsaid = admin.post(address, {"verb": "freeze"})
    assert unsaid.status_code == 409 and "Nothing was changed: say why" in unsaid.content.decode()
    admin.post(address, {"verb": "freeze", "why": "The money is spent."})
    page = admin.get(address).content.decode()
    assert "become public" in page and "cannot be undone" in page
    refused = admin.post(address, {"verb": "close", "word": "close"})
    assert refused.status_code == 409 and "type second" in refused.content.decode()
    assert admin.post(address, {"verb": "close", "word": "second"}).status_code == 409, (
        "nobody said why"
    )
    admin.post(address, {"verb": "close", "word": "second", "why": "The year is over."})
    track.refresh_from_db()
    assert track.status == "closed"
    assert admin.post(address, {"verb": "open", "why": "Once more."}).status_code == 409
    moves = Audit.objects.filter(about="track:second", what__startswith="make ").exclude(
        what="make track"
    )
    assert list(moves.order_by("pk").values_list("what", "why")) == [
        ("make open", ""),
        ("make frozen", "The money is spent."),
        ("make closed", "The year is over."),
    ]


WRONG = [
    ({"name": "Toy track"}, "already exists"),
    ({"name": "???"}, "letters or digits"),
    ({"target_half_width": "0.9"}, "less than or equal"),
    ({"workers_per_question": "0"}, "greater than or equal"),
    ({"budget": "-1"}, "greater than or equal"),
    ({"why": " "}, "This field is required"),
    ({"reward": "0"}, "greater than or equal"),
    ({"corpus": "nowhere"}, "valid choice"),
]


def test_a_track_that_is_wrong_says_what(as_user: As, toy: Toy) -> None:
    for wrong, says in WRONG:
        page = as_user("Admin").post(reverse("desk-track-new"), NEW | wrong)
        assert page.status_code == 422 and says in page.content.decode()
        assert Track.objects.count() == 1
