"""Addresses of the pages: every page family lists its own."""

from __future__ import annotations

from kbpo.web import (
    adding_up,
    batches,
    board,
    checks,
    define,
    desk,
    diagnostics,
    documents,
    gallery,
    log,
    order,
    people,
    pooling,
    prose,
    quality,
    reading,
    submissions,
    tracks,
    upload,
    workers,
)

urlpatterns = [
    *board.urlpatterns,
    *submissions.urlpatterns,
    *order.urlpatterns,
    *upload.urlpatterns,
    *prose.urlpatterns,
    *people.urlpatterns,
    *desk.urlpatterns,
    *batches.urlpatterns,
    *workers.urlpatterns,
    *quality.urlpatterns,
    *adding_up.urlpatterns,
    *log.urlpatterns,
    *tracks.urlpatterns,
    *define.urlpatterns,
    *reading.urlpatterns,
    *documents.urlpatterns,
    *diagnostics.urlpatterns,
    *pooling.urlpatterns,
    *checks.urlpatterns,
    *gallery.urlpatterns,
]
