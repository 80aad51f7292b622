"""Who has a stake in a judgment: nobody judges what his own team predicts, or wrote."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform, KeyTransform

from kbpo.accounts.models import Team, User
from kbpo.submissions.models import Prediction, Submission


def has_stake(user: User, *, target: str = "target") -> Q:
    """Return the condition under which a team of this person, be it one that they left, predicts
    something about a row's target.

    About a whole document: where the team predicts anything in it. About two texts that are
    compared: where it wrote one of them, be it in a pair of another team's private run. Rows refer
    to their target by `target`. A submission counts as soon as it is read, confirmed or not, and
    once it is withdrawn too: it may come back.
    """
    teams = Team.objects.filter(Q(members=user) | Q(former=user)).values("pk")
    predicted = Prediction.objects.filter(submission__team__in=teams)
    alone = predicted.filter(instance__target=OuterRef(target))
    inside = predicted.filter(instance__document=OuterRef(f"{target}__document"))
    compared = KeyTransform("texts", OuterRef(f"{target}__content"))
    wrote = Submission.objects.filter(
        team__in=teams,
        written__key=KeyTextTransform("input", OuterRef(f"{target}__content")),
        written__text__in=[KeyTextTransform(place, compared) for place in (0, 1)],
    )
    in_document = Q(**{f"{target}__kind": "document"}) & Exists(inside)
    return Q(Exists(alone)) | in_document | Q(Exists(wrote))
