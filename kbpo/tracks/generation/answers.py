"""Answers: systems answer questions; people say which passages show that an answer is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from kbpo.instances.models import Target
from kbpo.tracks.base import Asking, Criterion, Words
from kbpo.tracks.generation.metrics import METRICS
from kbpo.tracks.generation.models import Input
from kbpo.tracks.generation.track import FIELDS, GenerationTrack

MOST_PASSAGES = 10
"""So many are shown at most."""


class AnswersTrack(GenerationTrack):
    """Answers to questions (Chaganty, Mussmann and Liang 2018, section 4.2)."""

    kind: ClassVar[str] = "answers"
    target_kind: ClassVar[str] = "answer"
    criteria: ClassVar = (
        Criterion("any_correct", "Some passage shows it", single="mean"),
        Criterion("avg_correct", "Share of passages that show it", single="mean"),
    )
    is_taste: ClassVar[bool] = False
    presents: ClassVar[bool] = False
    circular: ClassVar = tuple(
        name for name, metric in METRICS.items() if metric.needs == "references"
    )
    asking: ClassVar = (Asking("answer_correctness", Decimal("0.40"), 120, people=1),)
    words: ClassVar = Words(
        item="answer",
        items="answers",
        kind="answers that people check",
        system="a file of answers",
        file="File of answers",
        input="question",
        inputs="questions",
        downloaded="questions with their passages, without what people wrote for them",
        offer="Upload your system’s answers. People check a sample of them against passages. You"
        " get a score that says how sure it is.",
        promise="People see the question, the answer and the passages: not which system gave it."
        " Equal answers of several systems are checked once.",
        description="On-demand evaluation of question answering: people check a sample of your"
        " answers, and the leaderboard says how sure each score is.",
        format="JSON Lines: one answer a line, with the id of its question and, if you like, the"
        " passage that it came from.",
        fields=FIELDS | {"passage": "Which passage it came from, counted from 0; may be left out"},
        described="which systems gave an answer, and how long it is",
    )

    def guide(self) -> Mapping[str, Any]:
        return {}

    def asked(self) -> Sequence[Mapping[str, Any]]:
        shows = ("shows that it is correct", "shows that it is incorrect", "does not say")
        return [
            {"ask": ask, "options": [{"label": label} for label in labels]}
            for ask, labels in (
                ("Does the question make sense, and is the answer plausible?", ("yes", "no")),
                ("If so: what does each passage say about this answer?", shows),
            )
        ]

    def wrong_inputs(self) -> str:
        inputs = Input.objects.filter(corpus=self.corpus)
        lacking = {
            "question": inputs.filter(question=""),
            "passage and no source": inputs.filter(source="", passages=[]),
        }
        total = inputs.count()
        sentences = [
            f"{without.count():,} of {total:,} inputs of {self.corpus.name} have no {needed}"
            for needed, without in lacking.items()
            if without.exists()
        ]
        return f"{'; '.join(sentences)}: nobody could check an answer to them." if sentences else ""

    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        contents = {target.pk: target.content or {} for target in targets}
        keys = {content["input"] for content in contents.values()}
        asked_inputs = Input.objects.filter(corpus=self.corpus, key__in=keys)
        inputs = {row.key: row for row in asked_inputs}
        return {
            pk: {
                "title": "An answer",
                "question": inputs[content["input"]].question,
                "text": content["text"],
                "passages": _passages(inputs[content["input"]], content.get("passage")),
            }
            for pk, content in contents.items()
        }

    def beside(self, made_for: Input, text: str) -> Sequence[str]:
        # Systems give the right name as people do: who gave it is not told by that. What a metric
        # says of the references themselves is worth nothing, and told nowhere (`circular`).
        return list(made_for.references)


def _passages(asked: Input, source_place: int | None) -> list[str]:
    """The passages as they are shown: the one that an answer came from before the others."""
    passages = list(asked.passages) or ([asked.source] if asked.source else [])
    if source_place is not None:
        passages.insert(0, passages.pop(source_place))
    return passages[:MOST_PASSAGES]
