"""The line of a run's file that states a prediction, as it stands there, for whoever may have the
file.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path

from formats.limits import MB, Limits
from formats.opening import line_at
from kbpo.submissions.models import Submission
from kbpo.web.errors import Crowded
from kbpo.web.research.submissions import find

MOST = 2_000
"""Characters of a line that are shown"""
READING = threading.BoundedSemaphore(1)
"""One file at a time in a process: gigabytes may have to be unpacked up to a line"""
WAIT = 1.0
"""Seconds for which that is waited for: most lines are found in a tenth"""
CUT = f"… cut: the line has more than {MOST:,} characters."


@dataclass(frozen=True)
class Line:
    """A line of an uploaded file."""

    number: int
    text: str
    """Its first characters"""
    is_cut: bool
    """Whether it has more of them"""


def line_of(submission: Submission, prediction: int) -> Line:
    """Return the line that states a prediction of a submission. Raises Http404 with a sentence
    where there is no such prediction, or its line cannot be read; Crowded where others read theirs.
    """
    number = submission.predictions.filter(pk=prediction).values_list("line", flat=True).first()
    if number is None:
        raise Http404("This submission has no such prediction.")
    if not number:
        raise Http404("On which line of the file this prediction stands was not noted.")
    if not READING.acquire(timeout=WAIT):
        raise Crowded("Other lines are being read")
    try:
        return _read(submission, number)
    finally:
        READING.release()


def _read(submission: Submission, number: int) -> Line:
    limits = Limits(
        upload_bytes=settings.UPLOAD_LIMIT_MB * MB, unpacked_bytes=settings.UNPACKED_LIMIT_MB * MB
    )
    try:
        line = line_at(submission.file.path, number, limits, MOST)
    except OSError as gone:
        raise Http404("The file of this submission is not kept any more.") from gone
    if line is None:
        raise Http404(f"Line {number:,} of the file cannot be read.")
    return Line(number, *line)


def show(request: HttpRequest, pk: int, prediction: int) -> HttpResponse:
    """Return the line as plain text, and below it, if so, that it is cut; a sentence where it
    cannot be read.
    """
    submission = find(request, pk, own=True)
    try:
        line = line_of(submission, prediction)
    except Http404 as problem:
        return HttpResponse(f"{problem}\n", status=404, content_type="text/plain; charset=utf-8")
    text = f"{line.text}\n{CUT}\n" if line.is_cut else f"{line.text}\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


urlpatterns = [
    path("submissions/<int:pk>/explore/<int:prediction>/line/", show, name="submission-line"),
]
