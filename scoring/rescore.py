"""Checks a release: whether it is the published one, and whether its numbers follow from
its data.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.build import COUNTS, REALS, Computed, make_figures, make_slice_figures
from scoring.corrected import METHOD as EXPERT
from scoring.data import ENDINGS
from scoring.release import (
    SUMS,
    BadRelease,
    Release,
    is_altered,
    read_checks,
    read_cuts,
    read_data,
)
from scoring.report import OF, Figure, Key
from scoring.saved import ALGORITHM_1, UNAIDED
from scoring.score import DEFAULT
from scoring.slices import score_cuts

DIGITS = 10
"""Significant digits to which numbers must agree"""
METHODS = (
    *(DEFAULT, "simple", "joint", UNAIDED, ALGORITHM_1, EXPERT),
    *(f"{method}{about}" for method in (DEFAULT, UNAIDED, EXPERT) for about in ENDINGS.values()),
)
"""The methods that are recomputed here"""
LATER = {("recall", "simple"), ("f1", "simple")}
"""Quantities and methods that older releases do not have; newer ones state that they do"""

SENSELESS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""Exceptions of reading tables and estimating if the data are inconsistent"""


@dataclass(frozen=True)
class Difference:
    """A number of the board that does not follow from the release."""

    system: int
    name: str
    """Public name of its team and run"""
    quantity: str
    criterion: str
    distribution: str
    method: str
    slice: str
    figure: str
    printed: float | None
    recomputed: float | None

    def __str__(self) -> str:
        where = ", ".join(
            filter(None, (self.criterion, self.distribution, self.method, self.slice))
        )
        return (
            f"{self.name}: {self.quantity} ({where}), {self.figure} is printed as"
            f" {self.printed!r} and comes to {self.recomputed!r}"
        )


@dataclass
class Rescored:
    """The result of rescoring a release."""

    track: str
    altered: list[str] = field(default_factory=list)
    """Files and rows that differ from the published ones, each in a sentence"""
    differences: list[Difference] = field(default_factory=list)
    numbers: int = 0
    """Number of rows of the board that were recomputed"""
    left_out: dict[str, int] = field(default_factory=dict)
    """Skipped item -> its number of rows"""

    @property
    def agrees(self) -> bool:
        """Return whether nothing was altered and every recomputed number equals the printed one."""
        return not self.altered and not self.differences


def rescore_release(release: Release) -> Rescored:
    """Recompute the board of a release, and return the comparison with the published one. Raises
    BadRelease if it cannot be computed, listing altered files, which may be the cause.
    """
    changes = list(altered_files(release))
    try:
        return _compare_with_published(release, changes)
    except BadRelease as bad:
        raise BadRelease("\n".join([*changes, str(bad)])) from bad
    except SENSELESS as error:
        why = f"The tables of {release.path} do not go together ({type(error).__name__}: {error})."
        raise BadRelease("\n".join([*changes, why])) from error


def _compare_with_published(release: Release, changes: list[str]) -> Rescored:
    rescored = Rescored(str(release.metadata["track"]["name"]), changes)
    names = _system_names(release)
    computed = recompute_figures(release)
    printed: set[Key] = set()
    left_out: Counter[str] = Counter()
    with_slices = "slices" in release.metadata["rows"]
    methods = set(METHODS) - set(release.metadata["board"].get("not_recomputed", ()))
    if "checks" not in release.metadata["rows"]:  # made before experts' answers were part of it
        methods -= {EXPERT}
    estimates = list(release.lines("estimates"))
    names_of_figures = figure_columns(row for _, row in estimates)
    for line, row in estimates:
        key = Key(row["system"], *(row[name] for name in OF))
        if row["slice"] and not with_slices:
            left_out["figures of slices"] += 1
        elif row["method"] not in methods:
            left_out[f"figures of method {row['method']}"] += 1
        else:
            printed.add(key)
            rescored.numbers += 1
            for name in names_of_figures:
                if name not in row:
                    raise BadRelease(f"estimates.jsonl, line {line} has no {name}.")
            rescored.differences += _compare_row(
                key, names, row, computed.get(key), names_of_figures
            )
    has_later = release.metadata["board"].get("simple_has_recall", False)
    has_later = has_later or any((key.quantity, key.method) in LATER for key in printed)
    for key, figure in computed.items():
        if (key.quantity, key.method) in LATER and not has_later:
            continue
        if key not in printed and key.method in methods and figure.value is not None:
            rescored.differences.append(
                Difference(key[0], names[key[0]], *key[1:], "value", None, figure.value)
            )
    rescored.left_out = dict(left_out)
    return rescored


