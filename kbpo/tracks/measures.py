"""The criteria, quantities and distributions of tracks, and the columns of a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

DEFAULT = "centred"
"""Name of the method of our own estimates"""
UNWEIGHED = "instance"
"""The distribution with equal weights, which every kind has"""


@dataclass(frozen=True)
class Criterion:
    """One criterion by which every prediction is judged. Verdicts lie in [0, 1]; `low` and `high`
    are the ends of the scale for readers.
    """

    name: str
    """At most 24 characters, since it is stored with every estimate"""
    label: str
    """Name on switches and tables"""
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 1.0
    unit: str = "%"
    single: Literal["majority", "mean"] = "majority"
    """How the judgments of several people about one target become a value: the majority, which
    counts as true; or the mean, whose noise is then included in every variance"""
    liked_from: float = 0.5
    """The verdict from which people like an item; up to which, if less is better"""
    prior: tuple[float, float] | None = None
    """Variances (σ_a², σ_f²) between people and between items in other studies, from which plans
    start
    """

    def to_scale(self, value: float) -> float:
        """Return a verdict in [0, 1] on the scale for readers."""
        return self.low + (self.high - self.low) * value


@dataclass(frozen=True)
class Quantity:
    """A number that is printed for a system under a criterion."""

    name: str
    """At most 16 characters, since it is stored with every estimate"""
    label: str
    short: str = ""
    """One or two letters, for narrow places. Only quantities with it are compared between
    systems
    """
    better: str = ""
    """Comparative for a system with more of it: “more precise”"""
    criteria: tuple[str, ...] | None = None
    """The criteria with this quantity; None: all"""
    weighed: bool = True
    """Whether it depends on the distribution; otherwise it is stored under `UNWEIGHED`"""
    higher_is_better: bool | None = None
    """None: as for its criterion"""
    is_judged: bool = False
    """Whether its label is the name of the criterion (`Measures.quantity_as_printed`)"""

    @property
    def label_in_text(self) -> str:
        """Return the label inside a sentence: “precision”, but “F1”; a criterion in quotes."""
        if self.is_judged:
            return f"“{self.label}”"
        return self.label if self.label.isupper() else self.label.lower()

    def applies_to(self, criterion: str) -> bool:
        """Return whether a criterion has this quantity."""
        return self.criteria is None or criterion in self.criteria


@dataclass(frozen=True)
class Distribution:
    """A distribution p_i over a system's predictions."""

    label: str
    """The unit with equal weights, for switches"""
    weight: str
    """SQL of the unnormalised weight, over the columns of a prediction aliased `p`"""


@dataclass(frozen=True)
class Column:
    """A number in the row of a system on the board: its name in files and in the API, the quantity
    and method, and its place.

    `place`: *first* and *second* are drawn as bars, wide and narrow; *beneath* is small text below
    the column `under`; *published* is in the cell of figures for comparison; *file* is only in CSV
    and API.
    """

    name: str
    quantity: str
    method: str = DEFAULT
    place: Literal["first", "second", "beneath", "published", "file"] = "file"
    label: str = ""
    """Label in a cell with several figures"""
    under: str = ""


@dataclass(frozen=True)
class Measures:
    """The criteria of a kind's tracks, and the quantities that are printed for a system."""

    criteria: tuple[Criterion, ...]
    """The first is guaranteed on a new track by default"""
    quantities: tuple[Quantity, ...]
    """The first one of a criterion is its headline, by which boards are sorted"""
    columns: tuple[Column, ...]
    distributions: Mapping[str, Distribution]
    """Name -> distribution; the last one is the default guarantee of a new track"""
    mean: str = "mean"
    """The weighted mean of verdicts, which a track guarantees"""
    base: str = ""
    """The criterion that others and recall are based on: whether the claim holds at all; empty: the
    first one"""
    n_beside: int = 0
    """Number of other criteria that a board shows, narrow, next to its own"""
    plotted: tuple[str, str] | None = None
    """Two columns of the board that are plotted against each other"""
    published: tuple[str, ...] = ()
    """Published estimators (simple, joint) that are shown next to the default one"""
    population: str = ""
    """Default population of numbers: `LIKE` if the inputs are a sample, `THESE` if they are
    complete; empty: there is no choice"""

    def criterion_names(self) -> tuple[str, ...]:
        """Return the names of the criteria, in order."""
        return tuple(criterion.name for criterion in self.criteria)

    def criterion(self, name: str) -> Criterion:
        """Return the criterion of that name. Raises KeyError for an unknown name."""
        return {criterion.name: criterion for criterion in self.criteria}[name]

    def other_shown_criteria(self, name: str) -> list[Criterion]:
        """Return the criteria that the board of one criterion shows next to it: the first of the
        others.
        """
        others = [criterion for criterion in self.criteria if criterion.name != name]
        return others[: self.n_beside]

    def quantity(self, name: str) -> Quantity:
        """Return the quantity of that name. Raises KeyError for an unknown name."""
        return {quantity.name: quantity for quantity in self.quantities}[name]

    def quantity_as_printed(self, name: str, criterion: str) -> Quantity:
        """Return the quantity of that name with its label under a criterion. The label of the mean
        is the criterion's if a board shows several criteria, and contains it if there is only one.
        """
        quantity = self.quantity(name)
        if name != self.mean:
            return quantity
        judged = self.criterion(criterion).label
        if self.other_shown_criteria(criterion):
            return replace(quantity, label=judged, is_judged=True)
        if len(self.criteria) == 1:
            return replace(quantity, label=f"{quantity.label}: {judged}", is_judged=True)
        return quantity

    def column(self, name: str) -> Column:
        """Return the column of that name. Raises KeyError for an unknown name."""
        return {column.name: column for column in self.columns}[name]

    def column_of(self, quantity: str) -> Column:
        """Return the column of a quantity by the default method. Raises KeyError if there
        is none.
        """
        default = [column for column in self.columns if column.method == DEFAULT]
        return {column.quantity: column for column in default}[quantity]

    def headline(self, criterion: str) -> str:
        """Return the name of the quantity by which systems are ranked under a criterion."""
        return next(quantity.name for quantity in self.quantities if quantity.applies_to(criterion))

    def higher_is_better(self, quantity: str, criterion: str) -> bool:
        """Return whether more of a quantity under a criterion is better."""
        own = self.quantity(quantity).higher_is_better
        return self.criterion(criterion).higher_is_better if own is None else own
