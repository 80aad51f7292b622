"""Computes deadlines in served time, without the times in which the service was off.

The clock beats while the service runs. If two beats lie far apart, the service was off, or the time
was set forward. Such a pause counts for no deadline, and leases that ran when it began are extended
by it. If the time was set back, stored future times are corrected.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from django.apps import apps
from django.db import connection, models, transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest, Least

from kbpo import clock
from kbpo.clock.models import Heartbeat

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=20)
LONGEST_ROUND = timedelta(minutes=2)
"""Beats that lie further apart than this leave a pause between them. It is far below the shortest
lease, which a smaller jump shortens by at most this much. A round that takes longer, with every
worker busy, costs nobody anything either, since deadlines are extended by it."""
BACK = timedelta(seconds=30)
"""Clocks of machines differ by less; a time that goes back further was set back"""
KEPT = timedelta(days=400)
LEASES = ("leased_until", "held_until")
WAITS = (*LEASES, "next_try_at")
SINCE = (
    "status_since",
    "polled_at",
    "hinted_at",
    "split_looked_at",
    "fitted_at",
    "finished_at",
    "taken_at",
)
"""Columns with moments after which some time must pass before the next action"""


class Pause(NamedTuple):
    """A time in which the clock did not tick."""

    begin: datetime
    end: datetime


def record_beat(every: timedelta = EVERY) -> datetime:
    """Return the time, and store it as the last beat if that one is old. Callers that expire rows
    for being late call this first.
    """
    connection.ensure_connection()  # before its first answer the time would be this machine's
    now = clock.now()
    last, _ = Heartbeat.objects.get_or_create(pk=1, defaults={"at": now})
    if timedelta(0) <= now - last.at < every:
        return now  # without a lock: that, too, is written, and would be news to `look`
    with transaction.atomic():
        row = Heartbeat.objects.select_for_update().get(pk=1)
        if timedelta(0) <= now - row.at < every:
            return now
        if now - row.at > LONGEST_ROUND:
            begin = row.at
            log.warning(
                "The clock did not tick from %s to %s; that counts for no deadline", begin, now
            )
            recent = [pause for pause in _stored_pauses(row) if pause.end >= now - KEPT]
            _store_pauses(row, [Pause(begin, now), *recent])
            for model, name in _datetime_fields(LEASES):
                running = model._default_manager.filter(**{f"{name}__gt": begin})
                running.update(**{name: F(name) + (now - begin)})
        elif row.at - now > BACK:
            _correct_future_times(row, now)
        elif now < row.at:
            return now
        row.at = now
        row.save(update_fields=["at", "pauses"])
    return now


def pauses_before(now: datetime) -> list[Pause]:
    """Return the pauses so far, the latest first."""
    row = Heartbeat.objects.filter(pk=1).first()
    return [pause for pause in _stored_pauses(row) if pause.begin < now] if row else []


def latest_due_moment(
    limit: timedelta, now: datetime, pauses: list[Pause] | None = None
) -> datetime:
    """Return the moment that lies `limit` of running time before now, pauses not counted: rows that
    have waited since then are overdue. Callers with several limits pass `pauses_before(now)`.
    """
    at, left = now, limit
    for pause in pauses_before(now) if pauses is None else pauses:
        ran = max(at - pause.end, timedelta(0))
        if ran >= left:
            break
        left -= ran
        at = min(at, pause.begin)
    return at - left


def _stored_pauses(heartbeat: Heartbeat) -> list[Pause]:
    return [Pause(*map(datetime.fromisoformat, ends)) for ends in heartbeat.pauses]


def _store_pauses(heartbeat: Heartbeat, pauses: list[Pause]) -> None:
    heartbeat.pauses = [[begin.isoformat(), end.isoformat()] for begin, end in pauses]


def _correct_future_times(heartbeat: Heartbeat, now: datetime) -> None:
    """Correct the stored times that lie after `now`, because the clock was set back. Pauses end at
    `now` at the latest. Times in `WAITS` are moved back by as much as the clock was, but not before
    `now`; times in `SINCE` are set to `now`.
    """
    last = heartbeat.at
    log.warning("The time was put back from %s to %s", last, now)
    before = [pause for pause in _stored_pauses(heartbeat) if pause.begin < now]
    _store_pauses(heartbeat, [Pause(begin, min(end, now)) for begin, end in before])
    by = last - now
    for model, name in _datetime_fields(WAITS):
        ahead = model._default_manager.filter(**{f"{name}__gt": now})
        ahead.update(**{name: Greatest(Value(now), F(name) - by)})
    for model, name in _datetime_fields(SINCE):
        ahead = model._default_manager.filter(**{f"{name}__gt": now})
        ahead.update(**{name: Least(Value(now), F(name))})


def _datetime_fields(names: tuple[str, ...]) -> list[tuple[type[models.Model], str]]:
    fields = []
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if field.name in names and isinstance(field, models.DateTimeField):
                fields.append((model, field.name))
    return fields
