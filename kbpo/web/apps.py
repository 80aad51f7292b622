"""Django app."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "kbpo.web"
