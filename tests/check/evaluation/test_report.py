"""A report comes back from its bytes as it was."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from scoring.build import figure_of_score
from scoring.report import (
    Details,
    Figure,
    Key,
    Named,
    Report,
    load_dataclass,
    pack_report,
    report_as_dict,
    unpack_report,
)
from scoring.score import Score

WORDS = ("precision", "f1", "relation", "instance", "a name: of “two” words", "")


def made(kind: Any, rng: random.Random) -> Any:
    """A random value of a type."""
    plain: dict[Any, Callable[[], Any]] = {
        int: lambda: rng.randrange(10**9),
        float: lambda: rng.choice((0.1 + 0.2, 1e-300, -0.0, rng.gauss(0, 1))),
        bool: lambda: rng.random() < 0.5,
        str: lambda: rng.choice(WORDS),
    }
    if kind in plain:
        return plain[kind]()
    if kind is Key:
        return Key(rng.randrange(99), *(made(str, rng) for _ in range(5)))
    if kind == list[list[float]]:  # a covariance is square
        n = rng.randrange(4)
        return [[made(float, rng) for _ in range(n)] for _ in range(n)]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: made(hints[one.name], rng) for one in fields(kind)})  # type: ignore[operator]
    inner, origin = get_args(kind), get_origin(kind)
    if origin in (Union, UnionType):
        chosen = rng.choice(inner)
        return None if chosen is type(None) else made(chosen, rng)
    if origin is dict:
        return {made(inner[0], rng): made(inner[1], rng) for _ in range(rng.randrange(4))}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(made(one, rng) for one in inner)
    assert origin in (tuple, list), kind
    least = 1 if kind == Named else 0  # a key is of something
    return origin(made(inner[0], rng) for _ in range(rng.randrange(least, 4)))


@pytest.mark.parametrize("kind", [Report, Details])
@pytest.mark.parametrize("seed", range(20))
def test_a_report_is_read_as_it_was_written(kind: Any, seed: int) -> None:
    report = made(kind, random.Random(seed))
    read = unpack_report(kind, pack_report(report))
    assert read == report and repr(read) == repr(report), "to the last bit, in its order"
    assert load_dataclass(kind, report_as_dict(report)) == report


def test_no_bytes_are_an_empty_report() -> None:
    assert unpack_report(Report, b"") == Report() and unpack_report(Details, b"") == Details()


def test_what_is_not_finite_is_not_known() -> None:
    nan = math.nan
    score = Score(0, "f1", "it", "instance", "centred", nan, math.inf, 0.1, nan, 0, 1, 3, 2, 1)
    data: Any = type("Systems", (), {"systems": [7], "shown": np.array([True])})
    key, figure = figure_of_score(data, score)
    assert key == Key(7, "f1", "it", "instance", "centred")
    assert (figure.value, figure.variance, figure.low80, figure.high80) == (None, None, 0.1, None)
    report = Report(figures={key: Figure(nan)}, correlation={"it": nan})
    assert unpack_report(Report, pack_report(report)) == Report(
        figures={key: Figure()},
        correlation={"it": None},  # type: ignore[dict-item]
    )
