"""Selects the predictions of a run for the explorer: parses filters, lists a page, and counts the
options of each filter.

A list is either *bounded* (judged predictions, or those found by their text: some thousands, as
arrays in memory) or the *whole* run of perhaps a million predictions, whose pages are read from an
index and not counted. No request reads a whole run.
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
from django.http import Http404, HttpRequest
from numpy.typing import NDArray
from rest_framework.request import Request

from annotation.desk import experts
from kbpo.corpus.sql import fetch_rows
from kbpo.instances.models import Instance, Label
from kbpo.sampling.models import ExpertCheck
from kbpo.submissions.models import Submission
from kbpo.tracks.base import ENTITY, Facet
from kbpo.tracks.base import Track as Kind
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.research.judged import is_of_team, is_restricted, sees_only_public, shows_judgments
from kbpo.web.research.submissions import find_run

Mask = NDArray[np.bool_]
Options = dict[str, Mask]
"""Value of a filter -> the rows with that value"""
Counts = Mapping[str, Mapping[Any, int | None]]
"""Filter -> value -> number of predictions that it would list, with "" for no value; None if not
counted"""

PAGE = 50
MOST_DOCUMENTS, MOST_OF_ENTITY = 500, 250
"""Greatest numbers of texts in a search by words, and in a search for a name, which checks each
mention
"""
CACHE_SECONDS = 60
"""Seconds for which verdicts are cached, until there is a new label; limited, since what is public
also depends on the time"""
MOST_NAMED = 60
"""Greatest number of values that a refusal names"""
VERDICTS = {
    "right": "Right",
    "wrong": "Wrong",
    "undecided": "Judged in part",
    "judged": "Judged",
    "unjudged": "Not judged",
    "disputed": "Disputed",
}
"""Verdicts on judged predictions: right, wrong, or undecided, if people disagreed about a part"""
DECIDED = ("right", "wrong", "undecided")
ANY = "any"
"""Value of the filter by wrong part: any part, or the whole"""
SORTS = {
    "text": "As in the text",
    "sure": "Most confident first",
    "unsure": "Least confident first",
    "worst": "Worst first",
}
"""Sort orders; all except text order list judged predictions only"""
SORTS_OF_JUDGED = ("sure", "unsure", "worst")
COMMON_FILTERS = ("verdict", "part", "votes", "who", "sort")
TEXT_FILTERS = {"q", "document", ENTITY}
"""Filters by words, for some kinds of track"""
PREDICTION_NUMBERS = ("after", "p")
"""Parameters with the id of a prediction: the page begins after it, or shows it"""
PAGING_PARAMETERS = ("limit", "offset", "format")
"""Parameters for the size and format of a list"""
NOT_YET = "Judgments are shown once the sample is drawn, and not after a withdrawal."


class Unreadable(Exception):
    """Raised for an invalid filter or value; the text is a sentence, `field` the name of the
    filter.
    """

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = name


def unknown_value(name: str, value: str, choices: Sequence[str]) -> Unreadable:
    """Return the error for an invalid value of a filter; without `choices` the value should be the
    number of a prediction.
    """
    expected = "the number of a prediction"
    if choices:
        shown, n_more = ", ".join(choices[:MOST_NAMED]), len(choices) - MOST_NAMED
        expected = f"one of {shown}{f' and {n_more:,} more' if n_more > 0 else ''}"
    return Unreadable(name, f"{value[:40]!r} is not {expected}.")


@dataclass(frozen=True)
class Choice:
    """The selected filters; `facets` has the values as the database stores them."""

    said: Mapping[str, str] = field(default_factory=dict)
    """The values as in the address"""
    facets: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """Return the value of a filter; empty without one."""
        return self.said.get(name, "")

    def number(self, name: str) -> int:
        """Return the value of a filter that is a prediction's number; 0 without one."""
        return int(self.said.get(name, 0))

    def without_filter(self, name: str) -> Choice:
        """Return the selection without one filter."""
        return replace(self, said={key: value for key, value in self.said.items() if key != name})

    def query_string(self, **changes: str | int) -> str:
        """Return the query string of this selection after changes, at the first page."""
        kept = {key: value for key, value in self.said.items() if key not in PREDICTION_NUMBERS}
        chosen = kept | {key: str(value) for key, value in changes.items()}
        if chosen.get("sort") in SORTS_OF_JUDGED and chosen.get("verdict", "") in ("", "unjudged"):
            del chosen["sort"]
        return "?" + urlencode({key: value for key, value in chosen.items() if value})


