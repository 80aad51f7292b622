"""A third kind of track, in this one file: are these texts questions? From an upload over HTTP to a
row on the board.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.core.management import call_command
from django.test import Client

from formats.messages import Report
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.evaluation.leaderboard import read_board
from kbpo.instances.models import Label, Target
from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.tracks.base import Asking, Unusable, Words
from kbpo.tracks.measures import Criterion
from kbpo.tracks.models import Track
from kbpo.tracks.registry import KINDS
from kbpo.tracks.texts.store import Claim, store_text_claims
from kbpo.tracks.texts.track import TextTrack, rating_measures
from rehearsal.browser import Browser, Page

PASSWORD = "is this a question"
TEXTS = ("Who is it?", "It rains.", "Why not?", "Go on", "Is it late?", "No.")
RIGHT = 1 / 2
"""Share of the texts that are questions."""


class QuestionsTrack(TextTrack):
    """Systems write questions, a text a line; people say whether each is one."""

    kind: ClassVar[str] = "questions"
    target_kind: ClassVar[str] = "text"
    measures: ClassVar = rating_measures(Criterion("question", "Is a question", single="mean"))
    metrics: ClassVar = ()
    second_share: ClassVar = Decimal(0)
    asking: ClassVar = (Asking("form", Decimal("0.03"), 5, people=2),)
    words: ClassVar = Words(
        item="text",
        items="texts",
        system="a list of questions",
        file="List of questions",
        offer="Upload questions. People say whether they are.",
        promise="Each text is judged by itself.",
        description="Are these questions?",
    )

    def ingest_file(
        self, submission_id: int, path: str, report: Report, progress: Callable[[float], None]
    ) -> dict[str, Any]:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        texts = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
        claims = (Claim(text, number, {"text": text}) for number, text in texts)
        stored = store_text_claims(submission_id, self.corpus, self.target_kind, claims)
        if not stored:
            raise Unusable("The file has no text.")
        n = len(lines)
        return {"texts": stored, "text_lines": n, "set_aside": 0, "lines": n}

    def payloads(self, targets: Sequence[Target]) -> Mapping[int, dict[str, Any]]:
        yes, no = ({"label": "Yes", "value": 1.0}, {"label": "No", "value": 0.0})
        ask = {"name": "question", "ask": "Is this text a question?", "options": [yes, no]}
        return {
            one.pk: {"title": "A text", "text": one.content["text"], "fields": [ask]}
            for one in targets
            if one.content
        }


@pytest.fixture
def track(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Track:
    """An open track of the kind, on a corpus that has no documents."""
    monkeypatch.setitem(KINDS, "questions", f"{__name__}.QuestionsTrack")
    corpus = Corpus.objects.create(name="Nothing", slug="nothing", schema={})
    money = Money(budget=Decimal(10))
    return open_track(create_track(corpus, "Questions", kind="questions", money=money))


def researcher(team: str) -> str:
    """The token of the researcher of a new team."""
    user = User.objects.create_user(f"of {team}", password=PASSWORD, is_researcher=True)
    Team.objects.create(name=team, slug=team).members.add(user)
    return Token.create_with_secret(user, "toy")[1]


def call(url: str, token: str, body: bytes | None = None, kind: str = "application/json") -> Any:
    """What the API answers."""
    request = urllib.request.Request(url, body, {"Authorization": f"Token {token}"})
    request.add_header("Content-Type", kind)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def upload(url: str, token: str, name: str, texts: Sequence[str], track: str = "questions") -> int:
    """The number of a submission that is read and planned."""
    said = {"track": track, "name": name}
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in said.items()
    ]
    parts.append('--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n')
    body = ("".join(parts) + "\n".join(texts) + "\r\n--x--\r\n").encode()
    found = call(f"{url}/api/submissions/", token, body, "multipart/form-data; boundary=x")
    call_command("tick", "--until-idle", verbosity=0)
    return int(found["id"])


def judge(url: str, name: str) -> int:
    """How many questions an annotator answered through the pages, all of them right."""
    if not User.objects.filter(username=name).exists():
        User.objects.create_user(name, password=PASSWORD, is_annotator=True)
    browser, answers = Browser(url), 0
    login = browser.get("/login/").form()
    browser.submit(login, login.form_values() | {"username": [name], "password": [PASSWORD]})
    page = browser.get("/annotate/next/")
    while page.status == 200 and page.path != "/annotate/":
        page, answered = answer(browser, page)
        answers += answered
    return answers


def answer(browser: Browser, page: Page) -> tuple[Page, bool]:
    """The next page after an answer, or after agreeing to the terms."""
    if not page.has_form("answer"):
        terms = page.form()
        browser.submit(terms, terms.form_values() | {"agree": ["1"]})
        return browser.get("/annotate/next/"), False
    form = page.form("answer")
    is_question = "?</div>" in page.text
    return browser.submit(
        form, form.form_values() | {"question": ["1" if is_question else "2"]}
    ), True


def test_a_text_travels_from_an_upload_to_a_row_on_the_board(
    track: Track, live_server: Any
) -> None:
    first, second = researcher("one"), researcher("two")
    pk = upload(live_server.url, first, "Half", TEXTS)
    planned = call(f"{live_server.url}/api/submissions/{pk}/", first)
    assert planned["status"] == "planned" and planned["counts"]["texts"] == len(TEXTS)
    call(f"{live_server.url}/api/submissions/{pk}/confirm/", first, b"{}")
    call_command("tick", "--until-idle", verbosity=0)
    while call(f"{live_server.url}/api/submissions/{pk}/", first)["status"] != "scored":
        assert judge(live_server.url, "ada") == judge(live_server.url, "bo") > 0
        call_command("tick", "--until-idle", verbosity=0)
    assert {len(one.value["ratings"]["question"]) for one in Label.objects.all()} == {2}

    other = upload(live_server.url, second, "All", TEXTS[::2])  # what it says is judged already
    call(f"{live_server.url}/api/submissions/{other}/confirm/", second, b"{}")
    call_command("tick", "--until-idle", verbosity=0)

    shown = read_board(track, distribution="instance", criterion="question")
    half = next(row.figures["mean"] for row in shown.rows if row.submission.name == "Half")
    assert half.low95 <= half.low80 <= RIGHT <= half.high80 <= half.high95
    assert [row.submission.name for row in shown.rows] == ["All", "Half"]
    page = Browser(live_server.url).get("/tracks/questions/").text
    assert "Is a question" in page and "texts judged one by one, each by 2 people" in " ".join(
        page.split()
    )
    assert "F1" not in page and "recall" not in page.lower() and "relation" not in page.lower()
    told = call(f"{live_server.url}/api/tracks/questions/board/", first)["systems"]
    assert [one["mean"]["value"] for one in told] == [1.0, half.value]
    rows = urllib.request.urlopen(f"{live_server.url}/tracks/questions/board.csv").read().decode()
    head = "team,system,rank_best,rank_worst,labels,answers,agreement,judged_twice,difference"
    assert rows.splitlines()[0].startswith(head)
    mine = Client()
    mine.force_login(User.objects.get(username="of one"))
    hidden = mine.get(f"/submissions/{pk}/explore/?verdict=judged")
    assert not hidden.context["rows"], "judgments are hidden until the track is closed"
    close_track(track)
    explored = mine.get(f"/submissions/{pk}/explore/?verdict=judged")
    judged = [one.text for one in explored.context["rows"]]
    assert judged and set(judged) <= set(TEXTS) and "people" in explored.content.decode()
    listed = call(f"{live_server.url}/api/submissions/{pk}/predictions/?sort=sure", first)
    assert listed["count"] == len(listed["results"]) == len(TEXTS)
    for asked in ("q=why", "document=d1", "entity=Anna", "relation=x"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            call(f"{live_server.url}/api/submissions/{pk}/predictions/?{asked}", first)
        told = json.load(refused.value)
        assert (
            refused.value.code == 400 and "Texts of this track are not chosen by" in told["detail"]
        )
    page = mine.get(f"/submissions/{pk}/explore/?q=why")
    assert page.status_code == 400 and "are not chosen by" in page.content.decode()
    for verdict in ("right", "wrong", "undecided"):  # of what is rated nothing is
        for form in ("", "&format=csv", "&format=jsonl"):
            answer = mine.get(f"/submissions/{pk}/explore/?verdict={verdict}{form}")
            assert answer.status_code == 400 and verdict in answer.content.decode(), form
    addresses = (f"/submissions/{pk}/", "/tracks/questions/compare/")
    assert all(Browser(live_server.url).get(address).status == 200 for address in addresses)
