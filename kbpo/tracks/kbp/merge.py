"""Says what labels of pairs and of mentions tell together.

What the crowd said adds up over all questions about a target (`aggregate`), and with it what the
readers of a document named where they left a mention undecided; of other sources the newest label
decides. A pair's parts are the directed predicates that were shown, each decided by
the highest source that speaks of it; every other value counts whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from kbpo.instances.merge import RANK, Statement, Value, newest_labels
from kbpo.instances.models import Label

UNDECIDED = "undecided"
"""In a mention's value: people said what it refers to, and no more than half agree"""
CLUSTER = "cluster"
"""In a mention's value that readers of its document left undecided: the mention that stands for
those which are the same thing as it"""
TITLED = "titled"
"""In a mention's value by readers of its document: the votes by title (“” for none), if one of them
gave any. Not `titles`, which say that people were asked about the mention alone
"""
ELSEWHERE = "elsewhere"
"""In a mention's value: more than half say that it refers to none of the names that they saw"""
OFFERED = "offered"
"""In a mention's value: the names that people saw"""
OTHER = "other"
"""The vote for none of these"""
AGGREGATED = (
    *("shown", "holds", "votes", "asked", "canonical", "titles", "link"),
    *(UNDECIDED, ELSEWHERE, OFFERED, TITLED),
)
"""What of a value follows from all answers about its target"""


def merge_labels(said: Sequence[Statement]) -> Value:
    """Return one value merged from all labels of a pair or a mention. `said` is sorted by source,
    from the lowest precedence to the highest (`ORDER` in `kbpo.instances.merge`).
    """
    if len(said) == 1 and "shown" not in said[0].value:
        value = dict(said[0].value)
    else:
        value = _merge_sources(said)
    if is_named(value):
        value.pop(UNDECIDED, None)  # a weaker source tells what people were divided about
    return value


def _merge_sources(said: Sequence[Statement]) -> Value:
    """Return the values of the sources with the stronger over the weaker, and the crowd's votes
    added up.
    """
    crowd = add_reader_votes(said)
    stronger = [label for label in said if RANK[label.source] < RANK[Label.Source.CROWD]]
    weaker = [
        label
        for label in said
        if RANK[label.source] > RANK[Label.Source.CROWD] and label not in crowd
    ]
    in_order = (
        [label.value for label in weaker] + [aggregate(crowd)] + [label.value for label in stronger]
    )
    value: Value = {}
    shown: dict[str, bool] = {}
    for part_of_it in map(dict, in_order):
        _join_sources(value, part_of_it)
        holds = set(part_of_it.get("holds", ()))
        shown.update({part: part in holds for part in part_of_it.get("shown", ())})
        value.update(part_of_it)
    if shown:
        value |= {
            "shown": sorted(shown),
            "holds": sorted(part for part, true in shown.items() if true),
        }
    return value


def add_reader_votes(said: Sequence[Statement]) -> list[Statement]:
    """Return the crowd's value of a mention, joined with the votes of a document's readers who did
    not agree on its reference.
    """
    crowd = [label for label in said if label.source == Label.Source.CROWD and label.value]
    is_named_there = any(
        label.source != Label.Source.CROWD and is_named(label.value) for label in said
    )
    if not crowd or is_named_there:
        return crowd
    readers = [
        label
        for label in said
        if label.source == Label.Source.DOCUMENT and UNDECIDED in label.value
    ]
    return readers + crowd


def _join_sources(weaker: Value, stronger: Value) -> None:
    """Join the values of a mention of a weaker and a stronger source. An annotator who saw no other
    name, or found none of them right, does not contradict one who chose another name.
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
    """Return whether a mention may still refer to a name that its annotators did not see: they saw
    its own alone, or found none of them right.
    """
    return len(value.get(OFFERED, ())) == 1 or (OFFERED in value and ELSEWHERE in value)


def is_named(value: Mapping[str, Any]) -> bool:
    """Return whether more than half agree on what a mention refers to, or that it is none of the
    names.
    """
    return bool(value.get("canonical") or value.get(ELSEWHERE))


def needs_no_question(value: Mapping[str, Any]) -> bool:
    """Return whether no question about the reference of a mention is needed: the reference is
    decided, or annotators were asked about this mention alone and disagreed. If only readers of the
    whole document disagreed, a question is needed.
    """
    return is_named(value) or (UNDECIDED in value and "titles" in value)


def aggregate(said: Sequence[Statement]) -> Value:
    """Return the value of a target by all answers to all questions about it: a later question never
    overrides an earlier one, it joins it.

    A predicate holds, a mention is canonical, a title is the link, if more than half of all who
    were asked for it say so. Where people are divided about the canonical mention there is none,
    and the value says that it is `UNDECIDED`; where more than half found none of the names right,
    `ELSEWHERE`. Of one question counts its newest label.
    """
    labels = newest_labels((label, label.question) for label in said)
    if len(labels) < 2:
        return dict(labels[0].value) if labels else {}
    value: Value = {}
    for label in labels:
        value |= {part: content for part, content in label.value.items() if part not in AGGREGATED}
    return value | _predicates(labels) | _mention(labels)


def _predicates(labels: Sequence[Statement]) -> Value:
    """Return the predicates of a pair that were shown, those that hold, and the votes for each;
    nothing of other targets.
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


