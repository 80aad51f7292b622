"""Django app."""

from django.apps import AppConfig


class TextsConfig(AppConfig):
    name = "kbpo.tracks.texts"
    label = "texts"
