"""Reads the state of the service: clock, workers, queue, disk and the last backup."""

from __future__ import annotations

import hmac
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotation.desk.journey import Stage
from kbpo import clock
from kbpo.celery import app
from kbpo.clock.models import Heartbeat
from kbpo.submissions.models import Submission
from kbpo.web.components.figures import count_text, duration_text
from kbpo.web.desk.stages import SCORE, all_stages

PATIENCE = 1.0
"""Seconds in which workers must respond"""
COUNT_KEPT = "health.workers"
COUNTED = 30
"""Seconds for which the number of workers is cached, since each count takes PATIENCE"""
STILL = timedelta(minutes=3)
"""Age of the last beat beyond which the clock counts as stopped"""
LEAST_FREE = 0.05
"""Share of the disk that should be free"""
BACKUP_EVERY = timedelta(days=2)
FIRST_BACKUP = timedelta(days=3)
"""Time after the first score until which a backup must exist, since scores cannot be reproduced
without the judgments
"""
BACKUP_MARK = "last-backup"
"""The file that a backup touches, in the folder of uploads; its time is that of the last backup"""
NOT_OURS = ("people", "an admin")
"""Steps that no worker performs, and judging before scores (SCORE)"""


@dataclass(frozen=True)
class Check:
    """A line of the health list: name, state in words, and whether it is fine."""

    name: str
    says: str
    well: bool = True


def health_checks(stages: Iterable[Stage]) -> list[Check]:
    """Return the state of clock, workers, queue, disk and backups."""
    beat, backup = beat_age(), backup_age()
    checks = [
        Check("Clock", "it never ran", well=False)
        if beat is None
        else Check("Clock", f"ticked {duration_text(beat)} ago", well=beat < STILL)
    ]
    if not has_redis():
        checks.append(Check("Workers", "Redis does not answer; work waits", well=False))
    else:
        n_workers = cache.get(COUNT_KEPT)
        if n_workers is None:
            n_workers = count_workers()
            cache.set(COUNT_KEPT, n_workers, COUNTED)
        text = f"{n_workers} at work" if n_workers else "none answers"
        checks.append(Check("Workers", text, n_workers > 0))
    ours = [stage for stage in stages if stage.step not in NOT_OURS and stage.name != SCORE[0]]
    waiting = [stage for stage in ours if stage.waiting and stage.oldest]
    text = "empty"
    if waiting:
        oldest = max(stage.oldest for stage in waiting if stage.oldest is not None)
        n = sum(stage.waiting for stage in waiting)
        text = f"{count_text(n)} wait{'s' if n == 1 else ''}, the oldest {duration_text(oldest)}"
    checks.append(Check("Queue", text, well=not any(stage.is_late for stage in waiting)))
    disk = shutil.disk_usage(uploads_folder())
    free = disk.free / disk.total
    text = f"{disk.free / 1e9:.0f} GB free, {free:.0%}"
    checks.append(Check("Disk", text, well=free >= LEAST_FREE))
    if backup is not None:
        text = f"{duration_text(backup)} ago"
        return [*checks, Check("Last backup", text, well=backup < BACKUP_EVERY)]
    unsaved = Submission.objects.filter(scored_at__lt=clock.now() - FIRST_BACKUP).exists()
    text = f"none was noted{', and runs were scored days ago' if unsaved else ''}"
    return [*checks, Check("Last backup", text, well=not unsaved)]


def beat_age() -> timedelta | None:
    """Return the time since the last tick of the clock; None before the first."""
    beat = Heartbeat.objects.values_list("at", flat=True).first()
    return clock.now() - beat if beat else None


def has_redis() -> bool:
    """Return whether the cache responds: Redis, or its replacement on a single machine."""
    try:
        cache.has_key("health")  # cached reads tolerate a failing Redis, this call does not
    except Exception:
        return False
    return True


def count_workers() -> int:
    """Return how many workers respond. Without Redis there is one, with the clock as a thread."""
    if not settings.REDIS_URL:
        age = beat_age()
        return int(age is not None and age < STILL)
    try:
        return len(app.control.ping(timeout=PATIENCE) or [])
    except Exception:
        return 0


def uploads_folder() -> Path:
    """Return the folder of uploads, or its first existing parent."""
    folder = Path(settings.MEDIA_ROOT)
    while not folder.exists():
        folder = folder.parent
    return folder


def backup_age() -> timedelta | None:
    """Return the time since the last backup; None without one."""
    mark = Path(settings.MEDIA_ROOT) / BACKUP_MARK
    try:
        return clock.now() - datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    except OSError:
        return None


@never_cache
@require_safe
def answer_health_check(request: HttpRequest) -> HttpResponse:
    """Return 200 if the database answers, else 503."""
    with connection.cursor() as cursor:  # where it does not answer, that is a 503 by itself
        cursor.execute("SELECT 1")
    return JsonResponse({"database": True, "redis": has_redis()})


@never_cache
@require_safe
def serve_metrics(request: HttpRequest) -> HttpResponse:
    """Return metrics in the text format of Prometheus, if the request has `METRICS_TOKEN`."""
    sent = request.headers.get("Authorization", "")
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    if not settings.METRICS_TOKEN or not hmac.compare_digest(sent.encode(), wanted.encode()):
        raise Http404
    beat, backup = beat_age(), backup_age()
    lines = [
        f"kbpo_clock_seconds {beat.total_seconds():.0f}" if beat else "",
        f"kbpo_backup_seconds {backup.total_seconds():.0f}" if backup else "",
        f"kbpo_redis {int(has_redis())}",
        f"kbpo_workers {count_workers()}",
        f"kbpo_disk_free_bytes {shutil.disk_usage(uploads_folder()).free}",
    ]
    for stage in all_stages():
        oldest = stage.oldest.total_seconds() if stage.oldest else 0
        label = f'{{stage="{stage.step}",name="{stage.name}"}}'
        lines.append(f"kbpo_waiting{label} {stage.waiting}")
        lines.append(f"kbpo_oldest_seconds{label} {oldest:.0f}")
    text = "\n".join(line for line in lines if line) + "\n"
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


@require_safe
def redirect_to_icon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, from the address where browsers look for it."""
    return redirect(static("favicon.svg"))


urlpatterns = [
    path("favicon.ico", redirect_to_icon, name="favicon"),
    path("healthz", answer_health_check, name="healthz"),
    path("metrics", serve_metrics, name="service-metrics"),
]
