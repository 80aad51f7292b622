"""Masks links that give access (password reset, invitation) in logs."""

from __future__ import annotations

import logging
import re

SECRET_LINK = re.compile(r"/(reset/[^/\s]+|join)/[^/\s\"]+")


def mask_links(text: str) -> str:
    """Return the text with the secret part of each link replaced by `…`."""
    return SECRET_LINK.sub(r"/\1/…", text)


class MaskSecretLinks(logging.Filter):
    """Masks secret links in the message of each log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (shown := mask_links(message)) != message:
            record.msg, record.args = shown, ()
        return True
