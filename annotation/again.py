"""Adds settled questions up again when answers are left out or count again, and asks more where too few are left.

Labels are only appended, and what experts said stands above them as before. A question of which no answer is left, or
whose answers are divided now, goes back to people, as far as its payer's reservation reaches; what it had said counts
until they answer. Where nobody can be asked any more it stays so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from annotation.add_up import AddedUp, added_up, counting, to_record
from annotation.batch import MOST_ANSWERS
from annotation.interfaces.base import AggregatedLabel
from annotation.interfaces.registry import interface_of
from annotation.models import ANSWERED, HIT, Assignment, Policy, Question, Response
from annotation.platforms.registry import local_names
from annotation.publish import committed, one_publisher
from annotation.quality import MET_BEFORE, hold_again
from annotation.read_documents import MENTIONS, RELATIONS
from annotation.revise import CAP, MODEL, add_up_with_model
from annotation.votes import ASKED
from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.instances.merge import root
from kbpo.instances.record import NewLabel, record
from kbpo.money.spend import balance
from kbpo.queue import nudge
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

ASKED_AGAIN = "Answers to it were left out: more are asked for."


@dataclass(frozen=True)
class Again:
    """What became of settled questions whose answers changed."""

    changed: int = 0
    """Labels that say something else now"""
    asked: int = 0
    """Questions that went back to people; their labels stay until somebody answers"""
    stayed: int = 0
    """Labels' questions that stay as they were: too few answers are left, and nobody can be asked"""

    def __str__(self) -> str:
        found = [f"{self.changed} label{'' if self.changed == 1 else 's'} changed"]
        if self.asked:
            found.append(f"{self.asked} question{'' if self.asked == 1 else 's'} asked again")
        if self.stayed:
            found.append(f"{self.stayed} stay{'s' if self.stayed == 1 else ''} as before: nobody can be asked any more")
        return ", ".join(found)


def lock(questions: Collection[int]) -> list[Question]:
    """These questions, locked in the order of their numbers; before them the money of whoever pays for them, as where
    they are published: so `add_up_again` can promise it."""
    rows = Question.objects.filter(pk__in=questions)
    for payer in sorted(set(rows.values_list("payer", flat=True))):
        one_publisher(payer)
    return list(rows.select_for_update(of=("self",)).select_related("track", "target").order_by("pk"))


def add_up_again(questions: Sequence[Question], why: str, who: User | None = None) -> Again:
    """What became of those of these questions that are settled. The caller holds their locks (`lock`)."""
    settled = [one for one in questions if one.status == "settled"]
    modelled = set(Policy.objects.filter(aggregation=MODEL, track__in=[one.track_id for one in settled])
                   .values_list("track", flat=True))  # fmt: skip
    left, missed = counting(settled), _with_answers_left_out(settled)
    found: dict[Question, list[AggregatedLabel]] = {}
    short: list[Question] = []
    for question in settled:
        labels = added_up(question, left.get(question.pk, []))
        weighed = question.track_id in modelled or question.pk not in missed
        if _too_few(question, left.get(question.pk, []), labels, weighed=weighed):
            short.append(question)
        else:
            found[question] = labels
    made = _without_lost_names(found, to_record(found, modelled))
    record(made.labels)
    _store_facts(found, made.labels)
    changed = sum(made.changes) + _by_model(settled, modelled)
    _hold_again(settled)
    asked = _ask_again(short, left)
    result = Again(changed, asked, len(short) - asked)
    _note(settled, result, why, who)
    return result


def _with_answers_left_out(questions: Sequence[Question]) -> set[int]:
    """The questions some of whose answers do not count, though they once did."""
    rows = Response.objects.filter(question__in=questions).exclude(excluded_reason__in=["", MET_BEFORE])
    return set(rows.values_list("question", flat=True))


def _too_few(question: Question, left: Sequence[Response], labels: Sequence[AggregatedLabel], *, weighed: bool) -> bool:
    """Whether the answers that are left say nothing: there are none, most could not read a whole document, or as many
    say the one as the other; unless that is `weighed`: by a model, or since all that were given do count."""
    if not labels or (question.target.kind == "document" and not labels[0].value):
        return True
    return not weighed and interface_of(question.interface).divided(question, left)


