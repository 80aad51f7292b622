"""Quick passwords: nobody logs in here."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
