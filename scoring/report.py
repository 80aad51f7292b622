"""A report: every number of one scoring of a track. Pages, files, the API, mails and releases print
its contents and compute nothing.

It has two parts, stored separately: `Report` for the board, `Details` for the page of one run and
the comparison of two. Both are plain data: `report_as_dict` and `load_dataclass` are exact
inverses, and JSON preserves every bit, since a float is written as by Python's `repr`, a covariance
as bytes.
"""

from __future__ import annotations

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

FEW = 50
"""Number of judgments below which a figure is uninformative: its interval is grey, it has no
decimals
"""
LEAVES_OUT = 0.005
"""Greatest share that an interval printed as 0–100 excludes at either end"""
TOO_FEW_YET = "Too few yet: it could still be anything."
"""Printed instead of a number whose interval excludes nothing"""
ENDS = ("value", "low80", "high80", "low95", "high95")
"""Fields of a figure in CSV files and plots"""
PRINTED = (*ENDS, "n_labels", "n_missing", "n_documents", "n_checked", "kind", "note")
"""Fields of a figure in the API"""
HEADLINE = (*ENDS, "n_labels", "kind")
"""Fields of a figure in histories, lists and mails"""

T = TypeVar("T")
Named = tuple[str, ...]
"""(quantity, criterion, distribution), and the population if it is not the usual one"""


class Key(NamedTuple):
    """The identity of a figure."""

    submission: int
    quantity: str
    criterion: str
    distribution: str
    method: str
    slice: str = ""
    """group:name of a slice; empty for the whole"""


