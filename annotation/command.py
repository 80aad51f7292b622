"""What an administrator may tell the crowd: retry, pause, resume, stop publishing, exclude, readmit, grant."""

from __future__ import annotations

import logging
import re
import secrets
from decimal import Decimal
from hashlib import sha256

from django.db import transaction
from django.utils import timezone

from annotation import quality
from annotation import reject as rejecting
from annotation.models import HIT, Assignment, Bonus, Halt, Payment, Qualification, Question, Worker, WorkerIdentity
from annotation.platforms.mturk.amounts import fee
from annotation.platforms.registry import other_names, platform_of
from annotation.publish import committed, one_publisher
from annotation.reject import CannotReject
from annotation.worker import known
from kbpo.accounts.audit import DISMISS, note
from kbpo.accounts.models import User
from kbpo.money.models import Ledger
from kbpo.money.spend import OverBudget, allowance, balance, lock, reserve, spend
from kbpo.queue import nudge
from kbpo.tracks.models import Track

log = logging.getLogger(__name__)

OWN_ID = re.compile(r"[A-Z][A-Z0-9]{1,39}")
"""How Mechanical Turk names a worker"""

AGAIN = {
    # what         status      -> status it is tried again in
    ("question", "waiting"): "waiting",
    ("question", "answered"): "answered",
    ("hit", "intent"): "intent",
    ("hit", "failed"): "intent",
    ("assignment", "submitted"): "submitted",
    ("assignment", "accepted"): "accepted",
    ("payment", "failed"): "unknown",  # the platform's books are asked before anything is paid
    ("bonus", "failed"): "unknown",
}
MODELS = {"question": Question, "hit": HIT, "assignment": Assignment, "payment": Payment, "bonus": Bonus}


def can_retry(kind: str, status: str) -> bool:
    """Whether such a row can be tried again at once in this status."""
    return (kind, status) == ("question", "given_up") or (kind, status) in AGAIN


GIVEN_UP = ("failed", "given_up")


class CannotDismiss(Exception):
    """A failure stays on the list; the text is a sentence for the administrator."""


@transaction.atomic
def dismiss(kind: str, pk: int, who: User, why: str) -> None:
    """Nothing; a row that was given up is not listed any more, until it fails again. Raises CannotDismiss."""
    row = (
        MODELS[kind]._default_manager.select_for_update(of=("self",)).filter(pk=pk).first() if kind in MODELS else None
    )
    if row is None:
        raise CannotDismiss(f"There is no {kind} {pk}.")
    check_dismissal(kind, row.status, why)
    note(DISMISS, f"{kind}:{pk}", who=who, before=row.status, why=why.strip())


def check_dismissal(kind: str, status: str, why: str) -> None:
    """Nothing; raises CannotDismiss for a row that was not given up, or without a reason."""
    if status not in GIVEN_UP:
        raise CannotDismiss(f"This {kind} is {status}, not given up: there is nothing to dismiss.")
    if not why.strip():
        raise CannotDismiss("Nothing was dismissed: say why nobody needs to look at it any more.")


class CannotRetry(Exception):
    """There is nothing to retry; the text is a sentence for the administrator."""


@transaction.atomic
def retry(kind: str, pk: int, who: User | None = None) -> str:
    """The status in which a question, HIT, assignment, payment or bonus is tried again at once. Raises CannotRetry.

    A question that was given up goes back to those who may answer it, or to settling if enough did.
    """
    if kind == "hit":  # its questions before itself: see README.md
        list(Question.objects.select_for_update(of=("self",)).filter(hits=pk).order_by("pk").values_list("pk"))
    row = MODELS[kind]._default_manager.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None:
        raise CannotRetry(f"There is no {kind} {pk}.")
    status = _reopened(row) if isinstance(row, Question) and row.status == "given_up" else AGAIN.get((kind, row.status))
    if status is None:
        raise CannotRetry(f"This {kind} is {row.status}; there is nothing to retry.")
    if isinstance(row, HIT) and row.status == "failed":
        _take_up_again(row)
    if isinstance(row, Bonus):
        _set_aside_again(row)
    note("retry", f"{kind}:{pk}", who=who, before=row.status, after=str(status), why=row.reason)
    row.move(status)
    nudge("publish")
    nudge("settle")
    nudge("remit")
    return str(status)


def _take_up_again(hit: HIT) -> None:
    """Nothing; the questions of a HIT that was refused go out in it. Raises CannotRetry if it is not needed any more:
    its questions would be out twice."""
    asked = hit.questions.exclude(payer__startswith="gold:")
    if any(question.status != "waiting" for question in asked):
        raise CannotRetry("Its questions have gone out in another HIT since, or are done; it is not needed any more.")
    payers = sorted(set(hit.questions.values_list("payer", flat=True)))
    asked.update(status="published", status_since=timezone.now(), reason="")
    HIT.objects.filter(pk=hit.pk).update(status="intent")  # so that its places are counted
    for payer in payers:
        one_publisher(payer)
        short = committed(payer) - balance(purpose=payer).open
        if short > 0:
            raise CannotRetry(
                f"Its questions would cost ${short} more than {payer} has set aside. Set more aside first."
            )


