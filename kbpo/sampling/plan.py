"""Plans a submission's sample: what each half-width would take, what is paid for already, what the rest costs."""

from __future__ import annotations

from typing import Any

from kbpo.money.spend import allowance
from kbpo.sampling.designs import design_of
from kbpo.submissions.models import Submission

HALF_WIDTHS = ("0.050", "0.040", "0.030", "0.020")


def plan(submission: Submission) -> dict[str, Any]:
    """The plan that is shown before anybody confirms: one option per half-width, and the chosen one."""
    track = submission.track
    chosen = str(submission.target_half_width or track.target_half_width)
    widths = sorted({*HALF_WIDTHS, chosen}, reverse=True)
    left = allowance(track, submission.team, submission.purpose)
    return {
        "design": track.design,
        "distribution": track.distribution,
        "criterion": track.criterion,
        "level": str(track.confidence_level),
        "chosen": chosen,
        "options": design_of(track).options(submission, widths),
        "allowance": None if left.left is None else str(left.left),
        "allowance_scope": left.scope,
    }
