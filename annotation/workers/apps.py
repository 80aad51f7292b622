"""Django app."""

from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotation.workers"
    label = "annotators"
