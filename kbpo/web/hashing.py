"""Passwords are hashed as Django does, in a slot for expensive requests."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from kbpo.web.expensive import slot

PATIENCE = 5.0
"""Seconds that a log-in waits for its turn; hashing takes a third of one"""


class LimitedHasher(PBKDF2PasswordHasher):
    """Django's default hasher: the hashes are the same."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with slot(PATIENCE):
            return super().encode(password, salt, iterations)
