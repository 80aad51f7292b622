"""A thumb for a pair of names: up or down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.interfaces.base import (
    AggregatedLabel,
    BadAnswer,
    Interface,
    ParsedResponse,
    Terms,
)

if TYPE_CHECKING:
    from annotation.models import Question, Response


class Thumbs(Interface):
    """Is the sentence well written?"""

    name: ClassVar[str] = "thumbs"
    title: ClassVar[str] = "Whether a sentence is well written"
    terms: ClassVar[Terms] = Terms("Say whether you like a sentence", Decimal("0.02"), seconds=5)

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"title": "A sentence", "text": question.payload["text"]}

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        thumb = (raw.get("thumb") or [""])[0]
        if thumb not in ("up", "down"):
            raise BadAnswer("Step 1 is missing: thumb up or down?")
        return [ParsedResponse(question.target_id, "thumb", {"thumb": thumb})]

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        if not responses:
            return []
        thumbs = Counter(response.value["thumb"] for response in responses)
        thumb, n = thumbs.most_common(1)[0]
        share = n / len(responses)
        value = {"thumb": thumb}
        return [AggregatedLabel(question.target_id, value, "thumbs", len(responses), 1 - share)]
