"""Django app."""

from django.apps import AppConfig


class SamplingConfig(AppConfig):
    name = "kbpo.sampling"
