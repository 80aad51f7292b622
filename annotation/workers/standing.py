"""Reads in one statement which questions may be offered to a worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from annotation.interfaces.registry import document_interfaces, rating_interfaces
from annotation.models import COUNTED, Assignment, Worker
from annotation.platforms.registry import local_platform_names
from annotation.workers.consent import SHIPPED
from annotation.workers.intake import tracks_for_volunteers
from annotation.workers.teach import interfaces_passed
from kbpo import clock
from kbpo.prepared import Prepared
from kbpo.tracks.registry import FORM
from kbpo.tracks.texts.declared import tutorials_of_forms

MOST_OF_ONE = 0.25
"""Greatest share of a run's ratings that one worker should give"""
HERE = timedelta(minutes=5)
"""A worker counts as present if they were given a question within this time"""

FILLED = """
    WITH asked AS (
        SELECT q.id, q.payer_number AS run, s.track_id AS track, q.answers_wanted
        FROM submissions_submission s
        JOIN annotation_question q ON q.payer_kind = 'submission' AND q.payer_number = s.id
        WHERE s.status = 'judging' AND EXISTS (
            SELECT FROM money_price p WHERE p.track_id = s.track_id
              AND (p.interface = ANY(%(rating)s::text[]) OR p.interface LIKE %(forms)s))
    ), given AS (
        SELECT asked.run, a.worker_id, count(*) AS n
        FROM asked JOIN annotation_hit_questions hq ON hq.question_id = asked.id
        JOIN annotation_assignment a ON a.hit_id = hq.hit_id AND a.status = ANY(%(counted)s::text[])
        GROUP BY asked.run, a.worker_id
    ), share AS (
        SELECT run, track, ceil(sum(answers_wanted) * %(most)s::float8) AS most
        FROM asked GROUP BY run, track
    ), rates AS (
        SELECT DISTINCT share.track, given.worker_id FROM given JOIN share USING (run)
    )
    SELECT ARRAY[share.run, other.id] FROM share JOIN given mine ON mine.run = share.run
    JOIN rates ON rates.track = share.track AND rates.worker_id <> %(worker)s
    JOIN annotation_worker other ON other.id = rates.worker_id
        AND other.excluded_at IS NULL AND other.last_seen_at > %(here)s
    LEFT JOIN given theirs ON theirs.worker_id = other.id AND theirs.run = share.run
    WHERE mine.worker_id = %(worker)s AND mine.n >= share.most
      AND coalesce(theirs.n, 0) < share.most
"""
"""Selects the judged runs of which `worker` gave a quarter of the ratings, each with every present
worker who rates on the track and gave fewer
"""


WAITS_FOR_THEM = timedelta(days=14)
"""How long a worker gets the question that they started again, if nobody else took it"""
LEFT = [Assignment.ReturnedBy.STOPPED.value, Assignment.ReturnedBy.LEASE.value]

# Raw SQL: it runs for every question, and Django took longer to compile it than to run it.
STANDING = Prepared(f"""
    SELECT w.excluded_at IS NOT NULL,
        EXISTS (
            SELECT FROM annotators_consent c
            WHERE c.worker_id = w.id AND c.version = coalesce(
                (SELECT max(t.version) FROM annotators_terms t), %(shipped)s)),
        w.leaves_at IS NOT NULL,
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
            ORDER BY a.id LIMIT 1),
        ARRAY (
            SELECT a.id FROM annotation_assignment a JOIN annotation_hit h ON h.id = a.hit_id
            WHERE a.worker_id = w.id AND a.status = 'returned' AND a.draft IS NOT NULL
              AND a.returned_by = ANY(%(left)s) AND a.status_since > %(since)s
              AND h.status = 'open' AND h.platform = ANY(%(platforms)s)
              AND (w.wants = '' OR EXISTS (
                  SELECT FROM annotation_hit_questions hq
                  JOIN annotation_question q ON q.id = hq.question_id
                  WHERE hq.hit_id = h.id AND q.interface = w.wants))
            ORDER BY a.status_since DESC LIMIT 5),
        ARRAY (SELECT ARRAY[f.name, f.text] FROM texts_declaredform f ORDER BY f.id),
        ARRAY ({FILLED})
    FROM annotation_worker w LEFT JOIN accounts_user u ON u.id = w.user_id
    WHERE w.id = %(worker)s
""")


@dataclass(frozen=True)
class WorkerStanding:
    """The facts about a worker that decide which questions they may be asked."""

    worker: int
    """The primary key of the worker."""
    excluded: bool
    consented: bool
    """Whether they agreed to the current terms."""
    leaving: bool
    taught: list[str]
    """Interfaces whose tutorial they passed, or that have none."""
    may_have_read: bool
    """Whether they ever passed a tutorial for whole documents, in any version."""
    tracks: list[int] | None
    """The tracks that take volunteers, if the worker is a volunteer; None: all tracks."""
    teams: list[int] | None
    """Their current and former teams, whose systems they do not judge; None if there are none,
    which saves a search."""
    filled: list[list[int]]
    """Runs of which they gave their share of the ratings, each with a present worker who gave
    fewer: [run, worker]"""
    stopped: bool
    """Whether any work is halted."""
    in_hand: int | None
    """The primary key of the assignment that they hold; None if there is none."""
    begun: list[int]
    """Assignments that they started lately and left with a draft, of the kind that they want,
    newest first, if the HIT is open."""

    @property
    def may_be_asked(self) -> bool:
        return self.consented and not self.excluded and not self.leaving


def worker_standing(worker: int) -> WorkerStanding:
    """Return the facts about a worker that decide which questions they may be asked. Needs one more
    query for volunteers. Raises Worker.DoesNotExist.
    """
    row = STANDING.fetch_first(
        worker=worker,
        shipped=SHIPPED[-1],
        now=clock.now(),
        left=LEFT,
        since=clock.now() - WAITS_FOR_THEM,
        platforms=local_platform_names(),
        rating=rating_interfaces(),
        forms=f"{FORM}%",
        counted=list(COUNTED),
        most=MOST_OF_ONE,
        here=clock.now() - HERE,
    )
    if row is None:
        raise Worker.DoesNotExist(f"There is no worker {worker}.")
    excluded, consented, leaving, passed, volunteer, teams, stopped, in_hand, begun, *learned = row
    forms, filled = learned
    versions: set[tuple[str, int]] = set()
    for name in passed:  # "interface/version"
        interface, _, version = name.rpartition("/")
        versions.add((interface, int(version)))
    taught = interfaces_passed(versions, tutorials_of_forms(forms))
    learned_ever = {*taught, *(interface for interface, _ in versions)}
    return WorkerStanding(
        worker=worker,
        excluded=excluded,
        consented=consented,
        leaving=leaving,
        taught=taught,
        may_have_read=not learned_ever.isdisjoint(document_interfaces()),
        tracks=tracks_for_volunteers() if volunteer else None,
        teams=teams or None,
        filled=filled,
        stopped=stopped,
        in_hand=in_hand,
        begun=begun,
    )
