"""What every door gives: one claimed relation between two mentions of a document, and how the two
are chosen.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from formats.lookup import DocumentView
from formats.splitting import Span


@dataclass(slots=True)
class RelationClaim:
    """One relation instance that a system claims, in canonical direction, with what belongs to the
    prediction.
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


def closeness(document: DocumentView, subject: Span, object_: Span) -> Closeness:
    """Return the key that orders pairs: one sentence first, then fewer tokens between, then the
    earlier and the later span.
    """
    first, second = (subject, object_) if subject <= object_ else (object_, subject)
    apart = document.sentence(first[0]) != document.sentence(second[0])
    gap = document.token_range(second)[0] - document.token_range(first)[1]
    return apart, max(0, gap), first, second


def closest_pair(
    document: DocumentView, subjects: Sequence[Span], objects: Sequence[Span]
) -> tuple[Span, Span] | None:
    """Return the closest subject and object, both lists sorted; None if there is no pair of two
    different spans.

    With the earlier span of a pair fixed, distance grows with the begin of the later one; so only
    the first span of the other list at or after each span can be in the closest pair, and two walks
    over sorted lists find it.
    """
    if len(subjects) == 1 and len(objects) == 1:
        return (subjects[0], objects[0]) if subjects[0] != objects[0] else None
    best: tuple[Closeness, Span, Span] | None = None
    for span in subjects:
        if (follower := _next(objects, span)) is not None:
            candidate = closeness(document, span, follower), span, follower
            best = candidate if best is None or candidate < best else best
    for span in objects:
        if (follower := _next(subjects, span)) is not None:
            candidate = closeness(document, span, follower), follower, span
            best = candidate if best is None or candidate < best else best
    return None if best is None else (best[1], best[2])


def _next(spans: Sequence[Span], span: Span) -> Span | None:
    """Return the first of the sorted spans after this one."""
    at = bisect_left(spans, span)
    if at < len(spans) and spans[at] == span:
        at += 1
    return spans[at] if at < len(spans) else None
