"""Submitting a system, from the file to the price that is confirmed."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from kbpo.money.models import Budget, Ledger, Price
from kbpo.sampling.plan import set_price
from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from tests.conftest import Toy
from tests.test.web.conftest import GOOD, lines_of

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db


def upload(
    client: Client, body: bytes, name: str = "patterns_1.jsonl", key: str = "k1", **headers: str
):
    file = SimpleUploadedFile(name, body)
    return client.post(
        reverse("submit"), {"track": "toy", "file": file, "key": key}, headers=headers
    )


def test_a_file_is_read_priced_described_and_confirmed(toy: Toy, as_user: As) -> None:
    rosa = as_user("Rosa")
    assert b"Drop a knowledge base" in rosa.get(reverse("submit") + "?track=toy").content
    answer = upload(rosa, lines_of(toy, GOOD))
    row = Submission.objects.get()
    assert answer.status_code == 302 and answer["Location"] == reverse(
        "upload-check", args=[row.pk]
    )
    waiting = rosa.get(answer["Location"]).content.decode()
    assert "data-live=" in waiting and "Waiting to be read" in waiting

    ingest()
    plan()
    checked = rosa.get(reverse("upload-check", args=[row.pk])).content.decode()
    assert "data-live-done" in checked and "Continue to description" in checked
    assert "Read within 1\xa0s" in checked, "not within 0 s"
    row.refresh_from_db()
    price = Decimal(row.plan["options"]["0.050"]["at_most"])
    assert price > 0

    about = {"name": "One", "description": "D"}
    described = rosa.post(reverse("upload-describe", args=[row.pk]) + "?target=0.050", about)
    assert described["Location"] == reverse("upload-confirm", args=[row.pk]) + "?target=0.050"
    assert f"Confirm, at most ${price}" in rosa.get(described["Location"]).content.decode()
    assert not Ledger.objects.exists(), "no page before this one spends"
    confirmed = rosa.post(described["Location"])
    assert confirmed["Location"] == reverse("submission", args=[row.pk])
    row.refresh_from_db()
    assert (row.status, row.name, row.target_half_width) == ("confirmed", "One", Decimal("0.050"))
    assert Ledger.objects.get().amount == price


def test_a_second_press_on_confirm_reserves_nothing_more(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    row, rosa = draft(), as_user("Rosa")
    address = reverse("upload-confirm", args=[row.pk])
    assert [rosa.post(address).status_code for _ in range(3)] == [302, 302, 302]
    assert Ledger.objects.count() == 1


def test_a_price_that_rose_since_the_page_was_read_is_not_confirmed(
    as_user: As, draft: Draft, toy: Toy
) -> None:
    row, rosa, price = draft(), as_user("Rosa"), Price.objects.get(track=toy.track)
    address = reverse("upload-confirm", args=[row.pk])
    read = dict(re.findall(r'name="(at_most)" value="([^"]*)"', rosa.get(address).content.decode()))
    price.reward *= 2
    set_price(price, toy.users["Admin"])
    refused = rosa.post(address, read)
    row.refresh_from_db()
    now = row.plan["options"][row.plan["chosen"]]["at_most"]
    said = refused.content.decode()
    assert refused.status_code == 409 and row.status == "planned"
    assert f"at most ${now} now, where ${read['at_most']} was said" in said
    assert f"Confirm, at most ${now}" in said and not Ledger.objects.exists()
    assert rosa.post(address, {"at_most": "nan"}).status_code == 409
    price.reward /= 4
    set_price(price, toy.users["Admin"])
    assert rosa.post(address, read).status_code == 302
    row.refresh_from_db()
    assert Ledger.objects.get().amount == Decimal(row.plan["options"]["0.050"]["at_most"])
    assert Ledger.objects.get().amount < Decimal(read["at_most"]), "less is at most that, too"


def test_the_same_form_sent_twice_is_one_upload_and_another_file_is_another(
    toy: Toy, as_user: As
) -> None:
    rosa = as_user("Rosa")
    addresses = {upload(rosa, lines_of(toy, GOOD))["Location"] for _ in range(2)}
    assert len(addresses) == 1 and Submission.objects.count() == 1
    upload(rosa, lines_of(toy, GOOD[:2]))
    assert Submission.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02PNG" * 50, "not UTF-8"),
        (gzip.compress(b'{"doc": "d1"}\n' * 5000)[:60], "gzip"),
        (b"<html>no</html>\n", "XML"),
        (
            (
                b'{"doc": "nowhere", "subject": [0, 4], "predicate": "per:parents", "object": [5,'
                b" 9]}\n"
            ),
            "corpus",
        ),
    ],
    ids=["empty", "binary", "truncated", "a page", "of another corpus"],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(
    body: bytes, says: str, as_user: As, draft: Draft
) -> None:
    row = draft(body=body)
    assert row.status == "refused"
    page = as_user("Rosa").get(reverse("upload-check", args=[row.pk]))
    assert page.status_code == 200
    assert "This file cannot be used" in page.content.decode() and says in page.content.decode()
    assert "Traceback" not in page.content.decode()
    assert "until you delete it" in page.content.decode() and "stored" not in page.content.decode()
    assert as_user("Rosa").get(reverse("upload-describe", args=[row.pk])).status_code == 302


def test_bad_lines_are_named_and_the_good_ones_may_be_evaluated(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    bad = (
        b'{"doc": "d1", "subject": [0, 9999], "predicate": "per:parents", "object": [5, 9]}\n{not'
        b" json}\n"
    )
    row = draft(body=lines_of(toy, GOOD) + bad)
    rosa = as_user("Rosa")
    page = rosa.get(reverse("upload-check", args=[row.pk])).content.decode()
    assert (
        "2 lines have errors" in page
        and "Evaluate the 4 good ones" in page
        and "syntax.json" in page
    )
    assert rosa.get(reverse("upload-describe", args=[row.pk]) + "?lines=mend").status_code == 302
    address = reverse("upload-confirm", args=[row.pk])
    refused = rosa.post(address)
    assert refused.status_code == 409 and "good lines" in refused.content.decode()
    assert not Ledger.objects.exists()
    assert rosa.post(address, {"good_lines": "1"}).status_code == 302
    assert Submission.objects.get(pk=row.pk).good_lines_only


def test_the_same_file_again_is_told_and_needs_a_yes(toy: Toy, as_user: As, draft: Draft) -> None:
    first, second = draft(name="first"), draft(name="second")
    rosa = as_user("Rosa")
    page = rosa.get(reverse("upload-check", args=[second.pk])).content.decode()
    assert (
        "already submitted this file" in page
        and reverse("submission", args=[first.pk]) in page
        and "all the same" in page
    )
    address = reverse("upload-confirm", args=[second.pk])
    assert rosa.post(address).status_code == 409
    assert rosa.post(address, {"again": "1"}).status_code == 302


def test_a_price_above_the_cap_is_not_confirmed(toy: Toy, as_user: As, draft: Draft) -> None:
    row = draft()
    Budget.objects.create(
        track=toy.track, scope="team", team=toy.teams["Patterns"], cap=Decimal("0.05")
    )
    page = as_user("Rosa").get(reverse("upload-confirm", args=[row.pk])).content.decode()
    assert "disabled" in page and "$0.05 is left under your team" in page
    refused = as_user("Rosa").post(reverse("upload-confirm", args=[row.pk]))
    assert refused.status_code == 409 and "This needs $" in refused.content.decode()
    assert not Ledger.objects.exists() and Submission.objects.get(pk=row.pk).status == "planned"


def test_a_draft_can_be_discarded_and_a_confirmed_one_cannot(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    one, other = draft(name="one"), draft(GOOD[:3], name="other")
    rosa = as_user("Rosa")
    assert b"one.jsonl" in rosa.get(reverse("submit")).content
    rosa.post(reverse("upload-check", args=[one.pk]), {"action": "discard"})
    assert Submission.objects.get(pk=one.pk).status == "withdrawn"
    rosa.post(reverse("upload-confirm", args=[other.pk]))
    rosa.post(reverse("upload-check", args=[other.pk]), {"action": "discard"})
    assert Submission.objects.get(pk=other.pk).status == "confirmed"
    assert b"jsonl</a>" not in rosa.get(reverse("submit")).content


def test_a_track_that_takes_nothing_is_not_offered(toy: Toy, as_user: As, draft: Draft) -> None:
    row = draft()
    Track.objects.update(status="frozen")
    assert b"No track accepts submissions" in as_user("Rosa").get(reverse("submit")).content
    assert b"frozen and takes no submissions" in upload(as_user("Rosa"), b"x").content
    rosa, refusal = as_user("Rosa"), Track.objects.get().refusal
    for step in ("upload-describe", "upload-confirm"):
        told = rosa.post(reverse(step, args=[row.pk]), follow=True).content.decode()
        assert refusal in told and "<h2>Cost</h2>" not in told and "Continue" not in told
    runs = rosa.get(reverse("runs")).content.decode()
    assert refusal in runs and "Look and confirm" not in runs and "at most" not in runs
    assert not Ledger.objects.exists()


def test_whoever_is_in_two_teams_says_for_which_a_file_is(toy: Toy, as_user: As) -> None:
    other, rosa = toy.teams["Neural"], as_user("Rosa")
    assert 'name="team"' not in rosa.get(reverse("submit") + "?track=toy").content.decode()
    other.members.add(toy.users["Rosa"])
    link = f"{reverse('submit')}?team={other.slug}"
    assert link in rosa.get(f"{reverse('runs')}?team={other.slug}").content.decode()
    page = rosa.get(link).content.decode()
    assert f'<option value="{other.slug}" selected>' in page
    file = SimpleUploadedFile("mine.jsonl", lines_of(toy, GOOD))
    said = {"track": "toy", "file": file, "key": "k", "team": other.slug}
    rosa.post(reverse("submit"), said)
    assert Submission.objects.get().team == other
    assert rosa.post(reverse("submit"), said | {"team": "no-such"}).status_code == 404
