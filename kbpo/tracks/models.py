"""A track: one kind of evaluation on one corpus, with its schema, distributions, guarantee and
state.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.core.cache import cache
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from kbpo import clock
from kbpo.corpus.models import Corpus, new_key
from kbpo.tracks import stamps
from kbpo.tracks.registry import track_class

GUIDELINES, HELD = "guidelines:{}", 60  # seconds: every question shows them


class Track(models.Model):
    """One kind of evaluation on one corpus. Its guaranteed pair (distribution, criterion)
    determines sample sizes and budgets.
    """

    class Status(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"  # takes submissions
        FROZEN = "frozen"  # takes none, finishes those it has
        CLOSED = "closed"  # everything that was judged becomes public

    class Design(models.TextChoices):
        POISSON = "poisson", "each relation at most once, with a chance of its own"
        IID = "iid", "draws with replacement, as published"

    class Scope(models.TextChoices):
        SENTENCE = "sentence"
        NEIGHBOURS = "neighbours"
        DOCUMENT = "document"

    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT, related_name="tracks")
    name = models.CharField(max_length=120, unique=True)
    slug = models.SlugField(max_length=120, unique=True)
    kind = models.CharField(
        max_length=24,
        default="kbp",
        help_text="Name in the registry of kinds (kbpo/tracks/registry.py)",
    )
    description = models.TextField(blank=True)
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.DRAFT)
    distribution = models.CharField(max_length=24, help_text="Guaranteed distribution")
    criterion = models.CharField(max_length=24, help_text="Guaranteed criterion")
    distributions = models.JSONField(default=list, help_text="Distributions that are shown")
    target_half_width = models.DecimalField(
        max_digits=4,
        decimal_places=3,
        default=Decimal("0.030"),
        validators=[MinValueValidator(Decimal("0.005")), MaxValueValidator(Decimal("0.200"))],
    )
    confidence_level = models.DecimalField(max_digits=3, decimal_places=2, default=Decimal("0.80"))
    design = models.CharField(max_length=8, choices=Design.choices, default=Design.POISSON)
    other_share = models.DecimalField(
        max_digits=3,
        decimal_places=2,
        default=Decimal("0.25"),
        help_text=(
            "Design iid: draws of each other distribution, as a share of the guaranteed one's"
        ),
    )
    ends_when_ranked = models.BooleanField(
        default=False,
        help_text="A run is judged no further once its rank among all runs is decided",
    )
    scope = models.CharField(max_length=12, choices=Scope.choices, default=Scope.SENTENCE)
    workers_per_question = models.PositiveSmallIntegerField(
        help_text="Of three, two are asked first, and the third only where they differ."
    )
    platform = models.CharField(max_length=16, default="pool")
    closes_on = models.DateField(
        null=True, blank=True, help_text="The last day on which runs are taken, as announced"
    )
    rules = models.TextField(blank=True, help_text="What runs must keep to, a sentence a line")
    guidelines = models.TextField(
        blank=True,
        max_length=10_000,
        help_text=(
            "What annotators read above the instructions that are built in, a sentence a line; it"
            " holds where the two differ. Everybody reads it, too"
        ),
    )
    who_pays = models.CharField(
        max_length=200, blank=True, help_text="Who pays for judgments, in a sentence"
    )
    runs_a_week = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Runs that a team may confirm in seven days"
    )
    runs_in_all = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Runs that a team may confirm in all"
    )
    is_study = models.BooleanField(
        default=False,
        help_text="One team owns inputs, outputs and judgments, and sees all of them at once",
    )
    owner = models.ForeignKey(
        "accounts.Team", null=True, blank=True, on_delete=models.PROTECT, related_name="studies"
    )
    secret = models.CharField(
        max_length=64,
        default=new_key,
        editable=False,
        help_text="Seeds of its draws derive from it; it is published once the track is closed",
    )
    created_at = models.DateTimeField(default=clock.now)
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "Tracks: one kind of evaluation on one corpus"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(is_study=True, owner__isnull=False)
                | models.Q(is_study=False, owner__isnull=True),
                name="study_has_owner",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; an unset field of a new track gets the default of its kind."""
        if self._state.adding:
            self.apply_kind_defaults()
        super().save(*args, **kwargs)
        stamps.mark_changed()
        cache.delete(GUIDELINES.format(self.pk))

    @property
    def own_guidelines(self) -> list[str]:
        """Return the additional annotation guidelines of this track, line by line."""
        return [line.strip() for line in self.guidelines.splitlines() if line.strip()]

    @property
    def is_overdue(self) -> bool:
        """Return whether the track takes runs after the announced last day; only an admin closes
        it.
        """
        is_over = self.closes_on is not None and self.closes_on < clock.now().date()
        return self.status == self.Status.OPEN and is_over

    @property
    def hides_test(self) -> bool:
        """Return whether the judgments of the test part are hidden from the public. They are hidden
        until the track is closed, and after that as long as another track on the same corpus that
        was opened before the closing is still open. A study hides nothing, and does not keep
        judgments of other tracks hidden.
        """
        if self.is_study:
            return False
        if self.status != self.Status.CLOSED:
            return True
        others = Track.objects.filter(corpus=self.corpus_id, is_study=False)
        until = self.closed_at or clock.now()
        return others.filter(closed_at__isnull=True, opened_at__lt=until).exists()

    @property
    def refusal(self) -> str:
        """Return why the track takes no submissions, as a sentence; empty if it does."""
        if self.status == self.Status.OPEN:
            return ""
        return f"{self.name} is {self.status} and takes no submissions now."

    def sampling_description(self, design: str = "") -> str:
        """Return a description of how samples are drawn on the track, or would be by another
        design, in the words of its kind.
        """
        if (design or self.design) == self.Design.POISSON:
            item = track_class(self.kind).words.item
            return f"each {item} at most once, with its own probability"
        return self.Design.IID.label

    def apply_kind_defaults(self) -> None:
        """Fill in the kind's defaults for guarantees, pages and questions. Raises KeyError for a
        kind that is not in the registry.
        """
        kind = track_class(self.kind)
        self.distributions = self.distributions or list(kind.measures.distributions)
        self.distribution = self.distribution or self.distributions[-1]
        self.criterion = self.criterion or kind.measures.criteria[0].name
        if self.workers_per_question is None:
            self.workers_per_question = kind.asking[0].people


def cached_guidelines(track: int | None) -> list[str]:
    """Return a track's additional annotation guidelines, cached for a minute or until the track is
    saved; empty without a track.
    """
    if track is None:
        return []
    kept: list[str] | None = cache.get(GUIDELINES.format(track))
    if kept is None:
        kept = Track.objects.get(pk=track).own_guidelines
        cache.set(GUIDELINES.format(track), kept, HELD)
    return kept


def can_see_all_judgments(user: object, track: Track) -> bool:
    """Return whether a user sees every judgment of a track: an admin, or a member of the owning
    team.
    """
    if getattr(user, "is_staff", False):
        return True
    return track.is_study and track.owner_id in getattr(user, "team_keys", ())
