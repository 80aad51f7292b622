"""What is cited stays: permalinks of evaluations, a run’s history, BibTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from kbpo import clock
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.evaluation.store import reduce_evaluations_since
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.web.public.board_files import bibtex
from scoring.report import Details
from tests.conftest import Toy
from tests.reports import again, figures_of, keep
from tests.test.evaluation.replay import Replay
from tests.test.evaluation.test_withdrawn import RUNS
from tests.test.web.scored import make_board, score

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
FIRST, SECOND = datetime(2026, 3, 2, 15, tzinfo=UTC), datetime(2026, 5, 1, 9, tzinfo=UTC)


@pytest.fixture
def past(toy: Toy) -> list[Submission]:
    """Two evaluations: three systems in March, one of them gone and another risen by May."""
    first = make_board(toy, 3)
    rows = list(Submission.objects.order_by("pk"))
    Submission.objects.update(scored_at=FIRST)
    Evaluation.objects.filter(pk=first.pk).update(made_at=FIRST, stage_end=True)
    rows[2].move("withdrawn", withdrawn_at=FIRST + timedelta(days=9))
    standing = [row.pk for row in rows[:2]]
    second = again(first, number=3, made_at=SECOND, standing=standing)
    keep(second, {})
    score(second, rows[0], 0.71)
    score(second, rows[1], 0.36)
    return rows


def names(client: Client, address: str) -> list[str]:
    return [row["submission"].name for row in client.get(address).context["rows"]]


def test_an_evaluation_stays_as_it_was_printed(
    toy: Toy, as_user: As, past: list[Submission]
) -> None:
    somebody, board = as_user(""), reverse("board", args=["toy"])
    permalink = reverse("evaluation", args=["toy", 1])
    assert names(somebody, board) == ["run 0", "run 1"]
    then = ["run 2", "run 1", "run 0"]
    assert names(somebody, permalink) == then
    page = somebody.get(permalink).content.decode()
    assert "2 March 2026" in page.replace("\xa0", " ") and "withdrawn since" in page
    assert reverse("submission", args=[past[2].pk]) not in page, "its page is gone"
    first = {"evaluation": "1"}
    told = somebody.get("/api/tracks/toy/board/", first).json()
    assert [one["name"] for one in told["systems"]] == then
    assert told["evaluation"]["number"] == 1 and told["evaluation"]["page"] == permalink
    table = somebody.get(reverse("board-csv", args=["toy"]), first).content.decode()
    assert [line["system"] for line in csv.DictReader(io.StringIO(table))] == then
    sorted_by_name = somebody.get(permalink).context["heads"]["name"]["url"]
    assert sorted_by_name.startswith(permalink) and names(somebody, sorted_by_name)[0] == "run 0"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("evaluation=2", "has no evaluation 2; the last is 3"),
        ("evaluation=9", "no evaluation 9; the last is 3"),
        ("evaluation=x", "is not the number of an evaluation"),
    ],
)
def test_a_board_that_there_is_not_says_why(
    query: str, says: str, as_user: As, past: list[Submission]
) -> None:
    for address in (reverse("board", args=["toy"]), reverse("board-csv", args=["toy"])):
        answer = as_user("").get(f"{address}?{query}")
        assert answer.status_code == 404 and says in answer.content.decode()
    status = 400 if query == "evaluation=x" else 404
    assert as_user("").get(f"/api/tracks/toy/board/?{query}").status_code == status


def test_a_number_that_is_tried_does_not_tell_that_a_stage_ended(
    toy: Toy, past: list[Submission]
) -> None:
    """An evaluation that a private run's judging ended keeps its estimates for that run alone; its
    address says what that of any other of the day does.
    """
    last, rows = toy.track.evaluations.get(number=3), past[:2]
    for number in (4, 5, 6):
        reduce_evaluations_since(toy.track, SECOND + timedelta(hours=4))
        made_at = SECOND + timedelta(hours=number)
        one = again(last, number=number, made_at=made_at, stage_end=number == 4)
        for row, value in zip(rows, (0.71, 0.3), strict=True):
            score(one, row, value)
    told = []
    for number in (4, 5):
        compared = {"a": rows[0].pk, "b": rows[1].pk, "evaluation": number}
        page = Client().get(reverse("compare-track", args=["toy"]), compared)
        api = Client().get("/api/tracks/toy/compare/", compared)
        board = Client().get(f"/api/tracks/toy/board/?evaluation={number}").json()
        assert page.status_code == api.status_code == 404
        del board["evaluation"]
        told.append((api.json()["detail"].replace(str(number), "N"), board))
    assert told[0] == told[1] and "Compare at evaluation 6" in told[0][0]
    assert figures_of(toy.track.evaluations.get(number=4))


def test_every_evaluation_of_a_day_keeps_its_address_and_what_it_printed(toy: Toy) -> None:
    """The last of each day keeps its estimates, and the others of it what stood on their boards."""
    yesterday = clock.now() - timedelta(days=1)
    Evaluation.objects.create(track=toy.track, number=1, made_at=yesterday)
    world = Replay.of(toy, 120, 0.6, design="poisson")
    rows = [world.judge(world.upload(team, some)) for team, some in RUNS]
    Submission.objects.update(status="scored", scored_at=clock.now())
    first = score_track(toy.track)
    assert first.standing == [row.pk for row in rows]
    somebody, permalink = Client(), reverse("evaluation", args=["toy", first.number])
    json = reverse("api-board", args=["toy"]) + f"?evaluation={first.number}&criterion=relation"
    page, printed = somebody.get(permalink), somebody.get(json).json()
    told = _cells(page)
    Label.objects.filter(target__in=world.target[::2]).delete()
    second = score_track(toy.track)
    then = somebody.get(permalink)
    assert _cells(then) == told != _cells(somebody.get(reverse("board", args=["toy"])))
    assert somebody.get(json).json() == printed
    first = Evaluation.objects.get(pk=first.pk)
    assert first.is_reduced and not second.is_reduced
    assert first.details == Details() and not first.headlines.exists()
    assert all(one.covariance is None for one in first.report.comparisons.values())
    listed = somebody.get(reverse("evaluations", args=["toy"])).content.decode()
    assert permalink not in listed and reverse("evaluation", args=["toy", second.number]) in listed
    rows[0].is_private = True
    rows[0].save()
    assert rows[0].name not in somebody.get(permalink).content.decode()


def _cells(page: Any) -> list[Any]:
    """What stands in the rows of a board."""
    return [
        (row["submission"].pk, row["rank"], [cell["interval"] for cell in row["cells"]])
        for row in page.context["rows"]
    ]


def test_a_runs_history_is_drawn_with_the_numbers_behind_it(
    as_user: As, past: list[Submission]
) -> None:
    row, somebody = past[0], as_user("")
    page = somebody.get(reverse("submission", args=[row.pk])).content.decode()
    assert (
        "F1 was 20.0 (18.0–22.0) in evaluation 1 and is 71.0 (69.0–73.0) in evaluation 3." in page
    )
    assert page.count('class="now-dot"') == 2
    assert "2026-03-02 15:00 UTC: 20.0, 80 % 18.0–22.0" in page
    numbers = somebody.get(reverse("submission", args=[row.pk]) + "?format=csv").getvalue().decode()
    assert [line["value"] for line in csv.DictReader(io.StringIO(numbers))] == ["0.2", "0.71"]
    assert "@misc{toy-" in page and "evaluations/3/" in page
    row.headlines.exclude(evaluation__number=3).delete()
    page = somebody.get(reverse("submission", args=[row.pk])).content.decode()
    assert "F1 is 71.0 (69.0–73.0) in evaluation 3." in page, "one number was not another before"
    row.is_private = True
    row.save()
    assert somebody.get(reverse("submission", args=[row.pk]) + "?format=csv").status_code == 404


def test_only_the_embedded_board_may_be_framed(as_user: As, past: list[Submission]) -> None:
    framed = as_user("Rosa").get(reverse("board-embed", args=["toy"]))
    policy = framed["Content-Security-Policy"]
    assert "frame-ancestors *" in policy and "X-Frame-Options" not in framed
    assert "public" in framed["Cache-Control"] and "Cookie" not in framed.get("Vary", "")
    assert "Team 0 run 0" in framed.content.decode() and "yours" not in framed.content.decode()
    board = as_user("").get(reverse("board", args=["toy"])).content.decode()
    cited = board.partition('id="cite"')[2].partition("</details>")[0]
    assert f'href="{reverse("board-embed", args=["toy"])}"' in cited
    for other in (reverse("board", args=["toy"]), reverse("evaluation", args=["toy", 1])):
        assert "frame-ancestors 'none'" in as_user("").get(other)["Content-Security-Policy"]


def test_bibtex_survives_any_name(past: list[Submission]) -> None:
    evaluation = Evaluation.objects.get(number=1)
    entry = bibtex("k", "50 % of A_B & {C}\\d", "", evaluation, "https://x/1/")
    assert r"{50 \% of A\_B \& \{C\}\textbackslash{}d}" in entry
    assert "year         = {2026}" in entry and "Evaluation 1 of 2026-03-02" in entry
    assert entry.count("{") == entry.count("}")
