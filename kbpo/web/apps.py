"""Django app."""

from importlib import import_module

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "kbpo.web"

    def ready(self) -> None:
        import_module("kbpo.web.checks")
