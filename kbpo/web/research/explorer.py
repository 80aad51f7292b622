"""Which of a submission's predictions are listed: what was chosen, a page of them, and how many
each other choice would show.

A list is either *bounded* (what is judged, or found by its text: some thousands, held as arrays) or
*whole* (everything that a run of perhaps a million predicts: pages are read off an index, counts
off the tally that was made when the file was read). No request reads a whole run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.core.cache import cache
from numpy.typing import NDArray

from annotation.desk import experts
from kbpo.corpus.fetch import fetch
from kbpo.instances.models import Instance, Label
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Prediction, Submission, Tally
from kbpo.submissions.tally import BANDS, CONFIDENCE, tally_of
from kbpo.tracks.base import ENTITY, Facet
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import recall_of
from kbpo.tracks.registry import kind_of
from kbpo.web.research.judged import verdicts

Mask = NDArray[np.bool_]
Options = dict[str, Mask]
"""value of a filter -> which rows it keeps"""
Counts = Mapping[str, Mapping[Any, int | None]]
"""filter -> value -> how many predictions it would leave, "" for none of them; None where nobody
counted"""

PAGE = 50
MOST_DOCUMENTS, MOST_OF_ENTITY = 500, 250
"""Texts that a search looks into; and that are looked through for a name, mention by mention"""
LOOKED_THROUGH = 5_000
"""Predictions that a page looks through for those that no other system predicts"""
KEPT = 60
"""Seconds for which verdicts are kept, until there is a new label: what is public depends on the
clock as well"""
MOST_NAMED = 60
"""Values that a refusal names"""
VERDICTS = {
    "right": "Right",
    "wrong": "Wrong",
    "undecided": "Judged in part",
    "judged": "Judged",
    "unjudged": "Not judged",
    "disputed": "Disputed",
}
"""What is judged is right, wrong, or undecided: people were divided about a part of it"""
DECIDED = ("right", "wrong", "undecided")
ANY = "any"
"""Of which part is wrong: whichever, or the whole"""
SORTS = {
    "text": "As in the text",
    "sure": "Most confident first",
    "unsure": "Least confident first",
    "worst": "Worst first",
}
"""What is not judged is neither good nor bad, so that the worst are the worst of what is judged"""
BY_CONFIDENCE = ("sure", "unsure")
GIVEN = ("verdict", "part", "votes", "who", "confidence", "sort")
ELSEWHERE = {"q", "document", ENTITY}
"""What predictions are found by in words, on tracks of some kinds"""
NUMBERS = ("after", "before", "p")
"""Numbers of predictions: a page begins after one, ends before one, shows one"""


class Unreadable(Exception):
    """A choice that there is not; the text is a sentence, `field` says of what."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = name


def named(choices: Sequence[str]) -> str:
    """Choices in a sentence: all of them, or as many as one reads, and how many more there are."""
    shown, n_more = ", ".join(choices[:MOST_NAMED]), len(choices) - MOST_NAMED
    return f"{shown} and {n_more:,} more" if n_more > 0 else shown


def no_such(name: str, value: str, choices: Sequence[str]) -> Unreadable:
    """Of a value that a filter has not; without known ones it is no number."""
    expected = f"one of {named(choices)}" if choices else "the number of a prediction"
    return Unreadable(name, f"{value[:40]!r} is not {expected}.")


@dataclass(frozen=True)
class Choice:
    """What somebody chose to see; `facets` by the values that the database has."""

    said: Mapping[str, str] = field(default_factory=dict)
    """The same as in the address"""
    facets: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """Return what was said of a filter; empty where nothing was."""
        return self.said.get(name, "")

    def number(self, name: str) -> int:
        """Return the number of a prediction that was named; 0 without."""
        return int(self.said.get(name, 0))

    def without(self, name: str) -> Choice:
        """Return the same where nothing was said of a filter."""
        return replace(self, said={key: value for key, value in self.said.items() if key != name})

    def query(self, **changes: str | int) -> str:
        """Return the address of a choice that differs from this one; another filter begins at the
        first page.
        """
        kept = {key: value for key, value in self.said.items() if key not in NUMBERS}
        chosen = kept | {key: str(value) for key, value in changes.items()}
        if chosen.get("sort") == "worst" and chosen.get("verdict", "") in ("", "unjudged"):
            del chosen["sort"]
        return "?" + urlencode({key: value for key, value in chosen.items() if value})


