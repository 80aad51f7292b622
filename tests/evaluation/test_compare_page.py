"""Two systems side by side: the difference of what is printed, from both samples together; and what
each says.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from django.test import Client

from kbpo.evaluation.compare.difference import closest, differences
from kbpo.evaluation.compare.overlap import part_of
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import evaluate
from kbpo.submissions.models import Submission
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.evaluation.world import World

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
    return evaluate(world.track)


def told(evaluation: Evaluation, one: Submission, other: Submission) -> Any:
    [found] = differences(
        evaluation, one.pk, other.pk, distribution="instance", criterion="relation"
    )
    return found


def test_a_difference_is_that_of_the_printed_scores_with_the_interval_of_their_influences(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    found = told(scored, *pair)
    values = {
        one.submission_id: one
        for one in scored.estimates.filter(
            quantity="precision", method="centred", criterion="relation", slice=""
        )
    }
    assert found.value == values[pair[0].pk].value - values[pair[1].pk].value
    data = read(world.track)
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
    both, first, second = part_of(evaluate(world.track).comparisons, pair[0].pk, pair[1].pk)
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
    both, first, second = part_of(scored.comparisons, pair[0].pk, pair[1].pk)
    assert both.low80 < both.value < both.high80
    assert part_of(scored.comparisons, pair[1].pk, pair[0].pk) == [both, second, first]
    assert part_of(scored.comparisons, pair[0].pk, 0) == []


def test_the_page_shows_scores_difference_and_overlap(
    pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    a, b = (one.pk for one in pair)
    page = Client().get(f"{URL}?a={a}&b={b}&criterion=relation").content.decode()
    assert "<title>Patterns wide against Neural other" in re.sub(r"\s+", " ", page)
    assert "Scores and differences" in page and "both say it" in page and "family-wise" in page
    assert f"?a={b}&amp;b={a}" in page
    marked = Client().get(f"{URL}?s={a}&s={b}&criterion=relation").content.decode()
    assert "Scores and differences" in marked
    board = Client().get("/tracks/world/?criterion=relation").content.decode()
    assert f'name="s" value="{a}"' in board and 'id="compare-marked"' in board
    assert Client().get("/compare/").status_code == 302


def test_examples_are_for_those_who_may_see_the_judgments(
    toy: Toy, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    address = f"{URL}?a={pair[0].pk}&b={pair[1].pk}&criterion=relation"
    member, admin = Client(), Client()
    member.force_login(toy.users["Rosa"])
    admin.force_login(toy.users["Admin"])
    public, own, everything = (
        one.get(address).content.decode() for one in (Client(), member, admin)
    )
    assert "Judgments are shown to the team" in public and "✓" not in public and "✗" not in public
    assert (
        "Only Patterns wide" in own
        and "Only Neural other" not in own
        and "Both say it, and" not in own
    )
    assert "Only Neural other" in everything and "Both say it, and it is wrong" in everything
    for page in (public, own):
        assert (
            "too few judgments to say" in page
        )  # what only one predicts: a share of few would tell what they were


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
        (f"a={a}&b={a}", "one and the same"),
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


def test_one_of_which_more_is_judged_can_be_compared_too_and_is_outlined(
    pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    address = f"{URL}?a={pair[0].pk}&b={pair[1].pk}&criterion=relation"
    before = Client().get(address).content.decode()
    Submission.objects.filter(pk=pair[1].pk).update(status="judging", scored_at=scored.made_at)
    page = Client().get(address)
    assert page.status_code == 200 and [row["kinds"] for row in page.context["rows"]] == [
        ["final", "moment"]
    ]
    assert page.content.decode().count("iv-moment") > before.count("iv-moment")


def test_empty_it_offers_the_closest_pair(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation, toy: Toy
) -> None:
    assert set(closest(scored, distribution="instance", criterion="relation") or ()) == {
        one.pk for one in pair
    }
    page = Client().get(f"{URL}?criterion=relation").content.decode()
    assert "the closest neighbours on the board" in page and "<select" in page
    marked = re.findall(r'<option value="(\d+)" selected', page)
    assert len(marked) == 2 and set(map(int, marked)) == {one.pk for one in pair}, (
        "two systems, not one twice"
    )
    assert "It takes two scored systems" in Client().get("/tracks/toy/compare/").content.decode()
