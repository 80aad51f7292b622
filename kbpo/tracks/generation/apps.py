"""Django app."""

from django.apps import AppConfig


class GenerationConfig(AppConfig):
    name = "kbpo.tracks.generation"
    label = "generation"
