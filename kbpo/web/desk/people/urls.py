"""Addresses of the admins' pages about annotators, under /desk/requests/."""

from __future__ import annotations

from django.urls import path

from kbpo.web.desk.people import requests as desk

urlpatterns = [
    path("", desk.overview, name="desk-requests"),
    path("write/", desk.write, name="desk-requests-write"),
    path("appeals/<int:pk>/", desk.answer, name="desk-appeal"),
    path("volunteers/<int:pk>/", desk.admit, name="desk-volunteer"),
    path("rules/", desk.rules, name="desk-rules"),
    path("rules/intake/", desk.set_intake, name="desk-intake"),
    path("payouts/", desk.payouts, name="desk-payouts"),
    path("payouts/owed.csv", desk.owed_csv, name="desk-owed-csv"),
    path("payouts/<str:number>/", desk.receipt, name="desk-receipt"),
    path(
        "tutorials/<str:handle>/<slug:interface>/",
        desk.another_attempt,
        name="desk-another-attempt",
    ),
]
