"""Experts on a track of answers, over HTTP: a round of checks from the desk's button to the
corrected number on the board, and a dispute from the page where a judgment is seen to what its team
is told.
"""

from __future__ import annotations

import csv
import io
import json
import random
import urllib.error
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from annotation.models import Question, Response
from kbpo.accounts.models import Audit, Delivery, Token, User, Webhook
from kbpo.corpus.models import Corpus
from kbpo.evaluation.run import score_track
from kbpo.instances.models import Label
from kbpo.sampling.models import ExpertCheck, ExpertRound
from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.texts.store import load_inputs
from rehearsal.browser import Browser, Page
from rehearsal.opinions import PassageVerdict, correctness_answer_fields
from scoring.report import Figure
from tests.reports import figure_of, figures_of
from tests.test.tracks.test_generation import Reader, rate
from tests.test.tracks.test_toy_kind import PASSWORD, call, researcher, upload

TOWNS = tuple(f"Town{at}" for at in range(20))
LIED = TOWNS[::2]
"""Of these a passage says what is not so, and only an expert knows"""
WHY = {"why": ["To know how often people are taken in."]}


class Expert(Reader):
    """Knows which passages lie."""

    def check(self, question: str, answer: str, passage: str) -> PassageVerdict:
        said = super().check(question, answer, passage)
        wrong = any(f"{town} " in f"{question} " for town in LIED) and said.says == "correct"
        return PassageVerdict("incorrect", said.words) if wrong else said


class Played:
    """A track of answers on which people have judged all of one run."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        path = folder / "inputs.jsonl"
        inputs = [
            {
                "input_id": town,
                "question": f"what is the capital of {town} county",
                "passages": ["This one says nothing.", f"It is {town}. Nobody doubts it."],
            }
            for town in TOWNS
        ]
        path.write_text("".join(json.dumps(one) + "\n" for one in inputs))
        corpus = load_inputs("Questions", path)
        money = Money(budget=Decimal(90))
        self.track: Track = open_track(create_track(corpus, "Answers", kind="answers", money=money))
        self.token = researcher("answerers")
        self.owner = User.objects.get(username="of answerers")
        self.run = upload(url, self.token, "Mine", self.lines(TOWNS), self.track.slug)
        call(f"{url}/api/submissions/{self.run}/confirm/", self.token, b"{}")
        call_command("tick", "--until-idle", verbosity=0)
        while rate(url, "ada", "bo"):
            call_command("tick", "--until-idle", verbosity=0)
        User.objects.create_user("root", password=PASSWORD, is_staff=True)

    @staticmethod
    def lines(towns: tuple[str, ...]) -> list[str]:
        return [json.dumps({"input_id": town, "output": town}) for town in towns]

    def as_user(self, name: str) -> Browser:
        browser = Browser(self.url)
        login = browser.get("/login/").form()
        browser.submit(login, login.form_values() | {"username": [name], "password": [PASSWORD]})
        return browser

    def row(self) -> Submission:
        return Submission.objects.get(pk=self.run)

    def mean(self, method: str, criterion: str = "any_correct") -> Figure:
        latest = self.track.evaluations.latest("number")
        of = {"quantity": "mean", "method": method, "criterion": criterion}
        return figure_of(latest, self.row(), **of)


@pytest.fixture
def played(
    transactional_db: None,
    live_server: Any,
    tmp_path: Path,
    never_resting: None,
    keep: Callable[..., Played],
) -> Played:
    return keep("answers that people have judged", lambda: Played(live_server.url, tmp_path))


def send(browser: Browser, page: Page, field: str, **fields: list[str]) -> Page:
    """The page after the form that has this field."""
    [form] = [form for form in page.forms if any(name == field for name, _, _ in form.fields)]
    return browser.submit(form, form.form_values() | fields)


def answered(browser: Browser, page: Page) -> Page:
    """The page after an expert's answer to the one that is shown."""
    form = page.form("answer")
    fields = correctness_answer_fields(page, form, Expert(), False, random.Random(0))
    return browser.submit(form, form.form_values() | fields)


