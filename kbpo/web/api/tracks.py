"""Tracks and boards over the API: public, no token needed."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils.decorators import method_decorator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.quality.reliability import Reliability
from kbpo.evaluation.compare.part import soonest
from kbpo.evaluation.judges import judges_of
from kbpo.evaluation.leaderboard import (
    BOOTSTRAP,
    Board,
    NoBoard,
    Row,
    board,
    default_sort,
    evaluation_of,
    evaluation_on,
    sorts,
)
from kbpo.evaluation.models import Evaluation
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.api.answers import whole
from kbpo.web.api.parameters import BIGGEST, POPULATION, one_of, population_of, whole_number
from kbpo.web.api.view import APIView
from kbpo.web.expensive import expensive
from kbpo.web.public.judges import as_json as told_of
from kbpo.web.public.judges import people_of
from kbpo.web.public.strengths import strengths_of

SAID = (
    "scope",
    "documents",
    "of_documents",
    "misses",
    "targets",
    "labels",
    "expert",
    "late_scorers",
    "model",
    "version",
)
"""What is told of an evaluation's settings: nothing that speaks of single systems, for some are
not public"""


def _strengths(shown: Board) -> dict[str, Any] | None:
    """Strengths of systems that are compared two by two; None where they are judged one by one."""
    strengths = strengths_of(shown)
    return (
        strengths | {"rows": [_without(row, "submission") for row in strengths["rows"]]}
        if strengths
        else None
    )


def _next(shown: Board) -> dict[str, Any] | None:
    """Return the two systems that the fewest more judgments part, as the page names them; None
    where the board tells of none.
    """
    found = soonest(shown)
    if found is None:
        return None
    return {
        "better": found.better.submission.pk,
        "worse": found.worse.submission.pk,
        "judgments": found.judgments,
        "at_most": None if found.at_most is None else str(found.at_most),
    }


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def public_track(slug: str, *, drafts: bool = False) -> Track:
    """Return the track with its corpus. Raises Http404 for what does not exist, and for drafts
    where they are not asked for.
    """
    tracks = Track.objects.select_related("corpus").defer("corpus__hash_key")
    track = tracks.filter(slug=slug).first()
    if track is None or (track.status == Track.Status.DRAFT and not drafts):
        raise Http404(f"There is no track “{slug[:60]}”.")
    return track


class TrackList(APIView):
    """The tracks there are."""

    permission_classes = [AllowAny]

    @extend_schema(operation_id="list_tracks", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(
            {
                "tracks": [
                    as_track(row) for row in Track.objects.exclude(status="draft").order_by("pk")
                ]
            }
        )


@method_decorator(expensive, name="dispatch")
class BoardDetail(APIView):
    """The leaderboard of a track, as it stands on the page; if nothing else is asked for, what the
    track guarantees.

    `targets` of its evaluation counts every one whose outcome counts: drawn and answered, drawn and
    given up, or found in documents read in full. The page tells how many people judged one by one,
    which are fewer. `next` names the two systems, better one first, that the fewest more judgments
    part: about how many (null where fewer are left) and for how much at most; null where the board
    ranks by no mean, all are told apart, nobody is asked, or an earlier evaluation is asked for.
    """

    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="get_board",
        parameters=[
            *(OpenApiParameter(name, str) for name in ("distribution", "criterion", "sort")),
            OpenApiParameter("population", str, description=POPULATION),
            OpenApiParameter(
                "on", str, description="A day, as in 2026-05-01: the board at its end (UTC)"
            ),
            whole("evaluation", BIGGEST, "The board of this evaluation"),
        ],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, slug: str) -> Response:
        track = public_track(slug)
        distribution = one_of(request, "distribution", track.distributions, track.distribution)
        criteria = kind_of(track).criterion_names()
        criterion = one_of(request, "criterion", criteria, track.criterion)
        sort = one_of(request, "sort", sorts(track), default_sort(track, criterion))
        try:
            day = request.query_params.get("on", "")
            evaluation = evaluation_on(track, day) if day else None
            if number := whole_number(request, "evaluation", 0, least=1):
                evaluation = evaluation_of(track, number)
        except NoBoard as problem:
            raise NotFound(str(problem)) from problem
        shown = board(
            track,
            distribution=distribution,
            criterion=criterion,
            sort=sort,
            evaluation=evaluation,
            population=population_of(request, track),
        )
        return Response(as_json(shown))


def as_json(shown: Board) -> dict[str, Any]:
    """Return a board as JSON: the same figures as on the page, unrounded."""
    evaluation, kind = shown.evaluation, kind_of(shown.track)
    return {
        "track": as_track(shown.track),
        "evaluation": None if evaluation is None else _evaluation(evaluation, people_of(shown)),
        "distribution": shown.distribution,
        "criterion": shown.criterion,
        "population": shown.population,
        "level": shown.level,
        "columns": [
            {"name": column.name, "label": kind.printed(column.quantity, shown.criterion).label}
            for column in kind.columns
            if column.place in ("first", "second")
            and kind.quantity(column.quantity).of(shown.criterion)
        ],
        "systems": [
            {
                "submission": row.submission.pk,
                "team": row.submission.public_team,
                "name": row.submission.public_name,
                "description": row.submission.public_description,
                "paper": row.submission.public_links.get("Paper"),
                "code": row.submission.public_links.get("Code"),
                "role": row.submission.role,
                "rank": row.rank,
                "saved": row.saved,
                "judges": judges_as_json(shown, row),
                **{count.name: row.counted.get(count.name) for count in kind.counted},
                **{column.name: _figure(row, column.name) for column in kind.columns},
            }
            for row in shown.rows
        ],
        "cannot_be_told_apart": [
            [shown.rows[index].submission.pk for index in group] for group in shown.groups
        ],
        "strengths": _strengths(shown),
        "next": _next(shown),
        "being_judged": [
            {"team": submission.public_team, "name": submission.public_name}
            for submission in shown.being_judged
        ],
    }


JUDGES = (
    *("answers", "agreement", "judged_twice", "difference", "people", "ratings_of_unknown"),
    *("kappa", "gold_answers", "gold_error", "checked"),
)
"""What is told of those who judged what a system says: their answers, the share of these that
agrees with the majority; where they rate, how much of it two rated or more, and how far two of them
lie apart, from 0 to 1, how many people who are known gave ratings, and how many ratings are of
unknown ones; of all people on the track Fleiss' κ, their answers to questions whose
answer is known and the share of these that is wrong; and how many judgments experts checked"""


def judges_as_json(shown: Board, row: Row) -> dict[str, Any]:
    """Return what is known of the judges of one system."""
    judges = judges_of(shown.evaluation, row.submission)
    return told_of(judges, people_of(shown)) | {"checked": row.n_checked}


def _evaluation(row: Evaluation, people: Reliability) -> dict[str, Any]:
    settings = {key: row.settings[key] for key in SAID if key in row.settings}
    judges = told_of(judges_of(row), people)
    page = reverse("evaluation", args=[row.track.slug, row.number])
    return {"number": row.number, "made_at": row.made_at, "page": page, "judges": judges} | settings


def _figure(row: Row, column: str) -> dict[str, Any] | None:
    """Return what stands in a column; with the ends of the published interval at 80 % where there
    is one.
    """
    figure, ends = row.figure(column), row.bootstrap.get(column)
    if figure is None:
        return None
    return vars(figure) | ({BOOTSTRAP: ends} if ends is not None else {})


def as_track(row: Track) -> dict[str, Any]:
    """Return a track as JSON, for everybody. Under a criterion whose `single` is “mean” people
    rate: nothing is right or wrong.
    """
    kind = kind_of(row)
    criteria = kind.criteria
    of_criterion = ("name", "label", "single", "higher_is_better")
    keys = (
        "slug",
        "name",
        "status",
        "kind",
        "design",
        "distribution",
        "criterion",
        "distributions",
        "scope",
        "description",
    )
    return {key: getattr(row, key) for key in keys} | {
        "target_half_width": str(row.target_half_width),
        "confidence_level": str(row.confidence_level),
        "presented": list(kind.presented()),
        "criteria": [
            {key: getattr(criterion, key) for key in of_criterion} for criterion in criteria
        ],
    }
