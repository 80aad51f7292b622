"""One line in the log for a request that was refused: a traceback is for our own bugs."""

from __future__ import annotations

import logging


class OneLine(logging.Filter):
    """Takes the traceback off records of requests that were answered with less than a 500, and of
    requests that Django suspects.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        status = getattr(record, "status_code", 0)
        if 0 < status < 500 or record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        return True
