"""What people found true in documents that they read in full and a run does not predict: what others
found, and what nobody did; listed by relation, by name, by words of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import path

from kbpo.accounts.models import User
from kbpo.corpus.models import Document
from kbpo.inclusion.annotated import annotated
from kbpo.submissions.models import Submission
from kbpo.tracks.base import ENTITY
from kbpo.tracks.recall import Found, TrackWithRecall, recall_of
from kbpo.web.components.figures import count_text
from kbpo.web.csv import csv_stream, json_stream
from kbpo.web.public.documents import may_read, shows_readers
from kbpo.web.research.explore import MISSED, explored, tabs_of
from kbpo.web.research.explorer import PAGE, Choice, Explorer, Unreadable, carried, read_choice
from kbpo.web.research.submissions import is_own, name_for

Fact: TypeAlias = "tuple[Found, list[Submission]]"
"""With who found it"""
SORTS = {"text": "As in the text", "most": "Found by most first"}


@dataclass(frozen=True)
class Missed:
    """What was chosen of it."""

    choice: Choice
    facts: Mapping[str, list[Fact]]
    """Who found it, as in MISSED -> what the choice leaves"""
    values: Mapping[str, Counter[str]]
    """facet -> value -> how many there are of it, whoever is asked for"""

    @property
    def who(self) -> str:
        """Of whose finds there is a list."""
        return self.choice["who"] or "missed"

    @property
    def listed(self) -> list[Fact]:
        """Those, in the order that was chosen."""
        facts = self.facts[self.who]
        if self.choice["sort"] == "most":
            return sorted(facts, key=lambda fact: -len(fact[1]))
        return facts


def missed_of(
    user: Any, explorer: Explorer, address: Mapping[str, str], *, strict: bool = False
) -> Missed:
    """What an address chooses of what a run misses; `strict`: nothing else may stand in it. Raises
    Http404 where no documents are read in full, and Unreadable.
    """
    kind = recall_of(explorer.submission.track)
    if kind is None:
        raise Http404("On this track no documents are read in full.")
    choice = _read(address, explorer, kind, strict=strict)
    facts = _facts(user, explorer, kind)
    kept = _kept(facts, choice)
    values = {}
    for facet in kind.found_facets:
        others = _kept(facts, choice.without(facet))[choice["who"] or "missed"]
        values[facet] = Counter(fact.facets[facet] for fact, _ in others)
    return Missed(choice, kept, values)


def _read(
    address: Mapping[str, str], explorer: Explorer, kind: TrackWithRecall, *, strict: bool
) -> Choice:
    own = {"who": list(MISSED), "sort": list(SORTS)}
    names = carried(explorer.submission)
    for name in address if strict else ():
        if name not in (*own, *names):
            known = ", ".join((*own, *names))
            raise Unreadable(
                name, f"What is missed is not chosen by {name[:40]!r}, but by {known}."
            )
    said = {name: value for name, value in address.items() if name in names}
    choice = read_choice(said, explorer.submission, strict=strict)
    told = dict(choice.said)
    for name, values in own.items():
        if (value := address.get(name)) in values:
            told[name] = str(value)
        elif value is not None and strict:
            raise Unreadable(name, f"{value[:40]!r} is not one of {', '.join(values)}.")
    return Choice(told, choice.facets)


def _facts(user: Any, explorer: Explorer, kind: TrackWithRecall) -> dict[str, list[Fact]]:
    """What others found and this run did not, and what nobody did. Nothing where somebody may not
    know what was read.
    """
    track = explorer.submission.track
    facts: dict[str, list[Fact]] = {name: [] for name in MISSED}
    if not shows_readers(user, track):
        return facts
    runs = Submission.objects.filter(pk__in=explorer.others).select_related("team").in_bulk()
    systems = [explorer.submission.pk, *runs]
    is_staff = isinstance(user, User) and user.is_staff
    read = annotated(track).documents
    for fact, found_by in kind.found_by(read, systems, public=not is_staff):
        if explorer.submission.pk not in found_by:
            others = [runs[pk] for pk in sorted(found_by)]
            facts["missed" if others else "nobody"].append((fact, others))
    return facts


def _kept(facts: Mapping[str, list[Fact]], choice: Choice) -> dict[str, list[Fact]]:
    """Those that a choice leaves."""
    documents = None
    if choice["q"]:
        read = {fact.document for some in facts.values() for fact, _ in some}
        rows = Document.objects.filter(pk__in=read).with_words(choice["q"])
        documents = set(rows.values_list("pk", flat=True))

    def is_kept(fact: Found) -> bool:
        return (
            all(choice[name] in ("", value) for name, value in fact.facets.items())
            and choice["document"] in ("", fact.key)
            and (documents is None or fact.document in documents)
            and (not choice[ENTITY] or fact.is_about(choice[ENTITY]))
        )

    return {who: [one for one in some if is_kept(one[0])] for who, some in facts.items()}


def missed_record(fact: Found, runs: list[Submission]) -> dict[str, Any]:
    """A fact that a run does not predict, for programs: with the runs that do."""
    return fact.record | {"found_by": [run.pk for run in runs]}


def show(request: HttpRequest, pk: int) -> HttpResponse:
    """A page of it."""
    explorer, refusal = explored(request, pk), ""
    submission = explorer.submission
    try:
        found = missed_of(request.user, explorer, request.GET.dict())
    except Unreadable as wrong:
        found, refusal = missed_of(request.user, explorer, {}), f"{wrong} All is listed."
    choice = found.choice
    context = {
        "submission": submission,
        "name": name_for(submission, is_own(request, submission)),
        "tabs": tabs_of(request, explorer, choice, current="Missed"),
        "shown": shows_readers(request.user, submission.track),
        "readable": may_read(request, submission.track),
        "n_documents": len(annotated(submission.track).documents),
        "refusal": refusal,
        "said": choice.said,
        "sorts": [(name, words, choice["sort"] or "text") for name, words in SORTS.items()],
        "page": Paginator(found.listed, PAGE).get_page(request.GET.get("page")),
        "query": choice.query(who=found.who)[1:],
        "filters": _filters(explorer, found),
        "options": [
            {
                "url": choice.query(who=name),
                "text": f"{words} {count_text(len(found.facts[name]))}",
                "current": name == found.who,
            }
            for name, words in MISSED.items()
        ],
        "everything": choice.query(document=""),
    }
    return render(request, "missed.html", context, status=400 if refusal else 200)


def _filters(explorer: Explorer, found: Missed) -> list[dict[str, Any]]:
    """The values of each facet with how many there are of them; the one that is chosen leads back."""
    filters = []
    for facet in explorer.kind.facets:
        words = dict(explorer.kind.facet_words(facet.name).values())
        options = [
            {
                "url": found.choice.query(**{facet.name: "" if chosen else value}),
                "text": words.get(value, value),
                "n": n,
                "chosen": chosen,
            }
            for value, n in found.values.get(facet.name, Counter()).most_common()
            for chosen in [found.choice[facet.name] == value]
        ]
        if options:
            filters.append({"label": facet.label, "options": options})
    return filters


def export(request: HttpRequest, pk: int, form: str) -> HttpResponse | StreamingHttpResponse:
    """The same as a file."""
    explorer = explored(request, pk)
    try:
        found = missed_of(request.user, explorer, request.GET.dict())
    except Unreadable as wrong:
        return HttpResponse(str(wrong), status=400, content_type="text/plain; charset=utf-8")
    header = ["document", "subject", "predicate", "object", "claim", "found_by"]
    rows = [list(missed_record(fact, runs).values()) for fact, runs in found.listed]
    name = f"missed-{pk}.{form}"
    return csv_stream(name, header, rows) if form == "csv" else json_stream(name, header, rows)


urlpatterns = [
    path("submissions/<int:pk>/missed/", show, name="submission-missed"),
    path(
        "submissions/<int:pk>/missed.csv",
        export,
        {"form": "csv"},
        name="submission-missed-csv",
    ),
    path(
        "submissions/<int:pk>/missed.jsonl",
        export,
        {"form": "jsonl"},
        name="submission-missed-jsonl",
    ),
]
