"""Follows a submission on its journey: its stages with times and counts, and an honest guess of
what remains.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from annotation.hits.progress import BASE, IDLE, answers_per_hour, is_idle, last_answer
from annotation.questions.limits import people_expected
from kbpo import clock
from kbpo.evaluation.extent import Extent
from kbpo.instances.models import Label
from kbpo.sampling.models import Sample
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components.figures import about_text, duration_text, half_width_text, time_text

ORDER = ("received", "read", "planned", "confirmed", "judging", "scored")
"""The statuses of a submission that gets to the end; the stage at hand is the one whose status
it has."""
MOMENTS = ("received_at", "read_at", "planned_at", "confirmed_at", "sampled_at", "scored_at")
ENDED = ("failed", "withdrawn", "refused", "expired")
NEAR = timedelta(hours=12)
"""A moment no further away is told without its date."""


def time_left(submission: Submission, extent: Extent) -> timedelta | None:
    """Return how long the judging still takes at the pace of the last hour, or since its sample was
    drawn if that is shorter: what was judged for others before tells nothing of it. None while
    nobody can say.
    """
    if not _waits(submission, extent):
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


def _waits(submission: Submission, extent: Extent) -> bool:
    return submission.status == "judging" and extent.open > 0


def stages(submission: Submission, sample: Extent) -> list[dict[str, Any]]:
    """Return the journey, for the page: what happened when, how long it took, and what comes."""
    at_hand = reached(submission)
    times, notes = _times(submission, sample), _notes(submission, sample)
    names = ("Received", "Read", "Planned", "Sampled", "Being judged", "Scored")
    journey: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        state = (
            "done"
            if index < at_hand or submission.status == "scored"
            else "now"
            if index == at_hand
            else "waiting"
        )
        note = notes[index] if state != "waiting" or index == 5 else ""
        journey.append({"name": name, "state": state, "note": note, "of": times[index]})
    journey[4]["share"] = 1 - sample.open / sample.sample if sample.sample else 0.0
    return (
        [*_until_its_end(submission, journey), _end(submission)]
        if submission.status in ENDED
        else journey
    )


def _until_its_end(submission: Submission, stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages that it has behind it: their moment is known, or a later one's is."""
    last = max(
        index for index, name in enumerate(MOMENTS) if index == 0 or getattr(submission, name)
    )
    drawn = 3 if submission.sampled_at else 2
    return [row | {"state": "done"} for row in stages[: min(last, drawn) + 1]]


def _end(submission: Submission) -> dict[str, Any]:
    """Return how it ended, when, and why; with the way on where there is one."""
    row: dict[str, Any] = {
        "name": submission.get_status_display(),
        "state": "failed",
        "note": submission.reason,
        "of": _moment(submission.status_since),
    }
    if submission.status == "failed":
        row["retry_url"] = reverse("submission", args=[submission.pk])
    return row


def reached(submission: Submission) -> int:
    """Return the number of the stage at hand; of one that ended, the last whose moment is known."""
    if submission.status in ORDER:
        return ORDER.index(submission.status)
    return max(
        index for index, name in enumerate(MOMENTS) if index == 0 or getattr(submission, name)
    )


def _times(submission: Submission, sample: Extent) -> list[str]:
    """When each stage came, or how long it took; of the judging, how far it is."""
    row = submission
    return [
        _moment(row.received_at),
        _took(row.received_at, row.read_at),
        _took(row.read_at, row.planned_at),
        _took(row.confirmed_at, row.sampled_at),
        f"{sample.judged:,} of {sample.sample:,}" if sample.sample else "",
        _moment(row.scored_at),
    ]


def _took(began: datetime | None, ended: datetime | None) -> str:
    """“in 3 s”; nothing while it is not known, or where it came anew after the other moment moved
    on.
    """
    return f"in {duration_text(ended - began)}" if began and ended and ended >= began else ""


def _moment(when: datetime | None) -> str:
    """Return a time of today as a clock shows it, an earlier one with its date."""
    if when is None:
        return ""
    return time_text(when, date=clock.now() - when > NEAR)


def _notes(submission: Submission, sample: Extent) -> list[str]:
    counts, words = submission.counts, kind_of(submission.track).words
    read = (
        f"{submission.n_items or 0:,} {words.items} in, {counts.get('set_aside', 0):,}"
        " lines set aside"
    )
    drawn = "nothing had to be drawn" if submission.sampled_at else "the sample is drawn next"
    if sample.sample:
        drawn = f"{sample.sample:,} {words.items} drawn{_of_planned(submission, sample)}"
    return [
        f"{submission.file_name}, {filesizeformat(submission.file_size)}",
        read if submission.read_at else "",
        _planned(submission),
        drawn,
        "; ".join(filter(None, (_no_answer(sample), _remains(submission, sample)))),
        _where(submission),
    ]


def _of_planned(submission: Submission, sample: Extent) -> str:
    """Return how many may be drawn, while a sample is drawn in stages and less than planned is
    there.
    """
    option = submission.plan.get("options", {}).get(submission.plan.get("chosen"), {})
    planned, by_stages = option.get("targets", 0), submission.track.design == Track.Design.POISSON
    if submission.status != "judging" or not by_stages or sample.sample >= planned:
        return ""
    return f" so far, of about {planned:,} planned: more follow if these do not suffice"


def _where(submission: Submission) -> str:
    """Who sees the score."""
    if submission.is_private:
        return (
            "private: shown to nobody else until you publish it, but for a data release of the"
            " closed track, which holds it without its name"
        )
    return "on the board" if submission.is_on_board else "enters the board by itself"


def _planned(submission: Submission) -> str:
    if not submission.plan:
        return ""
    width = f"for {half_width_text(Decimal(submission.plan.get('chosen', '0')))}"
    return (
        f"{width}, confirmed {_moment(submission.confirmed_at)}"
        if submission.confirmed_at
        else width
    )


def _no_answer(sample: Extent) -> str:
    return f"{sample.unanswered:,} found no answer" if sample.unanswered else ""


def _remains(submission: Submission, sample: Extent) -> str:
    """Return how long the judging still takes at the pace of the last hour; without one, how much
    work it is.
    """
    if not _waits(submission, sample):
        return ""
    left = time_left(submission, sample)
    last = last_answer(submission.track) if left is None else None
    if _is_begun(submission, last) and (rate := answers_per_hour(submission.track)):
        left = timedelta(hours=sample.open * float(people_expected(submission.track)) / rate)
    if left is not None:
        return f"{about_text(left)} left, done near {_near(clock.now() + left)}"
    option = submission.plan.get("options", {}).get(submission.plan.get("chosen"), {})
    if option.get("new") and option.get("work_seconds"):
        work = timedelta(seconds=option["work_seconds"] / option["new"] * sample.open)
        return f"{about_text(work)} of work left; {_no_pace(last)}"
    return f"waits for people; {_no_pace(last)}"


def _is_begun(submission: Submission, last: datetime | None) -> bool:
    """Return whether the last answer on its track came since its sample was drawn."""
    drawn_at = submission.sampled_at
    return last is not None and (drawn_at is None or last > drawn_at)


def _no_pace(last: datetime | None) -> str:
    """Return why nobody can say yet when it is done, where the last answer came then."""
    if last is None:
        return "nobody judged in the last hour"
    if clock.now() - last > IDLE:
        return f"nobody has judged for {duration_text(clock.now() - last)}"
    return "it is too early to say when it is done"


def _near(when: datetime) -> str:
    """Return a moment to come: today as a clock shows it, else with its date."""
    return time_text(when, date=when - clock.now() > NEAR)