def read_choice(
    address: Mapping[str, str], submission: Submission, *, strict: bool = False
) -> Choice:
    """Return the choice that an address makes. An empty value chooses nothing, as a field of a form
    that nobody filled in. With `strict` it is one that there is not, and nothing else may stand in
    the address; without it nothing else that predictions of some kind are found by. Raises
    Unreadable.
    """
    sent = {name: value for name, value in address.items() if value or strict}
    kind = kind_of(submission.track)
    refuse_unknown(
        f"{kind.words.items.capitalize()} of this track",
        [*GIVEN, *(facet.name for facet in kind.facets), *_words(kind)],
        [name for name in sent if name not in NUMBERS] if strict else ELSEWHERE & set(sent),
    )
    values_of = _known_values(submission)
    chosen: dict[str, str] = {}
    for name in GIVEN:
        if name in sent:
            if sent[name] not in values_of[name]:
                raise no_such(name, sent[name], values_of[name])
            chosen[name] = sent[name]
    if chosen.get("sort") == "worst":
        chosen.setdefault("verdict", "judged")
    for name in NUMBERS:
        if name in sent:
            if not _is_number(sent[name]):
                raise no_such(name, sent[name], ())
            chosen[name] = sent[name]
    facets: dict[str, Any] = {}
    for facet in kind.facets:
        if value := sent.get(facet.name, "").replace("\0", ""):
            chosen[facet.name] = value
            facets[facet.name] = _value_of(kind, facet, value)
    for name in _words(kind):
        if value := sent.get(name, "").replace("\0", "").strip()[:200]:
            chosen[name] = value
    return Choice(chosen, facets)


def refuse_unknown(items: str, here: Sequence[str], sent: Iterable[str], are: str = "are") -> None:
    """Raise Unreadable for a filter that these items do not have."""
    for name in sent:
        if name not in here:
            raise Unreadable(
                name, f"{items} {are} not chosen by {name[:40]!r}, but by {', '.join(here)}."
            )


def _is_number(value: str) -> bool:
    """Return whether it may be the number of a prediction."""
    return value.isascii() and value.isdecimal() and len(value) < 18


def _value_of(kind: Kind, facet: Facet, value: str) -> Any:
    """Return what the database has for the value of a facet. Raises Unreadable if there is none
    such.
    """
    by_name = {word: key for key, (word, _) in facet.called(kind.corpus).items()}
    if by_name and value not in by_name:
        raise no_such(facet.name, value, list(by_name))
    return by_name.get(value, value)


def carried(submission: Submission) -> list[str]:
    """Return the filters that choose among what a run predicts and among what it misses alike."""
    kind, recall = kind_of(submission.track), recall_of(submission.track)
    return [*(recall.found_facets if recall else ()), *_words(kind)]


def carry(choice: Choice, submission: Submission, **changes: str) -> str:
    """Return the query of the other list's address, with what was chosen of this one."""
    chosen = {name: choice[name] for name in carried(submission) if choice[name]} | changes
    return f"?{urlencode(chosen)}" if chosen else ""


def _words(kind: Kind) -> list[str]:
    """Return the names of the filters that search predictions by free text: by words, document and
    entity.
    """
    return ["q", "document", ENTITY] if kind.words.entity else []


def verdicts_of(submission: Submission) -> dict[str, str]:
    """Return the verdicts that people give on a run's track, in words: none is right or wrong where
    they rate.
    """
    kind = kind_of(submission.track)
    criterion = kind.measures.criterion(submission.track.criterion)
    if not kind.words.parts and criterion.single == "mean":
        return {name: VERDICTS[name] for name in VERDICTS if name not in DECIDED}
    return VERDICTS


def _known_values(submission: Submission) -> dict[str, list[str]]:
    return {
        "verdict": list(verdicts_of(submission)),
        "part": [ANY, *kind_of(submission.track).words.parts],
        "votes": ["split"],
        "who": ["alone"],
        "confidence": list(BANDS),
        "sort": list(SORTS),
    }


