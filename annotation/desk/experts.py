"""Asks experts about judgments, blind, and stores their answers, none of which becomes a label.

There are two kinds. *Checks* are drawn with recorded chances (`kbpo.experts.draw`): they estimate
how often the crowd errs, and correct scores. *Disputes* are raised by researchers against judgments
that hurt their runs, so they correct nothing: the expert's answer is shown next to the judgment.
Both are in one queue in random order, so that experts cannot tell which is which.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from annotation.interfaces.base import parts_by_target as held_by
from annotation.interfaces.registry import document_interfaces, interface_by_name
from annotation.interfaces.shared.payload import mentions_of_pair, sentences_by_predicate
from annotation.models import Question, Response
from annotation.quality.describe import question_title
from kbpo.accounts.audit import write_audit_entry as log
from kbpo.accounts.models import User
from kbpo.accounts.notices import notify
from kbpo.experts.draw import end_if_done
from kbpo.experts.queue import Outcome, answer_permission, lock_check, store_answer
from kbpo.instances.merge import RATINGS, merged_value, parts_that_hold
from kbpo.instances.models import Label
from kbpo.queue import take_transaction_lock, wake_step
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.measures import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.recall import RELATION, kind_with_recall_or_none
from kbpo.tracks.registry import kind_of

DROP = "drop from queue"
LEAST_NOTE, MOST_NOTE = 10, 2000  # characters
OPEN_A_TEAM = 100
DICE = random.SystemRandom()
NEAR = 0.25
"""Greatest difference between the ratings of an expert and the crowd that counts as agreement, as a
share of a criterion's scale"""

BROUGHT = "This judgment was imported. Only judgments made here can be disputed."
"""Refusal of a dispute about an imported judgment"""


class CannotAsk(ValueError):
    """Raised for a judgment that experts are not asked about; the text is a sentence for
    the user.
    """


@transaction.atomic
def store_dispute(submission: Submission, target: int, who: User, note: str) -> ExpertCheck:
    """Store that a researcher disputes a judgment, and return the entry. Each run may have one open
    dispute about a judgment. Disputes of other teams are not shown; one answer closes all of them
    (`store_expert_answer`). Raises CannotAsk.
    """
    note = note.replace("\x00", "").strip()
    if len(note) < LEAST_NOTE:
        raise CannotAsk(f"Say what is wrong with the judgment, in {LEAST_NOTE} characters or more.")
    take_transaction_lock("annotation.dispute", submission.track_id)
    mine = ExpertCheck.objects.filter(
        kind="dispute", status="open", submission__team=submission.team_id
    )
    if mine.count() >= OPEN_A_TEAM:
        raise CannotAsk(
            f"Your team has {OPEN_A_TEAM} open disputes. Wait until some are looked at."
        )
    asked = _check_fields(submission.track, target)
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


def _check_fields(track: Track, target: int) -> dict[str, Any]:
    """Return the question about a target for an expert, as fields of a check. Raises CannotAsk if
    no people judged the target, or the kind of track has no expert checks.
    """
    if why_not := kind_of(track).words.unchecked:
        raise CannotAsk(why_not)
    labels = Label.objects.filter(target=target).exclude(value={})
    asked: Question | QuestionDraft | None = question_about_target(target)
    if asked is None and labels.filter(source="document").exists():
        asked = next(iter(kind_of(track).draft_questions([target], None)), None)
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


def question_about_target(target: int) -> Question | None:
    """Return the latest question that asked about a target alone and has a label; None if people
    marked the target only while reading a whole document, or never judged it.
    """
    questions = Question.objects.filter(target=target, status="settled", gold=None)
    return questions.exclude(interface__in=document_interfaces()).order_by("-pk").first()


def question_from_check(check: ExpertCheck) -> Question:
    """Return an unsaved question with the contents of a check."""
    return Question(
        track_id=check.track_id,
        target=check.target,
        interface=check.interface,
        payload=check.payload,
        shown=check.shown,
        reward=Decimal("0.00"),
        seconds=interface_by_name(check.interface).terms.seconds,
    )


def judged_by_filter(expert: User) -> Q:
    """Return the condition that an expert judged a target as an annotator, in a question about the
    target or about its document.
    """
    responses = Response.objects.filter(assignment__worker__user=expert)
    read = responses.filter(target__kind="document").values("target__document")
    return Q(target__in=responses.values("target")) | Q(target__document__in=read)