def _set_aside_again(bonus: Bonus) -> None:
    """Nothing; the money of a bonus that was not paid is spent again. Raises CannotRetry if a cap leaves too little."""
    lock(bonus.track)
    cost, room = bonus.amount + bonus.fee, allowance(bonus.track, None, bonus.purpose)
    if room.left is not None and room.scope is not None and cost > room.left:
        raise CannotRetry(str(OverBudget(room.left, room.scope, cost)))
    Ledger.objects.filter(purpose=bonus.purpose).update(state=Ledger.State.CONFIRMED)


def _reopened(question: Question) -> str:
    """Answered if it has answers, else waiting for new HITs; the old ones are put away."""
    if question.responses.filter(excluded_reason="").exists():
        return "answered"
    question.hits.update(status="disposed", status_since=timezone.now())
    return "waiting"


def pause(track: Track | None, who: User | None, why: str) -> Halt:
    """The stop of all work on a track (None: everywhere): nothing is offered; work in hand may be finished."""
    return _halt(track, Halt.Scope.ALL, who, why)


def stop_publishing(track: Track | None, who: User | None, why: str) -> Halt:
    """The stop of publishing: nothing new is put up; what is up goes on."""
    return _halt(track, Halt.Scope.PUBLISHING, who, why)


@transaction.atomic
def _halt(track: Track | None, scope: str, who: User | None, why: str) -> Halt:
    if not why.strip():
        raise ValueError("Say why; whoever waits will read it.")
    log.warning("%s stopped %s of %s: %s", who, scope, track or "all tracks", why)
    about, slug = ("every track", "") if track is None else (f"track:{track.slug}", track.slug)
    note("stop publishing" if scope == Halt.Scope.PUBLISHING else "pause", about, who=who, why=why, track=slug)
    return Halt.objects.create(track=track, scope=scope, who=who, why=why.strip())


@transaction.atomic
def resume(track: Track | None, who: User | None, why: str) -> int:
    """How many stops of a track (None: of all tracks together) were lifted; those of single batches stay."""
    if not why.strip():
        raise ValueError("Say why it may go on; it stands in the log.")
    lifted = Halt.objects.filter(track=track, payer="", lifted_at=None).update(lifted_at=timezone.now(), lifted_by=who)
    log.warning("%s lifted %s stops of %s: %s", who, lifted, track or "all tracks", why)
    if lifted:
        about, slug = (f"track:{track.slug}", track.slug) if track else ("every track", "")
        note("go on", about, who=who, why=why.strip(), track=slug)
    nudge("publish")
    return lifted


def exclude_worker(handle: str, who: User, reason: str) -> int:
    """How many answers of a worker will not count for labels made from now on."""
    log.warning("%s excluded worker %s: %s", who, handle, reason)
    signed = f"{reason.strip()} ({who.get_username()})" if reason.strip() else ""
    return quality.exclude(Worker.objects.get(handle=handle), signed, who)


@transaction.atomic
def grant(
    worker: Worker, track: Track, amount: Decimal, reason: str, *, assignment: Assignment | None = None,
    who: User | None = None, key: str = "",
) -> Bonus:  # fmt: skip
    """A bonus for an answer or, without one, a compensation; its money is set aside at once. Raises ValueError.

    A form's key is good for one of them: sent again, it gives the first."""
    if not reason.strip():
        raise ValueError("Say what it is for: the worker reads it.")
    if amount <= 0 or amount != amount.quantize(Decimal("0.01")):
        raise ValueError(f"${amount} is no amount in dollars and whole cents.")
    if assignment is not None and assignment.worker_id != worker.pk:
        raise ValueError("This answer is somebody else's.")
    _check_payable(worker)
    token = sha256(f"grant:{key}".encode()).hexdigest() if key else secrets.token_hex()
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)  # two clicks one after the other
    if (made := Bonus.objects.filter(token=token).first()) is not None:
        if (made.worker_id, made.track_id, made.amount, made.why) != (worker.pk, track.pk, amount, reason.strip()):
            raise ValueError(f"This form was sent already, for ${made.amount}. Load the page anew to grant more.")
        return made
    bonus = Bonus.objects.create(
        status="owed", token=token, track=track, worker=worker, assignment=assignment, amount=amount, fee=fee(amount),
        why=reason.strip(), who=who, endpoint=_where(worker, assignment),
    )  # fmt: skip
    try:
        reserve(track, None, bonus.purpose, amount + bonus.fee, key=f"{bonus.purpose}:reserve", who=who, why=reason)
    except OverBudget as over:
        raise ValueError(str(over)) from over
    spend(track, bonus.purpose, amount + bonus.fee, key=f"{bonus.purpose}:spend", why=reason)
    note("grant", bonus.purpose, who=who, why=reason, after=f"${amount}", track=track.slug)
    nudge("remit")
    return bonus


