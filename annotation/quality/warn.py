"""Warns workers at half of a limit, before signals exclude them.

Signals exclude a worker only after a warning and further signals after it: half as many as the
limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from annotation.models import SIGNALS, Policy, Worker
from annotation.platforms.registry import local_platform_names
from annotation.quality.signals import Flag, flags_by_worker
from annotation.workers.models import Message
from annotation.workers.speak import send_decision
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import Audit, User
from kbpo.tracks.models import Track

SUBJECT = "Please look at your answers again"
ADVICE = {
    "majority": "Judge by the text alone, and read the instructions again where you are in doubt.",
    "gold": "Judge by the text alone, and read the instructions again where you are in doubt.",
    "short_edit": "Correct what you rate below the best, or give the best ratings.",
    "unread": "Read each text before you answer; nobody has to be that fast.",
    "too_fast": "Take the time that a question needs; nobody has to be that fast.",
}
WHAT_NEXT = (
    "If that goes on we offer you no more questions. Everything that you have answered stays paid."
    " If you think that we are wrong, write to us: the form is on your page."
)


def warn_workers(workers: Sequence[int]) -> int:
    """Warn these workers about flags at half of their limits or more, and return the number of
    warnings.
    """
    written = 0
    for pk, flags in flags_by_worker(workers, excluding=True).items():
        if halfway := [flag for flag in flags if flag.is_past_half_limit]:
            written += _warn_worker(pk, halfway)
    return written


@transaction.atomic
def _warn_worker(pk: int, flags: Sequence[Flag]) -> int:
    """Lock a worker, warn them of new kinds of signals, and return the number of kinds."""
    worker = Worker.objects.select_for_update(of=("self",), no_key=True).get(pk=pk)
    fresh = [flag for flag in flags if flag.kind not in worker.warned]
    if not fresh or worker.excluded_at is not None:
        return 0
    worker.warned |= {flag.kind: flag.against for flag in fresh}
    worker.save(update_fields=["warned"])
    known = " ".join(flag.sentence for flag in fresh)
    write_audit_entry("warn", f"worker:{worker.handle}", who=None, after=known)
    advice = dict.fromkeys(ADVICE[flag.kind] for flag in fresh)
    text = " ".join([known, *advice]) + f"\n\n{WHAT_NEXT}"
    if worker.platform in local_platform_names():
        send_decision(worker, SUBJECT, text, "feedback/")
    else:
        Message.objects.create(worker=worker, subject=SUBJECT, text=text)
    return len(fresh)


def flags_after_warning(flags: Mapping[int, Sequence[Flag]]) -> dict[int, list[Flag]]:
    """Return the flags of workers who were warned and then got further signals."""
    warned = dict(Worker.objects.filter(pk__in=flags).values_list("pk", "warned"))
    continued: dict[int, list[Flag]] = {}
    for worker, flags_of_worker in flags.items():
        for flag in flags_of_worker:
            before = warned[worker].get(flag.kind)
            if before is not None and 2 * (flag.against - before) >= flag.limit.answers - 1:
                continued.setdefault(worker, []).append(flag)
    return continued


@transaction.atomic
def set_excluding_signals(
    track: Track,
    kinds: Collection[str],
    who: User | None,
    why: str,
    *,
    timed: bool | None = None,
) -> Policy:
    """Set the kinds of signals that exclude on a track, and return its policy; an empty list leaves
    all decisions to admins. `timed` switches checks of times on or off. Raises ValueError.
    """
    if unknown := sorted(set(kinds) - set(SIGNALS)):
        raise ValueError(f"There is no signal “{unknown[0][:40]}”; there are {', '.join(SIGNALS)}.")
    if not why.strip():
        raise ValueError("Nothing was changed: say why. It is logged.")
    policy, _ = Policy.objects.get_or_create(track=track)
    before, policy.exclude_for = policy.exclude_for, [one for one in SIGNALS if one in kinds]
    policy.timed = policy.timed if timed is None else timed
    policy.save(update_fields=["exclude_for", "timed"])
    after = (", ".join(policy.exclude_for) or "none") + ("" if policy.timed else "; no times")
    sets = {"before": ", ".join(before) or "none", "after": after}
    write_audit_entry(
        "exclude for", f"track:{track.slug}", who=who, why=why, track=track.slug, **sets
    )
    return policy


def count_warned_since(moment: datetime) -> int:
    """Return the number of workers who were warned after this moment."""
    return Audit.objects.filter(what="warn", at__gt=moment).values("about").distinct().count()
