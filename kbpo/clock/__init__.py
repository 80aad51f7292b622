"""The time that all processes share: the database's.

Deadlines, leases and retries compare what one machine wrote with what another reads, so one clock
must decide. It is asked every few seconds; between two answers this process counts on by its
monotonic clock, which never jumps. A jump of a web server's or a worker's own clock moves nothing.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import psycopg2
from django.db import connection
from django.utils import timezone

ASKED_EVERY = 10.0
"""Seconds between two questions to the database"""
LATE = timedelta(seconds=1)
"""An answer that waited on its way makes the time seem earlier than it is, never later: what is
behind the last one by less than this is not believed, so that time does not run backwards.
"""

_answered: tuple[datetime, float] | None = None
"""What the database said last, and this process's monotonic clock then"""


def now() -> datetime:
    """Return the database's time. Before its first answer, that of this machine."""
    global _answered
    at = time.monotonic()
    if _answered is None or at - _answered[1] >= ASKED_EVERY:
        _answered = _smooth(_ask(), _answered)
    if _answered is None:
        return timezone.now()
    said, then = _answered
    return said + timedelta(seconds=at - then)


def _smooth(
    new: tuple[datetime, float] | None, old: tuple[datetime, float] | None
) -> tuple[datetime, float] | None:
    """Return the new time, unless it is a little behind the old one."""
    if new is None or old is None:
        return new or old
    counted_on = old[0] + timedelta(seconds=new[1] - old[1])
    if timedelta(0) < counted_on - new[0] < LATE:
        return counted_on, new[1]
    return new


def ask_again() -> None:
    """Make the next call of `now` ask the database."""
    global _answered
    _answered = None


def _ask() -> tuple[datetime, float] | None:
    """Return the database's answer; None where no connection is open or its transaction failed.

    The connection is used as it is, past Django: rows whose fields default to the time are made
    anywhere, also where a page's number of statements is counted.
    """
    opened = connection.connection
    if opened is None or opened.closed:
        return None
    try:
        with opened.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (said,) = cursor.fetchone()
    except psycopg2.Error:
        return None
    return said, time.monotonic()
