"""The public page of a track, its guidelines and its downloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from annotation.interfaces.registry import document_interfaces, interface_by_name
from annotation.quality.hourly import track_pace
from kbpo.accounts.models import User
from kbpo.evaluation.leaderboard import Row, read_board
from kbpo.submissions.limits import limits_text, runs_left
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import count_inputs, count_inputs_by_track, kind_of
from kbpo.web.components import drawing
from kbpo.web.components.figures import DASH
from kbpo.web.http import in_snapshot, public_track
from kbpo.web.judging.lessons import first_example
from kbpo.web.public.board_rows import bar_kind, rank_text
from kbpo.web.public.documents import may_read
from kbpo.web.public.prose import install_command

SHOWN_RELATIONS = 4
"""Number of relations that are shown before “All of them”"""
SHOWN_SYSTEMS = 3
EXAMPLE_LINES = 2

MENTIONS_FILE_NAME = "mentions.jsonl.gz"


def documents_file_name(track: Track) -> str:
    """Return the file name of a track's documents or inputs."""
    return "documents.jsonl.gz" if kind_of(track).words.schema else "inputs.jsonl.gz"


def list_tracks(request: HttpRequest) -> HttpResponse:
    """Return all tracks, open ones first."""
    tracks = Track.objects.exclude(status="draft").select_related("corpus")
    order = {"open": 0, "frozen": 1, "closed": 2}
    ordered = sorted(tracks, key=lambda track: (order[track.status], -track.pk))
    inputs = count_inputs_by_track(ordered)
    with_inputs = [(track, inputs[track.pk]) for track in ordered]
    return render(request, "track_list.html", {"tracks": with_inputs})


