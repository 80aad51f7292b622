"""The demo's texts: readable, and with what is right to say of each."""

import json
from pathlib import Path

from formats.inputs import InputRecord, read_inputs
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.outputs import read_outputs
from formats.scores import read_scores
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.models import Input
from rehearsal.newspaper.texts import TRUTH, TextStudy, Written, read_studies

LIMITS = Limits()


def inputs(study: TextStudy) -> list[InputRecord]:
    """What its systems were run on, as our own reader takes it."""
    report = Report()
    read = list(read_inputs(open_text(study.inputs, LIMITS, report), LIMITS, report))
    assert not list(report)
    return read


def outputs(study: TextStudy) -> dict[str, dict[str, str]]:
    """What each system wrote, as our own reader takes it."""
    known = {one.input_id: len(one.passages) for one in inputs(study)}
    read = {}
    for system in study.systems:
        report = Report()
        lines = open_text(Path(system["file"]), LIMITS, report)
        texts = read_outputs(lines, known, LIMITS, report)
        read[system["name"]] = {one.input_id: one.output for one in texts}
        assert not list(report) and len(read[system["name"]]) == len(known)
    return read


def test_every_text_can_be_judged_and_what_is_below_the_best_can_be_mended(demo: Path) -> None:
    summaries, answers = read_studies(demo / "texts")
    opinions = Written(demo / "texts" / TRUTH)
    for texts in outputs(summaries).values():
        for text in texts.values():
            rated = opinions.rate(text)
            assert set(rated.facets) == {"fluency", "redundancy", "overall"}
            assert min(rated.facets.values()) == 3 or rated.mended != text
    questions = {one.input_id: one for one in inputs(answers)}
    says = set()
    for texts in outputs(answers).values():
        for key, answer in texts.items():
            asked = questions[key]
            says.add(str(opinions.is_plausible(asked.question, answer)))
            for passage in asked.passages:
                shown = opinions.check(asked.question, answer, passage)
                assert shown.words in passage
                assert bool(shown.words) == (shown.says != "neither")
                says.add(shown.says)
    assert says == {"True", "False", "correct", "incorrect", "neither"}


def test_the_judge_has_scored_all_that_the_systems_wrote(demo: Path) -> None:
    for study in read_studies(demo / "texts"):
        report = Report()
        written = outputs(study)
        known = {name: set(texts) for name, texts in written.items()}
        lines = open_text(study.scores, LIMITS, report)
        scores = list(read_scores(lines, known, report, metric="judge"))
        assert not list(report)
        assert len(scores) == sum(map(len, known.values()))
        given: dict[tuple[str, str], set[float]] = {}
        for one in scores:
            text = written[one.system][one.input_id]
            given.setdefault((one.input_id, text), set()).add(one.value)
        assert {len(values) for values in given.values()} == {1}, "one text has one score"


def test_the_reference_is_written_by_people_and_one_system_is_a_baseline(demo: Path) -> None:
    summaries, answers = read_studies(demo / "texts")
    roles = [system["role"] for system in summaries.systems]
    assert sorted(roles) == ["baseline", "reference", "system", "system", "system"]
    references = {
        fields["input_id"]: fields["references"][0]
        for fields in map(json.loads, summaries.inputs.read_text("utf-8").splitlines())
    }
    for study in (summaries, answers):
        kind = kind_of(Track(kind=study.kind))
        asked = {
            one.input_id: Input(key=one.input_id, references=list(one.references))
            for one in inputs(study)
        }
        for texts in outputs(study).values():
            assert all(kind.shown_references(asked[key], text) for key, text in texts.items()), (
                "metrics have something to hold every output against"
            )
    editor = next(one["name"] for one in summaries.systems if one["role"] == "reference")
    assert outputs(summaries)[editor] == references
