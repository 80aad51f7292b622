"""Stores the tokens of services."""

from __future__ import annotations

import json
import os
from pathlib import Path


def settings_directory() -> Path:
    """Return the directory of the client's settings; it need not exist."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "kbpo"


def tokens() -> dict[str, str]:
    """Return the token of each service by address; empty before the first log-in."""
    try:
        kept = json.loads((settings_directory() / "tokens.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in kept.items()} if isinstance(kept, dict) else {}


def save_token(url: str, token: str) -> Path:
    """Store a token in a file that only its owner can read, and return the path."""
    folder = settings_directory()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "tokens.json"
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(tokens() | {url: token}, file)
    part.replace(path)
    return path
