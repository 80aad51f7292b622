"""The explorer's data of judged relations: the claim in its sentence, and which part of it is
right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbpo.corpus.models import Corpus, Document, Mention
from kbpo.corpus.sql import fetch_arrays, fetch_rows, prefer_indexes
from kbpo.instances.merge import PUBLIC, RANK
from kbpo.instances.models import Label
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks import base
from kbpo.tracks.base import Verdicts
from kbpo.tracks.kbp.definition import FACETS
from kbpo.tracks.kbp.judge import (
    Clusters,
    JudgedRow,
    Span,
    directed_name,
    predicate_verdict,
    verdicts_of_rows,
)
from kbpo.tracks.kbp.judgments import judged_rows, judged_rows_of_predictions
from kbpo.tracks.models import Track
from kbpo.tracks.recall import Found, name_matcher

ENDS = {
    "a": "i.subject_begin",
    "to_a": "i.subject_end",
    "b": "i.object_begin",
    "to_b": "i.object_end",
    "c": "CASE WHEN p.subject_canonical_begin <> i.subject_begin"
    " OR p.subject_canonical_end <> i.subject_end THEN p.subject_canonical_begin ELSE -1 END",
    "to_c": "coalesce(p.subject_canonical_end, -1)",
    "d": "CASE WHEN p.object_canonical_begin <> i.object_begin"
    " OR p.object_canonical_end <> i.object_end THEN p.object_canonical_begin ELSE -1 END",
    "to_d": "coalesce(p.object_canonical_end, -1)",
}
"""SQL of the spans of a prediction's names, each begin before its end. The begin of a canonical
mention is -1 if it is the mention itself, as for most"""
ENDS_INCLUDED = "tac_kb"
"""Formats of files in which a mention ends at its last character, not after it"""
Mark = tuple[int, int, str]
"""Begin and end in the document's text, and the role: subject, object, provenance"""


