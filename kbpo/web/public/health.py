"""Addresses for monitoring: a health check and Prometheus metrics."""

from __future__ import annotations

import hmac
import shutil

from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from kbpo.web.desk.health import (
    backup_age,
    beat_age,
    count_workers,
    has_redis,
    uploads_folder,
)
from kbpo.web.desk.stages import stages


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
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
    for stage in stages():
        oldest = stage.oldest.total_seconds() if stage.oldest else 0
        label = f'{{stage="{stage.step}",name="{stage.name}"}}'
        lines.append(f"kbpo_waiting{label} {stage.waiting}")
        lines.append(f"kbpo_oldest_seconds{label} {oldest:.0f}")
    text = "\n".join(line for line in lines if line) + "\n"
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to the icon, from the address where browsers look for it."""
    return redirect(static("favicon.svg"))


urlpatterns = [
    path("favicon.ico", favicon, name="favicon"),
    path("healthz", healthz, name="healthz"),
    path("metrics", serve_metrics, name="service-metrics"),
]
