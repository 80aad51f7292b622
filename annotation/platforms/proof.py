"""Signs addresses and forms of task pages, since pages in another site's frame have no cookies.

The address of a task page contains its HIT; the form in the page contains HIT, assignment and
worker. Only this service can sign either, and neither can replace the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core import signing
from django.urls import reverse

if TYPE_CHECKING:
    from annotation.models import HIT, Bonus, Worker

FORM_SALT, HIT_SALT, THANKS_SALT = (
    "kbpo.web.marketplace.task.form",
    "kbpo.web.marketplace.task.hit",
    "kbpo.web.marketplace.task.show_payment",
)
HOOK_SALT, SAY_SALT, LEARN_SALT = (
    "kbpo.web.marketplace.task.handle_notification",
    "kbpo.web.marketplace.task.say",
    "kbpo.web.marketplace.task.show_lessons",
)


def _signed_path(page: str, salt: str, value: object) -> str:
    return reverse(page, kwargs={"signed": signing.Signer(salt=salt, sep="~").sign(str(value))})


def _signed_value(signed: str, salt: str) -> str:
    """Return the value in a signed path; empty if the signature is wrong."""
    try:
        return signing.Signer(salt=salt, sep="~").unsign(signed)
    except signing.BadSignature:
        return ""


def task_path(hit: HIT) -> str:
    """Return the path of a HIT's task page."""
    return _signed_path("task", HIT_SALT, hit.pk)


def thanks_path(bonus: Bonus) -> str:
    """Return the path of the page on which one worker accepts a payment."""
    return _signed_path("task_thanks", THANKS_SALT, bonus.pk)


def feedback_path(worker: Worker) -> str:
    """Return the path of the feedback and appeals page of a worker without an account."""
    return _signed_path("task_say", SAY_SALT, worker.handle)


def assignment_feedback_path(form_signature: str) -> str:
    """Return the path of the feedback page for a worker who has accepted a HIT. The worker's id in
    an address proves nothing: until the platform has listed the assignment, the page accepts
    feedback and shows nothing.
    """
    return reverse("task_say", kwargs={"signed": form_signature})


def tutorial_path(worker: Worker) -> str:
    """Return the path of the tutorial for a worker who may not accept HITs yet."""
    return _signed_path("task_learn", LEARN_SALT, worker.handle)


def read_assignment_path(form_signature: str) -> tuple[str, str]:
    """Return the worker's hash and the assignment in a signed path; empty strings if the signature
    is wrong.
    """
    fields = signed_fields(form_signature)
    return fields.get("worker", ""), fields.get("assignment", "")


def worker_in_signed_path(signed: str, salt: str = SAY_SALT) -> str:
    """Return the worker's hash in a signed path; empty if the signature is wrong."""
    return _signed_value(signed, salt)


def hit_in_signed_path(signed: str) -> int | None:
    """Return the HIT in a signed path; None if the signature is wrong."""
    value = _signed_value(signed, HIT_SALT)
    return int(value) if value.isdecimal() else None


def bonus_in_signed_path(signed: str) -> int | None:
    """Return the payment in a signed path; None if the signature is wrong."""
    value = _signed_value(signed, THANKS_SALT)
    return int(value) if value.isdecimal() else None


def sign_form(hit: int, assignment: str, handle: str, site: str = "") -> str:
    """Return the signed field of a form: worker, assignment and HIT, and the site to which the
    answer is sent.
    """
    return signing.dumps(
        {"hit": hit, "assignment": assignment, "worker": handle, "site": site}, salt=FORM_SALT
    )


def signed_fields(proof: str) -> dict[str, Any]:
    """Return the content of a form's signed field; empty if the signature is wrong."""
    try:
        fields: dict[str, Any] = signing.loads(proof, salt=FORM_SALT)
    except signing.BadSignature:
        return {}
    return fields


def is_form_signature_valid(proof: str, hit: int, assignment: str, handle: str) -> bool:
    """Return whether a signature is valid for this worker, assignment and HIT."""
    fields = signed_fields(proof)
    signed = fields.get("hit"), fields.get("assignment"), fields.get("worker")
    return signed == (hit, assignment, handle)


def notification_path(platform: str) -> str:
    """Return the secret path for a platform's notifications."""
    return _signed_path("task_notify", HOOK_SALT, platform)


def platform_in_notification_path(signed: str) -> str | None:
    """Return the platform of a notification path; None if the signature is wrong."""
    return _signed_value(signed, HOOK_SALT) or None
