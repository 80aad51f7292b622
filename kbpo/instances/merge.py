"""Merges the labels of one target into the value that counts now.

What most people said stands in the place of what was said before; single ratings join those that
there are, since each is a draw of its own from what people think.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from kbpo.corpus.fetch import fetch
from kbpo.corpus.remembered import each
from kbpo.instances.models import Label

T = TypeVar("T")
Value = dict[str, Any]
RATINGS = "ratings"
"""The part of a value that holds single ratings: criterion -> a list, one entry a person"""
RANK = {source: rank for rank, source in enumerate(Label.PRECEDENCE)}
ORDER = "array_position(%s::text[], l.source::text) DESC, l.created_at, l.id"
"""From the weakest label of a target to the one that decides"""
PEOPLE = "people"
"""The part that says who gave each rating, as keyed hashes: criterion -> a list, one entry a rating
"""
UNDECIDED = "undecided"
"""In a mention's value: people were asked what it refers to, and no more than half agree"""
ELSEWHERE = "elsewhere"
"""In a mention's value: more than half say that it refers to none of the names that they saw"""
OFFERED = "offered"
"""In a mention's value: the names that people saw"""
OTHER = "other"
"""The vote for none of these"""
AGGREGATED = (
    *("shown", "holds", "votes", "asked", "canonical", "titles", "link"),
    *(UNDECIDED, ELSEWHERE, OFFERED),
)
"""What of a value follows from all answers about its target"""
PARTED = frozenset({RATINGS, "shown"})
"""What of a value counts by its parts, or is joined"""
UNTIL = " AND l.id <= %s"
"""Labels up to a number: what was known then"""
PUBLIC = " AND l.public_at <= statement_timestamp()"
"""What everybody may see"""
IN_PLACE = """
    NOT EXISTS (SELECT 1 FROM instances_label later WHERE later.target_id = l.target_id
                AND later.again IS NOT NULL AND later.question = l.question
                AND (later.created_at, later.id) > (l.created_at, l.id))
"""
"""A label l in whose place no other was made"""


def in_place(labels: Iterable[tuple[T, int | None, int | None]]) -> list[T]:
    """Of labels of one target, in their order, each with its question and how often that had been
    aggregated before, return those that no other was made in the place of. What was made again
    stands where its question stood first, so that it hides nothing that had hidden it.
    """
    in_order = list(labels)
    if all(again is None for _, _, again in in_order):
        return [label for label, _, _ in in_order]
    groups: dict[tuple[str, int], list[T]] = {}
    for place, (label, question, again) in enumerate(in_order):
        of_its_own = ("place", place)
        group = groups.setdefault(of_its_own if question is None else ("question", question), [])
        if again is not None:
            group.clear()
        group.append(label)
    return list(chain.from_iterable(groups.values()))


def standing(labels: Iterable[Label]) -> list[Label]:
    """Of labels of any targets, those that no other was made in the place of."""
    by_target: dict[int, list[tuple[Label, int | None, int | None]]] = {}
    for label in sorted(labels, key=lambda label: (label.created_at, label.pk)):
        of_target = by_target.setdefault(label.target_id, [])
        of_target.append((label, label.question, label.again))
    return list(chain.from_iterable(in_place(of_target) for of_target in by_target.values()))


def merged(labels: Iterable[Label]) -> Value:
    """The value of a target, given all its labels: for each part the highest source decides.

    What the crowd said adds up over all questions about the target (`aggregated`); of other sources
    the newest label decides. A pair's parts are the directed predicates that were shown; every
    other value counts whole. Labels that were given up are empty, so that they never hide a
    judgment; but of what was made again the last alone counts.
    """
    ordered = sorted(labels, key=lambda one: (-RANK[one.source], one.created_at, one.pk))
    return _merged(standing_said(Said.of(label) for label in ordered))


class Said(NamedTuple):
    """What one label says."""

    value: Value
    source: str
    n: int
    question: int | None
    again: int | None = None

    @classmethod
    def of(cls, label: Label) -> Said:
        """The same, of a label's row."""
        return cls(label.value, label.source, label.n, label.question, label.again)


def standing_said(labels: Iterable[Said]) -> list[Said]:
    """Return what those labels of one target say that no other was made in the place of."""
    labels = list(labels)
    if len(labels) == 1:
        return labels
    return in_place((label, label.question, label.again) for label in labels)


def values_of(
    targets: Collection[int], *, public: bool = False, until: int | None = None
) -> Iterator[tuple[int, Value, bool]]:
    """The targets that have a label (a public one; one up to a number), with the value that counts
    and whether somebody asked without an answer.
    """
    found = each(
        ("values", public, until), targets, lambda missing: _values(missing, public, until)
    )
    for target in sorted(found):
        yield target, *found[target]


