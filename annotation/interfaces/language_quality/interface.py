"""The language quality interface: a text by itself is rated on a few facets, and corrected if any
of them is below the top (Chaganty, Mussmann and Liang 2018, section 4.1).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from annotation.interfaces.base import (
    AggregatedLabel,
    BadAnswer,
    Doubt,
    Judgment,
    ParsedResponse,
    Terms,
    Unit,
)
from annotation.interfaces.form.interface import Form
from annotation.interfaces.shared.fields import text_field
from annotation.interfaces.shared.majority import ratings_label
from kbpo.instances.merge import PEOPLE, RATINGS
from kbpo.tracks.texts.edits import (
    character_edit_share,
    count_changed_characters,
    differ_invisibly,
    word_edit_rate,
)

if TYPE_CHECKING:
    from annotation.models import Question, Response

EDIT = "edit"
"""The criterion and the form field of the corrected text"""
HTER = "hter"
"""The criterion for the share of edited words, computed from the same answer"""
SLACK = 1000
"""How much longer than twice the text its post-edit may be"""
FEWEST = 5
"""Least number of changed characters of an edit"""
UNTOUCHED = (
    "You rated it below the best, but corrected nothing. Improve the text as much as you can, or"
    " give the best ratings."
)
EMPTY = "The corrected text is empty. Improve the text, or flag a problem."
UNSEEN = ("Cc", "Cf")
"""Categories of invisible characters, which do not count as a change"""


class LanguageQuality(Form):
    """Asks for a rating of each facet of a text, and for a post-edit if any is below the top."""

    name: ClassVar[str] = "language_quality"
    title: ClassVar[str] = "How well a text reads"
    terms: ClassVar[Terms] = Terms(
        "Rate how a short text reads; correcting one pays a bonus",
        Decimal("0.15"),
        seconds=60,
        extra=Decimal("0.25"),
        extra_reason="You corrected the text",
    )

    def render(self, question: Question, answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
        text = question.payload["text"]
        mended = text_field(answer or {}, EDIT)
        page = super().render(question, answer)
        for field in page["fields"]:
            best = max(field["options"], key=lambda option: option["rating"])
            field["top"] = str(best["value"])
        return page | {"mended": mended or text, "most": len(text) * 2 + SLACK}

    def parse(self, question: Question, raw: dict[str, Any]) -> list[ParsedResponse]:
        judgments = super().parse(question, raw)
        if judgments[0].criterion == "flag":
            return judgments
        text = question.payload["text"]
        top = {
            field["name"]: float(max(option["value"] for option in field["options"]))
            for field in question.payload["fields"]
        }
        best = all(one.value["value"] == top[one.criterion] for one in judgments)
        mended = text if best else _read_post_edit(text, text_field(raw, EDIT))
        changed = count_changed_characters(text, mended)
        edit = {
            "value": character_edit_share(text, mended, changed),
            "changed": changed,
            "words": word_edit_rate(text, mended),
            "text": "" if best else mended,
        }
        return [*judgments, ParsedResponse(question.target_id, EDIT, edit)]

    def aggregate(self, question: Question, responses: Sequence[Response]) -> list[AggregatedLabel]:
        names = [field["name"] for field in question.payload["fields"]]
        labels = ratings_label(question, responses, [*names, EDIT])
        for label in labels:
            if EDIT in label.value.get(RATINGS, {}):
                edits = [one.value["words"] for one in responses if one.criterion == EDIT]
                label.value[RATINGS][HTER] = [min(1.0, float(words)) for words in edits]
                label.value[PEOPLE][HTER] = label.value[PEOPLE][EDIT]
        return labels

    def agreement_units(
        self, question: Question, response: Judgment, *, measured: bool = False
    ) -> Iterator[tuple[Unit, str]]:
        """Yield the rating of each facet, whether the text was edited, and the flag."""
        if response.criterion == EDIT:
            yield (EDIT, ""), "yes" if response.value["changed"] else "no"
        else:
            yield from super().agreement_units(question, response)

    def earns_extra(self, judgments: Sequence[Judgment]) -> bool:
        return any(
            judgment.criterion == EDIT and judgment.value["changed"] for judgment in judgments
        )

    def doubts(self, judgments: Sequence[Judgment]) -> Iterator[Doubt]:
        for judgment in judgments:
            if judgment.criterion == EDIT and judgment.value["changed"]:
                changed = judgment.value["changed"]
                detail = f"It was rated below the best, and {changed} characters were corrected."
                yield Doubt("short_edit", changed < FEWEST, detail)

    def is_right(
        self, question: Question, given_answer: Mapping[str, Any], right: Judgment
    ) -> bool:
        """Return whether a post-edit is closer to the right text than the original, or fixes the
        named errors and keeps most words.
        """
        if right.criterion != EDIT:
            return super().is_right(question, given_answer, right)
        if not right.value["changed"] or not given_answer.get("changed"):
            return bool(right.value["changed"]) == bool(given_answer.get("changed"))
        wanted = right.value["text"]
        if _fixes_all_errors(question.payload.get("slips", ()), given_answer["text"], wanted):
            return True
        before = count_changed_characters(question.payload["text"], wanted)
        return count_changed_characters(given_answer["text"], wanted) < before


def _fixes_all_errors(slips: Sequence[str], mended: str, right_text: str) -> bool:
    """Return whether a text has none of these errors and most words of the right one, since there
    are several ways to correct a sentence.
    """
    said = " ".join(mended.lower().replace("’", "'").split())
    kept = set(said.split()) & (needed := set(right_text.lower().split()))
    return bool(slips) and not any(slip in said for slip in slips) and 2 * len(kept) > len(needed)


def _read_post_edit(text: str, sent_text: str) -> str:
    """Return the post-edit of a text, normalized. Raises BadAnswer if it is missing or no text."""
    lines = unicodedata.normalize("NFC", sent_text.replace("\r\n", "\n").replace("\r", "\n"))
    letters_of_text = set(text)
    seen = "".join(
        letter
        for letter in lines
        if letter == "\n" or letter in letters_of_text or unicodedata.category(letter) not in UNSEEN
    )
    mended = "\n".join(line.rstrip() for line in seen.split("\n")).strip()
    if not mended:
        raise BadAnswer(EMPTY if sent_text else UNTOUCHED)
    if len(mended) > 2 * len(text) + SLACK:
        raise BadAnswer(
            f"The corrected text has {len(mended):,} characters, and the text only {len(text):,}."
            " Correct the text; nothing has to be added."
        )
    if differ_invisibly(text, mended):
        raise BadAnswer(UNTOUCHED)
    return mended
