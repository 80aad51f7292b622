"""The pages to read answer, say what is true of the program, and give examples that work."""

from __future__ import annotations

import re
import shlex
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.workers.teach import ATTEMPTS
from formats.annotations import read_gold, read_mentions
from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.inputs import read_inputs
from formats.limits import Limits
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import open_text
from formats.schema import shipped_schema
from kbpo.accounts.models import Token
from kbpo.submissions.models import Submission
from kbpo.web.api.answers import SENTENCES
from kbpo.web.api.urls import urlpatterns as api_patterns
from kbpo.web.public import prose
from kbpo.web.public.people import TOKEN_DAYS

if TYPE_CHECKING:
    from conftest import Toy

EXAMPLES = Path(__file__).resolve().parents[2] / "templates" / "prose" / "examples"
PAGES = ["about", "help", "methods", "api"]


def text_of(client: Client, name: str) -> str:
    answer = client.get(reverse(name))
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_everybody_may_read_the_page(client: Client, name: str) -> None:
    text = text_of(client, name)
    assert text.count("<h1") == 1
    assert " style=" not in text


@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_every_link_inside_the_page_leads_somewhere(client: Client, name: str) -> None:
    text = text_of(client, name)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) - set(ids) == set()


@pytest.mark.django_db
def test_links_from_page_to_page_have_their_anchors(client: Client) -> None:
    pages = {reverse(name): text_of(client, name) for name in PAGES}
    for text in pages.values():
        for address, anchor in re.findall(r'href="(/[^"#?]*)#([^"]+)"', text):
            if address in pages:
                assert f'id="{anchor}"' in pages[address], f"{address}#{anchor}"


@pytest.mark.django_db
def test_help_tells_why_recall_is_lower(client: Client) -> None:
    assert 'id="recall"' in text_of(client, "help")


@pytest.mark.django_db
def test_help_tells_annotators_of_the_terms_and_the_tutorial_before_judging(client: Client) -> None:
    part = text_of(client, "help").partition('id="annotators"')[2].partition("<h2")[0]
    steps = ["invitation", "Read the terms", "tutorial: a few questions", ">Judge</a>"]
    assert ATTEMPTS == 2 and "two attempts" in part
    assert -1 not in (where := [part.find(step) for step in steps]) and where == sorted(where)


@pytest.mark.django_db
def test_help_sends_who_doubts_a_judgment_to_the_button_that_exists(client: Client) -> None:
    button = "I think this judgment is wrong"
    assert button in text_of(client, "help")
    assert (
        f"<summary>{button}</summary>" in (EXAMPLES.parents[1] / "explore_dispute.html").read_text()
    )


def test_every_state_is_explained() -> None:
    assert set(prose.STATES) == set(Submission.Status.values)


@pytest.mark.django_db
def test_help_shows_every_state_by_its_label(client: Client) -> None:
    text = unescape(text_of(client, "help"))
    for label in Submission.Status.labels:
        assert f"<dt>{label}</dt>" in text


@pytest.mark.django_db
def test_help_shows_what_an_answer_costs(client: Client, toy: Toy) -> None:
    assert "$0.05" in text_of(client, "help")


def test_trying_leads_to_the_annotation_pages(client: Client) -> None:
    answer = client.get(reverse("try-it"))
    assert answer.status_code == 302
    assert answer.headers["Location"] == reverse("try")


@pytest.mark.django_db
def test_every_address_of_the_api_is_on_its_page(client: Client) -> None:
    text = unescape(text_of(client, "api"))
    for pattern in api_patterns:
        route = re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)).replace("{pk}", "{id}")
        assert f"/api/{route}" in text, route


def test_only_reading_of_tracks_and_reckoning_are_public() -> None:
    """What judges and admins ask of a track and bring to it is not."""
    described = prose.described()
    public = {(one.method, one.address) for one in described if one.public}
    theirs = ("scores/", "unscored/", "judges/{id}/")
    assert public == {
        (one.method, one.address)
        for one in described
        if one.address == "/api/prmse/"
        or (
            one.address.startswith("/api/tracks/")
            and one.method == "GET"
            and not one.address.endswith(theirs)
        )
    }


