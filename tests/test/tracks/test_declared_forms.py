"""Declared forms: from YAML on the desk to questions, and to a board of win rates and strengths."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client

from annotation.budget.check_books import check_books
from annotation.interfaces.registry import interface_by_name
from annotation.interfaces.shared.statements import side_by_side
from annotation.models import Question, Response
from annotation.workers import teach
from estimators.preferences import bradley_terry
from kbpo import clock
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.evaluation.leaderboard import read_board
from kbpo.evaluation.run import score_track
from kbpo.evaluation.score import pairwise_strengths
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.money.spend import balance
from kbpo.sampling.models import SampleBatch
from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.sampling.plan import recompute_distributions
from kbpo.scores.bring import CannotTake, Name, store_scores
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import store_submission
from kbpo.tracks.base import Duels
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of, track_class
from kbpo.tracks.texts.declared import CannotDeclare, store_form
from kbpo.tracks.texts.judgments import CannotImport, text_track_kind
from kbpo.tracks.texts.models import DeclaredForm
from kbpo.tracks.texts.store import load_inputs
from kbpo.web.desk.forms import EXAMPLE
from rehearsal.browser import Browser, Page
from tests.test.tracks.test_toy_kind import PASSWORD, call, researcher, upload

BETTER = """
name: better
title: Which is better?
price: 0.10
seconds: 45
second_share: 0
questions:
  - {name: preferred, kind: preference, ask: "Which text is better?", label: Preferred}
  - {name: why, kind: text, ask: "Why?", required: no}
tutorial:
  questions:
    - texts: [A good text., A bad text.]
      right: {preferred: 1}
      why: The first is good.
