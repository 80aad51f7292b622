"""A claimed relation between two mentions of a document: the choice of the two mentions, and the
names of relations for pages.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formats.lookup import DocumentView
from formats.splitting import Span


@dataclass(slots=True)
class RelationClaim:
    """One relation instance that a system claims, in canonical direction, with the other data of
    the prediction.
    """

    document: str
    subject: Span
    predicate: str
    object: Span
    subject_type: str
    object_type: str
    provenance: list[Span]
    confidence: float | None
    subject_canonical: Span
    object_canonical: Span
    subject_link: str | None
    object_link: str | None
    subject_entity: str | None
    """The system's own id of the entity, if the format has such ids."""
    object_entity: str | None
    line: int


Closeness = tuple[bool, int, Span, Span]


def closeness_key(document: DocumentView, subject: Span, object_: Span) -> Closeness:
    """Return the sort key of a pair: first pairs in one sentence, then fewer tokens between the
    mentions, then the earlier and the later span.
    """
    first, second = (subject, object_) if subject <= object_ else (object_, subject)
    apart = document.sentence_index(first[0]) != document.sentence_index(second[0])
    gap = document.token_range(second)[0] - document.token_range(first)[1]
    return apart, max(0, gap), first, second


def closest_pair(
    document: DocumentView, subjects: Sequence[Span], objects: Sequence[Span]
) -> tuple[Span, Span] | None:
    """Return the closest subject and object, both lists sorted; None if there is no pair of two
    different spans.

    With the earlier span of a pair fixed, distance grows with the begin of the later one; so only
    the first span of the other list at or after each span can be in the closest pair, and two
    passes over the sorted lists find it.
    """
    if len(subjects) == 1 and len(objects) == 1:
        return (subjects[0], objects[0]) if subjects[0] != objects[0] else None
    best: tuple[Closeness, Span, Span] | None = None
    for span in subjects:
        if (follower := _next_span(objects, span)) is not None:
            candidate = closeness_key(document, span, follower), span, follower
            best = candidate if best is None or candidate < best else best
    for span in objects:
        if (follower := _next_span(subjects, span)) is not None:
            candidate = closeness_key(document, span, follower), follower, span
            best = candidate if best is None or candidate < best else best
    return None if best is None else (best[1], best[2])


def _next_span(spans: Sequence[Span], span: Span) -> Span | None:
    """Return the first of the sorted spans after this one."""
    at = bisect_left(spans, span)
    if at < len(spans) and spans[at] == span:
        at += 1
    return spans[at] if at < len(spans) else None


ENDS = ("{subject}", "{object}")


def relation_names(predicates: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return predicate -> its unique name, for the predicates of a schema; equal words are
    distinguished by the argument types, otherwise by the label, otherwise by the predicate itself.
    """
    alike: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    names: dict[str, str] = {}
    for row in predicates:
        names[row["name"]] = _template_words(row)
        alike[names[row["name"]]].append(row)
    for words, rows in alike.items():
        if len(rows) > 1:
            told = next(filter(_are_distinct, ([tell(row) for row in rows] for tell in _TELLING)))
            names |= {
                row["name"]: f"{words} ({more})" for row, more in zip(rows, told, strict=True)
            }
    return names


def _template_words(row: Mapping[str, Any]) -> str:
    """Return a template without its ends: “owns shares in” for “{subject} owns shares in {object}”.
    Words outside the two arguments become dots; if the object comes first, both arguments are
    named.
    """
    template = str(row.get("template") or "")
    subject, object_ = map(template.find, ENDS)
    if subject < 0 or object_ < 0:
        return _label_words(row)
    if object_ < subject:
        return _fill_ends(template, "subject", "object")
    if template.startswith(ENDS[0]) and template.rstrip(" .").endswith(ENDS[1]):
        return _fill_ends(template, "", "").strip(" .,:") or _label_words(row)
    return _fill_ends(template, "…", "…")


def _fill_ends(template: str, subject: str, object_: str) -> str:
    return template.replace(ENDS[0], subject).replace(ENDS[1], object_)


def _label_words(row: Mapping[str, Any]) -> str:
    return str(row.get("label") or row["name"])


def _subject_types_text(row: Mapping[str, Any]) -> str:
    return "/".join(dict.fromkeys(subject for subject, _ in row.get("types") or ()))


def _type_pairs_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{subject} → {object_}" for subject, object_ in row.get("types") or ())


def _predicate_name(row: Mapping[str, Any]) -> str:
    return str(row["name"])


_TELLING: tuple[Callable[[Mapping[str, Any]], str], ...] = (
    _subject_types_text,
    _type_pairs_text,
    _label_words,
    _predicate_name,
)


def _are_distinct(texts: list[str]) -> bool:
    return all(texts) and len(set(texts)) == len(texts)
