"""What a perfect annotator says of the texts of our own studies."""

from __future__ import annotations

import json
from pathlib import Path

from rehearsal.opinions import Rated, Shown


class Written:
    """The opinions that were written down beside the texts."""

    def __init__(self, path: Path) -> None:
        truth = json.loads(path.read_text(encoding="utf-8"))
        self.ratings, self.questions = truth["ratings"], truth["questions"]

    def rate(self, text: str) -> Rated:
        """What is right to say of a text."""
        rating = self.ratings[text]
        return Rated(rating["facets"], rating["mended"])

    def is_plausible(self, question: str, answer: str) -> bool:
        """Whether an answer could be right."""
        return bool(answer != self.questions[question]["absurd"])

    def check(self, question: str, answer: str, passage: str) -> Shown:
        """What a passage shows of an answer, and the words that say so."""
        known_answer = self.questions[question]
        if passage != known_answer["passage"]:
            return Shown("neither")
        return Shown(
            "correct" if known_answer["answer"] in answer else "incorrect", known_answer["answer"]
        )
