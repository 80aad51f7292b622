"""The words and measures of tracks on which relations are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kbpo.corpus.models import Corpus, Predicate
from kbpo.tracks.base import Asking, Facet, Group, Pages, PoolColumns, Words
from kbpo.tracks.measures import Column, Criterion, Distribution, Measures, Quantity
from scoring.data import THESE

CRITERIA = (
    Criterion("correct", "All of it"),
    Criterion("relation", "Relation"),
    Criterion("linking", "Linking"),
)
WITH_RECALL = ("relation", "correct")
"""Criteria with recall; linking has precision only, since missed links are unknown"""

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


WORDS = Words(
    item="relation",
    items="relations",
    kind="relations in documents",
    system="a knowledge base",
    file="Knowledge base file",
    packed="Each may be packed with gzip, or alone in a ZIP archive; its first bytes tell.",
    doors={
        "tac_kb": "TAC KBP knowledge base",
        "json_lines": "JSON Lines",
        "docred": "DocRED predictions",
    },
    stratum="relation",
    strata="relations",
    offer=(
        "Upload a knowledge base. People judge a sample of it. You get a score that says how sure"
        " it is."
    ),
    promise=(
        "Your own predictions are judged, not compared with a pool of other people’s. So a system"
        " that finds something new is not punished for it."
    ),
    once="Relations of the same two mentions are asked about, and counted, once.",
    together="mentions",
    parts={"relation": "Relation", "subject": "Subject", "object": "Object"},
    entity="Name of the subject or object, or a word of it",
    unanswered=(
        "Those of the same relation that were answered stand for them: their chances are multiplied"
        " by the share of that relation that was answered. Relations of which little was asked are"
        " taken together."
    ),
    schema="Types and relations, with the sentence that annotators read for each",
    published_long="As published: simple and joint estimators",
    described="which systems predict a relation, how sure they are, what kind it is",
    description=(
        "On-demand evaluation of knowledge bases: people judge a sample of your predictions, and"
        " the leaderboard shows each score with its interval."
    ),
)

PAGES = Pages(
    board_notes="tracks/kbp/board_notes.html",
    board_end="tracks/kbp/board_end.html",
    formats="tracks/kbp/formats.html",
    facts="tracks/kbp/upload_facts.html",
    more="tracks/kbp/upload_more.html",
    about="tracks/kbp/about.html",
    claim="tracks/kbp/claim.html",
    judged="tracks/kbp/judged.html",
    parts="tracks/kbp/parts.html",
)

GROUPS = {
    "relation": Group("Relation", "predicate", strata=True),
    "type": Group("Entity type", "subject_type"),
    "sentence": Group(
        "Same sentence",
        "sentence",
        ("same", "across"),
        {"same": "Both names in one sentence", "across": "Names in different sentences"},
    ),
}


def predicate_words(corpus: Corpus) -> dict[int, tuple[str, str]]:
    """Return primary key of each predicate -> its name, and its name on pages."""
    names = corpus.relation_names()
    predicates = Predicate.objects.filter(corpus=corpus).order_by("position")
    return {pk: (name, names.get(name, name)) for pk, name in predicates.values_list("pk", "name")}


FACETS = (
    Facet("relation", "Relation", "predicate_id", predicate_words),
    Facet("type", "Entity type", "subject_type"),
)
FOUND_COLUMNS = ("document", "subject", "predicate", "object", "claim")


def catalogue_entry(predicate: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a predicate of a schema with its name on pages, as the table of relations shows it."""
    template = predicate.get("template") or "{subject} – {object}"
    sentence = []
    for place, piece in enumerate(re.split(r"\{(subject|object)\}", template)):
        if place % 2:
            sentence.append((piece, "A" if piece == "subject" else "B"))
        else:
            sentence.append(("", piece))
    return {
        "name": name,
        "predicate": predicate["name"],
        "types": [f"{subject} → {object_}" for subject, object_ in predicate.get("types") or []],
        "sentence": sentence,
        "definition": predicate.get("definition", ""),
        "example": predicate.get("example", ""),
        "counter_example": predicate.get("counter_example", ""),
    }
