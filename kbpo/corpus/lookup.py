"""Looks documents up for the readers of files, with a bounded cache in front of the database, and
finds names in documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from formats.lookup import DocumentView
from formats.schema import load_schema
from formats.splitting import Span
from formats.words import split_words
from kbpo.corpus.models import Corpus, Document, Mention, Part

CACHED_CHARACTERS = 16_000_000
MOST_TITLES = 100_000
SEVERAL = ","
"""Stands for the id of a document whose title is not unique; ids contain no comma"""


class DatabaseCorpus:
    """The documents of a corpus as readers see them, fetched in batches; ids outside the corpus are
    cached too.
    """

    def __init__(self, corpus: Corpus, *, characters: int = CACHED_CHARACTERS) -> None:
        self._corpus = corpus
        self._characters = characters
        self._held = 0
        self._views: dict[str, DocumentView] = {}
        self._ids: dict[str, int] = {}
        self._missing: set[str] = set()
        self._titled: dict[str, str | None] = {}
        self.dev = frozenset(
            Document.objects.filter(corpus=corpus, part=Part.DEV).values_list("key", flat=True)
        )
        """Ids of the development part"""
        self._has_mentions = Mention.objects.filter(document__corpus=corpus).exists()

    def prefetch(self, documents: Collection[str]) -> None:
        """Fetch the documents that are not in memory in one query."""
        wanted = [key for key in documents if key not in self._views and key not in self._missing]
        if not wanted:
            return
        if self._held > self._characters:
            but = set(documents)
            self._views = {key: view for key, view in self._views.items() if key in but}
            self._ids = {key: self._ids[key] for key in self._views}
            self._held = sum(len(view.text) for view in self._views.values())
        rows = Document.objects.filter(corpus=self._corpus, key__in=wanted).values_list(
            "pk", "key", "text", "token_begin", "token_end", "sentence_begin", "sentence_end"
        )
        for pk, key, text, tokens, token_ends, sentences, sentence_ends in rows:
            self._views[key] = DocumentView(key, text, tokens, token_ends, sentences, sentence_ends)
            self._ids[key] = pk
            self._held += len(text)
        self._add_mentions([key for key in wanted if key in self._views])
        if len(self._missing) < 100_000:
            self._missing.update(key for key in wanted if key not in self._views)

    def get(self, document: str) -> DocumentView | None:
        """Return the document with this id, or None if the corpus does not have it."""
        view = self._views.get(document)
        if view is None and document not in self._missing:
            self.prefetch([document])
            view = self._views.get(document)
        return view

    def prefetch_titles(self, titles: Collection[str]) -> None:
        """Fetch the documents with these titles, or with these ids."""
        wanted = [title for title in titles if title not in self._titled]
        if wanted:
            found = Document.objects.filter(corpus=self._corpus, title__in=wanted)
            if len(self._titled) > MOST_TITLES:
                self._titled.clear()
            self._titled |= dict.fromkeys(wanted)
            for title, key in found.values_list("title", "key"):
                self._titled[title] = key if self._titled[title] is None else SEVERAL
        keys = [self._titled.get(title) or title for title in titles]
        self.prefetch([key for key in keys if key != SEVERAL])

    def get_by_title(self, title: str) -> DocumentView | None:
        """Return the only document with this title, otherwise the one with this id; None if there
        is none.
        """
        if title not in self._titled:
            self.prefetch_titles([title])
        key = self._titled[title] or title
        return None if key == SEVERAL else self.get(key)

    def pk(self, document: str) -> int:
        """Return the primary key of a document. Raises KeyError if the corpus does not have it."""
        if document not in self._ids:
            self.prefetch([document])
        return self._ids[document]

    def _add_mentions(self, keys: list[str]) -> None:
        if not self._has_mentions or not keys:
            return
        names = {self._ids[key]: key for key in keys}
        types: dict[str, dict[Span, str]] = defaultdict(dict)
        entities: dict[str, dict[int, list[Span]]] = defaultdict(lambda: defaultdict(list))
        mentions = Mention.objects.filter(document__in=names).values_list(
            "document_id", "begin", "end", "type", "entity"
        )
        for pk, begin, end, kind, entity in mentions.order_by("begin", "end"):
            types[names[pk]][begin, end] = kind
            if entity is not None:
                entities[names[pk]][entity].append((begin, end))
        for key, by_span in types.items():
            self._views[key].mention_types = by_span
            self._views[key].entities = dict(entities[key])


CHUNK = 500


def world_entity_types(corpus: Corpus) -> set[str]:
    """Return the types whose mentions are entities, not dates, titles or numbers."""
    return {name for name, kind in load_schema(corpus.schema).entity_types.items() if kind.linkable}


def name_occurrences(corpus: Corpus, names: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    """Yield (document, code, number of times) for the codes of names; if two names match at a
    place, the longer one counts.

    Names are compared with case, whole words only.
    """
    by_first = _names_by_first_word(names)
    documents = Document.objects.filter(corpus=corpus).order_by("pk").values_list("pk", "text")
    for document, text in documents.iterator(chunk_size=CHUNK):
        for code, number in sorted(Counter(_name_codes_in(split_words(text), by_first)).items()):
            yield document, code, number


def _names_by_first_word(names: dict[str, int]) -> dict[str, list[tuple[list[str], int]]]:
    """Return first word -> the names that begin with it, as lists of words, the longest first."""
    names_of: dict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for name, code in names.items():
        if parts := split_words(name):
            names_of[parts[0]].append((parts, code))
    for entries in names_of.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return names_of


def _name_codes_in(
    text: list[str], by_first: dict[str, list[tuple[list[str], int]]]
) -> Iterable[int]:
    place = 0
    while place < len(text):
        for parts, code in by_first.get(text[place], ()):
            if text[place : place + len(parts)] == parts:
                yield code
                place += len(parts) - 1
                break
        place += 1
