"""Two systems side by side: the difference of what is printed, from both samples together; and what
each says.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.test import Client

from kbpo.accounts.models import Token
from kbpo.evaluation.compare import closest, differences
from kbpo.evaluation.data import read
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import evaluate
from kbpo.submissions.models import Submission
from kbpo.tracks.generation.declared import PreferenceTrack
from kbpo.tracks.registry import kind_of
from kbpo.web.components.drawing import draw_overlap
from kbpo.web.public import compare
from scoring.compare import Order, comparisons
from scoring.score import default_estimates
from tests.conftest import Toy
from tests.evaluation.world import World
from tests.reports import again, figure_of, keep

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
    of = {"quantity": "precision", "method": "centred", "criterion": "relation"}
    values = {one.pk: figure_of(scored, one, **of) for one in pair}
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
    both, first, second = evaluate(world.track).details.parts(pair[0].pk, pair[1].pk)
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
    assert "Scores and differences" in page and "both say it" in page and "family-wise" in page
    assert f"?a={b}&amp;b={a}" in page
    assert "every prediction counts the same here, whatever is chosen above" in page
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
    [kept] = comparisons(order, data, {key: (estimate, design)}, {7, 8, 9}).values()  # type: ignore[arg-type]
    assert kept.best == kept.worst == [1, 2, 3]
    assert kept.critical and kept.critical * np.sqrt(0.0104) > 0.22, "not in the first step"
    assert kept.different and kept.different[0][1] and not kept.different[0][0]

    stored = scored.report.comparisons
    [key] = [key for key, one in stored.items() if one.best and key[1] == "relation"]
    for different in (True, False):
        apart = [[False, different], [different, False]]
        keep(scored, comparisons=stored | {key: replace(stored[key], different=apart)})
        assert told(scored, *pair).told_apart is different


def test_what_both_say_is_drawn_to_scale(
    pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    both, first, second = scored.details.parts(pair[0].pk, pair[1].pk)
    page = Client().get(URL, {"a": pair[0].pk, "b": pair[1].pk}).content.decode()
    [drawn] = re.findall(r'<svg class="overlap-bars".*?</svg>', page)
    bars = {
        tone: (float(x), float(width))
        for tone, x, width in re.findall(
            r'whole-(.)" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%"', drawn
        )
    }
    total = both.n + first.n + second.n
    assert bars["a"] == pytest.approx((0, 100 * (first.n + both.n) / total), abs=0.01)
    assert bars["b"] == pytest.approx(
        (100 * first.n / total, 100 * (both.n + second.n) / total), abs=0.01
    )
    assert f"of these both say {both.n}" in drawn and "Patterns wide says" in drawn
    assert draw_overlap(0, 0, 0, ("A", "B")) == ""
    assert "shared" not in draw_overlap(3, 0, 5, ("A", "B")), "nothing lies between the lines"


def test_the_first_sentence_says_how_sure_it_is(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    a, b = (one.pk for one in pair)
    found = told(scored, *pair)
    likely = replace(found, value=0.07, low80=0.01, high80=0.13, low95=-0.02, high95=0.16)
    called = {found.quantity: kind_of(world.track).quantity(found.quantity)}
    for difference, sure in ((likely, False), (replace(likely, low95=0.005), True)):
        [one] = compare.sentence(called, [difference], {found.quantity: True}, "One", "Other")[
            "told"
        ]
        assert one["sure"] is sure and "7.0 points" in one["points"]
    page = Client().get(f"{URL}?a={a}&b={b}&criterion=relation").content.decode()
    lede = page.split('class="lede"')[1].split("</p>")[0]
    assert "shown at 95 %)" in lede and "family-wise" in lede
    assert re.search(r"these two (differ|cannot be told apart) in precision\.", lede)
    assert page.count("family-wise") == 1


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
    assert "None is judged." in public and "✓" not in public and "✗" not in public
    for page in (own, everything):  # Rosa's team owns the study
        assert "Only Neural other" in page and "Both say it, and it is wrong" in page


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


def test_the_api_tells_what_the_page_shows_relation_by_relation_and_of_the_parts(
    toy: Toy,
    pair: tuple[Submission, Submission],
    scored: Evaluation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kbpo.web.public.by_relation.FEW", 10)
    asked = {"a": pair[0].pk, "b": pair[1].pk, "criterion": "relation"}
    for name in ("", "Rosa", "Admin"):
        browser, headers = Client(), {}
        if name:
            browser.force_login(toy.users[name])
            secret = Token.issue(toy.users[name], "test")[1]
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


def test_no_link_of_a_comparison_is_dead_after_the_next_evaluation_of_its_day(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    """What was called permalink was not found as soon as the track was scored again."""
    asked = {"a": pair[0].pk, "b": pair[1].pk, "criterion": "relation"}
    api = "/api/tracks/world/compare/"
    page = Client().get(URL, asked)
    link, day = page.context["permalink"], f"{scored.made_at:%Y-%m-%d}"
    assert link.endswith(f"on={day}") and "Permalink" not in page.content.decode()
    assert Client().get(api, asked).json()["page"] == link
    last = evaluate(world.track)
    assert Client().get(link).context["evaluation"] == last
    Evaluation.objects.filter(pk=last.pk).update(stage_end=True)
    assert Client().get(api, asked).json()["page"].endswith(f"evaluation={last.number}")
    # as the judging of a private run ends a stage
    after = again(last, number=last.number + 1, stage_end=True)
    page = Client().get(URL, asked)
    assert page.context["permalink"] == link and "Permalink" not in page.content.decode()
    assert Client().get(api, asked).json()["page"] == link
    after.delete()
    Evaluation.objects.filter(pk=last.pk).update(made_at=last.made_at - timedelta(days=1))
    page = Client().get(URL, asked)
    assert "Permalink" in page.content.decode()
    assert page.context["permalink"].endswith(f"evaluation={last.number}")


@pytest.mark.soak
def test_a_comparison_is_cited_by_its_evaluation(
    world: World, pair: tuple[Submission, Submission], scored: Evaluation
) -> None:
    Evaluation.objects.update(stage_end=True)
    asked = {"a": pair[0].pk, "b": pair[1].pk, "criterion": "relation"}
    api = "/api/tracks/world/compare/"
    before = Client().get(URL, asked)
    link = before.context["permalink"]
    assert link.endswith(f"evaluation={scored.number}")
    assert f'href="{link}"'.replace("&", "&amp;") in before.content.decode()
    assert Client().get(api, asked).json()["page"] == link
    for row in pair:
        world.answer(world.sample(row, 1.0))
        row.batches.update(settled_at=row.confirmed_at)
    middle, last = evaluate(world.track), evaluate(world.track)
    was = [row["difference"] for row in before.context["rows"]]
    cited, now = Client().get(link), Client().get(URL, asked)
    assert [row["difference"] for row in cited.context["rows"]] == was
    assert [row["difference"] for row in now.context["rows"]] != was
    assert cited.context["evaluation"].number == scored.number
    assert now.context["evaluation"].number == last.number
    assert f"evaluation={scored.number}" in cited.context["swap"]
    assert "evaluation" not in cited.context["now"]
    told = Client().get(api, asked | {"evaluation": scored.number}).json()
    assert told["evaluation"] == scored.number and told["page"] == link
    assert [one["difference"] for one in told["differences"]] == [one.estimate for one in was]
    day = f"{last.made_at:%Y-%m-%d}"
    of_day = Client().get(URL, asked | {"on": day})
    assert of_day.context["evaluation"].number == last.number
    assert Client().get(api, asked | {"on": day}).json()["evaluation"] == last.number
    for said, sentence in (
        ({"evaluation": middle.number}, f"Compare at evaluation {last.number}."),
        ({"evaluation": 99}, "has no evaluation 99"),
        ({"on": "2020-01-01"}, "Nothing had been scored by 2020-01-01"),
    ):
        page = Client().get(URL, asked | said)
        assert page.status_code == 404 and sentence in page.content.decode()
        refused = Client().get(api, asked | said)
        assert refused.status_code == 404 and sentence in refused.json()["detail"]


def test_what_each_says_is_called_as_its_kind_is_judged(
    pair: tuple[Submission, Submission], scored: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pairs of texts one is preferred; none is right."""
    kind, asked = type(kind_of(scored.track)), {"a": pair[0].pk, "b": pair[1].pk}
    page = " ".join(Client().get(URL, asked).content.decode().split())
    assert "the estimated share that is right (" in page and "</b> right <span" in page
    words = PreferenceTrack.words
    named = replace(kind.words, share=words.share, share_of=words.share_of)
    monkeypatch.setattr(kind, "words", named)
    page = " ".join(Client().get(URL, asked).content.decode().split())
    assert "the estimated share that is preferred (" in page and "</b> preferred <span" in page
    assert " right <span" not in page
