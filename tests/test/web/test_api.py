"""The API: tokens, errors in sentences, and nothing about other people's submissions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from kbpo.accounts.models import Token
from kbpo.money.models import Ledger
from kbpo.submissions.models import Submission
from tests.conftest import Toy
from tests.test.web.conftest import GOOD, lines_of
from tests.test.web.scored import make_board

Draft = Callable[..., Submission]
Call = Callable[..., Any]
pytestmark = pytest.mark.django_db


@pytest.fixture
def call(toy: Toy) -> Call:
    """Asks the API as somebody of the cast; "" has no token."""

    def ask(who: str, method: str, path: str, data: Any = None, **headers: str) -> Any:
        if who:
            headers["Authorization"] = (
                f"Token {Token.create_with_secret(toy.users[who], 'test')[1]}"
            )
        return getattr(Client(), method)(f"/api/{path}", data, headers=headers)

    return ask


def form(toy: Toy, **changes: Any) -> dict[str, Any]:
    return {
        "track": "toy",
        "name": "run",
        "file": SimpleUploadedFile("r.jsonl", lines_of(toy, GOOD)),
    } | changes


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({}, "This needs a token"),
        ({"Authorization": "Token kbpo_nonsense"}, "no such token"),
        ({"Authorization": "Basic abc"}, "must read"),
        ({"Authorization": "Token "}, "must read"),
    ],
)
def test_without_a_good_token_nothing_is_told(header: dict[str, str], says: str, toy: Toy) -> None:
    for method, path in (
        ("get", "submissions/"),
        ("post", "submissions/"),
        ("get", "submissions/1/problems/"),
    ):
        answer = getattr(Client(), method)(f"/api/{path}", headers=header)
        assert (
            answer.status_code == 401 and says in answer.json()["detail"] and answer.json()["error"]
        )


@pytest.mark.parametrize("change", [{"expires_at": -1}, {"revoked_at": -1}])
def test_a_token_that_ended_says_when(change: dict[str, int], toy: Toy) -> None:
    token, secret = Token.create_with_secret(toy.users["Rosa"], "old")
    Token.objects.filter(pk=token.pk).update(
        **{key: timezone.now() + timedelta(days=n) for key, n in change.items()}
    )
    answer = Client().get("/api/submissions/", headers={"Authorization": f"Token {secret}"})
    assert answer.status_code == 401 and "Make another" in answer.json()["detail"]


def test_an_upload_names_the_team_that_it_is_for(call: Call, toy: Toy) -> None:
    toy.teams["Neural"].members.add(toy.users["Rosa"])
    sent = {"Idempotency-Key": "one"}
    made = call("Rosa", "post", "submissions/", form(toy) | {"team": "neural"}, **sent)
    assert made.status_code == 201
    assert Submission.objects.get(pk=made.json()["id"]).team == toy.teams["Neural"]
    other = call("Rosa", "post", "submissions/", form(toy), **sent)
    assert other.status_code == 409 and "of Neural" in other.json()["detail"]
    stranger = call("Tim", "post", "submissions/", form(toy) | {"team": "patterns"})
    assert stranger.status_code == 403 and stranger.json()["error"] == "no_team"


def test_a_run_on_the_board_is_told_to_everybody_as_its_page_tells_it(call: Call, toy: Toy) -> None:
    make_board(toy, 2)
    row = Submission.objects.get(name="run 1")
    row.team = toy.teams["Patterns"]
    row.file_name, row.reason, row.description = "secret.jsonl", "secret", "A graph."
    row.counts = {"relations": 7, "errors": 3}
    row.save()
    mine = call("Rosa", "get", f"submissions/{row.pk}/").json()
    assert mine["own"] and mine["team"] == "patterns" and mine["file"]["name"] == "secret.jsonl"
    for who in ("", "Tim"):
        answer = call(who, "get", f"submissions/{row.pk}/")
        told = answer.json()
        assert answer.status_code == 200 and not told["own"], who
        assert (told["team"], told["name"]) == ("Patterns", "run 1")
        assert told["counts"] == {"relations": 7} and told["description"] == "A graph."
        for name in ("scores", "judging", "judges", "stage_reason", "status"):
            assert told[name] == mine[name]
        assert set(told) < set(mine) and b"secret" not in answer.content
        assert not {"money", "plan", "further", "file", "progress"} & set(told)
    assert call("Tim", "patch", f"submissions/{row.pk}/").status_code == 404
    assert call("", "delete", f"submissions/{row.pk}/").status_code == 401
    row.is_anonymous = True
    row.save()
    told = call("Tim", "get", f"submissions/{row.pk}/").json()
    assert (told["team"], told["name"]) == ("Anonymous", row.public_name)
    assert told["description"] == ""
    row.is_private = True
    row.save()
    for number in (row.pk, 99):
        gone = call("Tim", "get", f"submissions/{number}/")
        assert gone.status_code == 404 and f"no run {number}," in gone.json()["detail"]
        asked = call("", "get", f"submissions/{number}/")
        assert asked.status_code == 401 and "This needs a token" in asked.json()["detail"]


def test_what_is_not_there_is_named(call: Call, toy: Toy) -> None:
    told = {
        "submissions/-1/": "There is no run -1.",
        "tracks/no%20such/": "There is no track no such.",
        "submissions/1/nonsense/": "There is no such address, /api/submissions/1/nonsense/.",
    }
    for path, says in told.items():
        answer = call("", "get", path)
        assert answer.status_code == 404 and answer.json()["detail"].startswith(says), path


def test_the_list_of_runs_has_what_each_is_ranked_by(call: Call, toy: Toy, draft: Draft) -> None:
    make_board(toy, 2)
    Submission.objects.filter(name="run 1").update(team=toy.teams["Patterns"])
    waits = draft()
    listed = {row["id"]: row for row in call("Rosa", "get", "submissions/").json()["submissions"]}
    scored = listed.pop(Submission.objects.get(name="run 1").pk)
    assert scored["score"]["label"] == "F1" and scored["score"]["value"] == 0.45
    assert scored["score"]["low80"] < 0.45 and listed[waits.pk]["score"] is None
    assert call("Tim", "get", "submissions/").json()["submissions"] == []


def test_an_upload_is_read_looked_at_and_confirmed_once(call: Call, toy: Toy, draft: Draft) -> None:
    answer = call("Rosa", "post", "submissions/", form(toy), **{"Idempotency-Key": "one"})
    assert answer.status_code == 201 and answer.json()["status"] == "received"
    again = call("Rosa", "post", "submissions/", form(toy), **{"Idempotency-Key": "one"})
    assert again.json()["id"] == answer.json()["id"] and Submission.objects.count() == 1
    other = form(toy, file=SimpleUploadedFile("r.jsonl", lines_of(toy, GOOD[:2])))
    conflict = call("Rosa", "post", "submissions/", other, **{"Idempotency-Key": "one"})
    assert conflict.status_code == 409 and conflict.json()["error"] == "key_reused"
    assert conflict.json()["same_as"] == answer.json()["id"] and Submission.objects.count() == 1
    draft(GOOD[:3], by="Tim")  # reads and plans whatever waits
    path = f"submissions/{answer.json()['id']}/"
    plan = call("Rosa", "get", path).json()["plan"]
    for _ in range(2):
        confirmed = call("Rosa", "post", path + "confirm/", {"half_width": "0.05"})
        assert confirmed.status_code == 200 and confirmed.json()["status"] == "confirmed"
    assert str(Ledger.objects.get().amount) == plan["options"]["0.050"]["at_most"]


def test_a_submission_is_renamed_and_described_by_its_team_alone(toy: Toy, draft: Draft) -> None:
    row = draft()
    path = f"/api/submissions/{row.pk}/"

    def edit(who: str, **said: str) -> Any:
        token = {"Authorization": f"Token {Token.create_with_secret(toy.users[who], 'test')[1]}"}
        return Client().patch(path, said, headers=token, content_type="application/json")

    assert edit("Rosa", name="Better").json()["name"] == "Better"
    told = edit("Rosa", description="A line.").json()
    assert (told["name"], told["description"]) == ("Better", "A line.")
    assert edit("Tim", name="Theirs").status_code == 404
    for wrong in ({"name": " "}, {"name": "x" * 81}):
        refused = edit("Rosa", **wrong)
        assert refused.status_code == 400 and "name" in refused.json()["detail"]
    row.refresh_from_db()
    assert (row.name, row.description) == ("Better", "A line.")


WRONG_TYPES = [
    ("", {"name": 5}, "name"),
    ("", {"private": 0}, "private"),
    ("confirm/", {"good_lines_only": "0"}, "good_lines_only"),
    ("confirm/", {"half_width": True}, "half_width"),
    ("confirm/", {"half_width": "0"}, "half_width"),
    ("confirm/", {"half_width": "5e-2"}, "half_width"),
    ("order/", {"half_width": 0.05, "order": "1"}, "order"),
    ("confirm/", {"atmost": "0.01"}, "atmost"),
]


def test_json_says_everything_in_the_type_that_the_schema_names(toy: Toy, draft: Draft) -> None:
    row = draft()
    for path, said, field in WRONG_TYPES:
        token = {"Authorization": f"Token {Token.create_with_secret(toy.users['Rosa'], 'test')[1]}"}
        send = Client().post if path else Client().patch
        address = f"/api/submissions/{row.pk}/{path}"
        answer: Any = send(address, said, headers=token, content_type="application/json")
        assert answer.status_code == 400 and list(answer.json()["fields"]) == [field]
        assert field != "half_width" or "between 0 and 1" in answer.json()["detail"]
        row.refresh_from_db()
        assert (row.name, row.is_private, row.status) == ("run", False, "planned")


def test_what_cannot_be_confirmed_is_a_conflict_in_a_sentence(call: Call, draft: Draft) -> None:
    row = draft(until="received")
    answer = call("Rosa", "post", f"submissions/{row.pk}/confirm/", {})
    assert answer.status_code == 409 and "only a submission with a plan" in answer.json()["detail"]
    wrong = call("Rosa", "post", f"submissions/{draft().pk}/confirm/", {"half_width": "0.123"})
    assert wrong.status_code == 409 and "There is no plan for" in wrong.json()["detail"]
    assert not Ledger.objects.exists()


def test_the_board_and_tracks_are_public_but_drafts_of_tracks_are_not(call: Call, toy: Toy) -> None:
    assert [one["slug"] for one in call("", "get", "tracks/").json()["tracks"]] == ["toy"]
    assert call("", "get", "tracks/toy/board/").json()["systems"] == []
    assert call("", "get", "tracks/toy/board/?distribution=all").status_code == 400
    toy.track.status = "draft"
    toy.track.save()
    assert call("", "get", "tracks/").json() == {"tracks": []}
    assert call("", "get", "tracks/toy/board/").status_code == 404


def test_a_discard_is_deleted_and_a_run_is_not(call: Call, toy: Toy, draft: Draft) -> None:
    row = draft()
    refused = call("Rosa", "delete", f"submissions/{row.pk}/")
    assert refused.status_code == 409 and "withdrawn, not deleted" in refused.json()["detail"]
    call("Rosa", "post", f"submissions/{row.pk}/withdraw/")
    assert call("Tim", "delete", f"submissions/{row.pk}/").status_code == 404
    assert call("Rosa", "delete", f"submissions/{row.pk}/").status_code == 204
    assert call("Rosa", "get", f"submissions/{row.pk}/").status_code == 404
    assert call("Rosa", "get", "submissions/").json()["count"] == 0


def test_a_team_has_its_file_back_as_it_sent_it(call: Call, toy: Toy, draft: Draft) -> None:
    body = lines_of(toy, GOOD)
    path = f"submissions/{draft(body=body, name='mine').pk}/"
    told = call("Rosa", "get", path).json()["file"]
    digest = hashlib.sha256(body).hexdigest()
    assert told == {"name": "mine.jsonl", "size": len(body), "digest": digest}
