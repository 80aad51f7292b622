"""Who sees a run: private ones their team alone, but for a release of the closed track, anonymous
ones have a number for a name, and both take part in every estimate.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver, reverse

from kbpo import clock
from kbpo.accounts.models import Audit, Delivery, Token, Webhook
from kbpo.evaluation.run import score_track
from kbpo.sampling.open_track import close_track, freeze_track
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.evaluation.test_withdrawn import judged, same, told
from tests.test.web.scored import make_board
from tests.test.web.test_every_address import PART, patterns

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
SECRETS = ("Zanzibar", "cloves-7", "Spice routes", "zanzibar.example")


@pytest.fixture
def secret(toy: Toy) -> Submission:
    """A scored run of Rosa's among three others, full of words that tell whose it is."""
    make_board(toy, 3)
    row = Submission.objects.get(name="run 1")
    team = toy.teams["Patterns"]
    team.name = SECRETS[0]
    team.save()
    row.team, row.name, row.description = team, SECRETS[1], SECRETS[2]
    row.confirmed_at = clock.now()
    row.paper_url = f"https://{SECRETS[3]}/paper.pdf"
    row.save()
    return row


def public_addresses(row: Submission) -> list[str]:
    """Every address that names nothing but a track, and those of one submission."""
    found = []
    for pattern in sorted(patterns(get_resolver().url_patterns)):
        names = set(PART.findall(pattern))
        if names <= {"slug"} or (names == {"pk"} and "submissions/" in pattern):
            address = re.sub(r"<(\w+:)?slug>", row.track.slug, pattern)
            found.append("/" + re.sub(r"<(\w+:)?pk>", str(row.pk), address))
    assert len(found) > 60
    return found


def revealing_places(client: Client, row: Submission, words: tuple[str, ...]) -> list[str]:
    """The addresses whose answer has one of these words in it."""
    cache.clear()
    client.raise_request_exception = False
    found = []
    for address in public_addresses(row):
        answer = client.get(address)
        body = b"".join(answer) if answer.streaming else answer.content
        found += [address for word in words if word.encode() in body]
    return found


@pytest.mark.parametrize("who", [pytest.param("", marks=pytest.mark.soak), "Tim"])
def test_a_private_run_is_nowhere_for_others(
    who: str, toy: Toy, as_user: As, secret: Submission
) -> None:
    seen = revealing_places(as_user(who), secret, SECRETS)
    board_page = reverse("board", args=["toy"])
    assert {
        board_page,
        reverse("board-csv", args=["toy"]),
        reverse("api-board", args=["toy"]),
        reverse("submission", args=[secret.pk]),
        reverse("compare-track", args=["toy"]),
        reverse("api-board", args=["toy"]),
    } <= set(seen), "a public one is seen"
    secret.is_private = True
    secret.save()
    assert revealing_places(as_user(who), secret, SECRETS) == []
    other = Submission.objects.get(name="run 2")
    assert (
        as_user(who)
        .get(reverse("compare-track", args=["toy"]), {"a": other.pk, "b": secret.pk})
        .status_code
        == 404
    )
    assert f"/submissions/{secret.pk}/" not in as_user(who).get(board_page).content.decode()
    for status in ("confirmed", "judging"):
        secret.move(status)
        assert revealing_places(as_user(who), secret, SECRETS) == [], "nor among those being judged"
    mine = as_user("Rosa").get(reverse("runs")).content.decode()
    assert SECRETS[1] in mine and "private" in mine


@pytest.mark.parametrize("who", [pytest.param("", marks=pytest.mark.soak), "Tim"])
def test_an_anonymous_run_has_a_number_for_a_name(
    who: str, toy: Toy, as_user: As, secret: Submission
) -> None:
    secret.is_anonymous = True
    secret.save()
    assert revealing_places(as_user(who), secret, SECRETS) == []
    alias = f"Anonymous run {secret.pk}"
    for address in (reverse("board", args=["toy"]), reverse("submission", args=[secret.pk])):
        assert alias in as_user(who).get(address).content.decode()
    rows = as_user(who).get(reverse("board", args=["toy"]) + "?sort=name").context["rows"]
    assert rows[0]["submission"] == secret, "it stands where its number stands, not its name"
    own = as_user("Rosa").get(reverse("submission", args=[secret.pk])).content.decode()
    assert f"{SECRETS[0]} {SECRETS[1]}" in own and "anonymous" in own


@pytest.mark.soak
def test_a_private_run_takes_part_in_the_estimates_but_not_in_ranks(toy: Toy) -> None:
    _, rows = judged(toy)
    hidden = rows[1]
    score_track(toy.track)
    before = {row.pk: told(row) for row in rows}
    hidden.is_private = True
    hidden.save()
    evaluation = score_track(toy.track)
    for row in rows:
        assert before[row.pk] and same(before[row.pk], told(row))
    ranked = [stored.systems for stored in evaluation.report.comparisons.values() if stored.best]
    assert ranked and all(hidden.pk not in systems for systems in ranked)
    public = {row.pk for row in rows} - {hidden.pk}
    assert all(set(systems) <= public for systems in ranked)
    rows[0].is_anonymous, rows[0].name = True, SECRETS[1]
    rows[0].save()
    two = {"a": rows[0].pk, "b": rows[2].pk}
    page = Client().get(reverse("compare-track", args=[toy.track.slug]), two)
    assert page.context["rows"] and f"Anonymous run {rows[0].pk}" in page.content.decode()
    assert SECRETS[1] not in page.content.decode()
    close_track(freeze_track(toy.track))
    page = Client().get(reverse("compare-track", args=[toy.track.slug]), two)
    assert SECRETS[1] not in page.content.decode()


