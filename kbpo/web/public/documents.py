"""Shows the documents of a track with their names, predictions and facts that readers found, as far
as the visitor may see them.
"""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path
from rest_framework.request import Request

from kbpo.corpus.models import Document, Mention, Part
from kbpo.sampling.documents.draw import annotated_documents
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.base import Judged
from kbpo.tracks.models import Track, can_see_all_judgments
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.components.viewer import NAME, Span
from kbpo.web.http import public_track
from kbpo.web.research.judged import is_of_team, sees_only_public, shows_judgments

Asking = HttpRequest | Request
PAGE = 50
MOST_FOUND = 500
"""Greatest number of documents that a search lists"""
LONGEST_WORDS = 200
"""Greatest number of characters of a search"""
BEGINS = 200
"""Number of characters of a text in a list"""
NOT_DOWNLOADABLE = "Its documents cannot be downloaded here: ask the organisers."


def find_readable_track(request: Asking, slug: str) -> Track:
    """Return the track, if the visitor may read its documents. Raises Http404."""
    track = public_track(slug)
    if not track.corpus.n_documents:
        raise Http404("This track has no documents.")
    if not may_read(request, track):
        raise Http404(NOT_DOWNLOADABLE)
    return track


def may_read(request: Asking, track: Track) -> bool:
    """Return whether the visitor may read the texts of a track."""
    return track.corpus.may_be_downloaded or bool(getattr(request.user, "is_staff", False))


