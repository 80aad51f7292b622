"""Reads the board: the latest Evaluation of a track as rows with figures. A query, not a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kbpo import clock
from kbpo.evaluation.judges import have_single_raters
from kbpo.evaluation.models import Evaluation, Headline, Rescoring
from kbpo.evaluation.store import reduce_to_board
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import UNWEIGHED, Column, Quantity
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.data import ENDINGS
from scoring.report import Comparison, Figure, Report

OTHER_SORTS = ("name", "labels")
"""Sort keys of a board other than its columns"""


@dataclass(frozen=True)
class Row:
    """One system's row on the board: its figures and its rank."""

    submission: Submission
    mean: str
    """The column of the weighted mean of verdicts, to which the other figures refer"""
    figures: dict[str, Figure] = field(default_factory=dict)
    """Column of the kind -> the system's figure, where it has one"""
    saved: float | None = None
    """The share of judgments that metrics and judges save; None if none helps"""
    n_checked: int = 0
    """Number of judgments that experts checked, if the checks correct its weighted mean"""
    bootstrap: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Column of the kind -> the published 80 % bootstrap interval of its published figure, for
    systems with draws that can be resampled"""
    beside: dict[str, Row] = field(default_factory=dict)
    """Another criterion that the board shows next to its own -> this system's row under that
    criterion
    """
    rank: tuple[int, int] | None = None
    """Best and worst rank that are compatible with the judgments, for all systems simultaneously"""

    def figure(self, column: str) -> Figure | None:
        """Return the figure in a column."""
        return self.figures.get(column)

    def value(self, column: str) -> float | None:
        """Return the number in a column; None if it has none."""
        figure = self.figures.get(column)
        return None if figure is None else figure.value

    @property
    def n_labels(self) -> int:
        """Return the number of judgments behind the weighted mean."""
        figure = self.figure(self.mean)
        return figure.n_labels if figure else 0

    @property
    def note(self) -> str:
        """Return the note that the board prints at the weighted mean; empty if there is none."""
        figure = self.figure(self.mean)
        return figure.note if figure else ""

    @property
    def n_documents(self) -> int:
        """Return how many fully read documents the figures are based on."""
        return max((figure.n_documents for figure in self.figures.values()), default=0)


@dataclass(frozen=True)
class Board:
    """The leaderboard of a track under one sampling distribution and criterion."""

    track: Track
    evaluation: Evaluation | None
    distribution: str
    criterion: str
    rows: list[Row]
    being_judged: list[Submission]
    stale_since: datetime | None
    """Time since which judgments have not been counted; None if none is overdue"""
    stale_why: str = ""
    """Sentence on why rescoring failed, if it was tried"""
    groups: list[list[int]] = field(default_factory=list)
    """Maximal groups of neighbouring rows that do not differ significantly, as row numbers; empty
    unless sorted by the score"""
    level: float | None = None
    """Simultaneous confidence level of all comparisons"""
    population: str = ""
    """Population of its intervals and ranks: `LIKE` or `THESE`; empty if there is only one"""
    past: bool = False
    """Whether the board shows a past evaluation: its figures and the systems on it at that time"""

    @property
    def report(self) -> Report:
        """Return the report of the evaluation; an empty report before the first."""
        return self.evaluation.report if self.evaluation is not None else Report()

    @property
    def headline(self) -> Column:
        """Return the column by which the systems are ranked."""
        return ranking_column(
            kind_of(self.track), self.criterion, [row.figures for row in self.rows]
        )


def read_board(
    track: Track,
    *,
    distribution: str,
    criterion: str,
    sort: str = "",
    evaluation: Evaluation | None = None,
    population: str = "",
) -> Board:
    """Return the board, sorted by a column (default: the headline), best first and undefined
    figures last. With `evaluation`, return the board of that evaluation.
    """
    kind = kind_of(track)
    population = population or kind.measures.population
    latest = track.evaluations.with_report().order_by("-number").first()
    past = evaluation is not None
    shown = evaluation or latest
    order = _Order(kind, sort or default_sort(track, criterion), criterion)
    rows = sorted(
        _board_rows(shown, distribution, criterion, population, past) if shown else [],
        key=order.key,
    )
    judging = Submission.objects.filter(
        track=track, status__in=[] if past else ["confirmed", "judging"], is_private=False
    ).select_related("team")
    by, compared = "", Comparison([])
    if shown is not None:
        by, compared = ranking_comparison(
            shown, distribution=distribution, criterion=criterion, population=population
        )
        if have_single_raters(shown):
            compared = Comparison([])
    ranks = compared.ranks
    stale = None if past else _stale_since(track, latest)
    is_in_order = bool(by) and order.actual_sort_column(rows) == kind.measures.column_of(by).name
    return Board(
        track=track,
        evaluation=shown,
        distribution=distribution,
        criterion=criterion,
        rows=[replace(row, rank=ranks.get(row.submission.pk)) for row in rows],
        being_judged=list(judging.order_by("pk")),
        stale_since=stale,
        stale_why=_rescoring_reason(track) if stale else "",
        groups=_tie_groups_by_row(rows, compared.groups) if is_in_order else [],
        level=compared.level,
        population=population,
        past=past,
    )


class NoBoard(ValueError):
    """Raised if there is no such board; the text is a sentence."""


def evaluation_by_number(track: Track, number: int) -> Evaluation:
    """Return the evaluation with this number. If it is not public, its report is reduced to the
    board. Raises NoBoard.
    """
    evaluation = track.evaluations.filter(number=number).first()
    if evaluation is None:
        last = track.evaluations.order_by("-number").first()
        since = f"the last is {last.number}" if last else "nothing has been scored"
        raise NoBoard(f"{track.name} has no evaluation {number}; {since}.")
    if not evaluation.is_reduced and not evaluation.is_listed:
        reduce_to_board(evaluation)
    return evaluation


def evaluation_to_compare(track: Track, number: int | None) -> Evaluation | None:
    """Return the evaluation for comparing systems: the one with this number, or the newest; None
    before the first. Raises NoBoard, also if only the board of the evaluation is stored.
    """
    if number is None:
        return track.evaluations.order_by("-number").first()
    evaluation = evaluation_by_number(track, number)
    if evaluation.is_reduced:
        listed = track.evaluations.filter(pk__in=track.evaluations.listed().values("pk"))
        later = listed.filter(number__gt=evaluation.number).order_by("number").first()
        instead = f" Compare at evaluation {later.number}." if later else ""
        raise NoBoard(
            f"Of evaluation {evaluation.number} the board alone is kept, since a later one of its"
            f" day replaced it.{instead}"
        )
    return evaluation


def sort_names(track: Track) -> tuple[str, ...]:
    """Return the names by which a board of this track can be sorted."""
    drawn = [
        column.name
        for column in kind_of(track).measures.columns
        if column.place in ("first", "second")
    ]
    return (*drawn, *OTHER_SORTS)


def default_sort(track: Track, criterion: str) -> str:
    """Return the column by which a board is sorted by default."""
    kind = kind_of(track)
    return kind.measures.column_of(kind.measures.headline(criterion)).name


def ranking_comparison(
    evaluation: Evaluation, *, distribution: str, criterion: str, population: str = ""
) -> tuple[str, Comparison]:
    """Return the quantity by which an evaluation ranks systems, and their comparison. If systems
    are not ranked, return the headline and an empty comparison.
    """
    kind = kind_of(evaluation.track)
    for quantity in kind.measures.quantities:
        if quantity.applies_to(criterion) and quantity.weighed:
            key = (quantity.name, criterion, distribution)
            stored = evaluation.report.comparisons.get(
                (*key, population) if population not in ("", kind.measures.population) else key
            )
            if stored is not None and stored.best is not None:
                return quantity.name, stored
    return kind.measures.headline(criterion), Comparison([])


def _tie_groups_by_row(rows: list[Row], groups: list[list[int]]) -> list[list[int]]:
    """Return the tie groups as row numbers, without groups of one."""
    place = {row.submission.pk: number for number, row in enumerate(rows)}
    row_groups = [
        sorted(place[submission] for submission in group if submission in place) for group in groups
    ]
    return [group for group in row_groups if len(group) > 1]


def _stale_since(track: Track, evaluation: Evaluation | None) -> datetime | None:
    """Return the time of the oldest judgment that is not in the scores yet, if it has waited longer
    than the normal delay of rescoring; None otherwise.
    """
    if evaluation is None:
        return None
    label = Label.objects.filter(
        target__corpus=track.corpus_id, created_at__gt=evaluation.made_at
    ).order_by("created_at")
    oldest = label.values_list("created_at", flat=True).first()
    return oldest if oldest and oldest < clock.now() - timedelta(minutes=5) else None


def _rescoring_reason(track: Track) -> str:
    row = Rescoring.objects.filter(track=track).first()
    return row.reason if row is not None else ""


def headline_figures(
    evaluation: Evaluation, submissions: Iterable[int]
) -> dict[int, tuple[Quantity, Figure]]:
    """Return the headline figure of each submission in an evaluation, or its mean if the headline
    is undefined. Submissions with neither are left out.
    """
    rows = Headline.objects.filter(evaluation=evaluation, submission__in=submissions)
    return _headline_or_mean(evaluation.track, rows)


def newest_headline_figures(
    submissions: Iterable[Submission],
) -> dict[int, tuple[Quantity, Figure]]:
    """Return the headline figures of submissions in the newest evaluations of their tracks, with
    two SQL statements for any number of tracks.
    """
    of_track: dict[Track, set[int]] = {}
    for row in submissions:
        of_track.setdefault(row.track, set()).add(row.pk)
    newest = Evaluation.objects.filter(track__in=list(of_track))
    newest = newest.order_by("track_id", "-number").distinct("track_id")
    rows = list(
        Headline.objects.filter(
            evaluation__in=[evaluation.pk for evaluation in newest],
            submission__in=set().union(*of_track.values()),
        )
    )
    headline_of: dict[int, tuple[Quantity, Figure]] = {}
    for track, numbers in of_track.items():
        headline_of |= _headline_or_mean(
            track, [row for row in rows if row.submission_id in numbers]
        )
    return headline_of


def _headline_or_mean(
    track: Track, headlines: Iterable[Headline]
) -> dict[int, tuple[Quantity, Figure]]:
    """Return the headline figure of each submission if there is one, else its mean."""
    kind = kind_of(track)
    first = kind.measures.headline(track.criterion)
    headline_of: dict[int, tuple[Quantity, Figure]] = {}
    for row in sorted(headlines, key=lambda row: row.quantity == first):
        headline_of[row.submission_id] = (
            kind.measures.quantity_as_printed(row.quantity, track.criterion),
            row.figure,
        )
    return headline_of


def ranking_column(kind: Kind, criterion: str, rows: Iterable[Mapping[str, Figure]]) -> Column:
    """Return the column by which these rows are ranked: the headline, or the mean if no row has a
    headline.
    """
    headline = kind.measures.column_of(kind.measures.headline(criterion))
    figures = [figure for row in rows if (figure := row.get(headline.name)) is not None]
    is_known = any(figure.value is not None for figure in figures)
    return headline if is_known else kind.measures.column_of(kind.measures.mean)


def rank_ranges(evaluation: Evaluation) -> dict[int, tuple[int, int]]:
    """Return the best and the worst rank of each system on the board."""
    track = evaluation.track
    if have_single_raters(evaluation):
        return {}
    return ranking_comparison(
        evaluation, distribution=track.distribution, criterion=track.criterion
    )[1].ranks


def _figures_by_column(
    evaluation: Evaluation, distribution: str, criterion: str, population: str
) -> dict[int, dict[str, Figure]]:
    """Return the figures of each submission by board column, under a distribution and a
    criterion.
    """
    kind = kind_of(evaluation.track)
    about = "" if population in ("", kind.measures.population) else ENDINGS[population]
    column_of = {}
    for column in kind.measures.columns:
        weighed = distribution if kind.measures.quantity(column.quantity).weighed else UNWEIGHED
        column_of[column.quantity, criterion, weighed, f"{column.method}{about}"] = column.name
    figures_of: dict[int, dict[str, Figure]] = {}
    for key, figure in evaluation.report.figures.items():
        name = column_of.get(key[1:5])
        if name is not None:
            figures_of.setdefault(key.submission, {})[name] = figure.printed
    return figures_of


def _board_rows(
    evaluation: Evaluation, distribution: str, criterion: str, population: str, past: bool
) -> list[Row]:
    """Return the rows under a criterion, with the rows of the criteria that the board shows next to
    it.
    """
    kind = kind_of(evaluation.track)
    submissions = Submission.objects.filter(track=evaluation.track_id).select_related("team")
    if past:
        submissions = submissions.filter(pk__in=evaluation.standing, is_private=False)
    else:
        submissions = submissions.on_board()
    standing = list(submissions)
    found = _rows_by_submission(evaluation, standing, distribution, criterion, population)
    beside = {
        other.name: _rows_by_submission(evaluation, standing, distribution, other.name, population)
        for other in kind.measures.other_shown_criteria(criterion)
    }
    return [
        replace(row, beside={name: rows[pk] for name, rows in beside.items() if pk in rows})
        for pk, row in found.items()
    ]


def _rows_by_submission(
    evaluation: Evaluation,
    board_submissions: Iterable[Submission],
    distribution: str,
    criterion: str,
    population: str,
) -> dict[int, Row]:
    """Return the row of each submission under one criterion."""
    kind, report = kind_of(evaluation.track), evaluation.report
    figures_of = _figures_by_column(evaluation, distribution, criterion, population)
    pair = (criterion, distribution)
    saved, published = report.saved.get(pair, {}), report.bootstrap.get(pair, {})
    means = [column for column in kind.measures.columns if column.quantity == kind.measures.mean]
    rows = {}
    for submission in board_submissions:
        pk, figures = submission.pk, figures_of.get(submission.pk)
        if figures is None:
            continue
        rows[pk] = Row(
            submission,
            kind.measures.column_of(kind.measures.mean).name,
            figures,
            saved=saved.get(pk),
            n_checked=max(
                (
                    figures[column.name].n_checked
                    for column in means
                    if column.method == "expert" and column.name in figures
                ),
                default=0,
            ),
            bootstrap={
                column.name: ends[pk]
                for column in means
                if column.name in figures and pk in (ends := published.get(column.method, {}))
            },
        )
    return rows


@dataclass(frozen=True)
class _Order:
    """The order of a board's rows."""

    kind: Kind
    sort: str
    criterion: str

    def key(self, row: Row) -> tuple[Any, ...]:
        """Return the sort key of a row."""
        if self.sort == "name":
            return (row.submission.public_team.casefold(), row.submission.public_name.casefold())
        if self.sort == "labels":
            return (-row.n_labels, row.submission.pk)
        return (*self._sort_key(row, self.sort), *self._sort_key(row, row.mean), row.submission.pk)

    def actual_sort_column(self, rows: list[Row]) -> str:
        """Return the column by which the rows are actually sorted: the mean if no system has the
        headline.
        """
        if (
            self.sort
            != self.kind.measures.column_of(self.kind.measures.headline(self.criterion)).name
        ):
            return self.sort
        return ranking_column(self.kind, self.criterion, [row.figures for row in rows]).name

    def _sort_key(self, row: Row, column: str) -> tuple[bool, float]:
        """Return a sort key that puts undefined figures last."""
        value = row.value(column)
        quantity = self.kind.measures.column(column).quantity
        if value is None:
            return True, 0.0
        return False, -value if self.kind.measures.higher_is_better(
            quantity, self.criterion
        ) else value


@dataclass(frozen=True)
class Saved:
    """The number of additional judgments that people without metrics would need for equally narrow
    intervals.
    """

    judgments: int
    share: float
    """Share of all judgments that people alone would need"""


def saved_share(board: Board, scorer: int | None = None) -> Saved | None:
    """Return how many judgments one metric or judge (by Algorithm 1), or all of them, save on a
    board; None if unknown. The number never exceeds the number of unjudged outputs.
    """
    if board.evaluation is None:
        return None
    pair, report = (board.criterion, board.distribution), board.evaluation.report
    pairs = []
    for row in board.rows:
        share = row.saved
        if scorer is not None:
            share = report.by_each.get(pair, {}).get(scorer, {}).get(row.submission.pk)
        if share is not None and share < 1:
            pairs.append((row.n_labels, share))
    given = sum(n for n, _ in pairs)
    if not given:
        return None
    unjudged = report.unjudged.get(pair, 0)
    saved = min(round(sum(n * share / (1 - share) for n, share in pairs)), unjudged)
    return Saved(saved, saved / (given + saved) if given + saved > 0 else 0.0)