@pytest.mark.soak
def test_a_team_compares_its_private_runs_and_nobody_else_does(toy: Toy, as_user: As) -> None:
    """With one another and with the board; what is printed is what the same runs would print in
    public.
    """
    _, rows = judged(toy)
    Submission.objects.update(status="scored", scored_at=clock.now())
    a, other, b = rows
    page, api = reverse("compare-track", args=["toy"]), reverse("api-compare", args=["toy"])
    two = {"a": a.pk, "b": b.pk}
    score_track(toy.track)
    public = Client().get(api, two).json()["differences"]
    assert public
    overlap = Client().get(page, two).context["overlap"]
    Submission.objects.filter(pk__in=two.values()).update(is_private=True)
    score_track(toy.track)
    rosa, program = as_user("Rosa"), Token.create_with_secret(toy.users["Rosa"], "x")[1]
    told = Client().get(api, two, headers={"Authorization": f"Token {program}"}).json()
    for before, now in zip(public, told["differences"], strict=True):
        assert now.pop("told_apart") is None, "of the board's pairs it is none"
        before.pop("told_apart")
        assert now == before
    own = rosa.get(page, two)
    assert own.context["rows"] and own.context["overlap"] == overlap
    assert "private" in own.content.decode()
    assert rosa.get(page, {"a": a.pk, "b": other.pk}).context["rows"], "with one of the board"
    for who, latest in (("Rosa", b), ("Tim", other)):
        assert as_user(who).get(page).context["marked"][0] == latest, "one's own run comes first"
    for who in ("", "Tim"):
        outsider = as_user(who)
        assert outsider.get(page, two).status_code == outsider.get(api, two).status_code == 404
        assert a.name not in outsider.get(page).content.decode()
    assert not {a.pk, b.pk} & {one.pk for one in as_user("Tim").get(page).context["board"]}


def test_a_team_is_told_that_the_release_of_a_closed_track_will_hold_its_private_runs(
    toy: Toy, secret: Submission
) -> None:
    secret.is_private = True
    secret.save()
    track, hook = (
        freeze_track(toy.track),
        Webhook.objects.create(
            user=toy.users["Rosa"], url="https://hooks.example.org/", secret="s"
        ),
    )
    for _ in range(2):  # once, however often it is said
        track = close_track(track)
    told = Delivery.objects.filter(event="release")
    assert sorted(row.user_id for row in told.filter(hook=None)) == sorted(
        secret.team.members.values_list("pk", flat=True)
    )
    assert not Delivery.objects.filter(event="scored"), "that it is scored was told when it was"
    [call] = told.filter(hook=hook)
    assert call.body["submission"]["id"] == secret.pk
    assert "without its name" in call.body["text"] and "withdraw" in call.body["text"]


def test_a_team_publishes_once_and_links_only_pages(
    toy: Toy, as_user: As, secret: Submission
) -> None:
    secret.is_private = True
    secret.save()
    rosa, address = as_user("Rosa"), reverse("submission-edit", args=[secret.pk])
    said = {"name": "open", "description": "", "is_private": "on"}
    for bad in (
        "javascript:alert(1)",
        "ftp://example.org/x",
        "nonsense",
        "https://x.org/" + "y" * 300,
    ):
        answer = rosa.post(address, said | {"paper_url": bad})
        assert answer.status_code in (400, 409), bad
    assert rosa.post(address, said | {"code_url": "https://example.org/code"}).status_code == 302
    secret.refresh_from_db()
    assert (secret.is_private, secret.code_url) == (True, "https://example.org/code")
    assert as_user("Tim").get(reverse("submission", args=[secret.pk])).status_code == 404
    rosa.post(address, {"name": "open", "description": ""})
    secret.refresh_from_db()
    assert not secret.is_private
    assert (Audit.objects.get(what="show").before, Audit.objects.get(what="show").after) == (
        "private",
        "public, by name",
    )
    by_program = {
        "HTTP_AUTHORIZATION": f"Token {Token.create_with_secret(toy.users['Rosa'], 'x')[1]}"
    }
    patch = f"/api/submissions/{secret.pk}/"
    again = rosa.patch(patch, {"private": True}, "application/json", **by_program)  # type: ignore[arg-type]
    assert again.status_code == 409 and "everybody has seen it" in again.content.decode()
    bad_link = rosa.patch(patch, {"code": "javascript:1"}, "application/json", **by_program)  # type: ignore[arg-type]
    assert bad_link.status_code in (400, 409)
    hide = rosa.patch(patch, {"anonymous": True}, "application/json", **by_program)  # type: ignore[arg-type]
    assert hide.status_code == 200 and hide.json()["anonymous"] is True