def _system_names(release: Release) -> dict[Any, str]:
    """Return number of each system -> its team and name, or a note that it was withdrawn."""
    return {
        row.get("system"): " ".join(str(row[key]) for key in ("team", "name") if row.get(key))
        for _, row in release.lines("systems")
    }


def altered_files(release: Release) -> Iterator[str]:
    """Yield the differences from the published release: each altered row, otherwise the file.
    Raises BadRelease.
    """
    names = _system_names(release)
    for text in release.read_bytes(SUMS).decode("utf-8", "replace").splitlines():
        digest, _, name = text.partition("  ")
        if not name:
            raise BadRelease(f"{SUMS} has a line that is no checksum: {text[:80]!r}.")
        is_same = hashlib.sha256(release.read_bytes(name)).hexdigest() == digest
        named = (
            list(_altered_rows_of_table(release, name, names)) if name.endswith(".jsonl") else []
        )
        yield from named
        if not is_same and not named:
            yield f"{name} is not the file that was published: its checksum differs."


def _altered_rows_of_table(release: Release, name: str, names: Mapping[Any, str]) -> Iterator[str]:
    for line, row in release.lines(name.removesuffix(".jsonl")):
        if is_altered(row):
            keys = [f"{key} {row[key]}" for key in ("system", "instance", "target") if key in row]
            if run := names.get(row.get("system")):
                keys.insert(1, run)
            yield f"{name}, line {line} ({', '.join(keys)}): this row was altered."


def recompute_figures(release: Release) -> dict[Key, Figure]:
    """Return every figure of the report and of its details, computed from the tables alone."""
    board = release.metadata["board"]
    criteria, recall_criteria = tuple(board["criteria"]), tuple(board["recall_criteria"])
    data = read_data(release)
    checks, published = read_checks(release, data), tuple(board["published"])
    computed = Computed.from_data(data, checks, criteria, recall_criteria, published)
    found = make_figures(data, computed.scores, data.systems)
    cuts = read_cuts(release)
    if cuts:
        ordered, with_recall = board["slice_criteria"], board["slices_have_recall"]
        found |= make_slice_figures(
            data, score_cuts(data, cuts, ordered, with_recall), data.systems
        )
    return found


def figure_columns(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Return the figures of a report's rows; older releases lack the counts of expert checks."""
    has_checked = any("n_checked" in row for row in rows)
    return tuple(name for name in (*REALS, *COUNTS) if name != "n_checked" or has_checked)


def _compare_row(
    key: Key,
    names: dict[int, str],
    row: dict[str, Any],
    figure: Figure | None,
    compared: tuple[str, ...],
) -> Iterator[Difference]:
    """Yield the first number that differs in a row, since other differences of the row have the
    same cause.
    """
    for name in compared:
        was, now = row[name], None if figure is None else getattr(figure, name)
        if not agree_in_digits(was, now):
            yield Difference(key[0], names[key[0]], *key[1:], name, was, now)
            return


def agree_in_digits(a: float | None, b: float | None) -> bool:
    """Return whether two numbers agree in all significant digits; two missing ones agree."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=0.5 * 10.0**-DIGITS, abs_tol=1e-14)
