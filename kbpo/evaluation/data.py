"""Reads everything that a track's scores are computed from: draws, probabilities, verdicts,
annotated documents.

A judgment enters only through a batch or an annotated document, and so only with its probability;
what has none never gets here: what a follow-up asked about counts with the documents, or not at
all. The exception are judgments that a team saw before it uploaded: for its submission they are no
chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q

from kbpo.inclusion import unasked
from kbpo.inclusion.annotated import annotated
from kbpo.inclusion.disclosure import aware
from kbpo.inclusion.marks import in_documents
from kbpo.inclusion.own_thresholds import own_thresholds
from kbpo.inclusion.read import read as read_routes
from kbpo.instances.models import Label
from kbpo.pool.overlap import overlaps
from kbpo.pool.pool import read_pool
from kbpo.sampling.guess import Lesson, guess_of, one_verdict
from kbpo.sampling.models import LeakTest, Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.data import Data, Draws, FollowedUp, Guess
from scoring.documents import Facts, KnownDocuments
from scoring.inclusion import Disclosed
from scoring.pool import Pool


def read(track: Track) -> Data:
    """The data of a track as they are now."""
    sampled = Submission.objects.filter(track=track, sampled_at__isnull=False).order_by("pk")
    systems = list(sampled.values_list("pk", flat=True))
    taking_part = set(
        Submission.objects.filter(track=track).confirmed().values_list("pk", flat=True)
    )
    kind = kind_of(track)
    pool = read_pool(track, systems)
    documents = annotated(track)
    drawn = _drawn(track)
    waiting = kind.unanswered(drawn)
    recall = recall_of(track)
    facts = None
    if recall:
        facts = recall.facts(pool.instance, systems, documents.documents, _entered(systems))
    routes = read_routes(track, pool, documents, facts, waiting)
    fold, chance = routes.known, routes.everybody
    never_asked = unasked.never_asked(track, pool, chance.counts, drawn)
    besides = {column: unasked.asked_before(pool, column) for column in never_asked}
    drawn_targets = {
        column: routes.saw(column, besides=besides.get(column, {})) for column in routes.disclosed
    }
    again = [
        column for column in {*routes.waits.again, *never_asked} if systems[column] in taking_part
    ]
    own = {
        column: routes.own(column, besides=besides.get(column, {}))
        for column in {*drawn_targets, *again}
    }
    nothing = {column: Disclosed.nothing(pool.target_id.size) for column in again}
    disclosed = dict(nothing)
    for column, disclosure in drawn_targets.items():
        by_document = own[column].chances.document
        disclosed[column] = disclosure.with_documents(by_document, fold.unasked(pool, column))
    counted = chance.counts | np.isin(pool.target_id, sorted(set().union(*drawn.values())))
    counted |= (
        np.any([disclosure.certainty for disclosure in disclosed.values()], axis=0)
        if disclosed
        else False
    )
    judged = np.flatnonzero(counted[pool.target])
    followed_up = None
    if facts:
        covered = routes.in_scope[pool.target] & fold.predicted(pool, aware(drawn_targets))
        followed_up = _followed_up(kind, pool, facts, fold, covered)
    f = kind.judge(pool.instance[judged], systems)
    guesses, unaided = _guesses(track, pool, judged, f, drawn_targets)
    return Data(
        pool=pool,
        shown=np.array([system in taking_part for system in systems], dtype=np.bool_),
        judged=judged,
        f=f,
        draws=_draws(track, pool),
        inclusion=chance,
        g={criterion: guess.g for criterion, guess in guesses.items()},
        rho={criterion: guess.rho for criterion, guess in guesses.items()},
        base=kind.base_criterion(),
        unweighed=kind.unweighed,
        facts=facts,
        documents=documents,
        disclosed=disclosed,
        own=own,
        fold=fold,
        followed_up=followed_up,
        in_documents=in_documents(track, pool, routes.in_scope, routes.follow_ups),
        disclosed_drawn=nothing | drawn_targets,
        alone=own_thresholds(track, pool, waiting),
        noise=dict(kind.noise(pool.instance[judged], systems)),
        found_also=dict(recall.found_also) if recall else {},
        mean=kind.mean,
        error={name: guess.error for name, guess in guesses.items() if guess.error is not None},
        unaided=unaided,
        pending=_pending(
            pool,
            judged,
            routes.waits.again,
            never_asked,
            taking_part,
        ),
    )


def _pending(
    pool: Pool,
    judged: Ids,
    waiting: Mapping[int, Bools],
    never_asked: Mapping[int, Bools],
    taking_part: set[int],
) -> Bools:
    """(k,) rows that some system predicts which waits for a verdict on their targets, or for which
    nobody was asked about them, and no other that takes part: for that one what is not answered is
    missing.
    """
    pending, needed = (np.zeros(judged.size, dtype=np.bool_) for _ in range(2))
    if not waiting and not never_asked:
        return pending
    for column, system in enumerate(pool.systems):
        rows, lacks = pool.predicted(column), np.zeros(pool.target_id.size, dtype=np.bool_)
        for targets in (waiting.get(column), never_asked.get(column)):
            if targets is not None:
                lacks |= targets
        lacking = lacks[pool.target[rows]]
        pending |= np.isin(judged, rows[lacking])
        if system in taking_part:
            needed |= np.isin(judged, rows[~lacking])
    return np.asarray(pending & ~needed)


def _entered(systems: list[int]) -> list[int]:
    """Those of the sampled submissions of a track whose facts recall counts: of whose settled
    batches at least half got an answer, whether or not they were withdrawn since; all of them, as
    long as there is none. None that seems to know which documents were read: what it finds in these
    says nothing of what it finds elsewhere.

    Before that how many of its facts are true would be the model's guess: it would move
    everybody's recall, for good if the submission is then withdrawn, or its questions are given up.
    """
    answers = Label.objects.filter(target=OuterRef("target")).exclude(value={})
    settled = Sample.objects.filter(
        batch__submission__in=systems, batch__settled_at__isnull=False
    ).annotate(answered=Exists(answers))
    asked = settled.values_list("batch__submission").annotate(
        n=Count("target", distinct=True),
        known=Count("target", distinct=True, filter=Q(answered=True)),
    )
    entered = {system for system, n, known in asked if 2 * known >= n}
    chose = set(
        LeakTest.objects.filter(
            submission__in=systems, channel__in=LeakTest.OF_DOCUMENTS, seen=True, lifted=False
        ).values_list("submission", flat=True)
    )
    counted = entered - chose
    return [system for system in systems if system in counted or not (counted or system in chose)]


def _drawn(track: Track) -> dict[int, list[int]]:
    """submission -> the targets that were drawn for it."""
    draws = Sample.objects.filter(batch__submission__track=track).values_list(
        "batch__submission_id", "target_id"
    )
    targets_of: dict[int, list[int]] = {}
    for owner, target in draws.distinct():
        targets_of.setdefault(owner, []).append(target)
    return targets_of


def _followed_up(
    kind: Kind, pool: Pool, facts: Facts, fold: KnownDocuments, covered: Bools
) -> FollowedUp | None:
    """What is judged in annotated documents whatever was drawn: what a follow-up covers."""
    if fold.followed is None:
        return None
    row = np.flatnonzero(covered & (facts.inside >= 0))
    return FollowedUp(
        row, kind.judge(pool.instance[row], pool.systems)[kind.base_criterion()][:, 0]
    )


def _guesses(
    track: Track, pool: Pool, judged: Ids, f: dict[str, Floats], disclosed: dict[int, Disclosed]
) -> tuple[dict[str, Guess], dict[str, Guess]]:
    """The model's guess under each criterion; and without metrics and judges, where they help:
    where there are any, or single ratings count, for which the model also sees who writes alike.
    """
    kind, lesson = type(kind_of(track)), Lesson(pool, track.corpus.hash_key, disclosed)
    aided, unaided = {}, {}
    for name, verdicts in f.items():
        label = np.full(pool.instance.size, np.nan)
        label[judged] = one_verdict(kind, verdicts, pool.member[judged])
        aided[name] = guess_of(kind, name, lesson, label)
        if pool.scorers or aided[name].error is not None:
            unaided[name] = guess_of(kind, name, lesson, label, aided=False)
    return aided, unaided


def _draws(track: Track, pool: Pool) -> dict[str, Draws]:
    samples = list(
        Sample.objects.filter(batch__submission__track=track, instance__isnull=False)
        .order_by("batch_id", "instance_id")
        .values_list(
            "batch__distribution__kind", "batch__submission_id", "instance_id", "multiplicity"
        )
    )
    column = {system: j for j, system in enumerate(pool.systems)}
    draws_of = {}
    for kind in track.distributions:
        mine = [row for row in samples if row[0] == kind]
        if not mine:
            continue
        times = np.array([row[3] for row in mine], dtype=np.int64)
        row = np.repeat(
            np.searchsorted(pool.instance, [draw[2] for draw in mine]).astype(np.int64), times
        )
        owner = np.repeat(np.array([column[draw[1]] for draw in mine], dtype=np.int64), times)
        draws_of[kind] = Draws(
            kind, row, owner, pool.p[kind][row].toarray(), overlaps(kind, pool.systems)
        )
    return draws_of
