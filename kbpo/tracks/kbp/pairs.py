"""Reads what is claimed and what is known of pairs of mentions, to tell what must still be asked about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbpo.corpus.fetch import fetch
from kbpo.instances.merge import merged
from kbpo.instances.models import Label, Target
from kbpo.tracks.kbp.judge import Span, directed


@dataclass(frozen=True)
class Claim:
    """What some system says of a pair, seen from its two mentions; nobody can tell who."""

    part: str
    a_type: str
    b_type: str
    a_canonical: Span
    b_canonical: Span


@dataclass
class Pair:
    """A pair target with the claims about it and the labels that count for it."""

    target: int
    document: int
    a: Span
    b: Span
    claims: list[Claim] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    closed: bool = False
    """The document was annotated whole, and what was not marked there is false."""
    given_up: bool = False
    """Somebody asked in vain: it is known to be missing."""
    linked: bool = False
    """Both mentions have labels."""

    @property
    def missing(self) -> set[str]:
        """The claimed predicates, with their directions, that no label judges."""
        return set() if self.closed else {claim.part for claim in self.claims} - self.shown

    @property
    def unanswered(self) -> bool:
        """Whether a claim about the pair cannot be judged yet, under some criterion."""
        return bool(self.claims) and (bool(self.missing) or not self.linked)


def pairs_of(target_ids: Sequence[int], *, submissions: Sequence[int] | None = None) -> list[Pair]:
    """The pair targets among these, in that order; with the claims of these submissions, or of all confirmed ones."""
    rows = Target.objects.filter(pk__in=target_ids, kind="pair").values_list(
        "pk", "document_id", "a_begin", "a_end", "b_begin", "b_end"
    )
    pairs = {pk: Pair(pk, document, (ab, ae), (bb, be)) for pk, document, ab, ae, bb, be in rows}
    _add_claims(pairs, submissions)
    _add_labels(pairs)
    return [pairs[pk] for pk in dict.fromkeys(target_ids) if pk in pairs]


def _add_claims(pairs: dict[int, Pair], submissions: Sequence[int] | None) -> None:
    only = "s.confirmed_at IS NOT NULL" if submissions is None else "s.id = ANY(%s)"
    rows = fetch(
        "SELECT DISTINCT i.target_id, r.name, (i.subject_begin, i.subject_end) <= (i.object_begin, i.object_end),"
        " p.subject_type, p.object_type, p.subject_canonical_begin, p.subject_canonical_end,"
        " p.object_canonical_begin, p.object_canonical_end"
        " FROM instances_instance i JOIN submissions_prediction p ON p.instance_id = i.id"
        " JOIN submissions_submission s ON s.id = p.submission_id"
        f" JOIN corpus_predicate r ON r.id = i.predicate_id WHERE i.target_id = ANY(%s) AND {only}",
        [list(pairs), *([] if submissions is None else [list(submissions)])],
    )
    for target, name, forward, subject_type, object_type, *ends in rows:
        part, subject, object_ = directed(name, forward), (ends[0], ends[1]), (ends[2], ends[3])
        if forward:
            claim = Claim(part, subject_type, object_type, subject, object_)
        else:
            claim = Claim(part, object_type, subject_type, object_, subject)
        pairs[target].claims.append(claim)


def _add_labels(pairs: dict[int, Pair]) -> None:
    documents = {pair.document for pair in pairs.values()}
    labels = list(Label.objects.filter(target__in=pairs))
    values = _values(labels)
    in_vain = {label.target_id for label in labels if not label.value}
    of_documents = Label.objects.filter(target__document__in=documents, target__kind="document")
    closed = {target.document_id for target, value in _on_targets(of_documents) if value.get("closed")}
    of_mentions = Label.objects.filter(target__document__in=documents, target__kind="mention")
    linked = {
        (target.document_id, target.a_begin, target.a_end)
        for target, value in _on_targets(of_mentions)
        if value.get("canonical")
    }
    for pair in pairs.values():
        pair.shown = set(values.get(pair.target, {}).get("shown", ()))
        pair.closed = pair.document in closed
        pair.given_up = pair.target in in_vain
        pair.linked = (pair.document, *pair.a) in linked and (pair.document, *pair.b) in linked


def _on_targets(labels: Any) -> Iterable[tuple[Target, dict[str, Any]]]:
    rows = list(labels.select_related("target"))
    targets = {label.target_id: label.target for label in rows}
    return [(targets[pk], value) for pk, value in _values(rows).items()]


def _values(labels: Iterable[Label]) -> dict[int, dict[str, Any]]:
    by_target: dict[int, list[Label]] = defaultdict(list)
    for label in labels:
        by_target[label.target_id].append(label)
    return {target: merged(some) for target, some in by_target.items()}
