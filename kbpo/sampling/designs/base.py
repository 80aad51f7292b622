"""The contract of a sampling design: the cost of a sample, its draw, and when it is sufficient."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from scipy.special import ndtri

from kbpo.money.models import Price
from kbpo.sampling.models import SampleBatch
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of

CLOSE = 1.02
"""Relative excess of a variance over its target that is tolerated"""
CENT = Decimal("0.01")
UNDER_WAY = ("confirmed", "judging")
"""Statuses of a run that people judge, at the price of its confirmation"""


@dataclass(frozen=True)
class Realised:
    """The precision that the judgments have reached: the realised variance of the guaranteed
    number, the variance that the model anticipates, and the half-width of the printed interval.
    """

    variance: float
    anticipated: float
    half_width: float = math.inf

    @property
    def interval_variance(self) -> float:
        """Return the variance that the interval is computed from."""
        return max(self.variance, self.anticipated)

    @classmethod
    def from_batch(cls, batch: SampleBatch | None) -> Realised | None:
        """Return the precision that the latest evaluation stored in a batch; None if the batch is
        open or nothing was judged.
        """
        remembered = batch.settings.get("now") if batch is not None else None
        return (
            cls(*(math.inf if number is None else number for number in remembered))
            if remembered
            else None
        )

    def store_in_batch(self, batch: SampleBatch, *, is_stage_end: bool = True) -> None:
        """Store the result in the batch as its current result and, if `is_stage_end`, as the final
        result of its stage.
        """
        now = [
            figure if math.isfinite(figure) else None
            for figure in (self.variance, self.anticipated, self.half_width)
        ]
        kept: dict[str, Any] = {"now": now}
        if is_stage_end:
            larger = self.interval_variance if math.isfinite(self.interval_variance) else None
            kept |= {"realised": now[:2], "realised_variance": larger, "came_to": now[2]}
        if kept.items() <= batch.settings.items():
            return
        batch.settings |= kept
        batch.save(update_fields=["settings"])


class Design(ABC):
    """A method to draw a sample with known probabilities, as independent draws or by thresholds.
    Stateless.
    """

    @abstractmethod
    def draft_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return, for each half-width, the maximal cost of a draft before it is confirmed. An
        option has the targets, judged already (as far as the team may know), new, at_most
        (dollars), work_seconds, and the inputs that the design needs to draw the sample later.
        Depends only on public data and on what the team was shown (`draft.Draft`), not on other
        judgments.
        """

    @abstractmethod
    def further_options(
        self, submission: Submission, half_widths: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return, for each half-width, the maximal cost of judging a scored submission further,
        given all data.
        """

    @abstractmethod
    def sample_next_batch(self, submission: Submission) -> int:
        """Store the next batch (or batches) with their samples, and return how many targets were
        added. Repeatable: a batch's samples are a function of its row and of earlier rows.
        """

    def sample_together(self, submissions: Sequence[Submission]) -> int:
        """Sample several submissions of one track, and return how many targets were added."""
        return sum(self.sample_next_batch(submission) for submission in submissions)

    @abstractmethod
    def variance_to_compare(self, realised: Realised) -> float:
        """Return the variance by which judging is ended: as soon as it is at most the ordered
        variance.
        """

    @abstractmethod
    def reason_to_stop(self, submission: Submission, realised: Realised | None) -> str:
        """Return why sampling ends (target, budget, all, stages, exhausted), once all drawn targets
        are answered; empty if another stage is due. `realised` is the result of the judgments of
        the guaranteed number; None before there are any.
        """


def last_batch(submission: Submission) -> SampleBatch | None:
    """Return the submission's latest batch of the guaranteed distribution; None before the
    first.
    """
    return (
        submission.batches.test_part()
        .filter(distribution__kind=submission.track.distribution)
        .exclude(design=SampleBatch.DEVELOPMENT)
        .order_by("stage")
        .last()
    )


def target_variance_of_submission(submission: Submission, half_width: str | Decimal) -> float:
    """Return the variance at which an interval of the track's confidence level has this
    half-width.
    """
    return variance_for_half_width(submission.track, float(half_width))


def half_width_at(submission: Submission, variance: float) -> float:
    """Return the half-width of an interval of the track's confidence level at this variance."""
    return half_width_for_variance(submission.track, variance)


def half_width_for_variance(track: Track, variance: float) -> float:
    """Return the half-width of an interval of a track's confidence level at this variance."""
    return float(variance**0.5 * _normal_quantile(track))


def variance_for_half_width(track: Track, half_width: float) -> float:
    """Return the variance at which an interval of a track's confidence level has this
    half-width.
    """
    return (half_width / _normal_quantile(track)) ** 2


def _normal_quantile(track: Track) -> float:
    return float(ndtri(0.5 + float(track.confidence_level) / 2))


def option_price(submission: Submission, targets: int, new: int) -> dict[str, Any]:
    """Return the part of an option (one half-width of a plan, with its cost) that is the same for
    every design: counts, dollars, seconds of work.
    """
    seconded = kind_of(submission.track).count_second_opinions(new)
    answers = submission.track.workers_per_question + (Decimal(seconded) / new if new else 0)
    price = agreed_price(submission) or _current_price(submission.track)
    each = (price.per_answer * answers).quantize(CENT, ROUND_CEILING)
    seconds = round(price.seconds * answers)
    return {
        "targets": targets,
        "judged": targets - new,
        "new": new,
        "each": str(each),
        "at_most": str(each * new),
        "seconds_each": seconds,
        "work_seconds": seconds * new,
        "price": {
            "interface": price.interface,
            "reward": str(price.reward),
            "extra": str(price.extra),
            "fee_rate": str(price.fee_rate),
            "seconds": price.seconds,
        },
    }


def agreed_price(submission: Submission) -> Price | None:
    """Return the price of an answer that was fixed when a sample was confirmed or ordered, even if
    the price of the track changed meanwhile; None if today's price applies.
    """
    if submission.status not in UNDER_WAY:
        return None
    chosen = submission.plan.get("options", {}).get(submission.plan.get("chosen"), {})
    price = chosen.get("price")
    if price is None:
        return None
    return Price(
        track=submission.track,
        interface=price["interface"],
        reward=Decimal(price["reward"]),
        extra=Decimal(price["extra"]),
        fee_rate=Decimal(price["fee_rate"]),
        seconds=price["seconds"],
    )


def _current_price(track: Track) -> Price:
    asking = kind_of(track).asking[0]
    stored = Price.objects.filter(track=track, interface=asking.interface).first()
    return stored or Price(
        track=track,
        interface=asking.interface,
        reward=asking.reward,
        extra=asking.extra,
        seconds=asking.seconds,
    )


def reprice_option(submission: Submission, option: dict[str, Any]) -> dict[str, Any]:
    """Return an option (one half-width of a plan, with its cost) at today's price."""
    price = option_price(submission, option["targets"], option["new"])
    most = option.get("new_at_most", option["new"])
    return option | price | {"at_most": str(Decimal(price["each"]) * most)}


def make_option(
    submission: Submission, width: str, targets: int, new: int, max_new_questions: int
) -> dict[str, Any]:
    """Return an option (one half-width of a plan, with its cost) that is expected to need `new`
    questions, and at most `max_new_questions`.
    """
    price = option_price(submission, targets, new)
    at_most = str(Decimal(price["each"]) * max_new_questions)
    return price | {"half_width": width, "at_most": at_most, "new_at_most": max_new_questions}


def batch_seed(submission: Submission, kind: str, stage: int = 1) -> int:
    """Return the seed of a batch: derived from the track's secret, so that no team can foresee or
    choose the sample.
    """
    message = f"{submission.track.secret}|{submission.pk}|{kind}|{stage}"
    digest = hashlib.sha256(message.encode()).digest()
    return int.from_bytes(digest[:7], "big")