@dataclass(frozen=True, kw_only=True)
class Judged(base.Judged):
    """A relation with its judgments; `relation`, `subject` and `object` are True, False or None."""

    document: Document
    predicate: str
    label: str
    """Name of the predicate on pages"""
    claim: list[tuple[str, str]]
    """The claim as a sentence, in pieces: (role, text); a role is subject, object, or empty"""
    window: tuple[int, int]
    spans: list[Mark]
    relation: bool | None
    subject: bool | None
    object: bool | None
    row: JudgedRow
    schema: Mapping[str, Mapping[str, Any]]
    """Predicate -> its description in the schema"""
    ends_included: bool
    """Whether mentions in its file end at their last character"""

    @property
    def claim_text(self) -> str:
        return "".join(text for _, text in self.claim)

    @property
    def claim_begin(self) -> int:
        return self.row.subject[0]

    @property
    def places(self) -> list[Span]:
        return [self.row.subject, self.row.object]

    def extra_page_values(self) -> Explained:
        """Return the claim, people's answers, and the text with marked names."""
        document = self.document
        first = max(0, document.sentence_index_at(self.window[0]) - 1)
        last = min(len(document.sentences) - 1, document.sentence_index_at(self.window[1] - 1) + 1)
        taken = {self.row.subject, self.row.object}
        rows = Mention.objects.filter(document=self.document).values_list("begin", "end")
        return Explained(
            ends=self.judged_ends(),
            holds=[claim for _, claim in self.holding_relations()],
            asked=len(self.row.value.get("shown", ())),
            around=(document.sentences[first][0], document.sentences[last][1]),
            spans=self.spans
            + [(begin, end, "other") for begin, end in rows if (begin, end) not in taken],
        )

    def as_json(self) -> dict[str, Any]:
        """Return the relation as JSON, with the document id of its file and the offsets into the
        document's text; also the offsets of the file, whose ends are inclusive.
        """
        row, prediction = self.row, self.prediction
        places = {
            "subject": row.subject,
            "object": row.object,
            "subject_canonical": row.subject_canonical,
            "object_canonical": row.object_canonical,
        }
        as_json = {
            "prediction": prediction.pk,
            "line": prediction.line,
            "document": self.document.key,
            "subject": list(row.subject),
            "predicate": self.predicate,
            "object": list(row.object),
            "offsets": "half-open",
            "claim": self.claim_text,
            "subject_canonical": list(row.subject_canonical),
            "subject_link": prediction.subject_link,
            "object_canonical": list(row.object_canonical),
            "object_link": prediction.object_link,
            "confidence": prediction.confidence,
            "right": self.right,
            "relation_right": self.relation,
            "subject_right": self.subject,
            "object_right": self.object,
            "votes": self.votes,
            "source": self.source,
            "people": self._answers_as_json(),
        }
        if self.ends_included:
            as_json["in_file"] = {
                name: f"{self.document.key}:{self.span_text_as_in_file(span)}"
                for name, span in places.items()
            }
        return as_json

    def _answers_as_json(self) -> dict[str, Any] | None:
        """Return people's answers as JSON; None if unknown."""
        if not self.source:
            return None
        ends = {
            end.role: {
                "canonical": list(end.people_span) if end.people_span else None,
                "text": end.people,
                "elsewhere": end.elsewhere,
                "link": end.people_link,
                "votes": end.votes,
            }
            for end in self.judged_ends()
        }
        holds = [
            {**held, "claim": "".join(text for _, text in claim)}
            for held, claim in self.holding_relations()
        ]
        return {**ends, "holds": holds, "offered": len(self.row.value.get("shown", ()))}

    def span_text_as_in_file(self, span: Span) -> str:
        """Return a span as text, in the convention of the prediction's file: as “first-last” with
        the position of the last character (`ends_included`), else as “begin–end” with the position
        after it.
        """
        return f"{span[0]}-{span[1] - 1}" if self.ends_included else f"{span[0]}–{span[1]}"

    def judged_ends(self) -> list[End]:
        """Return the two mentions of the relation, each with its judgments."""
        row, prediction = self.row, self.prediction
        return [
            self._mention_end(
                "subject", row.subject, row.subject_canonical, prediction.subject_link
            ),
            self._mention_end("object", row.object, row.object_canonical, prediction.object_link),
        ]

    def _mention_end(self, role: str, span: Span, canonical: Span, link: str) -> End:
        clusters, gloss = self.row.clusters, self.document.gloss
        value = clusters.values.get(span, {}) if self.source else {}
        elsewhere = span in clusters.elsewhere
        settled = None if elsewhere else clusters.canonical_mention(span)
        votes = value.get("votes", {})
        most = max(votes.values(), default=0)
        return End(
            role=role,
            text=gloss(*span),
            span=span,
            written=self.span_text_as_in_file(span),
            right=getattr(self, role),
            canonical=gloss(*canonical),
            canonical_span=canonical,
            canonical_written=self.span_text_as_in_file(canonical),
            link=link,
            people=gloss(*settled) if settled else "",
            people_span=settled,
            elsewhere=elsewhere and bool(self.source),
            people_link=value.get("link"),
            votes=f"{most} of {sum(votes.values())}" if votes else "",
        )

    def holding_relations(self) -> list[tuple[dict[str, Any], list[tuple[str, str]]]]:
        """Return the relations that hold of its two mentions, for programs and as sentences, each
        sentence once, since two relations (such as inverses) may read the same.
        """
        first, second = sorted((self.row.subject, self.row.object))
        found: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}
        for part in self.row.value.get("holds", ()):
            subject, object_ = (first, second) if part.endswith(">") else (second, first)
            name = part[:-1]
            claim = _claim_pieces(self.document, name, self.schema.get(name, {}), subject, object_)
            held = {"subject": list(subject), "predicate": name, "object": list(object_)}
            found.setdefault("".join(text for _, text in claim), (held, claim))
        return list(found.values())


