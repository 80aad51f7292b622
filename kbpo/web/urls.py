"""Addresses of the pages: every page family lists its own."""

from __future__ import annotations

from kbpo.web import board, define, desk, documents, gallery, people, pooling, prose, submissions, tracks, upload

urlpatterns = [
    *board.urlpatterns,
    *submissions.urlpatterns,
    *upload.urlpatterns,
    *prose.urlpatterns,
    *people.urlpatterns,
    *desk.urlpatterns,
    *tracks.urlpatterns,
    *define.urlpatterns,
    *documents.urlpatterns,
    *pooling.urlpatterns,
    *gallery.urlpatterns,
]
