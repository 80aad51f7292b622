"""The page of a run: stages, scores, cost, problems of its file, judged predictions; and changes to
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

import numpy as np
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import BigIntegerField
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from rest_framework.request import Request

from annotation.quality.agreement import reliability_of_track
from annotation.questions import limits
from kbpo.accounts.models import Team, User
from kbpo.evaluation.judges import judge_statistics
from kbpo.evaluation.latest import Extent, Latest, judging_extent
from kbpo.evaluation.leaderboard import rank_ranges
from kbpo.money.models import Ledger
from kbpo.money.spend import ZERO, Balance, OverBudget, balance, released_since, reserve_money
from kbpo.prepared import Columns, Prepared
from kbpo.queue import wake_step
from kbpo.sampling.models import Further
from kbpo.submissions.models import Problem, Submission
from kbpo.submissions.receive import CannotChange, set_submission_role, withdraw_submission
from kbpo.submissions.receive import change_description as describe_run
from kbpo.tracks.models import Track
from kbpo.tracks.recall import kind_with_recall_or_none
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import plural, range_text
from kbpo.web.http import form_reason, has_typed_word, in_snapshot, run_action
from kbpo.web.kept import cached_part, row_values
from kbpo.web.public.judges import run_reliability_sentences
from kbpo.web.research.follow import journey_stages, stage_reached
from kbpo.web.research.judged import is_of_team, sees_only_public, shows_judgments
from kbpo.web.research.quote import order_context, order_more, refresh_offer
from kbpo.web.research.score_tables import (
    expert_correction,
    history_context,
    reasons_not_corrected,
    run_history,
    sampling_stages,
    score_tables,
)
from kbpo.web.research.slices import interim_context, slice_table
from kbpo.web.table import Table, columns_named
from scoring.words import no_width_text

END_REASONS = {
    "target": "All planned judgments are made.",
    "ranked": "Its rank is decided, so judging stopped early. Unspent money is returned.",
    "budget": "The money was spent before the ordered interval was reached.",
    "all": "All its predictions were asked; only more people per question narrow the interval.",
    "stages": "The order is judged, but the interval is wider than ordered. More can be ordered.",
    "exhausted": "All planned questions were asked, but the interval is wider than ordered.",
}
"""Reason why judging ended -> a sentence."""


ENDS = ("value", "low80", "high80", "low95", "high95", "n_labels")
HISTORY = columns_named("evaluation", "made_at", "number", *ENDS)
PROBLEMS = columns_named(
    *("line", "severity", "code", "text", "line_text", "culprit_begin", "culprit_end"),
)
SEVERITIES = {"error": "error", "warning": "warning", "info": "note"}
"""Severity -> noun"""
JUDGED_STATUSES = ("confirmed", "judging")
"""Statuses in which the page is updated while people judge"""
CACHE_SECONDS_WHILE_JUDGED = 5
"""Seconds for which the page's parts are cached meanwhile, since they contain the remaining time"""
NO_SUCH_RUN = "There is no run {}, or it is not yours to see."
"""Refusal for an unknown run number"""
LARGEST = BigIntegerField.MAX_BIGINT
"""Greatest primary key that the database accepts"""


SUBMISSION, TRACK, TEAM = Columns(Submission, "s"), Columns(Track, "t"), Columns(Team, "m")
RUN_WITH_FINGERPRINT = Prepared(f"""
    SELECT
        (SELECT id FROM evaluation_evaluation WHERE track_id = s.track_id
            ORDER BY number DESC LIMIT 1),
        (SELECT max(id) FROM instances_label),
        (SELECT max(status_since) FROM submissions_submission WHERE track_id = s.track_id),
        {SUBMISSION.sql}, {TRACK.sql}, {TEAM.sql}
    FROM submissions_submission s
    JOIN tracks_track t ON t.id = s.track_id
    JOIN accounts_team m ON m.id = s.team_id
    WHERE s.id = %(pk)s AND s.deleted_at IS NULL
""")
# Prepared: every view of a run's page begins with it, and Django compiles it in 5 ms.
N_FINGERPRINT_VALUES = 3


