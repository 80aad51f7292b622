"""Answers aggregated anew by Dawid and Skene's model; labels are appended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from annotation_world import PARTS, answer_all
from django.test import Client
from django.utils import timezone

import estimators.votes
from annotation.labels import revise, settle
from annotation.labels.revise import TargetVotes
from annotation.models import Policy, Question, Worker
from kbpo.accounts.models import Audit, User
from kbpo.instances.merge import merged_value
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db
YES = {"a": "0-3", "b": "other", "holds": PARTS[0]}
NO = {"a": "0-3", "b": "other", "none": "1"}


@pytest.fixture
def divided(published: Submission, clients: list[Client]) -> Track:
    """Ada says yes to everything; bo and cy say no to it."""
    answer_all(clients[0], YES)
    answer_all(clients[1], NO)
    answer_all(clients[2], NO)
    settle.tick()
    return published.track


def holds(track: Track) -> set[tuple[str, ...]]:
    """What counts of each pair now."""
    targets = Question.objects.filter(track=track).values("target")
    return {
        tuple(
            merged_value(Label.objects.filter(target=one["target"]), merge_labels).get("holds", ())
        )
        for one in targets
    }


def believe_ada(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that knows ada to be right and the others to press any button."""

    def fit(
        votes: list[TargetVotes],
    ) -> tuple[dict[tuple[int, int, str], float], str]:
        ada = Worker.objects.get(user__username="ada").pk
        chances = {
            (pair.question.pk, pair.target, sentence): 0.99
            if ada in pair.yes.get(sentence, ())
            else 0.01
            for pair in votes
            for sentence in pair.sentences
        }
        return chances, ""

    monkeypatch.setattr(revise, "_statement_probabilities", fit)


def test_a_revision_says_what_would_flip_and_writes_nothing(
    divided: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    believe_ada(monkeypatch)
    made = revise.compute_revision(divided, revise.MODEL, 1)
    assert (made.judgments, len(made.labels)) == (6, 6)
    assert made.labels[0].value["holds"] == [PARTS[0]]
    assert Label.objects.filter(target__kind="pair").count() == 6
    assert revise.compute_revision(divided, revise.MAJORITY, 1).labels == []
    with pytest.raises(ValueError, match="no way of aggregating"):
        revise.compute_revision(divided, "coin", 1)


def test_switching_appends_labels_and_switching_back_too(
    divided: Track, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    believe_ada(monkeypatch)
    assert holds(divided) == {()}
    revise.switch_aggregation(divided, revise.MODEL, admin, "Ada is always right.")
    assert holds(divided) == {(PARTS[0],)}
    labels = Label.objects.filter(target__kind="pair", method="dawid_skene")
    assert labels.count() == 6 and labels[0].value["votes"] == {PARTS[0]: 1}
    assert revise.switch_aggregation(divided, revise.MODEL, admin, "Again.").labels == [], (
        "nothing flips twice"
    )
    revise.switch_aggregation(divided, revise.MAJORITY, admin, "She was not.")
    assert holds(divided) == {()}
    assert Label.objects.filter(target__kind="pair").count() == 18
    assert [
        (entry.before, entry.why) for entry in Audit.objects.filter(what="add up by").order_by("pk")
    ] == [
        ("majority", "Ada is always right."),
        ("dawid_skene", "Again."),
        ("dawid_skene", "She was not."),
    ]


def test_the_fit_of_divided_people_changes_nothing(divided: Track) -> None:
    made = revise.compute_revision(divided, revise.MODEL, 1)
    assert made.labels == made.reasons == []


def test_where_people_gave_few_answers_the_majority_stays_and_the_reason_is_reported(
    divided: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimators.votes, "FEWEST_ANSWERS", 19)
    made = revise.compute_revision(divided, revise.MODEL, 1)
    assert made.labels == []
    [reason] = made.reasons
    assert reason.endswith("Half of the people gave 18 answers or fewer; the model needs 19.")


def test_what_is_settled_during_a_fit_is_in_the_next(
    divided: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = revise.compute_revision

    def slowly(*args: Any) -> revise.Revision:
        made = fit(*args)
        Question.objects.filter(pk=Question.objects.order_by("pk")[0].pk).update(
            status_since=timezone.now()
        )
        return made

    Question.objects.update(status_since=timezone.now() - timedelta(hours=1))
    with monkeypatch.context() as slow:
        slow.setattr(revise, "compute_revision", slowly)
        revise.switch_aggregation(divided, revise.MODEL, None, "To try")
    monkeypatch.setattr(revise, "PAUSE", timedelta(0))
    revise.tick()
    assert Policy.objects.get().revision == 2, "it was forgotten"
    Question.objects.update(status_since=timezone.now() - timedelta(hours=1))
    revise.tick()
    assert Policy.objects.get().revision == 2
