"""API: upload runs, read them, confirm, order, withdraw, retry."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.quality.agreement import reliability_of_track
from kbpo.accounts.models import Token, User
from kbpo.evaluation.judges import judge_statistics
from kbpo.evaluation.latest import Latest, judging_extent
from kbpo.evaluation.leaderboard import newest_headline_figures
from kbpo.money.spend import balance
from kbpo.sampling.confirm import (
    can_order,
    confirm_plan,
    current_order_offer,
    order_judgments,
    refusal_of_plan,
)
from kbpo.sampling.development import MOST
from kbpo.sampling.plan import current_offer
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import change_description, withdraw_submission
from kbpo.submissions.withdraw import delete_discarded
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.api.answers import page_schema, refusals
from kbpo.web.api.view import (
    PAGING,
    APIView,
    PublicView,
    Refused,
    RequestBody,
    ShareField,
    StrictBody,
    list_table,
    no_team_refusal,
    option_in,
    paginate,
    read_body,
)
from kbpo.web.http import public_track
from kbpo.web.public.judges import judges_as_json
from kbpo.web.research.judged import is_of_team
from kbpo.web.research.quote import plan_with_expected_cost
from kbpo.web.research.slices import visible_slices
from kbpo.web.research.submissions import NO_SUCH_RUN, find_run, problem_table, resume_failed
from kbpo.web.research.upload import receive_run
from scoring.report import HEADLINE
from scoring.score import DEFAULT


class AboutForm(RequestBody):
    """The description of a run; fields that are left out are not changed."""

    description = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    paper = serializers.URLField(
        required=False, allow_blank=True, max_length=300, source="paper_url"
    )
    code = serializers.URLField(required=False, allow_blank=True, max_length=300, source="code_url")
    private = serializers.BooleanField(
        required=False,
        source="is_private",
        help_text=("Only your team sees it; the data release contains it without its name"),
    )
    anonymous = serializers.BooleanField(
        required=False,
        source="is_anonymous",
        help_text="Others see a number in place of names",
    )


class UploadForm(AboutForm):
    """The fields of an upload."""

    track = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Track.objects.exclude(status="draft"),
        error_messages={"does_not_exist": "There is no track “{value}”."},
    )
    name = serializers.CharField(max_length=80)
    file = serializers.FileField(allow_empty_file=True)
    team = serializers.SlugField(
        required=False, max_length=80, help_text="Slug of your team; by default the first"
    )
    again = serializers.BooleanField(
        required=False, default=False, help_text="Upload a file that was uploaded before"
    )


class EditForm(AboutForm):
    """The fields of a change to a run."""

    name = serializers.CharField(max_length=80, required=False)


class PriceForm(StrictBody):
    """The accepted price, for requests that spend money."""

    at_most = serializers.DecimalField(
        required=False,
        max_digits=12,
        decimal_places=2,
        min_value=Decimal(0),
        help_text="The accepted price in dollars: a higher one is refused",
    )


class OrderForm(PriceForm):
    """The fields of an order of more judgments."""

    half_width = ShareField()
    order = serializers.IntegerField(
        required=False, min_value=1, max_value=9999, help_text="Number of the order, from 1"
    )
    made_at = serializers.DateTimeField(
        required=False,
        help_text="`made_at` of the accepted offer: a newer one is refused",
    )


class ConfirmForm(PriceForm):
    """The fields of a confirmation."""

    half_width = ShareField(required=False)
    good_lines_only = serializers.BooleanField(required=False, default=False)
    development = serializers.IntegerField(required=False, min_value=0, max_value=MOST)


def summary_as_json(submission: Submission) -> dict[str, Any]:
    """Return a submission as an entry of a list: its names, status and visibility."""
    return {
        "id": submission.pk,
        "track": submission.track.slug,
        "team": submission.team.slug,
        "name": submission.name,
        "status": submission.status,
        "status_text": submission.get_status_display(),
        "reason": submission.reason,
        "private": submission.is_private,
        "anonymous": submission.is_anonymous,
        "organisers": submission.is_organisers,
        "after_public": submission.after_public,
    }


def own_run_as_json(submission: Submission) -> dict[str, Any]:
    """Return a submission for its own team: the public data with plan, money, file and times."""
    sums, latest = balance(purpose=submission.purpose), Latest.read_latest(submission)
    refused, offer = refusal_of_plan(submission), current_order_offer(submission)
    return {
        **_common_as_json(submission, latest),
        **summary_as_json(submission),
        "own": True,
        "description": submission.description,
        "paper": submission.paper_url,
        "code": submission.code_url,
        "progress": submission.progress,
        "file": {
            "name": submission.file_name,
            "size": submission.file_size,
            "digest": submission.file_digest,
        },
        "run_id": submission.run_id,
        "door": submission.door,
        "counts": submission.counts,
        "plan": plan_with_expected_cost(submission),
        "can_confirm": not refused,
        "why_not": refused,
        "further": offer
        and {"order": offer.order, "made_at": offer.made_at, "options": offer.plan["options"]},
        "money": {"reserved": str(sums.open), "spent": str(sums.spent)},
        "times": {
            name: getattr(submission, f"{name}_at")
            for name in (
                "received",
                "read",
                "planned",
                "confirmed",
                "sampled",
                "scored",
                "withdrawn",
            )
        },
    }


def public_run_as_json(submission: Submission) -> dict[str, Any]:
    """Return a submission on the board for everybody, with the figures and names of the board."""
    record = _common_as_json(submission, Latest.read_latest(submission))
    columns = {(one.quantity, one.method) for one in kind_of(submission.track).measures.columns}
    scores = [one for one in record["scores"] if (one["quantity"], one["method"]) in columns]
    return record | {"scores": scores}


def _common_as_json(submission: Submission, latest: Latest) -> dict[str, Any]:
    """Return the data that both views of a submission share."""
    links = submission.public_links
    return {
        "id": submission.pk,
        "own": False,
        "track": submission.track.slug,
        "team": submission.public_team,
        "name": submission.public_name,
        "status": submission.status,
        "status_text": submission.get_status_display(),
        "private": submission.is_private,
        "anonymous": submission.is_anonymous,
        "description": submission.public_description,
        "paper": links.get("Paper", ""),
        "code": links.get("Code", ""),
        "counts": {kind_of(submission.track).words.items: submission.n_items or 0},
        "stage_reason": submission.stage_reason,
        "orders": submission.orders,
        "judging": vars(judging_extent(submission, latest)),
        "judges": _judges_as_json(latest),
        "times": {"received": submission.received_at},
        "scores": [
            {
                "quantity": key[0],
                "criterion": key[1],
                "distribution": key[2],
                "method": key[3],
                **figure.as_json(),
            }
            for key, figure in sorted(
                latest.figures.items(), key=lambda pair: _sort_key(submission, pair[0])
            )
        ],
    }


def _judges_as_json(latest: Latest) -> dict[str, Any]:
    """Return the quality of the judgments of a run; empty before its first number, since the
    statistics would reveal judgments for others.
    """
    printed = latest.guaranteed()
    has_number = printed is not None and printed.value is not None
    judges = judge_statistics(latest.evaluation if has_number else None, latest.submission)
    corrected = latest.guaranteed("expert")
    checked = corrected.n_checked if corrected is not None else 0
    return judges_as_json(judges, reliability_of_track(latest.submission.track)) | {
        "checked": checked
    }


def _sort_key(submission: Submission, key: tuple[str, str, str, str]) -> tuple[Any, ...]:
    """Return the key by which scores are sorted: the guaranteed score first."""
    _, criterion, distribution, method = key
    track = submission.track
    return criterion != track.criterion, distribution != track.distribution, method != DEFAULT, key


def own_submissions(request: Request) -> QuerySet[Submission]:
    """Return the submissions of the user's teams; all for admins."""
    submissions = Submission.objects.filter(deleted_at=None).select_related("track", "team")
    user = cast(User, request.user)
    return submissions if user.is_staff else submissions.filter(team__members=user)


