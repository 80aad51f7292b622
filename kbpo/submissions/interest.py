"""Who has a stake in a judgment: nobody judges what his own team states."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from kbpo.accounts.models import Team, User
from kbpo.submissions.models import Prediction


def has_stake(user: User, *, target: str = "target") -> Q:
    """Return the condition under which a team of this person, be it one that they left, states
    something about a row's target.

    About a whole document: where the team states anything in it. Rows refer to their target by
    `target`. A submission counts as soon as it is read, confirmed or not, and once it is withdrawn
    too: it may come back.
    """
    teams = Team.objects.filter(Q(members=user) | Q(former=user)).values("pk")
    stated = Prediction.objects.filter(submission__team__in=teams)
    alone = stated.filter(instance__target=OuterRef(target))
    inside = stated.filter(instance__document=OuterRef(f"{target}__document"))
    return Exists(alone) | Q(**{f"{target}__kind": "document"}) & Exists(inside)