@in_snapshot
def show_track(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the page of a track; admins also see drafts."""
    track = public_track(slug, drafts=getattr(request.user, "is_staff", False))
    everything = "all" in request.GET
    shown = read_board(track, distribution=track.distribution, criterion=track.criterion)
    kind = kind_of(track)
    catalogue = kind.instruction_payload().get("catalogue", ())
    column = shown.headline.name
    headline = kind.measures.quantity_as_printed(shown.headline.quantity, track.criterion)
    best = [
        _system_row(row, column, place) for place, row in enumerate(shown.rows[:SHOWN_SYSTEMS], 1)
    ]
    baseline = next((row for row in shown.rows if row.submission.role == "baseline"), None)
    below = [
        _system_row(row, column, DASH) for row in shown.rows[SHOWN_SYSTEMS:] if row is baseline
    ]
    downloads = _list_downloads(track)
    team = request.user.team() if isinstance(request.user, User) else None
    n_of_best = [sum(row < SHOWN_SYSTEMS for row in group) for group in shown.groups]
    context: dict[str, Any] = {
        "track": track,
        "corpus": track.corpus,
        "kind": kind,
        "words": kind.words,
        "n_inputs": count_inputs(track),
        "has_recall": kind_with_recall_or_none(track) is not None,
        "readable": track.corpus.n_documents and may_read(request, track),
        "asked": kind.instruction_payload().get("asked", ()),
        "example": list(islice(kind.example_lines(), EXAMPLE_LINES)),
        "took": track_pace(track),
        "limit": limits_text(track),
        "rules": track.rules.splitlines(),
        "catalogue": catalogue if everything else catalogue[:SHOWN_RELATIONS],
        "n_catalogue": len(catalogue),
        "everything": everything,
        "baseline_command": baseline_command(track),
        "install_command": install_command(),
        "site": settings.SITE_URL.rstrip("/"),
        "offline": reads_offline(track),
        "downloads": downloads,
        "release": next((file for file in downloads if file["name"].startswith("Release ")), None),
        "best": best,
        "below": below,
        "headline": headline.label,
        "board_made_at": shown.evaluation and shown.evaluation.made_at,
        "has_few": any(
            one["kind"] == "few" and one["figure"].estimate is not None for one in [*best, *below]
        ),
        "tied": 1 < len(best) <= max(n_of_best, default=0),
        "axis": drawing.axis_over([one["figure"] for one in [*best, *below]], ticks=3),
        "n_systems": len(shown.rows),
        "mine": team and {"team": team, "left": runs_left(track, team)},
    }
    return render(request, "track.html", context)


def _system_row(row: Row, column: str, place: int | str) -> dict[str, Any]:
    """Return a system with its rank (else its place) and score on the board."""
    figure = row.figure(column)
    return {
        "rank": rank_text(row) or place,
        "name": row.submission.full_name,
        "role": row.submission.role,
        "description": row.submission.public_description,
        "url": reverse("submission", args=[row.submission.pk]),
        "figure": drawing.Interval.from_figure(figure),
        "kind": bar_kind(row, past=False, figure=figure),
        "judged": row.n_labels,
    }


def _list_downloads(track: Track) -> list[dict[str, Any]]:
    """Return the public files of a track, each with name, content, format and address."""
    kind, corpus, files = kind_of(track), track.corpus, list[dict[str, Any]]()

    def add(name: str, what: str, form: str, page: str, file: str) -> None:
        url = reverse(page, args=[track.slug])
        files.append({"name": name, "what": what, "format": form, "url": url, "file": file})

    if corpus.may_be_downloaded and (n := count_inputs(track)):
        what = f"{n:,} {kind.words.downloaded}"
        inputs = kind.words.inputs.capitalize()
        add(inputs, what, "JSON Lines", "api-documents", documents_file_name(track))
        if corpus.has_mentions:
            what = "Spans and types of the names that came with the texts"
            add("Mentions", what, "JSON Lines", "api-mention-types", MENTIONS_FILE_NAME)
    if kind.words.schema:
        add("Schema", kind.words.schema, "JSON", "api-schema-of-track", "schema.json")
    what = "The instructions as annotators see them, with an example of their page"
    add("Guidelines", what, "Page", "guidelines", "read them")
    script = kind.baseline_script()
    if script is not None and corpus.may_be_downloaded:
        lines = len(script.read_text(encoding="utf-8").splitlines())
        what = f"{lines} lines of Python, nothing to install"
        add("Baseline", what, "Python", "baseline", "baseline.py")
    for release in track.releases.filter(status="made").order_by("-number"):
        files.append(
            {
                "name": f"Release {release.number}",
                "what": (f"Data of the board, {release.made_at:%-d %B %Y}, for `kbpo rescore`"),
                "format": f"Zip of JSON Lines{' and Parquet' if release.has_parquet else ''}",
                "url": reverse("release", args=[track.slug, release.number]),
                "file": release.file_name,
                "size": release.size,
            }
        )
    return files


def reads_offline(track: Track) -> bool:
    """Return whether the client can validate a file of this track without the service."""
    return kind_with_recall_or_none(track) is not None or bool(kind_of(track).words.fields)


def baseline_command(track: Track) -> str:
    """Return the command that runs the track's baseline on the downloaded files; empty if there is
    none.
    """
    kind = kind_of(track)
    if kind.baseline_script() is None or not track.corpus.may_be_downloaded:
        return ""
    names = [documents_file_name(track)]
    if kind.words.schema:
        names.append("schema.json")
    if track.corpus.has_mentions:
        names.append(MENTIONS_FILE_NAME)
    return f"python baseline.py {' '.join(names)} > baseline.jsonl"


def download_baseline(request: HttpRequest, slug: str) -> FileResponse:
    """Return the script of the baseline."""
    script = kind_of(public_track(slug)).baseline_script()
    if script is None:
        raise Http404("This kind of track has no baseline.")
    return FileResponse(script.open("rb"), as_attachment=True, filename="baseline.py")


@dataclass(frozen=True)
class QuestionKind:
    """One kind of question of a track."""

    title: str
    how: str
    """The template of its instructions"""
    page: Mapping[str, Any]
    """The part of the instructions that is specific to this track"""
    extra: Decimal
    example: str
    """The address of an example; empty if there is none"""


def question_kinds(track: Track) -> list[QuestionKind]:
    """Return the kinds of questions that a track asks."""
    kind = kind_of(track)
    guide, extra = (
        kind.instruction_payload(),
        {asking.interface: asking.extra for asking in kind.asking},
    )
    if kind_with_recall_or_none(track) is not None:
        extra |= dict.fromkeys(document_interfaces(), Decimal("0.00"))
    asked = []
    for name, amount in extra.items():
        interface, example = interface_by_name(name), first_example(name)
        asked.append(
            QuestionKind(
                interface.title,
                f"interfaces/{interface.folder or interface.name}/how.html",
                interface.instructions(guide),
                amount,
                reverse("try_question", args=[example]) if example else "",
            )
        )
    return asked


def show_guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the instructions for the annotators of a track, with an example of each page."""
    track = public_track(slug)
    kind = kind_of(track)
    catalogue = kind.instruction_payload().get("catalogue", ())
    context = {
        "track": track,
        "kind": kind,
        "words": kind.words,
        "questions": question_kinds(track),
        "asked": kind.instruction_payload().get("asked", ()),
        "catalogue": catalogue,
        "n_catalogue": len(catalogue),
        "everything": True,
        "site": settings.SITE_URL.rstrip("/"),
    }
    return render(request, "guidelines.html", context)


def download_release(request: HttpRequest, slug: str, number: int) -> FileResponse:
    """Return the file of a release."""
    row = public_track(slug).releases.filter(number=number, status="made").first()
    if row is None:
        raise Http404("There is no such release.")
    file = FileResponse(row.file.open("rb"), as_attachment=True, filename=row.file_name)
    file["ETag"] = f'"{row.digest}"'
    file["Cache-Control"] = "public, max-age=31536000, immutable"
    return file


urlpatterns = [
    path("tracks/", list_tracks, name="tracks"),
    path("tracks/<slug:slug>/about/", show_track, name="track"),
    path("tracks/<slug:slug>/guidelines/", show_guidelines, name="guidelines"),
    path("tracks/<slug:slug>/releases/<int:number>/", download_release, name="release"),
    path("tracks/<slug:slug>/baseline.py", download_baseline, name="baseline"),
]
