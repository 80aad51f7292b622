"""Knowledge base population: systems predict relations between mentions; people judge pairs of
mentions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formats.checks import EXPECTED
from formats.messages import FATAL, Report, explain_wrong_format
from formats.schema import Schema, load_schema
from kbpo.corpus.models import Corpus, Document
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import Statement, Value
from kbpo.instances.models import Instance, Target
from kbpo.tracks.base import Answers, Judged, QuestionDraft, Trait, Unusable, Verdicts
from kbpo.tracks.kbp import (
    explore,
    judge,
    judgments,
    pairs,
    questions,
    whole,
)
from kbpo.tracks.kbp.definition import (
    ASKING,
    FACETS,
    FOUND_COLUMNS,
    GROUPS,
    MEASURES,
    PAGES,
    POOL,
    WITH_RECALL,
    WORDS,
    catalogue_entry,
)
from kbpo.tracks.kbp.facts import facts_with_systems, read_facts, targets_in_scope
from kbpo.tracks.kbp.judgments import read_traits
from kbpo.tracks.kbp.merge import merge_labels
from kbpo.tracks.kbp.store import Reading, store_claims
from kbpo.tracks.kbp.whole import read_marks
from kbpo.tracks.recall import Found, Marks, TrackWithRecall
from scoring.arrays import Ids
from scoring.documents import Facts

BEFORE, AFTER = 2, 1
"""Number of sentences that are shown before and after those of the names"""


def judge_inputs(corpus: Corpus, instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return, for each relation, its document, a text with both names marked, and the claim as a
    sentence.
    """
    schema = load_schema(corpus.schema)
    rows = Instance.objects.filter(pk__in=instances).select_related("document", "predicate")
    return {
        row.pk: _claim_context(row, row.document, row.predicate.name, schema)
        for row in rows.order_by("pk")
        if row.document is not None and row.predicate is not None
    }


def _claim_context(
    instance: Instance, document: Document, predicate: str, schema: Schema
) -> dict[str, Any]:
    subject = (instance.subject_begin or 0, instance.subject_end or 0)
    object_ = (instance.object_begin or 0, instance.object_end or 0)
    begin, end = _shown_text_range(document, min(subject, object_)[0], max(subject, object_)[1])
    names = {"subject": document.gloss(*subject), "object": document.gloss(*object_)}
    return {
        "document": document.key,
        "text": document.text[begin:end],
        "subject": _name_and_span(names["subject"], subject, begin),
        "object": _name_and_span(names["object"], object_, begin),
        "relation": predicate,
        "claim": schema.predicates[predicate].sentence(names["subject"], names["object"]),
    }


def _name_and_span(text: str, span: tuple[int, int], begin: int) -> dict[str, Any]:
    """Return a name and its half-open span in the shown text."""
    return {"text": text, "begin": span[0] - begin, "end": span[1] - begin}


def _shown_text_range(document: Document, first: int, last: int) -> tuple[int, int]:
    """Return the begin and end of the shown text: whole sentences around both names."""
    sentences = list(document.sentences)
    inside = [place for place, (begin, end) in enumerate(sentences) if begin < last and end > first]
    if not inside:
        return 0, len(document.text)
    begin = sentences[max(0, inside[0] - BEFORE)][0]
    end = sentences[min(len(sentences) - 1, inside[-1] + AFTER)][1]
    return min(begin, first), max(end, last)


MOST = 12


def example_lines(corpus: Corpus) -> Iterator[str]:
    """Yield lines of JSON, one for each document, with two names of one sentence and the first
    predicate of the schema.
    """
    predicate = corpus.schema["predicates"][0]
    types = (predicate.get("types") or [[None, None]])[0]
    for document in Document.objects.filter(corpus=corpus).order_by("pk")[:MOST]:
        if (pair := _two_name_spans(document)) is not None:
            yield json.dumps(
                _example_claim(document, pair, predicate["name"], types), ensure_ascii=False
            )


