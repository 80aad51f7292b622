"""Addresses of the admins' pages about annotators, under /desk/requests/."""

from __future__ import annotations

from django.urls import path

from kbpo.web.desk.people import requests

urlpatterns = [
    path("", requests.overview, name="desk-requests"),
    path("write/", requests.write, name="desk-requests-write"),
    path("appeals/<int:pk>/", requests.answer, name="desk-appeal"),
    path("volunteers/<int:pk>/", requests.admit, name="desk-volunteer"),
    path("rules/", requests.rules, name="desk-rules"),
    path("rules/intake/", requests.set_intake, name="desk-intake"),
    path("payouts/", requests.payouts, name="desk-payouts"),
    path("payouts/owed.csv", requests.owed_csv, name="desk-owed-csv"),
    path("payouts/<str:number>/", requests.receipt, name="desk-receipt"),
    path(
        "tutorials/<str:handle>/<slug:interface>/",
        requests.another_attempt,
        name="desk-another-attempt",
    ),
]
