"""Reads the board: the latest Evaluation of a track as rows with figures. A query, not a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from kbpo import clock
from kbpo.evaluation.judges import are_of_one_person
from kbpo.evaluation.models import LEAVES_OUT, Estimate, Evaluation, Rescoring
from kbpo.evaluation.printed import printed, reduce
from kbpo.evaluation.words import FEW
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Column, Quantity
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.data import ABOUT_THESE, THESE
from scoring.score import Score

OTHER_SORTS = ("name", "labels")
"""What a board can be sorted by besides its columns"""
BOOTSTRAP = "bootstrap"
"""Where an evaluation's settings have the published intervals"""
TOO_FEW_YET = "Too few yet: it could still be anything."
"""Said in place of a number whose interval leaves nothing out"""


@dataclass(frozen=True)
class Figure:
    """One number as it is shown. Everything is a share in [0, 1], or None where it is undefined."""

    value: float | None
    low80: float | None
    high80: float | None
    low95: float | None
    high95: float | None
    n_labels: int
    n_missing: int
    n_documents: int
    n_checked: int
    kind: str
    note: str

    @classmethod
    def of(cls, row: Estimate) -> Figure:
        """The figure of a stored estimate: an unbiased one of few judgments may leave [0, 1], its
        figure never does. One that could still be anything, as while the first questions in order
        are open, is told in words.
        """
        value = None if row.value is None else min(1.0, max(0.0, row.value))
        ends = (row.low80, row.high80, row.low95, row.high95)
        note = row.note
        if _leaves_nothing_out(row):
            value, ends, note = None, (None,) * 4, TOO_FEW_YET
        return cls(
            value,
            *ends,
            row.n_labels,
            row.n_missing,
            row.n_documents,
            row.n_checked,
            row.kind,
            note,
        )

    @property
    def few(self) -> bool:
        """Too few judgments to say much; all that there can be say all."""
        return self.n_labels < FEW and not self.exact

    @property
    def too_few(self) -> bool:
        """Whether it is withheld, since it could still be anything."""
        return self.value is None and self.note == TOO_FEW_YET

    @property
    def exact(self) -> bool:
        """Whether sampling leaves nothing open: everything behind it is judged."""
        return self.value is not None and self.low95 == self.high95


def _leaves_nothing_out(row: Estimate) -> bool:
    """Whether the 80 % interval of an estimate is all that a share can be, as far as it prints."""
    if row.low80 is None or row.high80 is None:
        return False
    return row.low80 < LEAVES_OUT and row.high80 > 1 - LEAVES_OUT


def half_width(ends: Figure | Score, track: Track) -> float | None:
    """Half of a printed interval, at the level that its track guarantees."""
    level = 95 if track.confidence_level > Decimal("0.9") else 80
    low, high = getattr(ends, f"low{level}"), getattr(ends, f"high{level}")
    return None if low is None or high is None else (high - low) / 2


@dataclass(frozen=True)
class Row:
    """One system on the board."""

    submission: Submission
    mean: str
    """The column of the weighted mean of verdicts, which the others are read beside"""
    figures: dict[str, Figure] = field(default_factory=dict)
    """Column of the kind -> its figure, where the system has one"""
    counted: dict[str, float] = field(default_factory=dict)
    """Shares that the kind counts"""
    saved: float | None = None
    """The share of judgments that metrics and judges make unnecessary; None where none helps"""
    n_checked: int = 0
    """Judgments that experts checked, where that corrects its weighted mean"""
    bootstrap: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Column of the kind -> the published 80 % interval of what it prints as published, where
    systems have draws that can be taken anew"""
    beside: dict[str, Row] = field(default_factory=dict)
    """Another criterion that the board draws beside its own -> this system's row under it"""
    rank: tuple[int, int] | None = None
    """Best and worst place that agree with the judgments, all systems taken together"""

    def figure(self, column: str) -> Figure | None:
        """What stands in a column."""
        return self.figures.get(column)

    @property
    def n_labels(self) -> int:
        """Judgments behind its weighted mean."""
        figure = self.figure(self.mean)
        return figure.n_labels if figure else 0

    @property
    def note(self) -> str:
        """What is said beside its weighted mean."""
        figure = self.figure(self.mean)
        return figure.note if figure else ""

    @property
    def n_documents(self) -> int:
        """Documents behind its figures that were read in full."""
        return max((figure.n_documents for figure in self.figures.values()), default=0)


