"""The pages to read answer, say what is true of the program, and give examples that work."""

from __future__ import annotations

import re
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.urls import reverse

from formats.annotations import read_gold, read_mentions
from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.inputs import read_inputs
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.schema import shipped_schema
from kbpo.submissions.models import Submission
from kbpo.web.api.urls import urlpatterns as api_patterns
from kbpo.web.public import prose

if TYPE_CHECKING:
    pass

EXAMPLES = Path(__file__).resolve().parents[3] / "templates" / "prose" / "examples"
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


def test_every_state_is_explained() -> None:
    assert set(prose.STATES) == set(Submission.Status.values)


@pytest.mark.django_db
def test_help_shows_every_state_by_its_label(client: Client) -> None:
    text = unescape(text_of(client, "help"))
    for label in Submission.Status.labels:
        assert f"<dt>{label}</dt>" in text


@pytest.mark.django_db
def test_every_address_of_the_api_is_on_its_page(client: Client) -> None:
    text = unescape(text_of(client, "api"))
    for pattern in api_patterns:
        route = re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)).replace("{pk}", "{id}")
        assert f"/api/{route}" in text, route


@pytest.fixture
def corpus() -> MemoryCorpus:
    report = Report()
    lines = open_text(EXAMPLES / "corpus.txt", Limits().for_corpus(), report)
    documents = [
        DocumentView.from_record(record) for record in read_corpus(lines, Limits(), report)
    ]
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


def test_every_function_that_methods_names_exists() -> None:
    source = (EXAMPLES.parent / "methods.html").read_text()
    named = re.findall(r"<code>(\w+)\.(\w+)</code>", source)
    assert ("recall", "estimate_recall") in named
    assert [
        one for one in named if not hasattr(import_module(f"estimators.{one[0]}"), one[1])
    ] == []
