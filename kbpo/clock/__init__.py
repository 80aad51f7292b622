"""The time that all processes share: the database's.

Deadlines, leases and retries compare times that different machines write and read, so one clock
must be used. It is queried every few seconds; in between this process adds the time of its
monotonic clock, which never jumps. A jump of another machine's own clock changes nothing.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import psycopg2
from django.db import connection
from django.utils import timezone

ASKED_EVERY = 10.0
"""Seconds between two queries for the time"""
LATE = timedelta(seconds=1)
"""A delayed answer makes the time seem earlier than it is, never later. A time that lies behind the
last one by less than this is ignored, so that time does not run backwards.
"""

_answered: tuple[datetime, float] | None = None
"""The last answer of the database, and this process's monotonic clock at that moment"""


def now() -> datetime:
    """Return the database's time; before its first answer, the time of this machine."""
    global _answered
    at = time.monotonic()
    if _answered is None or at - _answered[1] >= ASKED_EVERY:
        _answered = _without_small_step_back(_database_time(), _answered)
    if _answered is None:
        return timezone.now()
    said, then = _answered
    return said + timedelta(seconds=at - then)


def _without_small_step_back(
    new: tuple[datetime, float] | None, old: tuple[datetime, float] | None
) -> tuple[datetime, float] | None:
    """Return the new time. If it is only a little behind the old one, return the old time counted
    on, so that the time does not run backwards.
    """
    if new is None or old is None:
        return new or old
    counted_on = old[0] + timedelta(seconds=new[1] - old[1])
    if timedelta(0) < counted_on - new[0] < LATE:
        return counted_on, new[1]
    return new


def expire_cached_time() -> None:
    """Make the next call of `now` ask the database."""
    global _answered
    _answered = None


def _database_time() -> tuple[datetime, float] | None:
    """Return the database's answer; None if no connection is open or its transaction failed.

    The connection is used directly, without Django, since rows whose fields default to the time are
    created anywhere, also where the number of a page's statements is tested.
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
