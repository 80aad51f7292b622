"""Collects all data about one person, as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from annotation.models import (
    Assignment,
    Bonus,
    Payment,
    Qualification,
    Worker,
    WorkerIdentity,
)
from annotation.workers.models import (
    Appeal,
    Application,
    Consent,
    Feedback,
    Message,
    Payout,
    TutorialRun,
)
from kbpo.accounts.models import (
    AccountRequest,
    Audit,
    Delivery,
    Invitation,
    Token,
    User,
    Webhook,
)
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission

ACCOUNT = ("username", "email", "first_name", "last_name", "date_joined", "last_login")
NOTICES = ("no_mail_about", "no_call_about")
ROLES = ("is_researcher", "is_annotator", "is_volunteer", "is_staff")
ANNOTATOR = (
    "handle",
    "created_at",
    "last_seen_at",
    "excluded_reason",
    "wants",
    "keys",
    "warned",
    "wants_mail",
    "mailed_at",
    "leaves_at",
    "waives",
)


@dataclass(frozen=True)
class PersonalTable:
    """The rows of a table that refer to a person by one column, and the columns to return."""

    name: str
    model: type[Model]
    column: str
    told: str
    """Names of columns, apart by blanks"""

    @property
    def label(self) -> str:
        """Return table and column, such as ``accounts.Token.user``."""
        return f"{self.model._meta.label}.{self.column}"

    def rows(self, row: Model) -> list[dict[str, Any]]:
        """Return the values of the columns, ordered by primary key."""
        records = self.model._base_manager.filter(**{self.column: row}).order_by("pk")
        return list(records.values(*self.told.split()))


OF_USER = (
    PersonalTable(
        "tokens",
        Token,
        "user",
        "name prefix scope created_at last_used_at expires_at revoked_at",
    ),
    PersonalTable("webhooks", Webhook, "user", "url made_at"),
    PersonalTable("told", Delivery, "user", "event hook__url address body status reason made_at"),
    PersonalTable(
        "requests",
        AccountRequest,
        "user",
        "name email affiliation team system network asked_at decided_at accepted",
    ),
    PersonalTable("applications", Application, "user", "why network made_at admitted answered_at"),
    PersonalTable(
        "invitations", Invitation, "made_by", "role team__name created_at expires_at uses_left"
    ),
    PersonalTable(
        "runs",
        Submission,
        "user",
        "id track__slug team__name name description status reason file_name received_at"
        " confirmed_at scored_at withdrawn_at file_size file_digest",
    ),
    PersonalTable(
        "disputes", ExpertCheck, "raised_by", "id track__slug submission note raised_at status"
    ),
    PersonalTable(
        "expert_answers",
        ExpertCheck,
        "expert",
        "id track__slug kind interface raw remark answered_at",
    ),
    PersonalTable(
        "expert_drafts", ExpertCheck, "holder", "id track__slug kind interface draft held_until"
    ),
    PersonalTable("log", Audit, "who", "at what about track before after why"),
)
OF_WORKER = (
    PersonalTable("identity", WorkerIdentity, "worker", "external_id pay_to"),
    PersonalTable("consents", Consent, "worker", "version at"),
    PersonalTable(
        "tutorials",
        TutorialRun,
        "worker",
        "interface version attempt answers passed started_at ended_at",
    ),
    PersonalTable("qualifications", Qualification, "worker", "name wanted wanted_at"),
    PersonalTable(
        "answers",
        Assignment,
        "worker",
        "id status first_accepted_at accepted_at submitted_at seconds raw draft",
    ),
    PersonalTable("payments", Payment, "worker", "amount status why created_at"),
    PersonalTable("bonuses", Bonus, "worker", "amount status why created_at"),
    PersonalTable("payouts", Payout, "worker", "amount paid_at number sent_to"),
    PersonalTable("messages", Message, "worker", "subject text at read_at"),
    PersonalTable("feedback", Feedback, "worker", "interface clear fair comment at"),
    PersonalTable(
        "appeals",
        Appeal,
        "worker",
        "about_pay excluded_reason text made_at answer reinstated answered_at",
    ),
)


def personal_data(user: User) -> dict[str, Any]:
    """Return all data about a user, by topic."""
    return {
        "account": {name: getattr(user, name) for name in (*ACCOUNT, *ROLES, *NOTICES)},
        "teams": [
            {"name": row.team.name, "role": row.role}
            for row in user.memberships.select_related("team").order_by("team")
        ],
        "former_teams": list(user.former_teams.order_by("pk").values_list("name", flat=True)),
        **{part.name: part.rows(user) for part in OF_USER},
        "annotator": [
            {name: getattr(worker, name) for name in ANNOTATOR}
            | {part.name: part.rows(worker) for part in OF_WORKER}
            for worker in Worker.objects.filter(user=user)
        ],
    }


def personal_data_as_json(user: User) -> str:
    """Return all data about a user as indented JSON."""
    return (
        json.dumps(personal_data(user), cls=DjangoJSONEncoder, indent=2, ensure_ascii=False) + "\n"
    )
