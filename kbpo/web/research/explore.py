"""The explorer page: the predictions of a run with the judgments of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import isnan
from textwrap import shorten
from typing import Any, TypeAlias

import numpy as np
from django.core.cache import cache
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse

from kbpo.accounts.models import User
from kbpo.corpus.models import Document
from kbpo.corpus.sql import fetch_rows
from kbpo.evaluation.latest import Latest
from kbpo.instances.models import Label
from kbpo.sampling.documents.draw import annotated_documents
from kbpo.submissions.models import Submission
from kbpo.tracks.base import ENTITY, Judged
from kbpo.tracks.models import Track
from kbpo.tracks.recall import Found, TrackWithRecall, kind_with_recall, kind_with_recall_or_none
from kbpo.web.components.figures import count_text
from kbpo.web.expensive import limit_concurrency, limit_exports
from kbpo.web.public.documents import may_read, may_see_readers
from kbpo.web.research.explorer import (
    CACHE_SECONDS,
    COMMON_FILTERS,
    PAGE,
    SORTS,
    TEXT_FILTERS,
    Choice,
    Counts,
    Explorer,
    Unreadable,
    explorer_for,
    filter_parameters,
    read_choice,
    refuse_unknown_filters,
    short_hash,
    unknown_value,
    verdict_labels,
    word_filters,
)
from kbpo.web.research.judged import add_disputes, is_of_team, metric_scores
from kbpo.web.research.slices import slice_table
from kbpo.web.research.submissions import display_name
from kbpo.web.table import table_file

WHO_ELSE = {"alone": "Only this system"}
SHOWN_VALUES = 8
"""Number of values of a filter that are listed before “more”"""
LONGEST_NAME = 140
"""Greatest number of characters of a claim in a page title and in labels of regions"""
RARE_VERDICTS = ("undecided", "disputed")
"""Verdicts that are hidden while their count is 0"""
VERDICT_KEYS = {"right": "r", "wrong": "w", "unjudged": "u"}


def explore_run(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the page that lists the selected predictions and shows one of them in its text; with
    `?format=` all selected predictions as a file.
    """
    return (_explorer_file if "format" in request.GET else _explorer_page)(request, pk)


@limit_concurrency
def _explorer_page(request: HttpRequest, pk: int) -> HttpResponse:
    explorer = explorer_for(request, pk)
    submission, refusal = explorer.submission, ""
    own = is_of_team(request.user, submission)
    try:
        choice = read_choice(filter_parameters(request), submission)
    except Unreadable as wrong:
        choice, refusal = Choice(), f"{wrong} All predictions are listed."
    page, counts = explorer.page(choice)
    predictions = prediction_rows(explorer, page.ids)
    opened = _opened_prediction(explorer, choice, predictions)
    after = choice["after"] or str(max(0, choice.number("p") - 1))
    for row in predictions:
        row.prediction.url = choice.query_string(after=after, p=row.prediction.pk)
    latest, group = Latest.read_latest(submission), request.GET.get("by", "")
    address = reverse("submission-explore", args=[pk])
    slices = slice_table(latest, group, is_own_team=own, address=address)
    is_sure = bool((explorer.judged.confidence >= 0).any())
    context: dict[str, Any] = {
        "submission": submission,
        "name": display_name(submission, own),
        "kind": explorer.kind,
        "words": explorer.kind.words,
        "pages": explorer.kind.pages,
        "own": own,
        "mine": own,
        "hidden": explorer.public and submission.track.hides_test,
        "said": choice.said,
        "refusal": refusal,
        "rows": predictions,
        "n": page.n,
        "total": submission.n_items or 0,
        "all_found": explorer.all_found,
        "first_found": explorer.first_found,
        "filters": _explorer_filters(explorer, choice, counts),
        "sorts": [
            (name, words, choice["sort"] or "text")
            for name, words in SORTS.items()
            if name not in ("sure", "unsure") or is_sure
        ],
        "rated": explorer.kind.rates,
        "searchable": bool(explorer.kind.words.entity),
        "tabs": run_tabs(request, explorer, is_cut=bool(slices["rows"])),
        "documents": explorer.reads_documents and may_read(request, submission.track),
        "everywhere": choice.query_string(document=""),
        "of_anything": choice.query_string(entity=""),
        "export": choice.query_string(),
        "slices": slices,
    }
    if page.after:
        context["next"] = choice.query_string(after=page.after)
    if opened is not None:
        context |= _prediction_context(explorer, predictions, opened, context.get("next", ""))
    return render(request, "explore.html", context, status=400 if refusal else 200)


