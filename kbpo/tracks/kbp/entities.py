"""Finds the entities of the world that documents name, and that predictions are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from django.db.models import Count, Max

from kbpo.corpus.fetch import fetch
from kbpo.corpus.models import Corpus, Document, Mention
from kbpo.corpus.names import entity_types, occurrences
from kbpo.instances.merge import merged
from kbpo.instances.models import Label
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.merge import CLUSTER, together
from kbpo.tracks.kbp.traits import IN_CORPUS, in_corpus, predicted_names
from kbpo.tracks.models import Track
from kbpo.tracks.recall import AboutEntities, Named

FROM_PEOPLE = ("expert", "import", "document")


def entities_found(corpus: Corpus, documents: Sequence[int], when: datetime) -> dict[str, int]:
    """Name -> code of its entity, of all entities of the world that people had found in these
    documents by then.

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
    values = {place: merged(some, together) for place, some in labels.items()}
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


def entities_named(track: Track, documents: Sequence[int], when: datetime) -> Named:
    """Return the entities of a track's corpus: of the mentions that came with it, else those that
    its sampled runs predict something of, by which slices are cut too; without runs those that
    people had found in these documents by then, wherever a text says their names.
    """
    corpus = track.corpus
    if mentions := fetch(IN_CORPUS, in_corpus(corpus)):
        return Named("corpus", mentions)
    if predicted := predicted_names(track):
        return Named("runs", predicted)
    names = entities_found(corpus, documents, when)
    return Named("people", [(*occurrence, True) for occurrence in occurrences(corpus, names)])


def entities_known(track: Track, documents: Sequence[int]) -> list[object]:
    """Return what `entities_named` follows from: the mentions that came with the corpus, the runs
    that were sampled, and what people said of mentions in these documents.
    """
    mentions = Mention.objects.filter(document__corpus=track.corpus)
    sampled = Submission.objects.filter(track=track, sampled_at__isnull=False)
    labels = Label.objects.filter(target__document__in=documents, target__kind="mention")
    counts = (
        mentions.aggregate(Count("pk"), Max("pk")),
        sampled.aggregate(Count("pk"), Max("sampled_at")),
        labels.aggregate(Count("pk"), Max("created_at")),
    )
    return [item for count in counts for item in sorted(count.items())]


def about_entities(submission_id: int) -> AboutEntities:
    """Return what a submission's predictions are about: their subjects, and each of them once with
    a predicate and an object.
    """
    predictions = fetch(
        "SELECT p.subject_entity, i.predicate_id, p.object_entity FROM submissions_prediction p"
        " JOIN instances_instance i ON i.id = p.instance_id WHERE p.submission_id = %s"
        " ORDER BY p.instance_id",
        [submission_id],
    )
    triples = np.array(predictions, dtype=np.int64).reshape(-1, 3)
    _, entity = np.unique(triples[:, 0], return_inverse=True)
    _, fact = np.unique(triples, axis=0, return_inverse=True)
    return AboutEntities(entity, fact.ravel())
