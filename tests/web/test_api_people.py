"""What the pages do for a researcher beside runs, over the API: webhooks, notices, the people of a
team, and the documents of a track.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbpo.accounts import notices, teams
from kbpo.accounts.models import Audit, Delivery, Invitation, Token, User, Webhook
from kbpo.accounts.preferences import MOST, TESTS
from kbpo.corpus.models import Document
from kbpo.submissions.models import Submission
from kbpo.web.public import documents
from tests.conftest import PASSWORD, Toy

Call = Callable[..., Any]
pytestmark = pytest.mark.django_db
SCOPE = Token.Scope


@pytest.fixture
def call(toy: Toy) -> Call:
    """Asks the API as somebody, with a token of a scope; what is sent is JSON."""
    cache.clear()

    def ask(
        who: User | str, method: str, path: str, data: Any = None, scope: str = SCOPE.ALL
    ) -> Any:
        user = toy.users[who] if isinstance(who, str) else who
        headers = {"Authorization": f"Token {Token.issue(user, 'test', scope=scope)[1]}"}
        return Client().generic(
            method.upper(),
            f"/api/{path}",
            "" if data is None else json.dumps(data),
            "application/json",
            headers=headers,
        )

    return ask


@pytest.fixture
def nils(toy: Toy) -> User:
    """A second member of Rosa's team, which she owns."""
    user = User.objects.create_user("nils", "nils@example.org", PASSWORD, is_researcher=True)
    teams.join(toy.teams["Patterns"], toy.users["Rosa"])
    teams.join(toy.teams["Patterns"], user)
    return user


def test_a_webhook_is_added_tested_and_removed(call: Call, toy: Toy) -> None:
    made = call("Rosa", "post", "webhooks/", {"url": "https://hooks.example.org/kbpo"})
    hook = Webhook.objects.get(user=toy.users["Rosa"])
    assert made.status_code == 201 and made.json()["secret"] == hook.secret
    [listed] = call("Rosa", "get", "webhooks/").json()["webhooks"]
    assert listed["id"] == hook.pk and "secret" not in listed, "it is told once"
    test = call("Rosa", "post", f"webhooks/{hook.pk}/test/")
    assert test.status_code == 201 and test.json()["webhook"] == hook.pk
    [sent] = call("Rosa", "get", "notices/sent/").json()["results"]
    assert (sent["event"], sent["status"], sent["to"]) == ("test", "waiting", hook.url)
    assert call("Tim", "get", "notices/sent/").json()["count"] == 0
    for method, path in (("delete", f"webhooks/{hook.pk}/"), ("post", f"webhooks/{hook.pk}/test/")):
        assert call("Tim", method, path).status_code == 404
        assert call("Rosa", method, path, scope=SCOPE.UPLOAD).status_code == 403
    assert call("Rosa", "delete", f"webhooks/{hook.pk}/").status_code == 204
    assert not Webhook.objects.exists() and not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("url", "status", "says"),
    [
        ("http://127.0.0.1/", 409, "The address does not lead to the public internet."),
        ("http://127.1/", 409, "The address does not lead to the public internet."),
        ("http://localhost/", 409, "The address does not lead to the public internet."),
        ("ftp://example.org/", 409, "https://"),
        ("", 400, "blank"),
        (7, 400, "string"),
    ],
)
def test_an_address_that_will_not_be_called_is_refused(
    call: Call, url: Any, status: int, says: str
) -> None:
    answer = call("Rosa", "post", "webhooks/", {"url": url})
    assert answer.status_code == status and says in answer.json()["detail"]
    assert not Webhook.objects.exists()


def test_there_are_so_many_webhooks_and_tests_and_no_more(call: Call, toy: Toy) -> None:
    for n in range(MOST):
        assert call("Rosa", "post", "webhooks/", {"url": f"https://e.org/{n}"}).status_code == 201
    again = call("Rosa", "post", "webhooks/", {"url": "https://e.org/0"})
    assert again.status_code == 409 and f"You have {MOST}" in again.json()["detail"]
    hook = Webhook.objects.all()[0]
    for _ in range(TESTS.most):
        TESTS.count(str(toy.users["Rosa"].pk))
    refused = call("Rosa", "post", f"webhooks/{hook.pk}/test/")
    assert refused.status_code == 429 and 3500 < int(refused["Retry-After"]) <= TESTS.seconds
    assert not Delivery.objects.exists()


def test_one_chooses_of_what_one_is_told_and_it_holds(call: Call, toy: Toy) -> None:
    rosa = toy.users["Rosa"]
    Webhook.objects.create(user=rosa, url="https://hooks.example.org/")
    before = call("Rosa", "get", "notices/").json()
    assert before["email"] == rosa.email
    assert all(one["by_mail"] and one["by_webhook"] for one in before["events"])
    answer = call("Rosa", "patch", "notices/", {"by_mail": ["scored"]})
    told = {one["event"]: (one["by_mail"], one["by_webhook"]) for one in answer.json()["events"]}
    assert told["scored"] == (True, True) and told["refused"] == (False, True)
    assert call("Rosa", "get", "notices/").json() == answer.json()
    [refused] = notices.tell([rosa], "refused", "No", "It cannot be used.")
    assert refused.hook is not None, "by the webhook, and no mail"
    assert call("Rosa", "patch", "notices/", {}).json() == answer.json(), "the rest stays"
    for wrong in ({"by_mail": ["lunch"]}, {"by_mail": "scored"}, {"by_webhook": [None]}):
        assert call("Rosa", "patch", "notices/", wrong).status_code == 400
    assert call("Rosa", "patch", "notices/", {}, scope=SCOPE.UPLOAD).status_code == 403


