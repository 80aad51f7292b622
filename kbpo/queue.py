"""The database is the queue: rows that move through statuses, claimed one at a time, retried, and
failed with a reason.

A step works on one row like this: a short transaction claims the row (and counts the attempt); a
second one locks it, does the work and changes its status. A killed process loses its lock with its
connection, so the row is free again at once, and the attempt was counted: a row that kills its
worker fails after `MAX_ATTEMPTS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, ClassVar, Self, TypeVar

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection, models, transaction
from django.utils.module_loading import import_string
from psycopg2.errors import DeadlockDetected, LockNotAvailable

from kbpo import clock
from kbpo.clock.served import latest_due_moment, pauses_before, record_beat

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
BACKOFF = timedelta(seconds=5)


class OwnersFault(Exception):
    """Raised for work that can never succeed, for a reason that its owner can fix; the text is a
    sentence for the owner.
    """


Kind = TypeVar("Kind", bound=models.Model)


class MovingQuerySet(models.QuerySet[Kind]):
    def due(self, status: str) -> Self:
        """Return rows in a status whose next try is due, oldest first."""
        return self.filter(status=status, next_try_at__lte=clock.now()).order_by(
            "status_since", "pk"
        )

    def move(self, status: str, reason: str = "", **fields: Any) -> int:
        """Move all of these rows as `Moving.move` does, and return their number."""
        now = clock.now()
        return self.update(
            status=status, status_since=now, next_try_at=now, attempts=0, reason=reason, **fields
        )

    def counts(self) -> dict[str, int]:
        """Return the number of rows for each status."""
        return dict(self.order_by().values_list("status").annotate(n=models.Count("pk")))


class Moving(models.Model):
    """A row with a status. Statuses that wait have a deadline (`DEADLINES`); `GIVEN_UP` is the
    status after too many attempts.
    """

    DEADLINES: ClassVar[dict[str, tuple[timedelta, str, str]]] = {}
    """status -> (how long a row may stay in it, the status after that, the sentence for its
    owner)."""
    GIVEN_UP: ClassVar[str] = "failed"

    status = models.CharField(max_length=16, db_index=True)
    status_since = models.DateTimeField(default=clock.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=clock.now)
    reason = models.TextField(
        blank=True, default="", help_text="Why it waits or was given up, for its owner"
    )

    objects = MovingQuerySet.as_manager()

    class Meta:
        abstract = True

    def move(self, status: str, reason: str = "", **fields: Any) -> None:
        """Save the row in a new status, and reset the count of attempts."""
        now = clock.now()
        self.status, self.status_since, self.next_try_at = status, now, now
        self.attempts, self.reason = 0, reason
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(
            update_fields=["status", "status_since", "next_try_at", "attempts", "reason", *fields]
        )

    def retry(self) -> None:
        """Make the row due at once and reset the count of attempts, after a person pressed
        Retry.
        """
        self.move(self.status)


Row = TypeVar("Row", bound=Moving)


def handle_rows(
    model: type[Row],
    status: str,
    handle: Callable[[Row], None],
    *,
    limit: int = 100,
    filters: dict[str, Any] | None = None,
) -> int:
    """Handle the rows in `status` and return their number. `handle(row)` runs in a transaction that
    holds the row's lock.
    """
    if not _is_any_row_due(model, status):
        return 0
    done, tried = 0, set[Any]()
    while len(tried) < limit and (row := _claim_row(model, status, tried, filters or {})):
        tried.add(row.pk)
        done += _handle_row(model, row, handle)
    return done


def handle_rows_in_batch(
    model: type[Row], status: str, handle: Callable[[list[Row]], None], *, limit: int = 100
) -> int:
    """Handle the rows in `status` in one transaction that locks them, at most `limit` rows, and
    return how many. Rows that arrive meanwhile wait for the next tick: handling many rows takes
    little longer than one.

    Only rows without an earlier attempt are handled together. Rows whose handling failed, or whose
    process was killed, are then handled one by one (`handle_rows`), so that no row fails because of
    another one.
    """
    if not _is_any_row_due(model, status):
        return 0
    done, tried, more = 0, set[Any](), True
    while more and (pks := _claim_new_rows(model, status, limit)):
        try:
            with transaction.atomic():
                rows = model._default_manager.select_for_update(
                    skip_locked=True, of=("self",), no_key=True
                )
                claimed = rows.filter(pk__in=pks, status=status, attempts=1).order_by("pk")
                ours: list[Row] = list(claimed)  # type: ignore[arg-type]
                handle(ours)
                done += len(ours)
        except Exception:
            log.exception(
                "%s %s in status %s failed together; each is tried alone",
                len(pks),
                model.__name__,
                status,
            )
            break
        # Rows that are due again at once wait for the next tick.
        more = len(pks) == limit and tried.isdisjoint(pks)
        tried.update(pks)

    def handle_one(row: Row) -> None:
        handle([row])

    return done + handle_rows(model, status, handle_one, limit=limit, filters={"attempts__gt": 0})


def _is_any_row_due(model: type[Row], status: str) -> bool:
    """Return whether a row can be claimed. Uses raw SQL, since every step runs this query at every
    tick, and most find nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT EXISTS (SELECT FROM "{model._meta.db_table}"'
            " WHERE status = %s AND next_try_at <= %s)",
            [status, clock.now()],
        )
        return bool(cursor.fetchone()[0])