def run_tabs(
    request: HttpRequest,
    explorer: Explorer,
    *,
    current: str = "Predictions",
    is_cut: bool = False,
) -> list[dict[str, Any]]:
    """Return the tabs of a run's pages; with `is_cut` the page has slices."""
    submission = explorer.submission
    tabs = [("Predictions", reverse("submission-explore", args=[submission.pk]))]
    if is_cut:
        tabs.append(("Slices", "#slices"))
    if explorer.reads_documents:
        tabs.append(("Missed", reverse("submission-missed", args=[submission.pk])))
        if may_read(request, submission.track):
            tabs.append(("Documents", reverse("track-documents", args=[submission.track.slug])))
    return [{"text": text, "url": url, "current": text == current} for text, url in tabs]


def prediction_rows(explorer: Explorer, ids: list[int]) -> list[Judged]:
    """Return predictions ready for a page, with the number of other systems on the board that
    predict each; for texts also the scores of metrics and judges.
    """
    judged = explorer.judged.ids
    unjudged = set(ids) - set(judged.tolist())
    predictions = explorer.kind.describe_predictions(
        explorer.submission.pk, ids, public=explorer.public, unjudged=unjudged
    )
    predictions = add_disputes(explorer.submission, predictions, explorer.own, explorer.disputes)
    instances = [row.prediction.instance_id for row in predictions]
    counted = fetch_rows(
        "SELECT instance_id, count(*) FROM submissions_prediction WHERE instance_id = ANY(%s) AND"
        " submission_id = ANY(%s) GROUP BY 1",
        [instances, explorer.other_systems],
    )
    n_others = dict(counted)
    for row in predictions:
        row.prediction.others = n_others.get(row.prediction.instance_id, 0)
    if explorer.kind.rates:
        named, scores = metric_scores(
            explorer.submission.track, np.array(instances, dtype=np.int64)
        )
        labels = [label for _, label in named]
        for row, values in zip(predictions, scores.tolist(), strict=True):
            said = zip(labels, values, strict=True)
            row.prediction.scores = {label: one for label, one in said if not isnan(one)}
    return predictions


def _opened_prediction(
    explorer: Explorer, choice: Choice, predictions: list[Judged]
) -> Judged | None:
    """Return the prediction that the page shows in its text: the selected one, else the first."""
    wanted = choice.number("p")
    if not wanted:
        return predictions[0] if predictions else None
    for row in predictions:
        if row.prediction.pk == wanted:
            return row
    if not explorer.submission.predictions.filter(pk=wanted).exists():
        raise Http404("This submission has no such prediction.")
    return prediction_rows(explorer, [wanted])[0]


def _prediction_context(
    explorer: Explorer, predictions: list[Judged], opened: Judged, next_page: str
) -> dict[str, Any]:
    """Return the template context of one prediction, with the addresses of its neighbours in the
    list.
    """
    numbers = [row.prediction.pk for row in predictions]
    place = numbers.index(opened.prediction.pk) if opened.prediction.pk in numbers else -1
    following = next_page
    if place + 1 < len(predictions):
        following = predictions[place + 1].prediction.url
    earlier = predictions[place - 1].prediction.url if place > 0 else ""
    address = reverse("submission-explore", args=[explorer.submission.pk])
    return {
        "one": opened,
        "claim": shorten(opened.claim_text, LONGEST_NAME, placeholder=" …"),
        "more": opened.extra_page_values(),
        "following": following,
        "earlier": earlier,
        "permalink": f"{address}?p={opened.prediction.pk}",
    }


def _explorer_filters(explorer: Explorer, choice: Choice, counts: Counts) -> list[dict[str, Any]]:
    """Return the filters, each option with its count and address."""
    kind = explorer.kind
    parts = {"any": "Any"} | dict(kind.words.parts) if kind.words.parts else {}
    verdicts = {  # rare ones are shown where there are any
        name: text
        for name, text in verdict_labels(explorer.submission).items()
        if name not in RARE_VERDICTS or counts["verdict"].get(name) or choice["verdict"] == name
    }
    filters = [
        _filter_context("verdict", "Verdict", verdicts, choice, counts, anything="Any"),
        _filter_context("part", "Wrong part", parts, choice, counts),
        _filter_context("votes", "Answers of people", {"split": "Divided"}, choice, counts),
        _filter_context("who", "Also predicted by", WHO_ELSE, choice, counts),
    ]
    for facet in kind.facets:
        words = facet.called(kind.corpus)
        counted = counts.get(facet.name, {})
        values = sorted(
            (value for value in counted if value != ""),
            key=lambda value: (-(counted[value] or 0), str(value)),
        )
        named = {
            words.get(value, (str(value), ""))[0]: words.get(value, ("", str(value)))[1]
            for value in values
        }
        number_of = {words.get(value, (str(value), ""))[0]: n for value, n in counted.items()}
        of_facet = {**counts, facet.name: number_of}
        filters.append(
            _filter_context(facet.name, facet.label, named, choice, of_facet, short=True)
        )
    return [panel for panel in filters if panel["options"]]