def parse_and_store_answer(check: ExpertCheck, raw: dict[str, Any], expert: User) -> Outcome:
    """Parse and store an expert's answer, and return the outcome. Raises BadAnswer."""
    return store_expert_answer(
        check, expert, raw, parse_expert_answer(question_from_check(check), raw)
    )


@transaction.atomic
def store_expert_answer(
    check: ExpertCheck, expert: User, raw: dict[str, Any], values: dict[int, Any]
) -> Outcome:
    """Store an expert's answer and return the outcome; empty `values` mean that the question cannot
    be answered. Open disputes about the same target are closed too, and the last answer of a round
    ends the round.
    """
    take_transaction_lock("draw checks", check.track_id)
    mine = lock_check(check)
    outcome = answer_permission(mine, expert, judged_by_filter(expert))
    if mine is None or outcome is not Outcome.STORED:
        return outcome
    disputes_too = ExpertCheck.objects.select_for_update(of=("self",)).filter(
        track=check.track, target=check.target_id, kind="dispute", status="open"
    )
    agreed = agrees_with_labels(question_from_check(mine), values)
    for entry in [mine, *disputes_too.exclude(pk=check.pk)]:
        store_answer(entry, raw, values, expert, agrees=agreed)
        _notify_disputant(entry)
    about, after = f"target:{check.target_id}", "agrees" if agreed else "disagrees"
    log("adjudicate", about, who=expert, track=check.track.slug, after=after)
    if mine.round is not None:
        end_if_done(mine.round)
        wake_step("estimate")
    return outcome


def _notify_disputant(check: ExpertCheck) -> None:
    """Mail the result of a dispute to its author, if they are still in the team."""
    disputant, submission = check.raised_by, check.submission
    if check.kind != "dispute" or disputant is None or submission is None:
        return
    if not (disputant.is_staff or submission.team.members.filter(pk=disputant.pk).exists()):
        return
    run = f"{submission.own_name} on {check.track.name}"
    subject = f"An expert checked a judgment of {run}"
    became = f"An expert {'agrees with it' if check.agrees else 'disagrees'}."
    if check.status == "dropped":
        subject = f"A dispute about {run} was dismissed"
        became = f"It was dismissed, and no expert judges it: {check.remark}"
    page = f"{settings.SITE_URL}{dispute_result_path(check)}"
    notify(
        [disputant],
        "dispute",
        subject,
        f"You disputed a judgment of {run}. {became}\n\n{page}",
        submission={"id": submission.pk, "name": submission.name, "track": check.track.slug},
        page=page,
        agrees=check.agrees,
    )


def dispute_result_path(check: ExpertCheck) -> str:
    """Return the path of the page on which the team reads the result of a dispute: the page of the
    first prediction that the judgment is about, or else of the document.
    """
    predicted = Prediction.objects.filter(
        submission=check.submission_id, instance__target=check.target_id
    )
    address = f"/submissions/{check.submission_id}/explore/"
    prediction = predicted.order_by("pk").values_list("pk", flat=True).first()
    if prediction is not None:
        return f"{address}?p={prediction}"
    return f"{address}?{urlencode({'document': check.target.document_or_error.key})}"


def parse_expert_answer(question: Question, raw: dict[str, Any]) -> dict[int, Any]:
    """Return target -> value of one person's answer; empty if the question was flagged. Raises
    BadAnswer.
    """
    interface = interface_by_name(question.interface)
    responses = [
        Response(target_id=response.target_id, criterion=response.criterion, value=response.value)
        for response in interface.parse(question, raw)
    ]
    labels = interface.aggregate(question, responses)
    return {label.target_id: label.value for label in labels if label.value}


