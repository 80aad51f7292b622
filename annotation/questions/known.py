"""Finds questions whose answer is known from a judgment of an expert or an import, for gold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.payload import mentions_beside
from annotation.models import UNSETTLED, Question
from annotation.questions.ask import terms_of
from kbpo.instances.merge import values_of
from kbpo.instances.models import Label, Target
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

SURE = ("expert", "import")


def imported_questions(track: Track, limit: int = 20) -> list[Question]:
    """Return unsaved questions about targets that were judged elsewhere and not asked here, in
    random order.
    """
    judged = Label.objects.filter(source__in=SURE).values("target")
    free = _unasked_targets(track, Target.objects.filter(pk__in=judged)).order_by("?")
    return questions_about(track, list(free.values_list("pk", flat=True)[:limit]), made=False)


def questions_about(track: Track, targets: Sequence[int], *, made: bool = True) -> list[Question]:
    """Return unsaved questions about these targets as the track would ask them. With `made=False`
    no target is stored either.
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
    """Return whether gold can be made of a target: nobody was asked about it on this track."""
    return _unasked_targets(track, Target.objects.filter(pk=target)).exists()


def known_answer(question: Question) -> dict[str, Any] | None:
    """Return the answer that judgments from elsewhere give, as the form would send it, with unknown
    steps left open; None if they give none.
    """
    interface = interface_of(question.interface)
    targets = [question.target_id, *mentions_beside(question.payload)]
    rule = kind_of(question.track).merge
    values = {target: value for target, value, _ in values_of(targets, rule) if value}
    return interface.answer_of(question, values)


def _unasked_targets(track: Track, targets: QuerySet[Target]) -> QuerySet[Target]:
    """Return those of the targets that the track can ask about, that nobody was asked about there,
    and that are not gold.
    """
    asked = Question.objects.filter(
        Q(status__in=[*UNSETTLED, "settled"]) | Q(gold__retired_at=None, status="gold")
    )
    kind = kind_of(track)
    return targets.filter(corpus=track.corpus_id, kind=kind.target_kind).exclude(
        pk__in=asked.filter(track=track).values("target")
    )
