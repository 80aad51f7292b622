"""Titles that are suggested, and the commands that load them and order documents."""

from __future__ import annotations

import pytest

from annotation.questions.titles import load_titles, suggest


@pytest.mark.django_db
def test_titles_are_found_by_their_beginning_without_accents_and_case() -> None:
    assert load_titles(["Łódź\n", "Malmö\n", "Malmö FF\n", "Malmö_Arena\n", "\n", "x" * 300]) == 4
    assert suggest("malmo") == ["Malmö", "Malmö FF", "Malmö Arena"]
    assert suggest("MALMÖ a") == ["Malmö Arena"]
    assert suggest("m") == [] and suggest("%") == [] and suggest("_almo") == []
