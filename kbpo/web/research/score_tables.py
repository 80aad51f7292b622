"""Tells a submission's scores as tables, and what expert checks make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbpo.evaluation.latest import Latest
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.measures import DEFAULT, UNWEIGHED
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing
from kbpo.web.components.figures import count_text
from scoring.report import Figure
from scoring.score import Key

SCOPES = {
    Track.Scope.SENTENCE: "within one sentence",
    Track.Scope.NEIGHBOURS: "within one sentence or two that follow each other",
    Track.Scope.DOCUMENT: "anywhere in one document",
}
"""Where the two mentions of a fact stand for recall to count it."""


def tables(latest: Latest, looked: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the scores by criterion: the guaranteed pair first, each with its rows and one axis.
    `looked` is what may be watched of the submission while it is judged.
    """
    submission, figures = latest.submission, latest.figures
    kind, guaranteed = kind_of(submission.track), submission.track.criterion
    looked = looked if submission.status != "scored" else None
    criteria = {criterion for _, criterion, _, _ in figures}
    has_recall = {key[1] for key in figures if not kind.measures.quantity(key[0]).weighed}
    scope = SCOPES[Track.Scope(submission.track.scope)] if has_recall else ""
    result: list[dict[str, Any]] = []
    for criterion in sorted(criteria, key=lambda name: (name != guaranteed, name)):
        rows = _rows(submission, figures, criterion, looked)
        rests_on = [  # how many judgments the watched interval rests on, and how many there are
            {"n": looked["now"].n, "now": row["figure"].n_labels}
            for row in rows
            if looked is not None and row["safe"] and looked["now"].n < row["figure"].n_labels
        ]
        result.append(
            {
                "name": kind.measures.criterion(criterion).label,
                "criterion": criterion,
                "rows": rows,
                "axis": drawing.axis_over(row["interval"] for row in rows),
                "scope": scope if criterion in has_recall else "",
                "watched": any(row["safe"] for row in rows),
                "rests_on": next(iter(rests_on), None),
                "has_few": any(
                    row["kind"] == "few" and row["interval"].estimate is not None for row in rows
                ),
                "holds_for": kind.words.populations.get(kind.measures.population, ""),
                "lost": rows[0]["figure"].n_missing if rows else 0,
            }
        )
    unjudged = _unjudged(submission) if any(table["lost"] for table in result) else (0, 0)
    for table in result:
        if table["lost"]:
            table["missing"], table["why_missing"] = _missing(table["lost"], *unjudged)
    return result


def _rows(
    submission: Submission,
    figures: dict[tuple[str, str, str, str], Figure],
    criterion: str,
    looked: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return the lines of the table of one criterion, each with what experts make of it beneath. An
    interval that is made for one look is drawn as of the moment until judging ends.
    """
    track, rows = submission.track, list[dict[str, Any]]()
    for key, label in _lines(track, criterion):
        if (*key, DEFAULT) not in figures:
            continue
        for method, name in ((DEFAULT, label), ("expert", f"{label}, corrected")):
            if (figure := figures.get((*key, method))) is None:
                continue
            row: dict[str, Any] = {
                "name": name,
                "figure": figure,
                "interval": drawing.Interval.of(figure),
                "safe": False,
                "guaranteed": method == DEFAULT
                and key == (kind_of(track).measures.mean, track.criterion, track.distribution),
                "kind": "few" if figure.few else "final",
            }
            if submission.status != "scored":
                row["kind"] = "moment"
            if row["guaranteed"] and looked is not None:
                row |= {"interval": looked["interval"], "safe": True, "kind": "live"}
            rows.append(row)
    return rows


def _unjudged(submission: Submission) -> tuple[int, int]:
    """Return how many of the drawn relations that a submission predicts have no judgment yet and
    are not given up, and how many of these somebody is still asked about.
    """
    drawn = Sample.objects.filter(
        batch__submission__track=submission.track_id,
        target__instances__predictions__submission=submission,
    )
    pairs = set(drawn.values_list("target_id", "batch__submission__status"))
    targets = {target for target, _ in pairs}
    unanswered = kind_of(submission.track).unanswered({submission.pk: targets})[submission.pk]
    asked = {target for target, status in pairs if status == "judging"}
    return len(unanswered), len(unanswered & asked)


def _missing(n: int, unjudged: int, asked: int) -> tuple[dict[str, int], list[str]]:
    """Return why n of them have no judgment under a criterion, in numbers and in words: they wait
    for one; nobody is asked any more, since the run that they were drawn for has ended; or nobody
    could answer.
    """
    waiting = min(n, asked)
    dropped = min(n - waiting, unjudged - waiting)
    unanswered = n - waiting - dropped
    reasons = []
    if waiting:
        reasons.append(f"{count_text(waiting)} {'waits' if waiting == 1 else 'wait'} for one")
    if dropped:
        was, is_now = ("was", "is") if dropped == 1 else ("were", "are")
        reasons.append(
            f"{count_text(dropped)} {was} drawn for a run that has ended and {is_now} not asked"
            " about any more"
        )
    if unanswered:
        was = "was" if unanswered == 1 else "were"
        reasons.append(f"{count_text(unanswered)} found no answer and {was} given up")
    return {"n": n, "waiting": waiting, "dropped": dropped, "unanswered": unanswered}, reasons


def _lines(track: Track, criterion: str) -> Iterator[tuple[Key, str]]:
    """Return what a table has lines for, and their names: F1 says which precision it combines with
    recall.
    """
    kinds = sorted(track.distributions, key=lambda kind: kind != track.distribution)
    of_track = kind_of(track)
    for quantity in of_track.measures.quantities:
        if quantity.name == of_track.measures.mean:
            label = of_track.measures.printed(quantity.name, criterion).label
            for kind in kinds:
                weighed = of_track.measures.distributions[kind].label.lower()
                yield (quantity.name, criterion, kind), f"{label}, {weighed}"
        elif quantity.weighed:
            weighed = of_track.measures.distributions[track.distribution].label.lower()
            name = f"{quantity.label} of recall and precision, {weighed}"
            yield (quantity.name, criterion, track.distribution), name
        else:
            yield (quantity.name, criterion, UNWEIGHED), quantity.label


def not_corrected(latest: Latest) -> list[str]:
    """Return why numbers of a submission are not corrected by expert checks, as sentences; none
    without any checks.
    """
    return list(latest.report.not_corrected.get(latest.submission.pk, ()))


def checked(latest: Latest) -> dict[str, Any] | None:
    """Return the guaranteed number as expert checks correct it, beside what the crowd's judgments
    alone say; None without any checks.
    """
    corrected = latest.guaranteed("expert")
    if corrected is None:
        return None
    has_recall = recall_of(latest.submission.track) is not None
    return {"figure": corrected, "crowd": latest.guaranteed(), "has_recall": has_recall}