@dataclass(frozen=True)
class Board:
    """A track's board under one distribution and criterion."""

    track: Track
    evaluation: Evaluation | None
    distribution: str
    criterion: str
    rows: list[Row]
    being_judged: list[Submission]
    stale_since: datetime | None
    """Since when judgments wait to be counted; None if none does for long"""
    stale_why: str = ""
    """Why the scores could not be made again, as a sentence, if it was tried"""
    groups: list[list[int]] = field(default_factory=list)
    """Maximal groups of neighbouring rows that cannot be told apart (row numbers); empty unless
    sorted by the score"""
    level: float | None = None
    """Level of all comparisons together"""
    population: str = ""
    """What its intervals and ranks are about: `LIKE` or `THESE`; empty: what there is"""
    past: bool = False
    """As an evaluation left it: what was printed then, of those that stood on it"""

    @property
    def headline(self) -> Column:
        """The column that its systems are ranked by."""
        return ranking_column(
            kind_of(self.track), self.criterion, [row.figures for row in self.rows]
        )


def board(
    track: Track,
    *,
    distribution: str,
    criterion: str,
    sort: str = "",
    evaluation: Evaluation | None = None,
    population: str = "",
) -> Board:
    """The board; sorted from best to worst by a column, the headline's if none is named (by name:
    from A to Z), undefined figures last. Of an evaluation that is asked for, what it printed, the
    newest as well.
    """
    kind = kind_of(track)
    population = population or kind.population
    latest = track.evaluations.order_by("-number").first()
    past = evaluation is not None
    shown = evaluation or latest
    order = _Order(kind, sort or default_sort(track, criterion), criterion)
    unsorted = _rows_with_others(shown, distribution, criterion, population, past) if shown else []
    ranked_rows = sorted(unsorted, key=order.key)
    judging = Submission.objects.filter(
        track=track, status__in=[] if past else ["confirmed", "judging"], is_private=False
    ).select_related("team")
    ranked = _ranking(shown, distribution, criterion, population)
    stale = None if past else _stale_since(track, latest)
    return Board(
        track=track,
        evaluation=shown,
        distribution=distribution,
        criterion=criterion,
        rows=[replace(row, rank=ranked["ranks"].get(row.submission.pk)) for row in ranked_rows],
        being_judged=list(judging.order_by("pk")),
        stale_since=stale,
        stale_why=_why(track) if stale else "",
        groups=_groups(ranked_rows, ranked["groups"])
        if order.really(ranked_rows) == ranked["by"]
        else [],
        level=ranked["level"],
        population=population,
        past=past,
    )


class NoBoard(ValueError):
    """There is no board of a day; the text is a sentence."""


def evaluation_on(track: Track, day: str) -> Evaluation:
    """Return the evaluation that stood at the end of a day (UTC), written as in 2026-05-01. Raises
    NoBoard.
    """
    try:
        asked = date.fromisoformat(day)
    except ValueError as problem:
        raise NoBoard(f"“{day[:20]}” is no day; write it as in 2026-05-01.") from problem
    if asked > clock.now().date():
        raise NoBoard(f"{asked} has not come yet.")
    end = datetime.combine(asked, time.max, tzinfo=UTC)
    evaluation = track.evaluations.filter(made_at__lte=end).order_by("-number").first()
    if evaluation is None:
        earliest = track.evaluations.order_by("number").first()
        since = f"the first is of {earliest.made_at:%Y-%m-%d}" if earliest else "nor is it yet"
        raise NoBoard(f"Nothing had been scored by {asked}; {since}.")
    return evaluation


def evaluation_of(track: Track, number: int) -> Evaluation:
    """Return the evaluation of a number; of one that nobody is told of what the board printed
    alone, whatever ended with it. Raises NoBoard.
    """
    evaluation = track.evaluations.filter(number=number).first()
    if evaluation is None:
        last = track.evaluations.order_by("-number").first()
        since = f"the last is {last.number}" if last else "nothing has been scored"
        raise NoBoard(f"{track.name} has no evaluation {number}; {since}.")
    if evaluation.printed is None and not evaluation.is_listed:
        reduce(evaluation)
    return evaluation


