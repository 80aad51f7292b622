"""Django app."""

from django.apps import AppConfig


class TracksConfig(AppConfig):
    name = "kbpo.tracks"
