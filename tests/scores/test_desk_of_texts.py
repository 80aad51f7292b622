"""The desk of a track of texts offers what such a track has, in its own words, and no more."""

from __future__ import annotations

import pytest
from django.test import Client
from scores.conftest import N, World

from annotation.desk.adjudicate import CannotAsk, dispute
from kbpo.evaluation.models import Inquiry
from kbpo.evaluation.run import evaluate
from kbpo.instances.models import Instance, Label
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from kbpo.web.desk.checklist import steps_of
from kbpo.web.desk.quality import checks


def test_the_desk_tells_of_inputs_and_offers_neither_documents_nor_experts(world: World) -> None:
    desk = Client()
    desk.force_login(world.admin)
    page = desk.get("/desk/tracks/answers/").content.decode()
    assert f"Answers, {N} inputs" in page
    for other in ("document", "Expert checks", "Scope"):
        assert other not in page.partition("<h1>")[2].partition("</main>")[0], other
    first = steps_of(world.track)[0]
    assert (first.name, first.done, first.says) == ("Inputs", True, f"{N} of Answers")
    quality = desk.get("/desk/tracks/answers/quality/").content.decode()
    assert "People rate here" in quality and "No question has two answers" not in quality
    assert "Queue and trails" not in quality and "Dawid" not in quality
    assert "No question has two answers" not in desk.get("/desk/").content.decode()
    assert f"each {kind_of(world.track).words.item} at most once" in page


def test_experts_are_not_asked_about_ratings_and_who_wants_to_is_told_so(world: World) -> None:
    desk = Client()
    desk.force_login(world.admin)
    assert desk.get("/desk/tracks/answers/checks/").status_code == 404
    Inquiry.ask(world.track, checks.WHAT, world.admin, budget=3, why="To see.")
    assert checks.answer(Inquiry.objects.get()) == {"refused": checks.NOT_HERE}
    target = Instance.objects.get(pk=world.numbers("A")[0]).target_id
    with pytest.raises(CannotAsk, match="people rate, and no expert is asked"):
        dispute(world.runs["A"], target, world.admin, "This is far better than that.")


def test_a_question_without_a_variance_between_outputs_is_named_where_others_have_theirs(
    studied: World,
) -> None:
    Submission.objects.update(status="scored")
    labels = list(Label.objects.all())
    for label in labels:
        said = label.value["ratings"]
        said["overall"] = [0.0, 1.0] if len(said["overall"]) > 1 else [0.5]
    Label.objects.bulk_update(labels, ["value"])
    evaluate(studied.track)
    page = Client().get("/tracks/answers/metrics/?criterion=fluency").content.decode()
    assert "Overall: no γ yet, since the variance between outputs comes out" in page