def test_owners_give_roles_and_remove_and_members_leave(call: Call, toy: Toy, nils: User) -> None:
    team = toy.teams["Patterns"]
    path = f"teams/{team.slug}/members/"
    assert call(nils, "patch", f"{path}rosa/", {"role": "member"}).status_code == 403
    assert call(nils, "delete", f"{path}rosa/").status_code == 403
    assert call("Tim", "patch", f"{path}nils/", {"role": "owner"}).status_code == 404
    for answer in (
        call("Rosa", "patch", f"{path}rosa/", {"role": "member"}),
        call("Rosa", "delete", f"{path}rosa/"),
    ):
        assert answer.status_code == 409 and "Make somebody else" in answer.json()["detail"]
    assert call("Rosa", "patch", f"{path}nils/", {"role": "king"}).status_code == 400
    assert call("Rosa", "patch", f"{path}nobody/", {"role": "owner"}).status_code == 404
    assert call("Rosa", "patch", f"{path}nils/", {"role": "owner"}, SCOPE.READ).status_code == 403
    told = call("Rosa", "patch", f"{path}nils/", {"role": "owner"}).json()
    assert {"name": "nils", "role": "owner"} in told["members"]
    assert call(nils, "delete", f"{path}nils/").status_code == 204
    assert call("Rosa", "delete", f"{path}nils/").status_code == 404, "who left is no member"
    assert set(team.members.all()) == {toy.users["Rosa"]}
    assert Audit.objects.filter(what="leave team", before="nils", why="By the API.").exists()
    Submission.objects.create(
        team=team, track=toy.track, user=toy.users["Rosa"], status="confirmed", file_size=1
    )
    refused = call("Rosa", "delete", f"{path}rosa/")
    assert refused.status_code == 409 and "has runs under way" in refused.json()["detail"]


def test_an_invitation_is_made_told_once_and_taken_back(call: Call, toy: Toy, nils: User) -> None:
    path = f"teams/{toy.teams['Patterns'].slug}/invitations/"
    assert call("Tim", "post", path).status_code == 404
    assert call(nils, "post", path, scope=SCOPE.UPLOAD).status_code == 403
    made = call(nils, "post", path)
    assert made.status_code == 201
    [listed] = call("Rosa", "get", path).json()["invitations"]
    assert listed["made_by"] == "nils" and listed["uses_left"] == 1
    code = Invitation.objects.get().code
    assert code in made.json()["url"] and code not in json.dumps(listed)
    page = Client()
    page.force_login(toy.users["Tim"])
    assert page.get(made.json()["url"]).status_code == 200
    assert call("Tim", "delete", f"{path}{listed['id']}/").status_code == 404
    assert call("Rosa", "delete", f"{path}{listed['id']}/").status_code == 204
    assert page.get(made.json()["url"]).status_code == 410
    assert call("Rosa", "get", path).json()["invitations"] == []


def test_documents_are_listed_in_pages_and_found_by_their_words(
    call: Call, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list(
        Document.objects.filter(corpus=toy.corpus).order_by("pk").values_list("key", flat=1)
    )
    listed, address = [], reverse("api-document-list", args=["toy"]) + "?limit=2"
    while address:
        told = Client().get(address).json()
        assert told["count"] == len(keys) and len(told["results"]) <= 2
        listed += told["results"]
        address = told["next"]
    assert [one["id"] for one in listed] == keys
    assert Client().get(reverse("api-document-list", args=["toy"]) + "?page=2").status_code == 400
    row = Document.objects.get(corpus=toy.corpus, key=keys[0])
    assert row.text.startswith(listed[0]["begins"])
    with CaptureQueriesContext(connection) as queries:
        Client().get(reverse("api-document-list", args=["toy"]))
    asked = [one["sql"] for one in queries if 'FROM "corpus_document"' in one["sql"]]
    column = '"corpus_document"."text"'  # as a column, not in LEFT("text", 200)
    assert asked and not any(f'{column}, "' in one or f"{column} FROM" in one for one in asked)
    assert Client().get(listed[0]["link"]).json()["text"] == row.text
    word = max(row.text.split(), key=len).strip(".,")
    with_it = {one.key for one in Document.objects.filter(corpus=toy.corpus) if word in one.text}
    address = reverse("api-document-list", args=["toy"])
    found = Client().get(address, {"q": word}).json()
    assert {one["id"] for one in found["results"]} == with_it and found["count"] == len(with_it)
    assert Client().get(address, {"q": "nowordofanytext"}).json()["results"] == []
    monkeypatch.setattr(documents, "MOST_FOUND", 1)
    texts = [set(one.text.split()) for one in Document.objects.filter(corpus=toy.corpus)]
    common = max(set.union(*texts), key=lambda word: sum(word in text for text in texts))
    assert sum(common in text for text in texts) > 1
    many = Client().get(address, {"q": common}).json()
    assert many["count"] is None and len(many["results"]) == 1, "more have it than are listed"
    for wrong in ({"q": "a" * 201}, {"limit": "0"}, {"after": "x"}):
        assert Client().get(address, wrong).status_code == 400
    answer = Client().get(address)
    known = Client().get(address, headers={"If-None-Match": answer["ETag"]})
    assert known.status_code == 304
    toy.corpus.may_be_downloaded = False
    toy.corpus.save()
    assert Client().get(address).status_code == 404
    assert call("Admin", "get", "tracks/toy/search/").status_code == 200
