"""The numbers behind the page of what metrics, judges and questions are worth, as tables: the page
draws from here, and its CSV files and the API are these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kbpo.evaluation.leaderboard import Saved, board, saved_on
from kbpo.evaluation.models import Evaluation
from kbpo.sampling.designs.base import half_width_of, variance_at
from kbpo.sampling.designs.draft import Draft
from kbpo.sampling.study import CURVE, WIDTHS, Study, study_of
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import n_inputs
from kbpo.web.components.drawing import Interval
from kbpo.web.public.points import points_of
from scoring.report import Scorer, Worth

Rows = tuple[list[str], Sequence[Sequence[Any]]]
"""The head of a table, and its rows"""


def tabulate(kind: Kind, evaluation: Evaluation | None, criterion: str, figure: str) -> Rows:
    """One of FIGURES under a criterion, as an evaluation left it."""
    return FIGURES[figure](kind, evaluation, criterion, worth_under(evaluation, criterion))


def worth_under(evaluation: Evaluation | None, criterion: str) -> Worth:
    """What an evaluation says of the worth of metrics under a criterion."""
    return evaluation.report.worth.get(criterion, Worth()) if evaluation is not None else Worth()


def scorers_of(stored: Worth) -> list[Scorer]:
    """The metrics and judges, all together first, then by their worth; those of which too little is
    known last.
    """
    scorers = [stored.together] if stored.together is not None else []
    return scorers + sorted(stored.scorers, key=lambda scorer: -(scorer.worth or 0.0))


@dataclass(frozen=True)
class Card:
    """A metric or judge with its worth as an interval, and what it saves on the board."""

    scorer: Scorer
    saves: Saved | None

    @property
    def interval(self) -> Interval:
        return Interval(self.scorer.worth, *self.scorer.worth_80, *self.scorer.worth_95)

    @property
    def tone(self) -> str:
        """In colour where a gain is shown."""
        return "a" if (self.interval.low80 or 0.0) > 1 else "quiet"


def cards_of(track: Track, evaluation: Evaluation | None, criterion: str) -> list[Card]:
    """The metrics and judges, each with what it saves on the track's board where that is told."""
    shown = board(track, distribution=track.distribution, criterion=criterion)
    scorers = scorers_of(worth_under(evaluation, criterion))
    return [Card(scorer, saved_on(shown, scorer.id)) for scorer in scorers]


def names_of(evaluation: Evaluation | None) -> dict[int, str]:
    """The systems on the board: number -> name."""
    if evaluation is None:
        return {}
    submissions = (
        Submission.objects.filter(track=evaluation.track_id).on_board().select_related("team")
    )
    return {row.pk: row.full_name for row in submissions.order_by("pk")}


def single_of(stored: Worth) -> Scorer | None:
    """The metric or judge that is worth most by itself."""
    known = [scorer for scorer in stored.scorers if scorer.worth is not None]
    return max(known, key=lambda scorer: scorer.worth or 0.0, default=None)


def curve_rows(kind: Kind, study: Study | None) -> list[list[float]]:
    """Judgments, and the half-width with people alone, aided, with people who never differ, with a
    metric that knows their mean: for inputs like those of the track, which are judged once each.
    """
    inputs = n_inputs(kind.track, test=True)
    if study is None or not inputs:
        return []
    plan = Draft.even(inputs)
    noiseless = replace(
        plan, error=study.error(rho=0.0, noise=False), left=study.spread(noise=False) / inputs
    )
    plans = [
        plan.by(study, aided=False),
        plan.by(study),
        noiseless,
        replace(plan.by(study), error=study.error(rho=1.0)),
    ]
    judged = [n for n in CURVE if n < inputs] + [inputs]
    track = kind.track
    return [[n, *(half_width_of(track, plan.variance(n)) for plan in plans)] for n in judged]


def widths_of(kind: Kind, study: Study | None) -> list[dict[str, Any]]:
    """How many judgments a system needs for each half-width, as its plan says it: None where all of
    the track's inputs are too few for it.
    """
    if study is None:
        return []
    plan = Draft.even(max(1, n_inputs(kind.track, test=True)))
    plans = {
        "alone": (plan.by(study, aided=False), 1),
        "aided": (plan.by(study), 1),
        "two_people": (plan.by(study, people=2, aided=False), 2),
    }
    rows: list[dict[str, Any]] = []
    for width in WIDTHS:
        goal, row = variance_at(kind.track, width), dict[str, Any]()
        for name, (planned, people) in plans.items():
            asked = people * planned.questions(planned.thresholds(goal))
            row[name] = asked if planned.left <= goal else None
        if not study.rho:
            row["aided"] = None
        rows.append({"half_width": width, **row})
    return rows