def _without_lost_names(found: Mapping[Question, Sequence[AggregatedLabel]], made: AddedUp) -> AddedUp:
    """The labels without those that take names of a document back whose relations were asked: people read them."""
    names = [one for one in found if one.interface == MENTIONS]
    rows = Question.objects.filter(track__in=[one.track_id for one in names], interface=RELATIONS)
    read = set(rows.filter(target__in=[one.target_id for one in names]).values_list("track", "target"))
    kept = {one.origin for one in names if (one.track_id, one.target_id) in read}
    pairs = [(label, change) for label, change in zip(made.labels, made.changes, strict=True)
             if label.value or root(label.origin) not in kept]  # fmt: skip
    return AddedUp([label for label, _ in pairs], [change for _, change in pairs])


def _store_facts(found: Mapping[Question, Sequence[AggregatedLabel]], labels: Sequence[NewLabel]) -> None:
    """Nothing; what is marked now in documents that were read whole are instances."""
    tracks = {question.origin: question.track for question in found if question.interface == RELATIONS}
    for origin in sorted({one.origin for one in labels}):
        if (track := tracks.get(root(origin))) is not None:
            kind_of(track).store_facts(origin)


def _by_model(settled: Sequence[Question], modelled: Collection[int]) -> int:
    """How many labels changed on tracks that add up by a model: all answers there weigh differently now."""
    tracks = {one.track_id for one in settled if one.interface in ASKED} & set(modelled)
    return sum(add_up_with_model(track) for track in Track.objects.filter(pk__in=tracks).order_by("pk"))


def _hold_again(settled: Sequence[Question]) -> None:
    """Nothing; the answers to these questions are held anew against the others that count, each by all that it was an
    answer to."""
    answers = Response.objects.filter(question__in=settled, excluded_reason="").values("assignment")
    asked = Question.objects.filter(hits__assignments__in=answers, status="settled").order_by("pk").distinct()
    found = counting(asked)
    hold_again({question: found[question.pk] for question in asked})


def _ask_again(questions: Sequence[Question], left: Mapping[int, Sequence[Response]]) -> int:
    """How many of these locked questions went back to people, in their order, as far as the money reaches."""
    money: dict[str, Decimal] = {}
    asked = 0
    for question in sorted(questions, key=lambda one: (one.order, one.pk)):
        if question.payer not in money:
            money[question.payer] = balance(purpose=question.payer).open - committed(question.payer)
        places = _places(question, len({one.assignment_id for one in left.get(question.pk, ())}), money[question.payer])
        if places:
            _offer(question, places)
            money[question.payer] -= question.price * places
            asked += 1
    if asked:
        nudge("publish")
    return asked


def _places(question: Question, left: int, money: Decimal) -> int:
    """How many more may answer a question: one where people are divided, as many as the track asks where no answer is
    left; none of a whole document, on a closed track, beyond the cap, or without the money."""
    if question.target.kind == "document" or question.track.status == Track.Status.CLOSED or left >= CAP:
        return 0
    wanted = min(1 if left else question.track.workers_per_question, MOST_ANSWERS - _answers(question))
    return max(0, min(wanted, int(money / question.price)) if question.price else wanted)


def _answers(question: Question) -> int:
    return Assignment.objects.filter(hit__questions=question, status__in=ANSWERED).distinct().count()


def _offer(question: Question, places: int) -> None:
    """Nothing; a locked question is published again, in a HIT of its own. Free places of its old ones stay shut."""
    HIT.objects.filter(questions=question, status="closed", platform__in=local_names()).update(status="expired")
    hit = HIT.objects.create(
        status="intent", track=question.track, platform=question.track.platform, order=question.order,
        max_assignments=places, reward=question.reward,
    )  # fmt: skip
    hit.questions.add(question)
    question.move("published", ASKED_AGAIN, answers_wanted=_answers(question) + places)


def _note(settled: Sequence[Question], result: Again, why: str, who: User | None) -> None:
    """Nothing; the log of each track says that its labels were added up again, and what came of it in all."""
    if result != Again():
        for track in sorted({one.track.slug for one in settled}):
            note("add up again", f"track:{track}", who=who, why=why, after=str(result), track=track)
