"""Asks experts about judgments, blind, and stores what they say. Nothing of it becomes a label.

There are two kinds. *Checks* are drawn with recorded chances (`kbpo.experts.draw`): they tell how
often the crowd errs, and correct scores. *Disputes* are raised against judgments that hurt whoever
raises them, so they correct nothing: the expert's answer is shown beside the judgment. Both stand
in one queue in random order, so that nobody who answers can tell which is which.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from annotation.interfaces.registry import interface_of, reading
from annotation.models import Question, Response
from kbpo.accounts.audit import note as log
from kbpo.accounts.models import User
from kbpo.accounts.notices import tell
from kbpo.experts.draw import end_if_done
from kbpo.experts.queue import Outcome, close, locked, may_answer
from kbpo.instances.merge import RATINGS, merged
from kbpo.instances.models import Label
from kbpo.queue import nudge, one_at_a_time
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

DROP = "drop from queue"
LEAST_NOTE, MOST_NOTE = 10, 2000  # characters
OPEN_A_TEAM = 100
DICE = random.SystemRandom()
NEAR = 0.25
"""An expert agrees with ratings if under each criterion the two lie no farther apart than this
share of its scale"""

BROUGHT = (
    "This was judged elsewhere and brought here. You can dispute what people judged here, not that."
)
"""Why nobody can dispute what was imported"""


class CannotAsk(ValueError):
    """A judgment that experts are not asked about; the text is a sentence for whoever wants to."""


@transaction.atomic
def dispute(submission: Submission, target: int, who: User, note: str) -> ExpertCheck:
    """Return the entry of a researcher who thinks that a judgment is wrong; one at a time for a
    judgment of a run. What teams dispute of each other's is not told: each has its own entry, and
    one answer closes all (`answer`). Raises CannotAsk.
    """
    note = note.replace("\x00", "").strip()
    if len(note) < LEAST_NOTE:
        raise CannotAsk(f"Say what is wrong with the judgment, in {LEAST_NOTE} characters or more.")
    one_at_a_time("annotation.dispute", submission.track_id)
    mine = ExpertCheck.objects.filter(
        kind="dispute", status="open", submission__team=submission.team_id
    )
    if mine.count() >= OPEN_A_TEAM:
        raise CannotAsk(
            f"Your team has {OPEN_A_TEAM} open disputes. Wait until some are looked at."
        )
    asked = _asked_about(submission.track, target)
    if ExpertCheck.objects.filter(
        submission=submission, target=target, kind="dispute", status="open"
    ).exists():
        raise CannotAsk("An expert is asked about this judgment already.")
    made = ExpertCheck.objects.create(
        track=submission.track,
        kind="dispute",
        order=DICE.random(),
        note=note[:MOST_NOTE],
        raised_by=who,
        submission=submission,
        **asked,
    )
    log("dispute", f"target:{target}", who=who, why=note, track=submission.track.slug)
    return made


def _asked_about(track: Track, target: int) -> dict[str, Any]:
    """Return the question about a target that an expert is asked, as fields of a check. Raises
    CannotAsk if no people judged it, or this kind of track has nothing for experts.
    """
    if why_not := kind_of(track).words.unchecked:
        raise CannotAsk(why_not)
    labels = Label.objects.filter(target=target).exclude(value={})
    asked: Question | QuestionDraft | None = asked_alone(target)
    if asked is None and labels.filter(source="document").exists():
        asked = next(iter(kind_of(track).questions([target], None)), None)
    if asked is not None:
        return {
            "target_id": asked.target_id,
            "interface": asked.interface,
            "payload": asked.payload,
            "shown": asked.shown,
        }
    if labels.filter(source="import", value__has_key=RATINGS).exists():
        raise CannotAsk(BROUGHT)
    raise CannotAsk("No people judged this: it comes from the gold standard.")


def asked_alone(target: int) -> Question | None:
    """Return the latest settled question that asked people about a target by itself; None if they
    marked it only in a document that they read whole, or never judged it.
    """
    questions = Question.objects.filter(target=target, status="settled", gold=None)
    return questions.exclude(interface__in=reading()).order_by("-pk").first()


def question_of(check: ExpertCheck) -> Question:
    """Return the question that a check asks, as its interface takes it; not to be stored."""
    return Question(
        track_id=check.track_id,
        target=check.target,
        interface=check.interface,
        payload=check.payload,
        shown=check.shown,
        reward=Decimal("0.00"),
        seconds=interface_of(check.interface).terms.seconds,
    )


def judged_by(expert: User) -> Q:
    """Return the condition that an expert judged a target as one of the crowd, alone or in a
    document that they read whole.
    """
    responses = Response.objects.filter(assignment__worker__user=expert)
    read = responses.filter(target__kind="document").values("target__document")
    return Q(target__in=responses.values("target")) | Q(target__document__in=read)


def answer(row: ExpertCheck, raw: dict[str, Any], expert: User) -> Outcome:
    """Return what became of an expert's answer as the form sent it. Raises BadAnswer."""
    return store(row, expert, raw, answered_by(question_of(row), raw))


