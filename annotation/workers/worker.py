"""Maps logins and platform ids to workers. Other tables have a keyed hash; the id itself is in one
table.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import string
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from annotation.models import UNLISTED, Assignment, Worker, WorkerIdentity
from annotation.platforms.registry import local_platform_names, platform_by_name
from kbpo.accounts.models import Team, User
from kbpo.prepared import Columns, Prepared
from kbpo.tracks.models import Track

WORKER = Columns(Worker, "w")
MET = Prepared(f"""
    SELECT (
        SELECT m.subject FROM annotators_message m
        WHERE m.worker_id = w.id AND m.read_at IS NULL ORDER BY m.at DESC LIMIT 1), {WORKER.sql}
    FROM annotation_worker w WHERE w.user_id = %(user)s
""")
LETTERS = frozenset(string.ascii_lowercase)
MOST = 26


def worker_handle(platform: str, external_id: str) -> str:
    """Return the keyed hash of a worker's id on a platform."""
    message = f"{platform}:{external_id}".encode()
    return hmac.new(settings.WORKER_KEY.encode(), message, hashlib.sha256).hexdigest()[:32]


@transaction.atomic
def worker_on_platform(platform: str, external_id: str) -> Worker:
    """Return the worker with this id on a platform; created if new."""
    handle = worker_handle(platform, external_id)
    worker, _ = Worker.objects.get_or_create(handle=handle, defaults={"platform": platform})
    WorkerIdentity.objects.get_or_create(worker=worker, defaults={"external_id": external_id})
    return worker


def worker_of_user(user: User, platform: str = "pool") -> Worker:
    """Return the worker of a user, created on the first visit. An existing worker has the subject
    of their newest unread message as `unread`.
    """
    if (met := MET.fetch_first(user=user.pk)) is not None:
        unread, *of_worker = met
        worker = WORKER.row(of_worker)
        worker.unread = unread  # type: ignore[attr-defined]
        return worker
    handle = worker_handle(platform, str(user.pk))
    with transaction.atomic():
        worker, _ = Worker.objects.get_or_create(
            handle=handle, defaults={"platform": platform, "user": user}
        )
        WorkerIdentity.objects.get_or_create(worker=worker, defaults={"external_id": str(user.pk)})
    return worker


def has_sent_in(worker: Worker, assignment: str = "") -> bool:
    """Return whether the platform has listed an answer of this worker, or this assignment as
    theirs, which confirms their identity.
    """
    listed = worker.assignments.exclude(status__in=UNLISTED)
    return (listed.filter(external_id=assignment) if assignment else listed).exists()


def belongs_to_worker_filter(assignment: str = "") -> Q:
    """Return the condition that a consent or a tutorial belongs to a worker.

    In a marketplace's frame anybody can write any id into an address. So what was done while
    holding an assignment counts for this assignment only, until the platform has listed it as this
    worker's: nobody can agree, pass or fail in another person's name.
    """
    listed = Assignment.objects.filter(
        worker=OuterRef("worker"), external_id=OuterRef("assignment")
    ).exclude(status__in=UNLISTED)
    return Q(assignment__in=["", assignment]) | Q(Exists(listed))


def is_reachable(worker: Worker) -> bool:
    """Return whether a message can reach a worker: on their page, or through a marketplace.
    Marketplaces deliver messages only to people who have submitted something.
    """
    if worker.platform in local_platform_names():
        return worker.user_id is not None
    if not platform_by_name(worker.platform).capabilities.messages:
        return False
    took = worker.assignments.all()
    only_drafted = took.exists() and not took.filter(raw__isnull=False).exists()
    return not only_drafted and WorkerIdentity.objects.filter(worker=worker).exists()


def has_team_judged(track: Track, team: Team) -> bool:
    """Return whether a member of a team has answered a question of a track."""
    return Assignment.objects.filter(
        worker__user__memberships__team=team, hit__questions__track=track, raw__isnull=False
    ).exists()


def keyboard_settings_json(worker: Worker | None) -> str:
    """Return the keyboard settings as JSON for the page."""
    return json.dumps(worker.keys if worker is not None else {})


def store_keyboard_settings(worker: Worker, settings_json: str) -> bool:
    """Store these keyboard settings and return whether they are valid: no key may have two
    meanings.
    """
    try:
        wanted = json.loads(settings_json)
    except (ValueError, RecursionError):
        return False
    if not _are_keys_valid(wanted):
        return False
    worker.keys = {"off": wanted["off"], "keys": wanted["keys"]}
    worker.save(update_fields=["keys"])
    return True


def _are_keys_valid(wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not isinstance(wanted.get("off"), bool):
        return False
    changed = wanted.get("keys")
    if not isinstance(changed, dict) or len(changed) > MOST:
        return False
    pressed = list(changed.values())
    one_each = all(isinstance(key, str) and len(key) == 1 and key.isprintable() for key in pressed)
    return changed.keys() <= LETTERS and one_each and len(set(pressed)) == len(pressed)
