"""Django app."""

from importlib import import_module

from django.apps import AppConfig


class SamplingConfig(AppConfig):
    name = "kbpo.sampling"

    def ready(self) -> None:
        import_module("kbpo.sampling.draw")  # hears of runs that go
