"""Finds the entities of the world that documents name, and that predictions are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from kbpo.corpus.models import Corpus, Document
from kbpo.corpus.names import entity_types
from kbpo.instances.merge import merged_value
from kbpo.instances.models import Label
from kbpo.tracks.kbp.merge import CLUSTER, merge_labels

FROM_PEOPLE = ("expert", "import", "document")


def entities_found(corpus: Corpus, documents: Sequence[int], when: datetime) -> dict[str, int]:
    """Return a mapping: name -> code of its entity, of all entities of the world that people had
    found in these documents by then.

    The names are those of canonical mentions; with a link two names are one entity.
    """
    rows = Label.objects.filter(
        target__document__in=documents,
        target__kind="mention",
        source__in=FROM_PEOPLE,
        created_at__lte=when,
    ).select_related("target")
    labels: dict[tuple[int, int, int], list[Label]] = defaultdict(list)
    for row in rows.order_by("target__document__key", "target__a_begin", "target__a_end", "pk"):
        labels[row.target.lies_in, row.target.a_begin, row.target.a_end].append(row)
    values = {place: merged_value(some, merge_labels) for place, some in labels.items()}
    texts = dict(Document.objects.filter(pk__in=documents).values_list("pk", "text"))
    known = entity_types(corpus)
    codes: dict[str, int] = {}
    names: dict[str, int] = {}
    for (document, _, _), value in values.items():
        canonical = value.get("canonical") or value.get(CLUSTER)
        if value.get("type") not in known or not canonical:
            continue
        at = tuple(canonical)
        name = " ".join(texts[document][slice(*at)].split())
        link = value.get("link") or values.get((document, *at), {}).get("link") or name.casefold()
        if name:
            names.setdefault(name, codes.setdefault(link, len(codes)))
    return names
