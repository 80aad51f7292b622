"""Expert checks: judged targets, drawn with recorded probabilities, that an expert answers again
without seeing the crowd's answer.

Every target has one keyed random number v per track and is checked iff v < e, its probability. A
later round raises probabilities and never lowers them, so that checked targets stay checked. Checks
are answered in the order of v/e: the answered ones are then a sample at any moment, with
probabilities multiplied by the smallest open v/e.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Min, QuerySet

from estimators.noise import expert_probabilities
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.sql import copy_rows, fetch_rows
from kbpo.pool.probabilities import random_numbers
from kbpo.queue import OwnersFault, take_transaction_lock, wake_step
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from scoring.arrays import Bools, Floats, Ids
from scoring.pool import values_at_rows

MOST = 5_000


class CannotDraw(OwnersFault):
    """Raised for a round that cannot be drawn; the text is a sentence for the admin."""


@dataclass(frozen=True)
class Frame:
    """The sampling frame of a round of expert checks: t judged targets that are in the sample."""

    target_id: Ids
    """(t,) ascending"""
    a: Floats
    """(t, m) weight over inclusion probability under every system that needs correction"""
    doubt: Floats
    """(t,) q (1 − q), q the probability that the crowd's answer is right"""
    inclusion: Floats
    """(t,) inclusion probability of the target for all systems; 0 if it is in the sample of single
    systems only"""
    checked: Floats
    """(t,) the probability of a check in earlier rounds"""


def order_expert_round(track: Track, budget: int, who: User | None, why: str) -> ExpertRound:
    """Order the next round, or change the pending order, and return it. `budget` is the expected
    number of new checks. Raises CannotDraw.
    """
    if not 1 <= budget <= MOST:
        raise CannotDraw(f"Give the number of judgments to check, from 1 to {MOST:,}.")
    if not why:
        raise CannotDraw("Nothing was drawn: give a reason for the log.")
    if refusal := kind_of(track).words.unchecked:
        raise CannotDraw(refusal)
    _raise_if_round_open(track)
    now = clock.now()
    asked = {"status": "asked", "status_since": now, "next_try_at": now, "attempts": 0}
    row, _ = ExpertRound.objects.update_or_create(
        track=track,
        number=None,
        defaults=asked | {"reason": "", "budget": budget, "drawn_by": who, "why": why},
    )
    wake_step("draw_checks")
    return row


@transaction.atomic
def draw_round(expert_round: ExpertRound, frame: Frame) -> None:
    """Draw a round that was ordered. Raises CannotDraw."""
    track = expert_round.track
    take_transaction_lock("draw checks", track.pk)
    _raise_if_round_open(track)
    v = random_numbers(track, "expert", frame.target_id)
    known = frame.checked > v
    if not frame.target_id.size:
        raise CannotDraw("Nothing that people judged here can be checked.")
    if known.all():
        raise CannotDraw("There is no judgment that was not checked yet.")
    e = compute_chances(frame, known, expert_round.budget)
    number = drawn_rounds(track).count() + 1
    expert_round.move("open", number=number, drawn_at=clock.now())
    able = e > 0
    ids, inclusion = frame.target_id[able].tolist(), frame.inclusion[able].tolist()
    copy_rows(
        "sampling_expertchance",
        ("round_id", "target_id", "probability", "inclusion"),
        zip([expert_round.pk] * len(ids), ids, e[able].tolist(), inclusion, strict=True),
    )
    # Checks of an ended round that do not count are not asked again either.
    answered = ExpertCheck.objects.filter(track=track, kind="check", answered_at__isnull=False)
    targets = list(answered.values_list("target_id", flat=True))
    chosen = (v < e) & ~known & ~np.isin(frame.target_id, targets)
    order = dict(
        zip(frame.target_id[chosen].tolist(), (v[chosen] / e[chosen]).tolist(), strict=True)
    )
    drafts = list(kind_of(track).draft_questions(list(order), None))
    if len(drafts) != len(order):
        raise CannotDraw("This kind of track cannot be checked by experts.")
    ExpertCheck.objects.bulk_create(
        ExpertCheck(
            track=track,
            round=expert_round,
            target_id=draft.target_id,
            order=order[draft.target_id],
            interface=draft.interface,
            payload=draft.payload,
            shown=draft.shown,
        )
        for draft in drafts
    )
    write_audit_entry(
        "draw checks",
        f"track:{track.slug}",
        who=expert_round.drawn_by,
        why=expert_round.why,
        track=track.slug,
        after=f"round {number}, {len(drafts)} judgments",
    )
    end_if_done(expert_round)


def drawn_rounds(track: Track) -> QuerySet[ExpertRound]:
    """Return the rounds of a track that were drawn, oldest first."""
    return ExpertRound.objects.filter(track=track, number__isnull=False).order_by("number")


def open_round(track: Track) -> ExpertRound | None:
    """Return the open round; None if there is none."""
    return ExpertRound.objects.filter(track=track, status="open").first()


