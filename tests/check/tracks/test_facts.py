"""One fact, however its mentions are cut: predictions are matched with annotated documents through
settled clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from kbpo.instances.models import Instance, Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.kbp.facts import read_facts

pytestmark = pytest.mark.django_db
FOUNDED, WORKS = "per:organizations_founded", "per:employee_or_member_of"


def state(
    toy: Any, name: str, *claims: tuple[tuple[int, int], str, tuple[int, int]]
) -> tuple[Submission, list[int]]:
    """A submission that predicts relations of d1, every mention being its own canonical one; and
    their instances.
    """
    row = Submission.objects.create(
        track=toy.track,
        team=toy.teams["Patterns"],
        name=name,
        status="judging",
        file="x",
        file_name="x",
        file_size=1,
        file_digest=name,
        confirmed_at=timezone.now(),
        sampled_at=timezone.now(),
    )
    found = []
    for subject, predicate, object_ in claims:
        place = Place.of_unordered_pair(toy.documents["d1"].pk, subject, object_)
        one, _ = Instance.objects.get_or_create(
            target_id=make_targets(toy.corpus, [place])[place],
            document=toy.documents["d1"],
            predicate=toy.predicates[predicate],
            subject_begin=subject[0],
            subject_end=subject[1],
            object_begin=object_[0],
            object_end=object_[1],
        )
        Prediction.objects.create(
            submission=row,
            instance=one,
            subject_type="PER",
            object_type="ORG",
            provenance=[0, 9],
            subject_canonical_begin=subject[0],
            subject_canonical_end=subject[1],
            object_canonical_begin=object_[0],
            object_canonical_end=object_[1],
            subject_entity=0,
            object_entity=1,
            same_predicate=1,
            same_subject=1,
            subject_facts=1,
        )
        found.append(one.pk)
    return row, found


def annotate(
    toy: Any, *marked: tuple[tuple[int, int], str, tuple[int, int]], source: str = "document"
) -> None:
    """d1 as people read it: Mara Lindt, also called Lindt, and Nordwerk; what they marked of
    them.
    """
    mara, lindt = toy.span("d1", "Mara Lindt"), toy.span("d1", "Lindt", 1)
    firm, again = toy.span("d1", "Nordwerk"), toy.span("d1", "Nordwerk", 1)
    document = toy.documents["d1"].pk
    canonical = {mara: mara, lindt: mara, firm: firm, again: firm}
    places = {Place("mention", document, span): span for span in canonical}
    targets = make_targets(toy.corpus, list(places))
    record_labels(
        NewLabel(
            targets[place],
            {"canonical": list(canonical[span]), "type": "PER"},
            source,
            "majority",
            3,
            "read",
        )
        for place, span in places.items()
    )
    for subject, predicate, object_ in marked:
        pair = Place.of_unordered_pair(document, subject, object_)
        part = f"{predicate}{'>' if subject <= object_ else '<'}"
        value = {"shown": [part], "holds": [part]}
        record_labels(
            [NewLabel(make_targets(toy.corpus, [pair])[pair], value, source, "majority", 3, "read")]
        )


def facts_of(
    toy: Any, *runs: tuple[Submission, list[int]], entered: list[int] | None = None
) -> Any:
    instances = np.unique(np.concatenate([np.array(some, dtype=np.int64) for _, some in runs]))
    systems, read = [row.pk for row, _ in runs], [toy.documents["d1"].pk]
    return read_facts(toy.track, instances, systems, read, entered)


def test_mentions_that_overlap_settled_ones_state_the_annotated_fact(toy: Any) -> None:
    mara, firm = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    surname, longer = (
        (mara[0] + 5, mara[1]),
        (firm[0], firm[1] + 8),
    )  # "Lindt" of the first sentence, "Nordwerk in 1990"
    annotate(toy, (mara, FOUNDED, firm))
    found = facts_of(
        toy, state(toy, "a", (surname, FOUNDED, longer)), state(toy, "b", (mara, FOUNDED, firm))
    )
    assert found.fact[0] == found.fact[1] and found.found.tolist() == [True]
    assert found.marked.tolist() == [True, True] and found.inside.tolist() == [0, 0]
    assert found.pool_weight.tolist() == [0.5, 0.5] and found.predicted.all()


def test_another_predicate_or_another_cluster_is_another_fact(toy: Any) -> None:
    mara, firm = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    annotate(toy, (mara, FOUNDED, firm))
    place = toy.span("d1", "Bergen")
    found = facts_of(
        toy, state(toy, "a", (mara, WORKS, firm)), state(toy, "b", (mara, FOUNDED, place))
    )
    assert not found.found.any() and not found.marked.any()
    assert len(set(found.fact.tolist())) == 2


def test_what_readers_leave_undecided_stays_in_its_cluster(toy: Any) -> None:
    mara, firm = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    lindt = toy.span("d1", "Lindt", 1)
    annotate(toy, (mara, FOUNDED, firm))
    place = Place("mention", toy.documents["d1"].pk, lindt)
    value = {"undecided": True, "cluster": list(mara), "type": "PER", "votes": {}}
    target = make_targets(toy.corpus, [place])[place]
    record_labels([NewLabel(target, value, "document", "token_majority", 2, "again")])
    Label.objects.filter(target=target, origin="read").delete()
    surname = (lindt[0], lindt[1])
    found = facts_of(
        toy, state(toy, "a", (surname, FOUNDED, firm)), state(toy, "b", (mara, FOUNDED, firm))
    )
    assert found.fact[0] == found.fact[1] and found.marked.tolist() == [True, True]


def test_what_an_expert_says_of_one_target_is_no_find_of_the_annotation(toy: Any) -> None:
    mara, firm = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    annotate(toy, (mara, FOUNDED, firm))
    annotate(toy, (mara, WORKS, firm), source="expert")
    run = state(toy, "a", (mara, FOUNDED, firm), (mara, WORKS, firm))
    assert facts_of(toy, run).marked.tolist() == [True, False]
    pair = Place.of_unordered_pair(toy.documents["d1"].pk, mara, firm)
    value = {"shown": [f"{FOUNDED}>"], "holds": []}
    record_labels(
        [NewLabel(make_targets(toy.corpus, [pair])[pair], value, "expert", "adjudicated", 1, "no")]
    )
    found = facts_of(toy, run)  # and an expert who says that a mark is wrong takes it away
    assert not found.marked.any() and found.document.size == 0


def test_what_only_runs_state_that_have_not_entered_is_found_by_nobody(toy: Any) -> None:
    mara, firm = toy.span("d1", "Mara Lindt"), toy.span("d1", "Nordwerk")
    lindt, halden = toy.span("d1", "Lindt", 1), toy.span("d1", "Halden")
    annotate(toy, (mara, FOUNDED, firm), (lindt, WORKS, halden))
    first = state(toy, "a", (mara, FOUNDED, firm))
    waits = state(toy, "b", (mara, FOUNDED, firm), (lindt, WORKS, halden))
    assert facts_of(toy, first, waits).found.tolist() == [True, True]
    found = facts_of(toy, first, waits, entered=[first[0].pk])
    assert found.pool_weight.tolist() == [1, 0] and found.counted.tolist() == [True, False]
    assert found.in_scope.all() and found.predicted.tolist() == [[True, True], [False, True]]
    assert found.missed.tolist() == [1] and sorted(found.found.tolist()) == [False, True]
    assert (found.code >= 0).all(), "recall by itself still knows who states it"
