"""Django app."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created

from kbpo.clock import patience


class ClockConfig(AppConfig):
    name = "kbpo.clock"

    def ready(self) -> None:
        connection_created.connect(patience.set_session_limits, dispatch_uid="patience")
