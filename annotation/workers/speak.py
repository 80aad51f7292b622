"""Stores messages, feedback and appeals of admins and annotators."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet

from annotation.models import Rejection, Worker
from annotation.platforms.base import Platform, PlatformDown, Refused, UnknownOutcome
from annotation.platforms.proof import feedback_path
from annotation.platforms.registry import local_platform_names, platform_by_name
from annotation.workers.models import Appeal, Feedback, Message
from annotation.workers.worker import is_reachable
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.accounts.notices import notify
from kbpo.queue import wake_step

LONGEST = 4000
A_DAY = 20
"""Greatest number of feedback messages of one annotator in a day"""
LONGEST_OUT, A_DAY_OUT = 3000, 3
"""A marketplace's limits: characters of a message, including our own closing text, and messages of
admins to one worker in a day"""
EXCLUDED = "We do not offer you more questions"
REFUSED = "We refused pay for an answer"
OFFERED_AGAIN = "We offer you questions again"
PAID_AFTER_ALL = "An answer is paid after all"
ANSWERED = "Your appeal is answered"
COUNTS_AGAIN = "Your exclusion was taken back: what you answered counts again."
IS_PAID = "The refusal was taken back: what you answered counts and is paid."
STAYS = "It stays as it was decided."
BATCH = 100
DOUBT = "Nobody knows whether the marketplace handed it over; it is not sent twice."


class CannotSay(ValueError):
    """Raised for a message that was not stored; the text of the exception is a sentence for its
    author.
    """


def clean_text(
    text: str, field_name: str, *, max_length: int = LONGEST, is_required: bool = True
) -> str:
    """Return the text, stripped. Raises CannotSay if it is empty while `is_required`, or too
    long.
    """
    cleaned = text.replace("\x00", "").strip()
    if is_required and not cleaned:
        raise CannotSay(f"{field_name} is empty. Write a sentence or two.")
    if len(cleaned) > max_length:
        raise CannotSay(
            f"{field_name} is {len(cleaned)} characters long; {max_length} is the most."
        )
    return cleaned


def send_message_from_admin(
    worker: Worker, subject: str, text: str, sender: User | None
) -> Message:
    """Send a message to a worker, on their page or through their marketplace, and return it. Raises
    CannotSay.
    """
    if worker.platform not in local_platform_names():
        return _queue_marketplace_message(worker, subject, text, sender)
    if worker.user_id is None:
        raise CannotSay("This annotator has no account here any more.")
    subject, text = (
        clean_text(subject, "The subject", max_length=120),
        clean_text(text, "The message"),
    )
    if worker.user is not None:
        notify([worker.user], "decision", subject, text)
    return Message.objects.create(worker=worker, subject=subject, text=text, by=sender)


def send_message(worker: Worker, subject: str, text: str) -> Message | None:
    """Send a message of the service to a worker with an account, also by mail, and return it; None
    without an account.
    """
    if worker.user is None:
        return None
    notify([worker.user], "decision", subject, text)
    return Message.objects.create(worker=worker, subject=subject[:120], text=text[:LONGEST])


def send_decision(worker: Worker, subject: str, text: str, page: str = "") -> Message | None:
    """Send a message about a decision, with the address of the page for appeals, to a worker with
    an account, and return it. Return None without an account, since marketplaces send their own
    messages.
    """
    address = f"{settings.SITE_URL.rstrip('/')}/annotate/{page}"
    return send_message(worker, subject, f"{text}\n\n{address}")


def _queue_marketplace_message(
    worker: Worker, subject: str, text: str, sender: User | None
) -> Message:
    """Store a message to be delivered by the marketplace. Marketplaces deliver only to people who
    have worked for us, and limit length and number.
    """
    if not platform_by_name(worker.platform).capabilities.messages:
        raise CannotSay("This marketplace hands no messages over.")
    if not is_reachable(worker):
        raise CannotSay("A marketplace hands messages only to people who have sent something in.")
    lately = Message.objects.filter(worker=worker, at__gte=clock.now() - timedelta(days=1))
    if sender is not None and lately.exclude(by=None).count() >= A_DAY_OUT:
        raise CannotSay(
            f"They got {A_DAY_OUT} messages within a day. A marketplace calls more than"
            " that a nuisance."
        )
    subject = clean_text(subject, "The subject", max_length=120)
    message = Message.objects.create(
        worker=worker,
        subject=subject,
        text=clean_text(text, "The message", max_length=LONGEST_OUT),
        by=sender,
    )
    write_audit_entry("write", f"worker:{worker.handle}", who=sender, why=subject)
    wake_step("pay_out")
    return message


def notify_of_exclusions(platform: str) -> int:
    """Tell excluded workers of a marketplace the reason, and where they can appeal, once each.
    Return their number.
    """
    workers = Worker.objects.filter(
        platform=platform, excluded_at__isnull=False, identity__isnull=False
    )
    since = Message.objects.filter(
        worker=OuterRef("pk"), subject=EXCLUDED, at__gte=OuterRef("excluded_at")
    )
    n_written = 0
    for worker in workers.exclude(Exists(since))[:100]:
        text = (
            f"{worker.excluded_reason[:2000]}\n\nEverything that you have answered stays paid. You"
            " may appeal."
        )
        Message.objects.create(worker=worker, subject=EXCLUDED, text=text)
        n_written += 1
    return n_written


def notify_of_refusals(platform: str) -> int:
    """Tell workers of a marketplace why pay was refused, and where they can appeal, once for each
    rejection. Return the number of workers.
    """
    rejections = Rejection.objects.filter(undone_at=None, assignment__worker__platform=platform)
    since = Message.objects.filter(
        worker=OuterRef("assignment__worker"), subject=REFUSED, at__gte=OuterRef("made_at")
    )
    untold = rejections.filter(assignment__worker__identity__isnull=False).exclude(Exists(since))
    workers = sorted(set(untold.values_list("assignment__worker", flat=True)))[:100]
    for worker in workers:
        mine = untold.filter(assignment__worker=worker).order_by("pk")
        reasons = "\n\n".join(mine.values_list("evidence", flat=True))[:2000]
        text = f"{reasons}\n\nYou may appeal; a person answers."
        Message.objects.create(worker_id=worker, subject=REFUSED, text=text)
    return len(workers)


def send_to_all_annotators(subject: str, text: str, sender: User | None) -> int:
    """Send a message to all annotators with an account, and return their number. Raises
    CannotSay.
    """
    subject, text = (
        clean_text(subject, "The subject", max_length=120),
        clean_text(text, "The message"),
    )
    workers = Worker.objects.filter(user__is_annotator=True, user__is_active=True)
    messages = [Message(worker=worker, subject=subject, text=text, by=sender) for worker in workers]
    return len(Message.objects.bulk_create(messages))


def mark_messages_read(worker: Worker) -> None:
    """Mark all messages of a worker as read."""
    Message.objects.filter(worker=worker, read_at=None).update(read_at=clock.now())


def store_feedback(
    worker: Worker, interface: str, *, clear: bool, fair: bool, comment: str
) -> Feedback:
    """Store feedback for admins and return it. Raises CannotSay."""
    today = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    if Feedback.objects.filter(worker=worker, at__gte=today).count() >= A_DAY:
        raise CannotSay("That was a lot of feedback for one day. Thank you; come back tomorrow.")
    comment = clean_text(comment, "The comment", is_required=False)
    return Feedback.objects.create(
        worker=worker, interface=interface, clear=clear, fair=fair, comment=comment
    )


def current_rejections(worker: Worker) -> QuerySet[Rejection]:
    """Return the current rejections of a worker's answers."""
    return Rejection.objects.filter(assignment__worker=worker, undone_at=None).order_by("pk")


