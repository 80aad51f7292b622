"""Django app."""

from django.apps import AppConfig


class InstancesConfig(AppConfig):
    name = "kbpo.instances"
