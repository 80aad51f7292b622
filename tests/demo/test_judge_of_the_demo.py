"""The judge of the demo: as often right as it should be, and wrong where the systems are."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rehearsal.newspaper.extract import extract
from rehearsal.newspaper.judge import ACCURACY, COLUMNS, UNHEARD_OF, SimulatedJudge, opinions
from rehearsal.newspaper.knows import rows
from rehearsal.newspaper.score import Gold
from rehearsal.newspaper.write import imagine

SEED = 3


@pytest.fixture(scope="module")
def judged() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What it said of each relation, what is true, and how many systems predict it."""
    world, corpus = imagine(30, SEED)
    runs, gold = extract(corpus, world, SEED), Gold(corpus)
    votes: Counter[tuple] = Counter()
    true: dict[tuple, bool] = {}
    for run in runs:
        for one in run.predictions:
            relation = (one.document, *one.subject, one.predicate, *one.object)
            votes[relation] += 1
            true[relation] = gold.judge(one)["relation"]
    said = opinions(runs, gold, SEED)
    assert set(said) == set(votes)
    return tuple(np.array([of[one] for one in said]) for of in (said, true, votes))


def test_it_is_right_as_often_as_it_should_be(judged: tuple[np.ndarray, ...]) -> None:
    said, true, _ = judged
    assert np.mean((said > 0.5) == true) == pytest.approx(ACCURACY, abs=0.01)
    assert said.min() >= 0 and said.max() <= 1 and not np.any(said == 0.5)


def test_it_believes_what_many_systems_say_and_doubts_what_few_do(
    judged: tuple[np.ndarray, ...],
) -> None:
    said, true, votes = judged
    wrong = (said > 0.5) != true
    for truth, often in ((False, votes > 2), (True, votes <= 2)):
        of = true == truth
        misled, others = wrong[of & often], wrong[of & ~often]
        assert misled.size > 30 and others.size > 30
        assert misled.mean() > others.mean() + 0.1


def test_a_program_answers_each_line_and_what_it_never_heard_of(demo: Path) -> None:
    row = next(rows(demo / "judge.tsv"))
    begin, end, left, right = (
        int(row[name]) for name in ("subj_begin", "subj_end", "obj_begin", "obj_end")
    )
    documents = map(json.loads, (demo / "corpus.jsonl").read_text("utf-8").splitlines())
    text = next(one["text"] for one in documents if one["id"] == row["doc_id"])
    first = max(0, min(begin, left) - 5)
    asked = {
        "id": 7,
        "document": row["doc_id"],
        "text": text[first:],
        "subject": {"begin": begin - first, "end": end - first},
        "object": {"begin": left - first, "end": right - first},
        "relation": row["predicate"],
    }
    unheard = asked | {"id": 8, "relation": "per:invented"}
    told = subprocess.run(
        [sys.executable, "-m", "rehearsal.newspaper.judge", str(demo)],
        input="".join(json.dumps(one) + "\n" for one in (asked, unheard)),
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert [json.loads(line) for line in told.stdout.splitlines()] == [
        {"id": 7, "score": float(row["value"])},
        {"id": 8, "score": UNHEARD_OF},
    ]
    assert tuple(row) == COLUMNS
    assert SimulatedJudge(demo).scores([asked]) == [{"id": 7, "value": float(row["value"])}]