def test_every_example_is_one_command_with_its_token() -> None:
    for endpoint in prose.described():
        words = shlex.split(prose.curl(endpoint, "https://kbp.example.org").replace("\\\n", ""))
        assert words[0] == "curl"
        assert "{" not in words[1]
        assert ("Authorization: Token $KBPO_TOKEN" in words) is not endpoint.public
        for name, required in endpoint.fields:
            said = any(word.startswith(f"{name}=") or f'"{name}": ' in word for word in words)
            assert said or not required, name


@pytest.mark.django_db
def test_the_page_of_the_api_says_what_tokens_may_and_which_refusals_there_are(
    client: Client, settings: Any
) -> None:
    settings.API_RATE = 1234
    page = client.get(reverse("api")).content.decode()
    for name, words in Token.Scope.choices:
        assert f"<code>{name}</code> ({words.lower()})" in page
    assert all(str(days) in page for days in TOKEN_DAYS)
    told = set(re.findall(r"<tr><td>([\d, ]+)</td>", page))
    assert set(SENTENCES) <= set(", ".join(told).split(", ")), "each that the schema knows"
    assert "1,234 requests" in page and "Retry-After" in page and "If-None-Match" in page


@pytest.mark.django_db
def test_an_example_of_the_page_is_answered(client: Client, toy: Toy) -> None:
    for endpoint in prose.described():
        if endpoint.public:
            words = shlex.split(prose.curl(endpoint, ""))
            address = words[1].replace("harbour-wire", "toy")
            if endpoint.method == "POST":
                told = words[words.index("-d") + 1]
                answer = client.post(address, told, content_type=endpoint.content)
            else:
                answer = client.get(address)
            # An example cannot know the numbers of two systems that are compared, nor a document's
            # key; and while a track is open its single judgments are for admins.
            expected = {"compare": 400, "judgments": 404, "{key}": 404, "history": 404}
            last = endpoint.address.rstrip("/").rpartition("/")[2]
            assert answer.status_code == expected.get(last, 200), words[1]


@pytest.mark.django_db
def test_an_error_looks_as_the_page_says(client: Client) -> None:
    answer = client.get("/api/submissions/")
    assert answer.status_code == 401
    assert set(answer.json()) == {"error", "detail"}


