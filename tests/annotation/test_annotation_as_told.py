"""People who do only what the pages tell them mark all that the schema counts, and answer truly."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import IN_CHROMIUM, open_page
from playwright.sync_api import Browser, Page
from test_annotation_crowd import logins

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Question
from annotation.questions import read_documents
from annotation.questions.order import order_documents, plan_documents
from formats.schema import shipped_schema
from kbpo.corpus.load import find_schema, load_corpus
from kbpo.instances.models import Label
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.models import Track
from rehearsal.annotators import Crowd
from rehearsal.newspaper.files import write
from rehearsal.newspaper.knows import Knowledge

DOCUMENTS = 5


@pytest.fixture
def newspaper(tmp_path: Path) -> Iterator[Knowledge]:
    """A few documents of the demo's newspaper, ordered to be read in full."""
    write(tmp_path, documents=DOCUMENTS, with_dev=False)
    corpus = load_corpus("Harbour Wire", tmp_path / "corpus.jsonl", find_schema("tac_kbp"))
    track = open_track(create_track(corpus, "Harbour Wire", money=Money()))
    order_documents(track, DOCUMENTS, plan_documents(track, DOCUMENTS).at_most)
    read_documents.tick()
    publish.tick()
    yield Knowledge(tmp_path / "mentions.tsv", tmp_path / "gold.tsv")


def counted(track: Track) -> set[str]:
    """The types that some predicate of a track's schema names."""
    predicates = track.corpus.schema["predicates"]
    return {name for predicate in predicates for pair in predicate["types"] for name in pair}


@pytest.mark.django_db(transaction=True)
@pytest.mark.soak
def test_readers_who_do_what_the_pages_say_find_every_type_that_counts(
    newspaper: Knowledge, live_server: Any
) -> None:
    people = logins("ada", "bea", "cid")
    crowd = Crowd(
        live_server.url,
        people,
        newspaper.true_answer,
        finds=newspaper.mentions_of,
        mention_recall=1.0,
        as_told=True,
    )
    assert crowd.work(at_most=120).errors == []
    settle.tick()
    labels = Label.objects.filter(target__kind="mention", source="document")
    places = labels.values_list("target__document__key", "target__a_begin", "target__a_end")
    marked = {(document, (begin, end)) for document, begin, end in places}
    there, found = Counter[str](), Counter[str]()
    for (document, span), known in newspaper.mentions.items():
        there[known.type] += 1
        found[known.type] += (document, span) in marked
    track = Track.objects.get()
    assert counted(track) <= set(there), "the documents have something of every type"
    recall = {kind: found[kind] / there[kind] for kind in counted(track)}
    assert recall == dict.fromkeys(recall, 1.0)


@pytest.mark.django_db
def test_types_that_no_relation_counts_are_not_asked_but_named(newspaper: Knowledge) -> None:
    payload = Question.objects.first().payload  # type: ignore[union-attr]
    assert {one["name"] for one in payload["types"]} == counted(Track.objects.get())
    assert [words.partition(":")[0] for words in payload["not_asked"]] == [
        "place without a government",
        "building or other facility",
    ]
    assert all(one["example"] for one in payload["types"])


@pytest.mark.parametrize("name", ["tac_kbp", "docred"])
def test_the_tutorial_teaches_every_type_of_the_schemas_that_ship(name: str) -> None:
    from annotation.workers.teach import shipped

    taught = set()
    for question in shipped()["entities"].questions:
        for marks in question["right"]["mentions"]:
            taught.update(mark["type"] for mark in json.loads(marks))
    assert {one.name for one in shipped_schema(name).counted_types} <= taught


class TestInABrowser:
    pytestmark = [*IN_CHROMIUM, pytest.mark.django_db(transaction=True)]

    def test_the_first_screen_and_the_instructions_name_every_type(
        self, newspaper: Knowledge, live_server: Any, browser: Browser
    ) -> None:
        page = start(browser, live_server)
        track = Track.objects.get()
        for place in ("#inspector", "#instructions"):
            rows = page.locator(f"{place} li[data-type]")
            assert set(types_in(page, place)) == counted(track)
            if place == "#instructions":
                page.get_by_role("button", name="Instructions").click()
            assert all(row.is_visible() and row.locator("mark").count() for row in rows.all())
        assert page.faults == []  # type: ignore[attr-defined]

    def test_the_key_for_the_next_unmarked_name_goes_to_every_type(
        self, newspaper: Knowledge, live_server: Any, browser: Browser
    ) -> None:
        page = start(browser, live_server)
        title = page.locator("form.judge").get_attribute("data-document")
        true = {
            span: known
            for (document, span), known in newspaper.mentions.items()
            if document == title
        }
        offered = walk(page)
        there, found = Counter[str](), Counter[str]()
        for (begin, end), known in true.items():
            there[known.type] += 1
            found[known.type] += any(b < end and begin < e for b, e in offered)
        assert there["TITLE"]
        share = {kind: found[kind] / there[kind] for kind in there}
        assert min(share.values()) > 0.9, share


def start(browser: Browser, live_server: Any) -> Page:
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    return page


def types_in(page: Page, place: str) -> list[str]:
    rows = page.locator(f"{place} li[data-type]")
    return [str(row.get_attribute("data-type")) for row in rows.all()]


def walk(page: Page) -> list[tuple[int, int]]:
    """The spans that the key J leads to, one after the other, each passed over unmarked."""
    tokens = json.loads(page.locator("#document-data").text_content() or "")["tokens"]
    found: list[tuple[int, int]] = []
    while True:
        page.keyboard.press("j")
        numbers = [int(str(one.get_attribute("data-t"))) for one in page.locator(".t.sel").all()]
        span = tokens[numbers[0]][0], tokens[numbers[-1]][1]
        if span in found:
            return found
        found.append(span)
