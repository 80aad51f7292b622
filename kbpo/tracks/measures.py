"""What is judged of predictions and printed of systems: criteria, quantities, distributions, and
the columns of a board.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

DEFAULT = "centred"
"""The method of the house's own estimates"""
UNWEIGHED = "instance"
"""The distribution under which each prediction counts the same, which every kind has"""


@dataclass(frozen=True)
class Criterion:
    """One thing that is judged of every prediction. Verdicts lie in [0, 1]; `low` and `high` are
    the ends of the scale as people read it.
    """

    name: str
    """At most 24 characters: it is stored with every estimate"""
    label: str
    """What switches and tables call it"""
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 1.0
    unit: str = "%"
    single: Literal["majority", "mean"] = "majority"
    """How the judgments of several people about one target become a value: what most say, taken as
    true; or their mean, whose own noise then counts in every variance"""
    liked_from: float = 0.5
    """The verdict above which people like what they judge; below which, where less is better"""
    prior: tuple[float, float] | None = None
    """What people, and things, differed by in other studies (σ_a², σ_f²): plans begin with it"""

    def to_scale(self, value: float) -> float:
        """Return a verdict in [0, 1] on the scale that people read."""
        return self.low + (self.high - self.low) * value


@dataclass(frozen=True)
class Quantity:
    """A number that is printed for a system under a criterion."""

    name: str
    """At most 16 characters: it is stored with every estimate"""
    label: str
    short: str = ""
    """One letter or two, where there is little room. What has one is compared between systems"""
    better: str = ""
    """What a system is that has more of it: “more precise”"""
    criteria: tuple[str, ...] | None = None
    """The criteria that have it; None: all"""
    weighed: bool = True
    """Whether it differs from distribution to distribution; else it is stored under `UNWEIGHED`"""
    higher_is_better: bool | None = None
    """None: as its criterion says"""
    is_judged: bool = False
    """Whether its label is what is judged (`Measures.printed`)"""

    @property
    def in_text(self) -> str:
        """Return the label within a sentence: “precision”, but “F1”; a judged criterion in
        quotes.
        """
        if self.is_judged:
            return f"“{self.label}”"
        return self.label if self.label.isupper() else self.label.lower()

    def of(self, criterion: str) -> bool:
        """Return whether a criterion has this quantity."""
        return self.criteria is None or criterion in self.criteria


@dataclass(frozen=True)
class Distribution:
    """A distribution p_i over what a system predicts."""

    label: str
    """What counts the same under it, for switches"""
    weight: str
    """SQL of the unnormalised weight, over the columns of a prediction aliased `p`"""


@dataclass(frozen=True)
class Column:
    """One figure of a board's row: its name in files and in the API, its kind, its place.

    `place`: *first* and *second* are drawn, wide and narrow; *beneath* stands small under the
    column that `under` names; *published* in the cell of figures for comparison; *file* only in
    CSV and API.
    """

    name: str
    quantity: str
    method: str = DEFAULT
    place: Literal["first", "second", "beneath", "published", "file"] = "file"
    label: str = ""
    """Where it stands in a cell with others"""
    under: str = ""


@dataclass(frozen=True)
class Measures:
    """The criteria of a kind's tracks, and the quantities that are printed for a system."""

    criteria: tuple[Criterion, ...]
    """The first is what a new track guarantees"""
    quantities: tuple[Quantity, ...]
    """The first that a criterion has is its headline: boards are sorted by it"""
    columns: tuple[Column, ...]
    distributions: Mapping[str, Distribution]
    """The last is what a new track guarantees"""
    mean: str = "mean"
    """The quantity that is the weighted mean of verdicts, which a track guarantees"""
    base: str = ""
    """The criterion that others and recall rest on: what is claimed holds at all; empty: the
    first"""
    n_beside: int = 0
    """So many other criteria a board draws, narrow, beside the one that it is of"""
    plotted: tuple[str, str] | None = None
    """Two columns of the board that are drawn against each other"""
    published: tuple[str, ...] = ()
    """Which of the published estimators (simple, joint) stand beside the default one"""
    population: str = ""
    """What numbers are about where nothing else is asked for: `LIKE` where the inputs are a sample,
    `THESE` where they are all there is; empty: there is no choice"""

    def criterion_names(self) -> tuple[str, ...]:
        """Return the names of the criteria, in their order."""
        return tuple(criterion.name for criterion in self.criteria)

    def criterion(self, name: str) -> Criterion:
        """Return the criterion of that name. Raises KeyError if there is none."""
        return {criterion.name: criterion for criterion in self.criteria}[name]

    def criteria_beside(self, name: str) -> list[Criterion]:
        """Return the criteria that the board of one criterion shows next to it: the first
        others.
        """
        others = [criterion for criterion in self.criteria if criterion.name != name]
        return others[: self.n_beside]

    def quantity(self, name: str) -> Quantity:
        """Return the quantity of that name. Raises KeyError if there is none."""
        return {quantity.name: quantity for quantity in self.quantities}[name]

    def printed(self, name: str, criterion: str) -> Quantity:
        """Return the quantity of that name with its label under a criterion. The label of the mean
        is the criterion's where a board shows several criteria, and contains it where there is only
        one.
        """
        quantity = self.quantity(name)
        if name != self.mean:
            return quantity
        judged = self.criterion(criterion).label
        if self.criteria_beside(criterion):
            return replace(quantity, label=judged, is_judged=True)
        if len(self.criteria) == 1:
            return replace(quantity, label=f"{quantity.label}: {judged}", is_judged=True)
        return quantity

    def column(self, name: str) -> Column:
        """Return the column of that name. Raises KeyError if there is none."""
        return {column.name: column for column in self.columns}[name]

    def column_of(self, quantity: str) -> Column:
        """Return the column of a quantity as it is estimated by default. Raises KeyError if there
        is none.
        """
        default = [column for column in self.columns if column.method == DEFAULT]
        return {column.quantity: column for column in default}[quantity]

    def headline(self, criterion: str) -> str:
        """Return the name of the quantity by which systems are ranked under a criterion."""
        return next(quantity.name for quantity in self.quantities if quantity.of(criterion))

    def higher_is_better(self, quantity: str, criterion: str) -> bool:
        """Return whether more of a quantity under a criterion is better."""
        own = self.quantity(quantity).higher_is_better
        return self.criterion(criterion).higher_is_better if own is None else own
