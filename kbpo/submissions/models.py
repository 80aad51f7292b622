"""Claims of systems: submissions, their predictions, and the problems in their files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.cache import cache
from django.db import models
from django.db.models.functions import Lower
from django.dispatch import Signal

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import Team, User
from kbpo.accounts.notices import notify
from kbpo.corpus.models import Predicate
from kbpo.instances.models import Instance
from kbpo.money.models import Purpose
from kbpo.queue import Moving, MovingQuerySet
from kbpo.tracks import stamps
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

TOLD = {
    # status    event,     what became of it
    "scored": ("scored", "is scored"),
    "refused": ("refused", "cannot be used"),
    "failed": ("refused", "was given up"),
    "expired": ("expired", "expired without confirmation"),
    "withdrawn": ("refused", "was withdrawn by an admin"),
}
"""Final statuses of a run of which its team is notified"""
RELEASED = (
    "A data release of the track contains the run's predictions and scores under a number, without"
    " its name: the numbers of other runs rest on them. If you withdraw the run before the release"
    " is made, its scores and its predictions without a judgment are left out."
)
"""Notice to the team of a private run when its track is closed"""
GONE = ("withdrawn", "failed", "refused")
"""Statuses of runs that do not participate, or no longer do"""
comes_or_goes = Signal()
"""Signal for a `run` that stops or resumes participation, sent in the transaction of its status
change"""
DISCARD = models.Q(status__in=["refused", "expired"]) | models.Q(
    status="withdrawn", confirmed_at__isnull=True
)
"""Statuses of uploads that never became runs: refused, or discarded before confirmation"""


class SubmissionQuerySet(MovingQuerySet["Submission"]):
    def update(self, **fields: Any) -> int:
        """Update the rows, invalidate the boards, and return how many rows were changed."""
        n = super().update(**fields)
        if n:
            stamps.mark_changed()
        return n

    def confirmed(self) -> SubmissionQuerySet:
        """Return the submissions that are confirmed by their owner and not withdrawn."""
        return self.filter(confirmed_at__isnull=False).exclude(status__in=GONE)

    def awaiting_confirmation(self) -> SubmissionQuerySet:
        """Return the uploads that are not confirmed yet."""
        return self.filter(status__in=["received", "read", "planned"])

    def unconfirmed_ended(self) -> SubmissionQuerySet:
        """Return the uploads that never became runs and were not deleted by their team."""
        return self.filter(DISCARD, deleted_at=None)

    def named(self, name: str) -> SubmissionQuerySet:
        """Return the submissions with this name, ignoring case, without discarded ones."""
        lower = Lower(models.Value(name))
        return self.exclude(DISCARD).alias(lower=Lower("name")).filter(lower=lower)

    def runs(self) -> SubmissionQuerySet:
        """Return the confirmed submissions, and the failed ones, whose reading or planning was
        stopped by an error of the service.
        """
        return self.filter(models.Q(confirmed_at__isnull=False) | models.Q(status="failed"))

    def scored(self) -> SubmissionQuerySet:
        """Return submissions whose judging has ended."""
        return self.filter(status="scored")

    def that_have_score(self) -> SubmissionQuerySet:
        """Return submissions with a score, including those for which more judgments were
        ordered.
        """
        judged_further = models.Q(scored_at__isnull=False, status__in=["confirmed", "judging"])
        return self.filter(models.Q(status="scored") | judged_further)

    def on_board(self) -> SubmissionQuerySet:
        """Return the submissions on the board: those with a score that are not private."""
        return self.that_have_score().filter(is_private=False)

    def comparable_by(self, who: Any) -> SubmissionQuerySet:
        """Return submissions that a person may compare: those on the board, and the private ones of
        their own teams.
        """
        if not isinstance(who, User):
            return self.on_board()
        own = models.Q(team__in=who.teams.values("pk"))
        return self.that_have_score().filter(models.Q(is_private=False) | own)


class Submission(Moving):
    """One run of a system (X_i in formulas), from upload to board."""

    class Status(models.TextChoices):
        RECEIVED = "received", "Received"  # waits to be read
        READ = "read", "Read"  # stored whole; waits for its distributions and plan
        PLANNED = (
            "planned",
            "Waiting for you",
        )  # the plan is shown; nothing is spent before a person confirms
        CONFIRMED = "confirmed", "Confirmed"  # waits for its sample
        JUDGING = "judging", "Being judged"  # waits for labels
        SCORED = "scored", "Scored"
        REFUSED = "refused", "Refused"  # the file cannot be used
        EXPIRED = "expired", "Expired"  # never confirmed
        WITHDRAWN = "withdrawn", "Withdrawn"
        FAILED = "failed", "Given up"  # a fault of the service; can be retried

    class Role(models.TextChoices):
        SYSTEM = "system", "a system"
        BASELINE = "baseline", "a baseline: ranked, and marked as one"
        REFERENCE = "reference", "the reference: written by people, has no rank"

    DEADLINES: ClassVar = {
        "received": (
            timedelta(hours=6),
            "failed",
            "It waited six hours to be read. Press Retry; it cost nothing.",
        ),
        "read": (
            timedelta(hours=6),
            "failed",
            "Its plan was not made within six hours. Press Retry; it cost nothing.",
        ),
        "planned": (
            timedelta(days=7),
            "expired",
            "You did not confirm it within seven days. Nothing was spent.",
        ),
        "confirmed": (
            timedelta(hours=6),
            "failed",
            "No sample was drawn within six hours. Press Retry.",
        ),
        "judging": (
            timedelta(days=90),
            "failed",
            "Judging took more than ninety days. What was judged is kept.",
        ),
    }

    track = models.ForeignKey(Track, on_delete=models.PROTECT, related_name="submissions")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="submissions")
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="submissions")
    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    role = models.CharField(max_length=9, choices=Role.choices, default=Role.SYSTEM)
    file = models.FileField(upload_to="uploads/%Y/%m/", max_length=300)
    file_name = models.CharField(max_length=255)
    file_size = models.BigIntegerField()
    file_digest = models.CharField(
        max_length=64, db_index=True, help_text="SHA-256 of the bytes as uploaded"
    )
    run_id = models.CharField(max_length=200, blank=True)
    door = models.CharField(
        max_length=16, blank=True, help_text="How the file was read: tac_kb, json_lines"
    )
    counts = models.JSONField(
        default=dict,
        help_text=(
            "relations (to be evaluated), relation_lines, set_aside, entities, documents, lines,"
            " errors, warnings, infos, by_code"
        ),
    )
    good_lines_only = models.BooleanField(
        default=False, help_text="The owner said: evaluate the good lines"
    )
    plan = models.JSONField(
        default=dict, help_text="The plan that was shown: draws, new questions, price, seconds"
    )
    target_half_width = models.DecimalField(
        max_digits=4, decimal_places=3, null=True, help_text="The owner's choice"
    )
    stage_reason = models.CharField(
        max_length=24,
        blank=True,
        help_text="Why it stopped: target, ranked, budget, all, stages, exhausted",
    )
    orders = models.PositiveSmallIntegerField(
        default=0, help_text="How often more was ordered after it was scored"
    )
    idempotency_key = models.CharField(max_length=80, null=True)
    received_at = models.DateTimeField(default=clock.now)
    read_at = models.DateTimeField(null=True)
    planned_at = models.DateTimeField(null=True)
    is_organisers = models.BooleanField(
        default=False, help_text="A member of its team was an admin when it was confirmed"
    )
    after_public = models.BooleanField(
        default=False, help_text="Judgments of the test part were public when it was confirmed"
    )
    run_of_team = models.PositiveSmallIntegerField(
        null=True, help_text="Its number among the confirmed runs of its team on the track"
    )
    confirmed_at = models.DateTimeField(null=True)
    sampled_at = models.DateTimeField(null=True)
    scored_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    is_private = models.BooleanField(
        default=False,
        help_text=(
            "Others do not see it until its team publishes it, but in a data release of the closed"
            " track, without its name"
        ),
    )
    is_anonymous = models.BooleanField(
        default=False, help_text="Others see neither its team, its name nor its description"
    )
    paper_url = models.URLField(max_length=300, blank=True)
    code_url = models.URLField(max_length=300, blank=True)
    deleted_at = models.DateTimeField(
        null=True, help_text="Of a discard: when its team deleted what was left of it"
    )

    objects = SubmissionQuerySet.as_manager()  # type: ignore[misc]

    if TYPE_CHECKING:
        id: int

    class Meta:
        db_table_comment = "Submissions and where they are on their journey"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"], name="idempotency_key_once_a_user"
            ),
            models.UniqueConstraint(  # the name of a discarded run is free again
                "team",
                "track",
                Lower("name"),
                condition=~DISCARD,
                name="name_once_a_team_and_track",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row and invalidate the boards."""
        super().save(*args, **kwargs)
        stamps.mark_changed(self.track_id)

    @property
    def is_reference(self) -> bool:
        """Return whether people wrote its texts, so that the board shows it without a rank."""
        return self.role == self.Role.REFERENCE

    @property
    def progress(self) -> float:
        """Return the share of the file that has been read."""
        return 1.0 if self.read_at else stored_progress(self.pk)

    @property
    def has_score(self) -> bool:
        """Return whether it has a score; True also while more judgments are ordered."""
        return self.status == "scored" or (
            self.scored_at is not None and self.status in ("confirmed", "judging")
        )

    @property
    def was_public(self) -> bool:
        """Return whether its scores are or were public, on a board."""
        return (self.has_score or self.scored_at is not None) and not self.is_private

    @property
    def is_on_board(self) -> bool:
        """Return whether the public board shows it."""
        return self.has_score and not self.is_private

    @property
    def was_public_before_withdrawal(self) -> bool:
        """Return whether it was withdrawn after its scores had been public."""
        return self.status == "withdrawn" and self.was_public

    @property
    def public_team(self) -> str:
        """Return the public name of its team."""
        return "Anonymous" if self.is_anonymous else self.team.name

    @property
    def public_name(self) -> str:
        """Return its public name, which may replace a run's own name, since that often reveals the
        team.
        """
        return f"run {self.pk}" if self.is_anonymous else self.name

    @property
    def full_name(self) -> str:
        """Return the public names of team and run."""
        return f"{self.public_team} {self.public_name}"

    @property
    def own_name(self) -> str:
        """Return the names of team and run for its own team and admins, also if it is anonymous."""
        return f"{self.team.name} {self.name}"

    @property
    def public_description(self) -> str:
        """Return the public description of the system."""
        return "" if self.is_anonymous else self.description

    @property
    def marks(self) -> list[str]:
        """Return notes that readers of its score need, e.g. that it is late or official."""
        marks = []
        if self.run_of_team and self.run_of_team > 1 and not self.is_anonymous:
            marks.append(f"run {self.run_of_team} of this team")
        if self.is_organisers:
            marks.append("organisers")
        if self.after_public:
            marks.append("judgments were public before this run")
        return marks

    @property
    def public_links(self) -> dict[str, str]:
        """Return the public links to paper and code."""
        links = {"Paper": self.paper_url, "Code": self.code_url}
        return {} if self.is_anonymous else {name: url for name, url in links.items() if url}

    def move(
        self,
        status: str,
        reason: str = "",
        *,
        who: User | None = None,
        tells: bool = True,
        **fields: Any,
    ) -> None:
        """Save the row in a new status, and log the user who changed it, or the service if there is
        none. With `tells` False the caller notifies the team later (`notify_team`).
        """
        before = self.status
        super().move(status, reason, **fields)
        if status != before:
            write_audit_entry(
                "move",
                self.purpose,
                who=who,
                before=before,
                after=status,
                why=reason,
                track=self.track.slug,
            )
            if (before in GONE) != (status in GONE):
                comes_or_goes.send_robust(type(self), run=self)
            if (
                tells
                and status in TOLD
                and not (status == "withdrawn" and self._is_by_team_member(who))
            ):
                self.notify_team()

    def _is_by_team_member(self, who: User | None) -> bool:
        """Return whether the user is a member of its team."""
        return who is not None and self.team.members.filter(pk=who.pk).exists()

    def notify_team(self, message: str = "", **more: Any) -> None:
        """Notify the members of the team of the run's final status. `message` is added to the
        message, `more` to the call of webhooks.
        """
        event, became = TOLD[self.status]
        self._notify_members(event, became, message, self.reason, **more)

    def notify_of_release(self) -> None:
        """Notify the team of a private run that a release will contain it."""
        self._notify_members("release", "is private, and its track is closed", RELEASED)

    def _notify_members(self, event: str, became: str, *said: str, **more: Any) -> None:
        text = f"{self.own_name} on {self.track.name} {became}."
        lines = [text, *said, f"{settings.SITE_URL}/submissions/{self.pk}/"]
        notify(
            self.team.members.all(),
            event,
            text,
            "\n\n".join(line for line in lines if line),
            submission={
                "id": self.pk,
                "name": self.name,
                "track": self.track.slug,
                "team": self.team.slug,
                "status": self.status,
                "reason": self.reason,
                **more,
            },
        )

    @property
    def n_items(self) -> int | None:
        """Return the number of items (as its kind of track names them) that the submission
        predicts; None before its file is read.
        """
        n: int | None = self.counts.get(kind_of(self.track).words.items)
        return n

    @property
    def n_item_lines(self) -> int | None:
        """Return the number of lines of its file with these items."""
        n: int | None = self.counts.get(f"{kind_of(self.track).words.item}_lines")
        return n

    @property
    def format_words(self) -> str:
        """Return the format of its file, as the start of a sentence; empty if there is only one
        format.
        """
        words = kind_of(self.track).words.doors.get(self.door, "")
        return f"{words}, " if words else ""

    def get_status_display(self) -> str:
        """Return the status in words."""
        return str(self.Status(self.status).label)

    @property
    def purpose(self) -> Purpose:
        """Return the purpose of payments for this submission."""
        return Purpose("submission", self.pk)


