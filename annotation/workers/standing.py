"""Reads at once what decides which questions may be offered to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from annotation.models import Worker
from annotation.workers.consent import SHIPPED
from annotation.workers.intake import tracks_for_volunteers
from annotation.workers.teach import taught_by
from kbpo import clock

# By hand: it is asked with every question, and to compile it took longer than to run it.
STANDING = """
    SELECT w.excluded_at IS NOT NULL,
        EXISTS (
            SELECT FROM annotators_consent c
            WHERE c.worker_id = w.id AND c.version = coalesce(
                (SELECT max(t.version) FROM annotators_terms t), %(shipped)s)),
        EXISTS (SELECT FROM annotators_leaving l WHERE l.worker_id = w.id),
        ARRAY (
            SELECT r.interface || '/' || r.version FROM annotators_tutorialrun r
            WHERE r.worker_id = w.id AND r.passed),
        coalesce(u.is_volunteer, false),
        ARRAY (
            SELECT m.team_id FROM accounts_team_members m WHERE m.user_id = w.user_id
            UNION SELECT f.team_id FROM accounts_team_former f WHERE f.user_id = w.user_id),
        EXISTS (
            SELECT FROM annotation_halt s WHERE s.lifted_at IS NULL AND s.scope = 'all'),
        (
            SELECT a.id FROM annotation_assignment a
            WHERE a.worker_id = w.id AND a.status = 'leased' AND a.leased_until > %(now)s
            ORDER BY a.id LIMIT 1)
    FROM annotation_worker w LEFT JOIN accounts_user u ON u.id = w.user_id
    WHERE w.id = %(worker)s
"""


@dataclass(frozen=True)
class WorkerStanding:
    """What a worker may be offered."""

    worker: int
    """The primary key of the worker."""
    excluded: bool
    consented: bool
    """Whether they agreed to the terms that hold now."""
    leaving: bool
    taught: list[str]
    """Interfaces whose tutorial they passed, or that have none."""
    tracks: list[int] | None
    """The tracks that take volunteers, if they are one; None: all."""
    teams: list[int] | None
    """Their teams, also those that they left, whose systems they do not judge; None, which spares a
    search, without any."""
    stopped: bool
    """Whether anything is, of all that people are asked."""
    in_hand: int | None
    """The primary key of the assignment that they hold."""

    @property
    def may_be_asked(self) -> bool:
        return self.consented and not self.excluded and not self.leaving


def standing_of(worker: int) -> WorkerStanding:
    """Return the standing of the worker with that key, in one statement but for volunteers. Raises
    Worker.DoesNotExist.
    """
    with connection.cursor() as cursor:
        cursor.execute(STANDING, {"worker": worker, "shipped": SHIPPED[-1], "now": clock.now()})
        row = cursor.fetchone()
    if row is None:
        raise Worker.DoesNotExist(f"There is no worker {worker}.")
    excluded, consented, leaving, passed, volunteer, teams, stopped, in_hand = row
    runs = [run.rpartition("/") for run in passed]
    return WorkerStanding(
        worker=worker,
        excluded=excluded,
        consented=consented,
        leaving=leaving,
        taught=taught_by({(interface, int(version)) for interface, _, version in runs}),
        tracks=tracks_for_volunteers() if volunteer else None,
        teams=teams or None,
        stopped=stopped,
        in_hand=in_hand,
    )
