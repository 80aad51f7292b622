"""A researcher with the command line on a track of texts: the same commands, from the inputs to
what people said of single texts; and what can be said of a run before anybody else sees it.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.test import Client as Browser

from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.texts.store import load_inputs
from tests.conftest import Toy
from tests.test.client.conftest import Run, told
from tests.test.tracks.test_generation import rate
from tests.test.web.conftest import GOOD, lines_of

pytestmark = pytest.mark.django_db(transaction=True)
INPUTS = tuple(f"article {number}" for number in range(6))


@pytest.fixture
def texts(toy: Toy, tmp_path: Path) -> Track:
    """An open track of summaries; its inputs have a passage each."""
    path = tmp_path / "articles.jsonl"
    path.write_text(
        "".join(
            json.dumps({"input_id": key, "source": f"{key} tells.", "passages": ["One."]}) + "\n"
            for key in INPUTS
        )
    )
    corpus = load_inputs("Articles", path)
    return open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )


def outputs(folder: Path, name: str, *lines: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_outputs_are_read_offline_with_the_messages_of_the_service(
    run: Run, texts: Track, tmp_path: Path
) -> None:
    downloaded = run("download", texts.slug, who="")
    assert downloaded.exit_code == 0 and "The inputs are in summaries/." in downloaded.output
    assert [file.name for file in Path("summaries").iterdir()] == ["inputs.jsonl.gz"]
    bad = outputs(
        tmp_path,
        "bad.jsonl",
        {"input_id": INPUTS[0], "output": "It reads <b>well</b>.", "passage": 7},
        {"input_id": INPUTS[0], "output": "Again."},
        {"input_id": "nowhere", "output": "No."},
        {"output": "Whose?"},
    )
    reading = run("validate", bad, "--track", texts.slug, "--json")
    assert reading.exit_code == 3
    here = json.loads(reading.stdout)
    told(run("submit", texts.slug, bad, "--name", "bad", "--json"))
    ingest()
    there = Submission.objects.get()
    said = set(there.problems.values_list("code", "line", "text"))
    assert {(m["code"], m["line"], m["text"]) for m in here["messages"]} == said
    assert len(said) >= 5 and here["outputs"] == there.counts["outputs"] == 1
    good = outputs(
        tmp_path, "good.jsonl", *({"input_id": key, "output": f"{key}."} for key in INPUTS)
    )
    fine = run("validate", good, "--track", texts.slug)
    assert fine.exit_code == 0 and "6 outputs, 0 errors" in fine.output
    assert "would take it as it is" in fine.output


@pytest.mark.soak
def test_texts_are_scored_compared_and_told_one_by_one(
    run: Run, texts: Track, tmp_path: Path, live_server: Any
) -> None:
    lines = {
        "Good": [{"input_id": key, "output": f"{key} reads well"} for key in INPUTS],
        "Half": [
            {"input_id": key, "output": f"{key} {'reads well' if at < 3 else 'does not'}"}
            for at, key in enumerate(INPUTS)
        ],
    }
    numbers = {}
    for name, rows in lines.items():
        file = outputs(tmp_path, f"{name}.jsonl", *rows)
        row = told(run("submit", texts.slug, file, "--name", name, "--json"))
        numbers[name] = row["id"]
    call_command("tick", "--until-idle", verbosity=0)
    for number in numbers.values():
        shown = run("status", number)
        assert shown.exit_code == 0 and "new questions, about $" in shown.output
        assert run("confirm", number, "--yes").exit_code == 0
    call_command("tick", "--until-idle", verbosity=0)
    while rate(live_server.url, "eve", "kai"):
        call_command("tick", "--until-idle", verbosity=0)
    board = run("scores", texts.slug, who="").output.splitlines()
    assert board[0].split() == ["rank", "system", "number", "Overall"]
    # Six texts, of which chance chose those that two people rated: often enough to tell them apart.
    rank, told_apart = board[1].split()[0], board[2].split()[0] == "2"
    assert rank == ("1" if told_apart else "1–2"), board
    assert board[1].split()[1:3] == ["Patterns", "Good"] and "100 (" in board[1], board
    compared = run("compare", texts.slug, numbers["Good"], numbers["Half"], who="").output
    assert compared == "Differences are shown once the track is closed.\n"
    assert "Overall" in run("status", numbers["Half"]).output
    called = [row["score"]["label"] for row in told(run("runs", "--json"))]
    page = Browser().get(f"/tracks/{texts.slug}/").content.decode()
    assert called == ["Overall"] * 2 and "Overall" in page
    letters = [letter.body for letter in mail.outbox if " is scored." in letter.subject]
    assert len(letters) == 2 and all("\nOverall " in letter for letter in letters)
    close_track(texts)
    every = run("errors", numbers["Half"], "--verdict", "all")
    assert every.exit_code == 0, every.output
    assert re.search(
        r"^[0-9]+  article 3  article 3 does not\n +Overall 1.00  Fluency 1.00  Edit ",
        every.output,
        re.MULTILINE,
    )
    assert every.output.endswith("6 predictions.\n")
    refused = run("errors", numbers["Half"], "--verdict", "wrong")
    assert refused.exit_code == 1 and "'wrong' is not one of judged" in refused.stderr
    found = told(run("errors", numbers["Half"], "--json"))
    worst = {(key, at) for at, key in enumerate(INPUTS, 1) if at > 3}
    assert {(one["input"], one["line"]) for one in found[:3]} == worst, "the worst first"
    values = [one["said"]["Overall"]["value"] for one in found]
    assert values == sorted(values) and values[0] == 1.0 < values[-1] and len(found) == 6
    Track.objects.update(criterion="edit")
    edits = [
        one["said"]["Edit (characters)"]["value"]
        for one in told(run("errors", numbers["Half"], "--json"))
    ]
    assert edits == sorted(edits, reverse=True) and edits[0] > edits[-1], "lower is better"


@pytest.fixture
def file(toy: Toy, tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines_of(toy, GOOD))
    return path


def test_a_run_is_private_and_anonymous_from_its_first_moment_until_it_is_published(
    run: Run, file: Path, toy: Toy
) -> None:
    asked = ("--private", "--anonymous", "--paper", "https://example.org/p", "--code")
    sent = run("submit", "toy", file, "--name", "run 1", *asked, "https://example.org/c", "--json")
    number = told(sent)["id"]
    row = Submission.objects.get()
    assert (row.is_private, row.is_anonymous) == (True, True)
    assert (row.paper_url, row.code_url) == ("https://example.org/p", "https://example.org/c")
    assert row.team == toy.teams["Patterns"]
    theirs = run("submit", "toy", file, "--name", "run 1", "--team", toy.teams["Neural"].slug)
    assert theirs.exit_code == 1 and "no such team" in theirs.stderr
    same = run("submit", "toy", file, "--name", "run 1")
    assert same.exit_code == 1, "said otherwise it is no repeat that returns a private run"
    ingest()
    plan()
    assert run("confirm", number, "--yes").exit_code == 0

    def seen() -> bool:
        found = Browser().get("/api/tracks/toy/board/").json()["being_judged"]
        return bool(found)

    assert not seen()
    assert run("publish", number, input="n\n").exit_code == 1 and not seen()
    published = run("publish", number, "--yes")
    assert "run 1 is public, without your names." in published.output and seen()
    again = run("publish", number)
    assert again.exit_code == 0 and again.output == "run 1 is public already, without your names.\n"
    stranger = run("publish", number, "--yes", who="Tim")
    assert stranger.exit_code == 1 and "There is no run" in stranger.output