@transaction.atomic
def store(row: ExpertCheck, expert: User, raw: dict[str, Any], values: dict[int, Any]) -> Outcome:
    """Return what became of an expert's answer; empty `values`: it cannot be answered. It also
    closes the open disputes about the same target; the last answer of a round ends the round.
    """
    one_at_a_time("draw checks", row.track_id)
    mine = locked(row)
    outcome = may_answer(mine, expert, judged_by(expert))
    if mine is None or outcome is not Outcome.STORED:
        return outcome
    disputes_too = ExpertCheck.objects.select_for_update(of=("self",)).filter(
        track=row.track, target=row.target_id, kind="dispute", status="open"
    )
    agreed = agrees(question_of(mine), values)
    for entry in [mine, *disputes_too.exclude(pk=row.pk)]:
        close(entry, raw, values, expert, agrees=agreed)
        _tell_disputant(entry)
    log(
        "adjudicate",
        f"target:{row.target_id}",
        who=expert,
        track=row.track.slug,
        after="agrees" if agreed else "says otherwise",
    )
    if mine.round is not None:
        end_if_done(mine.round)
        nudge("estimate")
    return outcome


def _tell_disputant(row: ExpertCheck) -> None:
    """Tell whoever disputed a judgment what became of it, unless they have left the team that may
    see it.
    """
    disputant, submission = row.raised_by, row.submission
    if row.kind != "dispute" or disputant is None or submission is None:
        return
    if not (disputant.is_staff or submission.team.members.filter(pk=disputant.pk).exists()):
        return
    run = f"{submission.own_name} on {row.track.name}"
    subject = f"An expert looked at a judgment of {run}"
    became = f"An expert {'agrees with it' if row.agrees else 'says otherwise'}."
    if row.status == "dropped":
        subject = f"A dispute about {run} was put aside"
        became = f"It was put aside, and no expert looks at it: {row.remark}"
    page = f"{settings.SITE_URL}{page_of(row)}"
    tell(
        [disputant],
        "dispute",
        subject,
        f"You doubted a judgment of {run}. {became}\n\n{page}",
        submission={"id": submission.pk, "name": submission.name, "track": row.track.slug},
        page=page,
        agrees=row.agrees,
    )


def page_of(row: ExpertCheck) -> str:
    """Return where on the site the team reads what became of a dispute: at the prediction, the
    first one of those that the judgment is about; where all names of a document were asked about,
    at all that the run says of it.
    """
    predicted = Prediction.objects.filter(
        submission=row.submission_id, instance__target=row.target_id
    )
    address = f"/submissions/{row.submission_id}/explore/"
    prediction = predicted.order_by("pk").values_list("pk", flat=True).first()
    if prediction is not None:
        return f"{address}?p={prediction}"
    return f"{address}?{urlencode({'document': row.target.its_document.key})}"