@pytest.mark.soak
def test_a_round_goes_from_the_desk_over_the_experts_page_to_the_board(played: Played) -> None:
    root, slug = played.as_user("root"), played.track.slug
    desk = root.get(f"/desk/tracks/{slug}/experts/")
    assert desk.status == 200 and "relation" not in desk.text and "Precision" not in desk.text
    assert ">Experts<" in root.get(f"/desk/tracks/{slug}/").text
    for budget, why, sentence in (
        ("0", WHY, "from 1 to"),
        ("x", WHY, "from 1 to"),
        ("99", {"why": [" "]}, "give a reason"),
    ):
        page = send(root, desk, "budget", verb=["draw"], budget=[budget], **why)
        assert page.status == 409 and sentence in page.text
    send(root, desk, "budget", verb=["draw"], budget=["99"], **WHY)
    rounds = ExpertRound.objects.all()
    assert rounds.get().status == "asked" and not ExpertCheck.objects.exists()
    call_command("tick", "--until-idle", verbosity=0)
    n = ExpertCheck.objects.filter(kind="check", status="open").count()
    judged = Label.objects.exclude(value={}).values("target").distinct().count()
    assert n == judged >= 10, "all of it has a chance of 1"
    before = played.mean("centred")
    assert before.value == pytest.approx(1.0, abs=0.02), "people believe what is written"

    page = root.get(f"/annotate/expert/{slug}/")
    bad = root.submit(
        page.form("answer"), page.form("answer").form_values() | {"plausible": ["maybe"]}
    )
    assert bad.status == 422 and "say whether the answer is plausible" in bad.text
    for word in ("Mine", "answerers", "votes", "ada"):
        assert word not in page.text, "who said it, and what people made of it"
    page = root.get(f"/annotate/expert/{slug}/")
    for _ in range(n):
        page = answered(root, page)
    assert "No judgment of this track is waiting for an expert." in page.text
    labels = Label.objects.count()
    call_command("tick", "--until-idle", verbosity=0)
    assert Label.objects.count() == labels and rounds.get().status == "ended"

    after, corrected = played.mean("centred"), played.mean("expert")
    assert after.value == before.value
    asked = set(Label.objects.values_list("target__content__input", flat=True))
    true = len(asked - set(LIED)) / len(asked)
    assert corrected.value == pytest.approx(true, abs=0.06) and corrected.n_checked == n
    board = Browser(played.url).get(f"/tracks/{slug}/").text
    assert "corrected" in board and f"Experts checked {n} judgments, drawn at random." in board
    told = call(f"{played.url}/api/tracks/{slug}/board/", played.token)["systems"][0]
    assert told["mean_expert"]["value"] == pytest.approx(corrected.value)
    assert told["judges"]["checked"] == n
    text = Browser(played.url).get(f"/tracks/{slug}/board.csv").text
    [line] = csv.DictReader(io.StringIO(text))
    assert float(line["mean_expert_value"]) == pytest.approx(corrected.value)
    mine = played.as_user("of answerers").get(f"/submissions/{played.run}/").text
    assert f"Experts checked {n} of these judgments, chosen at random. Corrected" in " ".join(
        mine.split()
    )
    assert "Corrected “Some passage shows it”" in " ".join(mine.split())
    assert "facts that some system predicts" not in mine
    desk = root.get(f"/desk/tracks/{slug}/experts/")
    assert "Some passage shows it: crowd and corrected" in desk.text
    assert "of all judgments: the expert gave the same answer" in desk.text
    assert "There is no judgment that was not checked yet." in _drawn_again(root, desk, played)


def _drawn_again(root: Browser, desk: Page, played: Played) -> str:
    send(root, desk, "budget", verb=["draw"], budget=["5"], **WHY)
    call_command("tick", "--until-idle", verbosity=0)
    return root.get(f"/desk/tracks/{played.track.slug}/experts/").text