def _filter_context(
    name: str,
    label: str,
    values: dict[str, str],
    choice: Choice,
    counts: Counts,
    *,
    anything: str = "",
    short: bool = False,
) -> dict[str, Any]:
    """Return one filter; `short` omits options without predictions and folds long lists."""
    number_of, chosen = counts.get(name, {}), choice[name]
    options = []
    if anything:
        options.append(
            _filter_option(
                choice.query_string(**{name: ""}), anything, number_of.get(""), not chosen, "a"
            )
        )
    for value, words in values.items():
        if short and number_of.get(value, 0) == 0 and value != chosen:
            continue
        is_chosen = value == chosen
        url = choice.query_string(**{name: "" if is_chosen and not anything else value})
        key = VERDICT_KEYS.get(value, "") if name == "verdict" else ""
        options.append(_filter_option(url, words, number_of.get(value), is_chosen, key))
    folds = short and len(options) > SHOWN_VALUES + 1
    unfolded = [
        option
        for place, option in enumerate(options)
        if not folds or place < SHOWN_VALUES or option["chosen"]
    ]
    return {
        "label": label,
        "options": unfolded,
        "folded": [option for option in options if option not in unfolded],
    }


def _filter_option(url: str, text: str, n: int | None, chosen: bool, key: str) -> dict[str, Any]:
    return {"url": url, "text": text, "n": n, "chosen": chosen, "key": key}


@limit_exports
def _explorer_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return all selected predictions as a file."""
    explorer = explorer_for(request, pk)
    try:
        choice = read_choice(filter_parameters(request), explorer.submission)
    except Unreadable as wrong:
        return HttpResponse(str(wrong), status=400, content_type="text/plain; charset=utf-8")
    records = (
        prediction_record(row)
        for ids in explorer.iterate_ids(choice)
        for row in prediction_rows(explorer, ids)
    )
    first = next(records, None)
    if first is not None:
        header = list(first)
    else:  # the header of an empty file is that of any prediction
        some = explorer.submission.predictions.order_by("pk").values_list("pk", flat=True)[:1]
        rows = prediction_rows(explorer, list(some))
        header = list(prediction_record(rows[0])) if rows else ["prediction"]
    lines = (list(record.values()) for record in chain([first] if first else [], records))
    return table_file(request, f"predictions-{pk}", header, lines)


def prediction_record(prediction: Judged) -> dict[str, Any]:
    """Return a prediction as JSON, with its dispute and number of other systems."""
    dispute = prediction.dispute
    return prediction.as_json() | {
        "dispute": dispute
        and {
            "status": dispute.status,
            "agrees": dispute.agrees,
            "remark": "" if dispute.status == "open" else dispute.remark,
        },
        "other_systems": prediction.prediction.others,
        **(
            {"scores": prediction.prediction.scores}
            if hasattr(prediction.prediction, "scores")
            else {}
        ),
    }


def explore_newest(request: HttpRequest) -> HttpResponse:
    """Redirect to the user's run that changed last, else to the documents of the newest track."""
    user = request.user
    if isinstance(user, User):
        submissions = Submission.objects.filter(
            sampled_at__isnull=False, status__in=["judging", "scored"]
        )
        own = submissions.filter(team__members=user)
        row = own.order_by("-status_since", "-pk").first()
        if row is not None:
            return redirect("submission-explore", pk=row.pk)
    tracks = Track.objects.exclude(status="draft").filter(
        corpus__may_be_downloaded=True, corpus__n_documents__gt=0
    )
    track = tracks.order_by("-pk").first()
    return redirect("track-documents", slug=track.slug) if track else redirect("tracks")


