"""Django app."""

from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotation.annotators"
    label = "annotators"