def compared_at(track: Track, *, number: int | None = None, day: str = "") -> Evaluation | None:
    """Return the evaluation by which systems are compared: of a number, or the last of a day, else
    the newest; None before the first. Raises NoBoard, also where the board alone is kept of it.
    """
    if number is not None:
        evaluation = evaluation_of(track, number)
    elif day:
        evaluation = evaluation_on(track, day)
    else:
        return track.evaluations.order_by("-number").first()
    if evaluation.printed is not None:
        listed = track.evaluations.filter(pk__in=track.evaluations.listed().values("pk"))
        later = listed.filter(number__gt=evaluation.number).order_by("number").first()
        instead = f" Compare at evaluation {later.number}." if later else ""
        raise NoBoard(
            f"Of evaluation {evaluation.number} the board alone is kept, since a later one of its"
            f" day replaced it.{instead}"
        )
    return evaluation


def sorts(track: Track) -> tuple[str, ...]:
    """What a board of this track can be sorted by."""
    drawn = [
        column.name for column in kind_of(track).columns if column.place in ("first", "second")
    ]
    return (*drawn, *OTHER_SORTS)


def default_sort(track: Track, criterion: str) -> str:
    """The column that a board is sorted by if nothing is asked for."""
    kind = kind_of(track)
    return kind.column_of(kind.headline(criterion)).name


def ranking(
    evaluation: Evaluation, *, distribution: str, criterion: str, population: str = ""
) -> tuple[str, dict[str, Any]]:
    """The quantity by which an evaluation ranks systems, and what it stored of that; where it
    stored nothing, the headline of the criterion and an empty dictionary.
    """
    kind = kind_of(evaluation.track)
    for quantity in (
        quantity_of_kind.name
        for quantity_of_kind in kind.quantities
        if quantity_of_kind.of(criterion) and quantity_of_kind.weighed
    ):
        key = (quantity, criterion, distribution, *([THESE] if population == THESE else []))
        stored = evaluation.comparisons.get("|".join(key))
        if stored and "best" in stored:
            return quantity, stored
    return kind.headline(criterion), {}


def _ranking(
    evaluation: Evaluation | None, distribution: str, criterion: str, population: str = ""
) -> dict[str, Any]:
    """Rank ranges and tie groups as the evaluation stored them, and the column of that quantity."""
    if evaluation is None:
        return {"by": "", "ranks": {}, "groups": [], "level": None}
    kind = kind_of(evaluation.track)
    quantity, stored = ranking(
        evaluation, distribution=distribution, criterion=criterion, population=population
    )
    column = kind.column_of(quantity).name
    if not stored or are_of_one_person(evaluation):
        return {"by": column, "ranks": {}, "groups": [], "level": None}
    ranks = zip(stored["systems"], stored["best"], stored["worst"], strict=True)
    return {
        "by": column,
        "ranks": {system: (best, worst) for system, best, worst in ranks if best is not None},
        "groups": stored["groups"],
        "level": stored["level"],
    }


def _groups(rows: list[Row], groups: list[list[int]]) -> list[list[int]]:
    """Tie groups as row numbers; a group of one joins nobody."""
    place = {row.submission.pk: number for number, row in enumerate(rows)}
    row_groups = [
        sorted(place[submission] for submission in group if submission in place) for group in groups
    ]
    return [group for group in row_groups if len(group) > 1]


def _stale_since(track: Track, evaluation: Evaluation | None) -> datetime | None:
    """Since when judgments wait to be counted, if that is longer than the debounce would
    explain.
    """
    if evaluation is None:
        return None
    label = Label.objects.filter(
        target__corpus=track.corpus_id, created_at__gt=evaluation.made_at
    ).order_by("created_at")
    oldest = label.values_list("created_at", flat=True).first()
    return oldest if oldest and oldest < clock.now() - timedelta(minutes=5) else None


def _why(track: Track) -> str:
    row = Rescoring.objects.filter(track=track).first()
    return row.reason if row is not None else ""


