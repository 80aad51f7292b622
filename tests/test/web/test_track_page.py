"""A track's public page, its baseline, and the limit of runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from annotation.interfaces.registry import interface_by_name
from annotation.models import Question
from annotation.questions import ask
from formats.messages import Report
from formats.schema import load_schema, words_as_yaml
from kbpo.accounts.models import Audit
from kbpo.corpus.models import Corpus, Mention
from kbpo.money.models import Price
from kbpo.money.spend import balance
from kbpo.releases.models import Release
from kbpo.sampling import draw
from kbpo.sampling.confirm import CannotConfirm, confirm_plan
from kbpo.sampling.plan import make_plan as plan_of
from kbpo.submissions.limits import runs_left
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.models import Input
from kbpo.web.desk import describe
from kbpo.web.judging.lessons import first_example, load_examples
from tests.conftest import Toy
from tests.test.web.scored import make_board

pytestmark = pytest.mark.django_db
AsUser = Callable[[str], Client]


def page(client: Client, slug: str = "toy", **query: str) -> str:
    answer = client.get(reverse("track", args=[slug]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_stranger_reads_what_the_track_is_and_how_to_begin(client: Client, toy: Toy) -> None:
    toy.track.description = "Who is related to whom"
    toy.track.who_pays = "The track pays up to $15 a run"
    toy.track.closes_on = "2031-01-31"
    toy.track.runs_a_week = 3
    toy.track.save()
    toy.corpus.licence = "CC BY-SA 4.0"
    toy.corpus.save()
    text = page(client)
    for words in ("Who is related to whom", "$15 a run", "31 January 2031", "3 runs a week"):
        assert words in text
    assert "CC BY-SA 4.0" in text and reverse("api-documents", args=["toy"]) in text
    assert "no description yet" not in text
    told = client.get(reverse("api-track", args=["toy"])).json()
    assert (told["who_pays"], told["closes_on"]) == ("The track pays up to $15 a run", "2031-01-31")
    assert (told["runs_a_week"], told["runs_in_all"]) == (3, None)
    assert told["corpus"]["licence"] == "CC BY-SA 4.0"
    assert client.get(told["corpus"]["links"]["baseline"]).status_code == 200


def test_the_best_systems_stand_as_on_the_board(client: Client, toy: Toy) -> None:
    make_board(toy, 5)
    text = page(client)
    assert "Team 4 run 4" in text and "Team 0 run 0" not in text and "5 systems" in text


def test_a_baseline_stands_under_the_best_systems_once(client: Client, toy: Toy) -> None:
    def rows() -> list[str]:
        table = page(client).split('class="best"')[1].split("</table>")[0]
        return [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in table.split("<tr>")[2:]]

    make_board(toy, 5)
    assert len(rows()) == 3 and not any("baseline" in row for row in rows())
    Submission.objects.filter(name="run 0").update(role="baseline")
    assert len(rows()) == 4 and "Team 0 run 0 baseline" in rows()[3]
    assert rows()[3].endswith("20.0 18.0–22.0")
    Submission.objects.filter(name="run 4").update(role="baseline")
    assert ["baseline" in row for row in rows()] == [True, False, False]


def test_admins_see_how_everybody_will_see_a_draft(as_user: AsUser, toy: Toy) -> None:
    Track.objects.update(status="draft")
    toy.track.refresh_from_db()
    admin, seen = as_user("Admin"), reverse("track", args=["toy"])
    for client in (as_user("Rosa"), Client()):
        assert client.get(seen).status_code == 404
    assert (
        f'href="{seen}">Preview' in admin.get(reverse("desk-track", args=["toy"])).content.decode()
    )
    edit = reverse("desk-track-describe", args=["toy"])
    told = admin.post(edit, terms_of(toy.track) | {"track-name": "Toy"}, follow=True)
    assert (
        told.redirect_chain == [(seen, 302)] and "until the track is open" in told.content.decode()
    )
    page = told.content.decode()
    assert "Only admins see this page" in page
    assert "is a draft: it accepts runs once" in page and "handed in" not in page


def test_a_closed_track_says_so_and_asks_for_no_upload(client: Client, toy: Toy) -> None:
    asks = ("see the price", "Take part", "A team may confirm", "Best so far")
    assert all(words in page(client) for words in asks)
    toy.track.status, toy.track.closed_at = "closed", timezone.now()
    toy.track.save()
    text = page(client)
    assert not any(words in text for words in asks) and "See the final board" in text
    Release.objects.create(track=toy.track, number=1, status="made", made_at=timezone.now(), size=9)
    text = page(client)
    assert "Download the release" in text and "See the final board" not in text
    footers = [text, client.get(reverse("board", args=["toy"])).content.decode()]
    link = f'<a href="{reverse("release", args=["toy", 1])}">Data release</a>'
    assert all(link in shown.split("<footer")[1] for shown in footers)
    assert "Data release" not in client.get(reverse("methods")).content.decode()
    assert f"until {timezone.now():%-d %B %Y}" in text


def test_texts_that_may_not_be_downloaded_are_not(client: Client, toy: Toy) -> None:
    toy.corpus.may_be_downloaded = False
    toy.corpus.save()
    assert reverse("api-documents", args=["toy"]) not in page(client)
    for name in ("api-documents", "api-mention-types"):
        assert client.get(reverse(name, args=["toy"])).status_code == 404


def test_the_baseline_is_run_and_uploaded_by_a_stranger(
    client: Client, toy: Toy, tmp_path: Path, draft: Callable[..., Submission]
) -> None:
    Mention.objects.bulk_create(
        Mention(document=toy.documents["d1"], begin=begin, end=end, type=kind)
        for (begin, end), kind in [
            (toy.span("d1", "Mara Lindt"), "PER"),
            (toy.span("d1", "Nordwerk"), "ORG"),
            (toy.span("d1", "Nordwerk", 1), "ORG"),
            (toy.span("d1", "Bergen"), "GPE"),
        ]
    )
    files = {}
    for name in ("api-documents", "api-schema-of-track", "api-mention-types", "baseline"):
        answer = client.get(reverse(name, args=["toy"]))
        body = answer.getvalue() if answer.streaming else answer.content
        files[name] = tmp_path / name
        files[name].write_bytes(body)
    names = ("baseline", "api-documents", "api-schema-of-track", "api-mention-types")
    ran = subprocess.run(
        [sys.executable, *(str(files[name]) for name in names)],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={"PATH": ""},
    )
    claims = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {"per:organizations_founded", "org:place_of_headquarters"} <= {
        claim["predicate"] for claim in claims
    }
    submission = draft(body=ran.stdout)
    assert submission.status == "planned" and submission.counts["errors"] == 0
    assert submission.counts["relations"] == len(claims)


def test_a_team_confirms_no_more_runs_than_the_track_allows(
    toy: Toy, draft: Callable[..., Submission]
) -> None:
    team, rosa = toy.teams["Patterns"], toy.users["Rosa"]
    assert runs_left(toy.track, team) is None
    toy.track.runs_a_week, toy.track.runs_in_all = 1, 2
    toy.track.save()
    claims = [("d1", "Mara Lindt", "per:organizations_founded", "Nordwerk")]
    first, second = draft(claims, name="run 1"), draft(name="run 2")
    confirm_plan(first, rosa)
    assert runs_left(toy.track, team) == 0
    with pytest.raises(CannotConfirm, match="1 run a week and 2 in all"):
        confirm_plan(second, rosa)
    assert Submission.objects.get(pk=second.pk).status == "planned", "the draft is kept"
    Submission.objects.filter(pk=first.pk).update(confirmed_at=timezone.now() - timedelta(days=8))
    confirm_plan(second, rosa)
    assert runs_left(toy.track, team) == 0
    assert runs_left(toy.track, toy.teams["Neural"]) == 1


def _words(track: Track) -> str:
    """As a browser sends them."""
    return words_as_yaml(track.corpus.schema).replace("\n", "\r\n")


def terms_of(track: Track) -> dict[str, str]:
    """What the form of a track's terms, words and prices sends if nothing is changed in it."""
    prices = {
        f"price-{price.interface}-{name}": str(getattr(price, name))
        for price in describe.track_prices(track)
        for name in ("reward", "seconds", *(["extra"] if price.extra else []))
    }
    return {
        **prices,
        **({"words-schema": _words(track)} if track.corpus.schema else {}),
        "terms-distribution": track.distribution,
        "terms-criterion": track.criterion,
        "terms-target_half_width": "0.030",
        "terms-design": track.design,
        "terms-scope": track.scope,
        "terms-workers_per_question": str(track.workers_per_question),
    }


