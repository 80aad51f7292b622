"""Django app."""

from django.apps import AppConfig


class MoneyConfig(AppConfig):
    name = "kbpo.money"