@pytest.mark.soak
def test_a_dispute_is_answered_blind_told_to_its_team_and_moves_no_score(played: Played) -> None:
    slug = played.track.slug
    close_track(played.track)
    User.objects.filter(pk=played.owner.pk).update(email="mine@example.org")
    Webhook.objects.create(user=played.owner, url="https://mine.example/")
    lied = Question.objects.filter(status="settled", payload__text__in=LIED).order_by("pk")[0]
    [prediction] = played.row().predictions.filter(instance__target=lied.target_id)
    owner, root = played.as_user("of answerers"), played.as_user("root")
    seen = f"/submissions/{played.run}/explore/?p={prediction.pk}"
    page = owner.get(seen)
    assert "I think this judgment is wrong" in page.text
    asked = lied.payload
    assert asked["question"] in page.text and "Passage 1</summary>" in page.text
    assert "Slices" not in page.text, "scores of answers are not cut"
    Corpus.objects.update(may_be_downloaded=False)
    assert "Passage 1</summary>" not in owner.get(seen).text, "the texts are not for everybody"
    Corpus.objects.update(may_be_downloaded=True)
    form = next(form for form in page.forms if form.action.endswith("/dispute/"))
    short = owner.submit(form, form.form_values() | {"note": ["No."]})
    assert "in 10 characters or more" in short.text and not ExpertCheck.objects.exists()
    before = played.mean("centred")
    told = owner.submit(
        form, form.form_values() | {"note": ["The passage was made up by somebody."]}
    )
    assert "An expert will judge it again" in told.text and "You dispute this judgment" in told.text
    row = ExpertCheck.objects.get()
    assert (row.kind, row.interface) == ("dispute", "answer_correctness")

    address = f"{played.url}/api/submissions/{played.run}/predictions/{prediction.pk}/dispute/"
    assert _refused(address, played.token) == 409, "one is open"
    researcher("others")
    stranger = Token.create_with_secret(User.objects.get(username="of others"), "x")[1]
    assert _refused(address, stranger) == 404
    assert "I think this judgment" not in played.as_user("of others").get(seen).text

    queue = root.get(f"/desk/tracks/{slug}/experts/")
    assert f"“{lied.payload['text']}”" in queue.text and "made up by somebody" in queue.text
    assert "pairs" not in queue.text and "names" not in queue.text.lower().replace("username", "")
    asked = root.get(f"/annotate/expert/{slug}/")
    assert "made up by somebody" not in asked.text and "answerers" not in asked.text
    trail = answered(root, asked)
    assert "the expert disagrees" in trail.text and "Some passage shows it" in trail.text
    Response.objects.filter(criterion="any_correct").update(criterion="relation")
    named = root.get(trail.path)
    assert named.status == 200 and "the expert disagrees" in named.text, "as a form may name it"
    Response.objects.filter(criterion="relation").update(criterion="any_correct")
    row.refresh_from_db()
    assert row.agrees is False and row.value is not None
    assert Audit.objects.filter(what="adjudicate", after="disagrees").count() == 1
    assert "disagrees" in owner.get(seen).text
    told = Delivery.objects.filter(event="dispute")
    mails = told.filter(address="mine@example.org")
    assert any("An expert disagrees" in row.body["text"] for row in mails)
    assert told.exclude(hook=None).count() == 1
    labels, ratings = Label.objects.count(), Response.objects.count()
    score_track(played.track)
    assert (Label.objects.count(), Response.objects.count()) == (labels, ratings)
    assert played.mean("centred").value == before.value
    assert not figures_of(played.track.evaluations.latest("number"), method="expert")


def _refused(address: str, token: str) -> int:
    body = json.dumps({"note": "It says what nobody ever wrote."}).encode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(address, token, body)
    return refused.value.code
