"""All that is known of a person can be had by them, and is forgotten with them: every table that
names people is looked at, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import CASCADE, Model
from django.test import Client
from django.urls import reverse

from annotation.desk import experts
from annotation.models import Worker
from annotation.workers.models import Application
from kbpo import clock
from kbpo.accounts import close, teams
from kbpo.accounts.ask import request_account
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.close import column_label, foreign_keys_to, referring_rows
from kbpo.accounts.models import (
    Audit,
    Token,
    User,
    Webhook,
)
from kbpo.accounts.notices import notify
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.web.public import people
from tests.conftest import PASSWORD, Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db
TOLD_BY_NAME = {
    "accounts.Membership.user": "teams",
    "accounts.Former.user": "former_teams",
    "annotation.Worker.user": "annotator",
}
"""Columns of which the data of a person tell in a way of their own -> where"""
NAMES_NOBODY = {
    "What was done for a team is the team's; the name is a number, and no words about them.": {
        "accounts.Audit.who",
        "accounts.Invitation.made_by",
        "money.Ledger.who",
        "sampling.ExpertCheck.raised_by",
        "submissions.Submission.user",
    },
    "An expert's answer corrects scores that are published; it says of nobody who gave it.": {
        "sampling.ExpertCheck.expert",
        "sampling.ExpertCheck.holder",
    },
    "Who still has it is an annotator, who leaves first; it is cut then.": {
        "annotation.Worker.user"
    },
    "Only admins do this, and their accounts are closed on the server.": {
        "accounts.AccountRequest.decided_by",
        "annotation.Bonus.who",
        "annotation.DocumentOrder.who",
        "annotation.Gold.made_by",
        "annotation.Halt.lifted_by",
        "annotation.Halt.who",
        "annotation.Rejection.undone_by",
        "annotation.Rejection.who",
        "annotators.Appeal.answered_by",
        "annotators.Application.answered_by",
        "annotators.Message.by",
        "annotators.Payout.paid_by",
        "annotators.Terms.made_by",
        "money.BooksCheck.who",
        "sampling.DocumentBatch.user",
        "sampling.ExpertRound.drawn_by",
        "scores.Scorer.user",
        "scores.Scorer.not_tuned_by",
    },
    "Answers and what was paid for them stay, and belong to nobody.": {
        "annotation.Assignment.worker",
        "annotation.Bonus.worker",
        "annotation.Payment.worker",
        "annotators.Payout.worker",
    },
}
"""Why what names a person may stay when they are forgotten -> the columns"""


def columns(*models: type[Model]) -> Iterator[Any]:
    for model in models:
        yield from foreign_keys_to(model)


def test_every_column_that_names_a_person_is_in_their_data_or_says_why_not(toy: Toy) -> None:
    parts = {part.label for part in (*people.OF_USER, *people.OF_WORKER)}
    told = parts | TOLD_BY_NAME.keys()
    missing, there = [], set()
    for relation in columns(User, Worker):
        name = column_label(relation)
        there.add(name)
        by_number = relation.on_delete is not CASCADE and relation.model is User
        if name not in told and not by_number:
            missing.append(name)
    assert missing == [], "put them into kbpo/web/public/people.py, or say here why not"
    assert told <= there, "what is said is so"
    data = people.personal_data(toy.users["Rosa"])
    assert set(TOLD_BY_NAME.values()) <= data.keys()


def test_every_column_that_names_a_person_is_emptied_with_them_or_says_why_not() -> None:
    stays = close.KEPT_COLUMNS
    said = {name for names in NAMES_NOBODY.values() for name in names}
    kept = {
        column_label(relation)
        for relation in columns(User, Worker)
        if relation.on_delete is not CASCADE or column_label(relation) in stays
    }
    assert kept - stays.keys() == said, "let it go with them, or say here why it stays"
    assert stays.keys() <= kept and all([*stays.values(), *NAMES_NOBODY])


def own(toy: Toy, person: User) -> None:
    """Somebody has something in every table whose rows belong to people."""
    Token.create_with_secret(person, "laptop of Nils")
    Webhook.objects.create(user=person, url="https://nils.example.org/told")
    notify([person], "scored", "A run of Nils is scored", "It is.")
    Application.objects.create(user=person, why="Nils reads a lot.")
    request_account(
        name="Nils Berg",
        email=person.email,
        affiliation="Berg University",
        team="Berg",
        system="",
        user=person,
        network="",
    )


def test_nothing_that_belongs_to_somebody_is_left_when_they_close_their_account(toy: Toy) -> None:
    nils = User.objects.create_user("nils", "nils@example.org", PASSWORD, is_researcher=True)
    teams.add_member(toy.teams["Patterns"], toy.users["Rosa"])
    teams.add_member(toy.teams["Patterns"], nils)
    own(toy, nils)
    write_audit_entry(
        "volunteer", f"user:{nils.pk}", who=toy.users["Admin"], why="Nils is too quick."
    )
    for role in teams.ROLES:
        teams.set_member_role(
            toy.teams["Patterns"], nils, role, toy.users["Admin"], "Berg is on leave."
        )
    teams.set_member_role(toy.teams["Patterns"], nils, "owner", toy.users["Admin"], "Berg is back.")

    def left() -> set[str]:
        found = (row for row in foreign_keys_to(User) if row.on_delete is CASCADE)
        return {column_label(row) for row in found if referring_rows(row, nils).exists()}

    may_be_empty = {"accounts.Former.user"}
    every = {column_label(row) for row in foreign_keys_to(User) if row.on_delete is CASCADE}
    assert left() == every - may_be_empty, "or the test looks at nothing"
    close.close_account(nils)
    assert left() == close.KEPT_COLUMNS.keys()
    log = str(list(Audit.objects.values())).lower()
    assert not any(word in log for word in ("nils", "berg", "too quick"))


def test_ones_data_have_what_one_asked_doubted_and_answered(
    judged: Submission, toy: Toy, as_user: As
) -> None:
    rosa, admin = toy.users["Rosa"], toy.users["Admin"]
    own(toy, rosa)
    target = Label.objects.order_by("pk")[0].target_id
    row = experts.store_dispute(judged, target, rosa, "She did not found it.")
    told = json.loads(as_user("Rosa").get(reverse("own-data")).content)
    assert [one["team"] for one in told["requests"]] == ["Berg"]
    assert [one["why"] for one in told["applications"]] == ["Nils reads a lot."]
    assert [(one["id"], one["note"]) for one in told["disputes"]] == [
        (row.pk, "She did not found it.")
    ]
    assert told["expert_answers"] == []
    type(row).objects.filter(pk=row.pk).update(
        status="answered",
        expert=admin,
        raw={"relation": "yes"},
        value={},
        remark="Look again.",
        answered_at=clock.now() + timedelta(minutes=1),
    )
    of_admin = json.loads(as_user("Admin").get(reverse("own-data")).content)
    assert [one["raw"] for one in of_admin["expert_answers"]] == [{"relation": "yes"}]
    again = json.loads(as_user("Rosa").get(reverse("own-data")).content)
    assert "Look again." not in json.dumps(again), "what an expert says is the expert's"
    assert Worker.objects.filter(user=rosa).exists() == bool(again["annotator"])
