"""What a draft's plan may tell of its counts: how much is judged already, but of no single relation
whether it is.

A team sees judgments only of what it submitted. A plan comes before that and costs nothing, so a
draft of one line would say whether others had that line judged, and two drafts that differ by a
line would say it of their difference. So counts of few targets are not told, and larger ones are
rounded, always so that the price still suffices: what is reserved in excess is given back. Where
the rounding falls is a secret function of what the draft states, so that nobody can bring a count
to the edge of it, and the same lines uploaded again are told the same.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

from kbpo.corpus.fetch import fetch
from kbpo.sampling.models import TrackKey
from kbpo.submissions.models import Submission

FEW = 20
"""Of fewer targets than this no count is told."""
STEP = 10
"""Counts are told in multiples of this."""


def told(submission: Submission, options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options of a draft, with counts that give no single judgment away. `told` says how:
    exact, rounded, hidden.

    Before anybody's sample was drawn there is nothing to hide.
    """
    others = Submission.objects.filter(
        track__corpus=submission.track.corpus_id, sampled_at__isnull=False
    )
    if not others.exclude(pk=submission.pk).exists():
        return {width: option | {"told": "exact"} for width, option in options.items()}
    targets = _targets(submission)
    shift = _shift(submission, targets)
    return {width: _told(option, len(targets), shift) for width, option in options.items()}


def _told(option: dict[str, Any], own: int, shift: int) -> dict[str, Any]:
    n, new = option["targets"], option["new"]
    bound = option.get("new_at_most", new)
    if n < FEW:
        # Enough for whatever the bound may be: at most a quarter more is planned for it than for
        # the rest.
        n = new = most = max(bound, min(own, 2 * FEW))
    else:
        judged = _down(n - new, shift)
        n = min(own, _up(n, shift))
        new = max(new, n - judged)
        most = max(new, min(own, _up(bound, shift)))
    return _priced(option, n, new, most) | {
        "told": "hidden" if option["targets"] < FEW else "rounded"
    }


def _priced(option: dict[str, Any], n: int, new: int, most: int) -> dict[str, Any]:
    """The option with other counts, and the price and the work that go with them."""
    each = Decimal(option["each"])
    found = option | {"targets": n, "judged": n - new, "new": new, "at_most": str(each * most)}
    found["work_seconds"] = option["seconds_each"] * new
    return found | ({"new_at_most": most} if "new_at_most" in option else {})


def _down(count: int, shift: int) -> int:
    return max(0, (count - shift) // STEP * STEP)


def _up(count: int, shift: int) -> int:
    return -(-(count + shift) // STEP) * STEP


def _targets(submission: Submission) -> list[int]:
    """What a draft states anything of, ascending."""
    rows = fetch(
        "SELECT DISTINCT i.target_id FROM submissions_prediction p JOIN instances_instance i ON"
        " i.id = p.instance_id WHERE p.submission_id = %s ORDER BY 1",
        [submission.pk],
    )
    return [row[0] for row in rows]


def _shift(submission: Submission, targets: list[int]) -> int:
    """Where the rounding falls, in [0, STEP)."""
    key, _ = TrackKey.objects.get_or_create(track=submission.track)
    said = f"{key.secret}|told|{submission.team_id}|{','.join(map(str, targets))}"
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big") % STEP
