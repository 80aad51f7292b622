"""Asks experts about judgments, blind, and keeps the trail. What an expert says here never becomes
a label.

Disputes are raised against judgments that hurt whoever raises them, and people are divided about
the hard ones: to correct just those would move every score by whom it was that asked. So the
estimates keep the crowd's answer, and the expert's stands beside it, for the team that may see the
judgment. Judgments drawn at random, each with its probability, go through the same queue in random
order, so that nobody who answers can tell which is which; from them alone we tell how often the
crowd errs (`error_rate`). Correcting scores is for expert checks, drawn with probabilities as well.

Experts are asked about texts, or about pairs, be it that people judged them alone or marked them in
a document that they read whole, and about all names of such a document (`judged`); each kind is
drawn, and its errors told, by itself.

A random entry is closed at its own place in the queue. If its target was disputed too and that came
first, the expert's answer waits for it there: closed at once, what is disputed would be seen
sooner, and count more often.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet

from annotation.interfaces.registry import interface_of
from annotation.models import Question, Response
from annotation.quality.judged import (
    MARKED,
    NAMES,
    Judged,
    asked_alone,
    judged,
    settled_of,
    words_of,
)
from kbpo.accounts.audit import note as log
from kbpo.accounts.models import User
from kbpo.accounts.notices import tell
from kbpo.experts import queue
from kbpo.instances.merge import RATINGS, merged
from kbpo.instances.models import Label
from kbpo.queue import one_at_a_time
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.models import Track
from kbpo.tracks.recall import NAME
from kbpo.tracks.registry import kind_of

DROP = "drop from queue"
LEAST_NOTE, MOST_NOTE = 10, 2000  # characters
OPEN_A_TEAM = 100
MOST = 500  # judgments that are queued at once
DICE = random.SystemRandom()
PICKED = ("dispute", "disagreement", "random")
"""Kinds of checks whose answers correct no score"""
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
    asked = asked_about(submission.track, target)
    if _is_disputed(submission, target):
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


@transaction.atomic
def dispute_names(row: ExpertCheck, who: User) -> ExpertCheck:
    """Return the entry about all names of the document of an open dispute, where what is wrong may
    be a mention: an expert marks them anew. Raises CannotAsk.
    """
    asked = Question.objects.filter(
        settled_of(row.track, NAME), target__document=row.target.document_id
    )
    question = asked.order_by("-pk").first()
    if question is None:
        raise CannotAsk("Nobody was asked about all names of this document.")
    one_at_a_time("annotation.dispute", row.track_id)
    if _is_disputed(row.submission, question.target_id):
        raise CannotAsk("An expert is asked about the names of this document already.")
    made = ExpertCheck.objects.create(
        track=row.track,
        kind="dispute",
        order=DICE.random(),
        note=row.note,
        raised_by=row.raised_by,
        submission=row.submission,
        **_as_asked(question, NAMES),
    )
    log(
        "queue for experts",
        f"target:{made.target_id}",
        who=who,
        track=row.track.slug,
        after="all names of a document",
        why=f"Disputed: {row.note}",
    )
    return made


def _is_disputed(submission: Submission | None, target: int) -> bool:
    """Return whether a dispute of a run about a target is open."""
    return ExpertCheck.objects.filter(
        submission=submission, target=target, kind="dispute", status="open"
    ).exists()


def asked_about(track: Track, target: int) -> dict[str, Any]:
    """Return what an expert is asked about a target, as fields of a check: the latest question that
    people settled; of what they marked in a document that they read whole, the question about it
    alone. Raises CannotAsk if no people judged it, or this kind of track has nothing for experts.
    """
    if why_not := kind_of(track).unchecked:
        raise CannotAsk(why_not)
    questions = Question.objects.filter(asked_alone(), target=target, status="settled", gold=None)
    question = questions.order_by("-pk").first()
    if question is not None:
        return _as_asked(question, next(iter(words_of(track))))
    if Label.objects.filter(target=target, source="document").exclude(value={}).exists():
        for draft in kind_of(track).again([target]):
            return _as_drafted(draft)
    if Label.objects.filter(target=target, source="import", value__has_key=RATINGS).exists():
        raise CannotAsk(BROUGHT)
    raise CannotAsk("No people judged this: it comes from the gold standard.")


def _as_asked(question: Question, judgment: str) -> dict[str, Any]:
    return {
        "target_id": question.target_id,
        "judgment": judgment,
        "question": question.pk,
        "interface": question.interface,
        "payload": question.payload,
        "shown": question.shown,
    }


def _as_drafted(draft: QuestionDraft) -> dict[str, Any]:
    """Return the fields of a question that nobody was asked: only experts are."""
    return {
        "target_id": draft.target_id,
        "judgment": MARKED,
        "interface": draft.interface,
        "payload": draft.payload,
        "shown": draft.shown,
    }


def question_of(check: ExpertCheck) -> Question:
    """Return the question that a check asks, as its interface takes it; not to be stored."""
    return Question(
        pk=check.question,
        track_id=check.track_id,
        target=check.target,
        interface=check.interface,
        payload=check.payload,
        shown=check.shown,
        reward=Decimal("0.00"),
        seconds=interface_of(check.interface).default_seconds,
    )


@transaction.atomic
def queue_split_votes(
    track: Track, n: int, who: User | None, what: str = "", *, why: str = ""
) -> int:
    """Return how many judgments were queued: those that people were most divided about, and that
    nobody looked at yet. `what` is one of `words_of`, the first unless said. Without `who` it was
    the clock, which notes nothing where there are none.
    """
    what = _checked(track, n, what)
    one_at_a_time("annotation.queue_split_votes", track.pk)
    seen = set(
        ExpertCheck.objects.filter(track=track, kind="disagreement").values_list(
            "target", flat=True
        )
    )
    disputed = [
        judgment
        for judgment in judged(track, what)
        if judgment.disagreement > 0 and judgment.target not in seen
    ]
    chosen = sorted(disputed, key=lambda row: (-row.disagreement, row.target))[:n]
    if chosen or who is not None:
        _queue(track, chosen, "disagreement", who, what, why)
    return len(chosen)


@transaction.atomic
def queue_random(track: Track, n: int, who: User | None, what: str = "", *, why: str = "") -> int:
    """Return how many judgments were queued, n if there are as many: each that was not yet drawn
    has the same, recorded probability. A draw always finds something: one that did not would leave
    no record of the chance that it gave. `what` is one of `words_of`, the first unless said.
    Without `who` it was the clock.
    """
    what = _checked(track, n, what)
    one_at_a_time("annotation.queue_random", track.pk)
    drawn = set(
        ExpertCheck.objects.filter(track=track, kind="random").values_list("target", flat=True)
    )
    unchecked = [
        judgment
        for judgment in judged(track, what)
        if judgment.counts and judgment.target not in drawn
    ]
    if not unchecked:
        return 0
    seed = secrets.randbits(62)
    chosen = random.Random(seed).sample(unchecked, min(n, len(unchecked)))
    draws = ExpertRound.objects.filter(track=track, kind="random")
    draw = ExpertRound.objects.create(
        track=track,
        kind="random",
        judgment=what,
        number=draws.count() + 1,
        budget=n,
        probability=min(1.0, n / len(unchecked)),
        seed=seed,
        drawn_by=who,
    )
    _queue(track, chosen, "random", who, what, why, draw)
    return len(chosen)


def _checked(track: Track, n: int, judgment: str) -> str:
    """Return what is to be queued. Raises CannotAsk."""
    if why_not := kind_of(track).unchecked:
        raise CannotAsk(why_not)
    words = words_of(track)
    judgment = judgment or next(iter(words))
    if judgment not in words:
        raise CannotAsk(f"Say what to queue: {', '.join(words.values())}.")
    if not 1 <= n <= MOST:
        raise CannotAsk(f"Queue between 1 and {MOST} judgments.")
    return judgment


def _queue(
    track: Track,
    judgments: Sequence[Judged],
    kind: str,
    who: User | None,
    judgment: str,
    why: str,
    draw: ExpertRound | None = None,
) -> None:
    ExpertCheck.objects.bulk_create(
        ExpertCheck(
            track=track,
            kind=kind,
            round=draw,
            order=DICE.random(),
            raised_by=who,
            **fields,
        )
        for fields in _asked_of(track, judgments, judgment)
    )
    log(
        "queue for experts",
        f"track:{track.slug}",
        who=who,
        after=f"{len(judgments)} {kind}, of {words_of(track)[judgment]}",
        why=why,
        track=track.slug,
    )


def _asked_of(track: Track, judgments: Sequence[Judged], judgment: str) -> list[dict[str, Any]]:
    """Return what experts are asked of judgments, in their order, as fields of a check. Raises
    CannotAsk where pairs that people marked in documents cannot be asked about alone.
    """
    questions = Question.objects.in_bulk([row.question for row in judgments if row.question])
    marked = [row.target for row in judgments if row.question is None]
    drafts = {draft.target_id: draft for draft in kind_of(track).again(marked)} if marked else {}
    if len(drafts) != len(marked):
        raise CannotAsk("Pairs of this kind of track cannot be asked about alone.")
    asked = []
    for row in judgments:
        if row.question is None:
            asked.append(_as_drafted(drafts[row.target]))
        else:
            asked.append(_as_asked(questions[row.question], judgment))
    return asked


def judged_by(expert: User) -> Q:
    """Return the condition that an expert judged a target as one of the crowd, alone or in a
    document that they read whole.
    """
    responses = Response.objects.filter(assignment__worker__user=expert)
    read = responses.filter(target__kind="document").values("target__document")
    return Q(target__in=responses.values("target")) | Q(target__document__in=read)


def open_to(track: Track, expert: User) -> QuerySet[ExpertCheck]:
    """Return what an expert may be asked now but for checks that correct scores."""
    return queue.open_to(track, expert, judged_by(expert)).exclude(kind="check")


def next_of(track: Track, expert: User, *, checks: bool = False) -> ExpertCheck | None:
    """Return what an expert is asked next, if wanted also of what corrects scores; None if nothing
    waits for them. Random entries whose answer an expert gave already, for another reason, are
    closed with it when their turn comes: nobody is asked twice.
    """
    asked = queue.open_to(track, expert, judged_by(expert))
    asked = asked if checks else asked.exclude(kind="check")
    while (row := asked.first()) is not None:
        if row.kind != "random" or not _close_with_known(row):
            return row
    return None


@transaction.atomic
def _close_with_known(row: ExpertCheck) -> bool:
    """Return whether a random entry was answered by what an expert said of the same target since it
    was drawn.
    """
    adjudications = ExpertCheck.objects.filter(
        track=row.track, target=row.target_id, status="answered"
    )
    by_others = adjudications.exclude(kind="check")
    earlier = by_others.filter(answered_at__gte=row.raised_at).order_by("answered_at").first()
    if earlier is None:
        return False
    mine = (
        ExpertCheck.objects.select_for_update(of=("self",)).filter(pk=row.pk, status="open").first()
    )
    if mine is not None:
        assert earlier.raw is not None
        values = {int(target): value for target, value in (earlier.value or {}).items()}
        _close(mine, earlier.raw, values, earlier.expert)
    return True


def _close(
    row: ExpertCheck, raw: dict[str, Any], values: Mapping[int, Any], expert: User | None
) -> None:
    row.agrees = agrees(question_of(row), values, marked=row.judgment == MARKED)
    queue.close(row, raw, dict(values), expert)
    _tell_disputant(row)


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


@transaction.atomic
def answer(row: ExpertCheck, raw: dict[str, Any], expert: User) -> ExpertCheck:
    """Return the entry, answered once. Raises BadAnswer, or CannotAsk if somebody else was quicker.
    What else was asked about the same target is answered by the same words, but for a random entry:
    that keeps its place in the queue.
    """
    waiting = ExpertCheck.objects.select_for_update(of=("self",)).filter(
        track=row.track, target=row.target_id, status="open"
    )
    picked = ("dispute", "disagreement")
    entries = [check for check in waiting if check.pk == row.pk or check.kind in picked]
    if row.pk not in {entry.pk for entry in entries}:
        raise CannotAsk("This one is answered already.")
    values = answered_by(question_of(row), raw)
    for entry in entries:
        _close(entry, raw, values, expert)
    done = next(entry for entry in entries if entry.pk == row.pk)
    log(
        "adjudicate",
        f"target:{row.target_id}",
        who=expert,
        track=row.track.slug,
        after="agrees" if done.agrees else "says otherwise",
    )
    next_of(row.track, expert)  # what is next may be answered by this
    return done


def answered_by(question: Question, raw: dict[str, Any]) -> dict[int, Any]:
    """Return what one person's answer says of each target; empty if it is a flag. Raises
    BadAnswer.
    """
    interface = interface_of(question.interface)
    reread = interface.reread(question, raw)
    if reread is not None:
        return dict(reread)
    responses = [
        Response(target_id=response.target_id, criterion=response.criterion, value=response.value)
        for response in interface.parse(question, raw)
    ]
    return {
        label.target_id: label.value
        for label in interface.aggregate(question, responses)
        if label.value
    }


def agrees(
    question: Question, values: Mapping[int, Mapping[str, Any]], *, marked: bool = False
) -> bool:
    """Return whether an expert's values say of a question's target, and of what it settles besides,
    what counts now (`Track.agrees`).
    """
    if question.target_id not in values:
        return False  # a flag, where people had an answer
    interface = interface_of(question.interface)
    if interface.reads == NAME:
        return interface.agrees(values[question.target_id])
    kind = kind_of(question.track)
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
    why. Random ones stay: dropping them would be a choice. Raises CannotAsk, also without a reason.
    """
    if row.kind in ("random", "check"):
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


def counts(track: Track) -> dict[str, dict[str, int]]:
    """kind -> status -> how many."""
    count_of: dict[str, dict[str, int]] = {kind: {} for kind in PICKED}
    statuses = (
        ExpertCheck.objects.filter(track=track, kind__in=PICKED)
        .values_list("kind", "status")
        .annotate(Count("pk"))
        .order_by()
    )
    for kind, status, n in statuses:
        count_of[kind][status] = n
    return count_of


def entries(track: Track, limit: int = 100) -> list[ExpertCheck]:
    """Return what experts answered, the latest first."""
    adjudications = ExpertCheck.objects.filter(
        track=track, kind__in=PICKED, status="answered"
    ).select_related("target", "expert", "raised_by")
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
