"""Django app."""

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "kbpo.evaluation"