@dataclass(frozen=True, eq=False)
class Rows:
    """Some predictions of a submission by ascending number, with what they are filtered by."""

    ids: NDArray[np.int64]
    confidence: NDArray[np.float64]
    """−1 where there is none"""
    facets: Mapping[str, NDArray[Any]]
    judged: Mask
    value: NDArray[np.float64]
    split: Mask
    parts: Mapping[str, NDArray[np.float64]]
    alone: Mask
    """No other system on the board predicts it"""

    def groups(self, disputed: set[int]) -> dict[str, Options]:
        """Return every filter with its values, and which rows each keeps."""
        right, wrong = self.value == 1, self.value == 0
        parts = {name: values == 0 for name, values in self.parts.items()}
        return {
            "verdict": {
                "right": right,
                "wrong": wrong,
                "undecided": self.judged & ~right & ~wrong,
                "judged": self.judged,
                "unjudged": ~self.judged,
                "disputed": np.isin(self.ids, sorted(disputed)),
            },
            "part": {ANY: np.logical_or.reduce([wrong, *parts.values()]), **parts},
            "votes": {"split": self.split},
            "who": {"alone": self.alone},
            "confidence": {
                name: (self.confidence >= low) & (self.confidence < high)
                for name, (_, low, high) in BANDS.items()
            },
        } | _of_facets(self.facets)

    def at(self, places: NDArray[np.int64]) -> Rows:
        """Some of them."""
        return Rows(
            self.ids[places],
            self.confidence[places],
            {name: values[places] for name, values in self.facets.items()},
            self.judged[places],
            self.value[places],
            self.split[places],
            {name: values[places] for name, values in self.parts.items()},
            self.alone[places],
        )


def _of_facets(facets: Mapping[str, NDArray[Any]]) -> dict[str, Options]:
    return {
        name: {value: values == value for value in dict.fromkeys(values.tolist())}
        for name, values in facets.items()
    }


@dataclass(frozen=True)
class Page:
    """What is listed."""

    ids: list[int]
    n: int | None
    """How many match; None where nobody counted"""
    after: int = 0
    """The last prediction here, if there are more; 0 otherwise"""
    before: int = 0
    """The first, if there are some before it"""