def test_what_samples_rest_on_is_edited_until_a_run_comes_and_then_says_why_not(
    as_user: AsUser, toy: Toy, draft: Callable[..., Submission]
) -> None:
    admin, address = as_user("Admin"), reverse("desk-track-describe", args=["toy"])
    words = terms_of(toy.track) | {"track-name": "Harbour"}
    refused = admin.post(address, words | {"terms-workers_per_question": "99"})
    assert refused.status_code == 422
    admin.post(address, words | {"terms-target_half_width": "0.050", "terms-design": "poisson"})
    toy.track.refresh_from_db()
    assert (toy.track.name, toy.track.slug, toy.track.design) == ("Harbour", "toy", "poisson")
    assert str(toy.track.target_half_width) == "0.050"
    draft()
    text = admin.get(address).content.decode()
    assert "Fixed: plans and samples of runs depend on it." in text
    sent = words | {"terms-design": "iid", "track-who_pays": "The university"}
    assert admin.post(address, sent).status_code == 302
    toy.track.refresh_from_db()
    assert (toy.track.design, toy.track.who_pays) == ("poisson", "The university")


def test_admins_write_the_page_and_it_is_noted(as_user: AsUser, toy: Toy) -> None:
    address = reverse("desk-track-describe", args=["toy"])
    assert as_user("Rosa").get(address).status_code == 403
    words = terms_of(toy.track) | {
        "track-name": "Toy track",
        "track-description": "News of a harbour",
        "track-rules": "No peeking.\r\nNo pooling.",
        "track-guidelines": "Read it all.\r\nThen judge.\rThen stop.",
        "track-who_pays": "",
        "track-closes_on": "2031-02-01",
        "track-runs_a_week": "2",
        "track-runs_in_all": "",
        "corpus-description": "60 invented articles",
        "corpus-licence": "MIT",
        "corpus-may_be_downloaded": "on",
    }
    wrong = as_user("Admin").post(address, words | {"track-closes_on": "some day"})
    refused = wrong.content.decode()
    assert wrong.status_code == 422 and "Enter a valid date" in refused
    above = refused.split("Nothing was saved.")[1].split("</ul>")[0]
    assert re.findall(r'href="#(.*?)"', above) == ["id_track-closes_on"], "what is wrong, on top"
    assert "60 invented articles" in refused, "nothing that was written is lost"
    assert "Nothing was saved." not in as_user("Admin").get(address).content.decode()
    assert as_user("Admin").post(address, words).status_code == 302
    text = page(Client())
    assert "News of a harbour" in text and "No pooling." in text and "1 February 2031" in text
    log = as_user("Admin").get(reverse("desk-log")).content.decode()
    assert "describe" in log
    track = Track.objects.get(pk=toy.track.pk)
    assert track.rules == "No peeking.\nNo pooling.", "as a browser sends it no line would end so"
    assert track.guidelines == "Read it all.\nThen judge.\nThen stop."


