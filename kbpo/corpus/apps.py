"""Django app."""

from django.apps import AppConfig


class CorpusConfig(AppConfig):
    name = "kbpo.corpus"