class Explorer:
    """The predictions of one submission, as one viewer may see them."""

    def __init__(
        self,
        submission: Submission,
        *,
        public: bool,
        restricted: bool = False,
        own: bool = False,
    ) -> None:
        self.submission, self.public, self.restricted = submission, public, restricted
        """`restricted`: the viewer sees judged predictions alone, those of the development part"""
        self.own = own or not public
        """The viewer sees the disputes of the run's team"""
        self.kind = kind_of(submission.track)
        self.all_found = True
        """Whether the search looked into every text that has the words"""
        self.first_found = MOST_DOCUMENTS
        """Into how many it looks at most"""

    @property
    def reads_documents(self) -> bool:
        """Whether people read documents of the track in full."""
        return recall_of(self.submission.track) is not None

    @property
    def _more_is_better(self) -> bool:
        return self.kind.measures.criterion(self.submission.track.criterion).higher_is_better

    @cached_property
    def tally(self) -> Tally:
        """What the run predicts, counted."""
        return tally_of(self.submission)

    @cached_property
    def disputes(self) -> dict[int, ExpertCheck]:
        """What its team said against judgments, the latest by targets, as that team is told."""
        return experts.of_submission(self.submission) if self.own else {}

    @cached_property
    def disputed(self) -> set[int]:
        """The predictions that the run's team disputes or has disputed."""
        if not self.disputes:
            return set()
        # Two narrow questions, whatever the plan of one.
        instances = Instance.objects.filter(target__in=list(self.disputes))
        predictions = self.submission.predictions.filter(instance__in=list(instances))
        return set(predictions.values_list("pk", flat=True))

    @cached_property
    def others(self) -> list[int]:
        """The other systems on the board."""
        board = Submission.objects.filter(track=self.submission.track_id).on_board()
        return sorted(set(board.values_list("pk", flat=True)) - {self.submission.pk})

    @cached_property
    def judged(self) -> Rows:
        """What is judged, as far as the viewer may see."""
        submission = self.submission
        newest = Label.objects.order_by("-pk").values_list("pk", flat=True).first()
        states = Track.objects.filter(corpus=submission.track.corpus_id).order_by("pk")
        version = (
            submission.pk,
            submission.received_at.isoformat(),
            self.public,
            newest,
            *states.values_list("status", flat=True),
            *self.others,
        )
        key = f"explorer:{hash_of(version)}"
        rows: Rows | None = cache.get(key)
        if rows is None:
            judgments = verdicts(submission, public=self.public)
            order = np.argsort(np.array(judgments.prediction, dtype=np.int64), kind="stable")
            rows = replace(
                self._read(judgments.prediction),
                judged=np.ones(order.size, dtype=np.bool_),
                value=judgments.value[order],
                split=judgments.split[order],
                parts={name: values[order] for name, values in judgments.parts.items()},
            )
            cache.set(key, rows, KEPT)
        return rows

    def _read(self, ids: Sequence[int]) -> Rows:
        """Some predictions, as if nobody had judged them."""
        columns = [f"p.{facet.column}" for facet in self.kind.facets]
        alone = (
            "NOT EXISTS (SELECT 1 FROM submissions_prediction o WHERE o.instance_id ="
            " p.instance_id AND o.submission_id = ANY(%s))"
        )
        rows = fetch(
            f"SELECT {', '.join(['p.id', CONFIDENCE, alone, *columns])} FROM"
            " submissions_prediction p WHERE p.id = ANY(%s) ORDER BY p.id",
            [self.others, list(ids)],
        )
        n = len(rows)
        by_column = list(zip(*rows, strict=True)) or [()] * (3 + len(columns))
        return Rows(
            np.array(by_column[0], dtype=np.int64),
            np.array(by_column[1], dtype=np.float64),
            {
                facet.name: np.array(values, dtype=object)
                for facet, values in zip(self.kind.facets, by_column[3:], strict=True)
            },
            np.zeros(n, dtype=np.bool_),
            np.full(n, np.nan),
            np.zeros(n, dtype=np.bool_),
            {name: np.full(n, np.nan) for name in self.kind.words.parts},
            np.array(by_column[2], dtype=np.bool_),
        )

    def _found(self, choice: Choice) -> Rows | None:
        """Return what the words, the entity and the document that were chosen leave; None without
        any.
        """
        if not (choice["q"] or choice[ENTITY] or choice["document"]):
            return None
        if choice[ENTITY]:
            self.first_found = MOST_OF_ENTITY
        found, self.all_found = self.kind.find(
            self.submission.pk,
            self.first_found,
            words=choice["q"],
            key=choice["document"],
            entity=choice[ENTITY],
        )
        rows, judged = self._read(found), self.judged
        both = np.isin(rows.ids, judged.ids)
        of_judged = judged.at(np.flatnonzero(np.isin(judged.ids, rows.ids)))
        rows.judged[both], rows.value[both], rows.split[both] = (
            True,
            of_judged.value,
            of_judged.split,
        )
        for name, values in rows.parts.items():
            values[both] = of_judged.parts[name]
        return rows

    def page(
        self, choice: Choice, size: int = PAGE, *, counted: bool = True
    ) -> tuple[Page, Counts]:
        """Return a page of what was chosen, and value -> how many of every filter (none if not
        asked).
        """
        bounded = self._found(choice)
        only_judged = (
            self.restricted
            or choice["part"]
            or choice["votes"]
            or choice["verdict"] not in ("", "unjudged")
        )
        if self.restricted and bounded is not None:
            bounded = bounded.at(np.flatnonzero(bounded.judged))
        if bounded is None and only_judged:
            bounded = self.judged
        if bounded is None:
            page = self._page_of_whole(choice, size)
            if not counted:
                return page, {}
            counted_whole = self._counts_of_whole(choice)
            return replace(page, n=counted_whole["verdict"][choice["verdict"]]), counted_whole
        groups = bounded.groups(self.disputed)
        kept = _kept(groups, _chosen(choice, groups))
        page = _page_of(bounded.at(np.flatnonzero(kept)), choice, size, self._more_is_better)
        if not counted:
            return page, {}
        counts: Counts = _counts(groups, _chosen(choice, groups))
        is_whole = bounded is self.judged and not choice["part"] and not choice["votes"]
        if is_whole and not self.restricted:
            whole = self._counts_of_whole(choice.without("verdict"))["verdict"]
            unbounded = {value: whole[value] for value in ("", "unjudged")}
            counts = {**counts, "verdict": {**counts["verdict"], **unbounded}}
        return page, counts

    def _counts_of_whole(self, choice: Choice) -> Counts:
        """Counts off the tally, and off the judgments of what is judged; where only what no other
        system predicts is listed, off the judgments alone.
        """
        cells = self.tally.cells
        columns = list(zip(*cells, strict=True)) or [()] * (len(self.kind.facets) + 2)
        facets = {
            facet.name: np.array(column, dtype=object)
            for facet, column in zip(self.kind.facets, columns, strict=False)
        }
        bands = np.array(columns[-2], dtype=object)
        groups = _of_facets(facets) | {"confidence": {name: bands == name for name in BANDS}}
        n = np.array(columns[-1], dtype=np.int64)
        chosen = _chosen(choice, groups)
        counts = _counts(groups, chosen, n)
        total = int(n[_kept(groups, chosen)].sum())
        of_judged = self.judged.groups(self.disputed)
        judged = _counts(of_judged, _chosen(choice, of_judged))
        verdict = judged["verdict"] | {"": total, "unjudged": total - judged["verdict"]["judged"]}
        if choice["verdict"] == "unjudged":
            judged_counts = _counts(of_judged, chosen)
            for name in groups:
                counts[name] = {
                    value: many - judged_counts[name].get(value, 0)
                    for value, many in counts[name].items()
                }
        counts |= {"verdict": verdict, "part": judged["part"], "votes": judged["votes"], "who": {}}
        if not choice["who"]:
            return counts
        uncounted = {name: dict.fromkeys(counts[name]) for name in groups}
        return {**counts, **uncounted, "verdict": {**verdict, "": None, "unjudged": None}}

    def _page_of_whole(self, choice: Choice, size: int) -> Page:
        """Return a page of what the run predicts, read off an index."""
        sql, parameters = self._conditions(choice)
        backwards = choice.number("before") > 0
        descending = backwards != (choice["sort"] == "sure")
        direction = "DESC" if descending else "ASC"
        order = f"p.id {direction}"
        if choice["sort"] in BY_CONFIDENCE:
            order = f"{CONFIDENCE} {direction}, p.id {direction}"
        inner = (
            "SELECT p.id, p.instance_id FROM submissions_prediction p WHERE"
            f" {' AND '.join(sql)} ORDER BY {order}"
        )
        looks = LOOKED_THROUGH if choice["who"] else size + 1
        rows = fetch(
            "SELECT p.id, %s AND EXISTS (SELECT 1 FROM submissions_prediction o WHERE o.instance_id"
            f" = p.instance_id AND o.submission_id = ANY(%s)) FROM ({inner} LIMIT %s) p",
            [bool(choice["who"]), self.others, *parameters, looks],
        )
        alone = [pk for pk, is_predicted in rows if not is_predicted]
        ids, edge = alone[:size], 0
        if len(alone) > size:
            edge = ids[-1]
        elif len(rows) == looks:
            edge = rows[-1][0]
        if backwards:
            return Page(ids[::-1], None, after=ids[0] if ids else 0, before=edge)
        moved = choice.number("after") or choice.number("p")
        return Page(ids, None, after=edge, before=ids[0] if ids and moved else 0)

    def _conditions(self, choice: Choice) -> tuple[list[str], list[Any]]:
        """Return what a prediction must be to be listed, and on this page, as SQL."""
        sql = ["p.submission_id = %s"]
        parameters: list[Any] = [self.submission.pk]
        if not choice["sort"] or choice["sort"] == "text":
            sql.append("p.id >= %s")
            parameters.append(self.tally.first)
        for facet in self.kind.facets:
            if facet.name in choice.facets:
                sql.append(f"p.{facet.column} = %s")
                parameters.append(choice.facets[facet.name])
        if choice["confidence"]:
            _, low, high = BANDS[choice["confidence"]]
            sql.append(f"{CONFIDENCE} >= %s AND {CONFIDENCE} < %s")
            parameters += [low, high]
        if choice["verdict"] == "unjudged":
            sql.append("p.id <> ALL(%s)")
            parameters.append(self.judged.ids.tolist())
        begins, sign = _cursor(choice)
        if begins and choice["sort"] in BY_CONFIDENCE:
            row = Prediction.objects.filter(pk=begins, submission=self.submission).first()
            if row is not None:
                sql.append(f"({CONFIDENCE}, p.id) {sign} (%s, %s)")
                parameters += [-1.0 if row.confidence is None else row.confidence, begins]
        elif begins:
            sql.append(f"p.id {sign} %s")
            parameters.append(begins)
        return sql, parameters

    def everything(self, choice: Choice) -> Iterator[list[int]]:
        """Yield the numbers of all that was chosen, some hundreds at a time."""
        size = 10 * PAGE
        while True:
            page, _ = self.page(choice, size, counted=False)
            if page.ids:
                yield page.ids
            if not page.after:
                return
            chosen = {key: value for key, value in choice.said.items() if key not in NUMBERS}
            choice = replace(choice, said=chosen | {"after": str(page.after)})