def _values(targets: list[int], public: bool, until: int | None) -> dict[int, tuple[Value, bool]]:
    rows = fetch(
        "SELECT l.target_id, l.value, l.source, l.n, l.question, l.again FROM instances_label l"
        f" WHERE l.target_id = ANY(%s){PUBLIC if public else ''}{UNTIL if until else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [targets, *([until] if until else []), list(Label.PRECEDENCE)],
    )
    found = {}
    for target, group in groupby(rows, key=itemgetter(0)):
        said = standing_said(Said(json.loads(row[1]), *row[2:]) for row in group)
        # A mark that was taken back asked nobody.
        unanswered = any(not one.value and one.source != Label.Source.DOCUMENT for one in said)
        found[target] = _merged(said), unanswered
    return found


def values_inside(
    documents: Collection[int], *kinds: str, public: bool = False, until: int | None = None
) -> Iterator[tuple[str, int, tuple[int, int], Value]]:
    """Kind, document, first span and value that counts of every target of these kinds that has a
    (public) label (up to a number), in documents.
    """
    chosen = sorted(str(kind) for kind in kinds)
    found = each(
        ("values inside", *chosen, public, until),
        documents,
        lambda missing: _values_inside(missing, chosen, public, until),
    )
    for document, targets in found.items():
        for kind, span, value in targets:
            yield kind, document, span, value


def _values_inside(
    documents: list[int], kinds: list[str], public: bool, until: int | None
) -> dict[int, list[tuple[str, tuple[int, int], Value]]]:
    rows = fetch(
        "SELECT l.target_id, l.value, l.source, l.n, l.question, l.again, t.kind,"
        " t.document_id, t.a_begin, t.a_end"
        " FROM instances_target t JOIN instances_label l ON l.target_id = t.id WHERE t.document_id"
        f" = ANY(%s) AND t.kind = ANY(%s){PUBLIC if public else ''}{UNTIL if until else ''}"
        f" ORDER BY l.target_id, {ORDER}",
        [documents, kinds, *([until] if until else []), list(Label.PRECEDENCE)],
    )
    found: dict[int, list[tuple[str, tuple[int, int], Value]]] = {}
    for _, group in groupby(rows, key=itemgetter(0)):
        labels = list(group)
        kind, document, begin, end = labels[0][6:]
        said = [Said(json.loads(row[1]), *row[2:6]) for row in labels]
        found.setdefault(document, []).append((kind, (begin, end), _merged(standing_said(said))))
    return found


def _merged(said: Sequence[Said]) -> Value:
    """The value that counts, of labels from the weakest to the one that decides."""
    value: Value = {}
    if len(said) == 1 and not PARTED & said[0].value.keys():
        value.update(said[0].value)
        if value.get("canonical"):
            value.pop(UNDECIDED, None)
        return value
    shown: dict[str, bool] = {}
    ratings: dict[str, list[float]] = {}
    people: dict[str, list[str]] = {}
    for one in said:
        names = one.value.get(PEOPLE, {})
        for criterion, given in one.value.get(RATINGS, {}).items():
            ratings.setdefault(criterion, []).extend(given)
            people.setdefault(criterion, []).extend(names.get(criterion, [""] * len(given)))
    crowd = [one for one in said if one.source == Label.Source.CROWD and one.value]
    stronger = [one for one in said if RANK[one.source] < RANK[Label.Source.CROWD]]
    weaker = [one for one in said if RANK[one.source] > RANK[Label.Source.CROWD]]
    together = [one.value for one in weaker] + [aggregated(crowd)] + [one.value for one in stronger]
    for part_of_it in map(dict, together):
        _name(value, part_of_it)
        holds = set(part_of_it.get("holds", ()))
        shown.update({part: part in holds for part in part_of_it.get("shown", ())})
        value.update(part_of_it)
    if value.get("canonical"):
        value.pop(UNDECIDED, None)  # a weaker source tells what people were divided about
    if ratings:
        value |= {RATINGS: ratings, PEOPLE: people}
    if shown:
        value |= {
            "shown": sorted(shown),
            "holds": sorted(part for part, true in shown.items() if true),
        }
    return value


def _name(weaker: Value, stronger: Value) -> None:
    """Nothing; what a weaker source says of a mention and what a stronger one does are left so that
    they may be joined. Who saw no other name, or found none of them right, contradicts nobody who
    knows one that they did not see.
    """
    before, seen = weaker.get("canonical"), stronger.get(OFFERED, ())
    picked, elsewhere = "canonical" in stronger, ELSEWHERE in stronger
    if before and ((picked and len(seen) == 1) or (elsewhere and before not in seen)):
        for part in ("canonical", "votes", ELSEWHERE, OFFERED):
            stronger.pop(part, None)
    elif picked or elsewhere:
        for part in ("canonical", ELSEWHERE, OFFERED):
            weaker.pop(part, None)


def is_open(value: Mapping[str, Any]) -> bool:
    """Whether a mention may yet refer to a name that people did not see: they saw its own alone, or
    say that it is none of them.
    """
    return len(value.get(OFFERED, ())) == 1 or (OFFERED in value and ELSEWHERE in value)


def is_named(value: Mapping[str, Any]) -> bool:
    """Whether more than half agree on what a mention refers to, or that it is none of the names."""
    return bool(value.get("canonical") or value.get(ELSEWHERE))


