"""Step 3: a submission that was read gets its sampling distributions, its overlaps with the others,
and a plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from kbpo import clock
from kbpo.corpus.fetch import fetch
from kbpo.queue import OwnersFault, nudge, work
from kbpo.sampling.models import SamplingDistribution
from kbpo.sampling.plan import plan
from kbpo.sampling.plan import tick as plan_further
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of


def tick() -> int:
    """Return how many submissions got their distributions and their plan; or, once they are scored,
    the plan of what more would take.
    """
    return work(Submission, "read", _prepare) + plan_further()


def _prepare(submission: Submission) -> None:
    make_distributions(submission)
    make_overlaps(submission)
    submission.move("planned", plan=plan(submission), planned_at=clock.now())
    nudge("draw")


def make_distributions(submission: Submission) -> None:
    """Store the normaliser of every distribution of the track, computed in one scan of the
    predictions.
    """
    kinds = submission.track.distributions
    distributions = kind_of(submission.track).measures.distributions
    weights = ", ".join(f"sum({distributions[kind].weight})" for kind in kinds)
    [(n, *totals)] = fetch(
        f"SELECT count(*), {weights} FROM submissions_prediction p"
        " WHERE p.submission_id = %s AND NOT p.is_dev",
        [submission.pk],
    )
    if not n:
        raise OwnersFault(
            "The file holds no relation that can be evaluated. Mend it and upload it again."
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
        make_distributions(submission)
        items = kind_of(submission.track).words.items
        submission.counts[items] = submission.predictions.count()
        submission.save(update_fields=["counts"])


def make_overlaps(submission: Submission) -> None:
    """Store Σ_x p_i(x) p_j(x) of this submission with itself and every other one of its track, for
    each distribution. Only tracks that draw with replacement need this.

    One join over the instances that both predict; computed once, when the newer of the two arrives.
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
    products_of = fetch(
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
    """Return the weight's SQL over another alias than `p`."""
    return weight.replace("p.", f"{alias}.")