def headlines(
    evaluation: Evaluation, submissions: Iterable[int]
) -> dict[int, tuple[Quantity, Figure]]:
    """Return of each submission the number that it is ranked by, as the track guarantees it; where
    that is undefined, the mean. Those of which an evaluation says neither are left out.
    """
    track = evaluation.track
    return _ranked_by(track, _figures(evaluation, track.distribution, track.criterion, submissions))


def newest_headlines(submissions: Iterable[Submission]) -> dict[int, tuple[Quantity, Figure]]:
    """Return the same by the newest evaluation of each submission's track, in as many statements
    for one track as for all.
    """
    of_track: dict[Track, list[int]] = {}
    for row in submissions:
        of_track.setdefault(row.track, []).append(row.pk)
    newest = Evaluation.objects.filter(track__in=list(of_track))
    newest = newest.order_by("track_id", "-number").distinct("track_id")
    estimates: dict[int, list[Estimate]] = {}
    for estimate in Estimate.objects.filter(
        evaluation__in=[evaluation.pk for evaluation in newest],
        submission__in=[pk for numbers in of_track.values() for pk in numbers],
        slice="",
    ):
        estimates.setdefault(estimate.submission_id, []).append(estimate)
    headline_of: dict[int, tuple[Quantity, Figure]] = {}
    for track, numbers in of_track.items():
        mine = [
            estimate
            for pk in numbers
            for estimate in estimates.get(pk, ())
            if estimate.criterion == track.criterion
        ]
        headline_of |= _ranked_by(track, _by_column(kind_of(track), track.distribution, mine))
    return headline_of


def _ranked_by(
    track: Track, figures: Mapping[int, Mapping[str, Figure]]
) -> dict[int, tuple[Quantity, Figure]]:
    """submission -> what it is ranked by, of its figures by column; as its track guarantees it."""
    kind = kind_of(track)
    headline_of: dict[int, tuple[Quantity, Figure]] = {}
    for submission, of_columns in figures.items():
        column = ranking_column(kind, track.criterion, [of_columns])
        figure = of_columns.get(column.name)
        if figure is not None and figure.value is not None:
            headline_of[submission] = kind.printed(column.quantity, track.criterion), figure
    return headline_of


def ranking_column(kind: Kind, criterion: str, rows: Iterable[Mapping[str, Figure]]) -> Column:
    """Return the column that these rows (column -> figure) are ranked by: the headline's; where
    that is undefined of all of them, the mean's.
    """
    headline = kind.column_of(kind.headline(criterion))
    figures = [figure for row in rows if (figure := row.get(headline.name)) is not None]
    is_known = any(figure.value is not None for figure in figures)
    return headline if is_known else kind.column_of(kind.mean)


def ranks(evaluation: Evaluation) -> dict[int, tuple[int, int]]:
    """Return of each system on the board its best and its worst place, as the track guarantees."""
    track = evaluation.track
    places: dict[int, tuple[int, int]] = _ranking(evaluation, track.distribution, track.criterion)[
        "ranks"
    ]
    return places


def _figures(
    evaluation: Evaluation,
    distribution: str,
    criterion: str,
    submissions: Any,
    population: str = "",
) -> dict[int, dict[str, Figure]]:
    """submission -> column of the kind -> what an evaluation says."""
    estimates: Iterable[Estimate] = evaluation.estimates.filter(
        criterion=criterion, slice="", submission__in=submissions
    )
    if evaluation.printed is not None:
        wanted = set(Submission.objects.filter(pk__in=submissions).values_list("pk", flat=True))
        estimates = printed(evaluation, criterion, wanted)
    return _by_column(kind_of(evaluation.track), distribution, estimates, population)


def _by_column(
    kind: Kind, distribution: str, estimates: Iterable[Estimate], population: str = ""
) -> dict[int, dict[str, Figure]]:
    """submission -> column of the kind -> figure, of estimates under one criterion."""
    about = ABOUT_THESE if population == THESE else ""
    column_of = {
        (column.quantity, f"{column.method}{about}"): column.name for column in kind.columns
    }
    figures_of: dict[int, dict[str, Figure]] = {}
    for row in estimates:
        here = row.distribution == distribution or not kind.quantity(row.quantity).weighed
        name = column_of.get((row.quantity, row.method))
        if here and name is not None:
            figures_of.setdefault(row.submission_id, {})[name] = Figure.of(row)
    return figures_of


