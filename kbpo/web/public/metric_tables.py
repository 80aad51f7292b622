"""Tables of the worth of metrics, judges and questions, for the metrics page, its CSV files and the
API.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kbpo.evaluation.leaderboard import Board, Saved, board, saved_share
from kbpo.evaluation.models import Evaluation
from kbpo.sampling.designs.base import half_width_of, variance_at
from kbpo.sampling.designs.draft import Draft
from kbpo.sampling.study import CURVE, WIDTHS, Study, study_of
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.registry import kind_of, n_inputs
from kbpo.web.components.drawing import Interval
from kbpo.web.table import Table, columns
from scoring.report import Key, Scorer, Worth
from scoring.saved import LATER, UNAIDED
from scoring.score import DEFAULT

Records = Iterator[dict[str, Any]]
NUMBERS = ("n", "pearson", "spearman", "rho", "r", "between", "prmse", "worth")
WITH_ENDS = ("rho", "pearson", "spearman", "between", "prmse")
QUADRANTS = ("both_like", "metric_alone", "people_alone", "neither")
OF_COMPONENTS = ("sigma_f2", "sigma_a2", "gamma")


def _columns_of_ends(*names: str) -> list[str]:
    return [f"{name}_{end}" for name in names for end in ("low80", "high80")]


FIGURES = {
    "worth": (
        *("metric", "version", "prompt", *NUMBERS, "low80", "high80", "low95", "high95", "saves"),
        *_columns_of_ends(*WITH_ENDS),
        *("rated_twice", "source", "used", *QUADRANTS),
    ),
    "systems": ("metric", "system", "alone", "people", "bias", "pearson"),
    "width": ("judgments", "people_alone", "with_metrics", "noiseless_people", "perfect_metric"),
    "judgments": ("half_width", "people_alone", "with_metrics", "two_people"),
    "prompts": (
        *("criterion", *OF_COMPONENTS, *_columns_of_ends(*OF_COMPONENTS)),
        "most_a_metric_can_be_worth",
    ),
}
"""What can be had as a table -> the names of its columns"""


def metric_table(kind: Kind, evaluation: Evaluation | None, criterion: str, figure: str) -> Table:
    """Return one of FIGURES under a criterion, from an evaluation."""
    stored = worth_under(evaluation, criterion)
    if figure == "worth":
        shown = board(kind.track, distribution=kind.track.distribution, criterion=criterion)
        rows: Any = map(_card_record, scorer_cards(shown, stored))
    elif figure == "systems":
        rows = _system_rows(evaluation, stored)
    elif figure == "prompts":
        rows = prompt_rows(kind, evaluation)
    else:
        of_study = width_curve if figure == "width" else judgments_by_width
        rows = of_study(kind, study_of(kind, criterion, stored))
    name = f"{kind.track.slug}-{criterion}-{figure}"
    return Table(name, columns(*FIGURES[figure]), list(rows))


def worth_under(evaluation: Evaluation | None, criterion: str) -> Worth:
    """Return the worth of metrics under a criterion, from an evaluation."""
    return evaluation.report.worth.get(criterion, Worth()) if evaluation is not None else Worth()


def sort_scorers(stored: Worth) -> list[Scorer]:
    """Return the metrics and judges: all together first, then by decreasing worth, unknown worth
    last.
    """
    scorers = [stored.together] if stored.together is not None else []
    return scorers + sorted(stored.scorers, key=lambda scorer: -(scorer.worth or 0.0))


def best_single_scorer(stored: Worth) -> Scorer | None:
    """Return the metric or judge with the highest worth by itself."""
    known = [scorer for scorer in stored.scorers if scorer.worth is not None]
    return max(known, key=lambda scorer: scorer.worth or 0.0, default=None)


def board_names(evaluation: Evaluation | None) -> dict[int, str]:
    """Return the names of the systems on the board, by number."""
    if evaluation is None:
        return {}
    runs = Submission.objects.filter(track=evaluation.track_id).on_board().select_related("team")
    return {row.pk: row.full_name for row in runs.order_by("pk")}


def late_judge_rows(evaluation: Evaluation | None, criterion: str) -> list[dict[str, Any]]:
    """Return the mean of each system on the board from people alone, and with the late judges that
    nobody vouches for, which work on later judgments only.
    """
    if evaluation is None:
        return []
    track, figures = evaluation.track, evaluation.report.figures
    mean = kind_of(track).measures.mean
    rows = []
    for number, system in board_names(evaluation).items():
        late, unaided, default = (
            figures.get(Key(number, mean, criterion, track.distribution, method))
            for method in (LATER, UNAIDED, DEFAULT)
        )
        alone = unaided or default
        if late is not None and alone is not None:
            rows.append({"system": system, "alone": Interval.of(alone), "late": Interval.of(late)})
    return rows


@dataclass(frozen=True)
class Card:
    """A metric or judge with the interval of its worth and its savings on the board."""

    scorer: Scorer
    saves: Saved | None

    @property
    def interval(self) -> Interval:
        return Interval(self.scorer.worth, *self.scorer.worth_80, *self.scorer.worth_95)

    @property
    def tone(self) -> str:
        """Return the tone of the bar: in colour if the gain is significant."""
        return "a" if (self.interval.low80 or 0.0) > 1 else "quiet"


def scorer_cards(shown: Board, stored: Worth) -> list[Card]:
    """Return the metrics and judges, each with its savings on a board if they are known."""
    return [Card(scorer, saved_share(shown, scorer.id)) for scorer in sort_scorers(stored)]


def _card_record(card: Card) -> dict[str, Any]:
    scorer, ends = card.scorer, (*card.scorer.worth_80, *card.scorer.worth_95)
    record: dict[str, Any] = {
        "metric": scorer.name,
        "saves": card.saves.share if card.saves else None,
        "rated_twice": scorer.n_multiple,
    }
    for name in ("version", "prompt", *NUMBERS, "source", "used"):
        record[name] = getattr(scorer, name)
    record |= zip(("low80", "high80", "low95", "high95"), ends, strict=True)
    for name in WITH_ENDS:
        record |= zip(_columns_of_ends(name), getattr(scorer, f"{name}_80"), strict=True)
    return record | dict(zip(QUADRANTS, scorer.quadrants or (None,) * 4, strict=True))


def _system_rows(evaluation: Evaluation | None, stored: Worth) -> Records:
    """Yield the score of each metric for each system on the board, with its correlation with people
    over the outputs of the system.
    """
    for number, system in board_names(evaluation).items():
        for scorer in sort_scorers(stored):
            alone, bias = scorer.alone.get(number), scorer.bias.get(number)
            if bias is not None or number in scorer.within:
                yield {
                    "metric": scorer.name,
                    "system": system,
                    "alone": alone,
                    "people": None if alone is None or bias is None else alone - bias,
                    "bias": bias,
                    "pearson": scorer.within.get(number),
                }


def width_curve(kind: Kind, study: Study | None) -> Records:
    """Yield the expected half-width of the interval for several numbers of judgments. Each row has
    four plans: people alone, people with metrics, people without disagreement, and a metric that
    predicts people's mean rating perfectly. All are for inputs like those of the track, each judged
    once.
    """
    inputs = n_inputs(kind.track, test=True)
    if study is None or not inputs:
        return
    plan = Draft.even(inputs)
    noiseless = replace(
        plan, error=study.error(rho=0.0, noise=False), left=study.spread(noise=False) / inputs
    )
    plans = {
        "people_alone": plan.by(study, aided=False),
        "with_metrics": plan.by(study),
        "noiseless_people": noiseless,
        "perfect_metric": replace(plan.by(study), error=study.error(rho=1.0)),
    }
    for n in [*(n for n in CURVE if n < inputs), inputs]:
        widths = {name: half_width_of(kind.track, one.variance(n)) for name, one in plans.items()}
        yield {"judgments": n} | widths


def judgments_by_width(kind: Kind, study: Study | None) -> Records:
    """Yield the number of judgments that a system needs for each half-width; None if the track has
    too few inputs.
    """
    if study is None:
        return
    plan = Draft.even(max(1, n_inputs(kind.track, test=True)))
    plans = {
        "people_alone": (plan.by(study, aided=False), 1),
        "with_metrics": (plan.by(study), 1),
        "two_people": (plan.by(study, people=2, aided=False), 2),
    }
    for width in WIDTHS:
        goal, row = variance_at(kind.track, width), dict[str, Any](half_width=width)
        for name, (planned, people) in plans.items():
            asked = people * planned.questions(planned.thresholds(goal))
            row[name] = asked if planned.left <= goal else None
        if not study.rho:
            row["with_metrics"] = None
        yield row


def prompt_rows(kind: Kind, evaluation: Evaluation | None) -> Records:
    """Yield the variance components of each question: variance between people against variance
    between outputs.
    """
    for prompt in kind.measures.criteria:
        parts = worth_under(evaluation, prompt.name).components
        if parts is not None:
            record: dict[str, Any] = {"criterion": prompt.name}
            for name in OF_COMPONENTS:
                record[name] = getattr(parts, name)
                record |= zip(_columns_of_ends(name), getattr(parts, f"{name}_80"), strict=True)
            yield record | {"most_a_metric_can_be_worth": parts.most}
