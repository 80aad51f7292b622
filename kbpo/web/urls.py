"""Addresses of the pages: every page family lists its own."""

from __future__ import annotations

from kbpo.web import board, define, desk, gallery, order, people, pooling, prose, reading, submissions, tracks, upload

urlpatterns = [
    *board.urlpatterns,
    *submissions.urlpatterns,
    *order.urlpatterns,
    *upload.urlpatterns,
    *prose.urlpatterns,
    *people.urlpatterns,
    *desk.urlpatterns,
    *tracks.urlpatterns,
    *define.urlpatterns,
    *reading.urlpatterns,
    *pooling.urlpatterns,
    *gallery.urlpatterns,
]