def answered_by(question: Question, raw: dict[str, Any]) -> dict[int, Any]:
    """Return what one person's answer says of each target; empty if it is a flag. Raises
    BadAnswer.
    """
    interface = interface_of(question.interface)
    responses = [
        Response(target_id=response.target_id, criterion=response.criterion, value=response.value)
        for response in interface.parse(question, raw)
    ]
    return {
        label.target_id: label.value
        for label in interface.aggregate(question, responses)
        if label.value
    }


def agrees(question: Question, values: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether an expert's values say of a question's target, and of what it settles besides,
    what counts now (`Track.agrees`).
    """
    if question.target_id not in values:
        return False  # a flag, where people had an answer
    kind, marked = kind_of(question.track), asked_alone(question.target_id) is None
    for target, value in values.items():
        now = merged(Label.objects.filter(target=target), kind.merge)
        if any(abs(ours - mine) > NEAR for ours, mine in rated(now, value).values()):
            return False
        if not kind.agrees(question.target, dict(value), now, marked=marked):
            return False
    return True


def rated(now: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Criterion -> the mean of people's ratings, and the expert's, of those that both rated."""
    people, expert = now.get(RATINGS, {}), value.get(RATINGS, {})
    return {
        criterion: (sum(people[criterion]) / len(people[criterion]), of_expert[0])
        for criterion, of_expert in expert.items()
        if people.get(criterion)
    }


@transaction.atomic
def drop(row: ExpertCheck, who: User, why: str) -> bool:
    """Return whether an open entry was taken off the queue; whoever disputed a judgment is told
    why. Checks stay: dropping them would be a choice. Raises CannotAsk, also without a reason.
    """
    if row.kind == "check":
        raise CannotAsk(
            "A judgment that was drawn at random stays: taking some off would make the rest no"
            " random draw."
        )
    if not why.strip():
        raise CannotAsk("Nothing was dropped: say why nobody needs to look at it.")
    done = ExpertCheck.objects.filter(pk=row.pk, status="open").update(
        status="dropped", remark=why[:MOST_NOTE]
    )
    if done:
        place, before = f"target:{row.target_id}", f"{row.kind} {row.pk}"
        log(DROP, place, who=who, why=why, before=before, track=row.track.slug)
        row.refresh_from_db(fields=["status", "remark"])
        _tell_disputant(row)
    return bool(done)


def answered_with(row: ExpertCheck) -> QuerySet[ExpertCheck]:
    """Return the disputes that an expert's answer closed beside an entry: of other teams."""
    same = ExpertCheck.objects.filter(track=row.track, target=row.target_id, kind="dispute")
    answered = same.filter(status="answered", expert=row.expert, raw=row.raw)
    return answered.exclude(pk=row.pk).order_by("pk")


def remark(row: ExpertCheck, who: User, text: str) -> None:
    """Store what an expert writes after seeing the votes, for all who may see the judgment."""
    remark_text = text.replace("\x00", "").strip()[:MOST_NOTE]
    ExpertCheck.objects.filter(pk=row.pk, status="answered").update(remark=remark_text)
    answered_with(row).update(remark=remark_text)
    log("remark", f"target:{row.target_id}", who=who, why=text, track=row.track.slug)


def expert_answers(track: Track, limit: int = 100) -> list[ExpertCheck]:
    """Return what experts answered, the latest first."""
    adjudications = ExpertCheck.objects.filter(track=track, status="answered").select_related(
        "target", "expert", "raised_by"
    )
    return list(adjudications.order_by("-answered_at", "-pk")[:limit])


def disputes(track: Track) -> list[ExpertCheck]:
    """Open disputes, the oldest first: for admins who do not answer them themselves."""
    adjudications = ExpertCheck.objects.filter(track=track, status="open", kind="dispute")
    return list(
        adjudications.select_related("target", "raised_by", "submission__team").order_by("pk")[:100]
    )


def of_submission(submission: Submission) -> dict[int, ExpertCheck]:
    """target -> the latest dispute that a submission's team raised about it."""
    adjudications = ExpertCheck.objects.filter(kind="dispute", submission=submission).order_by("pk")
    return {row.target_id: row for row in adjudications}
