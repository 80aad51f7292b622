"""How often experts contradict the crowd: from judgments drawn at random alone, each weighted by
its chance.

A target may have had a chance in several draws: in each that was made after people had settled it,
as long as it was not drawn before. Of what a draw found, the part that is answered is random too,
since entries are answered in random order. So the chance that a target is among the answered ones
is, over its draws j = 1, 2, … in turn,

    Σ_j  p_j f_j Π_{i<j} (1 − p_i),

with p_j the recorded probability of the draw and f_j the share of it that is answered; its weight
is one over that. Each kind of judgment (`judged`) is drawn, and told, by itself. Of names what is
drawn is a document: told is the share of its settled mentions that the expert contradicts, Σ w c /
Σ w m, and the share of the expert's that nobody had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.quality.judged import NAMES, PAIRS, since
from estimators.intervals import wilson
from kbpo.sampling.models import ExpertCheck
from kbpo.tracks.models import Track


@dataclass(frozen=True)
class Errors:
    """The estimated share of a track's judgments that experts contradict, with an 80 % interval.

    `against` of `of` random judgments were contradicted; unless all had the same chance the share
    is not their ratio.
    `drawn`: how many draws these come from; of names these are documents, and else the judgments
    themselves.
    """

    against: int
    of: int
    share: float | None
    low80: float | None
    high80: float | None
    drawn: int = 0


@dataclass(frozen=True)
class Draw:
    """Judgments that were drawn together: when, with which probability, and which share of them is
    answered.
    """

    number: int
    moment: datetime
    probability: float
    answered: float


@dataclass(frozen=True)
class Weighed:
    """A random judgment that an expert answered: one over its chance, whether they agree, and what
    they said.
    """

    weight: float
    agrees: bool
    answer: dict[str, Any]


def errors(track: Track, what: str = PAIRS) -> Errors:
    """Return how often experts contradict the crowd on a track: on what was asked alone, or on what
    was marked.
    """
    judgments = _weighed(track, what)
    if not judgments:
        return Errors(0, 0, None, None, None)
    contradicted = [judgment for judgment in judgments if not judgment.agrees]
    total = sum(judgment.weight for judgment in judgments)
    share = sum(judgment.weight for judgment in contradicted) / total
    n = total**2 / sum(judgment.weight**2 for judgment in judgments)
    low, high = wilson(share, n, 0.80)
    drawn = len(judgments)
    return Errors(len(contradicted), drawn, share, float(low), float(high), drawn)


def errors_of_names(track: Track) -> tuple[Errors, Errors]:
    """Of the settled names of a track's documents the share that experts contradict; and of the
    names that experts mark the share that nobody had. A document that an expert could not read is
    left out.
    """
    settled, marked = [], []
    for judgment in _weighed(track, NAMES):
        for answer in judgment.answer.values():
            if answer:
                weight, names = judgment.weight, len(answer["mentions"])
                settled.append((weight, answer["contradicted"], answer["settled"]))
                marked.append((weight, answer["missed"], names))
    return _ratio(settled), _ratio(marked)


def _ratio(rows: Sequence[tuple[float, int, int]]) -> Errors:
    """Σ w c / Σ w m over documents (w, c of m), with Wilson's interval at the number of names that
    the spread between documents leaves it worth; where none is seen, as many as there are
    documents.
    """
    total = sum(weight * of for weight, _, of in rows)
    if not total:
        return Errors(0, 0, None, None, None)
    share, k = sum(weight * against for weight, against, _ in rows) / total, len(rows)
    spread = sum((weight * (against - share * of)) ** 2 for weight, against, of in rows)
    variance = spread / total**2 * k / max(1, k - 1)
    worth = share * (1 - share) / variance if variance > 0 and k > 1 else float(k)
    low, high = wilson(share, worth, 0.80)
    against, of = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return Errors(against, of, share, float(low), float(high), k)


def _weighed(track: Track, what: str) -> list[Weighed]:
    """Return the random judgments of one kind that are answered."""
    rows = list(
        ExpertCheck.objects.filter(track=track, kind="random", judgment=what).values_list(
            "target", "round", "round__drawn_at", "round__probability", "status", "agrees", "value"
        )
    )
    drawn, answered = [], []
    for target, number, moment, chance, status, agrees, answer in rows:
        drawn.append((number, moment, chance or 1.0, status == "answered"))
        if status == "answered":
            answered.append((target, number, agrees, answer))
    draws = _draws(drawn)
    settled = since(track, [target for target, *_ in answered], what)
    judgments = []
    for target, number, agrees, answer in answered:
        weight = 1.0 / _chance(draws, number, settled.get(target))
        judgments.append(Weighed(weight, bool(agrees), answer or {}))
    return judgments


def _draws(rows: Sequence[tuple[int, datetime, float, bool]]) -> list[Draw]:
    """Return the draws, the first one first."""
    terms: dict[int, tuple[datetime, float]] = {}
    answers: dict[int, list[bool]] = {}
    for number, moment, probability, answered in rows:
        terms.setdefault(number, (moment, probability))
        answers.setdefault(number, []).append(answered)
    draws = []
    for number, (moment, probability) in terms.items():
        share = sum(answers[number]) / len(answers[number])
        draws.append(Draw(number, moment, probability, answered=share))
    return sorted(draws, key=lambda draw: draw.moment)


def _chance(draws: Sequence[Draw], drawn_in: int, since: datetime | None) -> float:
    """Return the chance that a target which was drawn in one of the draws is among those that are
    answered now.
    """
    chance, left = 0.0, 1.0
    for draw in draws:
        if draw.number == drawn_in or (since is not None and since <= draw.moment):
            chance += left * draw.probability * draw.answered
            left *= 1.0 - draw.probability
    return chance