def _raise_if_round_open(track: Track) -> None:
    if open_round(track) is not None:
        raise CannotDraw("The last round is still open: answer it or end it first.")


def compute_chances(frame: Frame, known: np.ndarray[Any, Any], budget: float) -> Floats:
    """Return the probabilities with which a round checks each target: proportional to √(Σ a²)
    √doubt, not below those of earlier rounds, and such that the expected number of new checks is
    the budget.
    """
    unknown = ~known

    def chances_with_total(total: float) -> tuple[Floats, float]:
        e = np.maximum(frame.checked, expert_probabilities(frame.a, frame.doubt, budget=total))
        gain = (e - frame.checked)[unknown] / (1 - frame.checked[unknown])
        return e, float(gain.sum())

    low, high = 0.0, 2.0 * frame.target_id.size + budget
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chances_with_total(middle)[1] < budget else (low, middle)
    return chances_with_total(high)[0]


@transaction.atomic
def end_expert_round(
    expert_round: ExpertRound, who: User | None = None, why: str = ""
) -> ExpertRound:
    """End a round and return it: open checks are deleted; the answered ones are used as far as they
    form a random sample.
    """
    take_transaction_lock("draw checks", expert_round.track_id)
    ended = ExpertRound.objects.select_for_update(of=("self",)).get(pk=expert_round.pk)
    if ended.status == "ended":
        return ended
    waiting = ended.checks.filter(answered_at__isnull=True)
    least = waiting.aggregate(least=Min("order"))["least"]
    n, _ = waiting.delete()
    write_audit_entry(
        "end checks",
        f"track:{expert_round.track.slug}",
        who=who,
        why=why,
        track=expert_round.track.slug,
        after=f"round {expert_round.number}, {n} not answered",
    )
    ended.move("ended", released=1.0 if least is None else least)
    wake_step("estimate")
    return ended


def end_if_done(expert_round: ExpertRound) -> None:
    """End a round that has no open checks."""
    if not expert_round.checks.filter(answered_at__isnull=True).exists():
        ExpertRound.objects.filter(pk=expert_round.pk, status="open").move("ended")


@dataclass(frozen=True)
class Answered:
    """The answers of experts for t targets, and the probabilities with which r rounds drew them."""

    rounds: Ids
    """(r,) numbers of the rounds"""
    pi: Floats
    """(r, t) inclusion probability of each target when the round was drawn; 0 if the round could
    not draw it"""
    e: Floats
    """(r, t) probability that the round chose the target and its answer is known"""
    checked: Bools
    """Whether an answer is used"""
    values: dict[int, dict[int, dict[str, Any]]]
    """target id -> the expert's values for the target and its mentions; empty if it cannot be
    answered"""
    settled_by: datetime
    """When the last used round was drawn; systems with a sample that was judged by then can be
    corrected"""


def read_checks(track: Track, target_ids: Ids) -> Answered | None:
    """Return the used expert checks of some targets; None without any."""
    rounds = [(row, released_share(row)) for row in drawn_rounds(track)]
    rounds = [(row, share) for row, share in rounds if share > 0]
    if not rounds:
        return None
    e, pi = (np.zeros((len(rounds), target_ids.size)) for _ in range(2))
    for index, (row, share) in enumerate(rounds):
        rows = fetch_rows(
            "SELECT target_id, probability, inclusion FROM sampling_expertchance"
            " WHERE round_id = %s AND target_id = ANY(%s)",
            [row.pk, target_ids.tolist()],
        )
        chances = np.array(rows, dtype=np.float64).reshape(-1, 3)
        chances = chances[np.argsort(chances[:, 0])]
        checkable = chances[:, 0].astype(np.int64)
        e[index] = share * values_at_rows(checkable, chances[:, 1], target_ids)
        pi[index] = values_at_rows(checkable, chances[:, 2], target_ids)
    checked = random_numbers(track, "expert", target_ids) < e.max(axis=0)
    answered = ExpertCheck.objects.filter(
        track=track,
        kind="check",
        answered_at__isnull=False,
        target__in=target_ids[checked].tolist(),
    )
    values = {
        target: {int(instance): verdict for instance, verdict in (value or {}).items()}
        for target, value in answered.values_list("target_id", "value")
    }
    return Answered(
        rounds=np.array([row.number for row, _ in rounds], dtype=np.int64),
        pi=pi,
        e=e,
        checked=checked & np.isin(target_ids, list(values)),
        values=values,
        settled_by=max(row.drawn_at for row, _ in rounds),
    )


def released_share(expert_round: ExpertRound) -> float:
    """Return the share of a round's check probabilities that is released: up to it, all drawn
    checks are answered.
    """
    if expert_round.status == "ended":
        return expert_round.released
    least = expert_round.checks.filter(answered_at__isnull=True).aggregate(least=Min("order"))[
        "least"
    ]
    return 1.0 if least is None else float(least)
