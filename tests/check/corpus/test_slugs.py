"""Short names for addresses, of names in any alphabet."""

from __future__ import annotations

import pytest

from kbpo.corpus.models import Corpus, unique_slug

pytestmark = pytest.mark.django_db


def test_a_name_without_latin_letters_gets_a_number() -> None:
    for name, slug in (("News 2026", "news-2026"), ("東京", "corpus"), ("Москва", "corpus-2")):
        made = unique_slug(name, Corpus.objects.all(), "corpus")
        assert made == slug
        Corpus.objects.create(name=name, slug=made, schema={})
    assert unique_slug("!?", Corpus.objects.all(), "corpus") == ""
    assert len(unique_slug("long " * 90, Corpus.objects.all(), "corpus")) <= 120
