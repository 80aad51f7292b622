"""Stores the single-key shortcuts of a worker: switched off, or changed."""

from __future__ import annotations

import json
import string
from typing import Any

from annotation.models import Worker

LETTERS = frozenset(string.ascii_lowercase)
MOST = 26


def keys_of(worker: Worker | None) -> str:
    """Return the settings as JSON for the page."""
    return json.dumps(worker.keys if worker is not None else {})


def set_keys(worker: Worker, said: str) -> bool:
    """Store these settings and return whether they are valid: no key may have two meanings."""
    try:
        wanted = json.loads(said)
    except (ValueError, RecursionError):
        return False
    if not _is_valid(wanted):
        return False
    worker.keys = {"off": wanted["off"], "keys": wanted["keys"]}
    worker.save(update_fields=["keys"])
    return True


def _is_valid(wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not isinstance(wanted.get("off"), bool):
        return False
    changed = wanted.get("keys")
    if not isinstance(changed, dict) or len(changed) > MOST:
        return False
    pressed = list(changed.values())
    one_each = all(isinstance(key, str) and len(key) == 1 and key.isprintable() for key in pressed)
    return changed.keys() <= LETTERS and one_each and len(set(pressed)) == len(pressed)