@pytest.mark.django_db
def test_a_key_that_is_longer_than_the_page_says_is_refused(client: Client, toy: Toy) -> None:
    _, secret = Token.issue(toy.users["Rosa"], "test")
    headers = {"Authorization": f"Token {secret}", "Idempotency-Key": "k" * 81}
    file = SimpleUploadedFile("run.kb", b"my_run_1\n")
    answer = client.post(
        "/api/submissions/", {"track": "toy", "name": "run", "file": file}, headers=headers
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid")
    assert "80" in answer.json()["detail"]


@pytest.fixture
def corpus() -> MemoryCorpus:
    report = Report()
    lines = open_text(EXAMPLES / "corpus.txt", Limits().for_corpus(), report)
    documents = [DocumentView.of(record) for record in read_corpus(lines, Limits(), report)]
    assert list(report) == []
    assert len(documents) == 2
    return MemoryCorpus(documents)


def test_the_example_of_inputs_is_read_without_a_word() -> None:
    report = Report()
    inputs = list(
        read_inputs(open_text(EXAMPLES / "inputs.txt", Limits(), report), Limits(), report)
    )
    assert list(report) == [] and len(inputs) == 2


@pytest.mark.parametrize(("name", "relations"), [("kb", 1), ("json_lines", 5)])
def test_the_examples_of_submissions_are_read_without_a_word(
    name: str, relations: int, corpus: MemoryCorpus
) -> None:
    report = Report()
    claims = list(
        read_claims(EXAMPLES / f"{name}.txt", corpus, shipped_schema("tac_kbp"), Limits(), report)
    )
    assert [message.text for message in report if message.severity != "info"] == []
    assert len(claims) == relations


def test_the_examples_of_annotations_are_read_without_a_word(corpus: MemoryCorpus) -> None:
    schema, report = shipped_schema("tac_kbp"), Report()
    mentions = list(
        read_mentions(
            open_text(EXAMPLES / "mentions.txt", Limits(), report), corpus, schema, report
        )
    )
    gold = list(
        read_gold(open_text(EXAMPLES / "gold.txt", Limits(), report), corpus, schema, report)
    )
    assert [message.text for message in report] == []
    assert (len(mentions), len(gold)) == (4, 3)


@pytest.mark.django_db
def test_every_section_of_methods_is_in_its_contents_and_every_figure_in_a_section(
    client: Client,
) -> None:
    text = text_of(client, "methods")
    sections = re.findall(r'<h2 id="([^"]+)"', text)
    assert re.findall(r'<li><a href="#([^"]+)"', text) == sections
    source = (EXAMPLES.parent / "methods.html").read_text()
    assert sorted(re.findall(r"figure\.html\" with figure=(\w+)", source)) == sorted(prose.FIGURES)


def test_every_function_that_methods_names_exists() -> None:
    source = (EXAMPLES.parent / "methods.html").read_text()
    named = re.findall(r"<code>(\w+)\.(\w+)</code>", source)
    assert ("recall", "recall") in named and ("intervals", "interim_factor") in named
    assert [
        one for one in named if not hasattr(import_module(f"estimators.{one[0]}"), one[1])
    ] == []


@pytest.mark.django_db
def test_methods_keeps_back_nothing_that_makes_a_number_less_sure(client: Client) -> None:
    text = " ".join(re.sub(r"<[^>]+>", "", unescape(text_of(client, "methods"))).split())
    for said in (
        "It does not contain the errors of the people who judge",
        "shifted scores by 0.10 ± 0.04 of one standard error",
        "Nothing is corrected for that",
        "the numbers do not detect it",
        "max(V, A)",
        "do not report them",
    ):
        assert said in text, said


@pytest.mark.parametrize("name", prose.FIGURES)
def test_a_figure_says_what_it_shows(name: str) -> None:
    figure = prose.FIGURES[name]()
    assert 'role="img" aria-label="' in figure.drawing
    assert "nan" not in figure.drawing
    assert "style=" not in figure.drawing
    assert len(figure.caption) > 40


def widths(caption: str) -> list[float]:
    return [
        float(number) for number in re.findall(r"([\d.]+)(?= points wide| with (?:B|it))", caption)
    ]


def test_the_figure_shows_that_a_model_narrows_the_interval() -> None:
    before, after = widths(prose.FIGURES["centred"]().caption)
    assert after < before


def numbers(name: str, pattern: str) -> list[float]:
    """What the caption of a figure says, by the groups of a pattern."""
    found = re.search(pattern, prose.FIGURES[name]().caption.replace("\u00a0", " "))
    assert found is not None, prose.FIGURES[name]().caption
    return [float(one) for one in found.groups()]


def test_the_figure_of_totals_shows_what_judgments_add_to_documents() -> None:
    own, all_, share, truth = numbers(
        "totals", r"about (\d+) of (\d+) facts, (\d+) %; in truth (\d+) %"
    )
    assert abs(own / all_ - share / 100) < 0.006
    both, alone = numbers("totals", r"interval is ([\d.]+) points wide.* would be ([\d.]+)\.")
    assert both < alone
    assert abs(share - truth) < both / 2


def test_the_figure_of_thresholds_shows_what_others_have_paid_for() -> None:
    asked, before, new = numbers(
        "thresholds", r"(\d+) of 40 questions are asked, (\d+) of which .* only (\d+) are new"
    )
    assert before > 0 and asked == before + new


def test_the_figure_of_watching_shows_which_interval_may_be_watched() -> None:
    once, always = numbers("watched", r"at some time in (\d+), the one to be watched in (\d+)")
    assert always <= 20 < 50 < once
