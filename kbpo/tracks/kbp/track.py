"""Knowledge base population: systems state relations between mentions; people judge pairs of
mentions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formats.codes import CODES, FATAL
from formats.messages import Report
from formats.schema import load_schema
from kbpo.corpus.export import records
from kbpo.corpus.models import Document
from kbpo.tracks.base import Answers, Facts, QuestionDraft, Track, Unusable
from kbpo.tracks.kbp import baseline, judgments, pairs, questions, whole
from kbpo.tracks.kbp.facts import read_facts, targets_in_scope
from kbpo.tracks.kbp.read import Reading
from kbpo.tracks.kbp.store import store

Ids = NDArray[np.int64]


class KbpTrack(Track):
    """Knowledge base population (Chaganty et al. 2017)."""

    kind: ClassVar[str] = "kbp"
    criteria: ClassVar[tuple[str, ...]] = ("relation", "linking", "correct")
    recall_criteria: ClassVar[tuple[str, ...]] = ("relation", "correct")
    distributions: ClassVar[dict[str, str]] = {
        "instance": "1.0::float8",
        "relation": "1.0::float8/p.same_predicate",
        "entity": "1.0::float8/p.same_subject",
        "entity_relation": "p.subject_facts::float8/(p.same_subject::float8*p.same_predicate)",
    }

    def new_report(self) -> Report:
        return Report()

    def read(self, path: str, report: Report, progress: Callable[[float], None]) -> Reading:
        return Reading(Path(path), self.corpus, load_schema(self.corpus.schema), report, progress)

    def store(self, submission_id: int, claims: Iterable[Any], report: Report) -> dict[str, Any]:
        assert isinstance(claims, Reading)
        counts = store(submission_id, self.corpus, claims)
        if report.fatal or not counts["relations"]:
            raise Unusable(why_unusable(report))
        return {
            "relations": counts["relations"],
            "relation_lines": report.relation_lines,
            "set_aside": report.relation_lines - counts["used_lines"],
            "entities": counts["entities"],
            "documents": counts["documents"],
            "lines": report.lines,
            "door": claims.door,
            "run_id": claims.run_id,
        }

    def baseline(self) -> Path:
        return Path(baseline.__file__)

    def baseline_output(self) -> Iterator[str]:
        predicates = baseline.keywords(self.corpus.schema)
        for record, mentions in records(self.corpus):
            for claim in baseline.predict(record, predicates, mentions):
                yield json.dumps(claim) + "\n"

    def questions(
        self, target_ids: Sequence[int], submissions: Sequence[int]
    ) -> Iterable[QuestionDraft]:
        return questions.drafts(self.track, target_ids, submissions)

    def unanswered(self, of: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
        return pairs.unanswered(of)

    def judge(self, instances: Ids, submissions: Sequence[int]) -> dict[str, NDArray[np.float64]]:
        return judgments.judge(instances, submissions)

    def again(self, target_ids: Sequence[int]) -> Iterable[QuestionDraft]:
        return questions.again(self.track, target_ids)

    def rejudge(
        self, instances: Ids, submissions: Sequence[int], answers: Answers
    ) -> dict[str, NDArray[np.float64]]:
        return judgments.judge(instances, submissions, answers=answers)

    def self_claims(self, submissions: Sequence[int]) -> dict[int, float]:
        types = load_schema(self.corpus.schema).entity_types.values()
        linkable = [one.name for one in types if one.linkable]
        return judgments.self_claims(submissions, linkable)

    def facts(self, instances: Ids, submissions: list[int], annotated: list[int]) -> Facts | None:
        return read_facts(self.track, instances, submissions, annotated)

    def in_scope(self, target_ids: Sequence[int]) -> set[int]:
        return targets_in_scope(self.track, target_ids)

    def mentions_question(self, document: Document) -> QuestionDraft:
        return whole.mentions_draft(self.track, document)

    def relations_question(self, document: Document, origin: str) -> QuestionDraft | None:
        return whole.relations_draft(self.track, document, origin)

    def store_facts(self, origin: str) -> int:
        return whole.store_facts(self.corpus, origin)


def why_unusable(report: Report) -> str:
    """The sentence that says why nothing of a file can be used: what stopped the reader, or what
    went wrong first.
    """
    stopped = [code for code in report.by_code if code in FATAL]
    for code in (*stopped, "reference.other_corpus"):
        if code in report.by_code:
            return next(
                (message.text for message in report if message.code == code),
                CODES[code].description,
            )
    errors = [
        m for m in report if m.severity != "info" and m.line and m.code != "syntax.nothing_usable"
    ]
    first = f" The first problem is on line {errors[0].line}: {errors[0].text}" if errors else ""
    return f"The file has no usable relation.{first}"