def _worth_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    numbers = ("n", "pearson", "spearman", "rho", "r", "between", "prmse", "worth")
    with_ends = ("rho", "pearson", "spearman", "between", "prmse")
    header = ["metric", "version", "prompt", *numbers]
    header += ["low80", "high80", "low95", "high95", "saves"]
    for name in with_ends:
        header += [f"{name}_low80", f"{name}_high80"]
    header += ["rated_twice", "source", "used"]
    rows = []
    for card in cards_of(kind.track, evaluation, criterion):
        scorer = card.scorer
        row: list[Any] = [scorer.name, scorer.version, scorer.prompt]
        row += [getattr(scorer, name) for name in numbers]
        row += [*scorer.worth_80, *scorer.worth_95, card.saves.share if card.saves else None]
        for name in with_ends:
            row += getattr(scorer, f"{name}_80")
        row += [scorer.n_multiple, scorer.source, scorer.used]
        rows.append(row)
    return header, rows


def _by_system(
    evaluation: Evaluation | None, stored: Worth, what: str
) -> Iterator[tuple[Scorer, int, str, float]]:
    """Yields what is stored by system of each metric or judge, of systems on the board: the metric,
    the number and name of the system, and what is stored.
    """
    names = names_of(evaluation)
    for scorer in scorers_of(stored):
        for number, value in getattr(scorer, what).items():
            if number in names:
                yield scorer, number, names[number], value


def _bias_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    rows = []
    for scorer, number, system, bias in _by_system(evaluation, stored, "bias"):
        alone = scorer.alone[number]
        rows.append([scorer.name, system, alone, alone - bias, bias])
    return ["metric", "system", "alone", "people", "bias"], rows


def _systems_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    rows = []
    for scorer, _, system, pearson in _by_system(evaluation, stored, "within"):
        rows.append([scorer.name, system, pearson])
    return ["metric", "system", "pearson"], rows


def _points_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    single = single_of(stored)
    points = points_of(kind, criterion, single)
    rows = [[single.name, point.system, point.score, point.people] for point in points if single]
    return ["metric", "system", "score", "people"], rows


def _width_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    header = ["judgments", "people_alone", "with_metrics", "noiseless_people", "perfect_metric"]
    return header, curve_rows(kind, study_of(kind, criterion, stored))


def _prompt_file(kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth) -> Rows:
    names = ("sigma_f2", "sigma_a2", "gamma")
    header = ["criterion"]
    for name in names:
        header += [name, f"{name}_low80", f"{name}_high80"]
    header.append("most_a_metric_can_be_worth")
    rows = []
    for prompt in kind.measures.criteria:
        components = worth_under(evaluation, prompt.name).components
        if components is None:
            continue
        row = [prompt.name]
        for name in names:
            row += [getattr(components, name), *getattr(components, f"{name}_80")]
        rows.append([*row, components.most])
    return header, rows


def _quadrant_file(
    kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth
) -> Rows:
    rows = []
    for scorer in scorers_of(stored):
        if scorer.quadrants:
            rows.append([scorer.name, *scorer.quadrants])
    return ["metric", "both_like", "metric_alone", "people_alone", "neither"], rows


def _judgments_file(
    kind: Kind, evaluation: Evaluation | None, criterion: str, stored: Worth
) -> Rows:
    header = ["half_width", "people_alone", "with_metrics", "two_people"]
    keys = ("half_width", "alone", "aided", "two_people")
    rows = widths_of(kind, study_of(kind, criterion, stored))
    return header, [[row[key] for key in keys] for row in rows]


FIGURES = {
    "worth": _worth_file,
    "bias": _bias_file,
    "systems": _systems_file,
    "points": _points_file,
    "width": _width_file,
    "judgments": _judgments_file,
    "prompts": _prompt_file,
    "quadrants": _quadrant_file,
}
"""What can be had as a table, by the name of its file"""
