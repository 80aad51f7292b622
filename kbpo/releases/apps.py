"""Django app."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "kbpo.releases"
