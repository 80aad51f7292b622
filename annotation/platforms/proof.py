"""Signed words in addresses and forms of task pages: pages inside another site's frame have no
cookies to trust.

The address of a task page names its HIT; the form in it names HIT, assignment and worker. Nobody
but us can write either, and the one cannot stand for the other.
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
    "kbpo.web.marketplace.task.thanks",
)
HOOK_SALT, SAY_SALT, LEARN_SALT = (
    "kbpo.web.marketplace.task.notify",
    "kbpo.web.marketplace.task.say",
    "kbpo.web.marketplace.task.learn",
)


def task_path(hit: HIT) -> str:
    """Return the path of a HIT's task page."""
    return reverse(
        "task", kwargs={"signed": signing.Signer(salt=HIT_SALT, sep="~").sign(str(hit.pk))}
    )


def thanks_path(bonus: Bonus) -> str:
    """Return the path of the page by which somebody takes a payment that is for them alone."""
    return reverse(
        "task_thanks",
        kwargs={"signed": signing.Signer(salt=THANKS_SALT, sep="~").sign(str(bonus.pk))},
    )


def say_path(worker: Worker) -> str:
    """Return the path of the page on which a worker without an account says what they think, and
    appeals.
    """
    return reverse(
        "task_say", kwargs={"signed": signing.Signer(salt=SAY_SALT, sep="~").sign(worker.handle)}
    )


def go_say_path(said_by_form: str) -> str:
    """Return the path of that page for who has a HIT in hand. A worker's id in an address proves
    nothing: until their platform has listed the assignment, the page takes feedback and shows
    nothing.
    """
    return reverse("task_say", kwargs={"signed": said_by_form})


def tutorial_path(worker: Worker) -> str:
    """Return the path of the page on which a worker who may accept no HIT yet does the tutorial."""
    return reverse(
        "task_learn",
        kwargs={"signed": signing.Signer(salt=LEARN_SALT, sep="~").sign(worker.handle)},
    )


def go_of_page(said_by_form: str) -> tuple[str, str]:
    """Return the hash of the worker and the assignment that a page's path names; nothing if we have
    not written it.
    """
    said = proven(said_by_form)
    return said.get("worker", ""), said.get("assignment", "")


def worker_of_page(signed: str, salt: str = SAY_SALT) -> str:
    """Return the hash of the worker whose page a path names; nothing if we have not written it."""
    try:
        return signing.Signer(salt=salt, sep="~").unsign(signed)
    except signing.BadSignature:
        return ""


def hit_of(signed: str) -> int | None:
    """Return the HIT that a path names; None if we have not written it."""
    return _number(signed, HIT_SALT)


def bonus_of(signed: str) -> int | None:
    """Return the payment that a path names; None if we have not written it."""
    return _number(signed, THANKS_SALT)


def _number(signed: str, salt: str) -> int | None:
    try:
        return int(signing.Signer(salt=salt, sep="~").unsign(signed))
    except (signing.BadSignature, ValueError):
        return None


def prove(hit: int, assignment: str, handle: str, site: str = "") -> str:
    """Return what the form carries: whose go at which HIT this is, and where the answer is to be
    sent.
    """
    return signing.dumps(
        {"hit": hit, "assignment": assignment, "worker": handle, "site": site}, salt=FORM_SALT
    )


def proven(proof: str) -> dict[str, Any]:
    """Return what a form's proof says; nothing if we have not written it."""
    try:
        said: dict[str, Any] = signing.loads(proof, salt=FORM_SALT)
    except signing.BadSignature:
        return {}
    return said


def proves(proof: str, hit: int, assignment: str, handle: str) -> bool:
    """Return whether a proof is ours and of this go at this HIT."""
    said = proven(proof)
    return (said.get("hit"), said.get("assignment"), said.get("worker")) == (
        hit,
        assignment,
        handle,
    )


def hook_path(platform: str) -> str:
    """Return the path that a platform's notifications may be sent to; a secret."""
    return reverse(
        "task_notify", kwargs={"signed": signing.Signer(salt=HOOK_SALT, sep="~").sign(platform)}
    )


def platform_of_hook(signed: str) -> str | None:
    """Return the platform whose notifications come to a path; None if we have not written it."""
    try:
        return signing.Signer(salt=HOOK_SALT, sep="~").unsign(signed)
    except signing.BadSignature:
        return None
