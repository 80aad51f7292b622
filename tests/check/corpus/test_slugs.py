"""Short names for addresses, of names in any alphabet."""

from __future__ import annotations

import pytest

from kbpo.corpus.models import Corpus, slug_of

pytestmark = pytest.mark.django_db


def test_a_name_without_latin_letters_gets_a_number() -> None:
    for name, slug in (("News 2026", "news-2026"), ("東京", "corpus"), ("Москва", "corpus-2")):
        made = slug_of(name, Corpus.objects.all(), "corpus")
        assert made == slug
        Corpus.objects.create(name=name, slug=made, schema={})
    assert slug_of("!?", Corpus.objects.all(), "corpus") == ""
    assert len(slug_of("long " * 90, Corpus.objects.all(), "corpus")) <= 120
