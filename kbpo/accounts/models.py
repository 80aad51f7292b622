"""Users with their roles, teams, API tokens, invitations, notices, and the audit log."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Count, Min, QuerySet
from django.utils.functional import cached_property

from kbpo import clock
from kbpo.prepared import Prepared
from kbpo.queue import Moving

EVENTS = {
    "scored": "A run of your team is scored",
    "refused": "A file of your team cannot be used, or its run failed",
    "expired": "A draft of your team expired without confirmation",
    "release": "A track is closed; its release will contain a private run of your team",
    "dispute": "An expert answered a dispute of yours",
    "decision": "A decision about your own answers or pay",
}
"""Event -> its description on the page of notification settings"""


MEMBER_OF = Prepared("SELECT team_id FROM accounts_team_members WHERE user_id = %(user)s")


class User(AbstractUser):
    """A user. Roles are independent: `is_researcher` may upload, `is_annotator` judge, `is_staff`
    administer.
    """

    groups = None  # type: ignore[assignment]  # rights follow from roles alone
    user_permissions = None  # type: ignore[assignment]
    is_researcher = models.BooleanField(default=False)
    is_annotator = models.BooleanField(default=False)
    is_volunteer = models.BooleanField(
        default=False,
        help_text="An annotator whom nobody invited: judges only on tracks that take volunteers",
    )
    no_mail_about = ArrayField(
        models.CharField(max_length=16), default=list, help_text="Events without a mail"
    )
    no_call_about = ArrayField(
        models.CharField(max_length=16), default=list, help_text="Events without a webhook call"
    )

    class Meta(AbstractUser.Meta):
        db_table_comment = "People who log in; roles are flags"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row. If the password changed, by a page or in a shell, revoke all tokens."""
        changes = self.pk is not None and getattr(self, "_password", None) is not None
        with transaction.atomic():
            super().save(*args, **kwargs)
            if changes:
                self.tokens.filter(revoked_at=None).update(revoked_at=clock.now())

    @cached_property
    def team_keys(self) -> frozenset[int]:
        """Return the primary keys of the user's teams, read once for each request."""
        return frozenset(team for (team,) in MEMBER_OF.fetch_all(user=self.pk))

    def team(self, slug: str = "") -> Team | None:
        """Return the user's team with that slug; without a slug, the oldest. None if there is no
        such team.
        """
        teams = self.teams.order_by("pk")
        return (teams.filter(slug=slug[:80].replace("\x00", "")) if slug else teams).first()


