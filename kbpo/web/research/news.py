"""What happened to a team's runs since somebody last read of it, from the rows themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from annotation.desk.experts import DROP, page_of
from kbpo import clock
from kbpo.accounts.models import Audit, Membership, Team, User
from kbpo.evaluation.extent import extent_of
from kbpo.evaluation.leaderboard import headlines, ranks
from kbpo.evaluation.models import Evaluation, Flip
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import count_text
from scoring.words import figure_text

AT_FIRST = timedelta(days=14)
"""How far back it is told to somebody who has never said that he had read it; to nobody before
there was an account"""


@dataclass(frozen=True)
class Piece:
    """One piece of news: what happened, when, and where it leads."""

    sign: str
    tone: str
    title: str
    text: str
    at: datetime
    url: str
    link: str


@dataclass(frozen=True)
class Now:
    """The latest evaluation of a track, and the one that stood when the news were last read."""

    latest: Evaluation | None
    before: Evaluation | None
    scores: dict[int, str] = field(default_factory=dict)
    scores_before: dict[int, str] = field(default_factory=dict)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)

    def score(self, submission: Submission) -> str:
        """“F1 22.5 (21.4–23.6)”, and what it was before if that was something else."""
        now = self.scores.get(submission.pk, "")
        before = self.scores_before.get(submission.pk, "")
        if before not in ("", now):
            return f"{before} before, {now or 'none'} now."
        return f"{now}." if now else ""


def since_of(user: User, team: Team) -> datetime:
    """Return up to when a person has read a team's news."""
    read = Membership.objects.filter(user=user, team=team).values_list("news_read_at", flat=True)
    return read.first() or max(user.date_joined, clock.now() - AT_FIRST)


def mark_read(user: User, team: Team, until: datetime) -> None:
    """Mark a team's news until then as read."""
    mine = Membership.objects.filter(user=user, team=team)
    mine.exclude(news_read_at__gte=until).update(news_read_at=until)


def news_of(team: Team, since: datetime) -> list[Piece]:
    """Return what happened to a team's runs and uploads since, the newest first."""
    runs = Submission.objects.filter(team=team, deleted_at=None).select_related("track")
    lately = (
        Q(scored_at__gt=since)
        | Q(sampled_at__gt=since, status__in=["confirmed", "judging"])
        | Q(status_since__gt=since, status__in=["failed", "refused", "expired"])
        | Q(withdrawn_at__gt=since, confirmed_at__isnull=False)
    )
    pieces, states = [], dict[int, Now]()
    for row in runs.filter(lately):
        pieces.append(_moved(row, since, _now(row.track, since, states)))
    pieces += _turned(team, since, states)
    pieces += _answered(team, since) + _put_aside(team, since)
    return sorted(pieces, key=lambda piece: piece.at, reverse=True)


def _now(track: Track, since: datetime, states: dict[int, Now]) -> Now:
    """Return the state of a track, read once."""
    if track.pk not in states:
        latest = track.evaluations.order_by("-number").first()
        before = track.evaluations.whole().filter(made_at__lte=since).order_by("-number").first()
        states[track.pk] = Now(
            latest, before, _scores(latest), _scores(before), ranks(latest) if latest else {}
        )
    return states[track.pk]


def _scores(evaluation: Evaluation | None) -> dict[int, str]:
    """submission -> its headline in words."""
    if evaluation is None:
        return {}
    predicted = evaluation.headlines.values_list("submission", flat=True)
    return {
        pk: f"{quantity.label} {figure_text(figure)}"
        for pk, (quantity, figure) in headlines(evaluation, predicted).items()
    }