def _rows_with_others(
    evaluation: Evaluation, distribution: str, criterion: str, population: str, past: bool
) -> list[Row]:
    """The rows under a criterion, each with those of the criteria that are drawn beside it."""
    kind = kind_of(evaluation.track)
    rows_of_criterion = {
        other.name: {
            row.submission.pk: row
            for row in _rows(evaluation, distribution, other.name, population, past)
        }
        for other in kind.criteria_beside(criterion)
    }
    return [
        replace(
            row,
            beside={
                name: rows_beside[row.submission.pk]
                for name, rows_beside in rows_of_criterion.items()
                if row.submission.pk in rows_beside
            },
        )
        for row in _rows(evaluation, distribution, criterion, population, past)
    ]


def _rows(
    evaluation: Evaluation, distribution: str, criterion: str, population: str, past: bool
) -> list[Row]:
    kind = kind_of(evaluation.track)
    of_track = Submission.objects.filter(track=evaluation.track_id)
    standing = (
        of_track.filter(pk__in=evaluation.standing, is_private=False)
        if past
        else of_track.on_board()
    )
    figures_of = _figures(evaluation, distribution, criterion, standing, population)
    submissions = Submission.objects.filter(pk__in=figures_of).select_related("team").in_bulk()
    mean = kind.column_of(kind.mean).name
    key = f"{criterion}|{distribution}"
    saved = evaluation.settings.get("saved", {}).get(key, {})
    published = evaluation.settings.get(BOOTSTRAP, {}).get(f"{criterion}|{distribution}", {})
    resampled = {
        column.name: published[column.method]
        for column in kind.columns
        if column.quantity == kind.mean and column.method in published
    }
    corrected = [
        column.name
        for column in kind.columns
        if (column.quantity, column.method) == (kind.mean, "expert")
    ]
    return [
        Row(
            submissions[pk],
            mean,
            figures,
            _counted(evaluation, kind, pk),
            saved.get(str(pk)),
            max((figures[name].n_checked for name in corrected if name in figures), default=0),
            {
                name: (ends[str(pk)][0], ends[str(pk)][1])
                for name, ends in resampled.items()
                if name in figures and str(pk) in ends
            },
        )
        for pk, figures in figures_of.items()
    ]


def _counted(evaluation: Evaluation, kind: Kind, submission: int) -> dict[str, float]:
    """The shares that an evaluation counted of a submission."""
    shares = {}
    for quantity in kind.counted:
        share = evaluation.settings.get(quantity.name, {}).get(str(submission))
        if share is not None:
            shares[quantity.name] = share
    return shares


@dataclass(frozen=True)
class _Order:
    """In which order a board's rows stand."""

    kind: Kind
    sort: str
    criterion: str

    def key(self, row: Row) -> tuple[Any, ...]:
        """What rows are sorted by."""
        if self.sort == "name":
            return (row.submission.public_team.casefold(), row.submission.public_name.casefold())
        if self.sort == "labels":
            return (-row.n_labels, row.submission.pk)
        return (*self._by(row, self.sort), *self._by(row, row.mean), row.submission.pk)

    def really(self, rows: list[Row]) -> str:
        """The column that rows really stand in the order of: sorted by the headline where no system
        has one, they stand by the mean.
        """
        if self.sort != self.kind.column_of(self.kind.headline(self.criterion)).name:
            return self.sort
        return ranking_column(self.kind, self.criterion, [row.figures for row in rows]).name

    def _by(self, row: Row, column: str) -> tuple[bool, float]:
        """Undefined figures last, whichever way is better."""
        value = _value(row, column)
        quantity = self.kind.column(column).quantity
        if value is None:
            return True, 0.0
        return False, -value if self.kind.higher_is_better(quantity, self.criterion) else value


def _value(row: Row, column: str) -> float | None:
    figure = row.figure(column)
    return None if figure is None else figure.value