def test_the_words_of_a_schema_change_at_any_time_and_its_relations_never(
    as_user: AsUser, toy: Toy, draft: Callable[..., Submission]
) -> None:
    draft()
    admin, address = as_user("Admin"), reverse("desk-track-describe", args=["toy"])
    said = terms_of(toy.track) | {"track-name": "Toy track"}
    before = load_schema(toy.corpus.schema).as_dict()
    assert admin.post(address, said).status_code == 302
    noted = Audit.objects.filter(what="describe").exclude(why__startswith="Everybody may")
    assert not noted.exists(), "another end of lines is no change"
    name = before["predicates"][0]["name"]
    changed = {
        "label": "made it",
        "template": "{object} was made by {subject}",
        "example": "She did",
    }
    for words, status in (
        ({"predicates": {name: changed}}, 302),
        ({"predicates": {"per:none": changed}}, 422),
        ({"predicates": {name: {"types": "PER"}}}, 422),
        ({"predicates": {name: {"template": "{subject} alone"}}}, 422),
        ({"predicates": {name: {"label": ["made it"]}}}, 422),
        ({"predicates": {name: {"label": False}}}, 422),
        ({"turned": {}}, 422),
        ("no words", 422),
    ):
        sent = admin.post(address, said | {"words-schema": json.dumps(words)})
        assert sent.status_code == status, words
    toy.corpus.refresh_from_db()
    after = toy.corpus.schema
    assert after["predicates"][0] == before["predicates"][0] | changed
    assert after["predicates"][1:] == before["predicates"][1:]
    assert {key: after[key] for key in before if key != "predicates"} == {
        key: before[key] for key in before if key != "predicates"
    }
    assert {(one.before, one.after) for one in noted} == {
        (before["predicates"][0][key], word) for key, word in changed.items()
    }
    assert all(name in one.why for one in noted), "which relation's"
    assert "object was made by subject" in page(Client(), all="1")
    text = admin.get(address).content.decode()
    assert "Only words can change here" not in text and "create another track" in text