def _find_with_fingerprint_values(pk: int) -> tuple[Submission, list[Any]] | None:
    """Return the submission with its track and team, and values for the fingerprint of its cached
    page, which change with a new evaluation, a new label or a changed run of the track. Return None
    if the submission does not exist or was deleted.
    """
    row = RUN_WITH_FINGERPRINT.fetch_first(pk=pk) if pk <= LARGEST else None
    if row is None:
        return None
    values, columns = list(row[:N_FINGERPRINT_VALUES]), row[N_FINGERPRINT_VALUES:]
    submission = SUBMISSION.row(columns[: SUBMISSION.n])
    submission.track = TRACK.row(columns[SUBMISSION.n : SUBMISSION.n + TRACK.n])
    submission.team = TEAM.row(columns[SUBMISSION.n + TRACK.n :])
    return submission, values


Asking = HttpRequest | Request


def find_run(request: Asking, pk: int, *, own_team_only: bool = False) -> Submission:
    """Return the submission, if the visitor may see it: its team and admins always, others once it
    is on the board.

    Raises Http404 otherwise, so that nothing is revealed about other teams' drafts.
    """
    submissions = Submission.objects.select_related("track__corpus", "team", "user")
    row = submissions.filter(pk=pk, deleted_at=None).first()
    if row is None:
        raise Http404(NO_SUCH_RUN.format(pk))
    return _check_visible(request, row, own_team_only=own_team_only)


def _check_visible(
    request: Asking, submission: Submission, *, own_team_only: bool = False
) -> Submission:
    """Return the submission if the visitor may see it. Raises Http404."""
    if is_of_team(request.user, submission) or (submission.is_on_board and not own_team_only):
        return submission
    if own_team_only or not submission.was_public_before_withdrawal:
        raise Http404(NO_SUCH_RUN.format(submission.pk))
    on = f" on {date_format(submission.withdrawn_at, 'j F Y')}" if submission.withdrawn_at else ""
    raise Http404(f"{submission.full_name} was withdrawn{on}.")


