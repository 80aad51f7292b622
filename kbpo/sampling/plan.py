"""Step 3: gives a submission that was read its sampling distributions, its overlaps with the
others, and a plan: the greatest number of judgments for each half-width; for a scored submission,
of additional judgments.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.sql import fetch_rows
from kbpo.money.models import Price
from kbpo.money.spend import remaining_allowance
from kbpo.queue import OwnersFault, handle_rows, wake_step
from kbpo.sampling.designs import design_of
from kbpo.sampling.designs.base import Realised, half_width_at, last_batch, reprice_option
from kbpo.sampling.development import development_plan
from kbpo.sampling.models import Further, SampleBatch, SamplingDistribution
from kbpo.submissions.models import Prediction, Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of


def tick() -> int:
    """Compute the distributions and plans of new submissions, and offers for scored ones; return
    for how many.
    """
    return handle_rows(Submission, "read", _prepare_submission) + plan_further_orders()


def _prepare_submission(submission: Submission) -> None:
    store_distributions(submission)
    store_overlaps(submission)
    submission.move("planned", plan=make_plan(submission), planned_at=clock.now())
    wake_step("draw")


def store_distributions(submission: Submission) -> None:
    """Store the normaliser of every distribution of the track, computed in one scan of the
    predictions.
    """
    kinds = submission.track.distributions
    distributions = kind_of(submission.track).measures.distributions
    weights = ", ".join(f"sum({distributions[kind].weight})" for kind in kinds)
    [(n, *totals)] = fetch_rows(
        f"SELECT count(*), {weights} FROM submissions_prediction p"
        " WHERE p.submission_id = %s AND NOT p.is_dev",
        [submission.pk],
    )
    if not n:
        raise OwnersFault(
            "The file holds no relation that can be evaluated. Correct it and upload it again."
        )
    normalisers = [
        SamplingDistribution(submission=submission, kind=kind, total=total, n=n)
        for kind, total in zip(kinds, totals, strict=True)
    ]
    SamplingDistribution.objects.bulk_create(
        normalisers,
        update_conflicts=True,
        unique_fields=["submission", "kind"],
        update_fields=["total", "n"],
    )


def recompute_distributions(submissions: Sequence[int]) -> None:
    """Recompute the normalisers and counts of submissions that gained predictions. Earlier draws
    keep their probabilities.
    """
    to_distribute = Submission.objects.filter(pk__in=submissions).select_related("track__corpus")
    for submission in to_distribute.order_by("pk"):
        store_distributions(submission)
        items = kind_of(submission.track).words.items
        submission.counts[items] = submission.predictions.count()
        submission.save(update_fields=["counts"])


def store_overlaps(submission: Submission) -> None:
    """Store the overlap Σ_x p_i(x) p_j(x) of this submission with itself and every other one of its
    track, for each distribution. Only tracks that draw with replacement need this.

    The overlap is one join over the instances that both predict, computed once when the newer of
    the two arrives.
    """
    if submission.track.design != Track.Design.IID:
        return
    kinds = submission.track.distributions
    distributions = kind_of(submission.track).measures.distributions
    weights = [distributions[kind].weight for kind in kinds]
    products = ", ".join(
        f"sum(({_replace_alias(weight, 'p')}) * ({_replace_alias(weight, 'o')}))"
        for weight in weights
    )
    products_of = fetch_rows(
        f"SELECT o.submission_id, {products} FROM submissions_prediction p"
        " JOIN submissions_prediction o ON o.instance_id = p.instance_id"
        " WHERE p.submission_id = %s AND NOT p.is_dev AND o.submission_id IN ("
        "   SELECT d.submission_id FROM sampling_samplingdistribution d"
        "   JOIN submissions_submission s ON s.id = d.submission_id WHERE s.track_id = %s)"
        " GROUP BY o.submission_id",
        [submission.pk, submission.track_id],
    )
    distributions_of = SamplingDistribution.objects.filter(submission__track=submission.track)
    total_of = {(row.submission_id, row.kind): row.total for row in distributions_of}
    for place, own in enumerate(kinds, 1):
        mine = distributions_of.get(submission=submission, kind=own)
        mine.overlaps = {
            row[0]: float(row[place]) / (total_of[row[0], own] * mine.total)
            for row in products_of
            if (row[0], own) in total_of
        }
        mine.save(update_fields=["overlaps"])


def _replace_alias(weight: str, alias: str) -> str:
    """Return the SQL of a prediction's weight with another alias instead of `p`."""
    return weight.replace("p.", f"{alias}.")


HALF_WIDTHS = ("0.050", "0.040", "0.030", "0.020")
NARROWER = ("0.100", "0.075", "0.050", "0.040", "0.030", "0.025", "0.020", "0.015", "0.010")
CHOICES = 3
"""Narrower half-widths that are offered once a submission is scored."""
AGAIN = timedelta(minutes=10)
MUCH = 0.95
"""Half-widths above this share of the current one are not offered."""


def make_plan(submission: Submission) -> dict[str, Any]:
    """Return the plan of a draft: one option per half-width, and the chosen one."""
    track = submission.track
    chosen = str(submission.target_half_width or track.target_half_width)
    widths = sorted({*HALF_WIDTHS, chosen}, reverse=True)
    _refuse_too_few_predictions(submission)
    options = design_of(track).draft_options(submission, widths)
    return _plan_of_options(submission, options) | {
        "chosen": chosen,
        "development": development_plan(submission),
    }