OF = Key._fields[1:]
"""Identifying fields of a figure, besides the submission"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its intervals: a share, or None if it is undefined (`note` explains why)."""

    value: float | None = None
    variance: float | None = None
    """None if it is unbounded, too"""
    low80: float | None = None
    high80: float | None = None
    low95: float | None = None
    high95: float | None = None
    n_labels: int = 0
    """Number of judged predictions (targets) that it is based on"""
    n_missing: int = 0
    """Number of drawn targets without a judgment"""
    n_documents: int = 0
    """Number of documents read in full that it is based on (recall, F1)"""
    n_checked: int = 0
    """Number of its judgments that an expert has checked"""
    n_predictions: int | None = None
    """Number of predictions of the system in a slice; those about one target count once"""
    kind: str = "final"
    """final, or provisional while the system is judged"""
    note: str = ""

    @property
    def printed(self) -> Figure:
        """Return the figure for display: limited to [0, 1], and withheld while its interval covers
        nearly all of [0, 1].
        """
        low, high = self.low80, self.high80
        if low is not None and high is not None and low < LEAVES_OUT and high > 1 - LEAVES_OUT:
            ends = dict.fromkeys(ENDS)
            return replace(self, **ends, note=TOO_FEW_YET)  # type: ignore[arg-type]
        if self.value is None or 0.0 <= self.value <= 1.0:
            return self
        return replace(self, value=min(1.0, max(0.0, self.value)))

    @property
    def has_few_judgments(self) -> bool:
        """Return whether it is based on too few judgments to be informative; never if there cannot
        be more.
        """
        return self.n_labels < FEW and not self.is_exact

    @property
    def is_withheld(self) -> bool:
        """Return whether it is withheld because its interval covers nearly everything."""
        return self.value is None and self.note == TOO_FEW_YET

    @property
    def is_exact(self) -> bool:
        """Return whether there is no sampling error, because everything is judged."""
        return self.value is not None and self.low95 == self.high95

    def half_width(self, level: int) -> float | None:
        """Return the half-width of the interval at 80 or 95 per cent."""
        low, high = (self.low95, self.high95) if level == 95 else (self.low80, self.high80)
        return None if low is None or high is None else (high - low) / 2

    def csv_cells(self) -> list[float | None]:
        """Return the fields of the figure in a CSV file."""
        return [getattr(self, name) for name in ENDS]

    def as_json(self, names: tuple[str, ...] = PRINTED) -> dict[str, Any]:
        """Return the fields of the figure in the API."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Comparison:
    """One number of several systems, compared in all pairs simultaneously."""

    systems: list[int]
    covariance: list[list[float]] | None = None
    """None if differences are not published"""
    df: float | None = None
    """Degrees of freedom; None: infinitely many"""
    best: list[int | None] | None = None
    """Best rank of each system; None if systems are not ranked by this number"""
    worst: list[int | None] | None = None
    groups: list[list[int]] = field(default_factory=list)
    """Maximal groups of systems that do not differ significantly"""
    different: list[list[bool]] | None = None
    """Whether each pair differs significantly"""
    level: float | None = None
    """Simultaneous confidence level"""

    @property
    def ranks(self) -> dict[int, tuple[int, int]]:
        """Return system -> best and worst rank; references have none."""
        places = zip(self.systems, self.best or (), self.worst or (), strict=self.best is not None)
        return {system: (b, w) for system, b, w in places if b is not None and w is not None}

    def error(self, first: int, second: int) -> float:
        """Return the standard error of the difference of two systems."""
        assert self.covariance is not None
        i, k = self.systems.index(first), self.systems.index(second)
        c = self.covariance
        return math.sqrt(max(c[i][i] + c[k][k] - 2 * c[i][k], 0.0))


@dataclass(frozen=True)
class Share:
    """A share or mean with its 80 % interval."""

    value: float | None = None
    low80: float | None = None
    high80: float | None = None


@dataclass(frozen=True)
class Misses:
    """The share of verified true predictions in annotated documents that annotators found."""

    share: float
    n: int
    low80: float
    high80: float
    low95: float
    high95: float


@dataclass(frozen=True)
class Confusion:
    """How the crowd's judgments compare with experts' answers about the same targets, under one
    criterion.
    """

    checked: int
    agree: Share
    above: Share | None = None
    """For single ratings: mean difference of experts' ratings minus the crowd's"""
    counts: list[list[int]] | None = None
    """Counts by crowd (right, wrong) × expert (right, wrong)"""
    right_of_right: Share | None = None
    wrong_of_wrong: Share | None = None


@dataclass(frozen=True)
class Judges:
    """Statistics of the annotators behind a submission's guaranteed number, or behind a whole
    board.
    """

    answers: int = 0
    """Number of answers to questions with at least two answers"""
    agree: float | None = None
    """Share of these answers that agree with the majority; None if there are none"""
    twice: int = 0
    """Number of instances with ratings by two or more people, if single ratings count"""
    differ: float | None = None
    """Mean distance of two ratings of the same instance, in [0, 1]"""
    people: int = 0
    """Number of known people who gave ratings, where their own levels would matter"""
    of_unknown: int = 0
    """Number of ratings by unknown people"""
    largest: float = 0.0
    """Largest share of the ratings by one known person"""
    second: int = 0
    """Number of second opinions of any origin, if single ratings count"""
    second_drawn: int = 0
    """Number of second opinions that were drawn at random"""
    is_separable: bool = True
    """Whether annotator noise is separable from the variance between instances"""
    in_interval: bool = False
    """Whether single ratings count and annotator noise is part of every interval"""

    def round_for_print(self) -> Judges:
        """Return the values that may be printed while the test part is hidden: shares to 1 %,
        counts to 10.
        """
        kept = ("people", "is_separable", "in_interval")
        values = {name: getattr(self, name) for name in JUDGES if name not in kept}
        return replace(
            self,
            **{
                name: round(value, 2 if isinstance(value, float) else -1)
                for name, value in values.items()
                if value is not None
            },
        )


JUDGES = tuple(one.name for one in fields(Judges))


@dataclass(frozen=True)
class LateScorer:
    """A metric or judge that was added after the first judgments, so that it may have been tuned on
    them.
    """

    name: str
    statement: str
    """Who stated that it was not tuned on judgments"""


@dataclass(frozen=True)
class Strength:
    """A system's strength when systems are judged in pairs (Bradley and Terry), with its interval
    and ranks.
    """

    system: int
    strength: float | None
    low80: float | None
    high80: float | None
    best: int
    worst: int
    judgments: int


@dataclass(frozen=True)
class Strengths:
    """The strengths of all systems under one criterion, the strongest first."""

    judgments: int
    rows: tuple[Strength, ...] = ()
    ties: float | None = None
    why: str = ""
    """Why there are none, as a sentence"""


Ends = tuple[float | None, float | None]
UNKNOWN: Ends = (None, None)


@dataclass(frozen=True)
class Components:
    """The variances between outputs and between annotators under one criterion, with 80 %
    intervals.
    """

    sigma_f2: float | None
    sigma_a2: float | None
    gamma: float | None
    sigma_f2_80: Ends = UNKNOWN
    sigma_a2_80: Ends = UNKNOWN
    gamma_80: Ends = UNKNOWN
    warnings: tuple[str, ...] = ()
    repeated: int = 0
    """Number of instances with two or more judgments"""
    most: float | None = None
    """The worth of a perfect metric"""


@dataclass(frozen=True)
class Scorer:
    """The worth of a metric or judge (or of all together) under one criterion: how many judgments
    it saves.
    """

    name: str
    label: str
    id: int | None = None
    version: str = ""
    prompt: str = ""
    source: str = ""
    used: bool | None = None
    came_late: bool = False
    needs_statement: bool = False
    statement: str = ""
    n: int = 0
    pearson: float | None = None
    pearson_80: Ends = UNKNOWN
    spearman: float | None = None
    spearman_80: Ends = UNKNOWN
    rho: float | None = None
    """Correlation with mean human judgments, corrected for annotator noise"""
    rho_80: Ends = UNKNOWN
    r: float | None = None
    worth: float | None = None
    worth_80: Ends = UNKNOWN
    worth_95: Ends = UNKNOWN
    between: float | None = None
    """Correlation with people over systems"""
    between_80: Ends = UNKNOWN
    alone: dict[int, float] = field(default_factory=dict)
    """System -> the metric's own score, scaled to the mean and spread of human judgments"""
    bias: dict[int, float] = field(default_factory=dict)
    left_out: tuple[int, ...] = ()
    """Systems with too few of its scores"""
    within: dict[int, float] = field(default_factory=dict)
    """System -> correlation with people over its outputs"""
    prmse: float | None = None
    prmse_80: Ends = UNKNOWN
    prmse_warnings: tuple[str, ...] = ()
    n_multiple: int | None = None
    quadrants: tuple[float, ...] = ()
    """Shares that both like, only the metric, only people, neither"""
    examples: tuple[tuple[int, ...], ...] = ()
    """Instances of each quadrant"""


