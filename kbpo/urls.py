"""URL patterns of the pages, the API (kbpo.web) and the annotation pages."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("annotate/", include("kbpo.web.judging.urls")),
    path("api/", include("kbpo.web.api.urls")),
    path("", include("kbpo.web.urls")),
]
handler400 = "kbpo.web.errors.bad_request"
handler403 = "kbpo.web.errors.forbidden"
handler404 = "kbpo.web.errors.not_found"
handler500 = "kbpo.web.errors.server_error"
