"""An expert marks a document's names anew, without seeing what its readers marked; both are held
side by side.

A settled mention is contradicted if the expert did not mark just these words, or says that they are
of another type, date or page, or the same as other mentions (of those that both marked and readers
are not divided about). Missed is what the expert marked where no settled mention is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from annotation.interfaces.base import Line, ParsedResponse
from annotation.interfaces.shared.reading import NO_VALUE, Marked, Reading, Span
from kbpo.instances.merge import values_of
from kbpo.instances.models import Target
from kbpo.tracks.kbp.merge import UNDECIDED, together

if TYPE_CHECKING:
    from annotation.models import Question

NOT_MARKED = "not marked"


def said(question: Question, answer: Sequence[ParsedResponse]) -> dict[int, dict[str, Any]]:
    """Return what an expert's answer says of a document's names, with how often it contradicts what
    counts now; empty if it is a flag.
    """
    parsed = {response.criterion: response.value for response in answer}
    if "mentions" not in parsed:
        return {}
    value = {"mentions": parsed["mentions"]["mentions"], "links": parsed["links"]}
    lines = compared(question, value, {})
    counts = {
        "settled": sum(line.settled for line in lines),
        "contradicted": sum(line.settled and not line.same for line in lines),
        "missed": sum(line.missed for line in lines),
    }
    return {question.target_id: value | counts}


def agrees(value: Mapping[str, Any]) -> bool:
    """Return whether an expert marked what is settled, and nothing besides; a flag contradicts all
    of it.
    """
    return bool(value) and value["contradicted"] == value["missed"] == 0


def compared(question: Question, value: Mapping[str, Any], words: Mapping[str, str]) -> list[Line]:
    """Everything that is settled or that the expert marked, in the order of the text; `words` say
    what types are called.
    """
    reading, now = Reading(question.payload), settled(question)
    says = {
        mark.span: mark
        for mark in (Marked.of(mention, value["links"]) for mention in value["mentions"])
    }
    lines = []
    for span in sorted(now.keys() | says.keys()):
        ours, theirs = now.get(span), says.get(span)
        lines.append(
            Line(
                words=reading.gloss(span),
                now=_mention_sentence(reading, words, span, ours) if ours else NOT_MARKED,
                says=_mention_sentence(reading, words, span, _value(theirs))
                if theirs
                else NOT_MARKED,
                same=ours is not None and theirs is not None and _same(span, now, says),
                settled=ours is not None,
                missed=ours is None and not any(_overlap(span, marked_span) for marked_span in now),
            )
        )
    return lines


def settled(question: Question) -> dict[Span, dict[str, Any]]:
    """Return the mentions that a document's readers settled, with the values that count of them
    now.
    """
    targets = Target.objects.filter(
        labels__question=question.pk, kind="mention", document=question.target.document_id
    )
    spans = {pk: (begin, end) for pk, begin, end in targets.values_list("pk", "a_begin", "a_end")}
    return {spans[target]: value for target, value, _ in values_of(spans, together) if value}


def _same(span: Span, now: Mapping[Span, Mapping[str, Any]], says: Mapping[Span, Marked]) -> bool:
    ours, theirs = now[span], _value(says[span])
    if ours.get("type") != theirs["type"] or ours.get("value", "") != theirs["value"]:
        return False
    if "link" in ours and theirs["link"] is not None and ours["link"] != theirs["link"]:
        return False
    if UNDECIDED in ours:
        return True
    both = {one for one in now.keys() & says.keys() if UNDECIDED not in now[one]}
    return {
        marked_span
        for marked_span in both
        if now[marked_span].get("canonical") == ours.get("canonical")
    } == {
        marked_span for marked_span in both if says[marked_span].canonical == says[span].canonical
    }


def _value(mark: Marked) -> dict[str, Any]:
    """Return what the expert says of a mention, as labels hold it; None for a title that was left
    open.
    """
    return {
        "type": mark.type,
        "canonical": list(mark.canonical),
        "value": "" if mark.value == NO_VALUE else mark.value,
        "link": None if not mark.link else "" if mark.link == NO_VALUE else mark.link,
    }


def _mention_sentence(
    reading: Reading, words: Mapping[str, str], span: Span, value: Mapping[str, Any]
) -> str:
    """“Person, the same as “Mara Lindt”, page Mara Lindt”."""
    sentence_parts = [words.get(value.get("type", ""), value.get("type", ""))]
    if value.get("value"):
        sentence_parts.append(str(value["value"]))
    begin, end = value.get("canonical") or span
    if UNDECIDED in value:
        sentence_parts.append("readers are divided about what it is the same as")
    if (begin, end) != span:
        sentence_parts.append(f"the same as “{reading.gloss((begin, end))}”")
    if value.get("link") is not None:
        sentence_parts.append(f"page “{value['link']}”" if value["link"] else "no page")
    return ", ".join(sentence_parts)


def _overlap(left: Span, right: Span) -> bool:
    return min(left[1], right[1]) > max(left[0], right[0])
