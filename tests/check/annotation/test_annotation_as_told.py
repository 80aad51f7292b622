"""People who do only what the pages tell them mark all that the schema counts, and answer truly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import open_page
from playwright.sync_api import Browser, Page

from annotation.hits import publish
from annotation.questions import read_documents
from annotation.questions.order import order_documents, plan_documents
from formats.schema import shipped_schema
from kbpo.corpus.load import find_schema, load_corpus
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.tracks.models import Track
from rehearsal.newspaper.files import write_files
from rehearsal.newspaper.knows import Knowledge

DOCUMENTS = 5


@pytest.fixture
def newspaper(tmp_path: Path) -> Iterator[Knowledge]:
    """A few documents of the demo's newspaper, ordered to be read in full."""
    write_files(tmp_path, documents=DOCUMENTS, with_dev=False)
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


@pytest.mark.parametrize("name", ["tac_kbp", "docred"])
def test_the_tutorial_teaches_every_type_of_the_schemas_that_ship(name: str) -> None:
    from annotation.workers.teach import builtin_tutorials

    taught = set()
    for question in builtin_tutorials()["entities"].questions:
        for marks in question["right"]["mentions"]:
            taught.update(mark["type"] for mark in json.loads(marks))
    assert {one.name for one in shipped_schema(name).types_in_predicates} <= taught


def start(browser: Browser, live_server: Any) -> Page:
    page = open_page(browser, live_server)
    page.wait_for_selector("html[data-ready]")
    return page


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
