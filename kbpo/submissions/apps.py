"""Django app."""

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    name = "kbpo.submissions"
