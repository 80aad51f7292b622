"""The search of every page’s head: into a track’s texts, or for tracks and runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db
SEARCH = "/search/"
FELL = "has no texts that you may search"


def found(client: Client, words: str, **about: object) -> str:
    page = client.get(SEARCH, {"q": words, **about})
    assert page.status_code == 200
    return re.split("<main", page.content.decode())[1]


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the form in the head."""
    form = re.search(r'<form class="top-search" action="/search/".*?</form>', page, re.S)
    assert form and form[0].count('data-key="/"') == 1
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[0]))


def test_every_head_has_a_form_that_says_what_its_page_is_about(
    toy: Toy, client: Client, as_user: As, draft: Draft
) -> None:
    row = draft()
    assert fields_of(client.get(reverse("help")).content.decode()) == {}
    for name in ("track", "board", "guidelines"):
        assert fields_of(client.get(reverse(name, args=["toy"])).content.decode()) == {
            "track": "toy"
        }
    Submission.objects.update(status="judging")
    page = as_user("Rosa").get(reverse("submission", args=[row.pk])).content.decode()
    assert fields_of(page) == {"run": str(row.pk)}
    assert f'href="/search/?run={row.pk}"' in page, "and the menu of a phone leads there"


def test_from_a_track_its_texts_are_searched_and_from_a_run_what_it_predicts(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    row, rosa, tim = draft(), as_user("Rosa"), as_user("Tim")
    texts = reverse("track-documents", args=["toy"])
    asked = {"q": "Mara & Lindt", "track": "toy"}
    assert rosa.get(SEARCH, asked)["Location"] == f"{texts}?q=Mara+%26+Lindt"
    assert rosa.get(SEARCH, {"track": "toy"})["Location"] == texts
    asked = {"q": "Mara", "run": str(row.pk)}
    assert rosa.get(SEARCH, asked)["Location"] == f"{texts}?q=Mara", "nothing is judged of it yet"
    Submission.objects.update(status="judging")
    explorer = reverse("submission-explore", args=[row.pk])
    assert rosa.get(SEARCH, asked)["Location"] == f"{explorer}?q=Mara"
    assert found(tim, "Mara", run=row.pk), "of others' runs nothing is told, not even their track"
    toy.corpus.may_be_downloaded = False
    toy.corpus.save()
    told = found(rosa, "Mara Lindt", track="toy")
    assert "of Toy track" not in told, "nobody may read them"
    assert FELL in told and FELL in found(rosa, "", track="toy") and FELL not in found(rosa, "Mara")


@pytest.mark.parametrize(
    ("private", "anonymous", "stranger"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_runs_are_found_under_the_names_that_whoever_asks_knows(
    draft: Draft, as_user: As, client: Client, private: bool, anonymous: bool, stranger: bool
) -> None:
    row = draft()
    Submission.objects.update(name="Zebra 1", description="By stripes.")
    shown = reverse("submission", args=[row.pk])
    assert shown in found(as_user("Rosa"), "zebra"), "a draft, by its team"
    assert shown not in found(client, "zebra")
    Submission.objects.update(status="scored", is_private=private, is_anonymous=anonymous)
    for words in ("zebra", "stripes", f"1 {row.team.name.lower()}"):
        assert shown in found(as_user("Rosa"), words) and shown in found(as_user("Admin"), words)
        assert (shown in found(client, words)) is stranger
        assert (shown in found(as_user("Tim"), words)) is stranger
    assert shown not in found(as_user("Rosa"), "zebra nowhere"), "every word has to be there"
    Submission.objects.update(deleted_at=row.received_at)
    assert shown not in found(as_user("Rosa"), "zebra")


def test_tracks_are_found_and_drafts_by_admins_alone(toy: Toy, client: Client, as_user: As) -> None:
    shown = f'href="{reverse("track", args=["toy"])}"'
    assert shown in found(client, "toy track") and shown not in found(client, "toy horse")
    Track.objects.update(status="draft")
    assert shown not in found(client, "toy") and shown in found(as_user("Admin"), "toy")
