"""What people found true in documents that they read in full and a run does not predict: what
others found, and what nobody did; chosen by relation, by name, by words of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.cache import cache
from django.http import Http404

from kbpo.accounts.models import User
from kbpo.corpus.models import Document
from kbpo.instances.models import Label
from kbpo.sampling.documents.annotated import annotated_documents
from kbpo.submissions.models import Submission
from kbpo.tracks.base import ENTITY
from kbpo.tracks.recall import Found, TrackWithRecall, recall_of
from kbpo.web.public.documents import shows_readers
from kbpo.web.research.explorer import (
    ELSEWHERE,
    GIVEN,
    KEPT,
    Choice,
    Explorer,
    carried,
    hash_of,
    no_such,
    read_choice,
    refuse_unknown,
)

Fact: TypeAlias = "tuple[Found, list[Submission]]"
"""With who found it"""
NOT_READ_YET = "What people found in whole documents is told once the track is closed."
MISSED = {"missed": "Others found, missed here", "nobody": "True, found by nobody"}
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
    """Return what an address chooses of what a run misses; `strict` is as of `read_choice`. Raises
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
        of_facet = _kept(facts, choice.without(facet))[choice["who"] or "missed"]
        values[facet] = Counter(fact.facets[facet] for fact, _ in of_facet)
    return Missed(choice, kept, values)


def _read(
    address: Mapping[str, str], explorer: Explorer, kind: TrackWithRecall, *, strict: bool
) -> Choice:
    own = {"who": list(MISSED), "sort": list(SORTS)}
    names = carried(explorer.submission)
    sent = {name: value for name, value in address.items() if value or strict}
    elsewhere = {*GIVEN, *ELSEWHERE, *(facet.name for facet in kind.facets)}
    refuse_unknown(
        "What is missed", [*own, *names], sent if strict else elsewhere & set(sent), "is"
    )
    shared = {name: value for name, value in sent.items() if name in names}
    choice = read_choice(shared, explorer.submission, strict=strict)
    chosen = dict(choice.said)
    for name, values in own.items():
        if name in sent:
            if sent[name] not in values:
                raise no_such(name, sent[name], values)
            chosen[name] = sent[name]
    return Choice(chosen, choice.facets)


def _facts(user: Any, explorer: Explorer, kind: TrackWithRecall) -> dict[str, list[Fact]]:
    """Return what others found and this run did not, and what nobody did. Nothing where somebody
    may not know what was read.
    """
    track = explorer.submission.track
    facts: dict[str, list[Fact]] = {name: [] for name in MISSED}
    if not shows_readers(user, track):
        return facts
    runs = Submission.objects.filter(pk__in=explorer.others).select_related("team").in_bulk()
    is_staff = isinstance(user, User) and user.is_staff
    for fact, found_by in _found(explorer, kind, [*runs], public=not is_staff):
        if explorer.submission.pk not in found_by:
            finders = [runs[pk] for pk in sorted(found_by)]
            facts["missed" if finders else "nobody"].append((fact, finders))
    return facts


def _found(
    explorer: Explorer, kind: TrackWithRecall, runs: list[int], *, public: bool
) -> list[tuple[Found, set[int]]]:
    """Return what is true in all documents that were read, with who predicts it; kept for as long
    as what is public may be, until there is a new label.
    """
    submission = explorer.submission
    newest = Label.objects.order_by("-pk").values_list("pk", flat=True).first()
    read = list(map(int, annotated_documents(submission.track).documents))
    version = (submission.pk, submission.received_at.isoformat(), public, newest, runs, read)
    key = f"missed:{hash_of(version)}"
    facts: list[tuple[Found, set[int]]] | None = cache.get(key)
    if facts is None:
        facts = kind.found_by(read, [submission.pk, *runs], public=public)
        cache.set(key, facts, KEPT)
    return facts


def _kept(facts: Mapping[str, list[Fact]], choice: Choice) -> dict[str, list[Fact]]:
    """Return those that a choice leaves."""
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
    """Return a fact that a run does not predict, for programs: with the runs that do."""
    return fact.record | {"found_by": [run.pk for run in runs]}
