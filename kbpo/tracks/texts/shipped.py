"""The kinds of texts that ship with the service: language quality, and answers with passages as
evidence. Each has its own page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

from kbpo.instances.models import Target
from kbpo.tracks.base import Asking, Words
from kbpo.tracks.measures import Criterion
from kbpo.tracks.texts.forms import criterion_of_question, shipped_form
from kbpo.tracks.texts.metrics import METRICS
from kbpo.tracks.texts.models import Input
from kbpo.tracks.texts.track import FIELDS, TextTrack, rating_measures

MOST_PASSAGES = 10
"""Greatest number of passages that are shown"""
LANGUAGE_QUALITY = shipped_form("language_quality")


class Prior(NamedTuple):
    """Variances of a criterion with values from 0 to 1."""

    sigma_a2: float
    """Variance between people for one output"""
    sigma_f2: float
    """Variance between the outputs of one system"""

    @classmethod
    def from_published_variances(cls, sigma_a2: float, sigma_f2: float, *, steps: int = 1) -> Prior:
        """Return published variances as a prior for a scale with this many steps, at most ¼ in
        total, the largest variance of ratings from 0 to 1.
        """
        whole = (sigma_a2 + sigma_f2) / steps**2
        share = min(1.0, WIDEST / whole) / steps**2
        return cls(sigma_a2 * share, sigma_f2 * share)


WIDEST = 0.25
PRIORS = {
    "fluency": Prior.from_published_variances(0.323, 0.099, steps=2),
    "redundancy": Prior.from_published_variances(0.274, 0.291, steps=2),
    "overall": Prior.from_published_variances(0.291, 0.134, steps=2),
    "edit": Prior.from_published_variances(0.067, 0.149),
    "hter": Prior.from_published_variances(0.067, 0.149),
    "any_correct": Prior.from_published_variances(0.139, 0.084),
    "avg_correct": Prior.from_published_variances(0.119, 0.078),
}
"""Priors from the judgments of Chaganty, Mussmann and Liang 2018: ratings of summaries from 1 to 3,
edited words (HTER, also used for characters), and answers. σ_f² in their table is the variance of
means of two or three judgments, which includes annotator noise again; here it is removed
(`benchmarks/price_components.py`)."""


def _rating_criterion(name: str) -> Criterion:
    """Return the criterion for the ratings of one facet of a text."""
    question = next(one for one in LANGUAGE_QUALITY.questions if one.name == name)
    return replace(criterion_of_question(question), prior=PRIORS.get(name))


def _edit_criterion(name: str, label: str) -> Criterion:
    """Return a criterion for the share of a text that was changed."""
    criterion = Criterion(name, label, higher_is_better=False, single="mean", liked_from=0.3)
    return replace(criterion, prior=PRIORS.get(name))


def _passage_criterion(name: str, label: str) -> Criterion:
    """Return a criterion for the evidence in passages."""
    return Criterion(name, label, single="mean", prior=PRIORS.get(name))


class GenerationTrack(TextTrack):
    """Generated text (Chaganty, Mussmann and Liang 2018)."""

    kind: ClassVar[str] = "generation"
    form: ClassVar = LANGUAGE_QUALITY
    measures: ClassVar = rating_measures(
        _rating_criterion("overall"),
        _rating_criterion("fluency"),
        _edit_criterion("edit", "Edit (characters)"),
        _rating_criterion("redundancy"),
        # Words edited over words of the post-edit, cut at 1: what the source publishes.
        _edit_criterion("hter", "Edit (words, HTER)"),
    )
    asking: ClassVar = (
        Asking(form.name, form.price, form.seconds, people=1, extra=Decimal("0.25")),
    )


class AnswersTrack(TextTrack):
    """Answers to questions (Chaganty, Mussmann and Liang 2018, section 4.2)."""

    kind: ClassVar[str] = "answers"
    target_kind: ClassVar[str] = "answer"
    form: ClassVar = shipped_form("answer_correctness")
    measures: ClassVar = rating_measures(
        _passage_criterion("any_correct", "Some passage shows it"),
        _passage_criterion("avg_correct", "Share of passages that show it"),
    )
    metrics: ClassVar = tuple(
        replace(metric, circular=metric.needs == "references") for metric in METRICS.values()
    )
    asking: ClassVar = (Asking(form.name, form.price, form.seconds, people=1),)
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
        " answers, and the leaderboard shows each score with its interval.",
        format="JSON Lines: one answer a line, with the id of its question and, if you like, the"
        " passage that it came from.",
        fields=FIELDS | {"passage": "Which passage it came from, counted from 0; may be left out"},
        described="which systems gave an answer, and how long it is",
    )

    def find_obstacles(self) -> dict[str, str]:
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
        if not sentences:
            return {}
        return {"corpus": f"{'; '.join(sentences)}: nobody could check an answer to them."}

    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        contents = {target.pk: target.content or {} for target in targets}
        inputs = self._inputs_of_outputs(contents)
        return {
            pk: {
                "title": self.form.title,
                "question": inputs[content["input"]].question,
                "text": content["text"],
                "passages": _passages_in_shown_order(
                    inputs[content["input"]], content.get("passage")
                ),
            }
            for pk, content in contents.items()
        }

    def shown_references(self, made_for: Input, text: str) -> Sequence[str]:
        # The right name from a system and from a person look alike. What a metric
        # says of the references themselves is meaningless, and not reported (`circular`).
        return list(made_for.references)


def _passages_in_shown_order(input_row: Input, source_place: int | None) -> list[str]:
    """Return the passages in display order: first the source of the answer, then the others."""
    passages = list(input_row.passages) or ([input_row.source] if input_row.source else [])
    if source_place is not None:
        passages.insert(0, passages.pop(source_place))
    return passages[:MOST_PASSAGES]
