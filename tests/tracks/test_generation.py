"""Generated text: files of outputs, what is told of them, and their way to the board."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from formats.generation import read_inputs, read_outputs, shown
from formats.limits import Limits
from formats.messages import FormatError, Report
from kbpo.accounts.models import User
from kbpo.evaluation.leaderboard import board
from kbpo.instances.models import Target
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.generation.load import load_inputs
from kbpo.tracks.generation.track import FACETS
from rehearsal.browser import Browser
from tests.tracks.test_toy_kind import PASSWORD, call, researcher, upload

INPUTS = tuple(f"article {number}" for number in range(6))


def line(key: str, output: Any) -> str:
    return json.dumps({"input_id": key, "output": output})


def read(*lines: str) -> tuple[list[str], dict[str, int], str]:
    """The texts that can be used, how often each code was said, and all sentences."""
    report = Report()
    source = io.BytesIO("\n".join(lines).encode())
    outputs = list(read_outputs(source, ("a", "b", "c"), Limits(), report))
    said = " ".join(message.text for message in report)
    return [output.text for output in outputs], dict(report.by_code), said


def test_unknown_missing_and_duplicate_inputs_are_named() -> None:
    texts, codes, said = read(line("a", "One."), line("a", "Two."), line("z", "Three."))
    assert texts == ["One."]
    assert codes == {
        "consistency.input_twice": 1,
        "reference.input": 1,
        "consistency.input_missing": 1,
    }
    assert "“z”" in said and "“b”, “c”" in said


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("no json", "syntax.json"),
        ("[1]", "syntax.json"),
        (json.dumps({"input_id": "a"}), "syntax.key_missing"),
        (line("a", 3), "syntax.value"),
        (line("a", " \u200b\u202e "), "syntax.value"),
        (line("a", "null \x00"), "syntax.control"),
        (line("a", "x" * 200_000), "limits.line"),
    ],
)
def test_a_line_that_cannot_be_used_is_dropped_with_a_sentence(bad: str, code: str) -> None:
    texts, codes, said = read(bad, line("b", "Good."), line("c", "Good."))
    assert texts == ["Good.", "Good."] and codes[code] == 1 and said


def test_what_nobody_sees_is_not_shown() -> None:
    assert shown("e\u0301 \u202eabc\u200b \n ") == "é abc"


def test_inputs_that_are_wrong_are_refused_with_their_line(tmp_path: Path) -> None:
    for text, sentence in (("{}", "Line 1"), ('{"input_id": "a"}\n' * 2, "Line 2"), ("", "empty")):
        with pytest.raises(FormatError, match=sentence):
            read_inputs(io.BytesIO(text.encode()), Limits())


@pytest.mark.django_db
def test_a_corpus_of_inputs_is_loaded_once(tmp_path: Path) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    call_command("load_inputs", "Articles", path, stdout=io.StringIO())
    with pytest.raises(CommandError, match="already"):
        call_command("load_inputs", "Articles", path)


def rate(url: str, name: str) -> int:
    """How many outputs an annotator rated: good where the text says so, else bad."""
    if not User.objects.filter(username=name).exists():
        User.objects.create_user(name, password=PASSWORD, is_annotator=True)
    browser, answers = Browser(url), 0
    login = browser.get("/login/").form()
    browser.submit(login, login.values() | {"username": [name], "password": [PASSWORD]})
    page = browser.get("/annotate/next/")
    while page.path != "/annotate/":
        if page.has_form("answer"):
            form, answers = page.form("answer"), answers + 1
            value = "1" if "reads well" in page.text else "3"
            picked = {facet[0]: [value] for facet in FACETS}
            page = browser.submit(form, form.values() | picked)
        else:
            terms = page.form()
            browser.submit(terms, terms.values() | {"agree": ["1"]})
            page = browser.get("/annotate/next/")
    return answers


def test_outputs_travel_to_the_board_and_equal_ones_share_their_ratings(
    transactional_db: None, live_server: Any, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    corpus, url = load_inputs("Articles", path), live_server.url
    track = open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )
    assert (track.criterion, track.workers_per_question) == ("overall", 2)
    token = researcher("writers")
    good = [line(key, f"{key} reads well") for key in INPUTS]
    half = [*good[:3], *(line(key, f"{key} does not") for key in INPUTS[3:])]
    submissions = [
        upload(url, token, name, lines, track.slug)
        for name, lines in (("Good", good), ("Half", half))
    ]
    assert Target.objects.filter(kind="output").count() == 9, "three are written by both"
    for pk in submissions:
        call(f"{url}/api/submissions/{pk}/confirm/", token, b"{}")
    call_command("tick", "--until-idle", verbosity=0)
    while rate(url, "ada") + rate(url, "bo"):
        call_command("tick", "--until-idle", verbosity=0)
    shown_board = board(track, distribution="instance", criterion="fluency")
    figures = {row.submission.name: row.figures["mean"] for row in shown_board.rows}
    assert figures["Good"].value == pytest.approx(1.0, abs=0.01)
    assert figures["Half"].low95 <= 0.5 <= figures["Half"].high95
    assert [row.submission.name for row in shown_board.rows] == ["Good", "Half"]
    page = Browser(url).get(f"/tracks/{track.slug}/").text
    assert "Fluency" in page and "outputs judged by 2 people" in page
    for address in (f"/submissions/{submissions[0]}/", f"/tracks/{track.slug}/about/"):
        assert Browser(url).get(address).status == 200