def agrees_with_labels(question: Question, values: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether an expert's values agree with the current labels of a question's targets
    (`Track.agrees_with_expert`).
    """
    if question.target_id not in values:
        return False  # the expert flagged what others answered
    kind, marked = kind_of(question.track), question_about_target(question.target_id) is None
    for target, value in values.items():
        now = merged_value(Label.objects.filter(target=target), kind.merge_statements)
        if any(
            abs(ours - mine) > NEAR for ours, mine in crowd_and_expert_ratings(now, value).values()
        ):
            return False
        if not kind.agrees_with_expert(question.target, dict(value), now, marked=marked):
            return False
    return True


def crowd_and_expert_ratings(
    current_value: Mapping[str, Any], value: Mapping[str, Any]
) -> dict[str, tuple[float, float]]:
    """Return criterion -> the mean rating of the crowd and the rating of the expert, where both
    exist.
    """
    people, expert = current_value.get(RATINGS, {}), value.get(RATINGS, {})
    return {
        criterion: (sum(people[criterion]) / len(people[criterion]), of_expert[0])
        for criterion, of_expert in expert.items()
        if people.get(criterion)
    }


@transaction.atomic
def drop_dispute(check: ExpertCheck, who: User, why: str) -> bool:
    """Drop an open dispute, tell its author why, and return whether it was open. Randomly drawn
    checks cannot be dropped, because the remaining checks would not be a random sample. Raises
    CannotAsk for these, and if no reason is given.
    """
    if check.kind == "check":
        raise CannotAsk(
            "A randomly drawn check cannot be dismissed: the others would not be a random sample."
        )
    if not why.strip():
        raise CannotAsk("Nothing was dismissed: give a reason.")
    done = ExpertCheck.objects.filter(pk=check.pk, status="open").update(
        status="dropped", remark=why[:MOST_NOTE]
    )
    if done:
        place, before = f"target:{check.target_id}", f"{check.kind} {check.pk}"
        log(DROP, place, who=who, why=why, before=before, track=check.track.slug)
        check.refresh_from_db(fields=["status", "remark"])
        _notify_disputant(check)
    return bool(done)


def other_disputes_closed_by(check: ExpertCheck) -> QuerySet[ExpertCheck]:
    """Return the disputes of other teams that the answer to an entry closed."""
    same = ExpertCheck.objects.filter(track=check.track, target=check.target_id, kind="dispute")
    answered = same.filter(status="answered", expert=check.expert, raw=check.raw)
    return answered.exclude(pk=check.pk).order_by("pk")


def store_remark(check: ExpertCheck, who: User, text: str) -> None:
    """Store an expert's remark made after seeing the votes, for all who may see the judgment."""
    remark_text = text.replace("\x00", "").strip()[:MOST_NOTE]
    ExpertCheck.objects.filter(pk=check.pk, status="answered").update(remark=remark_text)
    other_disputes_closed_by(check).update(remark=remark_text)
    log("remark", f"target:{check.target_id}", who=who, why=text, track=check.track.slug)


def expert_answers(track: Track, limit: int = 100) -> list[ExpertCheck]:
    """Return the answers of experts, the latest first."""
    adjudications = ExpertCheck.objects.filter(track=track, status="answered").select_related(
        "target", "expert", "raised_by"
    )
    return list(adjudications.order_by("-answered_at", "-pk")[:limit])


def open_disputes(track: Track) -> list[ExpertCheck]:
    """Return the open disputes, the oldest first."""
    adjudications = ExpertCheck.objects.filter(track=track, status="open", kind="dispute")
    return list(
        adjudications.select_related("target", "raised_by", "submission__team").order_by("pk")[:100]
    )


def latest_disputes_by_target(submission: Submission) -> dict[int, ExpertCheck]:
    """Return target -> the latest dispute of a submission's team about it."""
    adjudications = ExpertCheck.objects.filter(kind="dispute", submission=submission).order_by("pk")
    return {row.target_id: row for row in adjudications}


@dataclass(frozen=True)
class Ratings:
    """The ratings of a text under a criterion, on its scale: the crowd's, their mean, and the
    expert's.
    """

    label: str
    each: list[float]
    now: float
    expert: float | None
    near: bool

    @classmethod
    def on_criterion_scale(
        cls, criterion: Criterion, ratings: Sequence[float], both: tuple[float, float] | None
    ) -> Ratings:
        """Convert ratings between 0 and 1 to the scale of the criterion."""
        scaled = [criterion.to_scale(rating) for rating in ratings]
        expert = criterion.to_scale(both[1]) if both else None
        near = both is None or abs(both[0] - both[1]) <= NEAR
        return cls(criterion.label, scaled, sum(scaled) / len(scaled), expert, near)


@dataclass(frozen=True)
class Trail:
    """An answered check or dispute, with the crowd's answers."""

    row: ExpertCheck
    disputes: list[ExpertCheck]
    """Disputes of other teams that the same answer closed"""
    title: str
    asked: int | None
    """The question that people answered about the target alone, if there was one"""
    parts: list[tuple[str, int, bool | None, bool]]
    """(part, votes for it, whether it holds by the current label, whether it holds by the expert);
    None where readers of the whole document did not mark the part"""
    voters: int
    flagged: bool
    """Whether the expert flagged that the question cannot be answered"""
    sentences: dict[str, str]
    """part -> its sentence"""
    links: list[tuple[str, str, str, bool]]
    """(name, current referent, referent by the expert, whether the two are the same)"""
    ratings: list[Ratings]
    """The ratings of a text under each criterion"""

    @property
    def rows(self) -> list[tuple[str, int, bool | None, bool]]:
        """Return, for each part (a directed relation), its sentence, the number of people who
        affirmed it, and whether it holds by the labels and by the expert.
        """
        return [(self.sentences.get(part, part), n, now, says) for part, n, now, says in self.parts]


def load_trail(track: Track, pk: int) -> Trail | None:
    """Return the trail of an expert check (votes, answer, disputes); None if there is no such check
    or it is open.
    """
    adjudications = ExpertCheck.objects.filter(track=track, pk=pk).exclude(status="open")
    people = ("raised_by", "expert", "submission__team", "round")
    entry = adjudications.select_related("track", "target__document", *people).first()
    if entry is None:
        return None
    asked = question_about_target(entry.target_id)
    votes, voters = _votes_by_part(entry, asked)
    kind = kind_of(track)
    value = merged_value(Label.objects.filter(target=entry.target_id), kind.merge_statements)
    expert = (entry.value or {}).get(str(entry.target_id), {})
    now, says = parts_that_hold(value), parts_that_hold(expert)
    people, both = value.get(RATINGS, {}), crowd_and_expert_ratings(value, expert)
    ratings = [
        Ratings.on_criterion_scale(criterion, people[criterion.name], both.get(criterion.name))
        for criterion in kind.measures.criteria
        if people.get(criterion.name)
    ]
    parts = []
    for part in entry.shown:
        if now.get(part) or says.get(part) or votes[part]:
            parts.append((part, votes[part], now.get(part), says.get(part, False)))
    return Trail(
        entry,
        list(other_disputes_closed_by(entry).select_related("raised_by", "submission__team")),
        question_title(question_from_check(entry)),
        asked.pk if asked else None,
        parts,
        voters,
        entry.status == "answered" and not expert,
        sentences_by_predicate(entry.payload),
        _compared_referents(entry),
        ratings,
    )


def _votes_by_part(check: ExpertCheck, asked: Question | None) -> tuple[Counter[str], int]:
    """Return part (a directed relation) -> number of people who affirmed it, and the number of
    people asked; empty for texts.
    """
    if kind_with_recall_or_none(check.track) is None:
        return Counter(), 0  # people rated a text, whatever its questions are called
    # Questions about all relations of the target's document, if it was not asked about alone
    readings = Question.objects.filter(
        track=check.track,
        interface__in=document_interfaces(RELATION),
        status="settled",
        gold=None,
        target__document=check.target.document_id,
    )
    held = []
    for question in readings if asked is None else [asked]:
        criterion = interface_by_name(question.interface).criterion
        responses = Response.objects.filter(question=question, criterion=criterion, counts=True)
        for target, value in responses.order_by("pk").values_list("target", "value"):
            about = check.target_id if asked is not None else target
            held.append(set(held_by(about, value).get(str(check.target_id), ())))
    if held:
        return Counter(part for parts in held for part in parts), len(held)
    labels = Label.objects.filter(target=check.target_id, source="document").exclude(value={})
    if (read := labels.order_by("-pk").first()) is None:
        return Counter(), 0
    return Counter(read.value.get("votes", {})), read.n or 0


def _compared_referents(check: ExpertCheck) -> list[tuple[str, str, str, bool]]:
    """Return the referents of both mentions by the current labels and by the expert, where both
    exist.
    """
    kind, links = kind_of(check.track), []
    for target, words in mentions_of_pair(check.payload).items():
        now = merged_value(Label.objects.filter(target=target), kind.merge_statements)
        says = (check.value or {}).get(str(target), {})
        if (referred := kind.compare_references(check.target, now, says)) is not None:
            links.append((words, *referred))
    return links
