"""Merges labels of pairs and of mentions.

The crowd's votes are added up over all questions about a target (`aggregate_statements`), together
with those of readers who left a mention undecided. Of each other source the newest label decides.
The parts of a pair are the directed predicates that were shown, each decided by the source with the
highest precedence that has it; every other value is replaced as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from kbpo.instances.merge import RANK, Statement, Value, newest_labels
from kbpo.instances.models import Label

UNDECIDED = "undecided"
"""Key in a mention's value: people were asked for its referent, and there is no majority"""
CLUSTER = "cluster"
"""Key in a mention's value that readers of its document left undecided: the representative of its
coreferent mentions"""
TITLED = "titled"
"""Key in a mention's value by readers of its document: the votes by title (“” for none), if a
reader gave any. Unlike `titles`, it does not mean that people were asked about the mention alone
"""
ELSEWHERE = "elsewhere"
"""Key in a mention's value: most people say that it refers to none of the names that they saw"""
OFFERED = "offered"
"""Key in a mention's value: the names that people saw"""
OTHER = "other"
"""The vote for none of the offered names"""
AGGREGATED = (
    *("shown", "holds", "votes", "asked", "canonical", "titles", "link"),
    *(UNDECIDED, ELSEWHERE, OFFERED, TITLED),
)
"""Keys of a value that are computed from all answers about its target"""


def merge_labels(statements: Sequence[Statement]) -> Value:
    """Return one value merged from all labels of a pair or a mention. `statements` is sorted by
    source, from the lowest precedence to the highest (`ORDER` in `kbpo.instances.merge`).
    """
    if len(statements) == 1 and "shown" not in statements[0].value:
        value = dict(statements[0].value)
    else:
        value = _merge_sources(statements)
    if has_majority_reference(value):
        value.pop(UNDECIDED, None)  # a weaker source tells what people were divided about
    return value


