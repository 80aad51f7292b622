"""Leases questions to the workers of our own pages: the next question in order that a worker has
not been asked.

Locks are taken in the order worker, assignment, HIT (annotation/README.md), so that these functions
cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from secrets import token_hex
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction

from annotation.budget.halts import halted_hits
from annotation.hits.held import ASSIGNMENT, STAKE, has_conflict_of_interest
from annotation.interfaces.registry import interface_by_name, interface_names
from annotation.models import COUNTED, HIT, Assignment, Halt, Question, Worker
from annotation.platforms.registry import local_platform_names
from annotation.quality.gold import pick_gold_hit
from annotation.workers.standing import WorkerStanding, worker_standing
from annotation.workers.teach import interfaces_worker_may_answer, learnable_interfaces
from kbpo import clock
from kbpo.prepared import Prepared

OPEN_TO = """
    FROM annotation_hit h
    WHERE h.platform = places.name AND h.status = 'open'
      AND (SELECT count(*) FROM annotation_assignment a WHERE a.hit_id = h.id
          AND a.status = ANY(%(counted)s))
          < h.max_assignments
      AND NOT EXISTS (
          SELECT 1 FROM annotation_assignment mine
          WHERE mine.hit_id = h.id AND mine.worker_id + 0 = %(worker)s
            AND (mine.status <> 'returned' OR mine.returned_by = %(given_back)s)
          OFFSET 0)
      AND NOT EXISTS (
          SELECT 1 FROM annotation_hit_questions gq JOIN annotation_gold g
              ON g.question_id = gq.question_id
          WHERE gq.hit_id = h.id)
      AND NOT EXISTS (
          SELECT 1
          FROM annotation_hit_questions hq
          JOIN annotation_question q ON q.id = hq.question_id
          JOIN annotation_question met ON met.target_id = q.target_id
              AND met.interface = q.interface
                                      AND met.round = q.round
          JOIN annotation_hit_questions mhq ON mhq.question_id = met.id
          JOIN annotation_assignment a ON a.hit_id = mhq.hit_id
          WHERE hq.hit_id = h.id AND a.worker_id + 0 = %(worker)s
            AND (a.status <> 'returned' OR a.returned_by = %(given_back)s)
          OFFSET 0)
      AND NOT EXISTS (
          SELECT 1 FROM annotation_hit_questions iq JOIN annotation_question i
              ON i.id = iq.question_id
          WHERE iq.hit_id = h.id AND NOT i.interface = ANY(%(interfaces)s)
          OFFSET 0)
      {conditions}
"""
"""Selects HITs with a free place that the worker may take. The worker must not have met one of
their targets in this round, on any track, nor have given the HIT back; gold is excluded, since
`annotation.quality.gold` assigns it. The worker must have learned the interfaces; volunteers see
only tracks that take them. Nobody judges a track on which a team of theirs has a run.

OFFSET 0 prevents PostgreSQL from planning the subquery on a HIT's questions as a join. That join
could start from all questions, or from all answers of the worker, and each lease would read all of
these rows. An index search by worker would do the same, since the planner's statistics do not
include today's answers yet; `+ 0` keeps it from any index that begins with the worker.

Whether the worker had the HIT itself follows from whether they met its targets. The condition is
repeated because it is cheaper to test, and a worker who judges nearly alone skips all HITs that
they answered.
"""
NOT_STOPPED = """
      AND NOT EXISTS (
          SELECT 1 FROM annotation_halt s
          WHERE s.lifted_at IS NULL AND s.scope = 'all' AND (s.track_id IS NULL
              OR s.track_id = h.track_id)
            AND (s.payer_kind IS NULL OR EXISTS (
                SELECT 1 FROM annotation_hit_questions sq JOIN annotation_question p
                    ON p.id = sq.question_id
                WHERE sq.hit_id = h.id AND p.payer_kind = s.payer_kind
                    AND p.payer_number = s.payer_number)))
