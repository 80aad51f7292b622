"""A track's draws, probabilities and judgments, read with plain SQL from what is stored, and
nothing else.

Probabilities and overlaps are worked out here from the predictions, as the definitions say
(Chaganty 2018, section
3.4), not read from where the service keeps them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from travel import Travel

from kbpo.tracks.kbp.judge import Clusters, JudgedRow, Span, verdicts_of_rows

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
KINDS = ("instance", "relation", "entity", "entity_relation")
CRITERIA = ("relation", "linking", "correct")

OF_TRACK = "(SELECT id FROM tracks_track WHERE slug = %s)"
PREDICTIONS = f"""
    SELECT p.submission_id, i.id, i.target_id, i.document_id, r.name, i.subject_begin,
        i.subject_end, i.object_begin,
           i.object_end, p.subject_canonical_begin, p.subject_canonical_end,
               p.object_canonical_begin,
           p.object_canonical_end, p.subject_entity, p.object_entity
    FROM submissions_prediction p JOIN submissions_submission s ON s.id = p.submission_id
    JOIN instances_instance i ON i.id = p.instance_id JOIN corpus_predicate r
        ON r.id = i.predicate_id
    WHERE s.track_id = {OF_TRACK} AND s.status = 'scored'
"""
DRAWS = f"""
    SELECT d.kind, b.submission_id, a.instance_id, a.multiplicity, a.probability
    FROM sampling_sample a JOIN sampling_samplebatch b ON b.id = a.batch_id
    JOIN sampling_samplingdistribution d ON d.id = b.distribution_id
    JOIN submissions_submission s ON s.id = b.submission_id
    WHERE s.track_id = {OF_TRACK} AND b.design = 'iid' ORDER BY a.id
"""
THRESHOLDS = f"""
    SELECT h.target_id, max(h.pi) FROM sampling_threshold h JOIN sampling_samplebatch b
        ON b.id = h.batch_id
    JOIN submissions_submission s ON s.id = b.submission_id WHERE s.track_id = {OF_TRACK} GROUP BY 1
"""
LABELS = """
    SELECT t.id, t.kind, t.document_id, t.a_begin, t.a_end, l.value
    FROM instances_label l JOIN instances_target t ON t.id = l.target_id
    WHERE t.corpus_id = (SELECT corpus_id FROM tracks_track WHERE slug = %s)
    ORDER BY (l.source = 'import'), l.id
"""
DOCUMENTS = (
    "SELECT id, text FROM corpus_document WHERE corpus_id = (SELECT corpus_id FROM tracks_track"
    " WHERE slug = %s)"
)


@dataclass(frozen=True)
class Draws:
    """The draws of one distribution: one row a draw."""

    row: Ids
    owner: Ids


@dataclass(frozen=True)
class Export:
    """m systems, u instances on t targets. NaN: not predicted by the system, or not judged."""

    systems: list[int]
    instance: Ids
    target: Ids
    u: Floats
    p: dict[str, Floats]
    f: dict[str, Floats]
    draws: dict[str, Draws]
    threshold: Floats
    """(u,) highest threshold of each instance's target; 0: none"""

    def overlap(self, kind: str) -> Floats:
        """Σ_x p_i(x) p_j(x)."""
        return np.asarray(self.p[kind].T @ self.p[kind])


def export(travel: Travel) -> Export:
    """Everything that the scores of a track are functions of, but for the model and the annotated
    documents.
    """
    predictions = travel.rows(PREDICTIONS)
    systems = sorted({row[0] for row in predictions})
    instance = np.unique([row[1] for row in predictions])
    target = np.zeros(instance.size, dtype=np.int64)
    for row in predictions:
        target[np.searchsorted(instance, row[1])] = row[2]
    thresholds = dict(travel.rows(THRESHOLDS))
    u = dict(
        travel.service.fetch(
            "SELECT id, u FROM instances_target WHERE id = ANY(%s)", target.tolist()
        )
    )
    return Export(
        systems=systems,
        instance=instance,
        target=target,
        u=np.array([u[one] for one in target.tolist()]),
        p=_probabilities(predictions, systems, instance),
        f=_verdicts(predictions, systems, instance, travel),
        draws=_draws(travel.rows(DRAWS), systems, instance),
        threshold=np.array([thresholds.get(one, 0.0) for one in target.tolist()]),
    )


def _probabilities(
    predictions: list[tuple[Any, ...]], systems: list[int], instance: Ids
) -> dict[str, Floats]:
    predicate = Counter((row[0], row[4]) for row in predictions)
    subject = Counter((row[0], row[13]) for row in predictions)
    facts: dict[tuple[int, int], set[tuple[str, int]]] = defaultdict(set)
    for row in predictions:
        facts[row[0], row[13]].add((row[4], row[14]))
    p = {kind: np.zeros((instance.size, len(systems))) for kind in KINDS}
    for row in predictions:
        at = np.searchsorted(instance, row[1]), systems.index(row[0])
        relations, entities = predicate[row[0], row[4]], subject[row[0], row[13]]
        weights = (
            1.0,
            1 / relations,
            1 / entities,
            len(facts[row[0], row[13]]) / (entities * relations),
        )
        for kind, weight in zip(KINDS, weights, strict=True):
            p[kind][at] = weight
    return {kind: table / table.sum(axis=0) for kind, table in p.items()}


def _draws(rows: list[tuple[Any, ...]], systems: list[int], instance: Ids) -> dict[str, Draws]:
    found = {}
    for kind in KINDS:
        mine = [row for row in rows if row[0] == kind for _ in range(row[3])]
        row = np.searchsorted(instance, [one[2] for one in mine]).astype(np.int64)
        found[kind] = Draws(row, np.array([systems.index(one[1]) for one in mine], dtype=np.int64))
    return found


def _verdicts(
    predictions: list[tuple[Any, ...]], systems: list[int], instance: Ids, travel: Travel
) -> dict[str, Floats]:
    """f_i(x): where labels disagree the imported one decides, else the newest."""
    pairs: dict[int, dict[str, bool]] = defaultdict(dict)
    mentions: dict[int, dict[Span, dict[str, Any]]] = defaultdict(dict)
    for target, kind, document, begin, end, value in travel.rows(LABELS):
        if kind == "pair":
            pairs[target].update({part: part in value["holds"] for part in value["shown"]})
        elif kind == "mention":
            mentions[document][begin, end] = value
    clusters = {pk: Clusters(text, mentions[pk]) for pk, text in travel.rows(DOCUMENTS)}
    rows = []
    for row in predictions:
        subject, object_ = (row[5], row[6]), (row[7], row[8])
        known = pairs[row[2]]
        value = {
            "shown": sorted(known),
            "holds": sorted(part for part, true in known.items() if true),
        }
        rows.append(
            JudgedRow(
                row[4],
                subject <= object_,
                value,
                subject,
                object_,
                (row[9], row[10]),
                (row[11], row[12]),
                clusters[row[3]],
            )
        )
    found = verdicts_of_rows(rows)
    f = {criterion: np.full((instance.size, len(systems)), np.nan) for criterion in CRITERIA}
    for criterion in CRITERIA:
        for row, verdict in zip(predictions, found[criterion], strict=True):
            f[criterion][np.searchsorted(instance, row[1]), systems.index(row[0])] = verdict
    return f
