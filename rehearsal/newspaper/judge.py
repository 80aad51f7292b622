"""A simulated judge that errs where the systems err, with a score for each relation that any of
them predicts.

python -m rehearsal.newspaper.judge DIRECTORY

reads the items of `kbpo judge --command`, one line of JSON each, and writes the score of each. It
does not use the truth or the systems: DIRECTORY contains its precomputed scores (judge.tsv). It is
right about 85 % of the relations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rehearsal.newspaper.knows import Span, read_rows

Relation = tuple[str, int, int, str, int, int]
"""Document, subject, predicate, object"""

COLUMNS = ("doc_id", "subj_begin", "subj_end", "predicate", "obj_begin", "obj_end", "value")
UNHEARD_OF = 0.5
"""Score of a relation that no system had predicted when the scores were computed"""


class SimulatedJudge:
    """A judge that answers each request with the stored score of a relation."""

    def __init__(self, directory: Path) -> None:
        self._texts = {
            document["id"]: document["text"]
            for document in map(
                json.loads, (directory / "corpus.jsonl").read_text("utf-8").splitlines()
            )
        }
        self._said: dict[Relation, float] = {}
        for row in read_rows(directory / "judge.tsv"):
            document, *spans, value = (row[column] for column in COLUMNS)
            subject_begin, subject_end, predicate, begin, end = spans
            relation = (
                document,
                int(subject_begin),
                int(subject_end),
                predicate,
                int(begin),
                int(end),
            )
            self._said[relation] = float(value)

    def scores(self, requests: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the score of each requested item, with the number of the item."""
        return [
            {"id": asked_thing["id"], "value": self.score(asked_thing)} for asked_thing in requests
        ]

    def score(self, request: Mapping[str, Any]) -> float:
        """Return the score of a relation, from 0 to 1; 0.5 if it has none."""
        document = request["document"]
        begin = self._texts[document].find(request["text"])
        subject, object_ = (
            (begin + request[name]["begin"], begin + request[name]["end"])
            for name in ("subject", "object")
        )
        return self._said.get(
            _relation_key(document, subject, request["relation"], object_), UNHEARD_OF
        )


def _relation_key(document: str, subject: Span, predicate: str, object_: Span) -> Relation:
    return (document, *subject, predicate, *object_)


def main(directory: str) -> None:
    """Score all requests from the standard input."""
    judge = SimulatedJudge(Path(directory))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], "score": judge.score(asked)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rehearsal.newspaper.judge DIRECTORY")
    main(sys.argv[1])