"""
INPUTS = tuple(f"article {number}" for number in range(14))
WORTH = {"bad": 0, "fair": 1, "good": 2}


def corpus_of(tmp_path: Path, **more: Any) -> Any:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key} | more) + "\n" for key in INPUTS))
    return load_inputs("Articles", path)


def outputs(word: str) -> list[str]:
    """What a system writes: texts of one worth, but for the first, which all write alike."""
    texts = [f"{key} {word}" for key in INPUTS]
    texts[0] = "the same fair"
    return [
        json.dumps({"input_id": key, "output": text})
        for key, text in zip(INPUTS, texts, strict=True)
    ]


def answer(page: Page) -> dict[str, list[str]]:
    """What somebody sends who knows which text is better, and why."""
    texts = page.text.split('<div class="doc plain"')[1:3]
    first, second = (
        next(worth for word, worth in WORTH.items() if f" {word}</div>" in text) for text in texts
    )
    place = "1" if first > second else "3" if first < second else "2"
    return {"preferred": [place], "why": ["It reads better."]}


def compare(url: str, name: str) -> int:
    """How many pairs an annotator compared through the pages, after the tutorial."""
    if not User.objects.filter(username=name).exists():
        User.objects.create_user(name, password=PASSWORD, is_annotator=True)
    browser, answers = Browser(url), 0
    login = browser.get("/login/").form()
    browser.submit(login, login.form_values() | {"username": [name], "password": [PASSWORD]})
    page = browser.get("/annotate/next/")
    if page.path == "/annotate/terms/":
        terms = page.form()
        browser.submit(terms, terms.form_values() | {"agree": ["1"]})
        begin = browser.get("/annotate/tutorial/form-better/")
        lesson = browser.submit(begin.form(), begin.form().form_values())
        form = lesson.form("answer")
        browser.submit(form, form.form_values() | {"preferred": ["1"]})
    page = browser.get("/annotate/next/")
    assert not page.has_form("answer") or "about 45\u00a0s" in page.text, "as it was declared"
    while page.status == 200 and page.has_form("answer"):
        form = page.form("answer")
        page = browser.submit(form, form.form_values() | answer(page))
        answers += 1
    return answers


@pytest.mark.soak
def test_a_preference_travels_from_yaml_on_the_desk_to_win_rates_and_strengths(
    transactional_db: None, live_server: Any, tmp_path: Path
) -> None:
    admin = User.objects.create_user("admin", password=PASSWORD, is_staff=True)
    desk = Client()
    desk.force_login(admin)
    bad = desk.post("/desk/forms/", {"text": BETTER.replace("price: 0.10", "price: much")})
    assert bad.status_code == 422 and not DeclaredForm.objects.exists()
    assert "Line 4 [schema.form] price: “much” is no price" in bad.content.decode()
    assert desk.post("/desk/forms/", {"text": BETTER}).status_code == 302
    for address in ("", "better/", "better/?preview"):
        assert desk.get(f"/desk/forms/{address}").status_code == 200
    corpus, url = corpus_of(tmp_path), live_server.url
    form = desk.get(f"/desk/tracks/new/?kind=form-better&corpus={corpus.pk}")
    assert "Preferred" in form.content.decode()
    track = open_track(
        create_track(
            corpus,
            "Pairs",
            kind="form-better",
            target_half_width=Decimal("0.100"),
            money=Money(budget=Decimal(90)),
        )
    )
    tokens = {word: researcher(word) for word in WORTH}
    first = upload(url, tokens["good"], "Good", outputs("good"), track.slug)
    waiting = Submission.objects.get(pk=first)
    assert waiting.status == "received" and "It waits for another system" in waiting.reason
    runs = {"good": first}
    for word in ("fair", "bad"):
        runs[word] = upload(url, tokens[word], word.title(), outputs(word), track.slug)
    call_command("tick", "--until-idle", verbosity=0)
    drawn: set[int] = set()
    for word, pk in runs.items():
        call(f"{url}/api/submissions/{pk}/confirm/", tokens[word], b"{}")
        call_command("tick", "--until-idle", verbosity=0)
        batches = set(SampleBatch.objects.values_list("pk", flat=True))
        assert drawn < batches, "what was drawn before stays when another system comes"
        drawn = batches
    for _ in range(12):
        if not compare(url, "ada"):
            break
        call_command("tick", "--until-idle", verbosity=0)
    assert set(Submission.objects.values_list("status", flat=True)) == {"scored"}
    pairs = {
        row.submission.name: row
        for row in read_board(track, distribution="instance", criterion="preferred").rows
    }
    n = len(INPUTS)
    truth = {"Good": (2 * n - 1.5) / (2 * n - 1), "Fair": 0.5, "Bad": 0.5 / (2 * n - 1)}
    assert list(pairs) == list(truth)
    for name, value in truth.items():
        figure = pairs[name].figures["mean"]
        told = round(value, 3)  # as all that an open track prints
        assert figure.low95 <= told <= figure.high95, (name, figure)
        assert Submission.objects.get(name=name).predictions.count() == 2 * n - 1
    assert [row.rank for row in pairs.values()] == [(1, 1), (2, 2), (3, 3)]
    close_track(track)
    track.refresh_from_db()
    score_track(track)
    shown = Browser(url).get(f"/tracks/{track.slug}/").text
    assert "Win rate" in shown
    assert "Strengths" in shown
    assert "Helped by" not in shown and "saved" not in shown, "nothing is guessed of pairs"
    told = call(f"{url}/api/tracks/pairs/board/", tokens["good"])
    assert told["strengths"]["why"].startswith("Some systems never lost")
    assert Response.objects.filter(criterion="why", value__text="It reads better.").exists()
    ratings = [one.value.get("ratings", {}) for one in Label.objects.all()]
    assert ratings and {frozenset(one) for one in ratings} == {frozenset({"preferred"})}
    texts = [question.payload["texts"] for question in Question.objects.all()]
    assert all(one != other for one, other in texts), "equal texts are a tie, and not asked"
    spent = balance(track=track, purpose_kind="submission")
    assert spent.spent == Decimal("0.10") * len(texts) and spent.open == 0
    assert check_books() == []
    mine = Client()
    mine.force_login(User.objects.get(username="of good"))
    explored = mine.get(f"/submissions/{first}/explore/?verdict=judged")
    said = [one.said[0].value for one in explored.context["rows"]]
    assert said and all(value == 1.0 for value in said), "what was said of its own text"
    for address in (f"/submissions/{first}/", "/tracks/pairs/about/", "/tracks/pairs/compare/"):
        assert Browser(url).get(address).status == 200
    with pytest.raises(CannotImport, match="compares pairs"):
        text_track_kind(track)
    with pytest.raises(CannotTake, match="asks which of two texts is better"):
        store_scores(track, Name("judge"), [(1, 0.5)], admin)
    scores = tmp_path / "scores.csv"
    scores.write_text("id,value\n1,0.5\n")
    with scores.open("rb") as file:
        refused = desk.post(f"/desk/tracks/{track.slug}/scores/", {"file": file, "name": "judge"})
    assert refused.status_code in (400, 422) and "none were stored" in refused.content.decode()
    shown = desk.get(f"/desk/tracks/{track.slug}/scores/").content.decode()
    assert "none are asked for" in shown and "Store the scores" not in shown
    program = Client(
        headers={"Authorization": f"Token {Token.create_with_secret(admin, 'judge')[1]}"}
    )
    asked = program.get(f"/api/tracks/{track.slug}/unscored/", {"name": "judge"})
    assert asked.status_code == 422 and "none are asked for" in asked.json()["detail"]
    assert program.get(f"/api/tracks/{track.slug}/judges/").json() == {"judges": []}


@pytest.mark.django_db
def test_strengths_are_told_where_every_system_loses_now_and_then(tmp_path: Path) -> None:
    class Kind:
        def pairwise_judgments(self, systems: list[int]) -> dict[str, Duels]:
            left, right = np.tile([[0, 0, 0, 1, 1, 2], [1, 1, 2, 2, 0, 0]], 2)[:, :inputs]
            outcome = np.tile([1, 0.5, 1, 1, 1, 1], 2)[:inputs]
            return {"preferred": Duels(left, right, outcome, np.arange(inputs))}

    inputs = 9
    few = pairwise_strengths(Kind(), [7, 8, 9])["preferred"]  # type: ignore[arg-type]
    assert few.rows == () and "from 10 judged inputs on" in few.why
    inputs = 12
    told = pairwise_strengths(Kind(), [7, 8, 9])["preferred"]  # type: ignore[arg-type]
    assert {row.system for row in told.rows} == {7, 8, 9}
    assert sum(row.strength or 0.0 for row in told.rows) == pytest.approx(0)
    assert all(row.low80 < row.strength < row.high80 for row in told.rows)  # type: ignore[operator]


def test_ranks_by_strength_are_held_apart_as_strictly_as_those_of_the_board() -> None:
    at = np.arange(60)
    left, right = np.tile([0, 0, 1], 20), np.tile([1, 2, 2], 20)
    outcome = np.where((at // 3) % np.take([3, 5, 4], at % 3) == 0, 0.0, 1.0)

    class Kind:
        def pairwise_judgments(self, systems: list[int]) -> dict[str, Duels]:
            return {"preferred": Duels(left, right, outcome, at)}

    told = pairwise_strengths(Kind(), [7, 8, 9])["preferred"].rows  # type: ignore[arg-type]
    assert [(row.best, row.worst) for row in told] == [(1, 2), (1, 2), (3, 3)]
    fitted = bradley_terry(left, right, outcome, cluster=at)
    loose = fitted.compare(rng=np.random.default_rng(1), confidence_level=0.8)[1]
    assert (loose.best.tolist(), loose.worst.tolist()) == ([1, 2, 3], [1, 2, 3])


@pytest.mark.django_db
def test_a_rating_a_choice_and_free_words_are_asked_for_by_one_form(tmp_path: Path) -> None:
    store_form(EXAMPLE.read_text())
    kind = track_class("form-helpfulness")
    assert [one.name for one in kind.measures.criteria] == ["helpful", "harmless"]
    assert (kind.measures.criteria[0].low, kind.measures.criteria[0].high) == (1.0, 5.0)
    corpus = corpus_of(tmp_path, question="who?", references=["somebody"])
    track = create_track(corpus, "Help", kind="form-helpfulness")
    assert track.criterion == "helpful" and track.workers_per_question == 1
    assert kind_of(track).asking[0].reward == Decimal("0.05")
    interface = interface_by_name("form-helpfulness")
    assert interface.title == "How helpful is it?"
    lesson = teach.tutorials()["form-helpfulness"]
    (right,) = [teach.right_answer(lesson, 1)]
    assert [one.value.get("value") for one in right] == [0.0, 1.0, None]
    asked = lesson.question(1)
    said = interface.parse(asked, {"helpful": ["4"], "harmless": ["1"], "why": [" "]})
    assert [(one.criterion, one.value["value"]) for one in said] == [
        ("helpful", 0.75),
        ("harmless", 1.0),
    ]
    explained = side_by_side(interface, asked, said, right)
    told = {line.words: (line.yours, line.right) for line in explained.lines}
    assert told == {
        "How helpful is the text? 4": (True, False),
        "How helpful is the text? 1": (False, True),
        "Could it do harm? No": (True, True),
    }, "of free words nothing is expected"
    said = interface.parse(asked, {"helpful": ["1"], "harmless": ["1"], "why": ["More."]})
    explained = side_by_side(interface, asked, said, right)
    assert [one.right for one in explained.lines if "More." in one.words] == [None]
    assert not explained.differing_lines
    with pytest.raises(CannotDeclare, match="There is a form helpfulness already"):
        store_form(EXAMPLE.read_text())


@pytest.mark.django_db
def test_pairs_that_come_later_cannot_be_drawn_by_the_design_of_the_publication(
    tmp_path: Path,
) -> None:
    store_form(BETTER)
    with pytest.raises(ValidationError, match="only the design poisson"):
        create_track(corpus_of(tmp_path), "Pairs", kind="form-better", design="iid")
    with pytest.raises(ValidationError, match="no kind of track form-none"):
        create_track(Corpus(), "None", kind="form-none")
    with pytest.raises(CannotDeclare, match="already"):
        store_form(BETTER)


def pairs_with_references(tmp_path: Path) -> tuple[Track, Team, User]:
    """An open track on which texts are compared, also with references, and a team with a member."""
    store_form(BETTER)
    corpus = corpus_of(tmp_path, references=["A fair text."])
    track = open_track(create_track(corpus, "Pairs", kind="form-better"))
    user = User.objects.create_user("rosa", is_researcher=True)
    team = Team.objects.create(name="Rosa", slug="rosa")
    team.members.add(user)
    return track, team, user


@pytest.mark.django_db
def test_with_references_the_first_system_waits_for_nobody(tmp_path: Path) -> None:
    track, team, user = pairs_with_references(tmp_path)
    lines = io.BytesIO("\n".join(outputs("good")).encode())
    row = store_submission(track, team, user, lines, name="Good", file_name="good.jsonl")
    call_command("tick", "--until-idle", verbosity=0)
    row.refresh_from_db()
    assert row.status == "planned" and row.counts["pairs"] == len(INPUTS)
    _hears_how_its_own_text_fared(row)
    admin = Client()
    admin.force_login(User.objects.create_user("admin", is_staff=True))
    page = admin.get(f"/desk/tracks/{track.slug}/judgments/").content.decode()
    assert "compares pairs of outputs" in page and "File of judgments" not in page


@pytest.mark.django_db
def test_a_run_counts_the_pairs_that_another_one_brings(tmp_path: Path) -> None:
    """Its explorer listed 26 of 14 pairs."""
    track, team, user = pairs_with_references(tmp_path)
    rows = []
    for word in ("good", "bad"):
        lines = io.BytesIO("\n".join(outputs(word)).encode())
        rows.append(store_submission(track, team, user, lines, name=word, file_name="a.jsonl"))
    call_command("tick", "--until-idle", verbosity=0)
    Submission.objects.update(status="confirmed", confirmed_at=clock.now())
    recompute_distributions(kind_of(track).find_affected_submissions(rows[1].pk))
    for row in rows:
        row.refresh_from_db()
        assert row.n_items == row.predictions.count() > len(INPUTS)


def _hears_how_its_own_text_fared(row: Submission) -> None:
    """Nothing; what its team reads of pairs has its own text first, and calls none right or
    wrong.
    """
    predictions = list(row.predictions.select_related("instance__target").order_by("line"))
    targets = [prediction.instance.target for prediction in predictions[:4]]
    values = (1.0, 0.0, 0.5)
    record_labels(
        NewLabel(
            target.pk, {"ratings": {"preferred": [value]}}, "crowd", "ratings", 1, f"q:{value}"
        )
        for target, value in zip(targets, values, strict=False)
    )
    kind = kind_of(row.track)
    pairs = kind.describe_predictions(row.pk, [one.pk for one in predictions[:4]], public=False)
    own_firsts = [not target.content["texts"][0].startswith("A fair") for target in targets]
    wins = [value if own else 1 - value for value, own in zip(values, own_firsts, strict=False)]
    words = {1.0: "its own chosen", 0.0: "the other chosen", 0.5: "neither ahead"}
    assert [pair.votes for pair in pairs] == [*(f"{words[win]}: 1 person" for win in wins), ""]
    assert [pair.said[0].value for pair in pairs] == [*wins, None]
    assert all(pair.right is None for pair in pairs)
    written = [json.loads(line)["output"] for line in outputs("good")[:4]]
    assert [pair.text.partition("\n")[0] for pair in pairs] == [
        f"Its own: {text}" for text in written
    ]
    assert all(pair.text.endswith("The other: A fair text.") for pair in pairs)