def hash_of(version: Sequence[Any]) -> str:
    """Return a short name for what a cached thing depends on."""
    return sha256(repr(version).encode()).hexdigest()[:32]


def _cursor(choice: Choice) -> tuple[int, str]:
    """Return the prediction that a page begins or ends at, and the sign that says where the page
    lies.
    """
    falling = choice["sort"] == "sure"
    if choice["before"]:
        return choice.number("before"), ">" if falling else "<"
    if choice["after"]:
        return choice.number("after"), "<" if falling else ">"
    return choice.number("p"), "<=" if falling else ">="


def _chosen(choice: Choice, groups: Mapping[str, Options]) -> dict[str, Any]:
    """filter -> the value that was chosen of it, of those that the groups have."""
    chosen = {name: choice[name] for name in ("verdict", "part", "votes", "who", "confidence")}
    return {
        name: value
        for name, value in (chosen | dict(choice.facets)).items()
        if value and name in groups
    }


def _kept(groups: Mapping[str, Options], chosen: Mapping[str, Any], but: str = "") -> Mask:
    """Return which rows all choices keep, but for one filter."""
    size = next((mask.size for options in groups.values() for mask in options.values()), 0)
    kept = np.ones(size, dtype=np.bool_)
    for name, value in chosen.items():
        if name != but:
            kept &= groups[name].get(value, np.zeros(size, dtype=np.bool_))
    return kept


