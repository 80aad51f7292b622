"""Creates tracks, and opens, freezes and closes them; used by both commands and pages."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from kbpo import clock
from kbpo.accounts.audit import COMMAND, write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus, unique_slug
from kbpo.instances.record import publish_labels
from kbpo.money.models import Budget, Price
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import count_inputs, kind_of, track_classes

MOVES = {"open": ("draft", "frozen"), "frozen": ("open",), "closed": ("open", "frozen")}
"""Status -> the statuses from which it can be reached."""
GOING_ON = ("open", "frozen")
RUNS = 5
"""Default limit of scored runs of a team on a shared track, since runs can be fitted to printed
scores, and a few reveal little
"""


class CannotMove(Exception):
    """Raised for a track that cannot be opened, frozen or closed now; the text is a sentence."""


@dataclass(frozen=True)
class Money:
    """The price of answers on a track, and the budgets: in total, per day, per submission, per
    team.
    """

    budget: Decimal = Decimal("500.00")
    day: Decimal | None = None
    submission: Decimal | None = None
    team: Decimal | None = None
    reward: Decimal | None = None
    """Reward for one answer. None, here and in the following fields: the default of the kind of
    track
    """
    extra: Decimal | None = None
    """Extra pay for an answer that took more work"""
    fee_rate: Decimal = Decimal("0")
    seconds: int | None = None
    interface: str = ""


@transaction.atomic
def create_track(
    corpus: Corpus,
    name: str,
    *,
    money: Money | None = None,
    who: User | None = None,
    why: str = COMMAND,
    **fields: Any,
) -> Track:
    """Create a track as a draft, with its budget, its price and its secret key, and return it.

    `fields` are those of Track; with an `owner` it is a study of that team. Raises ValidationError
    with the wrong fields, in which case nothing is created.
    """
    slug = unique_slug(name, Track.objects.all(), "track")
    fields["is_study"] = fields.get("owner") is not None
    if not fields["is_study"]:
        fields.setdefault("runs_in_all", RUNS)
    track = Track(corpus=corpus, name=name.strip(), slug=slug, **fields)
    _check_fields(track)
    track.save()
    money, asking = money or Money(), kind_of(track).asking[0]
    price = Price(
        track=track,
        interface=money.interface or asking.interface,
        reward=asking.reward if money.reward is None else money.reward,
        extra=asking.extra if money.extra is None else money.extra,
        fee_rate=money.fee_rate,
        seconds=money.seconds or asking.seconds,
    )
    caps = {"track": money.budget, "day": money.day, "submission": money.submission}
    budgets = [
        Budget(track=track, scope=scope, cap=cap) for scope, cap in caps.items() if cap is not None
    ]
    if money.team is not None:
        budgets.append(Budget(track=track, scope="team", cap=money.team))
    for row in (price, *budgets):
        row.full_clean()
        row.save()
    more = f", ${price.extra} more for more work," if price.extra else ""
    sentences = [f"{price.interface} ${price.reward}{more} and {price.fee_rate:.0%} fee"]
    sentences += [f"{row.scope} at most ${row.cap}" for row in budgets]
    write_audit_entry(
        "make track",
        f"track:{track.slug}",
        who=who,
        why=why,
        after="; ".join(sentences),
        track=track.slug,
    )
    return track


def open_track(track: Track, who: User | None = None, why: str = "") -> Track:
    """Open a track for submissions and return it. Raises CannotMove."""
    opened = _move_track(track, "open", who, why, opened_at=track.opened_at or clock.now())
    Corpus.objects.filter(pk=opened.corpus_id).update(opened_at=None)
    return opened


def freeze_track(track: Track, who: User | None = None, why: str = "") -> Track:
    """Freeze a track and return it: it takes no more submissions and finishes those it has. Raises
    CannotMove.
    """
    return _move_track(track, "frozen", who, why)


@transaction.atomic
def close_track(track: Track, who: User | None = None, why: str = "") -> Track:
    """Close a track and return it. If no other track on its corpus is open, all judgments of the
    corpus become public. Teams are told what a release will contain of their private runs. Raises
    CannotMove.
    """
    now = clock.now()
    closed = _move_track(track, "closed", who, why, closed_at=now)
    others = Track.objects.filter(corpus=closed.corpus_id, status__in=GOING_ON)
    if not others.exists():
        publish_labels(closed.corpus, now)
    if closed.closed_at == now:  # and not before
        for run in Submission.objects.that_have_score().filter(track=closed, is_private=True):
            run.notify_of_release()
    return closed


@transaction.atomic
def _move_track(track: Track, status: str, who: User | None, why: str, **fields: Any) -> Track:
    """Move a track to a new status and return it. A reason is required, except for opening
    a draft.
    """
    row = Track.objects.select_for_update(of=("self",)).select_related("corpus").get(pk=track.pk)
    if row.status == status:
        return row
    if row.status not in MOVES[status]:
        raise CannotMove(f"The track {row.name} is {row.status}: it cannot become {status}.")
    if who is not None and row.status != Track.Status.DRAFT and not why.strip():
        raise CannotMove("Nothing was changed: say why. It is logged.")
    write_audit_entry(
        f"make {status}",
        f"track:{row.slug}",
        who=who,
        why=why.strip(),
        before=row.status,
        after=status,
        track=row.slug,
    )
    row.status = status
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=["status", *fields])
    return row


def _check_fields(track: Track) -> None:
    """Raise ValidationError with a sentence for each field that is wrong."""
    kind_names = track_classes()
    if track.kind not in kind_names:
        raise ValidationError(
            {"kind": f"There is no kind of track {track.kind}; there are {', '.join(kind_names)}."}
        )
    track.apply_kind_defaults()
    kind = kind_of(track)
    wrong: dict[str, str] = {}
    distributions = kind.measures.distributions
    if unknown := [name for name in track.distributions if name not in distributions]:
        wrong["distributions"] = (
            f"There is no distribution {unknown[0]}; there are {', '.join(distributions)}."
        )
    elif track.distribution not in track.distributions:
        wrong["distribution"] = (
            f"The guaranteed distribution is one of those shown: {', '.join(track.distributions)}."
        )
    if track.criterion not in kind.measures.criterion_names():
        criteria = ", ".join(kind.measures.criterion_names())
        wrong["criterion"] = f"There is no criterion {track.criterion}; there are {criteria}."
    if kind.opposes and track.design != Track.Design.POISSON:
        wrong["design"] = (
            "Where systems are compared two by two, each new one brings pairs to those before it:"
            " only the design poisson can draw them later."
        )
    wrong |= kind.find_obstacles()
    if track.is_study and count_inputs(track, test=True) < count_inputs(track):
        wrong["corpus"] = (
            "In a study every input counts, but this corpus has a development part: load it with a"
            " share of 0, from a file that names no part dev."
        )
    if not track.slug:
        wrong["name"] = "A track needs a name with letters or digits."
    if not 1 <= track.workers_per_question <= 15:
        wrong["workers_per_question"] = "Between 1 and 15 workers can answer a question."
    if wrong:
        raise ValidationError(wrong)
    track.full_clean(exclude=["opened_at", "closed_at"])