def store_appeal(worker: Worker, text: str) -> Appeal:
    """Store the appeal of a worker who is excluded or whose pay was refused, one at a time, and
    return it. Raises CannotSay.
    """
    reason, about_pay = worker.excluded_reason, worker.excluded_at is None
    if about_pay:
        why = " / ".join(current_rejections(worker).values_list("evidence", flat=True))
        if not why:
            raise CannotSay(
                "You are not excluded, and no pay was refused: there is nothing to appeal."
            )
        reason = f"Pay was refused: {why}"
    cleaned = clean_text(text, "The appeal")
    try:
        with transaction.atomic():
            return Appeal.objects.create(
                worker=worker, about_pay=about_pay, excluded_reason=reason, text=cleaned
            )
    except IntegrityError as twice:
        raise CannotSay("Your appeal is being read. You will find the answer here.") from twice


def deliver_messages(platform: Platform) -> int:
    """Send pending messages and return how many the platform accepted. A message with an unknown
    outcome is not repeated.
    """
    waiting = Message.objects.filter(
        worker__platform=platform.name, worker__identity__isnull=False, sent_at=None
    )
    done = 0
    untried = waiting.filter(tried_at=None, trouble="").order_by("pk")
    for pk in list(untried.values_list("pk", flat=True)[:BATCH]):
        message = _claim_message(pk)
        if message is None:
            continue
        address = settings.SITE_URL.rstrip("/") + feedback_path(message.worker)
        text = (
            f"{message.text}\n\nYou can answer here, without an account; the address is yours"
            f" alone: {address}"
        )
        try:
            platform.message(message.worker, message.subject, text)
        except PlatformDown:  # nothing was sent: it waits
            Message.objects.filter(pk=pk).update(tried_at=None)
            break
        except UnknownOutcome:
            Message.objects.filter(pk=pk).update(trouble=DOUBT)
        except Refused as no:
            Message.objects.filter(pk=pk).update(trouble=str(no))
        else:
            done += Message.objects.filter(pk=pk).update(sent_at=clock.now())
    return done


@transaction.atomic
def _claim_message(pk: int) -> Message | None:
    """Mark a message as tried before the call and return it; None if another process has claimed
    it.
    """
    messages = Message.objects.select_for_update(of=("self",), skip_locked=True).select_related(
        "worker__identity"
    )
    message: Message | None = messages.filter(pk=pk, tried_at=None).first()
    if message is not None:
        message.tried_at = clock.now()
        message.save(update_fields=["tried_at"])
    return message