@dataclass(frozen=True, kw_only=True)
class End:
    """One mention of a relation: the system's link and the judged one."""

    role: str
    text: str
    span: Span
    written: str
    """Its span, in the convention of the file"""
    right: bool | None
    canonical: str
    """The system's referent, in the words of the text"""
    canonical_span: Span
    canonical_written: str
    link: str
    people: str
    """The referent by people; empty if they were not asked, or disagreed"""
    people_span: Span | None
    elsewhere: bool
    """Whether people said that it is none of the offered names"""
    people_link: str | None
    """The title by people; None if nobody was asked"""
    votes: str


def submission_verdicts(submission: int, *, public: bool) -> Verdicts:
    """Return the verdict on each judged prediction of a submission: on the whole and on its
    relation, subject and object (NaN if one is missing), and whether the annotators disagreed.

    With `public`, only public judgments are used. If another track on the same corpus has judgments
    of the same target that are not public, they do not change the verdict.
    """
    which = PUBLIC if public else ""
    judged = fetch_rows(
        "SELECT p.id, p.instance_id, l.n FROM (SELECT l.target_id, max(l.n) AS n FROM"
        f" instances_label l WHERE l.value <> '{{}}'::jsonb{which} GROUP BY 1) l JOIN"
        " instances_instance i ON i.target_id = l.target_id JOIN submissions_prediction p ON"
        " p.instance_id = i.id WHERE p.submission_id = %s AND i.predicate_id IS NOT NULL ORDER BY"
        " i.document_id, i.subject_begin, p.id",
        [submission],
    )
    rows = judged_rows([instance for _, instance, _ in judged], submission, public=public)
    right = verdicts_of_rows(rows)
    split = []
    for row, (_, _, n) in zip(rows, judged, strict=True):
        yes, asked = _count_votes(row, n)
        split.append(0 < yes < asked)
    parts = {
        "relation": right["relation"],
        "subject": np.array([_subject_verdict(row) for row in rows]),
        "object": np.array([_object_verdict(row) for row in rows]),
    }
    predictions = [prediction for prediction, _, _ in judged]
    return Verdicts(predictions, right["correct"], np.array(split, dtype=np.bool_), parts)


def _subject_verdict(judged_row: JudgedRow) -> float:
    return judged_row.clusters.reference_verdict(judged_row.subject, judged_row.subject_canonical)


def _object_verdict(judged_row: JudgedRow) -> float:
    return judged_row.clusters.reference_verdict(judged_row.object, judged_row.object_canonical)


def _predicates_by_name(corpus: Corpus) -> dict[str, Mapping[str, Any]]:
    """Return the schema's description of each predicate, by its name."""
    predicates = corpus.schema.get("predicates", ())
    return {predicate["name"]: predicate for predicate in predicates}


def search_predictions(
    corpus: Corpus, submission: int, words: str, limit: int
) -> tuple[list[int], bool]:
    """Return the predictions of a submission in at most `limit` documents with these words, and
    whether there are no more such documents.
    """
    with prefer_indexes(of_words=True):
        matching = Document.objects.filter(corpus=corpus).with_words(words)
        documents = list(matching.values_list("pk", flat=True)[: limit + 1])
    with prefer_indexes():
        return _predictions_in_documents(submission, documents[:limit]), len(documents) <= limit


def predictions_in_document(corpus: Corpus, submission: int, key: str) -> list[int]:
    """Return the predictions of a submission in the document with that key."""
    documents = Document.objects.filter(corpus=corpus, key=key).values_list("pk", flat=True)
    return _predictions_in_documents(submission, list(documents))