def _claim_new_rows(model: type[Row], status: str, limit: int) -> list[Any]:
    with transaction.atomic():
        rows = model._default_manager.select_for_update(skip_locked=True, of=("self",), no_key=True)
        fresh = rows.filter(status=status, next_try_at__lte=clock.now(), attempts=0)
        pks = list(fresh.order_by("status_since", "pk").values_list("pk", flat=True)[:limit])
        model._default_manager.filter(pk__in=pks).update(attempts=1)
        return pks


def _claim_row(
    model: type[Row], status: str, tried: set[Any], filters: dict[str, Any]
) -> Row | None:
    with transaction.atomic():
        rows = model._default_manager.select_for_update(skip_locked=True, of=("self",), no_key=True)
        due = rows.filter(status=status, next_try_at__lte=clock.now(), **filters).exclude(
            pk__in=tried
        )
        row: Row | None = due.order_by("status_since", "pk").first()  # type: ignore[assignment]
        if row is not None:
            row.attempts += 1
            row.save(update_fields=["attempts"])
        return row


def _handle_row(model: type[Row], claimed: Row, handle: Callable[[Row], None]) -> bool:
    try:
        with transaction.atomic():
            rows = model._default_manager.select_for_update(
                skip_locked=True, of=("self",), no_key=True
            )
            found = rows.filter(pk=claimed.pk, status=claimed.status, attempts=claimed.attempts)
            row: Row | None = found.first()  # type: ignore[assignment]
            if row is None:  # another worker has it
                return False
            if row.attempts > MAX_ATTEMPTS:
                row.move(
                    row.GIVEN_UP,
                    f"Started {MAX_ATTEMPTS} times and never finished. {row.reason}".strip(),
                )
                return True
            handle(row)
            return True
    except OwnersFault as fault:
        _store_failure(model, claimed, str(fault), final=True)
    # a bug or a failing service: logged with its traceback, reported in a sentence, retried
    except Exception as error:
        if is_lock_timeout(error):
            _make_due_again(model, claimed)
            return False
        log.exception("%s %s failed in status %s", model.__name__, claimed.pk, claimed.status)
        what = (
            "The database did not answer as expected"
            if isinstance(error, DatabaseError)
            else "An internal error"
        )
        _store_failure(
            model, claimed, f"{what} ({type(error).__name__}). It is logged.", final=False
        )
    return False