def _example_claim(
    document: Document, pair: list[tuple[int, int]], predicate: str, types: list[str | None]
) -> dict[str, Any]:
    claim: dict[str, Any] = {
        "doc": document.key,
        "subject": pair[0],
        "predicate": predicate,
        "object": pair[1],
    }
    if types[0] and types[1]:
        claim |= {"subject_type": types[0], "object_type": types[1]}
    return claim | {"confidence": 0.5}


def _two_name_spans(document: Document) -> list[tuple[int, int]] | None:
    """Return the spans of two different capitalised words, in the first sentence that has them."""
    tokens = list(zip(document.token_begin, document.token_end, strict=True))
    for begin, end in document.sentences:
        found: dict[str, tuple[int, int]] = {}
        for token in tokens:
            word = document.gloss(*token)
            if begin <= token[0] < end and word[:1].isupper() and word.isalpha():
                found.setdefault(word, token)
        if len(found) > 1:
            return list(found.values())[:2]
    return None


def relations_by_instance(instances: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return instance -> its predicate and two spans."""
    rows = fetch_rows(
        "SELECT i.id, p.name, ARRAY[i.subject_begin, i.subject_end],"
        " ARRAY[i.object_begin, i.object_end] FROM instances_instance i"
        " JOIN corpus_predicate p ON p.id = i.predicate_id WHERE i.id = ANY(%s)",
        [list(instances)],
    )
    return {
        pk: {"predicate": predicate, "subject": subject, "object": object_}
        for pk, predicate, subject, object_ in rows
    }


def mention_targets(pairs: Collection[int]) -> list[int]:
    """Return the targets that are mentions of one of these pairs."""
    rows = fetch_rows(
        "SELECT DISTINCT m.id FROM instances_target d"
        " JOIN instances_target m ON m.document_id = d.document_id AND m.kind = 'mention'"
        " AND (m.a_begin, m.a_end) IN ((d.a_begin, d.a_end), (d.b_begin, d.b_end))"
        " WHERE d.id = ANY(%s)",
        [list(pairs)],
    )
    return [pk for (pk,) in rows]


class KbpTrack(TrackWithRecall):
    """Knowledge base population (Chaganty et al. 2017)."""

    kind: ClassVar[str] = "kbp"
    target_kind: ClassVar[str] = "pair"
    measures: ClassVar = MEASURES
    recall_criteria: ClassVar[tuple[str, ...]] = WITH_RECALL
    found_also: ClassVar = {"correct": "linking"}
    asking: ClassVar = ASKING
    words: ClassVar = WORDS
    pages: ClassVar = PAGES
    pool: ClassVar = POOL
    groups: ClassVar = GROUPS
    facets: ClassVar = FACETS
    found_facets: ClassVar[tuple[str, ...]] = (FACETS[0].name,)
    found_columns: ClassVar[tuple[str, ...]] = FOUND_COLUMNS

    def ingest_file(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        schema = load_schema(self.corpus.schema)
        claims = Reading(Path(path), self.corpus, schema, report, progress)
        counts = store_claims(submission_id, self.corpus, claims)
        if report.fatal or not counts["relations"]:
            raise Unusable(unusable_reason(report))
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

    def instruction_payload(self) -> Mapping[str, Any]:
        predicates, names = self.corpus.schema.get("predicates", ()), self.corpus.relation_names()
        catalogue = [
            catalogue_entry(predicate, names[predicate["name"]]) for predicate in predicates
        ]
        return {**whole.types_to_mark(load_schema(self.corpus.schema)), "catalogue": catalogue}

    def baseline_script(self) -> Path:
        return Path(__file__).with_name("baseline.py")

    def draft_questions(
        self,
        target_ids: Sequence[int],
        submissions: Sequence[int] | None,
        *,
        is_stored: bool = True,
    ) -> Iterable[QuestionDraft]:
        if submissions is None:
            return questions.repeat_questions(self.track, target_ids, is_stored=is_stored)
        return questions.draft_questions(self.track, target_ids, submissions)

    def find_unanswered(
        self, targets_by_submission: Mapping[int, Collection[int]]
    ) -> dict[int, set[int]]:
        return pairs.find_unanswered(targets_by_submission)

    @staticmethod
    def merge_statements(statements: Sequence[Statement]) -> Value:
        return merge_labels(statements)

    def judge(
        self,
        instances: Ids,
        submissions: Sequence[int],
        *,
        answers: Answers | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        return judgments.verdicts_by_criterion(instances, submissions, answers=answers)

    def judge_inputs(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        return judge_inputs(self.corpus, instances)

    def traits(self, instances: Ids, submissions: Sequence[int]) -> Mapping[str, Trait]:
        return read_traits(self.corpus, submissions)

    def example_lines(self) -> Iterable[str]:
        return example_lines(self.corpus)

    def verdicts(self, submission_id: int, *, public: bool) -> Verdicts:
        return explore.submission_verdicts(submission_id, public=public)

    def describe_predictions(
        self,
        submission_id: int,
        predictions: Sequence[int],
        *,
        public: bool,
        unjudged: Collection[int] = (),
    ) -> list[Judged]:
        return explore.describe_predictions(
            self.track, submission_id, predictions, public=public, unjudged=unjudged
        )

    def find_predictions(
        self, submission_id: int, limit: int, *, words: str = "", key: str = "", entity: str = ""
    ) -> tuple[list[int], bool]:
        found, are_all = [], True
        if words:
            ids, are_all = explore.search_predictions(self.corpus, submission_id, words, limit)
            found.append(ids)
        if entity:
            ids, are_all_about = explore.find_by_name(
                self.corpus, submission_id, entity, limit, key
            )
            found.append(ids)
            are_all = are_all and are_all_about
        elif key:
            found.append(explore.predictions_in_document(self.corpus, submission_id, key))
        return sorted(set[int]().union(*found).intersection(*found)), are_all

    def read_facts(
        self,
        instances: Ids,
        submissions: list[int],
        annotated: list[int],
        entered: list[int] | None = None,
    ) -> Facts:
        return read_facts(self.track, instances, submissions, annotated, entered)

    def read_marks(self, gold: Path, mentions: Path, documents: Collection[int]) -> Marks:
        return read_marks(self.corpus, gold, mentions, documents)

    def facts_with_systems(
        self, documents: list[int], systems: list[int], *, public: bool
    ) -> list[tuple[Found, set[int]]]:
        marks = facts_with_systems(self.track, documents, systems, public=public)
        return list(
            zip(explore.found_relations(self.corpus, list(marks)), marks.values(), strict=True)
        )

    def targets_in_scope(self, target_ids: Sequence[int]) -> set[int]:
        return targets_in_scope(self.track, target_ids)

    def mentions_question(self, document: Document) -> QuestionDraft:
        return whole.draft_mentions_question(self.track, document)

    def relations_question(self, document: Document, question: int) -> QuestionDraft | None:
        return whole.draft_relations_question(self.track, document, question)

    def tiebreak_questions(self, document: Document, question: int) -> Iterable[QuestionDraft]:
        return whole.draft_tiebreak_questions(self.track, document, question)

    def read_entities(self, documents: Sequence[int], moment: datetime) -> dict[str, int]:
        return whole.read_entities(self.corpus, documents, moment)

    def release_columns(self, instances: Sequence[int]) -> Mapping[int, dict[str, Any]]:
        return relations_by_instance(instances)

    def agrees_with_expert(
        self, target: Target, expert_answer: Value, current_value: Value, *, marked: bool = False
    ) -> bool:
        return judge.agrees_with_expert(target, expert_answer, current_value, marked=marked)

    def compare_references(
        self, target: Target, current_value: Value, expert_answer: Value
    ) -> tuple[str, str, bool] | None:
        return judge.compare_references(target, current_value, expert_answer)

    def store_facts(self, question: int) -> int:
        return whole.store_facts(self.corpus, question)


def unusable_reason(report: Report) -> str:
    """Return why no line of a file can be used: the error that stopped the reader, otherwise the
    first error.
    """
    for message in report:
        if message.code in FATAL or message.code == "reference.other_corpus":
            return message.text
    seems = explain_wrong_format(report, EXPECTED)
    errors = [m for m in report if m.severity != "info" and m.line]
    first = f" The first problem is on line {errors[0].line}: {errors[0].text}" if errors else ""
    return f"The file has no usable relation.{seems}{first}"
