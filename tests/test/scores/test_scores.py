"""Metrics are computed once, judges are imported whole or not at all,
and never told whose it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from kbpo.accounts.models import Audit
from kbpo.pool.pool import read_pool
from kbpo.scores import compute
from kbpo.scores.bring import (
    BadFile,
    CannotTake,
    Name,
    StoredScores,
    count_unscored,
    find_scorer,
    list_unscored,
    store_score_file,
    store_scores,
)
from kbpo.scores.compute import tick
from kbpo.scores.models import Computing, Score, Scorer
from kbpo.scores.read import read_scores
from kbpo.submissions.models import Submission
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.metrics import METRICS
from kbpo.tracks.texts.models import Input
from kbpo.tracks.texts.shipped import GenerationTrack
from tests.test.scores.conftest import World

JUDGE = Name("judge", "1", "p3")
Write = Callable[[list[dict[str, Any]]], Path]


def rows_for(world: World, value: float = 0.5) -> list[dict[str, Any]]:
    """A score for each output of both runs, as a file names them."""
    return [
        {"input_id": f"input {at}", "system": name, "value": value + at / 10}
        for name in ("A", "B")
        for at in range(4)
    ]


def test_metrics_are_computed_in_portions_and_never_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute, "AT_ONCE", 2)
    monkeypatch.setattr(compute, "LONGEST", 0.0)
    tick()
    assert not Score.objects.exists(), "no time: nothing is done, nothing lost"
    monkeypatch.setattr(compute, "LONGEST", 20.0)
    tick()
    assert set(Computing.objects.values_list("status", "done", "total")) == {("made", 4, 4)}
    scorers = Scorer.objects.filter(source="computed")
    assert {row.name for row in scorers} == set(METRICS)
    assert Score.objects.count() == 7 * len(METRICS), "the runs share one output of eight"
    before = list(Score.objects.order_by("pk").values_list("pk", "made_at"))
    tick()
    assert list(Score.objects.order_by("pk").values_list("pk", "made_at")) == before
    numbers = world.numbers("A")
    scores = read_scores(world.track, np.array(numbers))
    rouge = scores.value[:, scores.scorers.index(scorers.get(name="rouge_l_f").pk)]
    shown = kind_of(world.track).judge_inputs(numbers)
    [reference] = [at for at, pk in enumerate(numbers) if shown[pk]["output"] == "the cat sat"]
    assert rouge[reference] < 1, "a reference is held against the others"
    assert np.isfinite(scores.value[:, scores.scorers.index(scorers.get(name="length").pk)]).all()


def used(name: str) -> list[bool]:
    """Whether the model learns from each version of a metric, in the order of their making."""
    return list(Scorer.objects.filter(name=name).order_by("pk").values_list("is_used", flat=True))


def test_an_upgrade_that_is_taken_back_leaves_one_version_in_use(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = METRICS["length"]

    def upgrade(to: str) -> None:
        metrics = [
            replace(length, version=to) if one is length else one for one in METRICS.values()
        ]
        monkeypatch.setattr(GenerationTrack, "metrics", metrics)
        tick()

    tick()
    upgrade("next")
    assert used("length") == [False, True]
    upgrade(length.version)
    assert used("length") == [True, False] and used("bleu") == [True]
    upgrade("next")
    assert used("length") == [False, True]
    told = list(Audit.objects.filter(what__startswith="switch").order_by("pk"))
    assert [one.what for one in told][-2:] == ["switch judge off", "switch judge on"]
    Scorer.objects.filter(name="length", version="next").update(is_used=False)
    upgrade(length.version)
    assert used("length") == [False, False], "what an admin switched off comes back by no version"


def test_a_judge_is_shown_the_text_and_never_who_wrote_it(world: World) -> None:
    found = list_unscored(world.track, JUDGE)
    assert [one["id"] for one in found] == sorted({*world.numbers("A"), *world.numbers("B")})
    assert {one["output"] for one in found} >= {"the cat sat", "rain"} and found[0]["source"]
    told = json.dumps(found)
    assert all(word not in told for word in ("submission", "team", "system", '"one"', '"two"'))
    beside = {one["output"]: one["references"] for one in found}
    assert beside["the cat sat"] == ["a cat was sitting"], "else it would know a person’s text"
    assert beside["rain"] == ["the cat sat", "a cat was sitting"]
    Input.objects.filter(key="input 1").update(prompt="Be brief.", split="test")
    told_of = {
        one["input_id"]: (one["prompt"], one["split"]) for one in list_unscored(world.track, JUDGE)
    }
    assert told_of["input 1"] == ("Be brief.", "test") and told_of["input 0"] == ("", "")
    page = list_unscored(world.track, JUDGE, after=found[2]["id"], limit=2)
    assert [one["id"] for one in page] == [one["id"] for one in found[3:5]]


def test_a_judge_goes_on_where_it_was_also_with_runs_that_arrive_later(world: World) -> None:
    first = [one["id"] for one in list_unscored(world.track, JUDGE, limit=3)]
    taken = store_scores(world.track, JUDGE, [(one, 0.5) for one in first], world.admin)
    assert (taken.stored, taken.already) == (3, 0)
    scorer = find_scorer(world.track, JUDGE)
    assert count_unscored(world.track, scorer) == 4
    again = store_scores(world.track, JUDGE, [(first[0], 0.9)], world.admin)
    assert (again.stored, again.already) == (0, 1)
    assert Score.objects.get(scorer=scorer, instance=first[0]).value == 0.5, "the first stays"
    world.add("C", ["the cat sat", "news"])
    assert count_unscored(world.track, scorer) == 5
    assert Audit.objects.filter(what="bring judge", track="answers").count() == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused_whole(world: World, value: float) -> None:
    first, second = world.numbers("A")[:2]
    with pytest.raises(CannotTake, match=f"{second} is no finite number"):
        store_scores(world.track, JUDGE, [(first, 0.1), (second, value)], world.admin)
    assert not Score.objects.exists() and not Scorer.objects.exists()


def test_what_the_track_does_not_have_is_refused_whole(world: World) -> None:
    for strange in (10**9, 10**30, -1):
        with pytest.raises(CannotTake, match=f"nothing with the id {strange}"):
            store_scores(
                world.track, JUDGE, [(world.numbers("A")[0], 0.1), (strange, 0.1)], world.admin
            )
    tick()
    with pytest.raises(CannotTake, match="computed here"):
        bleu = Name("bleu", METRICS["bleu"].version)
        store_scores(world.track, bleu, [(world.numbers("A")[0], 0.1)], world.admin)


def test_a_file_is_stored_whole(world: World, written: Write) -> None:
    taken = store_score_file(world.track, written(rows_for(world)), JUDGE, world.admin)
    assert {name: (one.stored, one.already) for name, one in taken.items()} == {
        "judge 1 p3": (7, 0)
    }
    pool = read_pool(world.track, [run.pk for run in world.runs.values()])
    assert pool.scores.shape == (7, 1) and not np.isnan(pool.scores).any()
    Scorer.objects.update(is_used=False)
    assert read_pool(world.track, [world.runs["A"].pk]).scorers == []


SPOILT = [
    (lambda rows: rows[:4], "consistency.one_system", "“A” alone"),
    (lambda rows: rows[:-1], "consistency.scores_missing", "no score for 1 of 4 outputs"),
    (lambda rows: [*rows, rows[0]], "consistency.score_twice", "already"),
    (lambda rows: [*rows, rows[0] | {"value": "NaN"}], "syntax.number", "no finite number"),
    (lambda rows: [*rows, rows[0] | {"input_id": "z"}], "reference.input", "“z”"),
    (lambda rows: [*rows, rows[0] | {"system": "Z"}], "reference.system", "it has “A”, “B”"),
    (lambda rows: [], "syntax.empty", "empty"),
]


def test_of_a_file_with_an_error_nothing_is_stored(world: World, written: Write) -> None:
    for spoil, code, sentence in SPOILT:
        with pytest.raises(BadFile) as refused:
            store_score_file(world.track, written(spoil(rows_for(world))), JUDGE, world.admin)
        assert code in refused.value.report.by_code
        assert any(sentence in message.text for message in refused.value.report)
        assert not any(word in str(one.text) for one in refused.value.report for word in ("kept",))
        assert not Score.objects.exists() and not Scorer.objects.exists()


def test_of_a_run_that_is_still_read_a_file_of_scores_waits(world: World, written: Write) -> None:
    own = {"input_id": "input 0", "system": "C", "value": 1}
    late = world.add("C", [])
    Submission.objects.filter(pk=late.pk).update(status="received")
    with pytest.raises(CannotTake, match="“C”: still being read"):
        store_score_file(world.track, written([*rows_for(world), own]), JUDGE, world.admin)
    Submission.objects.exclude(pk=late.pk).update(status="withdrawn")
    for rows in ([own], [{"input_id": "input 0", "value": 1}]):
        with pytest.raises(CannotTake, match="“C”: still being read"):
            store_score_file(world.track, written(rows), JUDGE, world.admin)
    Submission.objects.update(status="withdrawn")
    with pytest.raises(CannotTake, match="No run of Answers has been read yet"):
        store_score_file(world.track, written([own]), JUDGE, world.admin)
    assert not Scorer.objects.exists()


def test_a_program_asks_and_answers_over_the_api(world: World) -> None:
    client = Client(headers={"Authorization": f"Token {world.token}"})
    address = "/api/tracks/answers"
    who = {"name": "judge", "version": "1", "prompt": "p3"}
    asked = client.get(f"{address}/unscored/", {**who, "limit": 5}).json()
    assert asked["count"] == 7 and len(asked["results"]) == 5
    assert asked["next"].endswith(f"after={asked['results'][-1]['id']}")
    scores = [{"id": one["id"], "value": 0.25} for one in asked["results"]]
    body = json.dumps({**who, "scores": scores})
    brought = client.post(f"{address}/scores/", body, content_type="application/json")
    assert brought.status_code == 201
    assert brought.json() == {
        "stored": 5,
        "already": 0,
        "left": 2,
        "needs_statement": False,
    }
    bad = json.dumps({**who, "scores": [{"id": 5, "value": "much"}]})
    refused = client.post(f"{address}/scores/", bad, content_type="application/json")
    assert refused.status_code == 400 and refused.json()["error"] == "invalid"
    assert refused.json()["detail"] == "scores[0].value: A valid number is required.", "and where"
    spoilt = [{"id": first_of, "value": value} for first_of, value in ((1, 1), (2, "x"), (3, "y"))]
    bad = json.dumps({**who, "scores": spoilt})
    refused = client.post(f"{address}/scores/", bad, content_type="application/json")
    told = "scores[1].value: A valid number is required."
    assert refused.json()["detail"].startswith(told), "of thousands the first ten"
    first = asked["results"][0]["id"]
    for values, status, why in (
        (f'[{{"id": {first}, "value": NaN}}]', 400, ""),
        ('[{"id": 1000000, "value": 1}]', 422, "nothing with the id 1000000"),
        (f'[{{"id": {1 << 63}, "value": 1}}]', 422, "nothing with the id"),
        (f'[{{"id": {first}, "value": -1e9}}, {{"id": {first}, "value": 0}}]', 422, "two scores"),
        (f'[{{"id": {first}, "value": -1e10}}]', 422, "between −1,000,000,000 and 1,000,000,000"),
        (f'[{{"id": {first}, "value": 1{"0" * 400}}}]', 400, "valid number"),
        (f'[{{"id": {first}, "value": true}}]', 400, "valid number"),
        (f'[{{"id": {first}, "value": 1}}, {{"id": {first}, "value": 0}}]', 422, "two scores of"),
        ("[]", 400, ""),
    ):
        body = f'{{"name": "other", "scores": {values}}}'
        refused = client.post(f"{address}/scores/", body, content_type="application/json")
        assert refused.status_code == status and why in refused.json()["detail"], values
    assert not Scorer.objects.filter(name="other").exists(), "nothing half"
    listed = Client().get(f"{address}/judges/").json()["judges"]
    assert [(one["name"], one["scored"], one["of"]) for one in listed] == [("judge", 5, 7)]
    assert client.get(f"{address}/unscored/", who | {"after": "x"}).status_code == 400


REFUSED = [
    (lambda rows: rows[:4], "consistency.one_system", 0, "“A” alone"),
    (lambda rows: [*rows, rows[0] | {"value": "NaN"}], "syntax.number", 9, "value “NaN”"),
    (lambda rows: [*rows, rows[0] | {"value": None}], "syntax.number", 9, "“None”"),
    (lambda rows: [*rows, rows[0]], "consistency.score_twice", 9, "on line 1 already"),
    (
        lambda rows: [*rows, rows[0] | {"input_id": "<b>\u202ez"}],
        "reference.input",
        9,
        "is not in the corpus",
    ),
    (lambda rows: [{"output": "x"}], "syntax.key_missing", 1, "“input_id” is missing"),
]


def test_a_bad_file_of_scores_is_refused_over_the_api_with_what_is_wrong_where(
    world: World, written: Write
) -> None:
    for spoil, code, line, sentence in REFUSED:
        client = Client(headers={"Authorization": f"Token {world.token}"})
        with written(spoil(rows_for(world))).open("rb") as file:
            refused = client.post("/api/tracks/answers/judges/", {"file": file, "name": "judge"})
        told = refused.json()
        assert refused.status_code == 422 and told["error"] == "bad_file"
        assert (told["n"] >= 1) and told["detail"] in [one["text"] for one in told["problems"]]
        [problem] = [one for one in told["problems"] if one["code"] == code]
        assert problem["line"] == line and sentence in problem["text"]
        assert not Score.objects.exists() and not Scorer.objects.exists()


def test_a_text_of_two_runs_that_was_scored_twice_has_the_mean(
    world: World, written: Write
) -> None:
    rows = rows_for(world)
    rows[4]["value"] = 0.9  # both wrote the same for the first input, and a judge was asked twice
    [(judge, taken)] = store_score_file(
        world.track, written(rows), Name("judge", "1", "p3"), world.admin
    ).items()
    assert f"{judge}: {taken.sentence}" == (
        "judge 1 p3: 7 scores are stored. One text that several systems wrote had several scores:"
        " their mean counts."
    )
    [both] = set(world.numbers("A")) & set(world.numbers("B"))
    assert Score.objects.get(instance=both).value == pytest.approx(0.7)
    twice = [*rows, {"input_id": "input 0", "system": "A", "value": 0.4}]
    with pytest.raises(BadFile, match="has scored this output on line 1 already"):
        store_score_file(world.track, written(twice), Name("another"), world.admin)
    assert StoredScores(10, 2, 74).sentence == (
        "10 scores are stored, 2 were known. 74 texts that several systems wrote had several"
        " scores each: their mean counts."
    )


def test_the_page_takes_a_file_says_what_is_wrong_and_switches(
    world: World, written: Write
) -> None:
    client = Client()
    client.force_login(world.admin)
    address = "/desk/tracks/answers/scores/"
    with written(rows_for(world)[:5]).open("rb") as file:
        refused = client.post(address, {"file": file, "name": "judge"})
    assert refused.status_code == 422
    assert "no score for 3 of 4 outputs of “B”" in refused.content.decode()
    with written(rows_for(world)).open("rb") as file:
        assert client.post(address, {"file": file, "name": "judge"}).status_code == 302
    scorer = Scorer.objects.get()
    client.post(address, {"switch": scorer.pk, "used": "0"})
    scorer.refresh_from_db()
    assert not scorer.is_used
    shown = client.get(address).content.decode()
    assert "switched off" in shown and "7 of 7" in shown
    assert client.post(address, {"switch": "x", "used": "0"}).status_code == 404
    assert "Choose a file" in client.post(address, {}).content.decode()
