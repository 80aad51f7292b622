"""Gold before anybody was asked: questions whose answer an expert's or an imported judgment tells,
or that an admin answers about a document which was annotated whole.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from annotation.interfaces.registry import interface_of
from annotation.models import Question
from annotation.questions.ask import terms_of
from kbpo.corpus.models import Document
from kbpo.instances.merge import values_of
from kbpo.instances.models import Label, Target
from kbpo.instances.targets import targets_at
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of

DICE = random.SystemRandom()
SURE = ("expert", "import")
DOCUMENTS = 5
"""Documents annotated whole whose unmarked pairs are looked at, at random"""


def known(track: Track, limit: int = 20) -> list[Question]:
    """Questions, none of them stored, about targets that were judged elsewhere and that nobody has
    answered here, in random order; up to half of them are about pairs that nobody marked in a
    document which was annotated whole.
    """
    unmarked = _free(track, Target.objects.filter(pk__in=_unmarked(track)))
    judged = _free(track, Target.objects.filter(labels__source__in=SURE))
    few = _some(unmarked, limit // 2)
    return questions_about(track, [*few, *_some(judged, limit - len(few))])


def questions_about(track: Track, targets: Sequence[int]) -> list[Question]:
    """A question about each of these targets as the track would ask it, none of them stored; none
    where it has nothing to ask.
    """
    drafts = [draft for draft in kind_of(track).again(targets) if draft.shown]
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
    """Whether gold can be made of a target that nobody has answered on this track."""
    return _free(track, Target.objects.filter(pk=target)).exists()


def known_answer(question: Question) -> dict[str, Any] | None:
    """The answer to a question that judgments from elsewhere give, as its form would send it; None
    where they do not tell all of it. What nobody marked is false where the document's annotation is
    closed.
    """
    interface = interface_of(question.interface)
    targets = [question.target_id, *interface.asks_besides(question)]
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
    """Those of the targets that a track asks about and that are neither answered nor gold there."""
    asked = Question.objects.filter(Q(status="settled") | Q(gold__retired_at=None, status="gold"))
    kind = kind_of(track)
    return targets.filter(corpus=track.corpus_id, kind=kind.target_kind).exclude(
        pk__in=asked.filter(track=track).values("target")
    )


def _some(targets: QuerySet[Target], limit: int) -> list[int]:
    ids = sorted(set(targets.values_list("pk", flat=True)))
    return DICE.sample(ids, min(limit, len(ids)))


def _unmarked(track: Track) -> list[int]:
    """Pairs that somebody who read some documents whole, at random, did not mark."""
    kind = recall_of(track)
    if kind is None:
        return []
    read = Label.objects.filter(
        target__corpus=track.corpus_id, target__kind="document", source__in=Label.OF_DOCUMENTS
    )
    numbers = sorted(set(read.values_list("target__document", flat=True)))
    chosen = DICE.sample(numbers, min(DOCUMENTS, len(numbers)))
    places = [
        place for row in Document.objects.filter(pk__in=chosen) for place in kind.near_pairs(row)
    ]
    targets = set(targets_at(track.corpus, places).values())
    marked = Label.objects.filter(target__in=targets).values_list("target", flat=True)
    return sorted(targets - set(marked))
