"""Shows the texts of two systems side by side, with their ratings and the scores of metrics and
judges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.core.paginator import Paginator
from django.http import QueryDict
from django.utils.safestring import SafeString, mark_safe

from kbpo.scores.read import by_input
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.measures import Criterion
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.ratings import NOTHING, RatedTarget, rated, targets_of
from kbpo.web.components import drawing, plots
from kbpo.web.research.judged import is_restricted, metric_scores, sees_only_public, shows_judgments

ON_A_PAGE = 10
MOST_DOTS = 500
"""The largest number of inputs in the plot"""
SPREAD, GOLDEN_ANGLE = 0.012, 2.4
"""Inputs with the same ratings are placed around one point like the seeds of a sunflower"""
ORDERS = {
    "a": "first is ahead, most first",
    "b": "second is ahead, most first",
    "input": "order of the inputs",
}
FIELDS = ("order", "q", "against", "page")
"""Parameters of this part of the page"""
SAME = 1e-9
"""Ratings that differ by less are a tie"""


@dataclass(frozen=True)
class Score:
    """The scores of a metric or judge for two texts."""

    label: str
    a: float
    b: float


@dataclass(frozen=True)
class Side:
    """The text of one system for an input, with its ratings."""

    text: str
    ratings: list[tuple[str, list[float]]]
    """(criterion, each single rating on the scale that people read)"""


@dataclass(frozen=True)
class Pair:
    """An input with the texts of both systems."""

    key: str
    parts: list[tuple[str, str]]
    """(heading, text) of what systems were given, and of references"""
    sides: list[Side]
    difference: float | None
    """Mean rating of the first minus that of the second, on the scale; None: not both rated"""
    scores: list[Score]


@dataclass(frozen=True, eq=False)
class Table:
    """The n inputs that both systems answered, as arrays without texts."""

    keys: list[str]
    instances: np.ndarray
    """(n, 2)"""
    ratings: Mapping[int, RatedTarget]
    """Target -> what people said"""
    targets: np.ndarray
    """(n, 2)"""
    values: np.ndarray
    """(n, 2) mean ratings in [0, 1]; NaN: none"""
    scorers: list[tuple[int, str]]
    """(number, name)"""
    scores: np.ndarray
    """(n, 2, k); NaN where one says nothing"""

    @property
    def difference(self) -> np.ndarray:
        """Return (n,) first minus second; NaN unless both are rated."""
        return np.asarray(self.values[:, 0] - self.values[:, 1])


def side_by_side(
    user: Any, a: Submission, b: Submission, criterion: str, asked: QueryDict
) -> dict[str, Any]:
    """Return the context of the texts of two systems; empty if texts are not rated one by one or
    may not be shown.

    `asked` may have `order` (a key of `ORDERS`), `q` (words in a text), `against` (the number of a
    metric: only inputs where it prefers the other text than people do), and `page`.
    """
    kind = kind_of(a.track)
    if not kind.rates or kind.opposes or not (shows_judgments(a) and shows_judgments(b)):
        return {}
    restricted = [is_restricted(user, run) for run in (a, b)]
    table = _table(kind, a, b, criterion, public=sees_only_public(user, a), restricted=restricted)
    if not table.keys:
        return {"n": 0, "is_restricted": any(restricted)}
    rated_as = kind.measures.criterion(criterion)
    sign = 1.0 if kind.measures.higher_is_better(kind.measures.mean, criterion) else -1.0
    ahead = sign * table.difference
    query, order = asked.get("q", "").strip()[:200], asked.get("order", "a")
    order = order if order in ORDERS else "a"
    rows = _rows_with_words(kind, table, query)
    against = next((one for one in table.scorers if str(one[0]) == asked.get("against")), None)
    if against is not None:
        metric = table.scores[:, :, table.scorers.index(against)]
        opposed = (metric[:, 0] - metric[:, 1]) * table.difference < 0  # NaN is no disagreement
        rows = rows[opposed[rows]]
    if order != "input":
        of_order = -ahead[rows] if order == "a" else ahead[rows]
        rows = rows[np.argsort(np.where(np.isnan(of_order), np.inf, of_order), kind="stable")]
    page = Paginator(rows.tolist(), ON_A_PAGE).get_page(asked.get("page"))
    known = ahead[~np.isnan(ahead)]
    return {
        "n": len(table.keys),
        "is_restricted": any(restricted),
        "wins": int((known > SAME).sum()),
        "ties": int((np.abs(known) <= SAME).sum()),
        "losses": int((known < -SAME).sum()),
        "plot": _plot(table, rated_as, a, b),
        "rows": [_pair(kind, table, at, rated_as) for at in page],
        "page": page,
        "query": query,
        "order": order,
        "orders": ORDERS,
        "against": against[0] if against else None,
        "scorers": table.scorers,
        "criterion": rated_as.label,
        "more": urlencode([(name, value) for name, value in asked.items() if name != "page"]),
        "kept": [(name, value) for name, value in asked.items() if name not in FIELDS],
    }


def _table(
    kind: Kind,
    a: Submission,
    b: Submission,
    criterion: str,
    *,
    public: bool,
    restricted: list[bool],
) -> Table:
    """Return the inputs that both systems answered. A text of a `restricted` run is included only
    if it has a public judgment.
    """
    first, second = (by_input(row.pk) for row in (a, b))
    keys = [key for key in first if key in second]
    instances = np.array([(first[key], second[key]) for key in keys], dtype=np.int64)
    instances = instances.reshape(-1, 2)
    every = np.unique(instances)
    targets = targets_of(every)[np.searchsorted(every, instances)] if every.size else instances
    ratings = rated(np.unique(targets).tolist(), public=public)
    shown = (np.isin(targets, list(ratings)) | ~np.array(restricted)).all(axis=1)
    keys = [key for key, is_shown in zip(keys, shown, strict=True) if is_shown]
    instances, targets = instances[shown], targets[shown]
    rated_as = kind.measures.criterion(criterion)
    values = [[ratings.get(t, NOTHING).value(rated_as) for t in row] for row in targets.tolist()]
    named, scores = metric_scores(kind.track, instances)
    return Table(
        keys,
        instances,
        ratings,
        targets,
        np.array(values, dtype=np.float64).reshape(-1, 2),
        named,
        scores,
    )


def _rows_with_words(kind: Kind, table: Table, query: str) -> np.ndarray:
    """Return the rows whose id, input or texts contain all words of the query."""
    rows = np.arange(len(table.keys))
    words = query.casefold().split()
    if not words:
        return rows
    shown = kind.to_judge(np.unique(table.instances).tolist())
    has_words = []
    for key, (first, second) in zip(table.keys, table.instances.tolist(), strict=True):
        both = [shown[first], shown[second]]
        texts = [key, *(text for _, text in _parts(kind, both)), *map(_text, both)]
        text = " ".join(texts).casefold()
        has_words.append(all(word in text for word in words))
    return rows[np.array(has_words, dtype=np.bool_)]


def _pair(kind: Kind, table: Table, at: int, rated_as: Criterion) -> Pair:
    instances, targets = table.instances[at].tolist(), table.targets[at].tolist()
    shown = kind.to_judge(instances)
    sides = []
    for instance, target in zip(instances, targets, strict=True):
        said = table.ratings.get(target, NOTHING).ratings
        ratings = [
            (one.label, [one.to_scale(value) for value in said[one.name]])
            for one in kind.measures.criteria
            if said.get(one.name)
        ]
        sides.append(Side(_text(shown[instance]), ratings))
    difference = float(table.difference[at])
    return Pair(
        table.keys[at],
        _parts(kind, [shown[instance] for instance in instances]),
        sides,
        None if np.isnan(difference) else difference * (rated_as.high - rated_as.low),
        [
            Score(label, *map(float, table.scores[at, :, column]))
            for column, (_, label) in enumerate(table.scorers)
            if not np.isnan(table.scores[at, :, column]).any()
        ],
    )


def _text(shown: Mapping[str, Any]) -> str:
    return str(shown.get("output") or shown.get("text") or "")


def _parts(kind: Kind, both: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the inputs and the references, each under its heading; empty if the texts of the
    corpus are not public. A system's own text is not repeated as a reference.
    """
    if not kind.corpus.may_be_downloaded:
        return []
    parts = [(name.capitalize(), both[0].get(name)) for name in ("prompt", "question", "source")]
    references = dict.fromkeys(text for shown in both for text in shown.get("references") or ())
    passages = list(both[0].get("passages") or ())
    for heading, texts in (("Passage", passages), ("Reference", list(references))):
        for number, text in enumerate(texts, 1):
            parts.append((heading if len(texts) == 1 else f"{heading} {number}", text))
    return [(heading, str(text)) for heading, text in parts if text]


