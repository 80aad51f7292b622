"""The Django app of accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "kbpo.accounts"