def _votes_for(part: str, label: Statement) -> int:
    """Return how many of the annotators of one question answered that a predicate holds. All or
    none of them, where its label contradicts the majority: an annotator model weighed them.
    """
    n, holds = max(1, label.n), part in label.value["holds"]
    votes = int(label.value.get("votes", {}).get(part, 0))
    if (2 * votes > n) == holds and votes <= n:
        return votes
    return n if holds else 0


def _mention(labels: Sequence[Statement]) -> Value:
    """Return the canonical mention and the title that most annotators gave, with the votes; nothing
    of other targets. Annotators who found none of the names right, or saw one alone, have no vote
    once others saw more names.
    """
    of_mention = [label for label in labels if is_named(label.value) or UNDECIDED in label.value]
    if not of_mention:
        return {}
    titles: Counter[str] = Counter()
    votes: Counter[str] = Counter()
    offered = {tuple(span) for label in of_mention for span in label.value.get(OFFERED, ())}
    asked = sum(max(1, label.n) for label in of_mention)
    # Of a document's readers none of whom gave a title, none is a vote against one.
    says_of_title = {"titles", TITLED, "link"}
    of_title = sum(max(1, label.n) for label in of_mention if says_of_title & {*label.value})
    for label in of_mention:
        titles.update(_votes_by_title(label))
        given = Counter(_votes_by_canonical(label))
        if OFFERED in label.value and any(_saw_more(other, label) for other in of_mention):
            void = set(given) if len(label.value[OFFERED]) == 1 else {OTHER}
            asked -= sum(given.pop(choice, 0) for choice in void)
        votes.update(given)
    return mention_value(votes, titles, asked, sorted(map(list, offered)), of_title)


def _saw_more(label: Statement, other: Statement) -> bool:
    """Return whether people saw names in one question which in another they did not, and all of
    its.
    """
    seen, less = ({tuple(span) for span in each.value.get(OFFERED, ())} for each in (label, other))
    return seen > less


def mention_value(
    votes: Counter[str],
    titles: Counter[str],
    n: int,
    offered: Sequence[Sequence[int]] = (),
    of_title: int | None = None,
) -> Value:
    """Return the value of a mention from n annotators who saw the names `offered`, given the votes
    by canonical mention (“begin-end”, or `OTHER`) and by title (“” for none), for which `of_title`
    were asked (n by default): without a canonical mention where no majority agrees, or most found
    none right.
    """
    value: Value = {"votes": dict(votes), "titles": dict(titles)}
    best, most = max(votes.items(), key=itemgetter(1), default=("", 0))
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
    """Return the title that more than half gave, if there is one."""
    title, most = max(titles.items(), key=itemgetter(1), default=("", 0))
    return {"link": title} if 2 * most > n else {}


def _votes_by_canonical(label: Statement) -> dict[str, int]:
    """Return the votes by canonical mention; those of a label without votes are all for its
    value.
    """
    votes = label.value.get("votes")
    if votes is None:
        canonical = label.value.get("canonical")
        choice = f"{canonical[0]}-{canonical[1]}" if canonical else OTHER
        return {choice: max(1, label.n)}
    return dict(votes)


def _votes_by_title(label: Statement) -> dict[str, int]:
    """Return votes by title; those of a label without votes all for its link."""
    titles = label.value.get("titles", label.value.get(TITLED))
    if titles is None:
        return {label.value["link"]: max(1, label.n)} if "link" in label.value else {}
    return dict(titles)