class Prediction(models.Model):
    """One prediction of a submission (x ∈ X_i), with the confidence, links and counts that the
    system gave. The three counts make p_i(x) a function of this row alone. Columns that only
    relations have are empty in other kinds, or 1 if they are counts.

    There are no foreign-key constraints: a lookup and a lock for each row took longer than storing
    it. The statement that stores predictions joins instances of the same transaction, and Django
    deletes predictions with their submission.
    """

    submission = models.ForeignKey(
        Submission,
        on_delete=models.CASCADE,
        related_name="predictions",
        db_index=False,
        db_constraint=False,
    )
    instance = models.ForeignKey(
        Instance,
        on_delete=models.PROTECT,
        related_name="predictions",
        db_index=False,
        db_constraint=False,
    )
    predicate = models.ForeignKey(
        Predicate,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        help_text="The instance's, so that a run can be listed by it",
    )
    confidence = models.FloatField(null=True)
    subject_type = models.CharField(max_length=40, blank=True)
    object_type = models.CharField(max_length=40, blank=True)
    subject_canonical_begin = models.IntegerField(null=True)
    subject_canonical_end = models.IntegerField(null=True)
    object_canonical_begin = models.IntegerField(null=True)
    object_canonical_end = models.IntegerField(null=True)
    subject_link = models.TextField(blank=True)
    object_link = models.TextField(blank=True)
    provenance = ArrayField(
        models.IntegerField(), null=True, help_text="begin, end, begin, end …, half-open"
    )
    subject_entity = models.IntegerField(
        null=True, help_text="The system's own entity, numbered within the submission"
    )
    object_entity = models.IntegerField(null=True)
    same_predicate = models.IntegerField(
        default=1, help_text="|rel(x)|: predictions of its part with x's predicate"
    )
    same_subject = models.IntegerField(
        default=1, help_text="|subj(x)|: predictions whose subject is the same entity"
    )
    subject_facts = models.IntegerField(
        default=1,
        help_text="|subj-relns(x)|: distinct (predicate, object entity) of that subject",
    )
    line = models.IntegerField(default=0)
    is_dev = models.BooleanField(
        default=False, db_default=False, help_text="Of the development part: p = 0"
    )

    class Meta:
        db_table_comment = "What a submission claims"
        constraints = [
            # The instance comes first, so that this index tells who else predicts it, too.
            models.UniqueConstraint(fields=["instance", "submission"], name="prediction_once")
        ]
        indexes = [
            models.Index(fields=["submission", "predicate", "id"], name="prediction_by_predicate"),
            models.Index(fields=["submission", "id"], name="prediction_in_order"),
        ]

    def __str__(self) -> str:
        return f"prediction {self.pk}"


