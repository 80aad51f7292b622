"""The judge of the demo says what it said beforehand."""

import json
import subprocess
import sys
from pathlib import Path

from rehearsal.newspaper.judge import COLUMNS, UNHEARD_OF, SimulatedJudge
from rehearsal.newspaper.knows import rows


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
