"""Simulated workers err as their bias says: the confusion differs in the direction that is
predicted.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from annotation_world import PARTS
from django.core.management import CommandError, call_command
from test_annotation_crowd import knows, logins

from annotation.labels import settle
from annotation.models import Response
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from rehearsal import reading
from rehearsal.annotators import Crowd
from rehearsal.bias import BIASES, mistaken, other_link

OFFERED = ["a>", "b>", "c>", "d>"]


def confusion(bias: str, holds: tuple[str, ...], n: int = 400) -> tuple[float, float]:
    """The mean number of relations that are claimed though they do not hold, and that are not
    though they do.
    """
    rng, claimed, dropped = random.Random(5), 0, 0
    for _ in range(n):
        said = set(mistaken(OFFERED, holds, bias, rng))
        assert said != set(holds), "a mistake is one"
        claimed += len(said - set(holds))
        dropped += len(set(holds) - said)
    return claimed / n, dropped / n


def test_without_bias_a_relation_is_too_many_or_too_few_as_it_comes() -> None:
    claimed, dropped = confusion("none", ("a>", "b>"))
    assert claimed == pytest.approx(0.5, abs=0.08) and dropped == pytest.approx(0.5, abs=0.08)


def test_who_says_yes_too_often_claims_and_never_drops() -> None:
    assert confusion("yes", ("a>", "b>")) == (1.0, 0.0)
    assert confusion("yes", ()) == (1.0, 0.0)
    assert confusion("yes", tuple(OFFERED)) == (0.0, 1.0), (
        "where all holds there is only one way to err"
    )


def test_plausible_errors_are_everybodys_and_lie_beside_the_truth() -> None:
    assert confusion("plausible", ("b>",)) == (1.0, 1.0), "one relation is taken for another"
    for holds, wrong in (
        (("b>",), ["a>"]),
        (("a>",), ["b>"]),
        ((), ["a>"]),
        (("a>", "b>"), ["b>", "c>"]),
    ):
        said = {
            tuple(mistaken(OFFERED, holds, "plausible", random.Random(seed))) for seed in range(20)
        }
        assert said == {tuple(wrong)}, "whoever errs says the same"
    at_random = {
        tuple(mistaken(OFFERED, ("b>",), "none", random.Random(seed))) for seed in range(20)
    }
    assert len(at_random) == 4
    assert {
        other_link(["1-2", "3-4", "other"], "3-4", "plausible", random.Random(s)) for s in range(9)
    } == {"1-2"}
    assert {
        other_link(["1-2", "3-4", "other"], "3-4", "none", random.Random(s)) for s in range(9)
    } == {"1-2", "other"}
    assert other_link(["1-2"], "1-2", "none", random.Random(1)) == "1-2"


@pytest.mark.parametrize("bias", list(BIASES))
def test_one_relation_alone_can_be_mistaken_too(bias: str) -> None:
    assert mistaken(["a>"], ["a>"], bias, random.Random(1)) == []
    assert mistaken(["a>"], [], bias, random.Random(1)) == ["a>"]


def test_of_the_pairs_of_a_document_too() -> None:
    page = {
        "mentions": [{"span": [0, 3]}, {"span": [5, 8]}],
        "options": [[{"part": part} for part in OFFERED]],
        "pairs": [[0, 1, 0, 0]] * 300,
    }

    def claimed(bias: str) -> Counter[int]:
        said = reading.pairs(page, "d", lambda *_: [("b", ">")], 0.5, random.Random(2), bias)
        return Counter(len(one) for one in json.loads(said).values())

    assert set(claimed("yes")) == {1, 2} and set(claimed("plausible")) == {1}
    assert set(claimed("none")) == {0, 1, 2}


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_a_crowd_that_says_yes_too_often_makes_labels_of_too_much(
    published: Submission, live_server: Any
) -> None:
    crowd = Crowd(
        live_server.url,
        logins("ada", "bea", "cid"),
        knows,
        accuracy=0.0,
        bias=["plausible"] * 2 + ["yes"],
    )
    assert crowd.work(at_most=60).errors == []
    settle.tick()
    said = Response.objects.filter(criterion="relation").order_by("assignment__worker", "pk")
    by_worker: dict[int, set[tuple[str, ...]]] = {}
    for worker, value in said.values_list("assignment__worker", "value"):
        by_worker.setdefault(worker, set()).add(tuple(value["holds"]))
    plausible, other, yes = (by_worker[key] for key in sorted(by_worker))
    assert plausible == other == {(PARTS[1],)}, "they err alike, so that most say what is wrong"
    assert all(PARTS[0] in holds and len(holds) == 2 for holds in yes)
    holds = {tuple(label.value["holds"]) for label in Label.objects.filter(target__kind="pair")}
    assert (PARTS[1],) in holds and all(PARTS[1] in one for one in holds)


def test_another_bias_is_refused() -> None:
    with pytest.raises(ValueError, match="no bias 'lazy'; there are none, yes, plausible"):
        Crowd("http://localhost", [("ada", "x")], knows, bias="lazy")
    with pytest.raises(CommandError, match="invalid choice: 'lazy'"):
        call_command("simulate", "http://localhost", "--knows", "x", "y", "--bias", "lazy")