class SubmissionList(APIView):
    """The submissions of your teams; upload a new one."""

    parser_classes = [MultiPartParser, FormParser]
    scope = Token.Scope.UPLOAD

    @extend_schema(
        operation_id="list_submissions",
        parameters=[
            OpenApiParameter("track", str, description="Slug of a track"),
            OpenApiParameter("status", str, enum=Submission.Status.values),
            *PAGING,
        ],
        responses={200: page_schema(item_schema="submissions"), **refusals(404)},
    )
    def get(self, request: Request) -> Response:
        """List the submissions of your teams, the latest first, in pages: status and main score."""
        submissions = own_submissions(request).distinct().order_by("-pk")
        query = request.query_params
        if "track" in query:
            submissions = submissions.filter(track=public_track(query["track"]))
        if "status" in query:
            submissions = submissions.filter(
                status=option_in(request, "status", Submission.Status.values, "")
            )
        pages, page = paginate(submissions, request, self, at_once=200)
        headlines = newest_headline_figures(row for row in page if row.has_score)
        scores = {
            pk: {"quantity": quantity.name, "label": quantity.label, **figure.as_json(HEADLINE)}
            for pk, (quantity, figure) in headlines.items()
        }
        return Response(
            {
                "count": pages.count,
                "next": pages.get_next_link(),
                "previous": pages.get_previous_link(),
                "submissions": [
                    summary_as_json(row) | {"score": scores.get(row.pk)} for row in page
                ],
            }
        )

    @extend_schema(
        operation_id="submit",
        request=UploadForm,
        responses={201: OpenApiTypes.OBJECT, **refusals(409)},
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                str,
                "header",
                description="A repeated upload returns the first answer; another file is refused",
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Store a file as a new submission, which is returned at once; the file is read afterwards.
        The name must be new within the team. `private` and `anonymous` apply from the start.
        """
        user = request.user
        assert isinstance(user, User)
        team = user.team()
        if team is None or not user.is_researcher:  # before a byte of the file is read
            raise no_team_refusal()
        cleaned = read_body(UploadForm, request)
        track, file, allows_same = cleaned.pop("track"), cleaned.pop("file"), cleaned.pop("again")
        if "team" in cleaned and (team := user.team(cleaned.pop("team"))) is None:
            raise Refused("You submit for no such team.", "no_team", 403)
        key = request.headers.get("Idempotency-Key") or None
        if key and len(key) > 80:
            raise Refused("An Idempotency-Key has at most 80 characters.", "invalid", 400)
        submission = receive_run(
            track,
            team,
            user,
            file,
            file_name=file.name,
            idempotency_key=key,
            refuse_same=not allows_same,
            refuse_taken=True,
            **cleaned,
        )
        return Response(own_run_as_json(submission), status=201)


class SubmissionDetail(APIView):
    """One submission: status, plan and scores. For a run of others on the board, the data of its
    page.
    """

    permission_classes = [IsAuthenticatedOrReadOnly]

    @extend_schema(operation_id="get_submission", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        try:
            submission = find_run(request, pk)
        except Http404 as gone:
            if request.user.is_authenticated or str(gone) != NO_SUCH_RUN.format(pk):
                raise
            raise NotAuthenticated from gone  # it may be theirs
        if not is_of_team(request.user, submission):
            return Response(public_run_as_json(submission))
        if can_order(submission) and submission.sampled_at and submission.track.status == "open":
            current_offer(submission)  # `further` stands here soon after
        return Response(own_run_as_json(submission))

    @extend_schema(
        operation_id="edit_submission",
        request=EditForm,
        responses={200: OpenApiTypes.OBJECT, **refusals(409)},
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change name, description, links or visibility of a submission, also once it is scored.
        Fields that are not sent are not changed. A run that was on the board cannot be private.
        """
        submission = find_run(request, pk, own_team_only=True)
        form = EditForm(data=request.data, partial=True)  # so that missing fields are kept
        form.is_valid(raise_exception=True)
        submission = change_description(submission, cast(User, request.user), **form.validated_data)
        return Response(own_run_as_json(submission))

    @extend_schema(operation_id="delete_submission", responses={204: None, **refusals(409)})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a refused upload or a discarded draft, with its file. A run is withdrawn
        instead."""
        row = find_run(request, pk, own_team_only=True)
        if not delete_discarded(row, cast(User, request.user)):
            raise Refused(f"{row.name} is a run: it is withdrawn, not deleted.", "cannot_change")
        return Response(status=204)


class Confirm(APIView):
    """Confirm the plan: its price is reserved, and judging begins."""

    @extend_schema(
        operation_id="confirm",
        request=ConfirmForm,
        responses={200: OpenApiTypes.OBJECT, **refusals(402, 409)},
    )
    def post(self, request: Request, pk: int) -> Response:
        submission = find_run(request, pk, own_team_only=True)
        cleaned = read_body(ConfirmForm, request)
        width = cleaned.get("half_width")
        submission = confirm_plan(
            submission,
            cast(User, request.user),
            half_width=None if width is None else f"{width:.3f}",
            good_lines_only=cleaned["good_lines_only"],
            at_most=cleaned.get("at_most"),
            development=cleaned.get("development"),
        )
        return Response(own_run_as_json(submission))


class Order(APIView):
    """Order more judgments for a narrower interval, once a run is scored or while it is judged
    again. The price is reserved first.

    The offer is `further` of the submission. With its `order` number a repeated request changes
    nothing.
    """

    @extend_schema(
        operation_id="order",
        request=OrderForm,
        responses={200: OpenApiTypes.OBJECT, **refusals(402, 409)},
    )
    def post(self, request: Request, pk: int) -> Response:
        submission = find_run(request, pk, own_team_only=True)
        cleaned = read_body(OrderForm, request)
        submission = order_judgments(
            submission,
            cast(User, request.user),
            half_width=f"{cleaned['half_width']:.3f}",
            number=cleaned.get("order"),
            made_at=cleaned.get("made_at"),
            at_most=cleaned.get("at_most"),
        )
        return Response(own_run_as_json(submission))


class Withdraw(APIView):
    """Withdraw a submission. Existing judgments are kept and paid; unspent money is returned."""

    @extend_schema(
        operation_id="withdraw",
        request=None,
        responses={200: OpenApiTypes.OBJECT, **refusals(409)},
    )
    def post(self, request: Request, pk: int) -> Response:
        submission = withdraw_submission(
            find_run(request, pk, own_team_only=True), cast(User, request.user)
        )
        return Response(own_run_as_json(submission))


class Retry(APIView):
    """Retry a failed submission, with the money that was returned since."""

    @extend_schema(
        operation_id="retry",
        request=None,
        responses={200: OpenApiTypes.OBJECT, **refusals(402, 409)},
    )
    def post(self, request: Request, pk: int) -> Response:
        row = find_run(request, pk, own_team_only=True)
        if not resume_failed(row, cast(User, request.user)):
            raise Refused(f"{row.name} has not failed.", "cannot_retry")
        return Response(own_run_as_json(row))


class Slices(PublicView):
    """The scores of a submission by slice: by relation, by class of entity, and so on. For a run of
    others on the board, those of its page.
    """

    @extend_schema(operation_id="list_slices", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        submission = find_run(request, pk)
        scores = visible_slices(
            Latest.read_latest(submission), is_own_team=is_of_team(request.user, submission)
        )
        names = ("slice", "quantity", "criterion", "distribution", "method")
        return Response(
            {
                "slices": [
                    {name: getattr(key, name) for name in names}
                    | {"n_predictions": figure.n_predictions}
                    | figure.printed.as_json()
                    for key, figure in sorted(
                        scores.items(), key=lambda row: (row[0].slice, *row[0][1:3])
                    )
                ]
            }
        )


class Problems(APIView):
    """The problems in the file of a submission, by line."""

    @extend_schema(operation_id="list_problems", parameters=PAGING, responses={200: page_schema()})
    def get(self, request: Request, pk: int) -> Response:
        return list_table(problem_table(find_run(request, pk, own_team_only=True)), request, self)