"""
NOT_READ = """
      AND NOT EXISTS (
          SELECT 1 FROM annotation_hit_questions aq
          JOIN annotation_question alone ON alone.id = aq.question_id
              AND alone.payer_kind = 'documents'
          JOIN instances_target t ON t.id = alone.target_id AND t.kind <> 'document'
          JOIN instances_target d ON d.document_id = t.document_id AND d.kind = 'document'
          JOIN annotation_question whole ON whole.target_id = d.id
          JOIN annotation_hit_questions wq ON wq.question_id = whole.id
          JOIN annotation_assignment reads ON reads.hit_id = wq.hit_id
          WHERE aq.hit_id = h.id AND reads.worker_id + 0 = %(worker)s
              AND reads.status <> 'returned'
          OFFSET 0)
"""
"""Excludes questions about ties between readers from the readers of that document"""
OF_TRACKS = "AND h.track_id = ANY(%(tracks)s)"
NOT_OF_TEAMS = "AND NOT EXISTS ({stake} OFFSET 0)"
"""Added only for workers who belong or belonged to a team, since planning these conditions takes
longer than all the others
"""

NOT_FILLED = """
      AND NOT EXISTS (
          SELECT 1 FROM annotation_hit_questions fq
          JOIN annotation_question f ON f.id = fq.question_id AND f.payer_kind = 'submission'
          JOIN unnest(%(filled)s::bigint[], %(others)s::bigint[]) AS share(run, other)
              ON share.run = f.payer_number
          WHERE fq.hit_id = h.id AND NOT EXISTS (
              SELECT 1 FROM annotation_question met
              JOIN annotation_hit_questions mq ON mq.question_id = met.id
              JOIN annotation_assignment theirs ON theirs.hit_id = mq.hit_id
              WHERE met.target_id = f.target_id AND met.interface = f.interface
                AND met.round = f.round AND theirs.worker_id + 0 = share.other
                AND (theirs.status <> 'returned' OR theirs.returned_by = %(given_back)s))
          OFFSET 0)
"""
"""Excludes runs of which the worker has already given their share of the ratings, as long as
another available worker has not met the question
"""

PLACES = "FROM unnest(%(platforms)s::text[]) AS places(name) CROSS JOIN LATERAL"
"""Searches each platform (`places`) separately: its open HITs are ordered in one index"""
NEXT = f"""
    SELECT nearest.id, nearest.track_id,
        ARRAY(SELECT q.interface FROM annotation_hit_questions hq
            JOIN annotation_question q ON q.id = hq.question_id WHERE hq.hit_id = nearest.id),
        coalesce((SELECT p.gold_rate FROM annotation_policy p WHERE p.track_id = nearest.track_id
            ORDER BY p.id LIMIT 1), 0)
    {PLACES} (
        SELECT h.id, h.order, h.track_id {OPEN_TO} ORDER BY h.order, h.id LIMIT 1
        FOR NO KEY UPDATE OF h {{how}}) AS nearest
    ORDER BY nearest.order, nearest.id LIMIT 1
"""
"""Locks the found HIT and returns its track, interfaces, and the track's rate of gold"""
SEEN = Prepared("UPDATE annotation_worker SET last_seen_at = %(now)s WHERE id = %(worker)s")
"""Locks the worker, so that two windows of one worker get one lease"""
TAKE = Prepared(f"""
    INSERT INTO annotation_assignment AS a (
        hit_id, worker_id, token, status, status_since, next_try_at, accepted_at, leased_until,
        attempts, reason, external_id, platform_status, extra, returned_by)
    SELECT %(dealt)s, %(worker)s, %(token)s, 'leased', %(now)s, %(now)s, %(now)s, %(until)s,
        0, '', '', '', 0, ''
    FROM annotation_hit h
    WHERE h.id = %(hit)s AND h.status = 'open' AND h.max_assignments > (
        SELECT count(*) FROM annotation_assignment o
        WHERE o.hit_id = h.id AND o.status = ANY(%(counted)s))
    RETURNING {ASSIGNMENT.sql}
""")
"""Leases a place of the found HIT. The HIT was locked after its answers were counted, so they are
counted again now that no other transaction can take a place."""
HOW_MANY = f"""
    SELECT greatest(0, (
        SELECT count(*) FROM (
            SELECT 1 {PLACES} (SELECT 1 {OPEN_TO} LIMIT %(most)s) AS of_place LIMIT %(most)s
        ) AS open_hits) - (
        SELECT count(*) FROM annotation_assignment a
        JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id
        JOIN annotation_gold g ON g.question_id = hq.question_id
        WHERE a.worker_id = %(worker)s AND a.status = 'leased'))
"""
"""Counts open HITs. A leased gold question stands for one that is still open; otherwise the count
would reveal that it is gold."""

