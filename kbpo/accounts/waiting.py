"""Queues of requests from strangers. No network can fill a queue alone."""

from __future__ import annotations

from typing import Any

from django.db import models, transaction
from django.db.models import Count, Min, QuerySet

MOST = 500
"""Requests that wait for an admin in one queue"""
MOST_OF_A_NETWORK = 20
"""Those of them that one network made"""
FULL = "So many people ask at the moment that no more can wait. Come back in some days."


class Waiting(models.Model):
    """A request in such a queue."""

    network = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="From where it was asked, while it waits",
    )

    class Meta:
        abstract = True


@transaction.atomic
def has_room(waiting: QuerySet[Any], network: str, since: str) -> bool:
    """Return whether one more request of this network may wait.

    Where the queue is full, the oldest one of the network with the most makes room, if that has
    more than this one and more than one: the only request of a network is never given up for
    another. `since`: the column that says when a request was made.
    """
    own = waiting.filter(network=network).count()
    if own >= MOST_OF_A_NETWORK:
        return False
    while waiting.count() >= MOST:
        networks = waiting.order_by().values("network").annotate(n=Count("pk"), first=Min(since))
        most = networks.order_by("-n", "first").first()
        if most is None or most["n"] <= max(own, 1):
            return False
        of_most = waiting.filter(network=most["network"]).order_by(since, "pk")
        oldest = of_most.select_for_update(of=("self",), skip_locked=True).first()
        if oldest is None:
            return False
        oldest.delete()
    return True
