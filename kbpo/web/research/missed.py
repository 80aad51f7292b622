"""Facts that readers found in documents and a run does not predict: found by other runs, or by
none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.cache import cache
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path

from kbpo.accounts.models import User
from kbpo.corpus.models import Document
from kbpo.instances.models import Label
from kbpo.sampling.documents.annotated import annotated_documents
from kbpo.submissions.models import Submission
from kbpo.tracks.base import ENTITY
from kbpo.tracks.recall import Found, TrackWithRecall, kind_with_recall, recall_of
from kbpo.web.components.figures import count_text
from kbpo.web.expensive import expensive, export
from kbpo.web.public.documents import may_read, may_see_readers
from kbpo.web.research.explore import run_tabs
from kbpo.web.research.explorer import (
    CACHE_SECONDS,
    COMMON_FILTERS,
    PAGE,
    TEXT_FILTERS,
    Choice,
    Explorer,
    Unreadable,
    explorer_for,
    filter_parameters,
    read_choice,
    refuse_unknown,
    short_hash,
    unknown_value,
    word_filters,
)
from kbpo.web.research.submissions import display_name, is_own_run
from kbpo.web.table import file_of

Fact: TypeAlias = "tuple[Found, list[Submission]]"
"""With who found it"""
NOT_READ_YET = "What people found in whole documents is told once the track is closed."
FINDERS = {"missed": "Others found, missed here", "nobody": "True, found by nobody"}
SORTS = {"text": "As in the text", "most": "Found by most first"}


@dataclass(frozen=True)
class Missed:
    """The selected facts that a run does not predict."""

    choice: Choice
    facts: Mapping[str, list[Fact]]
    """Who found it, as in MISSED -> what the choice leaves"""
    values: Mapping[str, Counter[str]]
    """facet -> value -> how many there are of it, whoever is asked for"""

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
    kind = recall_of(explorer.submission.track)
    if kind is None:
        raise Http404("On this track no documents are read in full.")
    choice = _read_missed_choice(address, explorer, kind, strict=strict)
    facts = _facts(user, explorer, kind)
    kept = _matching_facts(facts, choice)
    values = {}
    for facet in kind.found_facets:
        of_facet = _matching_facts(facts, choice.without(facet))[choice["who"] or "missed"]
        values[facet] = Counter(fact.facets[facet] for fact, _ in of_facet)
    return Missed(choice, kept, values)


def _read_missed_choice(
    address: Mapping[str, str], explorer: Explorer, kind: TrackWithRecall, *, strict: bool
) -> Choice:
    own = {"who": list(FINDERS), "sort": list(SORTS)}
    names = [*kind.found_facets, *word_filters(explorer.kind)]
    sent = {name: value for name, value in address.items() if value or strict}
    elsewhere = {*COMMON_FILTERS, *TEXT_FILTERS, *(facet.name for facet in kind.facets)}
    refuse_unknown(
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


def _facts(user: Any, explorer: Explorer, kind: TrackWithRecall) -> dict[str, list[Fact]]:
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
        facts = kind.found_by(read, [submission.pk, *runs], public=public)
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
    """Show a page of missed facts; with `?format=` return all of them as a file."""
    return (_file if "format" in request.GET else _page)(request, pk)


@expensive
def _page(request: HttpRequest, pk: int) -> HttpResponse:
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
        "name": display_name(submission, is_own_run(request, submission)),
        "tabs": run_tabs(request, explorer, current="Missed"),
        "shown": may_see_readers(request.user, submission.track),
        "readable": may_read(request, submission.track),
        "n_documents": len(annotated_documents(submission.track).documents),
        "refusal": refusal,
        "said": choice.said,
        "sorts": [(name, words, choice["sort"] or "text") for name, words in SORTS.items()],
        "page": Paginator(missed.listed, PAGE).get_page(request.GET.get("page")),
        "query": choice.query(who=missed.who)[1:],
        "filters": _filters(explorer, missed),
        "options": [
            {
                "url": choice.query(who=name),
                "text": f"{words} {count_text(len(missed.facts[name]))}",
                "current": name == missed.who,
            }
            for name, words in FINDERS.items()
        ],
        "everything": choice.query(document=""),
    }
    return render(request, "missed.html", context, status=400 if refusal else 200)


def _filters(explorer: Explorer, missed: Missed) -> list[dict[str, Any]]:
    """Return the filters by facet, each option with its count; the selected option links back."""
    filters = []
    for facet in explorer.kind.facets:
        words = dict(facet.called(explorer.kind.corpus).values())
        options = [
            {
                "url": missed.choice.query(**{facet.name: "" if chosen else value}),
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


@export
def _file(request: HttpRequest, pk: int) -> HttpResponseBase:
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
    return file_of(request, f"missed-{pk}", header, rows)


urlpatterns = [path("submissions/<int:pk>/missed/", show_missed, name="submission-missed")]