def _plot(table: Table, rated_as: Criterion, a: Submission, b: Submission) -> SafeString | str:
    """Return a scatter plot of the mean ratings of both, a dot for each input; empty if no input
    has both.
    """
    both = np.flatnonzero(~np.isnan(table.difference))[:MOST_DOTS]
    if not both.size:
        return ""
    axis = drawing.Axis(-0.1, 1.1, (0.0, 0.25, 0.5, 0.75, 1.0))
    dots = []
    n_at: Counter[tuple[float, float]] = Counter()
    for at in both.tolist():
        x, y = table.values[at].tolist()
        distance, angle = SPREAD * n_at[x, y] ** 0.5, GOLDEN_ANGLE * n_at[x, y]
        n_at[x, y] += 1
        x, y = x + distance * math.cos(angle), y + distance * math.sin(angle)
        dots.append(plots.Dot(table.keys[at], x, y, is_named=False))

    def written(share: float) -> str:
        return f"{rated_as.to_scale(share):.3g}" if rated_as.unit != "%" else f"{share:.0%}"

    return mark_safe(
        plots.draw_curves(
            [plots.Curve("", [(step / 20, step / 20) for step in range(21)], "equal")],
            dots,
            axis,
            axis,
            f"{rated_as.label} of each input: {b.full_name} against {a.full_name}.",
            x_name=a.full_name,
            y_name=b.full_name,
            x_written=written,
            y_written=written,
        )
    )
