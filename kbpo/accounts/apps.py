"""Django app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "kbpo.accounts"
