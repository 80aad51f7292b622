"""Two systems side by side: the difference of what is printed, from both samples together; and what
each says.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.test import Client

from kbpo.accounts.models import Token
from kbpo.evaluation.compare import compute_differences
from kbpo.evaluation.data import load_data
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.submissions.models import Submission
from scoring.compare import Order, compare_boards
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.reports import figure_of, keep
from tests.test.evaluation.world import World

pytestmark = pytest.mark.django_db
URL = "/tracks/world/compare/"


@pytest.fixture
def pair(world: World) -> tuple[Submission, Submission]:
    """Two systems that share most of what they predict, on a board; nine in ten of their relations
    are judged.
    """
    rows = (
        world.system("wide", lambda one: one.pk % 5 != 0),
        world.system("other", lambda one: one.pk % 7 != 0, team="Neural"),
    )
    for row in rows:
        world.answer(world.sample(row, 0.9))
    row.batches.update(settled_at=row.confirmed_at)
    rows[0].batches.update(settled_at=row.confirmed_at)
    Submission.objects.update(status="scored")
    return rows


@pytest.fixture
def scored(world: World, pair: tuple[Submission, Submission]) -> Evaluation:
    return score_track(world.track)


def told(evaluation: Evaluation, one: Submission, other: Submission) -> Any:
    [found] = compute_differences(
        evaluation, one.pk, other.pk, distribution="instance", criterion="relation"
    )
    return found


def test_a_difference_is_that_of_the_printed_scores_with_the_interval_of_their_influences(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    found = told(scored, *pair)
    of = {"quantity": "precision", "method": "centred", "criterion": "relation"}
    values = {one.pk: figure_of(scored, one, **of) for one in pair}
    assert found.value == values[pair[0].pk].value - values[pair[1].pk].value
    data = load_data(world.track)
    estimate, design = default_estimates(data, ("relation",), ())[
        "precision", "relation", "instance"
    ]
    a, b = (data.systems.index(one.pk) for one in pair)
    realised = np.asarray(design.variance(estimate.influence))
    as_printed = estimate.influence * np.sqrt(np.maximum(realised, estimate.anticipated) / realised)
    assert found.error**2 == pytest.approx(design.variance(as_printed[:, a] - as_printed[:, b]))
    widths = [(values[one.pk].high80 - values[one.pk].low80) / 2 for one in pair]
    assert (found.high80 - found.low80) / 2 < np.hypot(*widths) < sum(widths)
    assert found.low95 < found.low80 < found.value < found.high80 < found.high95
    turned = told(scored, pair[1], pair[0])
    assert (turned.value, turned.low80, turned.error) == pytest.approx(
        (-found.value, -found.high80, found.error)
    )


def test_the_parts_are_counted_and_their_shares_are_right(
    world: World, pair: tuple[Submission, Submission]
) -> None:
    for row in pair:
        world.answer(world.sample(row, 1.0))
        row.batches.update(settled_at=row.confirmed_at)
    both, first, second = score_track(world.track).details.parts(pair[0].pk, pair[1].pk)
    for part, inside in (
        (both, lambda pk: pk % 5 and pk % 7),
        (first, lambda pk: pk % 5 and not pk % 7),
        (second, lambda pk: not pk % 5 and pk % 7),
    ):
        some = [one for one in world.instances if inside(one.pk)]
        assert part.n == len(some)
        assert part.value == pytest.approx(world.share_true(some))
        assert part.low80 <= part.value <= part.high80
        assert 0 < part.n_labels <= part.n


def test_parts_that_are_sampled_have_intervals_and_turn_with_the_pair(
    pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    both, first, second = scored.details.parts(pair[0].pk, pair[1].pk)
    assert both.low80 < both.value < both.high80
    assert scored.details.parts(pair[1].pk, pair[0].pk) == (both, second, first)
    assert scored.details.parts(pair[0].pk, 0) == ()


def test_the_page_shows_scores_difference_and_overlap(
    pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    a, b = (one.pk for one in pair)
    page = Client().get(f"{URL}?a={a}&b={b}&criterion=relation").content.decode()
    assert "<title>Patterns wide against Neural other" in re.sub(r"\s+", " ", page)
    assert "Scores and differences" in page and "both predict it" in page and "family-wise" in page
    assert f"?a={b}&amp;b={a}" in page
    assert "all predictions have equal weight here" in page
    marked = Client().get(f"{URL}?s={a}&s={b}&criterion=relation").content.decode()
    assert "Scores and differences" in marked
    board = Client().get("/tracks/world/?criterion=relation").content.decode()
    assert f'name="s" value="{a}"' in board and 'id="compare-marked"' in board
    assert Client().get("/compare/").status_code == 302


def test_two_are_told_apart_as_the_ranks_of_the_board_tell_them(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    """The board goes on testing without the pairs that fell, and so ranked 1 and 2 what the
    comparison could not tell apart.
    """
    estimate, values = SimpleNamespace(degrees_of_freedom=np.inf), np.array([0.83, 0.61, 0.06])
    estimate.value, estimate.influence = values, np.eye(3)
    estimate.anticipated = np.full(3, 0.0001)
    design = SimpleNamespace(covariance=lambda _: np.diag([0.0052, 0.0052, 0.0001]))
    data = SimpleNamespace(systems=[7, 8, 9])
    order = Order(["mean"], lambda *_: True)
    key = ("mean", "correct", "instance")
    [kept] = compare_boards(order, data, {key: (estimate, design)}, {7, 8, 9}).values()  # type: ignore[arg-type]
    assert kept.best == kept.worst == [1, 2, 3]
    assert kept.different and kept.different[0][1] and not kept.different[0][0]

    stored = scored.report.comparisons
    [key] = [key for key, one in stored.items() if one.best and key[1:] == ("relation", "instance")]
    for different in (True, False):
        apart = [[False, different], [different, False]]
        keep(scored, comparisons=stored | {key: replace(stored[key], different=apart)})
        assert told(scored, *pair).told_apart is different


def test_what_cannot_be_compared_is_told_in_a_sentence(
    world: World, toy: Toy, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    a, b = (one.pk for one in pair)
    elsewhere = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Neural"],
        name="x",
        status="scored",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="e",
    )
    private = world.system("private", lambda one: True, team="Neural")
    for query, sentence in (
        (f"a={a}&b={elsewhere.pk}", "not on this board"),
        (f"a={a}&b={private.pk}", "not on this board"),
        (f"a={a}&b={a}", "Both are the same system"),
        ("a=x%3Cscript%3E&b=2", "is no system"),
        (f"a={'9' * 60}&b={b}", "not on this board"),
    ):
        response = Client().get(f"{URL}?{query}")
        page = response.content.decode()
        assert response.status_code == 404 and sentence in page and "Choose two systems" in page
        assert "<script>" not in page.replace('<script type="module"', "")
    assert (
        "the first two"
        in Client().get(f"{URL}?s={a}&s={b}&s=3&criterion=relation").content.decode()
    )
    assert Client().get("/tracks/nothing/compare/").status_code == 404


def test_the_api_tells_what_the_page_shows_relation_by_relation_and_of_the_parts(
    toy: Toy,
    pair: tuple[Submission, Submission],
    scored: Evaluation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kbpo.web.public.compare.LEAST_LABELS", 10)
    asked = {"a": pair[0].pk, "b": pair[1].pk, "criterion": "relation"}
    for name in ("", "Rosa", "Admin"):
        browser, headers = Client(), {}
        if name:
            browser.force_login(toy.users[name])
            secret = Token.create_with_secret(toy.users[name], "test")[1]
            headers = {"Authorization": f"Token {secret}"}
        page = browser.get(URL, asked).context
        api = Client().get("/api/tracks/world/compare/", asked, headers=headers).json()
        shown = page["relations"]
        assert [one["name"] for one in api["by_relation"]["differences"]] == [
            one.quantity for one in shown["differences"]
        ]
        assert [
            (one["label"], one["difference"], one["low80"], one["high95"])
            for one in api["by_relation"]["differences"]
        ] == [
            (
                one["name"],
                *(one["difference"].__dict__[end] for end in ("estimate", "low80", "high95")),
            )
            for one in shown["rows"]
        ]
        assert api["by_relation"]["differences"] and api["by_relation"]["least"] == 10
        assert api["by_relation"]["left_out"] == shown["left_out"]
        parts = {one["key"]: one for one in page["overlap"]}
        assert {one["of"]: (one["n"], one["why"]) for one in api["overlap"]} == {
            key: (one["n"], one.get("why", "")) for key, one in parts.items()
        }
        for one in api["overlap"]:
            share = parts[one["of"]]["share"]
            assert (one["share"] or {}).get("value") == (share and share.estimate)
        hidden = {one["of"] for one in api["overlap"] if one["share"] is None}
        assert bool(hidden) is (name != "Admin"), "a share of few would tell what they were"