@pytest.mark.parametrize("design", ["iid", "poisson"])
def test_a_price_holds_for_what_is_asked_from_then_on(
    as_user: AsUser, toy: Toy, draft: Callable[..., Submission], design: str
) -> None:
    Track.objects.update(design=design)
    toy.track.refresh_from_db()
    admin, address = as_user("Admin"), reverse("desk-track-describe", args=["toy"])
    row = draft()
    said = terms_of(toy.track) | {"track-name": "Toy track"}
    price = Price.objects.get(track=toy.track)
    field = f"price-{price.interface}-reward"
    assert admin.post(address, said | {field: "0"}).status_code == 422
    assert admin.post(address, said | {field: str(2 * price.reward)}).status_code == 302
    assert Price.objects.get(pk=price.pk).reward == 2 * price.reward
    log = Audit.objects.get(what="set price")
    assert f"${price.reward}" in log.before and f"${2 * price.reward}" in log.after
    before = row.plan["options"]
    row.refresh_from_db()
    for width, option in row.plan["options"].items():
        dollars = ("each", "at_most", "price")
        told = {name: value for name, value in option.items() if name not in dollars}
        assert told == {name: before[width][name] for name in told}
        for name in ("each", "at_most"):
            assert Decimal(option[name]) == 2 * Decimal(before[width][name])
    assert row.plan == plan_of(row), "as if it were planned today"
    Track.objects.update(status="closed")
    admin.post(address, said | {field: "9.00"})
    assert Price.objects.get(pk=price.pk).reward == 2 * price.reward, "it is closed"


@pytest.mark.parametrize("design", ["iid", "poisson"])
def test_a_run_keeps_the_price_that_it_was_confirmed_at(
    as_user: AsUser, toy: Toy, draft: Callable[..., Submission], design: str
) -> None:
    Track.objects.update(design=design)
    toy.track.refresh_from_db()
    row, before = draft(), Price.objects.get(track=toy.track)
    confirm_plan(row, toy.users["Rosa"])
    admin, address = as_user("Admin"), reverse("desk-track-describe", args=["toy"])
    assert "The run being judged keeps" in admin.get(address).content.decode()
    said = terms_of(toy.track) | {"track-name": "Toy track"}
    field = f"price-{before.interface}-reward"
    assert admin.post(address, said | {field: str(3 * before.reward)}).status_code == 302
    draw.tick()
    ask.tick()
    asked = Question.objects.all()
    assert asked and {one.reward for one in asked} == {before.reward}
    assert {one.price for one in asked} == {before.per_answer}
    costs = sum(one.price * one.answers_wanted for one in asked)
    assert costs <= balance(purpose=row.purpose).open, "what was set aside buys all of it"
    others = draft([("d2", "Berg", "per:parents", "Per Berg")], by="Tim", name="later")
    confirm_plan(others, toy.users["Tim"])
    draw.tick()
    ask.tick()
    assert set(Question.objects.values_list("reward", flat=True)) == {
        before.reward,
        3 * before.reward,
    }


def texts(kind: str, *inputs: dict[str, object]) -> Track:
    """An open track of texts on these inputs."""
    corpus = Corpus.objects.create(name="Articles", slug="articles", schema={})
    Input.objects.bulk_create(
        Input(corpus=corpus, key=f"a{at}", **one) for at, one in enumerate(inputs)
    )
    return Track.objects.create(corpus=corpus, name="Texts", slug="texts", kind=kind, status="open")


