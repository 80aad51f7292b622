"""Django app."""

from django.apps import AppConfig


class ScoresConfig(AppConfig):
    name = "kbpo.scores"
    label = "scores"