class Team(models.Model):
    """The unit that submits and pays, and that visibility depends on."""

    name = models.CharField(max_length=80, unique=True)
    slug = models.SlugField(max_length=80, unique=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams", blank=True)
    former = models.ManyToManyField(
        User,
        through="Former",
        related_name="former_teams",
        blank=True,
        help_text="Who left: what they have seen, a team that they join has seen",
    )
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Teams of researchers; labels are shown per team"

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A member of a team, with a role."""

    class Role(models.TextChoices):
        OWNER = "owner", "an owner"
        MEMBER = "member", "a member who may submit and spend"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(
        max_length=8,
        choices=Role.choices,
        default=Role.MEMBER,
        db_default="member",
        help_text="Owners give roles and remove others",
    )
    joined_at = models.DateTimeField(
        null=True, default=clock.now, help_text="Null: before this was noted"
    )

    class Meta:
        db_table = "accounts_team_members"
        db_table_comment = "Who belongs to which team"
        unique_together = (("team", "user"),)

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}"


class Former(models.Model):
    """A former membership of a user in a team, whose runs they still do not judge."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="left_by")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="left")
    joined_at = models.DateTimeField(null=True, help_text="Null: before this was noted")

    class Meta:
        db_table = "accounts_team_former"
        db_table_comment = "Who belonged to which team, and left it"
        unique_together = (("team", "user"),)

    def __str__(self) -> str:
        return f"{self.user_id} once in {self.team_id}"


def _secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


ANOTHER_TOKEN = "Make another on your account page."


class Token(models.Model):
    """An API token; only its hash is stored."""

    class Scope(models.TextChoices):
        """What a token permits, within the permissions of its owner."""

        READ = "read", "Read: scores, judgments, problems"
        UPLOAD = "upload", "Read and upload; it spends nothing"
        ALL = "all", "All that you may do, also confirm and spend"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=8)
    scope = models.CharField(max_length=8, choices=Scope.choices, default=Scope.ALL)
    created_at = models.DateTimeField(default=clock.now)
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        db_table_comment = "API tokens, hashed"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def create_with_secret(
        cls, user: User, name: str, *, days: int | None = 365, scope: str = Scope.ALL
    ) -> tuple[Token, str]:
        """Return a new token and its secret, which is shown once and never stored."""
        secret = "kbpo_" + secrets.token_urlsafe(32)
        expires = clock.now() + timedelta(days=days) if days else None
        token = cls.objects.create(
            user=user,
            name=name,
            digest=_secret_hash(secret),
            prefix=secret[5:11],
            scope=scope,
            expires_at=expires,
        )
        return token, secret

    @classmethod
    def find_by_secret(cls, secret: str) -> Token | None:
        """Return the token with this secret, valid or not; None if there is none."""
        return cls.objects.select_related("user").filter(digest=_secret_hash(secret)).first()

    def allows(self, scope: str) -> bool:
        """Return whether the token has this scope."""
        wider = list(self.Scope)
        return wider.index(self.Scope(self.scope)) >= wider.index(self.Scope(scope))

    @property
    def refusal(self) -> str:
        """Return why the token is invalid, as a sentence; empty if it is valid."""
        if self.revoked_at:
            return f"This token was revoked on {self.revoked_at:%d %B %Y}. {ANOTHER_TOKEN}"
        if self.expires_at and self.expires_at < clock.now():
            return f"This token expired on {self.expires_at:%d %B %Y}. {ANOTHER_TOKEN}"
        return "" if self.user.is_active else "This account is closed."


class Invitation(models.Model):
    """A link that makes a visitor an annotator or a researcher of a team."""

    code = models.CharField(max_length=43, unique=True, default=secrets.token_urlsafe)
    role = models.CharField(
        max_length=16, choices=[(role, role) for role in ("annotator", "researcher")]
    )
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE)
    made_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=clock.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    uses_left = models.PositiveIntegerField(default=1)

    class Meta:
        db_table_comment = "Invitation links for annotators and team members"

    def __str__(self) -> str:
        return f"{self.role} invitation {self.code[:6]}…"


MOST_REQUESTS = 500
"""Greatest number of pending requests in one queue"""
MOST_OF_A_NETWORK = 20
"""Greatest number of pending requests from one network"""
FULL = "Too many requests are open at the moment. Try again in a few days."


class Waiting(models.Model):
    """Base of requests from strangers that an admin decides. Limits how many one network may have
    in the queue.
    """

    network = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="From where it was asked, while it waits",
    )

    class Meta:
        abstract = True


@transaction.atomic
def can_one_more_wait(waiting: QuerySet[Any], network: str, since: str) -> bool:
    """Return whether one more request of this network may be queued.

    If the queue is full, the oldest request of the network with the most requests is deleted, if
    that network has more than this one and more than one. So the only request of a network is never
    deleted for another. `since` is the column with the time of a request.
    """
    own = waiting.filter(network=network).count()
    if own >= MOST_OF_A_NETWORK:
        return False
    while waiting.count() >= MOST_REQUESTS:
        networks = waiting.order_by().values("network").annotate(n=Count("pk"), first=Min(since))
        most = networks.order_by("-n", "first").first()
        if most is None or most["n"] <= max(own, 1):
            return False
        of_most = waiting.filter(network=most["network"]).order_by(since, "pk")
        oldest = of_most.select_for_update(of=("self",), skip_locked=True).first()
        if oldest is None:
            return False
        oldest.delete()
    return True


