"""Lets admins give workers of a marketplace bonuses, compensations, and the qualification."""

from __future__ import annotations

import re
import secrets
from decimal import Decimal

from django.db import transaction

from annotation.models import Assignment, Bonus, Qualification, Worker, WorkerIdentity
from annotation.platforms.base import configured_endpoint
from annotation.platforms.registry import marketplace_names, platform_by_name
from annotation.workers.teach import grant_token
from annotation.workers.worker import worker_on_platform
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.money.spend import OverBudget, reserve_money, spend_money
from kbpo.queue import wake_step
from kbpo.tracks.models import Track


@transaction.atomic
def grant_bonus(
    worker: Worker,
    track: Track,
    amount: Decimal,
    reason: str,
    *,
    assignment: Assignment | None = None,
    who: User | None = None,
    key: str = "",
) -> Bonus:
    """Return a bonus for an answer or, without an answer, a compensation; its money is reserved at
    once. Raises ValueError.

    A form's key grants one payment: if the form is sent again, the first one is returned.
    """
    if not reason.strip():
        raise ValueError("Say what it is for: the worker reads it.")
    if amount <= 0 or amount != amount.quantize(Decimal("0.01")):
        raise ValueError(f"${amount} is no amount in dollars and whole cents.")
    if assignment is not None and assignment.worker_id != worker.pk:
        raise ValueError("This answer is somebody else's.")
    if (
        worker.platform in marketplace_names()
        and not WorkerIdentity.objects.filter(worker=worker).exists()
    ):
        raise ValueError(
            "We do not know this worker's own id on the platform, so nobody could pay them. Give"
            " that id."
        )
    token = grant_token(key) if key else secrets.token_hex()
    # Two clicks, one after the other
    Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=worker.pk)
    if (made := Bonus.objects.filter(token=token).first()) is not None:
        asked = (worker.pk, track.pk, amount, reason.strip())
        if (made.worker_id, made.track_id, made.amount, made.why) != asked:
            raise ValueError(
                f"This form was sent already, for ${made.amount}. Load the page anew to grant more."
            )
        return made
    # Paid where the answer was given, else at the endpoint of the latest HIT, else the current one
    answers = Assignment.objects.filter(worker=worker).exclude(hit__endpoint="").order_by("-pk")
    latest = assignment or answers.first()
    platform = platform_by_name(worker.platform)
    bonus = Bonus.objects.create(
        status="owed",
        token=token,
        track=track,
        worker=worker,
        assignment=assignment,
        amount=amount,
        fee=platform.capabilities.fee(amount),
        why=reason.strip(),
        who=who,
        endpoint=latest.hit.endpoint if latest is not None else configured_endpoint(platform),
    )
    cost, purpose = amount + bonus.fee, bonus.purpose
    try:
        reserve_money(track, None, purpose, cost, key=f"{purpose}:reserve", who=who, why=reason)
    except OverBudget as over:
        raise ValueError(str(over)) from over
    spend_money(track, purpose, cost, key=f"{purpose}:spend", why=reason)
    write_audit_entry("grant", purpose, who=who, why=reason, after=f"${amount}", track=track.slug)
    wake_step("pay_out")
    return bonus


def set_qualification(handle: str, who: User, why: str, *, has_qualification: bool = True) -> str:
    """Give the tutorial's qualification to a worker of a platform, or revoke it, and return a
    sentence about what was done. Raises ValueError. The platform is called by the next tick.
    """
    worker = _platform_worker(handle)
    if not why.strip():
        raise ValueError("Nothing was changed: say why. It is logged.")
    Qualification.objects.update_or_create(
        worker=worker,
        name="tutorial",
        defaults={"wanted": has_qualification, "wanted_at": clock.now()},
    )
    what = "admit" if has_qualification else "admit no more"
    write_audit_entry(
        what, f"worker:{worker.handle}", who=who, why=why.strip(), after=str(has_qualification)
    )
    wake_step("pay_out")
    verb = "may" if has_qualification else "may no more"
    return f"{worker} {verb} accept HITs that ask for the tutorial."


def _platform_worker(identifier: str) -> Worker:
    """Return the worker with this hash (or its beginning) or platform id."""
    for name in marketplace_names():
        pattern = platform_by_name(name).capabilities.worker_id
        if pattern and re.fullmatch(pattern, identifier):
            return worker_on_platform(name, identifier)
    matches = Worker.objects.filter(handle__startswith=identifier, platform__in=marketplace_names())
    workers = list(matches[:2]) if identifier else []
    if len(workers) != 1:
        raise ValueError(
            "Give the hash of one worker of a platform, or their own id there; those of our own"
            " pages are paid from their list."
        )
    return workers[0]


@transaction.atomic  # no worker is created for a refused request
def grant_bonus_by_identifier(
    worker_identifier: str,
    track: Track,
    amount: Decimal,
    reason: str,
    who: User,
    *,
    answer: str = "",
    key: str = "",
) -> str:
    """Grant a bonus or compensation, and return a sentence about it. The worker is given by hash,
    its beginning, or platform id. Raises ValueError.
    """
    worker, assignment = _platform_worker(worker_identifier), None
    if answer:
        answers = Assignment.objects.filter(pk=int(answer) if answer.isdecimal() else 0)
        assignment = answers.exclude(raw=None).first()
        if assignment is None:
            raise ValueError(f"There is no answer {answer}.")
    bonus = grant_bonus(worker, track, amount, reason, assignment=assignment, who=who, key=key)
    return (
        f"${bonus.amount} for {worker}, and ${bonus.fee} of fee: it is paid as soon as the platform"
        " takes it."
    )