@dataclass(frozen=True)
class Worth:
    """How many judgments each metric and judge saves under one criterion, with the variance
    components of its question.
    """

    rated: int = 0
    judgments: int = 0
    components: Components | None = None
    scorers: tuple[Scorer, ...] = ()
    together: Scorer | None = None


@dataclass(frozen=True)
class Report:
    """All results of one scoring that a board prints, with the numbers that they depend on."""

    version: str = ""
    """Version of the service"""
    model: int = 0
    """Version of the model g"""
    scope: str = ""
    draws: dict[str, int] = field(default_factory=dict)
    targets: int = 0
    """Number of targets with an outcome"""
    released: float = 0.0
    """Released share of the open batches"""
    labels: int = 0
    documents: int = 0
    """Number of documents read in full that are used"""
    of_documents: int = 0
    correlation: dict[str, float] = field(default_factory=dict)
    """Criterion -> correlation of the model's errors within a target"""
    misses: Misses | None = None
    figures: dict[Key, Figure] = field(default_factory=dict)
    comparisons: dict[Named, Comparison] = field(default_factory=dict)
    private: dict[Named, Comparison] = field(default_factory=dict)
    """The same including private runs, for their own teams"""
    saved: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    """(criterion, distribution) -> system -> share of judgments that metrics and judges save"""
    by_each: dict[tuple[str, str], dict[int, dict[int, float]]] = field(default_factory=dict)
    """The same for single scorers by Algorithm 1, the best first"""
    unjudged: dict[tuple[str, str], int] = field(default_factory=dict)
    used_scorers: tuple[str, ...] = ()
    """Names of the metrics and judges that the model uses"""
    best_scorer: dict[str, str] = field(default_factory=dict)
    """Criterion -> the scorer that correlates best with people"""
    late_scorers: tuple[LateScorer, ...] = ()
    worth: dict[str, Worth] = field(default_factory=dict)
    strengths: dict[str, Strengths] = field(default_factory=dict)
    expert: dict[str, Confusion] = field(default_factory=dict)
    not_corrected: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """System -> why expert checks do not correct its numbers"""
    judges: dict[int, Judges] = field(default_factory=dict)
    board_judges: Judges = field(default_factory=Judges)
    bootstrap: dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]] = field(
        default_factory=dict
    )
    """(criterion, distribution) -> published method -> system -> published 80 % interval"""

    def figure(self, *key: Any) -> Figure | None:
        """Return the figure of a key for display; None if there is none."""
        figure = self.figures.get(Key(*key))
        return None if figure is None else figure.printed

    def figures_of_submission(self, submission: int) -> dict[tuple[str, str, str, str], Figure]:
        """Return (quantity, criterion, distribution, method) -> figure of a submission, for
        display.
        """
        return {
            key[1:5]: figure.printed
            for key, figure in self.figures.items()
            if key.submission == submission
        }

    def has_quantity(self, quantity: str, criterion: str, distribution: str) -> bool:
        """Return whether any system has a number with this key."""
        return any(
            key[1:4] == (quantity, criterion, distribution) and figure.value is not None
            for key, figure in self.figures.items()
        )

    def reduce_to(self, columns: Collection[tuple[str, str]], systems: Collection[int]) -> Report:
        """Return a copy of the report with only the contents of a board: the figures of these
        (quantity, method) for these systems, and ranks without covariances.
        """
        figures = {
            key: figure
            for key, figure in self.figures.items()
            if key.submission in systems and (key.quantity, key.method) in columns
        }
        comparisons = {
            key: replace(one, covariance=None, different=None, df=None)
            for key, one in self.comparisons.items()
            if one.best is not None
        }
        return replace(self, figures=figures, comparisons=comparisons, private={})


