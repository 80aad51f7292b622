"""The leaderboard as a page: who sees it, what its switches do, how many questions it asks the database."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.accounts.models import Team
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.web.scored import make_board

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("who", ["", "Rosa", "Ada", "Admin"])
def test_everybody_sees_the_board(who: str, toy: Toy, as_user: As) -> None:
    make_board(toy, 3)
    for address in (reverse("home"), reverse("board", args=["toy"])):
        page = as_user(who).get(address)
        assert page.status_code == 200 and "Team 2 run 2" in page.content.decode()


def test_a_board_without_systems_or_tracks_says_what_comes(toy: Toy, as_user: As) -> None:
    assert "The first one sets the scale" in as_user("").get(reverse("home")).content.decode()
    toy.track.status = "draft"
    toy.track.save()
    assert "No track is open yet" in as_user("").get(reverse("home")).content.decode()
    assert as_user("").get(reverse("board", args=["toy"])).status_code == 404


def test_thirty_systems_cost_no_more_questions_than_three(toy: Toy, as_user: As) -> None:
    def questions(client: Client, address: str) -> int:
        client.get(address)
        with CaptureQueriesContext(connection) as asked:
            assert client.get(address).status_code == 200
        return len(asked)

    make_board(toy, 3)
    rosa, address = as_user("Rosa"), reverse("board", args=["toy"]) + "?all=1"
    few = questions(rosa, address)
    toy.track.evaluations.all().delete()
    Submission.objects.all().delete()
    Team.objects.filter(slug__startswith="team-").delete()
    make_board(toy, 30)
    many = questions(rosa, address)
    assert many <= few <= 25, (few, many)


def test_the_best_stands_first_and_a_sort_is_in_the_url(toy: Toy, as_user: As) -> None:
    make_board(toy, 3)
    rows = as_user("").get(reverse("board", args=["toy"])).context["rows"]
    assert [row["submission"].name for row in rows] == ["run 2", "run 1", "run 0"]
    rows = as_user("").get(reverse("board", args=["toy"]) + "?sort=name").context["rows"]
    assert [row["submission"].name for row in rows] == ["run 0", "run 1", "run 2"]


@pytest.mark.parametrize("query", ["distribution=x", "criterion=x", "level=99", "sort=x", "distribution=%00"])
def test_a_switch_that_does_not_exist_is_a_404_with_a_sentence(query: str, toy: Toy, as_user: As) -> None:
    page = as_user("").get(reverse("board", args=["toy"]) + "?" + query)
    assert page.status_code == 404 and "This board has no" in page.content.decode()


def test_the_file_has_the_pages_figures_and_no_formula(toy: Toy, as_user: As) -> None:
    make_board(toy, 2)
    Submission.objects.filter(name="run 1").update(name='=HYPERLINK("x")')
    answer = as_user("").get(reverse("board-csv", args=["toy"]))
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["team"] for row in rows] == ["Team 1", "Team 0"] and rows[0]["system"].startswith("'=")
    assert float(rows[0]["precision_low80"]) == pytest.approx(float(rows[0]["precision_value"]) - 0.02)


def test_a_reader_who_comes_back_gets_no_page_again(toy: Toy, client: Client) -> None:
    make_board(toy, 2)
    first = client.get(reverse("board", args=["toy"]))
    again = client.get(reverse("board", args=["toy"]), headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304


def test_a_withdrawn_system_leaves_the_board(toy: Toy, as_user: As) -> None:
    make_board(toy, 2)
    Submission.objects.get(name="run 1").move("withdrawn")
    assert "Team 1 run 1" not in as_user("").get(reverse("board", args=["toy"])).content.decode()


def test_what_a_team_writes_is_text_and_nothing_else(toy: Toy, as_user: As) -> None:
    make_board(toy, 1)
    Submission.objects.update(name="<script>x</script>", description="<img src=x onerror=y>")
    page = as_user("").get(reverse("board", args=["toy"])).content.decode()
    assert "<script>x" not in page and "<img src=x" not in page
