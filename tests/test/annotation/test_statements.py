"""How many statements each page of an annotator costs: one more for every question, and the
database is what everybody waits for.
"""

from __future__ import annotations

import re
from typing import Any

from annotation_world import GOOD
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kbpo.submissions.models import Submission


def statements(ask: Any) -> tuple[Any, list[str]]:
    """What a page answered, and the statements that it cost; savepoints are the test's own."""
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
    texts = [query["sql"] for query in captured]
    return answer, [text for text in texts if "SAVEPOINT" not in text]


def test_a_question_costs_at_most_sixteen_statements(published: Submission, ada: Client) -> None:
    address = ada.get("/annotate/next/").url
    ada.get(address)
    sent, of_answer = statements(lambda: ada.post(address, GOOD))
    assert sent.status_code == 302
    page, of_page = statements(lambda: ada.get(sent.url))
    assert page.status_code == 200
    assert len(of_answer) <= 10, of_answer
    assert len(of_page) <= 6, of_page


def test_an_answer_of_a_script_costs_at_most_twelve_statements(
    published: Submission, ada: Client
) -> None:
    """With the page of the next question, which comes with the same reply."""
    address = ada.get("/annotate/next/").url
    ada.post(address, GOOD, headers={"Accept": "application/json"})
    address = ada.get("/annotate/next/").url
    sent, of_answer = statements(
        lambda: ada.post(address, GOOD, headers={"Accept": "application/json"})
    )
    assert "page" in sent.json()
    assert len(of_answer) <= 12, of_answer


def test_a_script_is_sent_of_a_page_what_changes_with_the_question(
    published: Submission, ada: Client
) -> None:
    """What stands on it takes the title, the top, the content;
    and whether its script is the same.
    """
    address = ada.get("/annotate/next/").url
    said = ada.post(address, GOOD, headers={"Accept": "application/json"}).json()
    whole = ada.get(said["next"]).content.decode()
    assert "stylesheet" in whole and "stylesheet" not in said["page"]
    for part in (
        "<title>.*</title>",
        '<script type="module" src="/static/interfaces/.*?</script>',
        '<header class="top.*</header>',
        '<main .*id="content".*</main>',
    ):
        for page in (whole, said["page"]):
            assert re.search(part, page, re.S), part
    steps = [
        re.findall(r'<input type="(?:radio|checkbox)" name="\w+" value=".*?"', page)
        for page in (whole, said["page"])
    ]
    assert steps[0] and steps[0] == steps[1]


def test_a_draft_costs_at_most_eight_statements(published: Submission, ada: Client) -> None:
    address = ada.get("/annotate/next/").url
    kept, of_draft = statements(lambda: ada.post(address + "draft/", GOOD))
    assert kept.status_code == 200
    assert len(of_draft) <= 8, of_draft