EARNS = f"""
    WITH open_hits AS (
        SELECT of_place.* {PLACES} (
            SELECT h.id, h.reward, (SELECT coalesce(sum(sq.seconds), 0)
                FROM annotation_hit_questions sh JOIN annotation_question sq
                    ON sq.id = sh.question_id WHERE sh.hit_id = h.id) AS seconds
            {OPEN_TO} LIMIT %(most)s) AS of_place LIMIT %(most)s
    ), gold_in_hand AS (
        SELECT q.reward, q.seconds FROM annotation_assignment a
        JOIN annotation_hit_questions hq ON hq.hit_id = a.hit_id
        JOIN annotation_gold g ON g.question_id = hq.question_id
        JOIN annotation_question q ON q.id = hq.question_id
        WHERE a.worker_id = %(worker)s AND a.status = 'leased'
          AND q.interface = ANY(%(interfaces)s)
    ), told AS (
        SELECT reward, seconds, 1 AS n FROM open_hits
        UNION ALL SELECT -reward, -seconds, -1 FROM gold_in_hand
    )
    SELECT greatest(0, coalesce(sum(n), 0)), greatest(0.00, coalesce(sum(reward), 0)),
        greatest(0, coalesce(sum(seconds), 0)) FROM told
"""
"""Number, reward and expected time of open HITs"""


@dataclass(frozen=True)
class Offer:
    """The number of questions that are open to a worker, up to a limit, and the sum of their
    rewards.
    """

    n: int
    earns: Decimal
    seconds: int


def lease_next(worker: Worker) -> Assignment | None:
    """Return the worker's current assignment, or lease the next question of the kind that they
    chose; None if nothing is open to them.
    """
    turn = _try_lease(worker, skip_locked=True, resume=True)
    for pk in turn.begun:
        if (left := _resume_assignment(worker, pk)) is not None:
            return left
    turns = 0
    while turn.again and turns < 20:  # one attempt for each time that another worker was faster
        turn = _try_lease(worker, skip_locked=bool(turn.begun))
        turns += 1
    return turn.assignment


def choose_interface(worker: Worker, interface: str) -> None:
    """Store the kind of question that the worker wants (empty: any). A leased question of another
    kind is given back; its draft is kept.
    """
    worker.wants = interface
    Worker.objects.filter(pk=worker.pk).update(wants=interface)
    if not interface:
        return
    held = Assignment.objects.filter(worker=worker, status="leased")
    for assignment in held.exclude(hit__questions__interface=interface):
        return_temporarily(assignment)


class _Attempt(NamedTuple):
    """The result of one attempt to lease: whether to retry, and an assignment to resume first."""

    again: bool
    assignment: Assignment | None = None
    begun: Sequence[int] = ()


@transaction.atomic
def _try_lease(worker: Worker, *, skip_locked: bool, resume: bool = False) -> _Attempt:
    """Try once to lease a question. The first attempt skips HITs that others are leasing. If the
    worker left an assignment with a draft, nothing is leased: that assignment is resumed in another
    transaction, so that only one lock of a kind is held.
    """
    now = clock.now()
    SEEN.execute(now=now, worker=worker.pk)
    standing = worker_standing(worker.pk)
    if not standing.may_be_asked:
        return _Attempt(False)
    if standing.in_hand is not None:
        held = Assignment.objects.get(pk=standing.in_hand)
        gone = standing.teams is not None and return_if_conflicted(held)
        return _Attempt(True) if gone else _Attempt(False, held)
    if resume and standing.begun:
        return _Attempt(True, begun=standing.begun)
    wanted = [worker.wants] if worker.wants in standing.taught else standing.taught
    how = "SKIP LOCKED" if skip_locked else ""
    offer = _prepared_lease_statement(NEXT, _hit_conditions(standing), how).fetch_first(
        **_lease_query_values(standing, wanted)
    )
    if offer is None:
        return _Attempt(skip_locked and _count_open(standing, limit=1, interfaces=wanted) > 0)
    hit, track, interfaces, rate = offer
    dealt: int = hit
    gold = pick_gold_hit(worker, dealt, track, rate)
    if gold is not None and not (standing.teams and has_conflict_of_interest(worker.pk, gold.pk)):
        of_gold = list(gold.questions.values_list("interface", flat=True))
        if set(of_gold) <= set(standing.taught):
            dealt, interfaces = gold.pk, of_gold
    taken = TAKE.fetch_first(
        hit=hit,
        dealt=dealt,
        worker=worker.pk,
        token=token_hex(),
        now=now,
        until=now + lease_time(interfaces),
        counted=list(COUNTED),
    )
    return _Attempt(True) if taken is None else _Attempt(False, ASSIGNMENT.row(taken))


