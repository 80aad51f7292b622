"""A baseline that predicts a relation if words of the relation's name are between two names of a
sentence.

    python baseline.py documents.jsonl.gz schema.json mentions.jsonl.gz > baseline.jsonl

Needs only Python. A simple start for your own system: change what you like.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from itertools import permutations
from typing import Any

Record = dict[str, Any]

MOST_CHARACTERS = 60  # between two names; beyond that, words say little
LITTLE = {"a", "an", "and", "at", "by", "for", "from", "in", "is", "of", "or", "the", "to", "was"}


def word_stems(text: str) -> set[str]:
    """Return the content words of a text without their endings: "founded" -> "found"."""
    words = re.findall(r"[a-z]+", re.sub(r"\{\w+\}", " ", text.lower()))
    return {re.sub(r"(?:ed|s|er|ing|ment)$", "", word)[:6] for word in words} - LITTLE


def name_spans(document: Record, typed: list[Any]) -> list[tuple[Any, ...]]:
    """Return (begin, end, type) of each name: the given mentions, otherwise runs of capitalised
    words.
    """
    if typed:
        return [tuple(mention) for mention in typed]
    runs = re.finditer(r"\b[A-Z]\w+(?: [A-Z]\w+)*", document["text"])
    return [(run.start(), run.end(), None) for run in runs]


def predict_claims(document: Record, predicates: list[Any], typed: list[Any]) -> Iterator[Record]:
    """Yield one claim for each pair of names with words of a predicate between them."""
    names = name_spans(document, typed)
    kinds = {name[:2]: name[2] for name in names}  # where it is not known, the first that is taken
    claimed = set()
    for begin, end in document["sentences"]:
        inside = [name for name in names if begin <= name[0] and name[1] <= end]
        for subject, object_ in permutations(inside, 2):
            first, second = sorted((subject, object_))
            if not 0 <= second[0] - first[1] <= MOST_CHARACTERS:
                continue
            between = word_stems(document["text"][first[1] : second[0]])
            known = (kinds[subject[:2]], kinds[object_[:2]])
            best, ends, share = "", known, 0.0
            for predicate, words, types in predicates:
                fitting = allowed_types(known, types)
                found = len(words & between) / len(words) if words and fitting else 0.0
                if fitting and found > share:
                    best, ends, share = predicate, fitting, found
            if best and (best, first, second) not in claimed:  # in one direction alone
                claimed.add((best, first, second))
                kinds[subject[:2]], kinds[object_[:2]] = ends
                claim: Record = {"doc": document["id"], "subject": subject[:2], "predicate": best}
                claim |= {"object": object_[:2], "confidence": round(share, 2)}
                if all(ends):
                    claim |= {"subject_type": ends[0], "object_type": ends[1]}
                yield claim


def allowed_types(known: tuple[Any, Any], types: list[Any]) -> tuple[Any, Any] | None:
    """Return the first types that a predicate allows and that the two names may have; None if there
    are none.
    """
    if not types:
        return known
    for first, second in types:
        if known[0] in (None, first) and known[1] in (None, second):
            return first, second
    return None


def predicate_keywords(schema: Record) -> list[tuple[str, set[str], list[Any]]]:
    """Return (name, words, allowed types) of each predicate."""
    return [
        (one["name"], word_stems(one.get("template") or one["name"]), one.get("types") or [])
        for one in schema["predicates"]
    ]


def main(documents: str, schema: str, mentions: str = "") -> None:
    """Print the claims, one on each line."""
    with open(schema, encoding="utf-8") as file:
        predicates = predicate_keywords(json.load(file))
    typed: dict[str, list[Any]] = {}
    if mentions:
        with gzip.open(mentions, "rt", encoding="utf-8") as lines:
            typed = {one["id"]: one["mentions"] for one in map(json.loads, lines)}
    with gzip.open(documents, "rt", encoding="utf-8") as lines:
        for document in map(json.loads, lines):
            for claim in predict_claims(document, predicates, typed.get(document["id"], [])):
                print(json.dumps(claim))


if __name__ == "__main__":
    main(*sys.argv[1:])
