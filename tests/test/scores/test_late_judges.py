"""A judge that came after the judgments narrows no score until somebody answers for it; what judges
save is what is left to judge here, one number on every page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from kbpo.accounts.models import Audit
from kbpo.evaluation.data import load_data
from kbpo.evaluation.due import change_signs
from kbpo.evaluation.models import Evaluation
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.models import Sample, SampleBatch, Threshold
from kbpo.scores.bring import Name, list_scorers, store_score_file, store_scores
from kbpo.scores.models import Scorer
from kbpo.scores.read import scorers_of_track
from kbpo.submissions.models import Submission
from scoring.data import Data
from scoring.saved import LATER
from tests.test.scores.conftest import CRITERIA, World

pytestmark = pytest.mark.django_db

BOARD, PAGE = "/tracks/answers/?criterion=overall", "/tracks/answers/metrics/"
TILT = "biases no score"


def late(world: World) -> Scorer:
    """A second judge that repeats the judgments of A, brought after them."""
    said = [(pk, float(at % 3)) for at, pk in enumerate(world.numbers("A") + world.numbers("B"))]
    store_scores(world.track, Name("late"), said, world.admin)
    return Scorer.objects.get(name="late")


def page(address: str) -> str:
    return " ".join(Client().get(address).content.decode().split())


def test_a_judge_that_came_after_the_judgments_waits_for_a_statement(studied: World) -> None:
    alone, known = change_signs(studied.track)["scores"], Scorer.objects.get(name="judge")
    row = late(studied)
    assert row.came_late and not known.came_late
    assert list(scorers_of_track(studied.track).in_use()) == [known]
    assert change_signs(studied.track)["scores"] == alone, "nothing is to be scored anew"
    desk = Client()
    desk.force_login(studied.admin)
    address = "/desk/tracks/answers/scores/"
    shown = " ".join(desk.get(address).content.decode().split())
    assert "State that it was not tuned on these judgments" in shown
    assert shown.count("does not learn from it") == 1
    assert desk.post(address, {"not_tuned_of": "999"}).status_code == 404
    assert desk.post(address, {"not_tuned_of": str(row.pk)}).status_code == 302
    row.refresh_from_db()
    assert row.not_tuned_by == studied.admin and row.not_tuned_at is not None
    assert list(scorers_of_track(studied.track).in_use()) == [known, row]
    assert change_signs(studied.track)["scores"] != alone, "scores are made again"
    assert Audit.objects.filter(what="state judge not tuned").count() == 1
    assert f"admin stated on {row.not_tuned_at:%Y-%m-%d}" in desk.get(address).content.decode()


def test_the_api_and_a_file_record_the_statement(studied: World, tmp_path: Path) -> None:
    client = Client(headers={"Authorization": f"Token {studied.token}"})
    address = "/api/tracks/answers"
    one = {"id": studied.numbers("A")[0], "value": 1}

    def bring(name: str, **said: Any) -> dict[str, Any]:
        body = json.dumps({"name": name, "scores": [one], **said})
        answer = client.post(f"{address}/scores/", body, content_type="application/json")
        return dict(answer.json())

    assert bring("first")["needs_statement"] is True
    assert bring("second", not_tuned=True)["needs_statement"] is False
    told = {row["name"]: row for row in list_scorers(studied.track)}
    assert told["first"]["needs_statement"] and told["first"]["statement"] == ""
    assert "admin stated on" in told["second"]["statement"]
    path = tmp_path / "scores.csv"
    rows = [f"{pk},1" for pk in studied.numbers("A") + studied.numbers("B")]
    path.write_text("\n".join(["id,value", *rows]))
    third_judge = Name("third", "", "")
    [taken] = store_score_file(studied.track, path, third_judge, studied.admin).values()
    assert "narrow no score until an admin states" in taken.sentence
    store_score_file(studied.track, path, third_judge, studied.admin, not_tuned=True)
    third = Scorer.objects.get(name="third")
    assert third.came_late and not third.needs_statement


def test_the_board_says_who_answers_for_a_late_judge_and_puts_people_first(studied: World) -> None:
    Submission.objects.update(status="scored")
    score_track(studied.track)
    assert TILT in page(BOARD) and "came after" not in page(BOARD)
    row = late(studied)
    score_track(studied.track)
    shown = page(PAGE)
    assert TILT in page(BOARD), "it is not used"
    assert "late was added after the first judgments: it is not used" in shown, "its report card"
    Scorer.objects.filter(pk=row.pk).update(not_tuned_by=studied.admin, not_tuned_at=row.made_at)
    score_track(studied.track)
    shown = page(BOARD)
    statement = f"admin stated on {row.made_at:%Y-%m-%d} that it was not tuned on these judgments."
    assert f"late was added after the first judgments. {statement}" in shown
    assert f"This narrows intervals and {TILT}" not in shown
    view = Client().get(BOARD).context["view"]
    assert view.helped == "0" and "helped=all" in shown
    assert Client().get(f"{BOARD}&helped=all").context["view"].helped == "all"
    told = Client().get("/api/tracks/answers/board/").json()["evaluation"]["late_scorers"]
    assert told == [{"name": "late", "statement": statement}]


def test_a_late_judge_alone_has_a_report_card_and_narrows_nothing(studied: World) -> None:
    Submission.objects.update(status="scored")
    Scorer.objects.update(came_late=True)
    evaluation = score_track(studied.track)
    assert evaluation.report.used_scorers == () and evaluation.report.late_scorers == ()
    [card] = evaluation.report.worth["overall"].scorers
    assert card.worth and card.worth > 1.5 and card.needs_statement
    assert "added after judgments" in page(PAGE) and "an admin states that" in page(PAGE)


def test_a_late_judge_works_on_the_judgments_made_since(studied: World) -> None:
    Submission.objects.update(status="scored")
    row = late(studied)
    repeats = dict.fromkeys(Label.objects.values_list("target_id", flat=True), 1.0)
    assert LATER not in methods(score_track(studied.track)), "nothing was judged since"
    assert "Late judges, on later judgments" not in page(PAGE)

    for run in studied.runs.values():  # a second stage of the same draws
        distribution = run.distributions.get()
        batch = SampleBatch.objects.create(
            submission=run, distribution=distribution, design="poisson", seed=0, size=1, stage=2
        )
        targets = Target.objects.filter(instances__predictions__submission=run).distinct()
        Threshold.objects.bulk_create(Threshold(batch=batch, target=one, pi=0.9) for one in targets)
        drawn = [one for one in targets if one.u < 0.9]
        Sample.objects.bulk_create(
            Sample(batch=batch, target=one, probability=0.9) for one in drawn
        )
        new = [one for one in drawn if one.pk not in repeats]
        record_labels(
            [
                NewLabel(
                    one.pk, {"ratings": {name: [0.3] for name in CRITERIA}}, "crowd", "ratings", 1,
                    f"q:{one.pk}",
                )
                for one in new
            ]
        )  # fmt: skip
    data = load_data(studied.track)
    assert data.later is not None and row.pk in data.later.pool.scorers
    assert row.pk not in data.pool.scorers
    certain = data.later.inclusion.asked == 1
    assert set(data.pool.target_id[certain]) == set(repeats)
    np.testing.assert_allclose(data.later.inclusion.asked[~certain], since(data, certain))

    evaluation = score_track(studied.track)
    assert LATER in methods(evaluation)
    shown = page(PAGE)
    assert "Late judges, on later judgments" in shown and "With late judges" in shown
    view = Client().get(BOARD).context["view"]
    assert view.helped == "all", "the board prints the usual numbers first"


def since(data: Data, certain: Any) -> Any:
    """P(u < 0.9 | u ≥ s), s the share of the first threshold that had labels as the judge came."""
    begin = data.pool.u[certain].max()
    return (0.9 - begin) / (1 - begin)


def methods(evaluation: Evaluation) -> set[str]:
    return {key.method for key in evaluation.report.figures}
