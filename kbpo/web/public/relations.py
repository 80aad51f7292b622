"""The relations of a track as people read them."""

from __future__ import annotations

import re
from typing import Any

from kbpo.tracks.models import Track


def relations_of(track: Track) -> list[dict[str, Any]]:
    """Return the predicates of a track's schema as a table shows them."""
    return [_relation(predicate) for predicate in track.corpus.schema.get("predicates", ())]


def _relation(predicate: dict[str, Any]) -> dict[str, Any]:
    """A predicate of the schema as the table shows it."""
    types = [f"{subject} → {object_}" for subject, object_ in predicate.get("types") or []]
    template = predicate.get("template") or "{subject} – {object}"
    return {
        "name": predicate.get("label") or predicate["name"],
        "predicate": predicate["name"],
        "types": types,
        "sentence": [
            (piece if place % 2 else "", "A" if piece == "subject" else "B" if place % 2 else piece)
            for place, piece in enumerate(re.split(r"\{(subject|object)\}", template))
        ],
        "definition": predicate.get("definition", ""),
        "example": predicate.get("example", ""),
        "counter_example": predicate.get("counter_example", ""),
    }
