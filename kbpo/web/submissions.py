"""A submission's page, its problems and its judged predictions."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
