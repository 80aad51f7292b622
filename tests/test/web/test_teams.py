"""Teams have owners, are left and handed over; what somebody saw is not forgotten; accounts are
closed, and their data taken along.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from annotation.budget.give_back import tick as give_back
from kbpo import clock
from kbpo.accounts import teams
from kbpo.accounts.models import AccountRequest, Audit, Team, Token, User
from kbpo.sampling.confirm import confirm_plan
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import withdraw_submission
from tests.conftest import PASSWORD, Toy

As = Callable[[str], Client]
Draft = Callable[..., Submission]
pytestmark = pytest.mark.django_db


def owners_of(team: Team) -> set[User]:
    return {user for user, role in teams.member_roles(team).items() if role == "owner"}


def change(client: Client, team: Team, user: User, verb: str) -> int:
    address = reverse("team", args=[team.slug])
    form = {"action": "member", "pk": user.pk}
    return client.post(address, form | {"verb": verb, "word": "leave"}).status_code


def test_owners_give_roles_and_remove_and_a_team_keeps_an_owner(
    toy: Toy, as_user: As, nils: User
) -> None:
    team, rosa = toy.teams["Patterns"], toy.users["Rosa"]
    assert owners_of(team) == {rosa}, "the first who joins owns the team"
    member = Client()
    member.force_login(nils)
    assert change(member, team, rosa, "remove") == 403
    assert change(member, team, nils, "owner") == 403
    assert change(as_user("Tim"), team, nils, "remove") == 404
    owner = as_user("Rosa")
    for verb in ("remove", "member", "fly"):
        assert change(owner, team, rosa, verb) == 302
    assert set(team.members.all()) == {rosa, nils} and owners_of(team) == {rosa}
    page = owner.get(reverse("team", args=[team.slug])).content.decode()
    assert "Make somebody else an owner first" in page
    change(owner, team, nils, "owner")
    change(owner, team, rosa, "remove")
    assert set(team.members.all()) == owners_of(team) == {nils}
    assert owner.get(reverse("team", args=[team.slug])).status_code == 404
    assert Audit.objects.filter(what="leave team", before="rosa").exists()


def test_the_last_member_leaves_nothing_under_way_and_no_open_link(
    toy: Toy, as_user: As, draft: Draft
) -> None:
    team, rosa = toy.teams["Patterns"], toy.users["Rosa"]
    teams.add_member(team, rosa)
    owner, row, page = as_user("Rosa"), draft(), reverse("team", args=[team.slug])
    owner.post(reverse("team", args=[team.slug]), {"action": "invite"})
    confirm_plan(row, rosa)
    told = owner.get(page).content.decode()
    assert "has open runs or reserved money" in told and "Leave Patterns" not in told
    assert change(owner, team, rosa, "remove") == 302 and team.members.get() == rosa
    closing = owner.post(reverse("account-close"), {"word": "close", "password": PASSWORD})
    assert "has open runs" in closing.content.decode()
    withdraw_submission(row, rosa)
    give_back()
    owner.post(
        reverse("team", args=[team.slug]), {"action": "member", "pk": rosa.pk, "verb": "remove"}
    )
    asked = owner.get(page).content.decode()
    assert team.members.get() == rosa and "type the word leave" in asked
    assert "You are the last member" in asked
    change(owner, team, rosa, "remove")
    assert not team.members.exists() and team.invitation_set.get().uses_left == 0


def test_who_is_removed_cannot_come_back_by_a_link_that_they_saw(
    toy: Toy, as_user: As, nils: User
) -> None:
    team, owner = toy.teams["Patterns"], as_user("Rosa")
    owner.post(reverse("team", args=[team.slug]), {"action": "invite"})
    code = team.invitation_set.get().code
    change(owner, team, nils, "remove")
    member = Client()
    member.force_login(nils)
    assert member.post(reverse("join", args=[code])).status_code == 410
    assert not team.members.filter(pk=nils.pk).exists()


def test_an_account_is_closed_with_its_password_and_nothing_of_the_person_is_left(
    toy: Toy, draft: Draft, nils: User
) -> None:
    row = draft()
    Submission.objects.filter(pk=row.pk).update(user=nils)
    Token.create_with_secret(nils, "laptop")
    AccountRequest.objects.create(
        name="Nils Berg", email=nils.email, team="Patterns", decided_at=clock.now()
    )
    AccountRequest.objects.create(name="Nils Berg", email=nils.email.upper(), team="Second")
    for role in ("owner", "member"):
        teams.set_member_role(toy.teams["Patterns"], nils, role, toy.users["Rosa"])
    client, address = Client(), reverse("account-close")
    client.force_login(nils)
    for word, password in (("", PASSWORD), ("close", "wrong")):
        assert client.post(address, {"word": word, "password": password}).status_code == 422
    done = client.post(address, {"word": "close", "password": PASSWORD}, follow=True)
    assert "Your account is closed." in done.content.decode()
    nils.refresh_from_db()
    assert (nils.username, nils.email, nils.is_active) == (f"closed-{nils.pk}", "", False)
    assert not nils.teams.exists() and nils.former_teams.get() == toy.teams["Patterns"]
    assert not Token.objects.filter(user=nils, revoked_at=None).exists()
    assert client.get(reverse("account")).status_code == 302
    row.refresh_from_db()
    assert row.team == toy.teams["Patterns"], "a run stays with its team"
    assert not AccountRequest.objects.exists()
    log = str(list(Audit.objects.values()))
    assert "nils" not in log.lower() and f"closed-{nils.pk}: owner" in log


def test_one_takes_ones_own_data_along_and_nobody_elses(
    toy: Toy, draft: Draft, as_user: As, nils: User
) -> None:
    row = draft()
    Submission.objects.filter(pk=row.pk).update(user=toy.users["Rosa"])
    client = as_user("Rosa")
    told = json.loads(client.get(reverse("own-data")).content)
    assert told["account"]["username"] == "rosa" and told["teams"][0]["role"] == "owner"
    assert [one["id"] for one in told["runs"]] == [row.pk]
    others = json.loads(as_user("Tim").get(reverse("own-data")).content)
    assert others["runs"] == [] and "nils" not in json.dumps(others)
    assert Client().get(reverse("own-data")).status_code == 302


def test_a_team_sees_its_own_budget_on_a_track(toy: Toy, as_user: As) -> None:
    team, rosa = toy.teams["Patterns"], as_user("Rosa")
    address = reverse("team", args=[team.slug])
    toy.track.budgets.create(scope="team", cap=20)
    assert "$20" in rosa.get(address).content.decode()
    toy.track.budgets.create(scope="team", team=team, cap=10)
    page = rosa.get(address).content.decode()
    assert f"{toy.track.name}: your budget" in page and "$10" in page and "$20" not in page
