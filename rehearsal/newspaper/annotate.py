"""Documents with offsets: text, tokens, sentences, mentions, and every relation that a sentence
states.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from formats.lookup import DocumentView
from rehearsal.newspaper.compose import Story
from rehearsal.newspaper.invent import Entity, Filler, Value
from rehearsal.newspaper.lexicon import PREDICATE_INVERSE
from rehearsal.newspaper.render import Claim, Sentence

Span = tuple[int, int]
Statement = tuple[int, str, int]  # subject cluster, predicate, object cluster
TOKEN = re.compile(r"(?:[A-Z]\.){2,}|\d+(?:[.,]\d+)*|\w+|[’']s\b|\S")


@dataclass
class Cluster:
    """All mentions of one entity or value in a document."""

    index: int
    filler: Filler
    spans: list[Span] = field(default_factory=list)

    def canonical(self) -> Span:
        """The first longest mention."""
        return min(self.spans, key=lambda span: (span[0] - span[1], span))

    @property
    def link(self) -> str:
        """The title in the reference knowledge base; empty if there is none."""
        return self.filler.link if isinstance(self.filler, Entity) else ""


@dataclass
class SentenceFacts:
    """What one sentence says (true) or seems to say (false), between clusters, with the ease of its
    wording.
    """

    span: Span
    true: dict[Statement, float] = field(default_factory=dict)
    seeming: dict[Statement, float] = field(default_factory=dict)


@dataclass
class Annotated:
    """A finished document with all that is known about it."""

    id: str
    date: str
    title: str
    text: str = ""
    tokens: list[Span] = field(default_factory=list)
    sentences: list[SentenceFacts] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)

    def mentions(self) -> list[tuple[Span, Cluster]]:
        """All mentions in the order of the text."""
        return sorted(
            (span, cluster) for cluster in self.clusters for span in cluster.spans
        )  # spans are unique

    def inside(self, cluster: int, span: Span) -> list[Span]:
        """The cluster's mentions inside a span of text."""
        return [m for m in self.clusters[cluster].spans if span[0] <= m[0] and m[1] <= span[1]]

    def gold(self) -> list[tuple[Span, str, Span, Span]]:
        """Every (subject, predicate, object, sentence) that holds: all pairs of mentions in a
        sentence that says so.
        """
        facts = set()
        for sentence in self.sentences:
            for left, predicate, right in sentence.true:
                for subject in self.inside(left, sentence.span):
                    for object_ in self.inside(right, sentence.span):
                        facts.add((subject, predicate, object_, sentence.span))
        return sorted(facts)

    def view(self) -> DocumentView:
        """The document as the readers of formats see it."""
        return DocumentView(
            self.id,
            self.text,
            [b for b, _ in self.tokens],
            [e for _, e in self.tokens],
            [s.span[0] for s in self.sentences],
            [s.span[1] for s in self.sentences],
        )


def annotate(story: Story) -> Annotated:
    """The story with its text joined and all offsets counted."""
    document = Annotated(story.id, story.date.isoformat(), story.title)
    clusters: dict[object, Cluster] = {}
    for paragraph in story.paragraphs:
        for number, sentence in enumerate(paragraph):
            if document.text:
                document.text += " " if number else "\n\n"
            _append(document, sentence, clusters)
    document.clusters = list(clusters.values())
    return document


def _append(document: Annotated, sentence: Sentence, clusters: dict[object, Cluster]) -> None:
    start = len(document.text)
    document.text += sentence.text
    document.tokens += [(start + t.start(), start + t.end()) for t in TOKEN.finditer(sentence.text)]
    for begin, end, filler in sentence.mentions:
        cluster = clusters.setdefault(_identity(filler), Cluster(len(clusters), filler))
        cluster.spans.append((start + begin, start + end))
    facts = SentenceFacts((start, len(document.text)))
    facts.true = dict(_directions((c for c in sentence.claims if c.true), clusters))
    facts.seeming = dict(_directions((c for c in sentence.claims if not c.true), clusters))
    document.sentences.append(facts)


def _identity(filler: Filler) -> object:
    return (filler.type, filler.text.lower()) if isinstance(filler, Value) else filler.key


def _directions(
    claims: Iterable[Claim], clusters: dict[object, Cluster]
) -> list[tuple[Statement, float]]:
    """Each claim, and its inverse if the schema has one."""
    statements = []
    for claim in claims:
        left, right = (
            clusters[_identity(claim.subject)].index,
            clusters[_identity(claim.object)].index,
        )
        statements.append(((left, claim.predicate, right), claim.ease))
        if claim.predicate in PREDICATE_INVERSE:
            statements.append(((right, PREDICATE_INVERSE[claim.predicate], left), claim.ease))
    return statements
