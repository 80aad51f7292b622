"""Where the client keeps which service it speaks to, and the token for it."""

from __future__ import annotations

import json
import os
from pathlib import Path


def settings_directory() -> Path:
    """Return the directory of the client's settings; it need not exist."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "kbpo"


def tokens() -> dict[str, str]:
    """Address of a service -> token; empty where nobody has logged in."""
    try:
        kept = json.loads((settings_directory() / "tokens.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in kept.items()} if isinstance(kept, dict) else {}


def save_token(url: str, token: str) -> Path:
    """Return the file in which the token is kept from now on; nobody else may read it."""
    folder = settings_directory()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "tokens.json"
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(tokens() | {url: token}, file)
    part.replace(path)
    return path
