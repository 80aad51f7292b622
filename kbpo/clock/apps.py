"""Django app."""

from django.apps import AppConfig


class ClockConfig(AppConfig):
    name = "kbpo.clock"