@lru_cache
def _prepared_lease_statement(sql: str, conditions: str, how: str = "") -> Prepared:
    """Return the prepared statement with these conditions."""
    return Prepared(sql.format(conditions=conditions, how=how))


def _hit_conditions(worker_standing: WorkerStanding) -> str:
    """Return the conditions on HITs that depend on the worker."""
    return (
        (NOT_READ if worker_standing.may_have_read else "")
        + (NOT_STOPPED if worker_standing.stopped else "")
        + (NOT_FILLED if worker_standing.filled else "")
        + (OF_TRACKS if worker_standing.tracks is not None else "")
        + (NOT_OF_TEAMS.format(stake=STAKE) if worker_standing.teams is not None else "")
    )


@transaction.atomic
def _resume_assignment(worker: Worker, pk: int) -> Assignment | None:
    """Lease an assignment to its worker again, and return it. If the worker holds another
    assignment, return that one instead. Return None if the worker may not be asked, the HIT is
    stopped, or its places are taken.
    """
    SEEN.execute(now=clock.now(), worker=worker.pk)
    standing = worker_standing(worker.pk)
    if not standing.may_be_asked:
        return None
    if standing.in_hand is not None:
        held = Assignment.objects.get(pk=standing.in_hand)
        return None if return_if_conflicted(held) else held
    begun = Assignment.objects.get(pk=pk)
    if halted_hits(Halt.Scope.ALL).filter(pk=begun.hit_id).exists():
        return None
    return begun if revive_expired_lease(begun) else None


def lease_time(interfaces: Iterable[str] = ()) -> timedelta:
    """Return how long a lease of these interfaces lasts without activity; whole documents take
    longer.
    """
    minutes = [interface_by_name(name).terms.lease_minutes for name in interfaces]
    return timedelta(minutes=max([settings.LEASE_MINUTES, *minutes]))


def count_open_hits(worker: Worker, limit: int = 100, interfaces: list[str] | None = None) -> int:
    """Return how many HITs are open to a worker, counted up to `limit`, for these interfaces (by
    default the learned ones).
    """
    return _count_open(worker_standing(worker.pk), limit, interfaces)


def offers_by_interface(
    worker: Worker, interfaces: Iterable[str], limit: int = 200
) -> dict[str, Offer]:
    """Return interface -> the questions that are open to a worker through it, counted up to
    `limit`.
    """
    standing = worker_standing(worker.pk)
    nothing = Offer(0, Decimal("0.00"), 0)
    if standing.excluded:
        return dict.fromkeys(interfaces, nothing)
    statement = _prepared_lease_statement(EARNS, _hit_conditions(standing))
    return {
        interface: Offer(
            *statement.fetch_all(**_lease_query_values(standing, [interface]), most=limit)[0]
        )
        for interface in interfaces
    }


def _count_open(
    worker_standing: WorkerStanding, limit: int, interfaces: list[str] | None = None
) -> int:
    if worker_standing.excluded:
        return 0
    statement = _prepared_lease_statement(HOW_MANY, _hit_conditions(worker_standing))
    [(n,)] = statement.fetch_all(**_lease_query_values(worker_standing, interfaces), most=limit)
    return int(n)


