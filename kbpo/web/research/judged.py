"""A submission's judged predictions in their sentences: subject, relation and object, each right or
wrong.

A judgment is shown only to a team whose own sampled submission states it, to admins, and to
everybody once it is public. A draft shows nothing: else an upload would be a way to read other
people's answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from annotation.desk import adjudicate
from kbpo.accounts.models import User
from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Document
from kbpo.instances.merge import PUBLIC
from kbpo.instances.models import Label
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.kbp.judge import holds, judge
from kbpo.tracks.kbp.judgments import rows_of
from kbpo.web.components.viewer import Span

VERDICTS = ("all", "right", "wrong")
SHOWING = ("judging", "scored")
"""Statuses of submissions that show judgments."""
NOT_DISPUTED = {
    "import": (
        "This comes from the gold standard. Experts are asked about what the crowd judged here, not"
        " about that."
    ),
    "expert": "An expert judged this already.",
}
"""Why a judgment is not put before an expert, by the source of its label."""


@dataclass(frozen=True)
class Judged:
    """One prediction with what people said of it; `relation`, `subject` and `object` are True,
    False or None.
    """

    prediction: Prediction
    document: Document
    predicate: str
    claim: list[tuple[str, str]]
    """The claim as a sentence, in pieces: (role, text); a role is subject, object, or empty"""
    window: tuple[int, int]
    spans: list[Span]
    relation: bool | None
    subject: bool | None
    object: bool | None
    votes: str
    source: str = ""
    """Of the label that counts: crowd, expert, import, document"""
    dispute: Any = None
    """What its team said against the judgment, and what became of it"""
    disputable: bool = False
    undisputed: str = ""
    """Why its team cannot dispute it, as a sentence"""

    @property
    def right(self) -> bool | None:
        """All parts right, some part wrong, or not known."""
        parts = (self.relation, self.subject, self.object)
        return None if None in parts else all(parts)


def may_see(user: Any, submission: Submission) -> bool:
    """Whether a person may see this submission's judgments: all of them, or the public ones
    (`only_public`).

    A draft shows nothing, nor does a submission before its sample is drawn or after it was
    withdrawn: else one could state everything, read what others paid for, and take it back for
    free.
    """
    if submission.status not in SHOWING and not (
        submission.status == "confirmed" and submission.sampled_at
    ):
        return False
    return submission.track.status == "closed" or not only_public(user, submission)


def only_public(user: Any, submission: Submission) -> bool:
    """Whether a person sees no more of this submission's judgments than everybody does."""
    if not isinstance(user, User):
        return True
    return not (user.is_staff or submission.team.members.filter(pk=user.pk).exists())


def verdicts(
    submission: Submission, *, public: bool
) -> tuple[list[int], np.ndarray[Any, Any], list[str]]:
    """Prediction ids with a judgment (with a public one), whether each is right (NaN: parts
    missing), their predicates.

    The judgments of a closed track are public, those that another track has on the same corpus are
    not: of a target that both asked about, only what is public says what is right.
    """
    known = PUBLIC if public else ""
    found = fetch(
        "SELECT p.id, p.instance_id, r.name FROM submissions_prediction p JOIN instances_instance"
        " i ON i.id = p.instance_id JOIN corpus_predicate r ON r.id = i.predicate_id WHERE"
        " p.submission_id = %s AND EXISTS (SELECT 1 FROM instances_label l WHERE l.target_id ="
        f" i.target_id AND l.value <> '{{}}'::jsonb{known}) ORDER BY i.document_id,"
        " i.subject_begin, p.id",
        [submission.pk],
    )
    rows = rows_of([row[1] for row in found], submission.pk, public=public)
    return [row[0] for row in found], judge(rows)["correct"], [row[2] for row in found]


def describe(submission: Submission, ids: Sequence[int], *, public: bool) -> list[Judged]:
    """The judged predictions with these ids, in order, ready for the page; by their public
    judgments alone if asked.
    """
    predictions = Prediction.objects.filter(pk__in=ids).select_related(
        "instance__document", "instance__predicate"
    )
    by_id = predictions.in_bulk()
    chosen = [by_id[pk] for pk in ids]
    rows = rows_of([one.instance_id for one in chosen], submission.pk, public=public)
    labels: dict[int, Label] = {}
    for label in Label.objects.filter(
        target__in=[one.instance.target_id for one in chosen]
    ).order_by("created_at"):
        if label.is_public or not public:
            labels[label.target_id] = label
    templates = {
        one["name"]: one.get("template") or "{subject} " + one["name"] + " {object}"
        for one in predicates(submission)
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


def with_disputes(submission: Submission, rows: list[Judged], own: bool) -> list[Judged]:
    """The rows, for their own team with what it disputes and may dispute: what people judged."""
    disputes = adjudicate.of_submission(submission) if own else {}
    return [
        replace(
            one,
            dispute=disputes.get(one.prediction.instance.target_id),
            disputable=own and one.source in (Label.Source.CROWD, Label.Source.DOCUMENT),
            undisputed=NOT_DISPUTED.get(one.source, "") if own else "",
        )
        for one in rows
    ]


def predicates(submission: Submission) -> list[dict[str, Any]]:
    """The predicates of the schema, as in its file."""
    found: list[dict[str, Any]] = submission.track.corpus.schema["predicates"]
    return found


def _describe(one: Prediction, row: Any, label: Label | None, template: str) -> Judged:
    document = one.instance.document
    subject = row.clusters.refers(row.subject, row.subject_canonical)
    object_ = row.clusters.refers(row.object, row.object_canonical)
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
            Span(begin, end, "provenance"),
            Span(row.subject[0], row.subject[1], "subject"),
            Span(row.object[0], row.object[1], "object"),
        ],
        relation=_truth(holds(row)),
        subject=_truth(subject),
        object=_truth(object_),
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
    yes = label.value.get("votes", {}).get(part, 0)
    agree = yes if part in label.value.get("holds", ()) else label.n - yes
    return f"{agree} of {label.n}"
