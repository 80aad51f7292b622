"""Addresses of the annotation pages."""

from __future__ import annotations

from django.urls import path

from annotation import attempt, join, views

urlpatterns = [
    path("", views.home, name="annotate"),
    path("next/", views.next_question, name="annotate_next"),
    path("join/<str:code>/", join.join, name="annotate_join"),
    path("try/", attempt.index, name="try"),
    path("try/<int:number>/", attempt.question, name="try_question"),
    path("preview/<int:pk>/", views.preview, name="annotate_preview"),
    path("<str:token>/", views.question, name="annotate_question"),
    path("<str:token>/draft/", views.draft, name="annotate_draft"),
    path("<str:token>/return/", views.give_back, name="annotate_return"),
    path("<str:token>/document/", views.document, name="annotate_document"),
]
