"""Creates questions about pairs of mentions, with the content of their pages: the same for all
annotators, without claims or gold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction

from formats.schema import Schema, load_schema
from kbpo.corpus.models import Document, Mention
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import merged_values_in_documents
from kbpo.instances.targets import Place, find_targets, make_targets
from kbpo.tracks.base import QuestionDraft
from kbpo.tracks.kbp.judge import MOST, Span, directed_name, normalized_wording
from kbpo.tracks.kbp.merge import CLUSTER, merge_labels, needs_no_question
from kbpo.tracks.kbp.pairs import Pair, find_unanswered, pairs_with_claims
from kbpo.tracks.models import Track

Names = dict[Span, set[str]]


def canonical_names_by_document(documents: Iterable[int]) -> dict[int, Names]:
    """Return, by document, the canonical mentions that any confirmed system or the corpus has in
    it, with their types.
    """
    names: dict[int, Names] = defaultdict(lambda: defaultdict(set))
    wanted = list(documents)
    rows = fetch_rows(
        "SELECT DISTINCT i.document_id, c.b, c.e, c.type FROM instances_instance i JOIN"
        " submissions_prediction p ON p.instance_id = i.id JOIN submissions_submission s ON s.id ="
        " p.submission_id AND s.confirmed_at IS NOT NULL CROSS JOIN LATERAL (VALUES"
        " (p.subject_canonical_begin, p.subject_canonical_end, p.subject_type),"
        " (p.object_canonical_begin, p.object_canonical_end, p.object_type)) AS c (b, e, type)"
        " WHERE i.document_id = ANY(%s)",
        [wanted],
    )
    mentions = Mention.objects.filter(document__in=wanted, canonical_begin__isnull=False)
    columns = ("document_id", "canonical_begin", "canonical_end", "type")
    for document, begin, end, kind in [*rows, *mentions.values_list(*columns)]:
        names[document][begin, end].add(kind)
    return names


def candidate_mentions(
    document: Document,
    span: Span,
    types: set[str],
    proposed: Iterable[Span],
    names: Names,
    schema: Schema,
) -> list[Span]:
    """Return the possible canonical mentions of a mention, in text order, each wording once,
    ignoring case.

    The mention itself and the systems' proposals have priority. Then come names of its types: those
    that contain its words, at any distance, since each entity is offered by its fullest name; and
    the nearest ones. Empty for dates, numbers and titles, which have no referent.
    """
    kinds = {kind for kind in types if schema.linkable(kind)}
    if not kinds:
        return []
    others = [name for name, kind in names.items() if kind & kinds]
    words = normalized_wording(document.text, span)
    others.sort(
        key=lambda name: (
            f" {words} " not in f" {normalized_wording(document.text, name)} ",
            abs(name[0] - span[0]),
            name,
        )
    )
    alike = _span_of_each_wording(document, [*sorted(set(proposed)), span, *others])
    return sorted(list(alike.values())[:MOST])


def _span_of_each_wording(document: Document, spans: Iterable[Span]) -> dict[str, Span]:
    """Return one span of each wording: the first one with the most frequent spelling."""
    alike: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        alike[normalized_wording(document.text, span)].append(span)
    alike.pop("", None)
    return {words: _most_frequent_span(document, found) for words, found in alike.items()}


def _most_frequent_span(document: Document, spans: list[Span]) -> Span:
    counts = dict.fromkeys((document.gloss(*span) for span in spans), 0)
    if len(counts) > 1:  # only then need the text be read
        counts = {words: document.text.count(words) for words in counts}
    return max(spans, key=lambda span: counts[document.gloss(*span)])


INTERFACE = "relation"
Types = dict[tuple[int, Span], set[str]]
"""(document, span) -> the types of the mention there"""
Settled = dict[tuple[int, Span], set[tuple[str, Span]]]
"""(document, span) -> its type and canonical mention as judged, or the mentions that people
named
"""
BEFORE, AFTER = 2, 1
"""Number of sentences of context before and after those of the pair"""


@transaction.atomic
def draft_questions(
    track: Track, target_ids: Sequence[int], submissions: Sequence[int]
) -> Iterator[QuestionDraft]:
    """Yield the questions about these targets for these submissions, in order. The page offers the
    types that all confirmed submissions, the corpus and people's judgments allow, so that it does
    not depend on the payer.
    """
    waiting = set().union(*find_unanswered(dict.fromkeys(submissions, target_ids)).values())
    pairs = [pair for pair in pairs_with_claims(target_ids) if pair.target in waiting]
    return iter(_draft_pair_questions(track, pairs, _settled_types_and_canonicals(pairs)))


@transaction.atomic
def repeat_questions(
    track: Track, target_ids: Sequence[int], *, is_stored: bool = True
) -> Iterator[QuestionDraft]:
    """Yield one question about each of these pairs that covers all claims about it, as if it had no
    answer yet. With `made=False` no target is created for a mention without one.
    """
    pairs = pairs_with_claims(target_ids)
    for pair in pairs:
        pair.shown, pair.closed = set(), False
    return iter(
        _draft_pair_questions(
            track, pairs, _settled_types_and_canonicals(pairs), is_stored=is_stored
        )
    )


@transaction.atomic
def draft_mention_questions(
    track: Track, document: int, spans: Sequence[Span]
) -> Iterator[QuestionDraft]:
    """Yield one question for one person about the referent of each of these mentions of a
    document.
    """
    places = [Place("mention", document, span) for span in spans]
    targets = make_targets(track.corpus, places)
    pairs = [Pair(targets[place], document, place.a, place.a) for place in places]
    for draft in _draft_pair_questions(track, pairs, _settled_types_and_canonicals(pairs)):
        payload = draft.payload | {"predicates": [], "meanings": {}}
        del payload["b"]
        yield QuestionDraft(draft.target_id, INTERFACE, payload, people=1)


def _draft_pair_questions(
    track: Track, pairs: list[Pair], settled_values: Settled, *, is_stored: bool = True
) -> list[QuestionDraft]:
    schema = load_schema(track.corpus.schema)
    documents = Document.objects.in_bulk({pair.document for pair in pairs})
    names = canonical_names_by_document(documents)
    of_corpus = _corpus_mention_types(pairs)
    for (document_id, _), meanings in settled_values.items():
        for kind, canonical in meanings:
            names[document_id].setdefault(canonical, set()).add(kind)
    places = []
    for pair in pairs:
        places += [Place("mention", pair.document, span) for span in (pair.a, pair.b)]
    mentions = (make_targets if is_stored else find_targets)(track.corpus, places)
    drafts = []
    for pair in pairs:
        document = documents[pair.document]
        types: dict[str, set[str]] = {}
        canonical_of: dict[Span, set[Span]] = {}
        for side, span in (("a", pair.a), ("b", pair.b)):
            place = pair.document, span
            possible = {getattr(claim, f"{side}_type") for claim in pair.claims}
            possible |= of_corpus.get(place, set())
            possible |= {kind for kind, _ in settled_values.get(place, ())}
            types[side] = possible & schema.entity_types.keys()
            canonical_of[span] = {canonical for _, canonical in settled_values.get(place, ())}
        visible, shown = shown_and_settled_predicates(pair, types["a"], types["b"], schema)
        payload = pair_payload(
            pair, document, names[pair.document], types, visible, schema, canonical_of
        )
        for side, span in (("a", pair.a), ("b", pair.b)):
            payload[side]["target"] = mentions.get(Place("mention", pair.document, span), 0)
        drafts.append(QuestionDraft(pair.target, INTERFACE, payload, shown))
    return drafts


def shown_and_settled_predicates(
    pair: Pair, a_types: set[str], b_types: set[str], schema: Schema
) -> tuple[list[str], list[str]]:
    """Return the directed predicates on the page, and those that its answer settles, both in the
    order of the schema.

    The page shows all predicates that the types allow, also settled ones, since an annotator who
    misses the right one would pick a similar one. The answer settles those that were not settled
    yet. A claim that no type allows is settled as false without being shown, unless nothing else is
    open.
    """
    ahead = {predicate.name for predicate in schema.predicates_between(a_types, b_types)}
    back = {predicate.name for predicate in schema.predicates_between(b_types, a_types)}
    allowed = set(_predicate_parts(schema, ahead, back))
    open_claims = pair.unjudged_predicates - allowed
    asks_for_claims = allowed <= pair.shown
    visible, settles = [], []
    for part in _predicate_parts(schema, schema.predicates, schema.predicates):
        if part in allowed or (asks_for_claims and part in open_claims):
            visible.append(part)
        if part not in pair.shown and part in allowed | open_claims:
            settles.append(part)
    return visible, settles or visible


def _predicate_parts(
    schema: Schema, ahead: Collection[str], back: Collection[str]
) -> Iterator[str]:
    for name in schema.predicates:
        if name in ahead:
            yield directed_name(name, True)
        if name in back:
            yield directed_name(name, False)


def pair_payload(
    pair: Pair,
    document: Document,
    names: Names,
    types: dict[str, set[str]],
    visible: list[str],
    schema: Schema,
    canonical_of: dict[Span, set[Span]],
) -> dict[str, Any]:
    """Return the payload of a question about a pair whose two mentions have no targets yet. `types`
    are the possible types of the two sides; `canonical_of` maps a mention to its judged canonical
    mentions.
    """
    first, last = sentence_range_over(document, pair.a, pair.b)
    lit = _text_range(document, first, last, pair)
    shown_first, shown_last = max(0, first - BEFORE), min(len(document.sentences) - 1, last + AFTER)
    begin, end = _text_range(document, shown_first, shown_last, pair)
    sides = {}
    for side, span in (("a", pair.a), ("b", pair.b)):
        proposed = [getattr(claim, f"{side}_canonical") for claim in pair.claims]
        proposed += canonical_of[span]
        options = candidate_mentions(document, span, types[side], proposed, names, schema)
        sides[side] = {
            "span": list(span),
            "gloss": document.gloss(*span),
            "type": next((kind for kind in schema.entity_types if kind in types[side]), ""),
            "candidates": [
                {"span": list(option), "gloss": document.gloss(*option)} for option in options
            ],
        }
    others = []
    for name in sorted(names):
        if begin <= name[0] and name[1] <= end and name not in (pair.a, pair.b):
            others.append(list(name))
    sentences = sentence_payloads(visible, types["a"], types["b"], schema)
    return {
        "document": {"key": document.key, "title": document.title},
        "text": document.text[begin:end],
        "begin": begin,
        "length": len(document.text),
        "sentences": [shown_first + 1, shown_last + 1, len(document.sentences)],
        "lit": list(lit),
        **sides,
        "others": others,
        "predicates": sentences,
        "meanings": predicate_meanings(sentences, schema),
    }


def sentence_payloads(
    visible: Sequence[str], a_types: set[str], b_types: set[str], schema: Schema
) -> list[dict[str, Any]]:
    """Return one sentence for each group of equivalent relations between A and B. The entry `also`
    of a sentence lists the other relations that it states: inverses, and symmetric relations in the
    other direction.

    If the gold standard of a schema annotates the two directions separately, each has its own
    sentence.
    """
    sentences: dict[str, dict[str, Any]] = {}
    sentence_of: dict[str, str] = {}
    for part in visible:
        objects = b_types if part.endswith(">") else a_types
        same = {schema.equivalent_inverse(part[:-1], kind) for kind in objects} - {None}
        turned = sorted(directed_name(str(name), part.endswith("<")) for name in same)
        in_other_words = [sentence_of[other] for other in turned if other in sentence_of]
        if in_other_words:
            sentence_of[part] = in_other_words[0]
            sentences[in_other_words[0]]["also"].append(part)
        else:
            sentence_of[part] = part
            template = schema.predicates[part[:-1]].template
            sentences[part] = {"part": part, "template": template, "also": []}
    return list(sentences.values())


def predicate_meanings(sentences: Iterable[dict[str, Any]], schema: Schema) -> dict[str, Any]:
    """Return the schema's explanations of the predicates of some sentences, for annotators, each
    once; empty if the schema has none.
    """
    meanings = {}
    for name in dict.fromkeys(sentence["part"][:-1] for sentence in sentences):
        predicate = schema.predicates[name]
        meaning = {
            "definition": predicate.definition,
            "example": predicate.example,
            "counter_example": predicate.counter_example,
        }
        if any(meaning.values()):
            meanings[name] = {part: words for part, words in meaning.items() if words}
    return meanings


def sentence_range_over(document: Document, a: Span, b: Span) -> tuple[int, int]:
    """Return the first and the last sentence of the smallest span of whole sentences over two
    mentions.
    """
    first = document.sentence_index_at(min(a[0], b[0]))
    last = bisect_left(document.sentence_end, max(a[1], b[1]))
    return first, max(first, min(last, len(document.sentence_end) - 1))


def _text_range(document: Document, first: int, last: int, pair: Pair) -> Span:
    """Return the begin and end of these sentences, which always include the two mentions."""
    if not document.sentence_begin:
        return 0, len(document.text)
    begin = min(document.sentence_begin[first], pair.a[0], pair.b[0])
    return begin, max(document.sentence_end[last], pair.a[1], pair.b[1])


def _settled_types_and_canonicals(pairs: list[Pair]) -> Settled:
    """Return the judged types and canonical mentions of mentions."""
    documents = {pair.document for pair in pairs}
    return {
        (document, span): {(value["type"], name) for name in _judged_canonicals(value)}
        for _, document, span, value in merged_values_in_documents(
            documents, merge_labels, "mention"
        )
        if value.get("type") and _judged_canonicals(value)
    }


def _judged_canonicals(value: Mapping[str, Any]) -> list[Span]:
    """Return the judged canonical mentions of a mention; if its readers disagree, all that they
    named.
    """
    if canonical := value.get("canonical"):
        return [(canonical[0], canonical[1])]
    if needs_no_question(value) or CLUSTER not in value:
        return []
    ends = [name.split("-") for name in value["votes"]] + [value[CLUSTER]]
    return sorted({(int(begin), int(end)) for begin, end in ends})


def _corpus_mention_types(pairs: list[Pair]) -> Types:
    """Return the types of mentions that came with the corpus."""
    mentions = Mention.objects.filter(document__in={pair.document for pair in pairs})
    columns = mentions.values_list("document_id", "begin", "end", "type")
    return {(document, (begin, end)): {kind} for document, begin, end, kind in columns}