def read_choice(
    address: Mapping[str, str], submission: Submission, *, strict: bool = False
) -> Choice:
    """Return the selection that query parameters make. Raises Unreadable.

    Empty values are ignored, as form fields may be empty. With `strict`, for the API, empty values
    and unknown parameters are refused.
    """
    sent = {name: value for name, value in address.items() if value or strict}
    kind = kind_of(submission.track)
    refuse_unknown_filters(
        f"{kind.words.items.capitalize()} of this track",
        [*COMMON_FILTERS, *(facet.name for facet in kind.facets), *word_filters(kind)],
        [name for name in sent if name not in PREDICTION_NUMBERS]
        if strict
        else TEXT_FILTERS & set(sent),
    )
    values_of = {
        "verdict": list(verdict_labels(submission)),
        "part": [ANY, *kind.words.parts],
        "votes": ["split"],
        "who": ["alone"],
        "sort": list(SORTS),
    }
    chosen: dict[str, str] = {}
    for name in COMMON_FILTERS:
        if name in sent:
            if sent[name] not in values_of[name]:
                raise unknown_value(name, sent[name], values_of[name])
            chosen[name] = sent[name]
    searches = any(sent.get(name) for name in word_filters(kind))
    if chosen.get("sort") in SORTS_OF_JUDGED or (chosen.get("who") and not searches):
        chosen.setdefault("verdict", "judged")
    for name in PREDICTION_NUMBERS:
        if name in sent:
            value = sent[name]
            if not (value.isascii() and value.isdecimal() and len(value) < 18):
                raise unknown_value(name, value, ())
            chosen[name] = value
    facets: dict[str, Any] = {}
    for facet in kind.facets:
        if value := sent.get(facet.name, "").replace("\0", ""):
            chosen[facet.name] = value
            facets[facet.name] = _facet_value(kind, facet, value)
    for name in word_filters(kind):
        if value := sent.get(name, "").replace("\0", "").strip()[:200]:
            chosen[name] = value
    return Choice(chosen, facets)


def refuse_unknown_filters(
    items: str, filters: Sequence[str], sent_names: Iterable[str], are: str = "are"
) -> None:
    """Raise Unreadable for a filter that these items do not have."""
    for name in sent_names:
        if name not in filters:
            raise Unreadable(
                name, f"{items} {are} not chosen by {name[:40]!r}, but by {', '.join(filters)}."
            )


def _facet_value(kind: Kind, facet: Facet, value: str) -> Any:
    """Return the database value of a facet. Raises Unreadable."""
    by_name = {word: key for key, (word, _) in facet.called(kind.corpus).items()}
    if by_name and value not in by_name:
        raise unknown_value(facet.name, value, list(by_name))
    return by_name.get(value, value)


def word_filters(kind: Kind) -> list[str]:
    """Return the names of the filters by text: words, document and entity."""
    return ["q", "document", ENTITY] if kind.words.entity else []