def _merge_sources(statements: Sequence[Statement]) -> Value:
    """Merge the values of all sources, where stronger ones override weaker ones and the crowd's
    votes are added up.
    """
    crowd = add_reader_votes(statements)
    stronger = [label for label in statements if RANK[label.source] < RANK[Label.Source.CROWD]]
    weaker = [
        label
        for label in statements
        if RANK[label.source] > RANK[Label.Source.CROWD] and label not in crowd
    ]
    in_order = (
        [label.value for label in weaker]
        + [aggregate_statements(crowd)]
        + [label.value for label in stronger]
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


def add_reader_votes(statements: Sequence[Statement]) -> list[Statement]:
    """Return the crowd's value of a mention, joined with the votes of readers of its document who
    disagreed on its reference.
    """
    crowd = [label for label in statements if label.source == Label.Source.CROWD and label.value]
    is_named_there = any(
        label.source != Label.Source.CROWD and has_majority_reference(label.value)
        for label in statements
    )
    if not crowd or is_named_there:
        return crowd
    readers = [
        label
        for label in statements
        if label.source == Label.Source.DOCUMENT and UNDECIDED in label.value
    ]
    return readers + crowd


def _join_sources(weaker: Value, stronger: Value) -> None:
    """Join the values of a mention by a weaker and a stronger source. An annotator who saw no other
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


def may_refer_to_unseen_name(value: Mapping[str, Any]) -> bool:
    """Return whether a mention may refer to a name that its annotators did not see: they saw only
    its own, or found none of them right.
    """
    return len(value.get(OFFERED, ())) == 1 or (OFFERED in value and ELSEWHERE in value)


def has_majority_reference(value: Mapping[str, Any]) -> bool:
    """Return whether a majority agrees on what a mention refers to, or that it refers to none of
    the names.
    """
    return bool(value.get("canonical") or value.get(ELSEWHERE))


def needs_no_question(value: Mapping[str, Any]) -> bool:
    """Return whether no question about the reference of a mention is needed: the reference is
    decided, or annotators were asked about this mention alone and disagreed. If only readers of the
    whole document disagreed, a question is needed.
    """
    return has_majority_reference(value) or (UNDECIDED in value and "titles" in value)


def aggregate_statements(statements: Sequence[Statement]) -> Value:
    """Return the value of a target from all answers to all questions about it; a later question
    adds to earlier ones and never overrides them.

    A predicate holds, a mention is canonical, or a title is the link, if more than half of the
    people asked say so. Without a majority for a canonical mention the value is `UNDECIDED`; if
    more than half found none of the names right, `ELSEWHERE`. The newest label of each question is
    used.
    """
    labels = newest_labels((label, label.question) for label in statements)
    if len(labels) < 2:
        return dict(labels[0].value) if labels else {}
    value: Value = {}
    for label in labels:
        value |= {part: content for part, content in label.value.items() if part not in AGGREGATED}
    return value | _predicate_votes(labels) | _mention_votes(labels)


def _predicate_votes(labels: Sequence[Statement]) -> Value:
    """Return the predicates of a pair that were shown, those that hold, and the votes for each;
    empty for other targets.
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
    """Return how many annotators of one question affirmed that a predicate holds. All or none of
    them if its label contradicts the majority, since an annotator model weighted them.
    """
    n, holds = max(1, label.n), part in label.value["holds"]
    votes = int(label.value.get("votes", {}).get(part, 0))
    if (2 * votes > n) == holds and votes <= n:
        return votes
    return n if holds else 0


def _mention_votes(labels: Sequence[Statement]) -> Value:
    """Return the canonical mention and the title that most annotators gave, with the votes; empty
    for other targets. Annotators who found none of the names right, or saw only one, have no vote
    once others saw more names.
    """
    of_mention = [
        label for label in labels if has_majority_reference(label.value) or UNDECIDED in label.value
    ]
    if not of_mention:
        return {}
    titles: Counter[str] = Counter()
    votes: Counter[str] = Counter()
    offered = {tuple(span) for label in of_mention for span in label.value.get(OFFERED, ())}
    asked = sum(max(1, label.n) for label in of_mention)
    # If no reader of a document gave a title, none of them votes against one.
    says_of_title = {"titles", TITLED, "link"}
    of_title = sum(max(1, label.n) for label in of_mention if says_of_title & {*label.value})
    for label in of_mention:
        titles.update(_votes_by_title(label))
        given = Counter(_votes_by_canonical(label))
        if OFFERED in label.value and any(_saw_more_names(other, label) for other in of_mention):
            void = set(given) if len(label.value[OFFERED]) == 1 else {OTHER}
            asked -= sum(given.pop(choice, 0) for choice in void)
        votes.update(given)
    return mention_value(votes, titles, asked, sorted(map(list, offered)), of_title)


def _saw_more_names(label: Statement, other: Statement) -> bool:
    """Return whether the people who were asked this question saw all names of another question, and
    more.
    """
    seen, less = ({tuple(span) for span in each.value.get(OFFERED, ())} for each in (label, other))
    return seen > less


def mention_value(
    votes: Counter[str],
    titles: Counter[str],
    n: int,
    offered_spans: Sequence[Sequence[int]] = (),
    of_title: int | None = None,
) -> Value:
    """Return the value of a mention from the answers of n annotators who saw the names
    `offered_spans`. `votes` counts canonical mentions (“begin-end”, or `OTHER`), and `titles`
    counts titles (“” for none), for which `of_title` people were asked (n by default). The value
    has no canonical mention without a majority, or if most found none right.
    """
    value: Value = {"votes": dict(votes), "titles": dict(titles)}
    best, most = max(votes.items(), key=itemgetter(1), default=("", 0))
    if 2 * most <= n:
        value[UNDECIDED] = True
    elif best == OTHER:
        value[ELSEWHERE] = True
    else:
        value["canonical"] = [int(end) for end in best.split("-")]
    if offered_spans:
        value[OFFERED] = [list(span) for span in offered_spans]
    return value | _majority_title(titles, n if of_title is None else of_title)


def _majority_title(titles: Counter[str], n: int) -> Value:
    """Return the title that more than half gave; empty if there is none."""
    title, most = max(titles.items(), key=itemgetter(1), default=("", 0))
    return {"link": title} if 2 * most > n else {}


def _votes_by_canonical(label: Statement) -> dict[str, int]:
    """Return the votes by canonical mention; all votes of a label without details go to its
    value.
    """
    votes = label.value.get("votes")
    if votes is None:
        canonical = label.value.get("canonical")
        choice = f"{canonical[0]}-{canonical[1]}" if canonical else OTHER
        return {choice: max(1, label.n)}
    return dict(votes)


def _votes_by_title(label: Statement) -> dict[str, int]:
    """Return the votes by title; all votes of a label without details go to its link."""
    titles = label.value.get("titles", label.value.get(TITLED))
    if titles is None:
        return {label.value["link"]: max(1, label.n)} if "link" in label.value else {}
    return dict(titles)