class Problem(models.Model):
    """One coded defect of an upload: the error, its place, and the effect on the line."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="problems")
    code = models.CharField(max_length=48)
    severity = models.CharField(
        max_length=8, choices=[("error", "error"), ("warning", "warning"), ("info", "info")]
    )
    line = models.BigIntegerField(default=0)
    text = models.TextField()
    line_text = models.TextField(blank=True)
    culprit_begin = models.IntegerField(null=True)
    culprit_end = models.IntegerField(null=True)

    class Meta:
        db_table_comment = "Problems noticed while reading an upload (the first 10,000)"
        indexes = [models.Index(fields=["submission", "severity", "line"])]

    def __str__(self) -> str:
        return f"line {self.line}: {self.code}"


def predictions_state(submissions: Sequence[int]) -> tuple[object, ...] | None:
    """Return a cache key for the stored predictions of these submissions, which changes when any of
    them change; None if a submission was never sampled, since its file may still be replaced. A
    sampled submission's predictions are fixed, except for kinds whose systems gain predictions when
    others arrive: then their number grows, which the distributions contain. A submission that is
    sampled again after a restore of the database has other rows.
    """
    sampled = Submission.objects.filter(pk__in=submissions, sampled_at__isnull=False)
    facts = sampled.values_list(
        "pk", "received_at", "sampled_at", "file_digest", "distributions__n"
    )
    facts_of = {values[0]: values for values in facts}
    if not submissions or facts_of.keys() != set(submissions):
        return None
    return tuple(facts_of[pk] for pk in submissions)


EVERY = 0.5
KEEP = 3600


def stored_progress(submission_id: int) -> float:
    """Return the share of the file that has been read, from 0 to 1; 0 if unknown."""
    return float(cache.get(_progress_key(submission_id)) or 0.0)


def progress_writer(submission_id: int) -> Callable[[float], None]:
    """Return a function that publishes the share that has been read, at most twice a second."""
    last = 0.0

    def publish_progress(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            cache.set(_progress_key(submission_id), round(share, 3), KEEP)

    return publish_progress


def _progress_key(submission_id: int) -> str:
    return f"submissions.progress.{submission_id}"