def list_documents(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the documents in loading order, filtered by words of their text."""
    track = find_readable_track(request, slug)
    words = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_WORDS]
    after = request.GET.get("after", "")
    if not (after.isascii() and after.isdecimal() and len(after) < 18):
        after = "0"
    documents = Document.objects.filter(corpus=track.corpus)
    n, all_found = track.corpus.n_documents, True
    if words:
        with_words = documents.with_words(words).values_list("pk", flat=True)
        keys = list(with_words[: MOST_FOUND + 1])
        n, all_found = min(len(keys), MOST_FOUND), len(keys) <= MOST_FOUND
        documents = documents.filter(pk__in=keys[:MOST_FOUND])
    documents = documents.filter(pk__gt=int(after)).order_by("pk").only("key", "title", "date")
    page = list(documents.annotate(begins=Left("text", BEGINS))[: PAGE + 1])
    context = {
        "track": track,
        "q": words,
        "rows": page[:PAGE],
        "after": page[PAGE - 1].pk if len(page) > PAGE else 0,
        "n": n if words else None,
        "all_found": all_found,
        "past": n and int(after),
    }
    return render(request, "documents.html", context)


def show_document(request: HttpRequest, slug: str, key: str) -> HttpResponse:
    track = find_readable_track(request, slug)
    document = get_object_or_404(Document, corpus=track.corpus, key=key)
    systems = visible_runs(request, track, document)
    claims = visible_claims(request, document, systems)
    found = facts_of_readers(request, track, document)
    names = _name_spans(document, linked=may_see_readers(request.user, track))
    neighbours = Document.objects.filter(corpus=track.corpus).only("key")
    context = {
        "track": track,
        "pages": kind_of(track).pages,
        "document": document,
        "spans": names or _relation_spans(claims, found),
        "names": names,
        "claims": claims,
        "found": found,
        "n_systems": len(systems),
        "closed": track.status == Track.Status.CLOSED,
        "earlier": neighbours.filter(pk__lt=document.pk).order_by("-pk").first(),
        "following": neighbours.filter(pk__gt=document.pk).order_by("pk").first(),
    }
    return render(request, "document.html", context)


def visible_runs(request: Asking, track: Track, document: Document) -> list[Submission]:
    """Return the runs whose predictions in a document the visitor may see: runs of their teams;
    runs on the board if the track is closed or the document is in the development part; all runs
    for admins.
    """
    runs = Submission.objects.filter(track=track, sampled_at__isnull=False)
    runs = runs.select_related("team", "track__corpus").order_by("pk")
    is_closed = track.status == Track.Status.CLOSED and not track.hides_test
    return [
        row
        for row in runs
        if shows_judgments(row)
        and (
            is_of_team(request.user, row)
            or (row.is_on_board and (is_closed or document.part == Part.DEV))
        )
    ]


def visible_claims(
    request: Asking, document: Document, systems: list[Submission]
) -> list[tuple[Judged, list[Submission]]]:
    """Return the predictions of these runs in a document, each with its runs. Verdicts are included
    only as far as the visitor may see them.
    """
    by_instance: dict[int, list[Submission]] = {}
    claim_of: dict[int, Judged] = {}
    by_pk = {row.pk: row for row in systems}
    predicted = Prediction.objects.filter(
        instance__document=document, submission__in=systems
    ).values_list("submission_id", "instance_id", "pk", "instance__target_id")
    new: dict[int, list[tuple[int, int, int]]] = {}
    for submission, instance, pk, target in predicted:
        if instance not in by_instance:
            new.setdefault(submission, []).append((pk, instance, target))
        by_instance.setdefault(instance, []).append(by_pk[submission])
    for submission, predictions in new.items():
        row = by_pk[submission]
        public = sees_only_public(request.user, row)
        ids = [pk for pk, _, _ in predictions]
        judged = kind_of(row.track).describe_predictions(row.pk, ids, public=public)
        claim_of |= {
            instance: claim for (_, instance, _), claim in zip(predictions, judged, strict=True)
        }
    claims = [(claim_of[instance], runs) for instance, runs in by_instance.items()]
    return sorted(claims, key=lambda claim: claim[0].claim_begin)


def facts_of_readers(
    request: Asking, track: Track, document: Document
) -> list[tuple[Any, list[Any]]]:
    """Return the facts that readers of the whole document found, each with the runs on the board
    that predict it.
    """
    kind = kind_with_recall_or_none(track)
    if kind is None or not may_see_readers(request.user, track):
        return []
    if document.pk not in annotated_documents(track).documents:
        return []
    runs = Submission.objects.filter(track=track).on_board().select_related("team")
    board = {row.pk: row for row in runs}
    facts = kind.facts_with_systems(
        [document.pk], list(board), public=not can_see_all_judgments(request.user, track)
    )
    return [(fact, [board[pk] for pk in sorted(systems)]) for fact, systems in facts]


def may_see_readers(user: Any, track: Track) -> bool:
    """Return whether a user may see which documents were read in full and the facts found there."""
    return (track.status == Track.Status.CLOSED and not track.hides_test) or can_see_all_judgments(
        user, track
    )


def _name_spans(document: Document, *, linked: bool) -> list[Span]:
    """Return the names that came with the document. They are numbered by entity only if `linked`,
    because systems have to predict the links; otherwise each has its own number.
    """
    numbers: dict[tuple[int, int], int] = {}
    spans = []
    for mention in Mention.objects.filter(document=document).order_by("begin"):
        named = mention.canonical_span if linked else (mention.begin, mention.end)
        number = numbers.setdefault(named, len(numbers) + 1)
        spans.append(Span(mention.begin, mention.end, NAME, number=number, type=mention.type))
    return spans


def _relation_spans(
    claims: list[tuple[Judged, Any]], found_facts: list[tuple[Any, Any]]
) -> list[Span]:
    """Return the spans of the mentions in predicted relations and in facts that readers found,
    sorted and without duplicates. They are marked in documents that came without names.
    """
    places: set[tuple[int, int]] = set()
    for claim, _ in claims:
        places |= set(claim.places)
    for fact, _ in found_facts:
        places |= {tuple(place) for place in fact.record.values() if isinstance(place, list)}
    return [Span(begin, end, "other") for begin, end in sorted(places)]


urlpatterns = [
    path("tracks/<slug:slug>/documents/", list_documents, name="track-documents"),
    path("tracks/<slug:slug>/documents/<path:key>/", show_document, name="track-document"),
]