@dataclass(frozen=True)
class Part:
    """The predictions that both systems make, or only one, and the share of them that is right
    (None: nothing is judged).
    """

    n: int
    value: float | None = None
    low80: float | None = None
    high80: float | None = None
    n_labels: int = 0


@dataclass(frozen=True)
class Relations:
    """Standard errors of the differences between all pairs of systems, for each stratum."""

    systems: list[int] = field(default_factory=list)
    errors: dict[str, list[float | None]] = field(default_factory=dict)
    """Stratum -> standard error of every pair, in the order of `itertools.combinations`"""


@dataclass(frozen=True)
class Details:
    """The results that the page of one run and the comparison of two add to a report."""

    figures: dict[Key, Figure] = field(default_factory=dict)
    """Figures of slices"""
    overlap: dict[tuple[int, int], tuple[Part, Part, Part]] = field(default_factory=dict)
    """Two systems -> the predictions of both, of the first only, of the second only"""
    overlap_criterion: str = ""
    relations: Relations = field(default_factory=Relations)

    def parts(self, first: int, second: int) -> tuple[Part, ...]:
        """Return the parts of two systems' predictions: those that both make, only the first, and
        only the second; empty if unknown.
        """
        if (first, second) in self.overlap:
            return self.overlap[first, second]
        if (second, first) in self.overlap:
            both, other, own = self.overlap[second, first]
            return both, own, other
        return ()


# --- plain data ---------------------------------------------------------------------------------

FIGURE = tuple(one.name for one in fields(Figure))


def report_as_dict(value: Any) -> Any:
    """Return a dataclass of this module as plain data for JSON; non-finite numbers become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        told: dict[str, Any] = {}
        for one in fields(value):
            part = getattr(value, one.name)
            if one.name == "figures":
                told[one.name] = _figures_as_rows(part)
            else:
                told[one.name] = (
                    _matrix_as_text(part) if one.name == "covariance" else report_as_dict(part)
                )
        return told
    if isinstance(value, Mapping):
        return {_key_text(key): report_as_dict(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [report_as_dict(part) for part in value]
    return value


def load_dataclass(kind: type[T], data: Any) -> T:
    """Return a dataclass of this kind from its `report_as_dict`."""
    loaded: T = _load_value(kind, data)
    return loaded


def pack_report(value: Any) -> bytes:
    """Return a report or its details as compressed JSON."""
    text = json.dumps(
        report_as_dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return zlib.compress(text.encode(), 6)


def unpack_report(kind: type[T], packed: bytes | memoryview) -> T:
    """Return a packed report or packed details; empty ones for no bytes."""
    return load_dataclass(kind, json.loads(zlib.decompress(packed)) if packed else {})


def _figures_as_rows(figures: Mapping[Key, Figure]) -> list[list[Any]]:
    return [
        [*key, *(report_as_dict(getattr(figure, name)) for name in FIGURE)]
        for key, figure in figures.items()
    ]


def _figures_from_rows(rows: Iterable[list[Any]]) -> dict[Key, Figure]:
    return {Key(*row[:6]): Figure(*row[6:]) for row in rows}


def _matrix_as_text(matrix: list[list[float]] | None) -> str | None:
    """Return a square matrix as its doubles in base 64, which is read fifty times as fast."""
    if matrix is None:
        return None
    return b64encode(np.array(matrix, dtype="<f8").tobytes()).decode()


def _matrix_from_text(text: str) -> list[list[float]]:
    values = np.frombuffer(b64decode(text), dtype="<f8")
    n = math.isqrt(values.size)
    matrix: list[list[float]] = values.reshape(n, n).tolist()
    return matrix


def _key_text(key: Any) -> str:
    return "|".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _key_from_text(kind: Any, text: str) -> Any:
    if get_origin(kind) is not tuple:
        return kind(text)
    inner = get_args(kind)
    return tuple((inner[0])(part) for part in text.split("|"))


@cache
def _type_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load_value(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if isinstance(data, str) and kind == list[list[float]]:
        return _matrix_from_text(data)
    if data is None or kind is Any or origin is list or (origin is None and not is_dataclass(kind)):
        return data
    if origin in (Union, UnionType):
        return _load_value(next(one for one in get_args(kind) if one is not type(None)), data)
    if origin is dict:
        of_key, of_value = get_args(kind)
        if of_value is Figure:
            return _figures_from_rows(data)
        return {
            _key_from_text(of_key, key): _load_value(of_value, part) for key, part in data.items()
        }
    if origin is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return tuple(_load_value(inner[0], part) for part in data)
        return tuple(_load_value(one, part) for one, part in zip(inner, data, strict=True))
    hints = _type_hints(kind)
    return kind(**{name: _load_value(hints[name], part) for name, part in data.items()})
