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
from kbpo.sampling.distribution import tick as plan
from kbpo.sampling.reprice import reprice
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Problem, Submission
from kbpo.tracks.models import Track
from kbpo.web.research.upload import stem
from tests.conftest import Toy
from tests.web.conftest import GOOD, lines_of

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
    reprice(price, toy.users["Admin"])
    refused = rosa.post(address, read)
    row.refresh_from_db()
    now = row.plan["options"][row.plan["chosen"]]["at_most"]
    said = refused.content.decode()
    assert refused.status_code == 409 and row.status == "planned"
    assert f"at most ${now} now, where ${read['at_most']} was said" in said
    assert f"Confirm, at most ${now}" in said and not Ledger.objects.exists()
    assert rosa.post(address, {"at_most": "nan"}).status_code == 409
    price.reward /= 4
    reprice(price, toy.users["Admin"])
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


def test_a_script_is_answered_in_json(toy: Toy, as_user: As) -> None:
    rosa = as_user("Rosa")
    header = {"X-Requested-With": "upload"}
    taken = upload(rosa, lines_of(toy, GOOD), **header)
    assert taken.json() == {"url": reverse("upload-check", args=[Submission.objects.get().pk])}
    refused = rosa.post(reverse("submit"), {"track": "toy"}, headers=header)
    assert refused.status_code == 422 and "Choose a file" in refused.json()["error"]


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


def test_only_the_first_ten_problems_stand_on_the_page(toy: Toy, as_user: As, draft: Draft) -> None:
    row = draft(body=lines_of(toy, GOOD) + b"{not json}\n" * 30)
    page = as_user("Rosa").get(reverse("upload-check", args=[row.pk])).content.decode()
    assert page.count('class="problem"') == 10 and "Show the other 20" in page
    assert "kbpo validate FILE" in page
    report = as_user("Rosa").get(reverse("submission-problems", args=[row.pk]) + "?format=tsv")
    assert b"".join(report.streaming_content).count(b"syntax.json") == Problem.objects.count() == 30  # type: ignore[arg-type]


