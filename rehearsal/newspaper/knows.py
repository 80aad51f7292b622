"""The true answer to a question about two mentions, from gold standard files.

The files have the columns of the Re-DocRED test set, so that one class serves the demo corpus and
real documents. A predicate holds between two mentions if, and only if, the gold standard lists it.
"""

import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Span = tuple[int, int]
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Answer:
    """The truth about two mentions; a link is empty if the reference knowledge base has no page.

    `holds` has pairs (predicate, direction): ">" from the subject to the object, "<" the reverse.
    """

    subject_canonical: Span
    subject_link: str
    object_canonical: Span
    object_link: str
    holds: frozenset[tuple[str, str]]
    subject_name: str = ""
    """The words of its canonical mention; empty if the file has none"""
    object_name: str = ""


@dataclass(frozen=True)
class GoldMention:
    """A mention of the gold standard: its type, the number of its entity in the document, its
    canonical mention and link.
    """

    type: str
    entity_number: int
    canonical: Span
    link: str
    gloss: str = ""


class Knowledge:
    """All mentions and relations of a corpus's gold standard."""

    def __init__(self, mentions: Path, gold: Path) -> None:
        self.mentions: dict[tuple[str, Span], GoldMention] = {}
        for row in read_rows(mentions):
            span = int(row["begin"]), int(row["end"])
            canonical = int(row["canonical_begin"]), int(row["canonical_end"])
            mention = GoldMention(
                row["type"],
                int(row["entity"]),
                canonical,
                row.get("link", ""),
                row.get("gloss", ""),
            )
            self.mentions[row["doc_id"], span] = mention
        self._by_document: dict[str, dict[Span, GoldMention]] = defaultdict(dict)
        self.relations: dict[tuple[str, Span, Span], set[str]] = defaultdict(set)
        for row in read_rows(gold):
            subject = int(row["subj_begin"]), int(row["subj_end"])
            object_ = int(row["obj_begin"]), int(row["obj_end"])
            self.relations[row["doc_id"], subject, object_].add(row["predicate"])

    def true_answer(self, document_id: str, subject: Span, object_: Span) -> Answer:
        """Return the truth about the two mentions; a span that is not a gold mention refers only to
        itself.
        """
        forward = self.relations.get((document_id, subject, object_), set())
        backward = self.relations.get((document_id, object_, subject), set())
        subject_mention, object_mention = (
            self.mention(document_id, subject),
            self.mention(document_id, object_),
        )
        holds = frozenset({(name, ">") for name in forward} | {(name, "<") for name in backward})
        names = (
            self.mention(document_id, mention.canonical).gloss
            for mention in (subject_mention, object_mention)
        )
        return Answer(
            subject_mention.canonical,
            subject_mention.link,
            object_mention.canonical,
            object_mention.link,
            holds,
            *names,
        )

    def mentions_of(self, document_id: str) -> dict[Span, GoldMention]:
        """Return all mentions of a document."""
        if not self._by_document:
            for (document, span), mention in self.mentions.items():
                self._by_document[document][span] = mention
        return self._by_document.get(document_id, {})

    def mention(self, document_id: str, span: Span) -> GoldMention:
        """Return the gold mention at a span; an untyped one if there is none."""
        return self.mentions.get((document_id, span)) or GoldMention("", -1, span, "")


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Return the rows of a tab-separated file with a header and no quoting, gzipped or not."""
    with path.open("rb") as raw:
        packed = raw.read(2) == GZIP
    with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as file:
        columns = next(file).rstrip("\n").split("\t")
        for line in file:
            yield dict(zip(columns, line.rstrip("\n").split("\t"), strict=False))
