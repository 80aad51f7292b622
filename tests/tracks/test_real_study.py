"""A published study of summaries, scored here without asking anybody, has the figures that a few
lines of numpy find in its file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from scipy import stats

from annotation.models import Question
from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus
from kbpo.evaluation.leaderboard import board
from kbpo.sampling.confirm import confirm
from kbpo.sampling.open_track import create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.tracks.generation.declared import declare

STUDY = Path(__file__).resolve().parents[3] / "shared" / "data" / "nlg" / "xsum_faithfulness"
FORM = """
name: faithful
title: How faithful is it?
questions:
  - {name: faithful_words, kind: rating, ask: "What share of its words is supported?",
     range: [0, 1]}
"""
N = 50
"""Inputs, of 250"""


@pytest.mark.soak
@pytest.mark.django_db
@pytest.mark.skipif(not STUDY.exists(), reason="the published study of summaries is not here")
def test_a_published_study_has_the_scores_that_its_file_has(tmp_path: Path) -> None:
    outputs: dict[str, dict[str, str]] = defaultdict(dict)
    with gzip.open(STUDY / "outputs.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            outputs[row["system"]][row["input_id"]] = row["output"]
    keys = list(outputs["Gold"])[:N]
    judged, undeclared = table("judgments.tsv.gz", keys, "faithful_words")
    written = {}
    for name, lines in {
        "inputs": [{"input_id": key, "references": [outputs["Gold"][key]]} for key in keys],
        **{
            system: [{"input_id": key, "output": texts[key]} for key in keys]
            for system, texts in outputs.items()
        },
    }.items():
        written[name] = tmp_path / f"{name}.jsonl"
        written[name].write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("load_inputs", "Articles", written["inputs"])
    declare(FORM)
    corpus = Corpus.objects.get()
    admin = User.objects.create_user("admin", password="x", is_researcher=True, is_staff=True)
    owner = Team.objects.create(name="Study", slug="study")
    owner.members.add(admin)
    of_study: dict[str, Any] = {"kind": "form-faithful", "is_study": True, "owner": owner}
    track = open_track(create_track(corpus, "Summaries", **of_study))
    for system in outputs:
        role = {"role": "reference"} if system == "Gold" else {}
        run("submit", track.slug, written[system], user="admin", name=system, **role)
    run("tick", until_idle=True, verbosity=0)

    (tmp_path / "all.tsv").write_text(undeclared)
    with pytest.raises(CommandError, match=r"Line 2: The track does not ask “factual”"):
        run("import_judgments", track.slug, tmp_path / "all.tsv")
    told = run("import_judgments", track.slug, tmp_path / "all.tsv", partly=True)
    assert f"{undeclared.count(chr(10)) - 1 - len(judged):,} lines were set aside" in told
    run("tick", until_idle=True, verbosity=0)
    for submission in Submission.objects.all():
        confirm(submission, admin)
    with pytest.raises(CommandError) as refused:
        run("import_scores", track.slug, metric(tmp_path, keys), name="rouge_2_f", user="admin")
    assert "no score for 50 of 50 outputs of “Gold”" in str(refused.value)
    run("tick", until_idle=True, verbosity=0)
    assert not Question.objects.exists(), "nobody was asked"

    said: dict[tuple[str, str], list[float]] = defaultdict(list)
    for system, key, _, value in judged:  # what is said of a text, whoever wrote it
        said[key, outputs[system][key]].append(value)
    ratings = {text: np.array(values) for text, values in said.items()}
    asked: dict[str, Any] = {"distribution": "instance", "criterion": "faithful_words"}
    rows = board(track, **asked, population="these").rows
    assert {row.submission.name for row in rows} == set(outputs)
    for row in rows:
        own = [ratings[key, outputs[row.submission.name][key]] for key in keys]
        figure = row.figures["mean"]
        assert figure.value == pytest.approx(np.mean([one.mean() for one in own]), abs=1e-9)
        within = sum(((one - one.mean()) ** 2).sum() for one in own)
        noise = within / sum(one.size - 1 for one in own)
        error = np.sqrt(sum(noise / one.size for one in own)) / N
        for level, low, high in (
            (0.8, figure.low80, figure.high80),
            (0.95, figure.low95, figure.high95),
        ):
            width = 2 * stats.norm.ppf((1 + level) / 2) * error
            assert high - low == pytest.approx(width, rel=0.06), "by Wilson, and Student's t"
    drawn = np.random.default_rng(0).integers(N, size=(4000, N))
    for row in board(track, **asked).rows:
        texts = outputs[row.submission.name]
        means = np.array([ratings[key, texts[key]].mean() for key in keys])[drawn].mean(axis=1)
        figure = row.figures["mean"]
        width = np.subtract(*np.quantile(means, [0.9, 0.1]))
        assert figure.high80 - figure.low80 == pytest.approx(width, rel=0.1), "other inputs"


def run(*arguments: Any, **options: Any) -> str:
    """What a command prints."""
    call_command(*arguments, **options, stdout=(out := io.StringIO()), stderr=io.StringIO())
    return out.getvalue()


def table(name: str, keys: list[str], prompt: str) -> tuple[list[tuple[str, str, str, float]], str]:
    """The judgments of some inputs under one prompt; and the file of those under all prompts."""
    with gzip.open(STUDY / name, "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.split("\t")[0] in {"input_id", *keys}]
    rows = csv.DictReader(lines, delimiter="\t")
    judged = [
        (row["system"], row["input_id"], row["worker"], float(row["value"]))
        for row in rows
        if row["prompt"] == prompt
    ]
    return judged, "".join(lines)


def metric(folder: Path, keys: list[str]) -> Path:
    """The file of the scores of one metric: none of what people wrote."""
    with gzip.open(STUDY / "metrics.tsv.gz", "rt", encoding="utf-8") as file:
        head, *lines = file
    kept = [line for line in lines if line.split("\t")[0] in keys and "\trouge_2_f\t" in line]
    path = folder / "scores.tsv"
    path.write_text("".join([head, *kept]))
    return path
