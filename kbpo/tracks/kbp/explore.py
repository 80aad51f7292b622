"""What the explorer shows of judged relations: the claim in its sentence, and which part of it is
right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Document
from kbpo.instances.merge import PUBLIC, RANK
from kbpo.instances.models import Label
from kbpo.submissions.models import Prediction
from kbpo.tracks import base
from kbpo.tracks.base import Verdicts
from kbpo.tracks.kbp.judge import holds, judge
from kbpo.tracks.kbp.judgments import rows_of
from kbpo.tracks.models import Track

Mark = tuple[int, int, str]
"""Begin and end in the document's text, and what is marked: subject, object, provenance"""


@dataclass(frozen=True, kw_only=True)
class Judged(base.Judged):
    """A relation with what people said of it; `relation`, `subject` and `object` are True, False or
    None.
    """

    document: Document
    predicate: str
    claim: list[tuple[str, str]]
    """The claim as a sentence, in pieces: (role, text); a role is subject, object, or empty"""
    window: tuple[int, int]
    spans: list[Mark]
    relation: bool | None
    subject: bool | None
    object: bool | None

    def as_json(self) -> dict[str, Any]:
        """With the offsets and the document id of the file that stated it."""
        instance = self.prediction.instance
        return {
            "prediction": self.prediction.pk,
            "document": self.document.key,
            "subject": [instance.subject_begin, instance.subject_end],
            "predicate": self.predicate,
            "object": [instance.object_begin, instance.object_end],
            "claim": "".join(text for _, text in self.claim),
            "confidence": self.prediction.confidence,
            "right": self.right,
            "relation_right": self.relation,
            "subject_right": self.subject,
            "object_right": self.object,
            "votes": self.votes,
            "source": self.source,
        }


def verdicts(submission: int, *, public: bool) -> Verdicts:
    """Predictions with a judgment (with a public one), whether each is right in all
    its parts (NaN: some are missing), and their predicates.

    The judgments of a closed track are public, those that another track has on the same corpus are
    not: of a target that both asked about, only what is public says what is right.
    """
    known = PUBLIC if public else ""
    rows = fetch(
        "SELECT p.id, p.instance_id, r.name FROM submissions_prediction p JOIN instances_instance"
        " i ON i.id = p.instance_id JOIN corpus_predicate r ON r.id = i.predicate_id WHERE"
        " p.submission_id = %s AND EXISTS (SELECT 1 FROM instances_label l WHERE l.target_id ="
        f" i.target_id AND l.value <> '{{}}'::jsonb{known}) ORDER BY i.document_id,"
        " i.subject_begin, p.id",
        [submission],
    )
    said = rows_of([row[1] for row in rows], submission, public=public)
    return Verdicts([row[0] for row in rows], judge(said)["correct"], [row[2] for row in rows])


def describe(
    track: Track, submission: int, predictions: Sequence[int], *, public: bool
) -> list[base.Judged]:
    """The judged predictions with these ids, in order, ready for the page; by their public
    judgments alone if asked.
    """
    by_id = Prediction.objects.filter(pk__in=predictions).select_related(
        "instance__document", "instance__predicate"
    )
    by_key = by_id.in_bulk()
    chosen = [by_key[pk] for pk in predictions]
    rows = rows_of([one.instance_id for one in chosen], submission, public=public)
    labels: dict[int, Label] = {}
    known = Label.objects.filter(target__in=[one.instance.target_id for one in chosen])
    for label in sorted(known, key=lambda one: (-RANK[one.source], one.created_at, one.pk)):
        if label.is_public or not public:
            labels[label.target_id] = label
    templates = {
        one["name"]: one.get("template") or "{subject} " + one["name"] + " {object}"
        for one in track.corpus.schema["predicates"]
    }
    return [
        _describe(
            one,
            row,
            labels.get(one.instance.target_id),
            templates.get(row.predicate, "{subject} – {object}"),
        )
        for one, row in zip(chosen, rows, strict=True)
    ]


def _describe(one: Prediction, row: Any, label: Label | None, template: str) -> Judged:
    document = one.instance.document
    assert document is not None, one
    subject = row.clusters.refers(row.subject, row.subject_canonical)
    object_ = row.clusters.refers(row.object, row.object_canonical)
    parts = (_truth(holds(row)), _truth(subject), _truth(object_))
    begin = document.sentences[document.sentence_of(min(row.subject[0], row.object[0]))][0]
    end = document.sentences[document.sentence_of(max(row.subject[0], row.object[0]))][1]
    return Judged(
        prediction=one,
        document=document,
        predicate=row.predicate,
        claim=_claim(
            template,
            {"subject": document.gloss(*row.subject), "object": document.gloss(*row.object)},
        ),
        window=(begin, end),
        spans=[
            (begin, end, "provenance"),
            (row.subject[0], row.subject[1], "subject"),
            (row.object[0], row.object[1], "object"),
        ],
        relation=parts[0],
        subject=parts[1],
        object=parts[2],
        right=None if None in parts else all(parts),
        votes=_votes(row, label),
        source=label.source if label is not None else "",
    )


def _claim(template: str, texts: dict[str, str]) -> list[tuple[str, str]]:
    """The template's pieces in order, with the mentions' texts in place."""
    pieces = re.split(r"\{(subject|object)\}", template)
    return [
        (piece, texts[piece]) if at % 2 else ("", piece) for at, piece in enumerate(pieces) if piece
    ]


def _truth(value: float) -> bool | None:
    return None if np.isnan(value) else bool(value)


def _votes(row: Any, label: Label | None) -> str:
    """“3 of 3 said so”, for the prediction's own relation."""
    if label is None or not label.n or label.source != "crowd":
        return {"import": "from the gold standard", "expert": "by an expert"}.get(
            label.source if label else "", ""
        )
    part = row.predicate + (">" if row.forward else "<")
    n = row.value.get("asked", {}).get(part, label.n)
    yes = row.value.get("votes", {}).get(part, 0)
    agree = yes if part in row.value.get("holds", ()) else n - yes
    return f"{agree} of {n}"
