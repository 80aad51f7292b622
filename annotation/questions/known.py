"""Gold before anybody was asked: questions whose answer an expert's or an imported judgment tells,
or that an admin answers about a document which was annotated whole.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.payload import besides
from annotation.models import UNSETTLED, Question
from annotation.questions.ask import terms_of
from kbpo.corpus.models import Document
from kbpo.instances.merge import values_of
from kbpo.instances.models import Label, Target
from kbpo.instances.targets import Place, found_at, targets_at
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall, recall_of
from kbpo.tracks.registry import kind_of

DICE = random.SystemRandom()
SURE = ("expert", "import")
DOCUMENTS = 5
"""Documents annotated whole whose unmarked pairs are looked at, at random"""


@dataclass(frozen=True)
class Unmarked:
    """A pair that nobody marked in a document which was annotated whole; it may have no target."""

    place: Place
    title: str

    @property
    def name(self) -> str:
        """The place, as `unmarked_target` reads it."""
        return "-".join(map(str, (self.place.document, *self.place.a, *self.place.b)))


def known(track: Track, limit: int = 20) -> list[Question]:
    """Questions, none of them stored, about targets that were judged elsewhere and that nobody is
    or was asked about here, in random order.
    """
    judged = Label.objects.filter(source__in=SURE).values("target")
    free = _free(track, Target.objects.filter(pk__in=judged)).order_by("?")
    return questions_about(track, list(free.values_list("pk", flat=True)[:limit]), made=False)


def find_unmarked_pairs(track: Track, limit: int = 10) -> list[Unmarked]:
    """Pairs that somebody who read some documents whole, at random, did not mark, and that nobody
    is or was asked about here, in random order. Nothing is stored.
    """
    read = _read_whole(track).order_by("?")[:DOCUMENTS]
    found = [one for document in read for one in _unmarked(track, document)]
    return DICE.sample(found, min(limit, len(found)))


def unmarked_target(track: Track, name: str) -> int | None:
    """Return the target of such a pair, made if there was none; None where there is no such
    pair.
    """
    document = name.partition("-")[0]
    if not re.fullmatch(r"[0-9]{1,18}", document):
        return None
    for row in _read_whole(track).filter(pk=document):
        for one in _unmarked(track, row):
            if one.name == name:
                return targets_at(track.corpus, [one.place])[one.place]
    return None


def questions_about(track: Track, targets: Sequence[int], *, made: bool = True) -> list[Question]:
    """Return a question about each of these targets as the track would ask it, none of them stored;
    none where it has nothing to ask. With `made=False` nothing else is stored either.
    """
    drafts = [draft for draft in kind_of(track).questions(targets, None, made=made) if draft.shown]
    terms = {name: terms_of(track, name) for name in {draft.interface for draft in drafts}}
    return [
        Question(
            track=track,
            target_id=draft.target_id,
            interface=draft.interface,
            shown=draft.shown,
            payload=draft.payload,
            answers_wanted=track.workers_per_question,
            price=terms[draft.interface].per_answer,
            reward=terms[draft.interface].reward,
            extra=terms[draft.interface].extra,
            extra_price=terms[draft.interface].extra_price,
            seconds=terms[draft.interface].seconds,
        )
        for draft in drafts
    ]


def is_open(track: Track, target: int) -> bool:
    """Return whether gold can be made of a target: nobody is or was asked about it on this
    track.
    """
    return _free(track, Target.objects.filter(pk=target)).exists()


def known_answer(question: Question) -> dict[str, Any] | None:
    """Return the answer to a question that judgments from elsewhere give, as its form would send
    it, a step that they do not tell left open; None where they tell nothing. What nobody marked is
    false where the document's annotation is closed.
    """
    interface = interface_of(question.interface)
    targets = [question.target_id, *besides(question.payload)]
    rule = kind_of(question.track).merge
    values = {target: value for target, value, _ in values_of(targets, rule) if value}
    closed = Label.objects.filter(
        target__kind="document",
        target__document=question.target.document_id,
        source__in=Label.OF_DOCUMENTS,
        value__closed=True,
    )
    if question.target_id not in values and closed.exists():
        values[question.target_id] = {"holds": []}
    return interface.answer_of(question, values)


def _free(track: Track, targets: QuerySet[Target]) -> QuerySet[Target]:
    """Return those of the targets that a track asks about and that nobody is or was asked about
    there, nor are gold.
    """
    asked = Question.objects.filter(
        Q(status__in=[*UNSETTLED, "settled"]) | Q(gold__retired_at=None, status="gold")
    )
    kind = kind_of(track)
    return targets.filter(corpus=track.corpus_id, kind=kind.target_kind).exclude(
        pk__in=asked.filter(track=track).values("target")
    )


def _read_whole(track: Track) -> QuerySet[Document]:
    """Return the documents that somebody read whole; none where a kind has no such."""
    if recall_of(track) is None:
        return Document.objects.none()
    read = Label.objects.filter(
        target__corpus=track.corpus_id, target__kind="document", source__in=Label.OF_DOCUMENTS
    )
    return Document.objects.filter(pk__in=read.values("target__document"))


def _unmarked(track: Track, document: Document) -> list[Unmarked]:
    """Return the pairs of a document that nobody marked and nobody is or was asked about."""
    places = kind_with_recall(track).near_pairs(document)
    target_of = found_at(track.corpus, places)
    free = _free(track, Target.objects.filter(pk__in=target_of.values(), labels=None))
    left = set(free.values_list("pk", flat=True))
    return [
        Unmarked(place, _title(document, place))
        for place in places
        if place not in target_of or target_of[place] in left
    ]


def _title(document: Document, place: Place) -> str:
    sides = [" ".join(document.text[begin:end].split()) for begin, end in (place.a, place.b)]
    return f"{' and '.join(sides)}, in {document.title or document.key}"