def show_run(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the page of a run; its own team sees more. `?part=live` returns the part that is
    polled, `?format=csv` its history. A POST performs the action of its form.
    """
    if request.method == "POST":
        return _change_run(request, pk)
    if "format" in request.GET:
        return _history_file(request, pk)
    return _render_page(request, pk, _refreshed_offer(request, pk))


@login_required
def _change_run(request: HttpRequest, pk: int) -> HttpResponse:
    actions = {"withdraw": withdraw_run, "retry": retry_run, "order": order_more}
    return run_action(request, actions, find_run(request, pk, own_team_only=True))


def _history_file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the history of the score as CSV, unrounded."""
    submission = find_run(request, pk)
    history = run_history(Latest.read_latest(submission)) if submission.has_score else None
    rows, name = [], history.quantity.name if history else ""
    for evaluation, figure in history.figures if history else ():
        row = {"evaluation": evaluation.number, "made_at": evaluation.made_at, "number": name}
        rows.append(row | {end: getattr(figure, end) for end in ENDS})
    return Table(f"history-{pk}", HISTORY, rows).file(request)


def _refreshed_offer(request: HttpRequest, pk: int) -> Further | None:
    """Return the offer of more judgments, for the run's own team. It may write, so it runs before
    the page's read-only snapshot.
    """
    if not request.user.is_authenticated:
        return None
    found = _find_with_fingerprint_values(pk)
    return refresh_offer(found[0]) if found and is_of_team(request.user, found[0]) else None


@in_snapshot
def _render_page(request: HttpRequest, pk: int, further: Further | None) -> HttpResponse:
    page = _Page(request, pk, further)
    if request.GET.get("part") == "live":
        return HttpResponse(page.draw_live_part())
    submission = page.submission
    if page.own and submission.status in ("received", "read", "planned", "refused", "expired"):
        return redirect("upload-check", pk=pk)
    context = {
        "submission": submission,
        "name": display_name(submission, page.own),
        "own": page.own,
        "among": "runs" if page.teams_own else "home",
        "live": page.draw_live_part(),
        "rest": page.draw_stable_part(request.GET.get("by", "")),
    }
    return render(request, "submission.html", context)


class _Page:
    """The page of a run for one visitor, with its cached parts and their cache keys."""

    def __init__(self, request: HttpRequest, pk: int, further: Further | None) -> None:
        """Raise Http404 if the visitor may not see the submission."""
        if (found := _find_with_fingerprint_values(pk)) is None:
            raise Http404(NO_SUCH_RUN.format(pk))
        submission, self.fingerprint_values = found
        _check_visible(request, submission)
        self.request, self.submission, self.further = request, submission, further
        self.own = is_of_team(request.user, submission)
        self.teams_own = submission.team_id in getattr(request.user, "team_keys", ())
        self.seen = shows_judgments(submission)
        self.sees_all = not sees_only_public(request.user, submission)
        self.sums = balance(purpose=submission.purpose) if self.own else None

    @cached_property
    def latest_scores(self) -> Latest:
        """Return the scores of the latest evaluation."""
        return Latest.read_latest(self.submission)

    @cached_property
    def _fingerprint_parts(self) -> list[Any]:
        """Return the state that the cached parts depend on, except values that change with time,
        such as the remaining time.
        """
        row = self.submission
        parts = [self.own, self.seen, self.sees_all, self.sums, *self.fingerprint_values]
        further = row_values(self.further) if self.further else None
        return [parts, row_values(row, row.track, row.team), further]

    @property
    def _cache_seconds(self) -> int | None:
        return CACHE_SECONDS_WHILE_JUDGED if self.submission.status in JUDGED_STATUSES else None

    def draw_live_part(self) -> SafeString:
        """Return the part of the page that is polled while the run is judged."""

        def live_part_context() -> dict[str, Any]:
            shown = live_context(
                self.latest_scores, self.seen, self.further, self.sums, sees_all=self.sees_all
            )
            if not self.own:
                for stage in shown["stages"]:
                    stage.pop("retry_url", None)
            return shown

        return cached_part(
            self.request,
            "submission_live.html",
            live_part_context,
            self._fingerprint_parts,
            self._cache_seconds,
        )

    def draw_stable_part(self, by: str) -> SafeString:
        """Return the part that changes only with evaluations: history, and slices by a group."""
        by = by if by in kind_of(self.submission.track).groups else ""

        def stable_part_context() -> dict[str, Any]:
            address = reverse("submission", args=[self.submission.pk])
            slices = slice_table(self.latest_scores, by, is_own_team=self.own, address=address)
            own = {"submission": self.submission, "own": self.own, "slices": slices, "is_cut": by}
            return own | history_context(self.request, self.latest_scores)

        return cached_part(
            self.request,
            "submission_rest.html",
            stable_part_context,
            [by, self._fingerprint_parts],
            self._cache_seconds,
        )


def live_context(
    latest: Latest,
    seen: bool,
    further: Further | None,
    sums: Balance | None,
    *,
    sees_all: bool = False,
) -> dict[str, Any]:
    """Return the context of the part that changes. `sums`, for the own team, adds the cost;
    `sees_all` adds hidden judgments.
    """
    submission, own = latest.submission, sums is not None
    sample, looked = judging_extent(submission, latest), interim_context(submission)
    moving = submission.status in JUDGED_STATUSES
    shown: dict[str, Any] = {
        "submission": submission,
        "name": display_name(submission, own),
        "words": kind_of(submission.track).words,
        "pages": kind_of(submission.track).pages,
        "mean_words": mean_name(submission),
        "own": own,
        "moving": moving,
        "again": moving and submission.orders > 0,
        "stages": journey_stages(submission, sample),
        "sample": sample,
        "tables": score_tables(latest, looked),
        "has_recall": kind_with_recall_or_none(submission.track) is not None,
        "provisional": moving,
        "may_see": seen,
        "watched": looked,
        "ordered": _expected_judgments(submission, looked["now"].n) if moving and looked else None,
        "judges": _judge_sentences(latest),
        "checked": expert_correction(latest),
        "not_corrected": reasons_not_corrected(latest),
        "ended": _end_reason(latest),
        "place": _rank_text(latest),
    }
    if sums is not None:
        shown |= {
            "cost": cost_context(submission, sample, sums),
            "noticed": problem_summary(submission),
            "sampled": sampling_stages(submission),
        }
        shown["more"] = order_context(submission, sample, further)
    if seen:
        kind, public = kind_of(submission.track), not sees_all
        verdicts = kind.verdicts(submission.pk, public=public)
        shown |= {
            "latest": kind.describe_predictions(
                submission.pk, verdicts.prediction[-5:], public=public
            ),
            "n_judged": len(verdicts.prediction),
            "hidden": submission.track.hides_test and public,
            "n_right": int(np.nansum(verdicts.value)),
        }
    return shown


def _end_reason(latest: Latest) -> dict[str, str]:
    """Return a sentence on why judging ended, with its tone; empty before the end."""
    submission, printed = latest.submission, latest.guaranteed()
    if submission.status != "scored":
        return {}
    reason = submission.stage_reason
    if reason != "ranked" and printed is not None and printed.is_exact:
        return {"says": no_width_text(), "tone": "good"}
    tone = "good" if reason == "target" else "warn"
    return {"says": END_REASONS[reason], "tone": tone} if reason in END_REASONS else {}


def _rank_text(latest: Latest) -> str:
    """Return the rank as “Rank 2–4 of 9”; empty without a rank."""
    submission, evaluation = latest.submission, latest.evaluation
    places = rank_ranges(evaluation) if evaluation is not None and submission.is_on_board else {}
    rank = places.get(submission.pk)
    return f"Rank {range_text(*rank)} of {len(places)}" if rank else ""


def display_name(submission: Submission, is_own_team: bool) -> str:
    """Return the names of team and run; for its own team and admins without anonymity."""
    return submission.own_name if is_own_team else submission.full_name


def _judge_sentences(latest: Latest) -> list[str]:
    """Return sentences on the error of the judges."""
    corrected, words = latest.guaranteed("expert"), kind_of(latest.submission.track).words
    return run_reliability_sentences(
        judge_statistics(latest.evaluation, latest.submission),
        reliability_of_track(latest.submission.track),
        latest.guaranteed(),
        corrected=corrected,
        checked=corrected is not None or bool(reasons_not_corrected(latest) or words.unchecked),
        words=words,
    )


def mean_name(submission: Submission) -> str:
    """Return the name of the guaranteed score within a sentence."""
    kind = kind_of(submission.track)
    return kind.measures.quantity_as_printed(
        kind.measures.mean, submission.track.criterion
    ).label_in_text


def _expected_judgments(submission: Submission, n: int) -> tuple[int, float] | None:
    """Return the planned number of judgments and the ordered half-width; None once n reaches it."""
    chosen = str(submission.plan.get("chosen", ""))
    targets = submission.plan.get("options", {}).get(chosen, {}).get("targets", 0)
    return (targets, float(chosen)) if targets > n else None


def cost_context(submission: Submission, sample: Extent, sums: Balance) -> dict[str, Any]:
    """Return the cost so far, the reserved money, and how many questions were shared
    with others.
    """
    option = submission.plan.get("options", {}).get(submission.plan.get("chosen"), {})
    asked = limits.targets_by_payer(submission)
    spent = Ledger.objects.filter(
        kind=Ledger.Kind.SPEND, **submission.purpose.filter_condition("purpose")
    )
    answers = spent.exclude(state=Ledger.State.FAILED).count()
    return {
        "asked": asked,
        "answers": answers,
        "more": max(0, answers - asked.own * submission.track.workers_per_question),
        "free": sample.sample - asked.own,
        "each": Decimal(option.get("each", "0")),
        "spent": sums.spent,
        "reserved": sums.open,
        "given_back": sums.released,
    }


def problem_summary(submission: Submission) -> list[dict[str, Any]]:
    """Return the problems by severity, with the most frequent codes."""
    problems = Problem.objects.filter(submission=submission).values_list("severity", "code")
    by_severity: dict[str, Counter[str]] = {}
    for severity, code in problems:
        by_severity.setdefault(severity, Counter())[code] += 1
    tones = {"error": "bad", "warning": "warn"}
    return [
        {
            "tag": plural(sum(by_severity[severity].values()), word),
            "tone": tones.get(severity, ""),
            "codes": ", ".join(
                f"{code.rpartition('.')[2].replace('_', ' ')} ({n:,})"
                for code, n in by_severity[severity].most_common(3)
            ),
        }
        for severity, word in SEVERITIES.items()
        if severity in by_severity
    ]


def problem_table(submission: Submission) -> Table:
    """Return the problems of a file, by line."""
    rows = Problem.objects.filter(submission=submission).order_by("line", "pk")
    return Table(f"problems-{submission.pk}", PROBLEMS, rows)


def list_problems(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the problems of an upload, filtered by severity; with `?format=` as a file."""
    submission = find_run(request, pk, own_team_only=True)
    table = problem_table(submission)
    if "format" in request.GET:
        return table.file(request)
    severity = request.GET.get("severity", "")
    counts = Counter(table.rows.values_list("severity", flat=True))
    listed = table.rows.filter(severity=severity) if severity in counts else table.rows
    page = Paginator(listed, 50).get_page(request.GET.get("page"))
    context = {
        "submission": submission,
        "page": page,
        "problems": page,
        "options": severity_switch(submission, counts, severity),
        "severity": severity,
    }
    return render(request, "problems.html", context)


def severity_switch(
    submission: Submission, counts: Mapping[str, int], severity: str = ""
) -> list[dict[str, Any]]:
    """Return the switch between severities, each with its count."""
    address = reverse("submission-problems", args=[submission.pk])
    every, counted = sum(counts.values()), [name for name in SEVERITIES if counts.get(name)]
    return [
        {"url": address, "text": f"All {every:,}", "current": severity not in counts},
        *(
            {
                "url": f"{address}?severity={name}",
                "text": plural(counts[name], SEVERITIES[name]),
                "current": severity == name,
            }
            for name in counted
        ),
    ]


class RunForm(forms.Form):
    """Form for the description of a run and for who may see it; admins also set its role on the
    board.
    """

    name = forms.CharField(
        max_length=80,
        label="Run name",
        help_text="Shown on the board beside your team’s name.",
        error_messages=dict.fromkeys(
            ("required", "max_length"), "A run needs a name of 1 to 80 characters."
        ),
    )
    description = forms.CharField(
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="One sentence. Everybody can read it once the run is scored.",
    )
    paper_url = forms.URLField(
        max_length=300, required=False, assume_scheme="https", label="Address of the paper"
    )
    code_url = forms.URLField(
        max_length=300, required=False, assume_scheme="https", label="Address of the code"
    )
    is_private = forms.BooleanField(
        required=False,
        label="Private until we publish it",
        help_text="Only your team sees it. A data release contains it without team and name.",
    )
    is_anonymous = forms.BooleanField(
        required=False,
        label="Anonymous",
        help_text="Others see a number in place of your team, its name, description and links.",
    )
    role = forms.ChoiceField(
        choices=Submission.Role.choices,
        label="On the board it is",
        help_text="Only admins see this. The ranks follow with the next scores.",
    )

    def __init__(self, data: Any, *, submission: Submission, who: Any, name: str = "") -> None:
        current = {field: getattr(submission, field) for field in self.base_fields}
        super().__init__(data, initial=current | ({"name": name} if name else {}))
        if submission.was_public:
            del self.fields["is_private"]
        if not who.is_staff:
            del self.fields["role"]
        self.submission, self.who = submission, who

    def save(self) -> bool:
        """Store the form, and return whether that worked; else the form has the error."""
        cleaned = dict(self.cleaned_data)
        role = cleaned.pop("role", None)
        try:
            with transaction.atomic():
                describe_run(self.submission, self.who, **cleaned)
                if role is not None:
                    set_submission_role(self.submission, role, self.who)
        except CannotChange as refusal:
            self.add_error(None, str(refusal))
            return False
        return True


@login_required
def edit_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the description of a run. A POST stores it."""
    submission = find_run(request, pk, own_team_only=True)
    form = RunForm(request.POST or None, submission=submission, who=request.user)
    if request.method != "POST":
        status = 200
    elif not form.is_valid():
        status = 400
    elif form.save():
        messages.success(request, "Saved.")
        return redirect("submission", pk=pk)
    else:
        status = 409
    own = submission.team.members.filter(pk=cast(User, request.user).pk).exists()
    context = {"submission": submission, "fields": form, "own": own}
    return render(request, "submission_edit.html", context, status=status)


def withdraw_run(request: HttpRequest, submission: Submission) -> HttpResponse:
    """Withdraw a run after the typed word; unspent money is released."""
    pk = submission.pk
    if not has_typed_word(request, "withdraw"):
        messages.error(request, "Nothing was withdrawn: type the word withdraw to confirm.")
        return redirect(f"{reverse('submission-edit', args=[pk])}#withdraw")
    try:
        submission = withdraw_submission(submission, cast(User, request.user), form_reason(request))
    except CannotChange as refusal:
        messages.error(request, str(refusal))
        return redirect("submission", pk=pk)
    messages.success(
        request, f"{submission.name} is withdrawn. Judgments stay paid; the rest is returned."
    )
    return redirect("submission", pk=pk)


def retry_run(request: HttpRequest, submission: Submission) -> HttpResponse:
    """Move a failed run back to its last stage."""
    try:
        resume_failed(submission, cast(User, request.user))
    except (CannotChange, OverBudget) as refusal:
        messages.error(request, f"{refusal} Nothing was retried.")
    return redirect("submission", pk=submission.pk)


@transaction.atomic
def resume_failed(submission: Submission, who: User) -> bool:
    """Move a failed run back to its last stage and reserve again the money that was released
    when it failed. Return whether it had failed. Raises OverBudget, and CannotChange if the track
    is closed.
    """
    locked = Submission.objects.select_for_update(of=("self",), no_key=True)
    row = locked.filter(pk=submission.pk, status="failed").first()
    if row is None:
        return False
    if row.track.status == "closed":
        raise CannotChange(f"The track {row.track.name} is closed: nothing more is judged for it.")
    wanted = released_since(row.purpose, row.status_since)
    if wanted > ZERO:
        key = f"again:{row.pk}:{balance(purpose=row.purpose).released}"
        why = "The money that was returned when it failed"
        reserve_money(row.track, row.team, row.purpose, wanted, key=key, who=who, why=why)
    steps = ["received", "read", "planned", "confirmed", "judging"]
    row.move(steps[min(4, stage_reached(row))], who=who)
    submission.refresh_from_db()
    for step in ("ingest", "plan", "draw", "estimate"):
        wake_step(step)
    return True


urlpatterns = [
    path("submissions/<int:pk>/", show_run, name="submission"),
    path("submissions/<int:pk>/problems/", list_problems, name="submission-problems"),
    path("submissions/<int:pk>/edit/", edit_run, name="submission-edit"),
]
