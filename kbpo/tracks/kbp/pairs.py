"""Reads claims and judgments of pairs of mentions, to decide which questions are still needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kbpo.corpus.cache import read_cached
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.merge import merged_values, merged_values_in_documents
from kbpo.instances.models import Label, Target
from kbpo.tracks.kbp.judge import Span, directed_name
from kbpo.tracks.kbp.merge import merge_labels, needs_no_question


@dataclass(frozen=True)
class Claim:
    """A claim about a pair of mentions: the directed relation between A and B, their types and
    their canonical mentions, without the system.
    """

    part: str
    a_type: str
    b_type: str
    a_canonical: Span
    b_canonical: Span


@dataclass
class Pair:
    """A pair of mentions that people are asked about, with the claims of systems about it and its
    labels.
    """

    target: int
    document: int
    a: Span
    b: Span
    claims: list[Claim] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    closed: bool = False
    """Whether the document was read in full and unmarked relations in it are false."""
    unanswered: bool = False
    """Whether a question about it ended without an answer: it is known to be missing."""
    linked: bool = False
    """Whether people were asked what both mentions refer to, even if they disagreed."""
    asked: bool = False
    """Whether a question about it was answered; later claims that it did not offer are
    nonresponse
    """

    @property
    def unjudged_predicates(self) -> set[str]:
        """Return the claimed predicates, with their directions, that no label judges."""
        return set() if self.closed else {claim.part for claim in self.claims} - self.shown

    def is_undecided(self, part: str) -> bool:
        """Return whether a claim about the pair (`part`, a directed relation) cannot be judged yet,
        under some criterion, and its question has not ended unanswered.
        """
        if self.unanswered or self.asked:
            return False
        return not self.linked or (part not in self.shown and not self.closed)


def pairs_with_claims(target_ids: Sequence[int]) -> list[Pair]:
    """Return the pair targets among these, in order, with the claims of all confirmed
    submissions.
    """
    pairs = _pairs_without_claims(target_ids)
    claims = fetch_rows(
        "SELECT DISTINCT i.target_id, r.name, (i.subject_begin, i.subject_end) <= (i.object_begin,"
        " i.object_end), p.subject_type, p.object_type, p.subject_canonical_begin,"
        " p.subject_canonical_end, p.object_canonical_begin, p.object_canonical_end FROM"
        " instances_instance i JOIN submissions_prediction p ON p.instance_id = i.id JOIN"
        " submissions_submission s ON s.id = p.submission_id JOIN corpus_predicate r ON r.id ="
        " i.predicate_id WHERE i.target_id = ANY(%s) AND s.confirmed_at IS NOT NULL",
        [list(pairs)],
    )
    for target, name, forward, subject_type, object_type, *ends in claims:
        part, subject, object_ = (
            directed_name(name, forward),
            (ends[0], ends[1]),
            (ends[2], ends[3]),
        )
        if forward:
            claim = Claim(part, subject_type, object_type, subject, object_)
        else:
            claim = Claim(part, object_type, subject_type, object_, subject)
        pairs[target].claims.append(claim)
    return [pairs[pk] for pk in dict.fromkeys(target_ids) if pk in pairs]


def find_unanswered(targets_by_submission: Mapping[int, Collection[int]]) -> dict[int, set[int]]:
    """Return, for each submission and some of its targets, those with a claim that was not asked
    about: neither readers of the document nor a question judged it.
    """
    pairs = _pairs_without_claims(sorted(set().union(*targets_by_submission.values())))
    wanted = {
        (submission, target)
        for submission, targets in targets_by_submission.items()
        for target in targets
    }
    submissions = list(targets_by_submission)

    def read_claims(missing: list[int]) -> dict[int, list[tuple[int, str]]]:
        rows = fetch_rows(
            "SELECT p.submission_id, i.target_id, r.name, (i.subject_begin, i.subject_end) <="
            " (i.object_begin, i.object_end) FROM instances_instance i JOIN"
            " submissions_prediction p ON p.instance_id = i.id JOIN corpus_predicate r ON"
            " r.id = i.predicate_id WHERE i.target_id = ANY(%s) AND p.submission_id = ANY(%s)",
            [missing, submissions],
        )
        claimed: dict[int, list[tuple[int, str]]] = {}
        for submission, target, name, forward in rows:
            claimed.setdefault(target, []).append((submission, directed_name(name, forward)))
        return claimed

    found: dict[int, set[int]] = {submission: set() for submission in targets_by_submission}
    for target, claims in read_cached(("claims", *submissions), pairs, read_claims).items():
        for submission, part in claims:
            if (submission, target) in wanted and pairs[target].is_undecided(part):
                found[submission].add(target)
    return found


def _pair_positions(target_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """Return pair target -> its document and the four ends of its two mentions."""
    rows = Target.objects.filter(pk__in=target_ids, kind="pair").values_list(
        "pk", "document_id", "a_begin", "a_end", "b_begin", "b_end"
    )
    return {row[0]: row for row in rows}


def _pairs_without_claims(target_ids: Sequence[int]) -> dict[int, Pair]:
    """Return the pair targets among these with their mentions, without any claim."""
    pairs = {
        pk: Pair(pk, document, (ab, ae), (bb, be))
        for pk, document, ab, ae, bb, be in read_cached(
            "pairs", target_ids, _pair_positions
        ).values()
    }
    documents = {pair.document for pair in pairs.values()}
    for target, value, unanswered in merged_values(pairs, merge_labels):
        pairs[target].shown, pairs[target].unanswered = set(value.get("shown", ())), unanswered
    asked = fetch_rows(
        f"SELECT DISTINCT target_id FROM instances_label l WHERE target_id = ANY(%s)"
        f" AND NOT {Label.IS_MARK} AND value <> '{{}}'::jsonb",
        [list(pairs)],
    )
    for (target,) in asked:
        pairs[target].asked = True
    closed, linked = set[int](), set[tuple[int, Span]]()
    for kind, document, span, value in merged_values_in_documents(
        documents, merge_labels, "document", "mention"
    ):
        if kind == "document" and value.get("closed"):
            closed.add(document)
        elif kind == "mention" and needs_no_question(value):
            linked.add((document, span))
    for pair in pairs.values():
        pair.closed = pair.document in closed
        pair.linked = (pair.document, pair.a) in linked and (pair.document, pair.b) in linked
    return pairs
