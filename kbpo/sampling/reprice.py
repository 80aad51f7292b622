"""Changes what an answer costs from now on. Runs that are confirmed keep the price they were
confirmed at until they are scored, as what was set aside must buy what their plans promised; plans
that nobody has confirmed get the new one.
"""

from __future__ import annotations

from django.db import transaction

from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.money.models import Price
from kbpo.queue import nudge
from kbpo.sampling.designs.base import reprice_option
from kbpo.sampling.development import development_plan
from kbpo.sampling.models import Further
from kbpo.submissions.models import Submission


@transaction.atomic
def reprice(price: Price, who: User) -> None:
    """Set the price of a kind of question from now on, and log it."""
    track, before = price.track, Price.objects.filter(pk=price.pk).first()
    price.save()
    note(
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
    nudge("plan")


def _price_text(price: Price) -> str:
    more = f", ${price.extra} more for more work" if price.extra else ""
    return f"{price.interface} ${price.reward}{more}, {price.seconds} s"
