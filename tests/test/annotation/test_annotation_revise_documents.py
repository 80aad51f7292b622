"""What people marked in documents that they read whole, aggregated anew: by the model and back; one
more reader.
"""

from __future__ import annotations

from typing import Any

import pytest
from documents_world import partly, read_whole

from annotation.labels import revise
from annotation.labels.exclude import exclude_worker
from annotation.labels.revise import TargetVotes
from annotation.models import Question, Worker
from kbpo.instances.merge import merged_value, merged_values
from kbpo.instances.models import Instance, Label
from kbpo.tracks.kbp.merge import merge_labels
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
DIED = "per:place_of_death>"


@pytest.fixture(autouse=True)
def quiet(settings: Any) -> None:
    settings.ROOT_URLCONF = "kbpo.urls"


@pytest.fixture
def read(toy: Toy, keep: Any) -> Toy:
    """Four documents that three people read; that Per Berg died in Oslo, Ada alone marked."""
    keep("four documents", lambda: read_whole(toy, 4, partly))
    return toy


def believe_ada(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that knows Ada to be right and the others to press any button."""

    def fit(
        said: list[TargetVotes],
    ) -> tuple[dict[tuple[int, int, str], float], str]:
        ada = Worker.objects.get(user__username="ada").pk
        chances = {
            (pair.question.pk, pair.target, sentence): 0.99
            if ada in pair.yes.get(sentence, ())
            else 0.01
            for pair in said
            for sentence in pair.sentences
        }
        return chances, ""

    monkeypatch.setattr(revise, "_statement_probabilities", fit)


def pairs_asked() -> int:
    return sum(
        len(one.payload["pairs"])
        for one in Question.objects.filter(interface="relations_exhaustive")
    )


def test_what_would_flip_is_one_fact_of_a_pair_and_the_majority_stands(
    read: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert revise.compute_revision(read.track, revise.MAJORITY, 1).labels == [], (
        "labels are the majority's already"
    )
    before = Label.objects.count()
    believe_ada(monkeypatch)
    made = revise.compute_revision(read.track, revise.MODEL, 1)
    assert made.judgments == pairs_asked()
    [label] = made.labels
    assert label.value == {"shown": [DIED], "holds": [DIED], "votes": {DIED: 1}}
    assert Label.objects.count() == before


def test_a_fact_comes_with_the_model_and_is_missing_again_without_it(
    read: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, instances = read.users["Admin"], Instance.objects.count()
    believe_ada(monkeypatch)
    [changed] = revise.switch_aggregation(
        read.track, revise.MODEL, admin, "Ada is always right."
    ).labels
    labels = Label.objects.filter(target=changed.target_id)
    assert {(one.source, one.method) for one in labels} == {("document", "dawid_skene")}
    assert merged_value(labels, merge_labels)["holds"] == [DIED]
    assert Instance.objects.count() == instances + 1, "it is a fact, whoever claims it"
    assert revise.switch_aggregation(read.track, revise.MODEL, admin, "Again.").labels == []
    assert (
        len(revise.switch_aggregation(read.track, revise.MAJORITY, admin, "She was not.").labels)
        == 1
    )
    assert merged_value(Label.objects.filter(target=changed.target_id), merge_labels) == {}, (
        "missing, and not false"
    )
    [(_, value, unanswered)] = merged_values([changed.target_id], merge_labels)
    assert (value, unanswered) == ({}, False), "and a follow-up may ask about it"
    assert revise.compute_revision(read.track, revise.MAJORITY, 9).labels == []


def test_without_the_answers_of_who_is_excluded_it_is_still_the_model_that_aggregates(
    read: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    believe_ada(monkeypatch)
    [changed] = revise.switch_aggregation(
        read.track, revise.MODEL, read.users["Admin"], "Ada is always right."
    ).labels
    exclude_worker(
        Worker.objects.get(user__username="cy"), "Another works for them.", read.users["Admin"]
    )
    label = Label.objects.filter(target=changed.target_id).order_by("-pk")[0]
    assert (label.value["holds"], label.n, label.method) == ([DIED], 2, "dawid_skene")
    assert revise.compute_revision(read.track, revise.MODEL, 9).labels == []


def test_the_fit_leaves_what_all_say(read: Toy) -> None:
    made = revise.compute_revision(read.track, revise.MODEL, 1)
    agreed = Label.objects.filter(
        target__kind="pair", source="document", disagreement=0
    ).values_list("target", flat=True)
    assert len(agreed) == 9 and not {label.target_id for label in made.labels} & set(agreed)