def _refuse_too_few_predictions(submission: Submission) -> None:
    """Raise OwnersFault if a shared track would print a score of very few predictions, from which
    single judgments could be inferred.
    """
    track = submission.track
    if track.is_study or kind_of(track).rates:
        return
    predicted = Prediction.objects.filter(submission=submission, is_dev=False)[
        : settings.FEWEST_PREDICTIONS
    ].count()
    if predicted < settings.FEWEST_PREDICTIONS:
        raise OwnersFault(
            f"The file has {predicted} predictions in the test part; a run needs"
            f" {settings.FEWEST_PREDICTIONS}."
        )


def _plan_of_options(submission: Submission, options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    track = submission.track
    left = remaining_allowance(track, submission.team, submission.purpose)
    return {
        "design": track.design,
        "distribution": track.distribution,
        "criterion": track.criterion,
        "level": str(track.confidence_level),
        "options": options,
        "allowance": None if left.left is None else str(left.left),
        "allowance_scope": left.scope,
    }


def plan_further_orders() -> int:
    """Compute the prices of narrower intervals for scored submissions, and return for how many."""
    scored = Submission.objects.filter(
        status="scored", track__status="open", sampled_at__isnull=False
    )
    Further.objects.bulk_create(
        [
            Further(submission=submission, status="wanted", order=submission.orders + 1)
            for submission in scored.filter(further=None)[:100]
        ],
        ignore_conflicts=True,
    )
    is_spent = Q(submission__status__in=("judging", "scored"), order__lte=F("submission__orders"))
    # While a sample is judged, its final interval is unknown.
    is_early = Q(
        submission__status="scored",
        submission__track__status="open",
        status="made",
        made_at__lt=F("submission__scored_at"),
    )
    for row in Further.objects.filter(is_spent | is_early).select_related("submission"):
        row.move("wanted", order=row.submission.orders + 1, plan={})
    return handle_rows(Further, "wanted", _plan_further_order)


def _plan_further_order(offer: Further) -> None:
    submission = Submission.objects.select_related("track", "team").get(pk=offer.submission_id)
    widths = narrower_half_widths(submission)
    made: dict[str, Any] = {}
    if widths:
        options = design_of(submission.track).further_options(submission, widths)
        asking = {width: option for width, option in options.items() if max_new_judgments(option)}
        made = _plan_of_options(submission, asking)
    offer.move("made", plan=made, made_at=clock.now())


def max_new_judgments(option: dict[str, Any]) -> int:
    """Return the greatest number of judgments of an option, which its price covers."""
    return int(option.get("new_at_most", option["new"]))


def narrower_half_widths(submission: Submission) -> list[str]:
    """Return the half-widths that are worth ordering, the widest first: those narrower than the
    printed one, and the ordered one if it was not reached.
    """
    realised, chosen = (
        Realised.from_batch(last_batch(submission)),
        str(submission.plan.get("chosen", "")),
    )
    now = current_half_width(submission)
    if realised is not None:
        held = design_of(submission.track).variance_to_compare(realised)
        now = min(now, half_width_at(submission, held))
    if submission.status != "scored":  # what was ordered is still being judged
        now = float(chosen)
    widths = [width for width in NARROWER if float(width) < MUCH * now][:CHOICES]
    if submission.stage_reason != "target" and chosen and float(chosen) < now:
        widths.append(chosen)
    return sorted(set(widths), reverse=True)


def current_half_width(submission: Submission) -> float:
    """Return the half-width of the printed interval of a submission's guaranteed number; infinite
    before its stage has ended.
    """
    realised = Realised.from_batch(last_batch(submission))
    return realised.half_width if realised else float("inf")


def was_computed_before(submission: Submission, further: Further) -> bool:
    """Return whether an offer was computed before the submission was scored, since its interval has
    changed then.
    """
    if submission.status != "scored" or submission.scored_at is None or further.made_at is None:
        return False
    return further.status == "made" and further.made_at < submission.scored_at


def current_offer(submission: Submission) -> Further:
    """Return the stored offer of a submission; it is recomputed if judgments have arrived since, or
    if the last attempt failed.
    """
    plans = Further.objects.filter(submission=submission)
    stored = plans.first()
    if stored is None:
        stored, new = Further.objects.get_or_create(
            submission=submission, defaults={"status": "wanted", "order": submission.orders + 1}
        )
        if new:
            wake_step("plan")
        return stored
    now = clock.now()
    if stored.status in ("made", "failed") and stored.status_since < now - AGAIN:
        settled = SampleBatch.objects.filter(submission__track=submission.track_id)
        is_stale = (
            stored.status == "failed" or settled.filter(settled_at__gt=stored.made_at).exists()
        )
        unchanged = plans.filter(status=stored.status, status_since=stored.status_since)
        if is_stale and unchanged.update(
            status="wanted", status_since=now, next_try_at=now, attempts=0
        ):
            wake_step("plan")
            stored.refresh_from_db()
    return stored


@transaction.atomic
def set_price(price: Price, who: User) -> None:
    """Set the price of a kind of question from now on, and log it."""
    track, before = price.track, Price.objects.filter(pk=price.pk).first()
    price.save()
    write_audit_entry(
        "set price",
        f"track:{track.slug}",
        who=who,
        before=_price_text(before) if before else "as its kind says",
        after=_price_text(price),
        track=track.slug,
    )
    drafts = Submission.objects.filter(track=track, status="planned")
    for row in drafts.select_for_update(of=("self",)).select_related("track").order_by("pk"):
        options = row.plan["options"].items()
        row.plan |= {"options": {width: reprice_option(row, option) for width, option in options}}
        row.plan |= {"development": development_plan(row)}
        row.save(update_fields=["plan"])
    for further in Further.objects.filter(submission__track=track, status="made"):
        further.move("wanted", plan={})
    wake_step("plan")


def _price_text(price: Price) -> str:
    more = f", ${price.extra} more for more work" if price.extra else ""
    return f"{price.interface} ${price.reward}{more}, {price.seconds} s"