def _check_payable(worker: Worker) -> None:
    """Nothing; raises ValueError for a worker whose platform could not be told whom to pay."""
    if worker.platform in other_names() and not WorkerIdentity.objects.filter(worker=worker).exists():
        raise ValueError("We do not know this worker's own id on the platform, so nobody could pay them. Give that id.")


def _where(worker: Worker, assignment: Assignment | None) -> str:
    """The endpoint at which a worker is paid: that of the answer, else that of their latest HIT, else the one set."""
    latest = assignment or Assignment.objects.filter(worker=worker).exclude(hit__endpoint="").order_by("-pk").first()
    return latest.hit.endpoint if latest is not None else platform_of(worker.platform).endpoint


def admit(handle: str, who: User, why: str, *, held: bool = True) -> str:
    """What was noted, as a sentence: a worker of a platform holds the qualification of the tutorial, or no more.

    Raises ValueError with a sentence. The platform is told on the next round."""
    worker = _of_a_platform(handle)
    if not why.strip():
        raise ValueError("Nothing was changed: say why. It stands in the log.")
    Qualification.objects.update_or_create(
        worker=worker, name="tutorial", defaults={"wanted": held, "wanted_at": timezone.now()}
    )
    note("admit" if held else "admit no more", f"worker:{worker.handle}", who=who, why=why.strip(), after=str(held))
    nudge("remit")
    return f"{worker} {'may' if held else 'may no more'} accept HITs that ask for the tutorial."


def _of_a_platform(said: str) -> Worker:
    """The worker that an administrator means: by hash or its beginning, or by their own id on Mechanical Turk."""
    if OWN_ID.fullmatch(said):  # a hash has small letters
        return known("mturk", said)
    workers = list(Worker.objects.filter(handle__startswith=said, platform__in=other_names())[:2]) if said else []
    if len(workers) != 1:
        raise ValueError(
            "Give the hash of one worker of a platform, or their own id there; those of our own pages are paid from"
            " their list."
        )
    return workers[0]


@transaction.atomic  # who is refused leaves no worker behind
def grant_to(
    said: str, track: Track, amount: Decimal, reason: str, who: User, *, answer: str = "", key: str = ""
) -> str:
    """What was granted, as a sentence. The worker by hash, its beginning, or their id on Mechanical Turk.

    Raises ValueError with a sentence."""
    worker, assignment = _of_a_platform(said), None
    if answer:
        assignment = Assignment.objects.filter(pk=int(answer) if answer.isdecimal() else 0).exclude(raw=None).first()
        if assignment is None:
            raise ValueError(f"There is no answer {answer}.")
    bonus = grant(worker, track, amount, reason, assignment=assignment, who=who, key=key)
    return f"${bonus.amount} for {worker}, and ${bonus.fee} of fee: it is paid as soon as the platform takes it."


def readmit_worker(handle: str, who: User, why: str = "") -> int:
    """How many answers of a worker count again."""
    log.warning("%s readmitted worker %s", who, handle)
    return quality.readmit(Worker.objects.get(handle=handle), who, why)


def answer_of(pk: int) -> Assignment:
    """The answer with this number. Raises CannotReject if there is none."""
    row = Assignment.objects.filter(pk=pk).select_related("hit").first()
    if row is None:
        raise CannotReject("There is no such answer.")
    return row


def check_rejection(pk: int, evidence: str) -> None:
    """Nothing; raises CannotReject if an answer cannot be rejected with this evidence."""
    rejecting.check(answer_of(pk), evidence)


def reject_answer(pk: int, who: User, evidence: str) -> None:
    """Nothing; an answer is not paid, for a reason that its worker reads. Raises CannotReject."""
    rejecting.reject(answer_of(pk), who, evidence)


def undo_rejection(pk: int, who: User, why: str) -> None:
    """Nothing; a rejected answer counts and is paid after all. Raises CannotReject."""
    rejecting.undo(answer_of(pk), who, why)


def write_to(handle: str, who: User, subject: str, text: str) -> str:
    """What became of a message to a worker, as a sentence. Raises ValueError with one."""
    from annotation.annotators import speak  # it answers appeals through this module

    worker = Worker.objects.get(handle=handle)
    try:
        speak.write(worker, subject, text, who)
    except speak.CannotSay as cannot:
        raise ValueError(str(cannot)) from cannot
    if worker.user_id is not None:
        return "Sent. It stands on their page."
    return "The marketplace is asked to hand it over; what becomes of it stands under Messages."


def erase_worker(handle: str, who: User, why: str) -> str:
    """What became of the erasure of a marketplace's worker, as a sentence. Raises ValueError with one."""
    from annotation.annotators import leave  # as above

    return leave.erase_elsewhere(Worker.objects.get(handle=handle), who, why)