def _moved(row: Submission, since: datetime, now: Now) -> Piece:
    """Return how far a run came, as its latest moment says."""
    own_page, called = reverse("submission", args=[row.pk]), f"{row.name} on {row.track.name}"
    if row.status in ("refused", "expired"):
        page = reverse("upload-check", args=[row.pk])
        title = f"{called} {'was refused' if row.status == 'refused' else 'was put away'}"
        link = "See the report" if row.status == "refused" else "See it"
        return Piece("✗", "bad", title, row.reason, row.status_since, page, link)
    if row.status == "failed":
        title = f"{called} was given up"
        return Piece("✗", "bad", title, row.reason, row.status_since, own_page, "Retry")
    if row.scored_at and row.scored_at > since and row.status != "withdrawn":
        text = " ".join(filter(None, [now.score(row), _place(row, now)]))
        title = f"{called} is scored"
        return Piece("✓", "good", title, text, row.scored_at, own_page, "See the score")
    if row.status == "withdrawn":
        title = f"{called} was withdrawn"
        return Piece("–", "", title, row.reason, row.status_since, own_page, "See it")
    extent, items, text = extent_of(row), kind_of(row.track).words.items, ""
    if extent.sample:
        judged, drawn = count_text(extent.judged), count_text(extent.sample)
        text = f"{judged} of the {drawn} {items} drawn are judged."
    assert row.sampled_at is not None
    return Piece("→", "info", f"{called} is being judged", text, row.sampled_at, own_page, "Follow")


def _place(row: Submission, now: Now) -> str:
    place = now.places.get(row.pk)
    if place is None:
        return ""
    best, worst = place
    written = f"{best}" if best == worst else f"{best}–{worst}"
    return f"Rank {written} of {len(now.places)}."


def _turned(team: Team, since: datetime, states: dict[int, Now]) -> list[Piece]:
    """Verdicts that turned, a piece a run; while the test part is hidden those of the development
    part.
    """
    hidden = Q(submission__track__is_study=False) & ~Q(submission__track__status="closed")
    flips = Flip.objects.filter(submission__team=team, made_at__gt=since).exclude(
        hidden, instance__target__is_dev=False
    )
    of_runs: dict[Submission, list[Flip]] = {}
    for flip in flips.select_related("submission__track").order_by("pk"):
        if flip.criterion == flip.submission.track.criterion:
            of_runs.setdefault(flip.submission, []).append(flip)
    pieces = []
    for row, turned in of_runs.items():
        if not row.has_score:
            continue
        n = len({flip.instance_id for flip in turned})
        ways = Counter("right to wrong" if flip.before else "wrong to right" for flip in turned)
        text = ", ".join(f"{count} from {way}" for way, count in ways.items()).capitalize()
        score = _now(row.track, since, states).score(row)
        title = f"{n} verdict{'' if n == 1 else 's'} on {row.name} turned after more answers"
        url = f"{reverse('submission-explore', args=[row.pk])}?verdict=turned"
        moment = turned[-1].made_at
        pieces.append(Piece("±", "warn", title, f"{text}. {score}", moment, url, "Show them"))
    return pieces


def _answered(team: Team, since: datetime) -> list[Piece]:
    """Disputes of a team that an expert answered, a piece each."""
    disputes = ExpertCheck.objects.filter(
        kind="dispute", status="answered", submission__team=team, answered_at__gt=since
    )
    pieces = []
    for row in disputes.select_related("submission", "target__document"):
        assert row.submission is not None and row.answered_at is not None
        text = (
            "The expert says what people said."
            if row.agrees
            else "The expert says otherwise than people did. The score keeps what people said,"
            " since only what is drawn by chance may correct it."
        )
        title = f"A dispute about {row.submission.name} was answered"
        pieces.append(Piece("✓", "good", title, text, row.answered_at, page_of(row), "Read both"))
    return pieces


def _put_aside(team: Team, since: datetime) -> list[Piece]:
    """Disputes of a team that an admin took off the queue, a piece each; the log knows when."""
    dropped = ExpertCheck.objects.filter(
        kind="dispute", status="dropped", submission__team=team
    ).select_related("submission", "target__document")
    log = Audit.objects.filter(
        what=DROP, before__in=[f"dispute {row.pk}" for row in dropped], at__gt=since
    )
    moments = dict(log.values_list("before", "at"))
    pieces = []
    for row in dropped:
        moment, run = moments.get(f"dispute {row.pk}"), row.submission
        if run is not None and moment is not None:
            title = f"A dispute about {run.name} was put aside"
            pieces.append(Piece("–", "", title, row.remark, moment, page_of(row), "See it"))
    return pieces
