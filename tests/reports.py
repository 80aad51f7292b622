"""Reports that somebody wrote down: figures of an evaluation are put in, changed and taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kbpo.evaluation.models import Evaluation, Headline
from kbpo.evaluation.store import headline_rows
from kbpo.submissions.models import Submission
from scoring.report import Comparison, Figure, Key


def keep(evaluation: Evaluation, figures: dict[Key, Figure] | None = None, **told: Any) -> None:
    """Store an evaluation whose report says this, whatever it said before."""
    report = replace(evaluation.report, **told)
    if figures is not None:
        whole = {key: figure for key, figure in figures.items() if not key.slice}
        sliced = {key: figure for key, figure in figures.items() if key.slice}
        report = replace(report, figures=whole)
        evaluation.set_report(report, replace(evaluation.details, figures=sliced))
    else:
        evaluation.set_report(report)
    evaluation.save()
    evaluation.headlines.all().delete()
    Headline.objects.bulk_create(headline_rows(evaluation))


def figures_of(evaluation: Evaluation, **of: Any) -> dict[Key, Figure]:
    """The figures of an evaluation, of slices too, as they were computed; `of` says which: a value,
    or several.
    """
    stored = {**evaluation.report.figures, **evaluation.details.figures}
    return {key: figure for key, figure in stored.items() if _is(key, of)}


def figure_of(evaluation: Evaluation, submission: Submission, **of: Any) -> Figure:
    """The one figure of a submission that is of this; of the whole, if no slice is named."""
    [figure] = figures_of(evaluation, **{"submission": submission.pk, "slice": ""} | of).values()
    return figure


def newest(submission: Submission, **of: Any) -> Figure:
    """The same in the newest evaluation of its track."""
    return figure_of(submission.track.evaluations.latest("number"), submission, **of)


def put(evaluation: Evaluation, submission: Submission, figure: Figure, *of: str) -> None:
    """Put in one figure, of a quantity, criterion, distribution, method (and slice)."""
    keep(evaluation, figures_of(evaluation) | {Key(submission.pk, *of): figure})


def update(evaluation: Evaluation, of: dict[str, Any], **values: Any) -> None:
    """Change the figures that are of this."""
    changed = figures_of(evaluation, **of)
    assert changed
    changed = {key: replace(figure, **values) for key, figure in changed.items()}
    keep(evaluation, figures_of(evaluation) | changed)


def drop(evaluation: Evaluation, **of: Any) -> None:
    """Take out the figures that are of this."""
    keep(evaluation, {k: f for k, f in figures_of(evaluation).items() if not _is(k, of)})


def _is(key: Key, of: dict[str, Any]) -> bool:
    for name, wanted in of.items():
        value = getattr(key, name)
        if value not in wanted if isinstance(wanted, list | tuple | set) else value != wanted:
            return False
    return True


def again(evaluation: Evaluation, **changes: Any) -> Evaluation:
    """Another evaluation of the same track that says the same, but for these columns."""
    row = Evaluation(track=evaluation.track, **{"standing": evaluation.standing} | changes)
    row.set_report(evaluation.report, evaluation.details)
    keep(row)
    return row


def rank(evaluation: Evaluation, quantity: str, criterion: str, **told: Any) -> None:
    """Let an evaluation rank systems by a quantity under the guaranteed distribution."""
    key = (quantity, criterion, evaluation.track.distribution)
    keep(evaluation, comparisons={key: Comparison(**told)})