SOURCES: list[dict[str, object]] = [
    {"source": "It rains. It pours. The old man is snoring.", "references": ["Rain."]},
    {"source": "One sentence only"},
]
ASKED: list[dict[str, object]] = [
    {
        "question": "who founded the bakery of Osted",
        "passages": ["Osted lies by the sea.", "It has shops. Berg founded the bakery there."],
    },
    {"question": "when", "source": "In May. Then it closed. It was cold."},
]


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs"),
    [
        ("generation", SOURCES, ["It rains. It pours.", "One sentence only"]),
        ("answers", ASKED, ["Berg founded the bakery there.", "In May."]),
    ],
)
def test_the_baseline_of_texts_is_run_on_their_inputs_and_read_without_a_word(
    client: Client, tmp_path: Path, kind: str, inputs: list[dict[str, object]], outputs: list[str]
) -> None:
    track = texts(kind, *inputs)
    told = page(client, "texts")
    assert "python baseline.py inputs.jsonl.gz &gt; baseline.jsonl" in told
    files = {}
    for name in ("api-documents", "baseline"):
        assert reverse(name, args=["texts"]) in told
        files[name] = tmp_path / name
        files[name].write_bytes(client.get(reverse(name, args=["texts"])).getvalue())
    ran = subprocess.run(
        [sys.executable, str(files["baseline"]), str(files["api-documents"])],
        capture_output=True,
        check=True,
        env={"PATH": ""},
    )
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["output"] for one in said] == outputs
    assert [one.get("passage") for one in said] == [1 if kind == "answers" else None, None]
    (tmp_path / "run.jsonl").write_bytes(ran.stdout)
    report = Report()
    read = list(kind_of(track).read_outputs(str(tmp_path / "run.jsonl"), report, lambda _: None))
    assert len(read) == len(inputs) and not list(report)


@pytest.mark.parametrize(
    ("kind", "interface", "asked", "fields"),
    [
        ("generation", "language_quality", "Does it repeat itself?", ("input_id", "output")),
        (
            "answers",
            "answer_correctness",
            "what does each passage say",
            ("input_id", "output", "passage"),
        ),
    ],
)
def test_a_track_of_texts_says_what_is_asked_and_what_a_line_says(
    client: Client, kind: str, interface: str, asked: str, fields: tuple[str, ...]
) -> None:
    texts(kind, *ASKED)
    told = page(client, "texts")
    assert "tokens and sentences" not in told
    assert asked in told and "kbpo validate baseline.jsonl" in told
    assert all(f"<code>{name}</code>" in told for name in fields)
    assert "Read them here" not in told, "these are no documents"
    links = client.get(reverse("api-track", args=["texts"])).json()["links"]
    address = links["guidelines"].removeprefix("http://testserver")
    assert f'href="{address}"' in told
    guidelines = client.get(address).content.decode()
    [number] = re.findall(r'<iframe class="example" src="/annotate/try/(\d+)/"', guidelines)
    assert load_examples()[int(number) - 1]["interface"] == interface
    instructions = interface_by_name(interface).instructions(
        kind_of(Track.objects.get(slug="texts")).instruction_payload()
    )
    assert all(sentence in guidelines for sentence in instructions["guide"])


def test_everybody_reads_the_instructions_as_annotators_see_them(client: Client, toy: Toy) -> None:
    address = reverse("guidelines", args=["toy"])
    assert f'href="{address}"' in page(client)
    told = client.get(address).content.decode()
    kind = kind_of(toy.track)
    for name in ("relation", "entities", "relations_exhaustive"):
        frame = reverse("try_question", args=[first_example(name)])
        assert f'src="{frame}"' in told
        shown = client.get(frame)
        assert shown["X-Frame-Options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self'" in shown["Content-Security-Policy"]
        heading = re.search(r"<h2>(How to [^<]+)</h2>", shown.content.decode())
        assert heading and heading[1] in told, "the same words"
    for name in toy.corpus.relation_names().values():
        assert escape(name) in told
    types = interface_by_name("entities").instructions(kind.instruction_payload())["types"]
    assert types and all(f"<b>{one['word']}</b>" in told for one in types)
    toy.track.status = "draft"
    toy.track.save()
    assert client.get(address).status_code == 404