def aggregated(said: Sequence[Said]) -> Value:
    """The value of a target by all answers to all questions about it: a later question never
    overrides an earlier one, it joins it.

    A predicate holds, a mention is canonical, a title is the link, if more than half of all who
    were asked for it say so. Where people are divided about the canonical mention there is none,
    and the value says that it is `UNDECIDED`; where more than half found none of the names right,
    `ELSEWHERE`. Of one question counts its newest label.
    """
    of_question: dict[tuple[str, int], Said] = {}
    for place, label in enumerate(said):
        of_its_own = ("place", place)
        name = of_its_own if label.question is None else ("question", label.question)
        of_question[name] = label
    labels = list(of_question.values())
    if len(labels) < 2:
        return dict(labels[0].value) if labels else {}
    value: Value = {}
    for one in labels:
        value |= {key: told for key, told in one.value.items() if key not in AGGREGATED}
    return value | _predicates(labels) | _mention(labels)


def _predicates(labels: Sequence[Said]) -> Value:
    """What is shown of a pair, what holds, and the votes for each part; nothing of other
    targets.
    """
    votes: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for label in labels:
        for part in label.value.get("shown", ()):
            asked[part] += max(1, label.n)
            votes[part] += _votes_for(part, label)
    if not asked:
        return {}
    return {
        "shown": sorted(asked),
        "holds": sorted(part for part in asked if 2 * votes[part] > asked[part]),
        "votes": {part: n for part, n in sorted(votes.items()) if n},
        "asked": dict(sorted(asked.items())),
    }


def _votes_for(part: str, label: Said) -> int:
    """How many of those who were asked in one question say that a predicate holds. All do, or none,
    where its label says otherwise than most did: a model that knows them weighed them.
    """
    n, holds = max(1, label.n), part in label.value["holds"]
    votes = int(label.value.get("votes", {}).get(part, 0))
    if (2 * votes > n) == holds and votes <= n:
        return votes
    return n if holds else 0


def _mention(labels: Sequence[Said]) -> Value:
    """The canonical mention and the title that most gave, with the votes; nothing of other targets.
    Who found none of the names right, or saw one alone, has no vote once others saw more names.
    """
    of_mention = [label for label in labels if is_named(label.value) or UNDECIDED in label.value]
    if not of_mention:
        return {}
    titles: Counter[str] = Counter()
    votes: Counter[str] = Counter()
    offered = {tuple(span) for one in of_mention for span in one.value.get(OFFERED, ())}
    n = asked = sum(max(1, one.n) for one in of_mention)
    for one in of_mention:
        titles.update(_of_titles(one))
        given = Counter(_of_canonicals(one))
        if OFFERED in one.value and any(_saw_more(other, one) for other in of_mention):
            void = set(given) if len(one.value[OFFERED]) == 1 else {OTHER}
            asked -= sum(given.pop(choice, 0) for choice in void)
        votes.update(given)
    return mention_value(votes, titles, asked, sorted(map(list, offered)), n)


def _saw_more(one: Said, other: Said) -> bool:
    """Whether people saw names in one question which in another they did not, and all of its."""
    seen, less = ({tuple(span) for span in of.value.get(OFFERED, ())} for of in (one, other))
    return seen > less


def mention_value(
    votes: Counter[str],
    titles: Counter[str],
    n: int,
    offered: Sequence[Sequence[int]] = (),
    of_title: int | None = None,
) -> Value:
    """What n people say of a mention who saw the names `offered`, given the votes by canonical
    mention (“begin-end”, or `OTHER`) and by title (“” for none), for which more may have been
    asked: without a canonical one where no more than half agree, or most found none right.
    """
    value: Value = {"votes": dict(votes), "titles": dict(titles)}
    best, most = max(votes.items(), key=lambda one: one[1], default=("", 0))
    if 2 * most <= n:
        value[UNDECIDED] = True
    elif best == OTHER:
        value[ELSEWHERE] = True
    else:
        value["canonical"] = [int(end) for end in best.split("-")]
    if offered:
        value[OFFERED] = [list(span) for span in offered]
    return value | _link_of(titles, n if of_title is None else of_title)


def _link_of(titles: Counter[str], n: int) -> Value:
    """The title that more than half gave, if there is one."""
    title, most = max(titles.items(), key=lambda one: one[1], default=("", 0))
    return {"link": title} if 2 * most > n else {}


def _of_canonicals(label: Said) -> dict[str, int]:
    """Votes by canonical mention; those of a label without votes all for what it says."""
    votes = label.value.get("votes")
    if votes is None:
        canonical = label.value.get("canonical")
        choice = f"{canonical[0]}-{canonical[1]}" if canonical else OTHER
        return {choice: max(1, label.n)}
    return dict(votes)


def _of_titles(label: Said) -> dict[str, int]:
    titles = label.value.get("titles")
    if titles is None:
        return {label.value["link"]: max(1, label.n)} if "link" in label.value else {}
    return dict(titles)
