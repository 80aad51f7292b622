"""Holds a release against itself: is it what was published, and do its numbers follow from it?"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from scoring.corrected import METHOD as EXPERT
from scoring.corrected import corrections
from scoring.data import ABOUT_THESE
from scoring.double_sampling import Corrected
from scoring.release import (
    SUMS,
    BadRelease,
    Release,
    is_altered,
    read_checks,
    read_cuts,
    read_data,
)
from scoring.saved import ALGORITHM_1, UNAIDED, beside, unaided
from scoring.score import DEFAULT, Score, default_estimates, scores
from scoring.slices import score_cuts

DIGITS = 10
"""Significant digits to which numbers must agree"""
REALS = ("value", "variance", "low80", "high80", "low95", "high95")
COUNTS = ("n_labels", "n_missing", "n_documents", "n_checked")
Key = tuple[int, str, str, str, str, str]
"""System, quantity, criterion, distribution, method, slice"""
METHODS = (
    *(DEFAULT, "simple", "joint", UNAIDED, ALGORITHM_1, EXPERT),
    *(f"{method}{ABOUT_THESE}" for method in (DEFAULT, UNAIDED, EXPERT)),
)
"""The methods that are recomputed here"""
LATER = {("recall", "simple"), ("f1", "simple")}
"""Quantities and methods that older releases do not have; newer ones say that they do"""

SENSELESS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What reading tables and estimating raise where these say what cannot be"""


@dataclass(frozen=True)
class Difference:
    """A number of the board that does not follow from the release."""

    system: int
    name: str
    """Of its team and of the run, as everybody knows them"""
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
    """What rescoring a release found."""

    track: str
    altered: list[str] = field(default_factory=list)
    """Files and rows that are not what was published, each in a sentence"""
    differences: list[Difference] = field(default_factory=list)
    numbers: int = 0
    """Rows of the board that were recomputed"""
    left_out: dict[str, int] = field(default_factory=dict)
    """What was not recomputed -> how many rows"""

    @property
    def agrees(self) -> bool:
        """Whether nothing was altered and every recomputed number is the printed one."""
        return not self.altered and not self.differences


def rescore(release: Release) -> Rescored:
    """The board of a release, computed anew and compared. Raises BadRelease if it cannot be: with
    what was altered, which may be why.
    """
    changes = list(altered(release))
    try:
        return _rescored(release, changes)
    except BadRelease as bad:
        raise BadRelease("\n".join([*changes, str(bad)])) from bad
    except SENSELESS as error:
        why = f"The tables of {release.path} do not go together ({type(error).__name__}: {error})."
        raise BadRelease("\n".join([*changes, why])) from error


def _rescored(release: Release, changes: list[str]) -> Rescored:
    rescored = Rescored(str(release.about["track"]["name"]), changes)
    names = _names(release)
    computed = dict(recomputed(release))
    printed: set[Key] = set()
    left_out: Counter[str] = Counter()
    with_slices = "slices" in release.about["rows"]
    methods = set(METHODS) - set(release.about["board"].get("not_recomputed", ()))
    if "checks" not in release.about["rows"]:  # made before experts' answers were part of it
        methods -= {EXPERT}
    estimates = list(release.lines("estimates"))
    figures = figures_of(row for _, row in estimates)
    for line, row in estimates:
        key = _key(row)
        if row["slice"] and not with_slices:
            left_out["figures of slices"] += 1
        elif row["method"] not in methods:
            left_out[f"figures of method {row['method']}"] += 1
        else:
            printed.add(key)
            rescored.numbers += 1
            for figure in figures:
                if figure not in row:
                    raise BadRelease(f"estimates.jsonl, line {line} has no {figure}.")
            rescored.differences += _compare(key, names, row, computed.get(key), figures)
    has_later = release.about["board"].get("simple_has_recall", False)
    has_later = has_later or any((key[1], key[4]) in LATER for key in printed)
    for key, score in computed.items():
        if (key[1], key[4]) in LATER and not has_later:
            continue
        if key not in printed and key[4] in methods and not math.isnan(score.value):
            rescored.differences.append(
                Difference(key[0], names[key[0]], *key[1:], "value", None, score.value)
            )
    rescored.left_out = dict(left_out)
    return rescored