Fact: TypeAlias = "tuple[Found, list[Submission]]"
"""A fact, with the runs that found it"""
NOT_READ_YET = "Facts found in whole documents are shown once the track is closed."
FINDERS = {"missed": "Others found, missed here", "nobody": "True, found by nobody"}
MISSED_SORTS = {"text": "As in the text", "most": "Found by most first"}


@dataclass(frozen=True)
class Missed:
    """The selected facts that a run does not predict."""

    choice: Choice
    facts: Mapping[str, list[Fact]]
    """Finder, as in MISSED -> the selected facts"""
    values: Mapping[str, Counter[str]]
    """facet -> value -> number of facts, over all finders"""

    @property
    def who(self) -> str:
        """Return the key in `FINDERS` of the selected group of facts, by default “missed”."""
        return self.choice["who"] or "missed"

    @property
    def listed(self) -> list[Fact]:
        """Return the facts of that group in the selected order."""
        facts = self.facts[self.who]
        if self.choice["sort"] == "most":
            return sorted(facts, key=lambda fact: -len(fact[1]))
        return facts


def find_missed(
    user: Any, explorer: Explorer, address: Mapping[str, str], *, strict: bool = False
) -> Missed:
    """Return the facts that query parameters select; `strict` as in `read_choice`. Raises
    Unreadable, and Http404 if no documents are read in full.
    """
    kind = kind_with_recall_or_none(explorer.submission.track)
    if kind is None:
        raise Http404("On this track no documents are read in full.")
    choice = _read_choice_of_missed_facts(address, explorer, kind, strict=strict)
    facts = _facts_by_finder(user, explorer, kind)
    kept = _matching_facts(facts, choice)
    values = {}
    for facet in kind.found_facets:
        of_facet = _matching_facts(facts, choice.without_filter(facet))[choice["who"] or "missed"]
        values[facet] = Counter(fact.facets[facet] for fact, _ in of_facet)
    return Missed(choice, kept, values)


def _read_choice_of_missed_facts(
    address: Mapping[str, str], explorer: Explorer, kind: TrackWithRecall, *, strict: bool
) -> Choice:
    own = {"who": list(FINDERS), "sort": list(MISSED_SORTS)}
    names = [*kind.found_facets, *word_filters(explorer.kind)]
    sent = {name: value for name, value in address.items() if value or strict}
    elsewhere = {*COMMON_FILTERS, *TEXT_FILTERS, *(facet.name for facet in kind.facets)}
    refuse_unknown_filters(
        "What is missed", [*own, *names], sent if strict else elsewhere & set(sent), "is"
    )
    shared = {name: value for name, value in sent.items() if name in names}
    choice = read_choice(shared, explorer.submission, strict=strict)
    chosen = dict(choice.said)
    for name, values in own.items():
        if name in sent:
            if sent[name] not in values:
                raise unknown_value(name, sent[name], values)
            chosen[name] = sent[name]
    return Choice(chosen, choice.facets)


def _facts_by_finder(user: Any, explorer: Explorer, kind: TrackWithRecall) -> dict[str, list[Fact]]:
    """Return the facts that other runs predict and this one does not, and those that no run
    predicts. Empty if the user may not know which documents were read.
    """
    track = explorer.submission.track
    facts: dict[str, list[Fact]] = {name: [] for name in FINDERS}
    if not may_see_readers(user, track):
        return facts
    runs = Submission.objects.filter(pk__in=explorer.other_systems).select_related("team").in_bulk()
    is_staff = isinstance(user, User) and user.is_staff
    for fact, found_by in _true_facts(explorer, kind, [*runs], public=not is_staff):
        if explorer.submission.pk not in found_by:
            finders = [runs[pk] for pk in sorted(found_by)]
            facts["missed" if finders else "nobody"].append((fact, finders))
    return facts


def _true_facts(
    explorer: Explorer, kind: TrackWithRecall, runs: list[int], *, public: bool
) -> list[tuple[Found, set[int]]]:
    """Return all true facts of the documents that were read, with the runs that predict each;
    cached until there is a new label.
    """
    submission = explorer.submission
    newest = Label.objects.order_by("-pk").values_list("pk", flat=True).first()
    read = list(map(int, annotated_documents(submission.track).documents))
    version = (submission.pk, submission.received_at.isoformat(), public, newest, runs, read)
    key = f"missed:{short_hash(version)}"
    facts: list[tuple[Found, set[int]]] | None = cache.get(key)
    if facts is None:
        facts = kind.facts_with_systems(read, [submission.pk, *runs], public=public)
        cache.set(key, facts, CACHE_SECONDS)
    return facts


