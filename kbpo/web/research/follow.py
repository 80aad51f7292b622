"""The stages of a run with their times, and an estimate of the time that remains."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from annotation.hits.batch import BASE, IDLE, answers_per_hour, is_idle, last_answer_time
from annotation.questions.limits import expected_people
from kbpo import clock
from kbpo.evaluation.latest import Extent
from kbpo.instances.models import Label
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import about_text, duration_text, half_width_text, time_text

STATUS_ORDER = ("received", "read", "planned", "confirmed", "judging", "scored")
"""The statuses of a submission up to its score, in order; the current stage is that of its
status."""
STAGE_NAMES = ("Received", "Read", "Planned", "Sampled", "Being judged", "Scored")
STAGE_TIMES = ("received_at", "read_at", "planned_at", "confirmed_at", "sampled_at", "scored_at")
ENDED_STATUSES = ("failed", "withdrawn", "refused", "expired")
WITHOUT_DATE = timedelta(hours=12)
"""Distance up to which a time is shown without its date."""


def time_left(submission: Submission, extent: Extent) -> timedelta | None:
    """Return the expected time until the sample is judged, from the rate of the last hour (or since
    the draw, if later). None without an estimate.
    """
    if submission.status != "judging" or not extent.open:
        return None
    targets = Sample.objects.filter(batch__submission=submission).values("target")
    since = clock.now() - timedelta(hours=1)
    if submission.sampled_at is not None:
        since = max(since, submission.sampled_at)
    recent = Label.objects.filter(target__in=targets, created_at__gte=since, source="crowd")
    recent = recent.filter(again=None)  # nobody judged anything then
    times = list(recent.order_by("created_at").values_list("created_at", flat=True))
    if len(times) <= 2 or clock.now() - times[0] < BASE or is_idle(times[0], times[-1], len(times)):
        return None
    rate = (len(times) - 1) / (clock.now() - times[0]).total_seconds()
    return timedelta(seconds=extent.open / rate)


def stage_reached(submission: Submission) -> int:
    """Return the index of the current stage; for a run that ended, of the last stage with a known
    time.
    """
    if submission.status in STATUS_ORDER:
        return STATUS_ORDER.index(submission.status)
    return max(
        index for index, name in enumerate(STAGE_TIMES) if index == 0 or getattr(submission, name)
    )


def journey_stages(submission: Submission, sample: Extent) -> list[dict[str, Any]]:
    """Return the stages of a run for its page, each with state, time and note. A run that ended has
    the stages it passed and how, when and why it ended.
    """
    row, at_hand = submission, stage_reached(submission)
    notes = _stage_notes(submission, sample)
    of = (
        _time_note(row.received_at),
        _duration_note(row.received_at, row.read_at),
        _duration_note(row.read_at, row.planned_at),
        _duration_note(row.confirmed_at, row.sampled_at),
        f"{sample.judged:,} of {sample.sample:,}" if sample.sample else "",
        _time_note(row.scored_at),
    )
    journey: list[dict[str, Any]] = []
    for index, name in enumerate(STAGE_NAMES):
        state = "now" if index == at_hand else "waiting"
        if index < at_hand or row.status == "scored":
            state = "done"
        note = notes[index] if state != "waiting" or index == 5 else ""
        journey.append({"name": name, "state": state, "note": note, "of": of[index]})
    journey[4]["share"] = 1 - sample.open / sample.sample if sample.sample else 0.0
    if row.status not in ENDED_STATUSES:
        return journey
    behind = journey[: min(at_hand, 3 if row.sampled_at else 2) + 1]
    end = {
        "name": row.get_status_display(),
        "state": "failed",
        "note": row.reason,
        "of": _time_note(row.status_since),
    }
    if row.status == "failed":
        end["retry_url"] = reverse("submission", args=[row.pk])
    return [*(stage | {"state": "done"} for stage in behind), end]


def _duration_note(began: datetime | None, ended: datetime | None) -> str:
    """Return a duration as “in 3 s”; empty if it is unknown or negative."""
    return f"in {duration_text(ended - began)}" if began and ended and ended >= began else ""


def _time_note(moment: datetime | None) -> str:
    """Return a time, with its date unless it is near."""
    return time_text(moment, date=abs(clock.now() - moment) > WITHOUT_DATE) if moment else ""


def _stage_notes(submission: Submission, sample: Extent) -> list[str]:
    """Return the note of each stage."""
    row, counts, words = submission, submission.counts, kind_of(submission.track).words
    option = row.plan.get("options", {}).get(row.plan.get("chosen"), {})
    read = f"{row.n_items or 0:,} {words.items} in, {counts.get('set_aside', 0):,} lines left out"
    planned = f"for {half_width_text(Decimal(row.plan.get('chosen', '0')))}" if row.plan else ""
    if planned and row.confirmed_at:
        planned += f", confirmed {_time_note(row.confirmed_at)}"
    drawn = "nothing had to be drawn" if row.sampled_at else "the sample is drawn next"
    if sample.sample:
        drawn = f"{sample.sample:,} {words.items} drawn"
        wanted, by_stages = option.get("targets", 0), row.track.design == Track.Design.POISSON
        if row.status == "judging" and by_stages and sample.sample < wanted:
            drawn += f" so far, of about {wanted:,} planned: more follow if these do not suffice"
    judged = [f"{sample.unanswered:,} have no answer"] if sample.unanswered else []
    if row.status == "judging" and sample.open:
        judged.append(_time_left_text(row, sample, option))
    seen = "on the board" if row.is_on_board else "enters the board automatically"
    if row.is_private:
        seen = "private until you publish it; the data release contains it without its name"
    return [
        f"{row.file_name}, {filesizeformat(row.file_size)}",
        read if row.read_at else "",
        planned,
        drawn,
        "; ".join(judged),
        seen,
    ]


def _time_left_text(submission: Submission, sample: Extent, option: dict[str, Any]) -> str:
    """Return the expected time until the sample is judged; without an estimate, the remaining work
    and the reason.
    """
    left = time_left(submission, sample)
    last = last_answer_time(submission.track) if left is None else None
    is_begun = last and (submission.sampled_at is None or last > submission.sampled_at)
    if is_begun and (rate := answers_per_hour(submission.track)):
        left = timedelta(hours=sample.open * float(expected_people(submission.track)) / rate)
    if left is not None:
        return f"{about_text(left)} left, done near {_time_note(clock.now() + left)}"
    why = "it is too early to say when it is done"
    if last is None:
        why = "nobody judged in the last hour"
    elif clock.now() - last > IDLE:
        why = f"nobody has judged for {duration_text(clock.now() - last)}"
    if option.get("new") and option.get("work_seconds"):
        work = timedelta(seconds=option["work_seconds"] / option["new"] * sample.open)
        return f"{about_text(work)} of work left; {why}"
    return f"waits for people; {why}"