def find_by_name(
    corpus: Corpus, submission: int, name: str, limit: int, key: str = ""
) -> tuple[list[int], bool]:
    """Return the predictions of a submission whose subject or object contains a name, or is linked
    to a mention that does, and whether further documents contain the words of the name. At most
    `limit` documents are searched, or only the document with that key.
    """
    documents = Document.objects.filter(corpus=corpus)
    documents = documents.filter(key=key) if key else documents.with_all_of(name)
    with prefer_indexes(of_words=not key):
        texts = list(documents.values_list("pk", "text")[: limit + 1])
    with prefer_indexes():
        predicted = fetch_arrays(
            {"id": "p.id", "document": "i.document_id", **ENDS},
            "FROM instances_instance i"
            " JOIN submissions_prediction p ON p.instance_id = i.id AND p.submission_id = %s"
            " WHERE i.document_id = ANY(%s)",
            [submission, [pk for pk, _ in texts[:limit]]],
        )
    by_document, called = dict(texts), name_matcher(name)
    columns = [column.tolist() for column in predicted.values()]
    predictions = []
    # Thousands are looked at for a page: written out, it takes a third of what a loop does.
    for pk, document, a, to_a, b, to_b, c, to_c, d, to_d in zip(*columns, strict=True):
        text = by_document[document]
        if (
            called(text[a:to_a])
            or called(text[b:to_b])
            or (c >= 0 and called(text[c:to_c]))
            or (d >= 0 and called(text[d:to_d]))
        ):
            predictions.append(pk)
    return predictions, len(texts) <= limit


def _predictions_in_documents(submission: int, documents: Sequence[int]) -> list[int]:
    rows = fetch_rows(
        "SELECT p.id FROM instances_instance i JOIN submissions_prediction p ON p.instance_id ="
        " i.id AND p.submission_id = %s WHERE i.document_id = ANY(%s)",
        [submission, list(documents)],
    )
    return [pk for (pk,) in rows]


def describe_predictions(
    track: Track,
    submission: int,
    predictions: Sequence[int],
    *,
    public: bool,
    unjudged: Collection[int] = (),
) -> list[base.Judged]:
    """Return the predictions of a submission with these ids, in order, ready for the page. With
    `public` only public judgments are used; judgments of predictions in `unjudged` are left out.
    """
    stored = Prediction.objects.select_related("instance__document", "instance__predicate")
    by_key = stored.in_bulk(predictions)
    chosen = [by_key[pk] for pk in predictions]
    rows = judged_rows_of_predictions(chosen, public=public)
    judged = [row.instance.target_id for row in chosen if row.pk not in unjudged]
    labels = _deciding_labels(judged, public=public)
    schema, names = _predicates_by_name(track.corpus), track.corpus.relation_names()
    ends_included = Submission.objects.filter(pk=submission, door=ENDS_INCLUDED).exists()
    described: list[base.Judged] = []
    for prediction, row in zip(chosen, rows, strict=True):
        if prediction.pk in unjudged:
            row = replace(row, value={}, clusters=Clusters(row.clusters.text, {}), closed=False)
        label = labels.get(prediction.instance.target_id)
        called = names.get(row.predicate, row.predicate)
        described.append(
            _describe_prediction(
                prediction, row, label, schema, called, ends_included=ends_included
            )
        )
    return described


def _deciding_labels(targets: Collection[int], *, public: bool) -> dict[int, Label]:
    """Return target -> the label that decides: the latest one from the strongest source, among the
    public ones if `public`.
    """
    labels = Label.objects.filter(target__in=targets)
    deciding: dict[int, Label] = {}
    for label in sorted(
        labels, key=lambda label: (-RANK[label.source], label.created_at, label.pk)
    ):
        if label.is_public or not public:
            deciding[label.target_id] = label
    return deciding


