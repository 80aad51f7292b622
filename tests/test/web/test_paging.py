"""Lists of pages: an address past their end gets what there is, or is told that it is past."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.accounts.audit import write_audit_entry
from kbpo.web.desk import log
from tests.conftest import Toy

As = Callable[[str], Client]
pytestmark = pytest.mark.django_db


def test_a_page_that_there_is_not_is_the_last_and_what_is_no_number_the_first(
    toy: Toy, as_user: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PAGE", 1)
    for number in range(3):
        write_audit_entry(
            "say", f"thing:{number}", who=toy.users["Admin"], why="So that there are three."
        )
    admin = as_user("Admin")
    last = admin.get(reverse("desk-log")).context["table"].page.paginator.num_pages
    asked = {"2": 2, "999": last, "0": last, "-1": last, "x": 1, "9" * 30: last}
    for said, shown in asked.items():
        page = admin.get(reverse("desk-log"), {"page": said})
        assert page.status_code == 200 and page.context["table"].page.number == shown > 0, said
    assert last >= 3


def test_documents_past_the_end_are_told_from_words_that_none_has(toy: Toy, client: Client) -> None:
    def told(**said: str) -> str:
        return client.get(reverse("track-documents", args=["toy"]), said).content.decode()

    past, without = "No documents after this one.", "No document has these words."
    assert past in told(after="99999999") and without not in told(after="99999999")
    assert without in told(q="zebra") and past not in told(q="zebra", after="99999999")
    assert past in told(q="Mara", after="99999999")
