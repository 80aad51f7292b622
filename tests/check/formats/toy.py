"""A toy corpus that a person can check by hand, and short ways to read files over it."""

import io
import json
from dataclasses import replace

from formats.annotations import read_gold, read_mentions
from formats.corpus import read_corpus
from formats.doors import read_claims
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.opening import Limits, open_text
from formats.relation import RelationClaim
from formats.schema import shipped_schema

TAC = shipped_schema("tac_kbp")
TEXTS = {
    "D1": (
        "Carrie Fisher was an actress. Her mother Debbie Reynolds was an actress too. "
        "Fisher died on December 27, 2016."
    ),
    "D2": (
        "Reynolds married Eddie Fisher in 1955. Debbie Reynolds and Fisher had a"
        " daughter, Carrie Fisher."
    ),
    "D3": "José Núñez works for Acme “Labs” in Oslo.",
}
LIMITS = Limits()


def corpus_lines() -> bytes:
    """The toy corpus as a file."""
    documents = [
        {"id": name, "title": name, "date": "2016-12-28", "text": text}
        for name, text in TEXTS.items()
    ]
    return "\n".join(map(json.dumps, documents)).encode()


def toy_corpus(text: bytes | None = None) -> MemoryCorpus:
    """The toy corpus, or the corpus in a file."""
    report = Report()
    lines = open_text(io.BytesIO(corpus_lines() if text is None else text), LIMITS, report)
    corpus = MemoryCorpus(
        [DocumentView.from_record(record) for record in read_corpus(lines, LIMITS, report)]
    )
    assert not report.messages
    return corpus


TOY = toy_corpus()


def span(document: str, text: str, nth: int = 0) -> tuple[int, int]:
    """Where the nth occurrence of a string stands in a document."""
    at = -1
    for _ in range(nth + 1):
        at = TEXTS[document].index(text, at + 1)
    return at, at + len(text)


def tac(document: str, text: str, nth: int = 0) -> str:
    """The same in TAC's notation, with an inclusive end."""
    begin, end = span(document, text, nth)
    return f"{document}:{begin}-{end - 1}"


def whole(document: str) -> str:
    """A provenance over the whole document."""
    return f"{document}:0-{len(TEXTS[document]) - 1}"


def entity(
    name: str, kind: str, *places: tuple[str, str] | tuple[str, str, int], canonical: bool = True
) -> str:
    """The lines of an entity with its mentions; the first one of a document is the canonical
    one.
    """
    lines, documents = [f"{name}\ttype\t{kind}"], set()
    for document, text, *nth in places:
        where = tac(document, text, *nth)
        gloss = json.dumps(text, ensure_ascii=False)
        lines.append(f"{name}\tmention\t{gloss}\t{where}")
        if canonical and document not in documents:
            documents.add(document)
            lines.append(f"{name}\tcanonical_mention\t{gloss}\t{where}")
    return "\n".join(lines)


CARRIE = entity(":E1", "PER", ("D1", "Carrie Fisher"), ("D1", "Fisher", 1), ("D2", "Carrie Fisher"))
DEBBIE = entity(
    ":E2", "PER", ("D1", "Debbie Reynolds"), ("D2", "Debbie Reynolds"), ("D2", "Reynolds", 0)
)
EDDIE = entity(":E3", "PER", ("D2", "Eddie Fisher"), ("D2", "Fisher", 1))
PARENTS = f":E1\tper:parents\t:E2\t{whole('D1')}\t0.8"


def kb(*blocks: str) -> bytes:
    """A knowledge base with its run id."""
    return "\n".join(("toy_run", *blocks, "")).encode()


def read(
    data: bytes, schema=TAC, limits: Limits = LIMITS, corpus=TOY
) -> tuple[list[RelationClaim], Report]:
    """The claims of a submitted file, and the report."""
    report = Report(limits.messages)
    return list(read_claims(io.BytesIO(data), corpus, schema, limits, report)), report


def read_documents(data: bytes, limits: Limits = LIMITS) -> Report:
    """The report about a corpus file."""
    report = Report()
    list(read_corpus(open_text(io.BytesIO(data), limits, report), limits, report))
    return report


def read_table(kind: str, data: bytes) -> tuple[list, Report]:
    """The records of a table of annotations, and the report."""
    report = Report()
    reader = {"mentions": read_mentions, "gold": read_gold}[kind]
    return list(reader(open_text(io.BytesIO(data), LIMITS, report), TOY, TAC, report)), report


def small(**limits: int) -> Limits:
    """The default limits with some of them made small."""
    return replace(LIMITS, **limits)
