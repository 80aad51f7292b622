"""What an expert says of a random part of people's ratings corrects every mean, and nothing else
moves.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

from annotation.desk.experts import (
    CannotAsk,
    agrees_with_labels,
    question_from_check,
    store_dispute,
    store_expert_answer,
)
from annotation.quality.agreement import NOT_KEPT
from kbpo.evaluation.correction import counted_expert_checks, read_frame
from kbpo.evaluation.data import load_data
from kbpo.evaluation.judges import judge_statistics
from kbpo.evaluation.leaderboard import read_board
from kbpo.evaluation.run import score_track
from kbpo.experts.draw import draw_round, order_expert_round
from kbpo.experts.queue import Outcome, take_next_check
from kbpo.instances.models import Label
from kbpo.sampling.models import (
    ExpertCheck,
    ExpertRound,
    SampleBatch,
)
from kbpo.submissions.models import Submission
from kbpo.web.desk.experts import crowd_expert_tables
from kbpo.web.public.judges import board_reliability_sentences, judges_as_json
from kbpo.web.research.judged import NOT_DISPUTED
from scoring.report import Figure, Judges
from tests.reports import figures_of
from tests.test.scores.conftest import CRITERIA, World

TOO_KIND = 0.1
"""By so much people rate each output above what the expert says"""


def draw(world: World, budget: int) -> ExpertRound:
    SampleBatch.objects.update(settled_at=world.runs["A"].received_at)
    row = order_expert_round(world.track, budget, world.admin, "To see.")
    draw_round(row, read_frame(world.track, load_data(world.track)))
    return row


def mean_of(target: int, criterion: str) -> float:
    labels = Label.objects.filter(target=target)
    ratings = [one for label in labels for one in label.value["ratings"].get(criterion, ())]
    return sum(ratings) / len(ratings) if ratings else 0.5


def strict(target: int) -> dict[str, list[float]]:
    """What the expert says of an output."""
    return {name: [max(0.0, mean_of(target, name) - TOO_KIND)] for name in CRITERIA}


def check(world: World, flagged: int = 0) -> int:
    """How many open checks were answered; so many of them, the first, by a flag."""
    n = 0
    while (row := take_next_check(world.track, world.admin)) is not None:
        said = {} if n < flagged else {row.target_id: {"ratings": strict(row.target_id)}}
        assert store_expert_answer(row, world.admin, {}, said) is Outcome.STORED
        n += 1
    return n


def estimates(world: World, method: str, criterion: str = "overall") -> dict[str, Figure]:
    latest = world.track.evaluations.order_by("-number").first()
    names = dict(Submission.objects.values_list("pk", "name"))
    of = {"quantity": "mean", "method": method, "criterion": criterion, "slice": ""}
    return {names[key.submission]: one for key, one in figures_of(latest, **of).items()}


@pytest.fixture
def judged(studied: World) -> World:
    Submission.objects.update(status="scored")
    return studied


def test_a_mean_is_corrected_by_what_the_expert_says_and_no_label_moves(judged: World) -> None:
    score_track(judged.track)
    before, labels = estimates(judged, "centred"), Label.objects.count()
    draw(judged, 60)
    n = check(judged)
    assert 40 < n < 80
    score_track(judged.track)
    assert Label.objects.count() == labels
    for criterion in CRITERIA:
        after, corrected = (estimates(judged, way, criterion) for way in ("centred", "expert"))
        assert set(corrected) == {"A", "B"} and sum(o.n_checked for o in corrected.values()) == n
        for name, one in corrected.items():
            assert after[name].value == before[name].value or criterion != "overall"
            error = one.value - (after[name].value - TOO_KIND)
            assert abs(error) < 4 * one.variance**0.5 < 0.2
            assert one.low95 < one.low80 < one.value < one.high80 < one.high95
    told = judged.track.evaluations.latest("number").report.expert["overall"]
    assert told.checked == n and told.counts is None
    assert told.above.low80 <= told.above.value <= told.above.high80 < 0
    assert told.agree.value < 0.2, "the expert hardly ever says just the same"


@pytest.mark.soak
def test_all_checked_is_the_mean_that_the_expert_gives(
    judged: World,
) -> None:
    draw(judged, 4_000)
    assert check(judged) == Label.objects.values("target").distinct().count()
    score_track(judged.track)
    data = load_data(judged.track)
    checks = counted_expert_checks(judged.track, data)
    assert checks is not None and checks.checked.all()
    plain, corrected = estimates(judged, "centred"), estimates(judged, "expert")
    pi = data.inclusion.asked[data.pool.target[data.judged]]
    for column, name in enumerate("AB"):
        p = data.pool.p["instance"][data.judged].toarray()[:, column]
        moved = float((p / pi * (checks.f["overall"] - data.f["overall"])[:, column]).sum())
        assert corrected[name].value == pytest.approx(plain[name].value + moved, abs=1e-12)


def test_a_flag_is_missing_and_few_checks_say_why_nothing_is_corrected(judged: World) -> None:
    draw(judged, 12)
    n = check(judged, flagged=2)
    score_track(judged.track)
    checked = {name: one.n_checked for name, one in estimates(judged, "expert").items()}
    report = judged.track.evaluations.latest("number").report
    assert report.expert["overall"].checked == n - 2
    for name, row in judged.runs.items():
        if name not in checked:
            [why] = report.not_corrected[row.pk]
            assert "scores are corrected from 10 checks on" in why


def test_chances_are_larger_where_less_is_known_and_what_was_brought_here_is_drawn_too(
    judged: World,
) -> None:
    """Ratings that were imported are people's as well:
    uncorrected, their noise would be left out.
    """
    elsewhere = Label.objects.order_by("pk").first()
    assert elsewhere is not None
    Label.objects.filter(pk=elsewhere.pk).update(source="import")
    frame = read_frame(judged.track, load_data(judged.track))
    assert elsewhere.target_id in frame.target_id
    assert frame.target_id.size == Label.objects.count()
    assert (frame.doubt > 0).all() and (frame.doubt <= 0.25).all()
    assert np.unique(frame.doubt).size > 20


def test_a_rating_that_was_imported_is_disputed_nowhere_and_all_say_why(judged: World) -> None:
    label = Label.objects.filter(target__in=load_data(judged.track).pool.target_id).order_by("pk")[
        0
    ]
    Label.objects.filter(pk=label.pk).update(source="import")
    with pytest.raises(CannotAsk, match="This judgment was imported") as refused:
        store_dispute(
            judged.runs["A"], label.target_id, judged.admin, "This is far better than that."
        )
    assert str(refused.value) == NOT_DISPUTED["import"]


def test_what_stands_on_the_board_says_what_experts_said(judged: World) -> None:
    def said() -> str:
        shown = read_board(judged.track, distribution="instance", criterion="overall")
        return " ".join(board_reliability_sentences(shown))

    score_track(judged.track)
    assert "No expert has checked any of these judgments yet." in said()
    ratings: dict[int, list[float]] = defaultdict(list)
    for label in Label.objects.filter(target__in=load_data(judged.track).pool.target_id):
        ratings[label.target_id] += label.value.get("ratings", {}).get("overall", [])
    apart = [
        np.mean([abs(a - b) for a, b in combinations(some, 2)])
        for some in ratings.values()
        if len(some) > 1
    ]
    assert (
        apart
        and (
            f"{len(apart)} outputs had two judgments or more; two of the same differ by"
            f" {100 * np.mean(apart):.1f} points of 100 on average."
        )
        in said()
    )
    known = judge_statistics(judged.track.evaluations.latest("number"))
    assert (known.twice, known.differ) == (len(apart), pytest.approx(np.mean(apart)))
    once = Judges(in_interval=True)
    assert judges_as_json(once, NOT_KEPT)["difference"] is None
    draw(judged, 60)
    n = check(judged)
    score_track(judged.track)
    assert f"Experts checked {n} judgments, drawn at random." in said()
    assert (
        "on average theirs differ by −" in said()
        and "“Corrected” intervals include that, too." in said()
    )
    tables = crowd_expert_tables(judged.track.evaluations.latest("number"))
    assert {one["name"] for one in tables} == {
        "Overall",
        "Redundancy",
        "Fluency",
        "Edit (characters)",
    }
    assert all(one["above"].estimate < 0 and not one["rows"] for one in tables)
    rows = read_board(judged.track, distribution="instance", criterion="overall").rows
    assert {row.n_checked > 0 for row in rows} == {True}


def test_what_all_people_agree_on_bounds_nothing_that_an_expert_denies(judged: World) -> None:
    for label in Label.objects.filter(target__in=load_data(judged.track).pool.target_id):
        ratings = {name: [1.0] * len(said) for name, said in label.value["ratings"].items()}
        Label.objects.filter(pk=label.pk).update(value=label.value | {"ratings": ratings})
    draw(judged, 60)
    check(judged)
    score_track(judged.track)
    assert {one.high95 for one in estimates(judged, "centred").values()} == {1.0}
    corrected = estimates(judged, "expert")
    assert set(corrected) == {"A", "B"}
    assert all(one.value < one.high95 < 0.99 for one in corrected.values())


def rated_by(world: World, people: list[str]) -> str:
    """What stands under the board once all ratings are of these people, in turn."""
    for label in Label.objects.filter(target__in=load_data(world.track).pool.target_id):
        ratings = label.value.get("ratings", {})
        by = {
            name: [people[at % len(people)] for at in range(len(of))]
            for name, of in ratings.items()
        }
        Label.objects.filter(pk=label.pk).update(value=label.value | {"people": by})
    score_track(world.track)
    return " ".join(
        board_reliability_sentences(
            read_board(world.track, distribution="instance", criterion="overall")
        )
    )


def test_an_expert_agrees_with_ratings_from_which_they_are_not_far(judged: World) -> None:
    draw(judged, 4)
    row = ExpertCheck.objects.order_by("pk").first()
    assert row is not None
    question, target = question_from_check(row), row.target_id
    for apart, same in ((0.0, True), (0.24, True), (0.26, False)):
        said = {name: [mean_of(target, name)] for name in CRITERIA}
        middle = said["fluency"][0]
        said["fluency"] = [middle + apart if middle < 0.5 else middle - apart]
        assert agrees_with_labels(question, {target: {"ratings": said}}) is same
    assert agrees_with_labels(question, {}) is False, "a flag, where people had an answer"