def _counts(
    groups: Mapping[str, Options],
    chosen: Mapping[str, Any],
    weight: NDArray[np.int64] | None = None,
) -> dict[str, dict[Any, int]]:
    """Return how many rows each value of each filter would leave, and "" none of it."""
    counts: dict[str, dict[Any, int]] = {}
    for name, options in groups.items():
        kept = _kept(groups, chosen, name)
        n = kept.astype(np.int64) if weight is None else kept * weight
        counts[name] = {value: int(n[mask].sum()) for value, mask in options.items()}
        counts[name][""] = int(n.sum())
    return counts


def _page_of(rows: Rows, choice: Choice, size: int, more_is_better: bool = True) -> Page:
    """Return a page of rows that are all held, in the order that was chosen."""
    if choice["sort"] in BY_CONFIDENCE:
        order = np.lexsort((rows.ids, rows.confidence))
        order = order[::-1] if choice["sort"] == "sure" else order
    elif choice["sort"] == "worst":
        order = np.lexsort((rows.ids, rows.value if more_is_better else -rows.value))
    else:
        order = np.arange(rows.ids.size)
    ids = rows.ids[order]
    place = {pk: index for index, pk in enumerate(ids.tolist())}
    start = _start(choice, ids, place, size)
    here = ids[start : start + size].tolist()
    return Page(
        here,
        ids.size,
        after=here[-1] if here and start + size < ids.size else 0,
        before=here[0] if here and start > 0 else 0,
    )


def _start(choice: Choice, ids: NDArray[np.int64], place: Mapping[int, int], size: int) -> int:
    """Return where among all that is listed a page begins; a cursor that is not listed stands where
    its number would.
    """
    begins, _ = _cursor(choice)
    if not begins:
        return 0
    index = place.get(begins)
    if index is None:
        index = int(np.searchsorted(ids, begins)) if choice["sort"] in ("", "text") else 0
        return max(0, index - size) if choice["before"] else index
    if choice["before"]:
        return max(0, index - size)
    return index + 1 if choice["after"] else index - index % size
