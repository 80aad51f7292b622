"""Titles that are suggested, and the commands that load them and order documents."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import DocumentOrder
from annotation.questions.titles import load_titles, suggest
from tests.conftest import Toy


@pytest.mark.django_db
def test_titles_are_found_by_their_beginning_without_accents_and_case() -> None:
    assert load_titles(["Łódź\n", "Malmö\n", "Malmö FF\n", "Malmö_Arena\n", "\n", "x" * 300]) == 4
    assert suggest("malmo") == ["Malmö", "Malmö FF", "Malmö Arena"]
    assert suggest("MALMÖ a") == ["Malmö Arena"]
    assert suggest("m") == [] and suggest("%") == [] and suggest("_almo") == []


@pytest.mark.django_db
def test_the_command_shows_the_price_and_orders_when_told(toy: Toy) -> None:
    out = StringIO()
    call_command("annotate_documents", "toy", 2, stdout=out)
    assert "together at most $" in out.getvalue() and "Nothing is ordered" in out.getvalue()
    assert not DocumentOrder.objects.exists()
    call_command("annotate_documents", "toy", 2, "--token", "1", "--pair", "4", "--yes", stdout=out)
    order = DocumentOrder.objects.get()
    assert (str(order.per_token), str(order.per_pair), order.documents) == ("0.0100", "0.0400", 2)
    with pytest.raises(CommandError, match="Only 2 documents are left"):
        call_command("annotate_documents", "toy", 3)
    with pytest.raises(CommandError, match="no track none"):
        call_command("annotate_documents", "none", 3)
    with pytest.raises(CommandError):
        call_command("annotate_documents", "toy", 1, "--token", "0.001")
