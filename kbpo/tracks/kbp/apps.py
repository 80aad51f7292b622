"""Django app."""

from django.apps import AppConfig


class KbpConfig(AppConfig):
    name = "kbpo.tracks.kbp"
    label = "kbp"
