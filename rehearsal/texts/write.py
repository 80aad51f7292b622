"""Writes two studies of texts: inputs, what systems wrote, what a judge says, and what is true."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from rehearsal.texts.news import Item, items

SUMMARIES, ANSWERS = "Harbour Wire summaries", "Harbour Wire answers"
TRUTH = "texts.json"
QUESTIONS = 24
"""Of the items so many are asked about"""
PHRASES = ("{}", "It is {}.", "As far as is known, {}")
"""How the same is answered"""
SMALL_WORDS = frozenset({"a", "an", "the", "of", "at", "on", "to", "and", "will", "for"})


@dataclass(frozen=True)
class TextStudy:
    """A study of texts whose files are written."""

    name: str
    kind: str
    inputs: Path
    systems: list[dict[str, str]]
    """team, name, file (a path) and description of each"""
    scores: Path
    """What a judge says of all that the systems wrote"""
    half_width: Decimal


@dataclass
class Truth:
    """What is right to say of each text, and of each question about it."""

    ratings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Text -> its facets, from 1 to 3, and the text as it should be"""
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Question -> its answer, the words that say so, and answers that cannot be right"""


@dataclass(frozen=True)
class Writer:
    """A system that summarises: how often it repeats a sentence, drops small words, and stops
    after the first sentence.
    """

    team: str
    name: str
    description: str
    repeats: float = 0.0
    drops: float = 0.0
    stops: float = 0.0
    role: str = "system"


@dataclass(frozen=True)
class Answerer:
    """A system that answers: how often it is right, and how often what it says makes no sense."""

    team: str
    name: str
    description: str
    right: float
    absurd: float = 0.0
    role: str = "system"


WRITERS = (
    Writer("Lindqvist Lab", "Planner", "Plans first, then writes", drops=0.1, stops=0.1),
    Writer("Tern", "Looper", "Small network; says things again", repeats=0.5, stops=0.1),
    Writer("Harbor", "Telegraph", "Keeps what carries meaning", drops=0.7),
    Writer("Quarry", "First sentence", "Of the item, unchanged", stops=1.0, role="baseline"),
    Writer("Quarry", "Editor", "Written by the newspaper’s editor", role="reference"),
)
ANSWERERS = (
    Answerer("Lindqvist Lab", "Reader", "Reads all passages", right=0.9),
    Answerer("Tern", "Small reader", "The same, a tenth of its size", right=0.6, absurd=0.1),
    Answerer("Harbor", "Number finder", "The first number in any passage", right=0.75),
    Answerer("Quarry", "Guess", "Any words of a passage", right=0.3, absurd=0.3, role="baseline"),
)
FLATTERED = "Tern"
"""The team whose systems the judge likes more than people do"""


def write_texts(directory: Path, *, seed: int) -> list[TextStudy]:
    """Both studies; their files are the same for the same seed."""
    directory.mkdir(parents=True, exist_ok=True)
    truth = Truth()
    studies = [_summaries(directory, seed, truth), _answers(directory, seed, truth)]
    (directory / TRUTH).write_text(json.dumps(asdict(truth), ensure_ascii=False), "utf-8")
    return studies


def _summaries(directory: Path, seed: int, truth: Truth) -> TextStudy:
    news = items()
    inputs = [
        {"input_id": key, "source": item.source, "references": list(item.retold)}
        for key, item in news.items()
    ]

    def value(key: str, text: str) -> float:
        return float(truth.ratings[text]["facets"]["overall"] - 1) / 2

    outputs: dict[Writer | Answerer, dict[str, str]] = {}
    for writer in WRITERS:
        rng = random.Random(f"{seed}:{writer.name}")
        outputs[writer] = {key: _summary(writer, item, rng, truth) for key, item in news.items()}
    return _study(
        directory, SUMMARIES, "generation", inputs, outputs, value, Decimal("0.045"), seed
    )


def _answers(directory: Path, seed: int, truth: Truth) -> TextStudy:
    asked = dict(list(items().items())[:QUESTIONS])
    inputs = [
        {
            "input_id": key,
            "question": item.question,
            "passages": [item.sentences[1], item.sentences[2]],
            "references": [item.answer],
        }
        for key, item in asked.items()
    ]
    for item in asked.values():
        truth.questions[item.question] = {
            "answer": item.answer,
            "absurd": item.absurd,
            "passage": item.sentences[2],
        }

    def value(key: str, text: str) -> float:
        return float(asked[key].answer in text)

    outputs: dict[Writer | Answerer, dict[str, str]] = {}
    for answerer in ANSWERERS:
        rng = random.Random(f"{seed}:{answerer.name}")
        outputs[answerer] = {key: _answer(answerer, item, rng) for key, item in asked.items()}
    return _study(directory, ANSWERS, "answers", inputs, outputs, value, Decimal("0.060"), seed)


def _answer(answerer: Answerer, item: Item, rng: random.Random) -> str:
    chance, phrase = rng.random(), rng.choice(PHRASES)
    if chance < answerer.right:
        return phrase.format(item.answer)
    return item.absurd if chance > 1 - answerer.absurd else phrase.format(item.other)


def _summary(writer: Writer, item: Item, rng: random.Random, truth: Truth) -> str:
    """A system's summary of an item; what is right to say of it is noted."""
    stops, drops, repeats = (
        rng.random() < share for share in (writer.stops, writer.drops, writer.repeats)
    )
    best = item.retold[0] if writer.role == "reference" else item.summary
    text = item.sentences[0] if stops else best
    facets = {"fluency": 3, "redundancy": 3, "overall": 2 if stops else 3}
    if drops:
        text = " ".join(word for word in text.split() if word.lower() not in SMALL_WORDS)
        facets |= {"fluency": rng.choice((1, 2)), "overall": facets["overall"] - 1}
    if repeats:
        times = rng.choice((1, 2))
        text = " ".join([text] * (1 + times))
        facets |= {"redundancy": 3 - times, "overall": max(1, facets["overall"] - times)}
    truth.ratings.setdefault(text, {"facets": facets, "mended": best})
    return text


def _study(
    directory: Path,
    name: str,
    kind: str,
    inputs: list[dict[str, Any]],
    outputs: Mapping[Writer | Answerer, Mapping[str, str]],
    value: Callable[[str, str], float],
    half_width: Decimal,
    seed: int,
) -> TextStudy:
    """A study; its inputs, its systems' outputs and a judge's scores are written."""
    path = directory / f"{kind}-inputs.jsonl"
    _lines(path, inputs)
    rng = random.Random(f"{seed}:{kind}")
    systems, scores = [], [["input_id", "system", "value"]]
    score_of: dict[tuple[str, str], str] = {}
    for system, texts in outputs.items():
        file = directory / f"{kind}-{system.name.lower().replace(' ', '-')}.jsonl"
        _lines(file, ({"input_id": key, "output": text} for key, text in texts.items()))
        systems.append(
            {
                "team": system.team,
                "name": system.name,
                "description": system.description,
                "role": system.role,
                "file": str(file),
            }
        )
        liked = 0.25 if system.team == FLATTERED else 0.0
        for key, text in texts.items():
            score = 0.7 * value(key, text) + liked + rng.gauss(0.1, 0.12)
            rounded = (
                f"{min(1.0, max(0.0, score)):.3f}"  # of what two systems wrote alike, the first
            )
            scores.append([key, system.name, score_of.setdefault((key, text), rounded)])
    judged = directory / f"{kind}-judge.csv"
    with judged.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(scores)
    return TextStudy(name, kind, path, systems, judged, half_width)


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