def verdict_labels(submission: Submission) -> dict[str, str]:
    """Return the labels of the verdicts; without right and wrong if people rate."""
    kind = kind_of(submission.track)
    criterion = kind.measures.criterion(submission.track.criterion)
    if not kind.words.parts and criterion.single == "mean":
        return {name: VERDICTS[name] for name in VERDICTS if name not in DECIDED}
    return VERDICTS


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions of a submission in ascending order, with the values of all filters as arrays."""

    ids: NDArray[np.int64]
    confidence: NDArray[np.float64]
    """Confidence; −1 if the system gave none"""
    facets: Mapping[str, NDArray[Any]]
    judged: Mask
    value: NDArray[np.float64]
    split: Mask
    parts: Mapping[str, NDArray[np.float64]]
    alone: Mask
    """Whether no other system on the board predicts it"""

    def groups(self, disputed: set[int]) -> dict[str, Options]:
        """Return all filters with their values and a mask of rows for each."""
        right, wrong = self.value == 1, self.value == 0
        parts = {name: values == 0 for name, values in self.parts.items()}
        facets = {
            name: {value: values == value for value in dict.fromkeys(values.tolist())}
            for name, values in self.facets.items()
        }
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
        } | facets

    def rows_at(self, places: NDArray[np.int64]) -> Rows:
        """Return the rows at these places."""
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


@dataclass(frozen=True)
class Page:
    """One page of the list of predictions."""

    ids: list[int]
    n: int | None
    """Length of the list; None if not counted"""
    after: int = 0
    """The last prediction of the page if there are more; 0 otherwise"""


class Explorer:
    """The predictions of one submission, searchable, and limited to what one viewer may see."""

    def __init__(
        self,
        submission: Submission,
        *,
        public: bool,
        restricted: bool = False,
        own: bool = False,
    ) -> None:
        self.submission, self.public, self.restricted = submission, public, restricted
        """`restricted`: the viewer sees only judged predictions, or those of the
        development part
        """
        self.own = own or not public
        """Whether the viewer sees the disputes of the run's team"""
        self.kind = kind_of(submission.track)
        self.reads_documents = kind_with_recall_or_none(submission.track) is not None
        self.all_found = True
        """Whether the search covered every text with the words"""
        self.first_found = MOST_DOCUMENTS
        """Greatest number of texts that the search covers"""

    @cached_property
    def disputes(self) -> dict[int, ExpertCheck]:
        """Return the latest dispute of each target, for the run's team."""
        return experts.latest_disputes_by_target(self.submission) if self.own else {}

    @cached_property
    def disputed(self) -> set[int]:
        """Return the predictions with a dispute."""
        if not self.disputes:
            return set()
        # Two narrow queries, whatever the plan of one.
        instances = Instance.objects.filter(target__in=list(self.disputes))
        predictions = self.submission.predictions.filter(instance__in=list(instances))
        return set(predictions.values_list("pk", flat=True))

    @cached_property
    def other_systems(self) -> list[int]:
        """Return the other systems on the board."""
        board = Submission.objects.filter(track=self.submission.track_id).on_board()
        return sorted(set(board.values_list("pk", flat=True)) - {self.submission.pk})

    @cached_property
    def judged(self) -> Rows:
        """Return the judged predictions that the viewer may see."""
        submission = self.submission
        newest = Label.objects.order_by("-pk").values_list("pk", flat=True).first()
        states = Track.objects.filter(corpus=submission.track.corpus_id).order_by("pk")
        version = (
            submission.pk,
            submission.received_at.isoformat(),
            self.public,
            submission.track.criterion,
            newest,
            *states.values_list("status", flat=True),
            *self.other_systems,
        )
        key = f"explorer:{short_hash(version)}"
        rows: Rows | None = cache.get(key)
        if rows is None:
            judgments = self.kind.verdicts(submission.pk, public=self.public)
            order = np.argsort(np.array(judgments.prediction, dtype=np.int64), kind="stable")
            rows = replace(
                self._unjudged_rows(judgments.prediction),
                judged=np.ones(order.size, dtype=np.bool_),
                value=judgments.value[order],
                split=judgments.split[order],
                parts={name: values[order] for name, values in judgments.parts.items()},
            )
            cache.set(key, rows, CACHE_SECONDS)
        return rows

    def _unjudged_rows(self, ids: Sequence[int]) -> Rows:
        """Return predictions without their judgments."""
        columns = [f"p.{facet.column}" for facet in self.kind.facets]
        confidence = "coalesce(p.confidence, -1.0)"
        alone = (
            "NOT EXISTS (SELECT 1 FROM submissions_prediction o WHERE o.instance_id ="
            " p.instance_id AND o.submission_id = ANY(%s))"
        )
        rows = fetch_rows(
            f"SELECT {', '.join(['p.id', confidence, alone, *columns])} FROM"
            " submissions_prediction p WHERE p.id = ANY(%s) ORDER BY p.id",
            [self.other_systems, list(ids)],
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

    def _search_rows(self, choice: Choice) -> Rows | None:
        """Return the predictions that match words, entity and document; None without
        such a filter.
        """
        if not (choice["q"] or choice[ENTITY] or choice["document"]):
            return None
        if choice[ENTITY]:
            self.first_found = MOST_OF_ENTITY
        found, self.all_found = self.kind.find_predictions(
            self.submission.pk,
            self.first_found,
            words=choice["q"],
            key=choice["document"],
            entity=choice[ENTITY],
        )
        rows, judged = self._unjudged_rows(found), self.judged
        both = np.isin(rows.ids, judged.ids)
        of_judged = judged.rows_at(np.flatnonzero(np.isin(judged.ids, rows.ids)))
        rows.judged[both], rows.value[both] = True, of_judged.value
        rows.split[both] = of_judged.split
        for name, values in rows.parts.items():
            values[both] = of_judged.parts[name]
        return rows.rows_at(np.flatnonzero(rows.judged)) if self.restricted else rows

    def _rows_unless_whole_run(self, choice: Choice) -> Rows | None:
        """Return the rows that a search or a filter selects; None if all rows are shown."""
        found = self._search_rows(choice)
        if found is not None:
            return found
        of_judged = choice["part"] or choice["votes"] or choice["who"]
        if self.restricted or of_judged or choice["verdict"] not in ("", "unjudged"):
            return self.judged
        return None

    def page(self, choice: Choice, size: int = PAGE) -> tuple[Page, Counts]:
        """Return a page of the list, and the counts of every filter."""
        rows = self._rows_unless_whole_run(choice)
        counts = self._filter_counts(choice, rows)
        if rows is None:
            listed = self._page_of_whole(choice, size)
            after = listed[size - 1] if len(listed) > size else 0
            return Page(listed[:size], counts["verdict"][choice["verdict"]], after), counts
        ids = self._row_numbers_in_order(choice, rows)
        start = _first_place(choice, ids)
        here = ids[start : start + size].tolist()
        after = here[-1] if here and start + size < ids.size else 0
        return Page(here, ids.size, after), counts

    def iterate_ids(self, choice: Choice) -> Iterator[list[int]]:
        """Yield the numbers of all selected predictions in blocks."""
        size = 10 * PAGE
        rows = self._rows_unless_whole_run(choice)
        if rows is not None:
            ids = self._row_numbers_in_order(choice, rows).tolist()
            yield from (ids[start : start + size] for start in range(0, len(ids), size))
            return
        after = 0
        while ids := self._page_of_whole(choice.without_filter("p"), size, after=after):
            yield ids[:size]
            after = ids[:size][-1]

    def _page_of_whole(self, choice: Choice, size: int, after: int | None = None) -> list[int]:
        """Return a page of the whole run, with one more prediction if there is a next page."""
        if after is None:
            after = choice.number("after") if choice["after"] else choice.number("p") - 1
        columns = {facet.name: facet.column for facet in self.kind.facets}
        facets = {columns[name]: value for name, value in choice.facets.items()}
        predictions = self.submission.predictions.filter(pk__gt=after, **facets)
        if choice["verdict"] == "unjudged":
            predictions = predictions.exclude(pk__in=self.judged.ids.tolist())
        return list(predictions.order_by("pk").values_list("pk", flat=True)[: size + 1])

    def _row_numbers_in_order(self, choice: Choice, rows: Rows) -> NDArray[np.int64]:
        """Return the numbers of the selected rows in the selected order."""
        groups = rows.groups(self.disputed)
        rows = rows.rows_at(np.flatnonzero(_matching_rows(groups, _active_filters(choice, groups))))
        if choice["sort"] == "worst":
            criterion = self.kind.measures.criterion(self.submission.track.criterion)
            value = rows.value if criterion.higher_is_better else -rows.value
            return rows.ids[np.lexsort((rows.ids, value))]
        if choice["sort"] in ("sure", "unsure"):
            order = np.lexsort((rows.ids, rows.confidence))
            return rows.ids[order[::-1] if choice["sort"] == "sure" else order]
        return rows.ids

    def _filter_counts(self, choice: Choice, bounded: Rows | None) -> Counts:
        """Return the number of rows for each value of each filter. For a whole run only judged
        predictions are counted, and the total if no facet is selected.
        """
        rows = self.judged if bounded is None else bounded
        groups = rows.groups(self.disputed)
        chosen = _active_filters(choice, groups)
        counts: dict[str, dict[Any, int | None]] = {}
        for name, options in groups.items():
            if bounded is None and name != "verdict":
                counts[name] = dict.fromkeys(options)
                continue
            kept = _matching_rows(groups, chosen, name)
            counts[name] = {value: int((kept & mask).sum()) for value, mask in options.items()}
            counts[name][""] = int(kept.sum())
        if rows is self.judged and not self.restricted:
            is_known = not chosen.keys() - {"verdict"}
            n, n_judged = self.submission.n_items or 0, int(rows.ids.size)
            counts["verdict"][""] = n if is_known else None
            counts["verdict"]["unjudged"] = n - n_judged if is_known else None
        return counts


def short_hash(version: Sequence[Any]) -> str:
    """Return a short hash of the state that a cached value depends on."""
    return sha256(repr(version).encode()).hexdigest()[:32]


def _active_filters(choice: Choice, groups: Mapping[str, Options]) -> dict[str, Any]:
    """Return the selected filters that the groups have, with their values."""
    chosen = {name: choice[name] for name in ("verdict", "part", "votes", "who")}
    return {
        name: value
        for name, value in (chosen | dict(choice.facets)).items()
        if value and name in groups
    }


def _matching_rows(
    groups: Mapping[str, Options], chosen: Mapping[str, Any], ignored_filter: str = ""
) -> Mask:
    """Return a mask of the rows that match all selected filters except `ignored_filter`."""
    size = groups["verdict"]["judged"].size
    kept = np.ones(size, dtype=np.bool_)
    for name, value in chosen.items():
        if name != ignored_filter:
            kept &= groups[name].get(value, np.zeros(size, dtype=np.bool_))
    return kept


def _first_place(choice: Choice, ids: NDArray[np.int64]) -> int:
    """Return the index at which the page begins. A prediction that is not listed is placed by its
    number.
    """
    begins = choice.number("after") if choice["after"] else choice.number("p")
    if not begins:
        return 0
    [places] = np.nonzero(ids == begins)
    if places.size:
        return int(places[0]) + (1 if choice["after"] else 0)
    return int(np.searchsorted(ids, begins)) if choice["sort"] in ("", "text") else 0


def filter_parameters(request: HttpRequest | Request) -> dict[str, str]:
    """Return the query parameters without those of paging and format."""
    return {
        name: value for name, value in request.GET.dict().items() if name not in PAGING_PARAMETERS
    }


def explorer_for(request: HttpRequest | Request, pk: int) -> Explorer:
    """Return the explorer of a submission for the visitor of a page or the API. Raises Http404 if
    they may not see it.
    """
    submission = find_run(request, pk)
    if not shows_judgments(submission):
        raise Http404(NOT_YET)
    return Explorer(
        submission,
        public=sees_only_public(request.user, submission),
        restricted=is_restricted(request.user, submission),
        own=is_of_team(request.user, submission),
    )
