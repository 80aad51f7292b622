"""What is judged of relations, what is printed of it, and the columns of the board."""

from __future__ import annotations

from decimal import Decimal

from kbpo.tracks.base import Asking, PoolColumns
from kbpo.tracks.measures import Column, Criterion, Distribution, Measures, Quantity
from scoring.data import THESE

CRITERIA = (
    Criterion("correct", "All of it"),
    Criterion("relation", "Relation"),
    Criterion("linking", "Linking"),
)
WITH_RECALL = ("relation", "correct")
"""Linking has precision only: nobody says what else could have been linked"""

QUANTITIES = (
    Quantity("f1", "F1", "F1", "better in F1", WITH_RECALL),
    Quantity("precision", "Precision", "P", "more precise"),
    Quantity("recall", "Recall", "R", "better in recall", WITH_RECALL, weighed=False),
    Quantity(
        "instance_recall",
        "Recall, every mention of a fact counted",
        criteria=WITH_RECALL,
        weighed=False,
    ),
    Quantity(
        "recall_corrected",
        "Recall, with what annotators miss",
        criteria=WITH_RECALL,
        weighed=False,
    ),
)

COLUMNS = (
    Column("f1", "f1", place="first"),
    Column("precision", "precision", place="second"),
    Column("recall", "recall", place="second"),
    Column("instance_recall", "instance_recall"),
    Column("simple", "precision", "simple", "published", "P, simple"),
    Column("simple_f1", "f1", "simple", "published", "F1, simple"),
    Column("simple_recall", "recall", "simple", "published", "R, simple"),
    Column("joint", "precision", "joint", "published", "P, joint"),
    Column("joint_f1", "f1", "joint", "published", "F1, joint"),
    Column("joint_recall", "recall", "joint", "published", "R, joint"),
    Column("recall_corrected", "recall_corrected"),
    Column("expert", "precision", "expert", "beneath", "corrected", under="precision"),
    Column("expert_recall", "recall", "expert", "beneath", "corrected", under="recall"),
    Column("expert_f1", "f1", "expert", "beneath", "corrected", under="f1"),
)

DISTRIBUTIONS = {
    "instance": Distribution("Every prediction", "1.0::float8"),
    "relation": Distribution("Every relation", "1.0::float8/p.same_predicate"),
    "entity": Distribution("Every entity", "1.0::float8/p.same_subject"),
    "entity_relation": Distribution(
        "Entity × relation",
        "p.subject_facts::float8/(p.same_subject::float8*p.same_predicate)",
    ),
}

MEASURES = Measures(
    CRITERIA,
    QUANTITIES,
    COLUMNS,
    DISTRIBUTIONS,
    mean="precision",
    base="relation",
    plotted=("recall", "precision"),
    published=("simple", "joint"),
    population=THESE,
)

ASKING = (Asking("relation", Decimal("0.05"), 20),)
"""Whole documents are priced by their length (`annotation.questions.order`)."""

POOL = PoolColumns(
    document="i.document_id",
    stratum="i.predicate_id",
    types="p.subject_type || '|' || p.object_type",
    subject="p.subject_canonical_begin::bigint << 32 | p.subject_canonical_end",
    object="p.object_canonical_begin::bigint << 32 | p.object_canonical_end",
)
