"""A submission's page, and what nobody may learn from it: judgments that their team has not paid
its part of.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.evaluation.models import Evaluation
from kbpo.instances.record import publish_labels
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import OTHERS
from tests.test.web.scored import judge_all, score

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
OPEN = ["submission", "submission?part=live", "submission?format=csv"]
OWN = ["submission-problems", "submission-problems?format=tsv", "submission-edit"]


def at(name: str, pk: int) -> str:
    """The address of a page, whose name may have a query."""
    page, mark, query = name.partition("?")
    return reverse(page, args=[pk]) + mark + query


def confirm(client: Client, row: Submission) -> Submission:
    assert client.post(reverse("upload-confirm", args=[row.pk])).status_code == 302
    row.refresh_from_db()
    assert row.status == "confirmed"
    return row


def judging(row: Submission) -> Submission:
    row.move("judging")
    return row


def scored(toy: Toy, row: Submission) -> Submission:
    row.move("scored")
    score(Evaluation.objects.create(track=toy.track, number=1), row, 0.5)
    return row


def sees(client: Client, row: Submission) -> bool:
    """Whether judgments can be read by any page of the submission."""
    page = client.get(reverse("submission-explore", args=[row.pk]), {"verdict": "judged"})
    told = (
        page.status_code == 200
        and "verdict" in page.content.decode()
        and bool(page.context["rows"])
    )
    for name in OPEN[:2]:
        front = client.get(at(name, row.pk))
        told = told or (front.status_code == 200 and bool((front.context or {}).get("latest")))
    return told


@pytest.mark.parametrize("name", OPEN)
def test_a_scored_one_is_everybodys(name: str, as_user: As, draft: Draft, toy: Toy) -> None:
    row = scored(toy, confirm(as_user("Rosa"), draft()))
    pages = {who: as_user(who).get(at(name, row.pk)) for who in ("Rosa", "Tim", "")}
    assert {page.status_code for page in pages.values()} == {200}
    if "format" in name:
        assert len({page.getvalue() for page in pages.values()}) == 1
        return
    assert "Cost" in pages["Rosa"].content.decode()
    for who in ("Tim", ""):
        told = pages[who].content.decode()
        assert (
            "Cost" not in told
            and "Problems in the file" not in told
            and "Edit description" not in told
        )


@pytest.mark.parametrize("name", OWN)
def test_a_scored_ones_file_stays_its_teams(name: str, as_user: As, draft: Draft, toy: Toy) -> None:
    row = scored(toy, confirm(as_user("Rosa"), draft()))
    assert as_user("Tim").get(at(name, row.pk)).status_code == 404


def test_judgments_of_an_open_shared_track_are_seen_by_admins_alone(
    as_user: As, draft: Draft, toy: Toy
) -> None:
    row = scored(toy, confirm(as_user("Rosa"), draft()))
    judge_all(row)
    assert [name for name in ("Rosa", "Tim", "", "Admin") if sees(as_user(name), row)] == ["Admin"]


def test_a_draft_that_predicts_what_others_paid_for_shows_nothing(
    as_user: As, draft: Draft
) -> None:
    judge_all(judging(confirm(as_user("Rosa"), draft())))
    spy = draft(OTHERS, by="Tim", name="spy")
    assert spy.status == "planned"
    tim = as_user("Tim")
    assert not sees(tim, spy)
    for name in ("upload-check", "upload-check?part=live", "upload-describe", "upload-confirm"):
        page = tim.get(at(name, spy.pk)).content.decode()
        assert "✓ right" not in page and "✗ wrong" not in page and 'class="judgments"' not in page


def test_a_withdrawn_submission_is_gone_for_others(as_user: As, draft: Draft, toy: Toy) -> None:
    row = scored(toy, confirm(as_user("Rosa"), draft()))
    rosa, withdraw = as_user("Rosa"), reverse("submission", args=[row.pk])
    refused = rosa.post(withdraw, {"action": "withdraw"}, follow=True)
    assert "Nothing was withdrawn: type the word withdraw" in refused.content.decode()
    assert as_user("Tim").get(reverse("submission", args=[row.pk])).status_code == 200
    rosa.post(withdraw, {"action": "withdraw", "word": "withdraw"})
    assert as_user("Tim").get(reverse("submission", args=[row.pk])).status_code == 404
    page = as_user("Rosa").get(reverse("submission", args=[row.pk]))
    assert page.status_code == 200 and "Withdrawn" in page.content.decode()


def test_a_closed_track_shows_everybody_what_is_public_and_no_more(
    as_user: As, draft: Draft, toy: Toy
) -> None:
    row = scored(toy, confirm(as_user("Rosa"), draft()))
    toy.track.status = "closed"
    toy.track.save()
    judge_all(row)  # another track on the same corpus is open
    assert not sees(as_user(""), row) and not sees(as_user("Rosa"), row)
    publish_labels(toy.corpus, clock.now())
    cache.clear()  # nothing but the closing itself makes labels public
    page = as_user("").get(reverse("submission-explore", args=[row.pk]), {"verdict": "judged"})
    assert len(page.context["rows"]) == row.predictions.count()