def is_lock_timeout(error: Exception) -> bool:
    """Return whether another transaction held a lock for too long, or a deadlock occurred."""
    return isinstance(error, OperationalError) and isinstance(
        error.__cause__, LockNotAvailable | DeadlockDetected
    )


def _make_due_again(model: type[Row], claimed: Row) -> None:
    """Make the row due again soon, without counting an attempt."""
    log.warning("%s %s waits for a lock; it is tried again", model.__name__, claimed.pk)
    rows = model._default_manager.filter(
        pk=claimed.pk, status=claimed.status, attempts=claimed.attempts
    )
    rows.update(attempts=claimed.attempts - 1, next_try_at=clock.now() + BACKOFF)


def _store_failure(model: type[Row], claimed: Row, sentence: str, *, final: bool) -> None:
    with transaction.atomic():
        row = (
            model._default_manager.select_for_update(of=("self",))
            .filter(pk=claimed.pk, status=claimed.status)
            .first()
        )
        if row is None:
            return
        if final or row.attempts >= MAX_ATTEMPTS:
            row.move(row.GIVEN_UP, sentence)
        else:
            row.reason = sentence
            row.next_try_at = clock.now() + BACKOFF * 2 ** (row.attempts - 1)
            row.save(update_fields=["reason", "next_try_at"])


def fail_late_rows() -> int:
    """Fail the rows that stayed in a waiting status beyond its deadline, and return their
    number.
    """
    now = record_beat()
    pauses = pauses_before(now)
    since = cache(partial(latest_due_moment, now=now, pauses=pauses))
    return sum(_fail_late_rows_of_model(model, since) for model in _models_with_late_rows(since))


def _models_with_late_rows(since: Callable[[timedelta], datetime]) -> list[type[Moving]]:
    """Return the models that have at least one row past the deadline of its status. One SQL
    statement checks all models.
    """
    waiting = [
        model
        for model in apps.get_models()
        if issubclass(model, Moving) and not model._meta.abstract and model.DEADLINES
    ]
    asked: list[str] = []
    values: list[str | datetime] = []
    for number, model in enumerate(waiting):
        late = " OR ".join(["(status = %s AND status_since < %s)"] * len(model.DEADLINES))
        asked.append(
            f'SELECT {number} WHERE EXISTS (SELECT FROM "{model._meta.db_table}" WHERE {late})'
        )
        for status, (limit, _, _) in model.DEADLINES.items():
            values += [status, since(limit)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked), values)
        return [waiting[number] for (number,) in cursor.fetchall()]


def _fail_late_rows_of_model(model: type[Moving], since: Callable[[timedelta], datetime]) -> int:
    late = models.Q()
    for status, (limit, _, _) in model.DEADLINES.items():
        late |= models.Q(status=status, status_since__lt=since(limit))
    with transaction.atomic():
        rows = model._default_manager.select_for_update(skip_locked=True, of=("self",), no_key=True)
        found = list(rows.filter(late)[:1000])
        for row in found:
            _, to, sentence = model.DEADLINES[row.status]
            row.move(to, sentence)
    return len(found)


def take_transaction_lock(lock_name: str, key: int) -> None:
    """Take a lock of that name until the end of the transaction; wait while another transaction
    holds it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [lock_name, key])


def wake_step(step: str) -> None:
    """Ask a worker to run a step as soon as this transaction commits. This may fail without harm,
    since the clock runs every step anyway.
    """
    if settings.NUDGES:
        transaction.on_commit(lambda: _send_step_task(step))


def _send_step_task(step: str) -> None:
    try:
        # By name, when it is needed: in a web process nobody else loads the application, and
        # Celery's own default one would look for a broker that nobody configured.
        import_string("kbpo.celery.app").send_task(
            "kbpo.step", args=[step], retry=False, expires=60
        )
    except Exception as error:  # without Redis the next step waits for the clock
        log.warning("Could not nudge %s: %s", step, error)
