"""The two studies of texts, and the true ratings of each text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rehearsal.opinions import PassageVerdict, TrueRating

SUMMARIES, ANSWERS = "Harbour Wire summaries", "Harbour Wire answers"
TRUTH = "texts.json"
OWNERS = {ANSWERS: "Harbor"}
"""Teams that own a study, with all of its runs"""


@dataclass(frozen=True)
class TextStudy:
    """A study of texts for the demo, and its files."""

    name: str
    kind: str
    inputs: Path
    systems: list[dict[str, str]]
    """Systems, each with team, name, role, file (a path) and description"""
    scores: Path
    """A judge's scores of all outputs"""
    half_width: Decimal
    owner: str
    """The team that owns the study; empty for a shared track"""


def read_studies(directory: Path) -> list[TextStudy]:
    """Return the studies whose files are in a directory."""
    studies = []
    for study in json.loads((directory / "studies.json").read_text("utf-8")):
        owner = OWNERS.get(study["name"], "")
        systems = [
            one | {"file": str(directory / one["file"]), "team": owner or one["team"]}
            for one in study["systems"]
        ]
        studies.append(
            TextStudy(
                study["name"],
                study["kind"],
                directory / study["inputs"],
                systems,
                directory / study["scores"],
                Decimal(study["half_width"]),
                owner,
            )
        )
    return studies


class Written:
    """The true ratings and answers, from a file."""

    def __init__(self, path: Path) -> None:
        truth = json.loads(path.read_text(encoding="utf-8"))
        self.ratings, self.questions = truth["ratings"], truth["questions"]

    def rate(self, text: str) -> TrueRating:
        """Return the true rating of a text."""
        rating = self.ratings[text]
        return TrueRating(rating["facets"], rating["mended"])

    def is_plausible(self, question: str, answer: str) -> bool:
        """Return whether an answer could be right."""
        return bool(answer != self.questions[question]["absurd"])

    def check(self, question: str, answer: str, passage: str) -> PassageVerdict:
        """Return what a passage says about an answer, with the words that show it."""
        known_answer = self.questions[question]
        if passage != known_answer["passage"]:
            return PassageVerdict("neither")
        return PassageVerdict(
            "correct" if known_answer["answer"] in answer else "incorrect", known_answer["answer"]
        )