class AccountRequest(Waiting):
    """A request for an account or a team, which an admin decides once."""

    user = models.ForeignKey(
        User,
        null=True,
        on_delete=models.CASCADE,
        related_name="requests",
        help_text="Who asked, once it is known: they were logged in, or used the link",
    )
    name = models.CharField(max_length=120)
    email = models.EmailField()
    affiliation = models.CharField(max_length=200, blank=True)
    team = models.CharField(max_length=80, help_text="Name of the team, a new one or one there is")
    system = models.TextField(blank=True, help_text="What system will be evaluated")
    asked_at = models.DateTimeField(default=clock.now)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    accepted = models.BooleanField(null=True)
    invitation = models.OneToOneField(Invitation, null=True, on_delete=models.SET_NULL)

    class Meta:
        db_table_comment = "Requests for accounts from outside, and what was decided"

    def __str__(self) -> str:
        return f"{self.name} for {self.team}"


class Webhook(models.Model):
    """An address of a user that is called at events, signed with its secret."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    secret = models.CharField(max_length=64, default=secrets.token_urlsafe)
    made_at = models.DateTimeField(default=clock.now)
    slow_calls = models.PositiveSmallIntegerField(default=0, help_text="Slow calls in a row")
    paused_until = models.DateTimeField(
        null=True, help_text="Until when it is not called, because its calls were slow"
    )

    class Meta:
        db_table_comment = "Addresses that are called about events"
        constraints = [models.UniqueConstraint(fields=["user", "url"], name="webhook_once")]

    def __str__(self) -> str:
        return self.url

    @property
    def pause(self) -> str:
        """Return why the webhook is paused; empty if it is not."""
        if self.paused_until is None or self.paused_until <= clock.now():
            return ""
        return f"Paused until {self.paused_until:%H:%M} UTC after {self.slow_calls} slow calls."


class Delivery(Moving):
    """A webhook call or a mail, tried until it is sent or has failed. Mails are written to the log
    if the site sends none.
    """

    DEADLINES: ClassVar = {
        "waiting": (timedelta(days=3), "failed", "It was not tried again within three days.")
    }

    hook = models.ForeignKey(
        Webhook, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    address = models.EmailField(blank=True, help_text="Of a mail")
    user = models.ForeignKey(
        User,
        null=True,
        on_delete=models.CASCADE,
        related_name="deliveries",
        help_text="Who is told, if they have an account",
    )
    request = models.ForeignKey(
        AccountRequest,
        null=True,
        on_delete=models.CASCADE,
        related_name="mails",
        help_text="What it answers, of somebody from outside; it is forgotten with it",
    )
    event = models.CharField(max_length=16)
    body = models.JSONField(
        help_text=(
            "What is said, besides number, event and time; of a mail that was sent its subject"
        )
    )
    answered = models.PositiveSmallIntegerField(null=True, help_text="Status of the last answer")
    made_at = models.DateTimeField(default=clock.now)

    class Meta:
        db_table_comment = "Calls of webhooks and mails, and what came of them"
        indexes = [
            models.Index(
                fields=["next_try_at"],
                condition=models.Q(status="waiting"),
                name="delivery_due",
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(hook=None) ^ models.Q(address=""),
                name="delivery_by_call_or_mail",
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.hook_id or self.address}"


class Audit(models.Model):
    """An entry of the audit log. Movements of money are in the ledger instead."""

    at = models.DateTimeField(default=clock.now, db_index=True)
    who = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    what = models.CharField(max_length=40, help_text="The verb: open, pause, exclude …")
    about = models.CharField(max_length=120, help_text="The row, e.g. 'submission:12'")
    track = models.CharField(
        max_length=120, blank=True, help_text="Slug of the track, where there is one"
    )
    before = models.CharField(max_length=200, blank=True)
    after = models.CharField(max_length=200, blank=True)
    why = models.TextField(blank=True)

    class Meta:
        db_table_comment = "Who changed which state, and why; append-only"
        indexes = [models.Index(fields=["about", "at"])]

    def __str__(self) -> str:
        return f"{self.what} {self.about}"


class LimitCount(models.Model):
    """The count of an action for one key until a time (`kbpo.accounts.limits`). The table is
    unlogged (see the baseline migration): after a crash of the database all counts restart.
    """

    key = models.CharField(max_length=80, primary_key=True)
    n = models.IntegerField()
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table_comment = "Counts of limited actions; unlogged, no names"

    def __str__(self) -> str:
        return f"{self.key}: {self.n}"
