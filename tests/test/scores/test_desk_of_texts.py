"""The desk of a track of texts offers what such a track has, in its own words, and no more."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from annotation.desk.experts import CannotAsk, store_dispute
from kbpo.evaluation import correction
from kbpo.evaluation.run import score_track
from kbpo.experts.draw import CannotDraw, order_expert_round
from kbpo.instances.models import Instance, Label
from kbpo.sampling.models import ExpertRound
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import FORM, kind_of
from kbpo.tracks.texts.declared import store_form
from kbpo.web.desk.tracks import track_checklist
from tests.test.scores.conftest import N, World
from tests.test.tracks.test_declared_forms import BETTER


def test_the_desk_tells_of_inputs_and_offers_nothing_of_documents(world: World) -> None:
    desk = Client()
    desk.force_login(world.admin)
    page = desk.get("/desk/tracks/answers/").content.decode()
    assert f"Answers, {N} inputs" in page
    for other in ("document", "Scope"):
        assert other not in page.partition("<h1>")[2].partition("</main>")[0], other
    assert ">Experts<" in page
    first = track_checklist(world.track)[0]
    assert (first.name, first.done, first.says) == ("Inputs", True, f"{N} of Answers")
    quality = desk.get("/desk/tracks/answers/quality/").content.decode()
    assert (
        "People give ratings on this track" in quality
        and "No question has two answers" not in quality
    )
    assert ">Experts<" in quality and "Dawid" not in quality
    assert "No question has two answers" not in desk.get("/desk/").content.decode()
    assert f"each {kind_of(world.track).words.item} at most once" in page


def test_experts_are_not_asked_about_preferences_and_who_wants_to_is_told_why(
    world: World,
) -> None:
    store_form(BETTER)
    world.track.kind, world.track.criterion = f"{FORM}better", "preferred"
    world.track.save(update_fields=["kind", "criterion"])
    why = kind_of(world.track).words.unchecked
    assert "which of two texts they prefer" in why
    desk = Client()
    desk.force_login(world.admin)
    answer = desk.get("/desk/tracks/answers/experts/")
    assert answer.status_code == 404 and why in html.unescape(answer.content.decode())
    assert why in html.unescape(desk.get("/desk/tracks/answers/quality/").content.decode())
    tools = desk.get("/desk/tracks/answers/quality/").content.decode()
    assert "/desk/tracks/answers/gold/" in tools
    assert "/desk/tracks/answers/experts/" not in tools
    with pytest.raises(CannotDraw) as refused:
        order_expert_round(world.track, 3, world.admin, "To see.")
    assert str(refused.value) == why
    target = Instance.objects.get(pk=world.numbers("A")[0]).target_id
    with pytest.raises(CannotAsk, match="no expert can say that it is wrong"):
        store_dispute(world.runs["A"], target, world.admin, "This is far better than that.")


def test_a_round_that_cannot_be_drawn_says_what_failed_and_what_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Client()
    desk.force_login(world.admin)
    order_expert_round(world.track, 3, world.admin, "To see.")
    page = "/desk/tracks/answers/experts/"
    assert "A round is being drawn" in desk.get(page).content.decode()
    monkeypatch.setattr(correction, "read_frame", lambda *_: 1 / 0)
    assert correction.tick() == 0
    told = desk.get(page).content.decode()
    assert "It failed 1 time" in told and "ZeroDivisionError" in told and "is retried at" in told
    assert "being drawn" not in told
    ExpertRound.objects.update(status="failed")
    told = desk.get(page).content.decode()
    assert "A round could not be drawn at" in told and "try again" in told and "Draw them" in told


def test_a_question_without_a_variance_between_outputs_is_named_where_others_have_theirs(
    studied: World,
) -> None:
    Submission.objects.update(status="scored")
    labels = list(Label.objects.all())
    for label in labels:
        said = label.value["ratings"]
        said["overall"] = [0.0, 1.0] if len(said["overall"]) > 1 else [0.5]
    Label.objects.bulk_update(labels, ["value"])
    score_track(studied.track)
    page = Client().get("/tracks/answers/metrics/?criterion=fluency").content.decode()
    assert "Questions without variance between outputs are left out" in page