def _describe_prediction(
    prediction: Prediction,
    judged_row: JudgedRow,
    label: Label | None,
    schema: Mapping[str, Mapping[str, Any]],
    predicate_name: str,
    *,
    ends_included: bool,
) -> Judged:
    document = prediction.instance.document
    assert document is not None, prediction
    parts = (
        _as_bool(predicate_verdict(judged_row)),
        _as_bool(_subject_verdict(judged_row)),
        _as_bool(_object_verdict(judged_row)),
    )
    begin = document.sentences[
        document.sentence_index_at(min(judged_row.subject[0], judged_row.object[0]))
    ][0]
    end = document.sentences[
        document.sentence_index_at(max(judged_row.subject[0], judged_row.object[0]))
    ][1]
    return Judged(
        prediction=prediction,
        document=document,
        predicate=judged_row.predicate,
        label=predicate_name,
        claim=_claim_pieces(
            document,
            judged_row.predicate,
            schema.get(judged_row.predicate, {}),
            judged_row.subject,
            judged_row.object,
        ),
        window=(begin, end),
        spans=[
            (begin, end, "provenance"),
            (judged_row.subject[0], judged_row.subject[1], "subject"),
            (judged_row.object[0], judged_row.object[1], "object"),
        ],
        relation=parts[0],
        subject=parts[1],
        object=parts[2],
        row=judged_row,
        schema=schema,
        ends_included=ends_included,
        right=None if None in parts else all(parts),
        votes=_votes_text(judged_row, label),
        source=label.source if label is not None else "",
    )


def _claim_pieces(
    document: Document, name: str, predicate: Mapping[str, Any], subject: Span, object_: Span
) -> list[tuple[str, str]]:
    """Return the claim that a predicate holds of two mentions: the pieces of its template in order,
    with the mentions' texts inserted.
    """
    template = predicate.get("template") or f"{{subject}} {name} {{object}}"
    texts = {"subject": document.gloss(*subject), "object": document.gloss(*object_)}
    claim = []
    for place, piece in enumerate(re.split(r"\{(subject|object)\}", template)):
        if place % 2:
            claim.append((piece, texts[piece]))
        elif piece:
            claim.append(("", piece))
    return claim


def _as_bool(value: float) -> bool | None:
    return None if np.isnan(value) else bool(value)


def _votes_text(judged_row: JudgedRow, label: Label | None) -> str:
    """Return “3 of 3”: the votes for the winning answer about the prediction's relation."""
    if label is None or not label.n or label.source != "crowd":
        return {"import": "from the gold standard", "expert": "by an expert"}.get(
            label.source if label else "", ""
        )
    yes, n = _count_votes(judged_row, label.n)
    is_right = directed_name(judged_row.predicate, judged_row.forward) in judged_row.value.get(
        "holds", ()
    )
    return f"{yes if is_right else n - yes} of {n}"


def _count_votes(judged_row: JudgedRow, n: int) -> tuple[int, int]:
    """Return how many annotators affirmed the prediction's relation, and how many were asked."""
    part = directed_name(judged_row.predicate, judged_row.forward)
    return judged_row.value.get("votes", {}).get(part, 0), judged_row.value.get("asked", {}).get(
        part, n
    )


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The additional values on the page of one relation."""

    ends: list[End]
    holds: list[list[tuple[str, str]]]
    """Sentences that people affirmed of the two mentions"""
    asked: int
    """Number of relations that people were offered"""
    around: tuple[int, int]
    """The first and last sentence of the excerpt: those of the relation, with one before and one
    after
    """
    spans: list[Mark]


def found_relations(corpus: Corpus, marks: Sequence[tuple[int, str, Span, Span]]) -> list[Found]:
    """Return relations that readers marked, as sentences."""
    documents = Document.objects.in_bulk({mark[0] for mark in marks})
    schema, found = _predicates_by_name(corpus), []
    for pk, predicate, subject, object_ in marks:
        document = documents[pk]
        claim = _claim_pieces(document, predicate, schema.get(predicate, {}), subject, object_)
        record = {
            "document": document.key,
            "subject": list(subject),
            "predicate": predicate,
            "object": list(object_),
            "claim": "".join(text for _, text in claim),
        }
        facets = {FACETS[0].name: predicate}
        found.append(Found(pk, document.key, document.title, claim, record, facets))
    return found
