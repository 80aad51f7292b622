"""Generated text: files of outputs, what is told of them, and their way to the board."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from annotation.budget.check_books import check_books
from annotation.models import Question
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.outputs import read_outputs
from kbpo.accounts.models import User
from kbpo.corpus.load import CannotLoad
from kbpo.evaluation.leaderboard import read_board
from kbpo.instances.models import Target
from kbpo.money.spend import balance
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.texts.models import Input
from kbpo.tracks.texts.shipped import AnswersTrack, GenerationTrack
from kbpo.tracks.texts.store import load_inputs
from rehearsal.annotators import Crowd
from rehearsal.browser import Browser
from rehearsal.opinions import PassageVerdict, TrueRating
from tests.test.tracks.test_toy_kind import PASSWORD, call, researcher, upload

INPUTS = tuple(f"article {number}" for number in range(6))


def line(key: str, output: Any) -> str:
    return json.dumps({"input_id": key, "output": output})


def read(*lines: str) -> tuple[list[str], dict[str, int], str]:
    """The texts that can be used, how often each code was said, and all sentences."""
    report = Report()
    source = io.BytesIO("\n".join(lines).encode())
    rows = open_text(source, Limits().for_outputs(), report)
    outputs = list(read_outputs(rows, {"a": 0, "b": 0, "c": 0}, Limits(), report))
    said = " ".join(message.text for message in report)
    return [output.output for output in outputs], dict(report.by_code), said


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
        (line("a", " \u200b\u202e "), "syntax.output_empty"),
        (line("a", "null \x00"), "syntax.control"),
        (line("a", "x" * 200_001), "limits.output"),
        (line("a", "x" * 3_000_000), "limits.line"),
        (json.dumps({"input_id": "a", "output": "One.", "passage": 9}), "reference.passage"),
    ],
)
def test_a_line_that_cannot_be_used_is_dropped_with_a_sentence(bad: str, code: str) -> None:
    texts, codes, said = read(line("c", "Good."), bad, line("b", "Good."))
    kept = ["One."] if code == "reference.passage" else []
    assert texts == ["Good.", *kept, "Good."] and codes[code] == 1 and said


def test_what_nobody_sees_is_not_shown_and_markup_is_kept_as_text() -> None:
    texts, codes, _ = read(line("a", "e\u0301 \u202eabc\u200b \n "), line("b", "a <b>c</b>"))
    assert texts == ["é abc", "a <b>c</b>"]
    assert {"syntax.bidirectional", "syntax.invisible", "syntax.markup"} <= codes.keys()


def test_inputs_that_are_wrong_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "inputs.jsonl"
    for text, sentence in (
        ("{}", "line 1: "),
        ('{"input_id": "a"}\n' * 2, "line 2: "),
        ("\n", "has no input"),
    ):
        path.write_text(text)
        with pytest.raises(CannotLoad, match=sentence) as refused:
            load_inputs("Articles", path)
        assert "kept" not in str(refused.value), "nothing is"


def test_of_answers_all_references_are_shown_also_an_equal_one() -> None:
    asked = Input(key="a", references=["Paris", "in Paris"])
    assert list(AnswersTrack(Track()).shown_references(asked, "Paris")) == ["Paris", "in Paris"]
    assert list(GenerationTrack(Track()).shown_references(asked, "Paris")) == ["in Paris"]


@pytest.mark.django_db
def test_a_corpus_of_inputs_is_loaded_once(tmp_path: Path) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    call_command("load_corpus", "Articles", path, stdout=io.StringIO())
    with pytest.raises(CommandError, match="already"):
        call_command("load_corpus", "Articles", path)


@pytest.mark.django_db
def test_inputs_are_downloaded_without_what_people_wrote_for_them(
    tmp_path: Path, client: Client
) -> None:
    path = tmp_path / "inputs.jsonl"
    given = {"input_id": "a", "question": "Where?", "passages": ["In Halden."]}
    given |= {"prompt": "Answer in a word.", "split": "test"}
    path.write_text(json.dumps(given | {"references": ["Halden"]}) + "\n" + '{"input_id": "b"}\n')
    corpus = load_inputs("Articles", path)
    track = open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )
    page = client.get(f"/tracks/{track.slug}/about/").content.decode()
    assert "2 inputs, without what people wrote for them" in page
    link = client.get(f"/api/tracks/{track.slug}/").json()["corpus"]["links"]["documents"]
    assert f'href="{link.removeprefix("http://testserver")}"' in page
    lines = gzip.decompress(client.get(link).getvalue()).decode().splitlines()
    assert [json.loads(line) for line in lines] == [given, {"input_id": "b"}]
    corpus.may_be_downloaded = False
    corpus.save()
    assert client.get(link).status_code == 404


@pytest.mark.django_db
def test_answers_are_not_asked_about_without_question_and_passage(tmp_path: Path) -> None:
    path = tmp_path / "inputs.jsonl"
    lines = (
        {"input_id": "whole", "question": "Who?", "passages": ["Mara."]},
        {"input_id": "long", "question": "Who?", "source": "It was Mara."},
        {"input_id": "none", "question": "Who?"},
        {"input_id": "mute", "passages": ["Mara."]},
    )
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    corpus = load_inputs("Questions", path)
    with pytest.raises(ValidationError) as refused:
        create_track(corpus, "Asked", kind="answers")
    assert refused.value.message_dict["corpus"] == [
        "1 of 4 inputs of Questions have no question; 1 of 4 inputs of Questions have no passage"
        " and no source: nobody could check an answer to them."
    ]
    assert create_track(corpus, "Rated", kind="generation").pk, "a text is rated by itself"
    Input.objects.filter(key__in=["none", "mute"]).delete()
    assert create_track(corpus, "Asked", kind="answers").pk


@pytest.mark.django_db
def test_bad_outputs_are_told_on_the_page_and_over_the_api_and_the_good_ones_stay(
    tmp_path: Path, client: Client
) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    corpus = load_inputs("Articles", path)
    track = open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )
    token = researcher("writers")
    body = [
        line(INPUTS[0], "\u202eIt \u200breads <script>well</script>"),
        line(INPUTS[1], "x" * 200_001),
        line(INPUTS[2], "\u200b \u2066"),
        line(INPUTS[3], "nothing \x00 here"),
        line(INPUTS[0], "Once more."),
        line("<b>z</b>", "Of nobody."),
        line(INPUTS[4], "y" * 200_000),
    ]
    sentences = {
        2: "has 200,001 characters; allowed are 200,000",
        3: "has no text that can be seen",
        4: "holds a control character",
        5: f"There is an output for “{INPUTS[0]}” on line 1 already",
        6: "The input “<b>z</b>” is not in the corpus",
    }
    client.force_login(User.objects.get(username="of writers"))
    file = SimpleUploadedFile("mine.jsonl", "\n".join(body).encode())
    page = client.post("/submit/", {"track": track.slug, "file": file})["Location"]
    ingest()
    plan()
    row = Submission.objects.get()
    told = client.get(
        f"/api/submissions/{row.pk}/problems/", headers={"Authorization": f"Token {token}"}
    ).json()["results"]
    errors = {one["line"]: one["text"] for one in told if one["severity"] == "error"}
    assert errors.keys() == {0, *sentences}, "each line once, and what the whole file lacks"
    assert all(sentence in errors[at] for at, sentence in sentences.items())
    assert "4 of 6 inputs have no usable output" in errors[0]
    warned = {one["line"] for one in told if one["severity"] == "warning"}
    assert warned == {1}, "what was removed, and what is shown as text"
    shown = client.get(page).content.decode()
    assert "5 lines have errors, and 1 error is about the whole file" in shown
    assert "&lt;b&gt;z&lt;/b&gt;" in shown and "<b>z</b>" not in shown
    texts = sorted((target.content["text"] for target in Target.objects.all()), key=len)
    assert texts == ["It reads <script>well</script>", "y" * 200_000]


class Reader:
    """Thinks that a text is good where it says that it reads well, and else wholly bad."""

    def rate(self, text: str) -> TrueRating:
        good = "reads well" in text
        facets = {one.name: 3 if good else 1 for one in GenerationTrack.form.questions}
        return TrueRating(facets, text if good else text.replace("does not", "reads well"))

    def is_plausible(self, question: str, answer: str) -> bool:
        return answer != "a stone"

    def check(self, question: str, answer: str, passage: str) -> PassageVerdict:
        if "says nothing" in passage:
            return PassageVerdict("neither")
        return PassageVerdict(
            "correct" if answer in passage else "incorrect", passage.split(".")[0]
        )


def rate(url: str, *names: str, kind: str = "") -> int:
    """How many outputs annotators rated and mended through the pages, as they should."""
    for name in names:
        if not User.objects.filter(username=name).exists():
            User.objects.create_user(name, password=PASSWORD, is_annotator=True)
    logins = [(name, PASSWORD) for name in names]
    work = Crowd(
        url, logins, lambda *_: pytest.fail("no relation"), opinions=Reader(), kinds=[kind]
    ).work()
    assert work.errors == []
    return work.answers


def test_outputs_travel_to_the_board_and_equal_ones_share_their_ratings(
    transactional_db: None, live_server: Any, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    corpus, url = load_inputs("Articles", path), live_server.url
    track = open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )
    assert (track.criterion, track.workers_per_question) == ("overall", 1)
    Track.objects.update(workers_per_question=2)
    track.refresh_from_db()
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
    while rate(url, "ada", "bo", "cy"):
        call_command("tick", "--until-idle", verbosity=0)
    shown_board = read_board(track, distribution="instance", criterion="fluency")
    figures = {row.submission.name: row.figures["mean"] for row in shown_board.rows}
    assert figures["Good"].value == pytest.approx(1.0, abs=0.01)
    assert figures["Half"].low95 <= 0.5 <= figures["Half"].high95
    assert [row.submission.name for row in shown_board.rows] == ["Good", "Half"]
    edits = read_board(track, distribution="instance", criterion="edit").rows
    assert [row.submission.name for row in edits] == ["Good", "Half"], "less is better"
    paid = {"reads well": Decimal("0.15"), "does not": Decimal("0.40")}
    due = sum(
        one.responses.filter(criterion="edit").count()
        * next(amount for words, amount in paid.items() if words in one.payload["text"])
        for one in Question.objects.all()
    )
    spent = balance(track=track, purpose_kind="submission")  # the tutorials apart
    assert (spent.spent, spent.open) == (due, Decimal("0.00")), "and no cent more"
    people = Counter(Question.objects.values_list("answers_wanted", flat=True))
    assert people[2] + people[3] == sum(people.values()), "a third person where chance says so"
    assert check_books() == []
    page = Browser(url).get(f"/tracks/{track.slug}/").text
    assert "Fluency" in page and "outputs judged one by one, each by 2 people" in " ".join(
        page.split()
    )
    for address in (f"/submissions/{submissions[0]}/", f"/tracks/{track.slug}/about/"):
        assert Browser(url).get(address).status == 200