def _matching_facts(facts: Mapping[str, list[Fact]], choice: Choice) -> dict[str, list[Fact]]:
    """Return the facts that match a selection."""
    documents = None
    if choice["q"]:
        read = {fact.document for listed in facts.values() for fact, _ in listed}
        matching = Document.objects.filter(pk__in=read).with_words(choice["q"])
        documents = set(matching.values_list("pk", flat=True))

    def is_kept(fact: Found) -> bool:
        return (
            all(choice[name] in ("", value) for name, value in fact.facets.items())
            and choice["document"] in ("", fact.key)
            and (documents is None or fact.document in documents)
            and (not choice[ENTITY] or fact.is_about(choice[ENTITY]))
        )

    return {
        finder: [entry for entry in listed if is_kept(entry[0])] for finder, listed in facts.items()
    }


def missed_record(fact: Found, runs: list[Submission]) -> dict[str, Any]:
    """Return a fact as JSON, with the runs that predict it."""
    return fact.record | {"found_by": [run.pk for run in runs]}


def show_missed(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return a page of missed facts; with `?format=` all of them as a file."""
    return (_missed_file if "format" in request.GET else _missed_page)(request, pk)


@limit_concurrency
def _missed_page(request: HttpRequest, pk: int) -> HttpResponse:
    explorer, refusal = explorer_for(request, pk), ""
    submission = explorer.submission
    try:
        missed = find_missed(request.user, explorer, filter_parameters(request))
    except Unreadable as wrong:
        missed, refusal = find_missed(request.user, explorer, {}), f"{wrong} All is listed."
    choice = missed.choice
    context = {
        "submission": submission,
        "words": explorer.kind.words,
        "name": display_name(submission, is_of_team(request.user, submission)),
        "tabs": run_tabs(request, explorer, current="Missed"),
        "shown": may_see_readers(request.user, submission.track),
        "readable": may_read(request, submission.track),
        "n_documents": len(annotated_documents(submission.track).documents),
        "refusal": refusal,
        "said": choice.said,
        "sorts": [(name, words, choice["sort"] or "text") for name, words in MISSED_SORTS.items()],
        "page": Paginator(missed.listed, PAGE).get_page(request.GET.get("page")),
        "query": choice.query_string(who=missed.who)[1:],
        "filters": _missed_filters(explorer, missed),
        "options": [
            {
                "url": choice.query_string(who=name),
                "text": f"{words} {count_text(len(missed.facts[name]))}",
                "current": name == missed.who,
            }
            for name, words in FINDERS.items()
        ],
        "everything": choice.query_string(document=""),
    }
    return render(request, "missed.html", context, status=400 if refusal else 200)


def _missed_filters(explorer: Explorer, missed: Missed) -> list[dict[str, Any]]:
    """Return the filters by facet, each option with its count and address; the address of the
    selected option removes the filter.
    """
    filters = []
    for facet in explorer.kind.facets:
        words = dict(facet.called(explorer.kind.corpus).values())
        options = [
            {
                "url": missed.choice.query_string(**{facet.name: "" if chosen else value}),
                "text": words.get(value, value),
                "n": n,
                "chosen": chosen,
            }
            for value, n in missed.values.get(facet.name, Counter()).most_common()
            for chosen in [missed.choice[facet.name] == value]
        ]
        if options:
            filters.append({"label": facet.label, "options": options})
    return filters


@limit_exports
def _missed_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return all selected facts as a file. Raises Http404 while they are hidden."""
    explorer = explorer_for(request, pk)
    if not may_see_readers(request.user, explorer.submission.track):
        raise Http404(NOT_READ_YET)
    try:
        missed = find_missed(request.user, explorer, filter_parameters(request))
    except Unreadable as wrong:
        return HttpResponse(str(wrong), status=400, content_type="text/plain; charset=utf-8")
    header = [*kind_with_recall(explorer.submission.track).found_columns, "found_by"]
    rows = [list(missed_record(fact, runs).values()) for fact, runs in missed.listed]
    return table_file(request, f"missed-{pk}", header, rows)


urlpatterns = [
    path("explore/", explore_newest, name="explore"),
    path("submissions/<int:pk>/explore/", explore_run, name="submission-explore"),
    path("submissions/<int:pk>/missed/", show_missed, name="submission-missed"),
]
