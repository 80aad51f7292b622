"""Step 2: turns a received file into instances, predictions and problems; completely, or not at
all.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from formats.messages import Report
from kbpo import clock
from kbpo.corpus.sql import copy_rows
from kbpo.queue import handle_rows, wake_step
from kbpo.submissions.models import Submission, progress_writer
from kbpo.submissions.receive import count_items_since
from kbpo.submissions.withdraw import delete_earlier_reading, discard_ended_drafts
from kbpo.tracks.base import Unusable, Waits
from kbpo.tracks.registry import kind_of

PROBLEM = (
    *("submission_id", "code", "severity", "line", "text", "line_text"),
    *("culprit_begin", "culprit_end"),
)
LOOKS_AGAIN = timedelta(minutes=5)
"""How long a file that needs another one waits before it is tried again; an arriving file ends the
wait.
"""


def tick() -> int:
    """Read received submissions; return how many were read, refused ones included."""
    done = handle_rows(Submission, "received", _read_submission)
    discard_ended_drafts()
    return done


def _read_submission(submission: Submission) -> None:
    report, waits = Report(), ""
    delete_earlier_reading(submission)
    try:
        _check_daily_limit(submission)
        with transaction.atomic():  # what a file leaves behind that turns out to be unusable
            try:
                counts = kind_of(submission.track).ingest_file(
                    submission.pk, submission.file.path, report, progress_writer(submission.pk)
                )
            except Waits as sentence:
                waits = str(sentence)
    except Unusable as fault:
        _store_problems(submission, report)
        submission.move("refused", str(fault), counts=_message_counts(report), read_at=clock.now())
        return
    if waits:
        submission.move("received", waits)
        submission.next_try_at = clock.now() + LOOKS_AGAIN
        submission.save(update_fields=["next_try_at"])
        return
    _store_problems(submission, report)
    door, run_id = counts.pop("door", ""), counts.pop("run_id", "")
    counts |= _message_counts(report)
    counts["set_aside"] = max(
        counts["set_aside"], counts["errors"] - counts["file_errors"]
    )  # other lines have no other record
    submission.move("read", read_at=clock.now(), counts=counts, door=door, run_id=run_id)
    wake_step("plan")


def _check_daily_limit(submission: Submission) -> None:
    """Raise Unusable if the predictions of the team's other files of the day leave no room for this
    one. They may all have arrived before the first was read.
    """
    yesterday = clock.now() - timedelta(days=1)
    if submission.received_at <= yesterday:
        return  # it was accepted long ago, and waited
    others = count_items_since(submission.team, yesterday, excluded_submission=submission.pk)
    if others >= settings.TEAM_DAY_ITEMS:
        raise Unusable(
            f"Other files that your team uploaded within a day predict {settings.TEAM_DAY_ITEMS:,}"
            " or more already, which is the most. Upload this one again tomorrow."
        )


def _message_counts(report: Report) -> dict[str, Any]:
    """Return the numbers of all messages, stored or not, by severity and by code."""
    severity = report.by_severity
    return {
        "errors": severity["error"],
        "file_errors": report.file_errors,
        "warnings": severity["warning"],
        "infos": severity["info"],
        "by_code": dict(report.by_code),
    }


def _store_problems(submission: Submission, report: Report) -> None:
    """Store the kept messages as problems."""
    problems = (
        (
            submission.pk,
            message.code,
            message.severity,
            message.line,
            message.text,
            message.line_text,
            *(message.culprit or (None, None)),
        )
        for message in report
    )
    copy_rows("submissions_problem", PROBLEM, problems)  # ten thousand objects would take a second
