"""Somebody of a team who may look sees all that the team sees, and changes nothing of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from kbpo.accounts import teams
from kbpo.accounts.models import Invitation, Token, User
from kbpo.money.models import Ledger
from kbpo.sampling.confirm import confirm
from kbpo.submissions.models import Submission
from kbpo.web.public.own_data import data_of
from tests.conftest import PASSWORD, Toy
from tests.web.conftest import GOOD, lines_of

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db


@pytest.fixture
def vera(toy: Toy) -> User:
    """Somebody who may look at what Rosa's team does."""
    user = User.objects.create_user("vera", "vera@example.org", PASSWORD, is_researcher=True)
    teams.join(toy.teams["Patterns"], toy.users["Rosa"])
    teams.join(toy.teams["Patterns"], user, "observer")
    return user


@pytest.fixture
def looks(vera: User) -> Client:
    client = Client()
    client.force_login(vera)
    return client


@pytest.fixture
def row(draft: Draft) -> Submission:
    """A private draft of Rosa's team."""
    row = draft(name="Patterns 7")
    Submission.objects.filter(pk=row.pk).update(is_private=True)
    row.refresh_from_db()
    return row


def test_who_may_look_sees_private_runs_and_no_button(
    toy: Toy, row: Submission, looks: Client, as_user: As
) -> None:
    for client, buttons in ((looks, 0), (as_user("Rosa"), 1)):
        runs = client.get(reverse("runs")).content.decode()
        assert "Patterns 7" in runs and ("you may look" in runs) is not bool(buttons)
        for word in ("Look and confirm", ">Discard<", "Submit a run"):
            assert (runs.count(word) > 0) is bool(buttons), word
        check = client.get(reverse("upload-check", args=[row.pk])).content.decode()
        assert "What it will cost" in check
        assert check.count("Continue to description") == buttons
        team = client.get(reverse("team", args=["patterns"])).content.decode()
        assert team.count("Link for a member") == buttons
    assert as_user("Tim").get(reverse("upload-check", args=[row.pk])).status_code == 404
    confirm(row, toy.users["Rosa"])
    page = looks.get(reverse("submission", args=[row.pk])).content.decode()
    assert "Patterns 7" in page and "Edit description" not in page
    assert (
        "Edit description"
        in as_user("Rosa").get(reverse("submission", args=[row.pk])).content.decode()
    )
    assert looks.get(reverse("upload-file", args=[row.pk])).status_code == 200


def test_who_may_look_changes_nothing_on_the_pages(
    toy: Toy, row: Submission, looks: Client
) -> None:
    team, before = toy.teams["Patterns"], Submission.objects.values().get(pk=row.pk)
    link = Invitation.objects.create(role="researcher", team=team)
    file = SimpleUploadedFile("r.jsonl", lines_of(toy, GOOD))
    run, page = reverse("submission", args=[row.pk]), reverse("team", args=[team.slug])
    for address, said in (
        (reverse("submit"), {"track": "toy", "file": file}),
        (reverse("upload-describe", args=[row.pk]), {"name": "Mine"}),
        (reverse("upload-confirm", args=[row.pk]), {}),
        (reverse("upload-check", args=[row.pk]), {"action": "discard"}),
        (reverse("submission-edit", args=[row.pk]), {"name": "Mine"}),
        (run, {"action": "withdraw"}),
        (run, {"action": "retry"}),
        (run, {"action": "order", "target": "0.02"}),
        (reverse("submission-dispute", args=[row.pk, 1]), {"note": "It is not so."}),
        (reverse("runs"), {"action": "delete", "pk": row.pk}),
        (page, {"action": "invite"}),
        (page, {"action": "take-back", "pk": link.pk}),
        (page, {"action": "member", "pk": toy.users["Rosa"].pk, "verb": "remove"}),
    ):
        assert looks.post(address, said).status_code == 403, address
    assert Submission.objects.values().get() == before and not Ledger.objects.exists()
    assert Invitation.objects.get().uses_left == 1


def test_who_may_look_changes_nothing_over_the_api(toy: Toy, row: Submission, vera: User) -> None:
    secret = Token.issue(vera, "laptop")[1]

    def ask(method: str, path: str, **said: Any) -> Any:
        headers = {"Authorization": f"Token {secret}"}
        return Client().generic(
            method, f"/api/{path}", json.dumps(said), "application/json", headers=headers
        )

    run = f"submissions/{row.pk}/"
    assert ask("GET", run).json()["private"]
    assert ask("GET", "submissions/").json()["count"] == 1
    before = Submission.objects.values().get(pk=row.pk)
    file = SimpleUploadedFile("r.jsonl", lines_of(toy, GOOD))
    form = {"track": "toy", "name": "run", "file": file}
    answers = [
        Client().post("/api/submissions/", form, headers={"Authorization": f"Token {secret}"}),
        ask("PATCH", run, name="Mine"),
        ask("DELETE", run),
        ask("POST", f"{run}confirm/"),
        ask("POST", f"{run}order/", half_width="0.02"),
        ask("POST", f"{run}withdraw/"),
        ask("POST", f"{run}retry/"),
        ask("POST", f"{run}predictions/1/dispute/", note="It is not so."),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert teams.ONLY_LOOKS in {answer.json()["detail"] for answer in answers}
    assert Submission.objects.values().get() == before


def test_an_owner_gives_and_takes_the_role_and_a_link_makes_an_observer(
    toy: Toy, as_user: As, vera: User
) -> None:
    team, owner = toy.teams["Patterns"], as_user("Rosa")
    change = reverse("team", args=[team.slug])
    form = {"action": "member", "pk": vera.pk}
    assert not teams.may_act(team, vera)
    owner.post(change, form | {"verb": "member"})
    assert teams.roles_of(team)[vera] == "member"
    assert teams.may_act(team, User.objects.get(pk=vera.pk)), "from the next request on"
    owner.post(change, form | {"verb": "observer"})
    assert teams.roles_of(team)[vera] == "observer" and vera.team() is None
    mine = reverse("team", args=[team.slug])
    form = {"action": "member", "pk": toy.users["Rosa"].pk}
    owner.post(mine, form | {"verb": "observer"})
    assert teams.roles_of(team)[toy.users["Rosa"]] == "owner", "a team keeps an owner"
    owner.post(reverse("team", args=[team.slug]), {"action": "invite", "role": "observer"})
    tim, code = as_user("Tim"), Invitation.objects.get().code
    welcome = tim.post(reverse("join", args=[code]), follow=True).content.decode()
    assert "see what it does" in welcome
    assert teams.roles_of(team)[toy.users["Tim"]] == "observer"
    assert toy.users["Tim"].team() == toy.teams["Neural"], "submits for the other one"
    teams.join(team, toy.users["Tim"])
    teams.join(team, toy.users["Tim"], "observer")
    assert teams.may_act(team, toy.users["Tim"]), "who may submit keeps that"
    assert data_of(vera)["teams"] == [{"name": "Patterns", "role": "observer"}]
