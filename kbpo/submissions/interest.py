"""Nobody judges on a track where a team of theirs has a run, except in a study of their own."""

from __future__ import annotations

from django.db.models import Q

from kbpo.accounts.models import Team, User
from kbpo.submissions.models import Submission


def has_stake(user: User) -> Q:
    """Return the condition under which a team of this person, be it one that they left, has a run
    on the track of a row (`track`).
    """
    teams = Team.objects.filter(Q(members=user) | Q(former=user))
    runs = Submission.objects.filter(
        team__in=teams.values("pk"), deleted_at=None, track__is_study=False
    )
    return Q(track__in=list(runs.values_list("track", flat=True).distinct()))