def _names(release: Release) -> dict[Any, str]:
    """The number of each system -> its team and its name; of what was withdrawn, that it was."""
    return {
        row.get("system"): " ".join(str(row[key]) for key in ("team", "name") if row.get(key))
        for _, row in release.lines("systems")
    }


def altered(release: Release) -> Iterator[str]:
    """Yields what is not as it was published: each altered row, else the file.
    Raises BadRelease.
    """
    names = _names(release)
    for text in release.bytes(SUMS).decode("utf-8", "replace").splitlines():
        digest, _, name = text.partition("  ")
        if not name:
            raise BadRelease(f"{SUMS} has a line that is no checksum: {text[:80]!r}.")
        is_same = hashlib.sha256(release.bytes(name)).hexdigest() == digest
        named = list(_altered_rows(release, name, names)) if name.endswith(".jsonl") else []
        yield from named
        if not is_same and not named:
            yield f"{name} is not the file that was published: its checksum differs."


def _altered_rows(release: Release, name: str, names: Mapping[Any, str]) -> Iterator[str]:
    for line, row in release.lines(name.removesuffix(".jsonl")):
        if is_altered(row):
            keys = [f"{key} {row[key]}" for key in ("system", "instance", "target") if key in row]
            if run := names.get(row.get("system")):
                keys.insert(1, run)
            yield f"{name}, line {line} ({', '.join(keys)}): this row was altered."


def recomputed(release: Release) -> Iterator[tuple[Key, Score]]:
    """Yields every score of the board, from the tables alone."""
    board = release.about["board"]
    criteria, recall_criteria = tuple(board["criteria"]), tuple(board["recall_criteria"])
    data = read_data(release)
    estimates = default_estimates(data, criteria, recall_criteria) if data.judged.size else {}
    made = scores(data, estimates, criteria, recall_criteria, tuple(board["published"]))
    checked = Corrected.of(data, read_checks(release, data))
    better = corrections(checked, criteria, recall_criteria).scores
    for score in chain(made, better, beside(data, unaided(data, criteria))):
        if data.shown[score.column]:
            yield _key(vars(score) | {"system": data.systems[score.column], "slice": ""}), score
    cuts = read_cuts(release)
    if cuts:
        ordered, with_recall = board["slice_criteria"], board["slices_have_recall"]
        for part in score_cuts(data, cuts, ordered, with_recall):
            score = part.score
            if data.shown[score.column]:
                row = vars(score) | {"system": data.systems[score.column], "slice": part.slice}
                yield _key(row), score


def figures_of(rows: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """What every row must have; older releases say nowhere what experts have checked."""
    has_checked = any("n_checked" in row for row in rows)
    return tuple(name for name in (*REALS, *COUNTS) if name != "n_checked" or has_checked)


def _key(row: dict[str, Any]) -> Key:
    return (
        row["system"],
        row["quantity"],
        row["criterion"],
        row["distribution"],
        row["method"],
        row["slice"],
    )


def _compare(
    key: Key,
    names: dict[int, str],
    row: dict[str, Any],
    score: Score | None,
    figures: tuple[str, ...],
) -> Iterator[Difference]:
    """Yields the first figure of a row that differs: the others follow from the same cause."""
    for figure in figures:
        was = row[figure]
        now = None if score is None else getattr(score, figure)
        # What has no bound is printed as what is not known.
        now = None if now is None or not math.isfinite(now) else now
        if not same(was, now):
            yield Difference(key[0], names[key[0]], *key[1:], figure, was, now)
            return


def same(a: float | None, b: float | None) -> bool:
    """Whether two numbers agree in all digits that count; what both do not know they agree on."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=0.5 * 10.0**-DIGITS, abs_tol=1e-14)
