"""The interface of readers to a corpus: documents by their id, with texts, tokens and sentences."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from formats.corpus import DocumentRecord
from formats.splitting import Span


@dataclass(slots=True)
class DocumentView:
    """A document as the readers of files use it: text, tokens, sentences and mentions; the offsets
    are sorted.
    """

    id: str
    text: str
    token_begins: Sequence[int]
    token_ends: Sequence[int]
    sentence_begins: Sequence[int]
    sentence_ends: Sequence[int]
    mention_types: Mapping[Span, str] = field(default_factory=dict)
    """The types of known mentions, if the corpus has any."""
    entities: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    """The mentions of each entity, sorted, if the corpus numbers entities within documents."""
    title: str = ""

    @classmethod
    def from_record(
        cls,
        record: DocumentRecord,
        mention_types: Mapping[Span, str] | None = None,
        entities: Mapping[int, Sequence[Span]] | None = None,
    ) -> "DocumentView":
        """Return the view of a document that was read from a corpus file."""
        return cls(
            record.id,
            record.text,
            [begin for begin, _ in record.tokens],
            [end for _, end in record.tokens],
            [begin for begin, _ in record.sentences],
            [end for _, end in record.sentences],
            {} if mention_types is None else mention_types,
            {} if entities is None else entities,
            record.title,
        )

    def contains_span(self, span: Span) -> bool:
        """Return whether the span is not empty and lies inside the text."""
        return 0 <= span[0] < span[1] <= len(self.text)

    def sentence_index(self, offset: int) -> int:
        """Return the index of the last sentence that begins at or before this offset; -1 before the
        first one.
        """
        return bisect_right(self.sentence_begins, offset) - 1

    def token_range(self, span: Span) -> tuple[int, int]:
        """Return the index of the first token of a span, and the index after its last token."""
        return bisect_right(self.token_begins, span[0]) - 1, bisect_left(
            self.token_ends, span[1]
        ) + 1

    def sentence_span_over(self, *spans: Span) -> Span:
        """Return the smallest span of whole sentences over the given spans."""
        begin, end = min(b for b, _ in spans), max(e for _, e in spans)
        first = max(self.sentence_index(begin), 0)
        last = min(bisect_left(self.sentence_ends, end), len(self.sentence_ends) - 1)
        if last < 0:
            return 0, len(self.text)
        return min(begin, self.sentence_begins[first]), max(end, self.sentence_ends[last])


class CorpusLookup(Protocol):
    """The documents of a corpus, in memory, or in a database behind a cache."""

    def prefetch(self, documents: Collection[str]) -> None:
        """Announce the ids of the next calls of `get`, at most a few hundred at a time."""

    def get(self, document: str) -> DocumentView | None:
        """Return the document with this id, or None if the corpus does not have it."""

    def prefetch_titles(self, titles: Collection[str]) -> None:
        """Announce the titles of the next calls of `get_by_title`."""

    def get_by_title(self, title: str) -> DocumentView | None:
        """Return the only document with this title, else the document with this id; None if there
        is none, or several have the title.
        """


class MemoryCorpus:
    """A corpus in memory, for the offline client and for small corpora."""

    def __init__(self, documents: Iterable[DocumentView]) -> None:
        self._documents = {document.id: document for document in documents}
        self._titled: dict[str, DocumentView | None] = {}
        for document in self._documents.values():
            title = document.title
            self._titled[title] = None if title in self._titled else document

    def __len__(self) -> int:
        return len(self._documents)

    def prefetch(self, documents: Collection[str]) -> None:
        """Do nothing, since all documents are in memory."""

    def get(self, document: str) -> DocumentView | None:
        """Return the document with this id, or None."""
        return self._documents.get(document)

    def prefetch_titles(self, titles: Collection[str]) -> None:
        """Do nothing, since all documents are in memory."""

    def get_by_title(self, title: str) -> DocumentView | None:
        """Return the document with this title or id, or None."""
        return self._titled[title] if title in self._titled else self._documents.get(title)
