"""Lists what a track needs before it is open, and while it is open: each step with its state, cost
and page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from annotation.quality.gold import gold_results, money_left, policy_of
from annotation.questions.order import (
    PER_PAIR,
    PER_TOKEN,
    CannotOrder,
    ordered_samples,
    plan_documents,
)
from kbpo.releases.models import Release
from kbpo.sampling.models import DocumentSample, ExpertCheck, ExpertRound
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of, n_inputs
from kbpo.web.components.figures import percent_text

GOLD_WANTED = 10
"""Gold questions of a track; fewer are soon known to everybody"""
READ_WANTED = 20
"""Documents that are read in full before recall says much"""

OPEN = "Open"
"""The step that the others come before"""


@dataclass(frozen=True)
class Step:
    """A step: its name, state in words, and cost."""

    name: str
    done: bool
    says: str
    url: str
    verb: str
    """What its button says"""
    price: Decimal | None = None
    needed: bool = True
    """Whether a track is not ready without it"""
    another: tuple[str, str] | None = None
    """Another way to do it: address and words of a link"""
    under_way: bool = False
    """Whether all that it lacks is ordered"""


def checklist_of(track: Track) -> list[Step]:
    """Return the steps of a track in order; of a closed one only those without payments."""
    if track.status == Track.Status.CLOSED:
        return [_documents(track), _page(track), *_checks(track), _release(track)]
    return [
        _documents(track),
        _page(track),
        *_reading(track),
        _gold(track),
        _open(track),
        *_checks(track),
    ]


def next_step(steps: list[Step]) -> Step | None:
    """Return the first open step; None without one."""
    return next(iter(open_steps(steps)), None)


def open_steps(steps: list[Step]) -> list[Step]:
    """Return the necessary steps that are neither done nor in progress."""
    return [step for step in steps if step.needed and not step.done and not step.under_way]


def unfinished(track: Track) -> list[Step]:
    """Return the open steps of a draft before it is opened; empty for other tracks."""
    if track.status != Track.Status.DRAFT:
        return []
    return [step for step in open_steps(checklist_of(track)) if step.name != OPEN]


def _track_address(page: str, track: Track) -> str:
    return reverse(page, args=[track.slug])


def _documents(track: Track) -> Step:
    kind = kind_of(track)
    n, name = n_inputs(track), kind.words.inputs.capitalize()
    return Step(name, n > 0, f"{n:,} of {track.corpus.name}", reverse("desk-corpora"), "Corpora")


def _page(track: Track) -> Step:
    missing = [
        name
        for name, text in (
            ("a description", track.description),
            ("who pays", track.who_pays),
            ("what the texts are", track.corpus.description),
            ("their licence", track.corpus.licence),
        )
        if not text
    ]
    says = f"Missing: {', '.join(missing)}" if missing else "Everything is said"
    return Step(
        "Public page", not missing, says, _track_address("desk-track-describe", track), "Write it"
    )


def _reading(track: Track) -> Iterator[Step]:
    """Yield the step of documents read in full, where recall is estimated from them."""
    if recall_of(track) is None:
        return
    drawn = DocumentSample.objects.filter(track=track)
    n = drawn.filter(settled_at__isnull=False).count()
    ordered = drawn.filter(settled_at=None, pk__in=ordered_samples(track)).count()
    waits = drawn.count() - n - ordered
    says = f"{n:,} read in full" + (f", {ordered:,} ordered" if ordered else "")
    says += f", {waits:,} drawn and not ordered" if waits else ""
    wanted = min(READ_WANTED, track.corpus.n_test)
    under_way = n < wanted <= n + ordered
    price = None
    if n + ordered < wanted and not waits:
        try:
            price = plan_documents(track, wanted - n - ordered).at_most
        except CannotOrder as refusal:
            says += f". {refusal}"
    cents = f"token={PER_TOKEN * 100:.2f}&pair={PER_PAIR * 100:.2f}"
    address = f"{_track_address('desk-reading', track)}?n={max(wanted - n - ordered, 1)}&{cents}"
    if under_way:
        address = _track_address("desk-reading", track)
    uploaded = _track_address("desk-annotations", track), "Upload what was read elsewhere"
    yield Step(
        "Reading, for recall",
        n >= wanted,
        says,
        address,
        "Look" if under_way else "Order",
        price,
        another=uploaded,
        under_way=under_way,
    )


def _gold(track: Track) -> Step:
    n, rate = len(gold_results(track)), policy_of(track).gold_rate
    says = f"{n:,} dealt out, as {percent_text(float(rate))} of the questions"
    if rate and money_left(track) <= 0:
        says += "; no money is set aside for more answers"
    return Step(
        "Gold questions",
        n >= GOLD_WANTED,
        says,
        _track_address("desk-gold", track),
        "Make some",
        needed=False,
    )


def _open(track: Track) -> Step:
    done = track.status != Track.Status.DRAFT
    says = f"It is {track.get_status_display().lower() if done else 'a draft'}"
    return Step(OPEN, done, says, "#moves", "Open it" if not done else "Move it")


def _checks(track: Track) -> Iterator[Step]:
    if kind_of(track).words.unchecked:
        return
    rounds = ExpertRound.objects.filter(track=track).count()
    left = ExpertCheck.objects.filter(track=track, kind="check", answered_at=None).count()
    says = f"{rounds:,} round{'' if rounds == 1 else 's'} drawn" if rounds else "None is drawn yet"
    says += f", {left:,} to be answered" if left else ""
    address = _track_address("expert-next" if left else "desk-experts", track)
    verb = "Answer" if left else "Draw a round"
    yield Step("Expert checks", rounds > 0 and not left, says, address, verb, needed=False)


def _release(track: Track) -> Step:
    """Return the step of the latest data release of a closed track."""
    newest = track.releases.order_by("-number").first()
    says = "None is made yet"
    if newest is not None:
        says = f"Release {newest.number}: {newest.get_status_display().lower()}"
    return Step(
        "Release",
        newest is not None and newest.status == Release.Status.MADE,
        says,
        "#releases",
        "Make it" if newest is None else "See it",
        needed=False,
        under_way=newest is not None and newest.status == Release.Status.ORDERED,
    )