def test_the_same_file_again_is_told_and_needs_a_yes(toy: Toy, as_user: As, draft: Draft) -> None:
    first, second = draft(name="first"), draft(name="second")
    rosa = as_user("Rosa")
    page = rosa.get(reverse("upload-check", args=[second.pk])).content.decode()
    assert (
        "very file already" in page
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


def test_of_one_person_a_question_is_said_so(toy: Toy, as_user: As, draft: Draft) -> None:
    row, rosa = draft(), as_user("Rosa")
    for n, words in ((3, "2 people, and a third where they differ"), (1, "1 person")):
        Track.objects.filter(pk=toy.track.pk).update(workers_per_question=n)
        for page in ("upload-check", "upload-confirm"):
            told = rosa.get(reverse(page, args=[row.pk])).content.decode()
            assert f"New judgments, each by {words}" in " ".join(told.split()), page


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


@pytest.mark.parametrize(
    "page", ["upload-check", "upload-describe", "upload-confirm", "upload-file"]
)
def test_nobody_but_its_team_sees_a_draft(page: str, as_user: As, draft: Draft) -> None:
    address = reverse(page, args=[draft().pk])
    assert as_user("Rosa").get(address).status_code == 200
    assert as_user("Admin").get(address).status_code == 200
    assert as_user("Tim").get(address).status_code == 404
    assert as_user("Ada").get(address).status_code == 403
    assert as_user("").get(address).status_code == 302


def test_the_live_part_of_a_refused_upload_is_a_page(as_user: As, draft: Draft) -> None:
    row = draft(body=b"\xff\x00", until="read")
    assert row.status == "refused"
    for page in ("upload-check", "submission"):
        address = reverse(page, args=[row.pk]) + "?part=live"
        assert as_user("Rosa").get(address).status_code in (200, 302, 404)


@pytest.mark.parametrize("page", ["upload-confirm", "upload-check", "upload-describe"])
def test_another_team_cannot_act_on_a_draft(page: str, as_user: As, draft: Draft) -> None:
    row, said = draft(), {"name": "mine", "action": "discard"}
    assert as_user("Tim").post(reverse(page, args=[row.pk]), said).status_code == 404
    row.refresh_from_db()
    assert (row.status, row.name) == ("planned", "run") and not Ledger.objects.exists()


def test_people_without_a_team_are_told_what_to_do(toy: Toy, as_user: As) -> None:
    for name, says in (("Ada", "Ask for a team"), ("Rosa", "belongs to no team")):
        toy.teams["Patterns"].members.clear()
        page = as_user(name).get(reverse("submit"))
        assert page.status_code == 403 and says in page.content.decode()
    assert as_user("").get(reverse("submit"))["Location"].startswith(reverse("login"))


def test_a_track_that_takes_nothing_is_not_offered(toy: Toy, as_user: As, draft: Draft) -> None:
    row = draft()
    Track.objects.update(status="frozen")
    assert b"No track takes submissions" in as_user("Rosa").get(reverse("submit")).content
    assert b"frozen and takes no submissions" in upload(as_user("Rosa"), b"x").content
    rosa, refusal = as_user("Rosa"), Track.objects.get().refusal
    for step in ("upload-describe", "upload-confirm"):
        told = rosa.post(reverse(step, args=[row.pk]), follow=True).content.decode()
        assert refusal in told and "What it will cost" not in told and "Continue" not in told
    runs = rosa.get(reverse("runs")).content.decode()
    assert refusal in runs and "Look and confirm" not in runs and "at most" not in runs
    assert not Ledger.objects.exists()


def test_whoever_asks_for_a_track_that_takes_nothing_reads_so_and_sees_no_way_in(
    toy: Toy, as_user: As
) -> None:
    Track.objects.create(name="Other", slug="other", corpus=toy.track.corpus, status="open")
    Track.objects.filter(slug="toy").update(status="frozen")
    rosa = as_user("Rosa")
    page = rosa.get(reverse("submit") + "?track=toy").content.decode()
    assert "is frozen and takes no submissions now" in page
    assert '<option value="">Choose a track</option>' in page and "selected" not in page
    assert 'type="hidden" name="track"' not in page and "Other</h2>" not in page
    unknown = rosa.get(reverse("submit") + "?track=nowhere").content.decode()
    assert "There is no track at this address." in unknown and "selected" not in unknown
    refused = upload(rosa, b"x").content.decode()
    assert "is frozen and takes no submissions now" in refused and "selected" not in refused
    for name in ("track", "board"):
        page = rosa.get(reverse(name, args=["toy"])).content.decode()
        assert f"{reverse('submit')}?track=toy" not in page
        assert "?track=other" in rosa.get(reverse(name, args=["other"])).content.decode()


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


def test_the_example_file_is_one_that_the_track_accepts(as_user: As, draft: Draft) -> None:
    body = as_user("").get(reverse("upload-example", args=["toy"])).content
    row = draft(body=body)
    assert row.status == "planned" and row.counts["relations"] > 1 and not row.counts["errors"]


def test_a_target_in_the_url_changes_the_price(as_user: As, draft: Draft) -> None:
    row, rosa = draft(), as_user("Rosa")
    address = reverse("upload-check", args=[row.pk])
    assert "Sample for ±2" in rosa.get(f"{address}?target=0.020").content.decode()
    page = rosa.get(f"{address}?target=nonsense").content.decode()
    assert "Sample for ±3" in page and "the most that it can take" in page


def test_the_name_of_a_run_is_its_files_without_endings() -> None:
    names = ("TeamC_4.kb.tsv.gz", "a/b.jsonl", ".gz", "C:\\x\\run.7")
    assert [stem(one) for one in names] == ["TeamC_4", "b", ".gz", "run.7"]
