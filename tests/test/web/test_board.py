"""The leaderboard as a page: who sees it, what its switches do, how many questions it asks the
database.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.accounts.models import Team
from kbpo.evaluation.leaderboard import read_board
from kbpo.evaluation.models import Evaluation
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.report import TOO_FEW_YET, Figure
from tests.conftest import Toy
from tests.reports import drop, put, rank, update
from tests.test.web.scored import make_board, score

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db


def test_a_board_without_systems_or_tracks_says_what_comes(toy: Toy, as_user: As) -> None:
    assert "The first one sets the scale" in as_user("").get(reverse("home")).content.decode()
    toy.track.status = "draft"
    toy.track.save()
    assert "No track is open yet" in as_user("").get(reverse("home")).content.decode()
    assert as_user("").get(reverse("board", args=["toy"])).status_code == 404


def test_the_home_page_is_the_board_with_most_to_show(toy: Toy, as_user: As) -> None:
    """A track that was opened a minute ago took the home page, with nothing on its board."""
    new = Track.objects.create(corpus=toy.corpus, name="New", slug="new", status="open")

    def at_home() -> Track:
        return as_user("").get(reverse("home")).context["track"]

    assert at_home() == new, "of empty boards the newest"
    make_board(toy, 1)
    for status in ("open", "frozen", "closed"):
        Track.objects.filter(pk=toy.track.pk).update(status=status)
        assert at_home() == toy.track
    run = Submission.objects.get()
    run.pk, run.track, run.team = None, new, Team.objects.create(name="B", slug="b")
    run.save()
    assert at_home() == new, "of boards with systems one that takes more of them"


def test_the_best_stands_first_and_a_sort_is_in_the_url(toy: Toy, as_user: As) -> None:
    make_board(toy, 3)
    rows = as_user("").get(reverse("board", args=["toy"])).context["rows"]
    assert [row["submission"].name for row in rows] == ["run 2", "run 1", "run 0"]
    rows = as_user("").get(reverse("board", args=["toy"]) + "?sort=name").context["rows"]
    assert [row["submission"].name for row in rows] == ["run 0", "run 1", "run 2"]


@pytest.mark.parametrize(
    "query", ["distribution=x", "criterion=x", "level=99", "sort=x", "distribution=%00"]
)
def test_a_switch_that_does_not_exist_is_a_404_with_a_sentence(
    query: str, toy: Toy, as_user: As
) -> None:
    page = as_user("").get(reverse("board", args=["toy"]) + "?" + query)
    assert page.status_code == 404 and "This board has no" in page.content.decode()


def csv_of(answer: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


@pytest.mark.parametrize("query", ["", "?sort=name&distribution=entity_relation&level=95"])
def test_the_files_have_what_the_page_shows(query: str, toy: Toy, as_user: As) -> None:
    evaluation, anybody = make_board(toy, 3), as_user("")
    systems = list(Submission.objects.order_by("pk").values_list("pk", flat=True))
    ranking: dict[str, Any] = {
        "systems": systems,
        "best": [3, 1, 1],
        "worst": [3, 2, 2],
        "groups": [systems[1:]],
        "level": 0.8,
    }
    rank(evaluation, "f1", "correct", **ranking)
    page = anybody.get(reverse("board", args=["toy"]) + query)
    table = csv_of(anybody.get(reverse("board-csv", args=["toy"]) + query))
    told = anybody.get(reverse("api-board", args=["toy"]) + query.replace("&level=95", "")).json()
    assert len(page.context["rows"]) == len(table) == len(told["systems"]) == 3
    for shown, line, system in zip(page.context["rows"], table, told["systems"], strict=True):
        assert (
            shown["submission"].pk == system["submission"]
            and shown["submission"].name == line["system"]
        )
        best, worst = system["rank"]
        assert shown["rank"] == (f"{best}–{worst}" if best < worst else f"{best}")
        assert [line["rank_best"], line["rank_worst"]] == [str(best), str(worst)]
        assert shown["judged"] == int(line["labels"]) == system["precision"]["n_labels"] == 80
        for part in ("f1", "precision", "recall", "simple", "joint"):
            drawn = shown["figures"][part]
            for end, value in (
                ("value", drawn.estimate),
                ("low80", drawn.low80),
                ("high95", drawn.high95),
            ):
                assert value == system[part][end] == float(line[f"{part}_{end}"])
    tied = [systems[:0:-1]] if not query else []  # sorted by name there is nothing to join
    assert told["cannot_be_told_apart"] == tied and told["level"] == 0.8


def test_a_reader_who_comes_back_gets_no_page_again(toy: Toy, client: Client) -> None:
    make_board(toy, 2)
    first = client.get(reverse("board", args=["toy"]))
    again = client.get(reverse("board", args=["toy"]), headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304


def test_a_withdrawn_system_leaves_the_board(toy: Toy, as_user: As) -> None:
    make_board(toy, 2)
    Submission.objects.get(name="run 1").move("withdrawn")
    assert "Team 1 run 1" not in as_user("").get(reverse("board", args=["toy"])).content.decode()


@pytest.mark.parametrize(
    ("sort", "joined"), [("f1", True), ("precision", True), ("name", False), ("recall", False)]
)
def test_without_f1_ties_are_told_in_the_order_of_precision(
    sort: str, joined: bool, toy: Toy
) -> None:
    """A board that is sorted by F1, as it is by itself, stands by precision where no system has an
    F1.
    """
    evaluation = make_board(toy, 3)
    drop(evaluation, quantity=["f1", "recall"])
    first, second, third = Submission.objects.order_by("-pk").values_list("pk", flat=True)
    told: dict[str, Any] = {
        "systems": [third, second, first],
        "best": [3, 1, 1],
        "worst": [3, 2, 2],
        "groups": [[first, second]],
        "level": 0.95,
    }
    rank(evaluation, "precision", "correct", **told)
    shown = read_board(
        toy.track, distribution=toy.track.distribution, criterion="correct", sort=sort
    )
    assert shown.groups == ([[0, 1]] if joined else [])
    assert {row.submission.pk: row.rank for row in shown.rows} == {
        first: (1, 2),
        second: (1, 2),
        third: (3, 3),
    }


def test_what_experts_corrected_stands_beside_what_the_crowd_said(toy: Toy, as_user: As) -> None:
    evaluation = make_board(toy, 2)
    address = reverse("board", args=["toy"])
    before = as_user("").get(address).content.decode()
    assert "corrected" not in before.lower(), "a track without expert checks says nothing of them"
    best = Submission.objects.order_by("-pk").first()
    assert best is not None
    ends = {"low80": 0.30, "high80": 0.37, "low95": 0.28, "high95": 0.39}
    of = ("precision", "correct", toy.track.distribution, "expert")
    put(evaluation, best, Figure(value=0.337, n_labels=80, **ends), *of)
    page = as_user("").get(address)
    text = page.content.decode()
    assert text.count('class="corrected"') == 1 and "33.7" in text
    assert "“Corrected”: corrected for annotators’ errors" in text
    assert [row["figures"]["expert"].estimate for row in page.context["rows"]] == [0.337, None]


@pytest.fixture
def kept(settings: Any) -> None:
    """Readers without an account share a board for a long while."""
    settings.PAGES_KEPT_SECONDS = 100_000_000


@pytest.mark.usefixtures("kept")
def test_readers_who_are_nobody_in_particular_share_a_page(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_board(toy, 3)
    address = reverse("board", args=["toy"])
    packs = {"Accept-Encoding": "gzip"}
    assert Client().get(reverse("home"), headers=packs).status_code == 200
    first = Client().get(address, headers=packs)
    with CaptureQueriesContext(connection) as asked, monkeypatch.context() as patch:
        patch.setattr(gzip, "compress", None)  # what is shared was compressed once
        # Redis is asked once, for all of it
        patch.setattr("kbpo.web.kept.cache", None)
        second = Client().get(address, {"made": "up"}, headers=packs)
        again = Client().get(address, headers=packs | {"If-None-Match": second["ETag"]})
        empty = Client(headers={"Cookie": "sessionid="}).get(address, headers=packs)
        home = Client().get(reverse("home"), headers=packs)
    assert not asked.captured_queries
    assert second["Content-Encoding"] == "gzip" and "Cookie" in second["Vary"]
    assert second.content == first.content == empty.content and home.status_code == 200
    assert gzip.decompress(second.content) == Client().get(address).content
    assert again.status_code == 304 and not again.content
    other = Client().get(address, {"level": "95"})
    assert other.status_code == 200 and other["ETag"] != second["ETag"]


@pytest.mark.usefixtures("kept")
def test_a_page_for_somebody_is_nobody_elses(toy: Toy, as_user: As) -> None:
    make_board(toy, 2)
    address = reverse("board", args=["toy"])
    shared = as_user("").get(address).content.decode()
    own = as_user("Rosa").get(address)
    assert "rosa" in own.content.decode() and "rosa" not in shared
    assert "rosa" not in as_user("").get(address).content.decode()
    assert as_user("Rosa").get(address)["ETag"] != as_user("").get(address)["ETag"]


def _publish(toy: Toy) -> None:
    evaluation = Evaluation.objects.create(track=toy.track, number=2)
    score(evaluation, Submission.objects.get(name="run 1"), 0.123)


def _hide(toy: Toy) -> None:
    row = Submission.objects.get(name="run 1")
    row.is_private = True
    row.save(update_fields=["is_private"])


def _withdraw(toy: Toy) -> None:
    Submission.objects.filter(name="run 1").move("withdrawn")


def _rename(toy: Toy) -> None:
    toy.track.name = "Renamed"
    toy.track.save()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("change", [_publish, _hide, _withdraw, _rename])
@pytest.mark.parametrize("name", ["home", "board"])
def test_what_changes_on_a_board_is_shown_at_once(
    change: Callable[[Toy], None],
    name: str,
    toy: Toy,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    make_board(toy, 2)
    address = reverse(name, args=["toy"] if name == "board" else [])
    old = Client().get(address)
    assert Client().get(address, headers={"If-None-Match": old["ETag"]}).status_code == 304
    with django_capture_on_commit_callbacks(execute=True):
        change(toy)
    new = Client().get(address)
    assert new["ETag"] != old["ETag"] and new.content != old.content
    assert Client().get(address, headers={"If-None-Match": new["ETag"]}).status_code == 304


def test_what_could_still_be_anything_is_told_in_words_wherever_it_stands(
    toy: Toy, as_user: As
) -> None:
    """While the first questions in order were open, 0–100 stood beside an estimate."""
    evaluation = make_board(toy, 2)
    row = Submission.objects.get(name="run 1")
    of = {"submission": row.pk, "quantity": "precision", "method": "centred"}
    ends = {"low80": 0.0, "high80": 1.0, "low95": 0.0, "high95": 1.0}
    update(evaluation, of, kind="provisional", **ends)
    address = reverse("board", args=["toy"])
    client = as_user("Admin")
    [line] = [
        one
        for one in csv.DictReader(io.StringIO(client.get(f"{address}board.csv").content.decode()))
        if one["system"] == "run 1"
    ]
    told = client.get(reverse("api-board", args=["toy"])).json()
    [system] = [one for one in told["systems"] if one["submission"] == row.pk]
    page = client.get(reverse("submission", args=[row.pk])).content.decode()
    for text in (client.get(address).content.decode(), page):
        assert "too few yet" in text and "0–100" not in text and "0.0–100.0" not in text
    assert (line["precision_value"], line["precision_low80"]) == ("", "")
    assert line["note"] == system["precision"]["note"] == TOO_FEW_YET
    assert (system["precision"]["value"], system["precision"]["high95"]) == (None, None)
    update(evaluation, of, low80=0.006, high80=0.99)
    assert "too few yet" not in client.get(address).content.decode()
