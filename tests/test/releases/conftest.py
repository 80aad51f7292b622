"""Releases against the service itself, with the uploads of the pages' tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "client"))

from tests.test.web.conftest import as_user, draft, uploads

__all__ = ["as_user", "draft", "uploads"]