def tutorial_to_learn(worker: Worker) -> str:
    """Return an interface with open questions whose tutorial the worker may still pass, preferring
    the one they chose; empty if there is none.
    """
    passed, can = interfaces_worker_may_answer(worker), learnable_interfaces(worker)
    for name in sorted(interface_names(), key=lambda name: name != worker.wants):
        if name in can and count_open_hits(worker, 1, [*passed, name]):
            return name
    return ""


def _lease_query_values(
    worker_standing: WorkerStanding, interfaces: list[str] | None = None
) -> dict[str, Any]:
    return {
        "interfaces": worker_standing.taught if interfaces is None else interfaces,
        "tracks": worker_standing.tracks,
        "teams": worker_standing.teams,
        "filled": [run for run, _ in worker_standing.filled],
        "others": [other for _, other in worker_standing.filled],
        "platforms": local_platform_names(),
        "counted": list(COUNTED),
        "worker": worker_standing.worker,
        "given_back": Assignment.ReturnedBy.WORKER,
    }


def renew_lease(
    assignment: Assignment,
    draft: dict[str, object] | None = None,
    *,
    questions: Iterable[Question] = (),
) -> bool:
    """Renew a lease, keep the draft, and return whether the lease was still valid. Callers that
    have the questions pass them.
    """
    asked = questions or assignment.hit.questions.all()
    until = clock.now() + lease_time(question.interface for question in asked)
    fields: dict[str, object] = {"leased_until": until}
    if draft is not None:
        fields["draft"] = draft
    held = Assignment.objects.filter(pk=assignment.pk, status="leased")
    return held.update(**fields) == 1


@transaction.atomic
def revive_expired_lease(assignment: Assignment) -> bool:
    """Renew an expired lease if its place is still free (`is_place_free`) and the worker has no
    conflict of interest. Return whether the lease is valid now.
    """
    row = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
    hit = HIT.objects.select_for_update(of=("self",)).get(pk=row.hit_id)
    if (
        row.status != "returned"
        or not is_place_free(hit, row)
        or has_conflict_of_interest(row.worker_id, hit.pk)
    ):
        return False
    now = clock.now()
    interfaces = hit.questions.values_list("interface", flat=True)
    row.move(
        "leased",
        returned_by="",
        leased_until=now + lease_time(interfaces),
        first_accepted_at=row.first_accepted_at or row.accepted_at,
        accepted_at=row.accepted_at + (now - row.status_since),  # nobody worked on it meanwhile
    )
    assignment.refresh_from_db()
    return True


def is_place_free(hit: HIT, assignment: Assignment) -> bool:
    """Return whether a returned assignment may take its place again: the HIT is open and has room,
    and its worker neither gave it back nor has another assignment of it.
    """
    if hit.status != "open" or assignment.returned_by == Assignment.ReturnedBy.WORKER:
        return False
    taken = hit.assignments.exclude(status__in=["returned", "rejected", "failed"])
    return (
        taken.count() < hit.max_assignments
        and not taken.filter(worker=assignment.worker_id).exists()
    )


def return_if_conflicted(assignment: Assignment) -> bool:
    """Give a question back if the team of its worker now has a run on its track. Return whether
    that was so.
    """
    return has_conflict_of_interest(assignment.worker_id, assignment.hit_id) and return_to_queue(
        assignment
    )


def return_to_queue(assignment: Assignment) -> bool:
    """Give a leased question back at the worker's wish; it is not offered to them again. Return
    whether it was leased.
    """
    return _return_lease(assignment, returned_by=Assignment.ReturnedBy.WORKER)


def return_temporarily(assignment: Assignment, draft: dict[str, object] | None = None) -> bool:
    """Give a leased question back because its worker stops for now. It is offered to them first,
    with their draft, unless another worker takes it. Return whether it was leased.
    """
    kept = {} if draft is None else {"draft": draft}
    return _return_lease(assignment, returned_by=Assignment.ReturnedBy.STOPPED, **kept)


def _return_lease(assignment: Assignment, **fields: object) -> bool:
    assignments = Assignment.objects.filter(pk=assignment.pk, status="leased")
    return assignments.update(status="returned", status_since=clock.now(), **fields) == 1
