"""People who do only what the pages tell them mark all that the schema counts, and answer truly."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page

from formats.schema import shipped_schema


@pytest.mark.parametrize("name", ["tac_kbp", "docred"])
def test_the_tutorial_teaches_every_type_of_the_schemas_that_ship(name: str) -> None:
    from annotation.workers.teach import builtin_tutorials

    taught = set()
    for question in builtin_tutorials()["entities"].questions:
        for marks in question["right"]["mentions"]:
            taught.update(mark["type"] for mark in json.loads(marks))
    assert {one.name for one in shipped_schema(name).types_in_predicates} <= taught


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
