"""The admins' page on which a track is edited: what everybody reads of it at any time, what draws rest
on until the first run or document came.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from kbpo.accounts.audit import note
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track
from kbpo.tracks.recall import TrackWithRecall
from kbpo.tracks.registry import class_of
from kbpo.web.access import for_admins
from kbpo.web.desk.tracks import PresentationField

MOST_PEOPLE = 15


class TrackWords(forms.ModelForm):  # type: ignore[type-arg]
    """What a track's page says of the track, and the limits of runs."""

    class Meta:
        model = Track
        fields = (
            "name",
            "description",
            "closes_on",
            "rules",
            "who_pays",
            "runs_a_week",
            "runs_in_all",
        )
        widgets = {
            "description": forms.Textarea(attrs={"rows": 3}),
            "rules": forms.Textarea(attrs={"rows": 4}),
            "closes_on": forms.DateInput(attrs={"type": "date"}),
        }


class TrackTerms(forms.ModelForm):  # type: ignore[type-arg]
    """What draws and their guarantee rest on; each field is fixed, and says so, once there are some."""

    presentation = PresentationField()

    class Meta:
        model = Track
        fields = (
            "distribution",
            "criterion",
            "target_half_width",
            "design",
            "scope",
            "workers_per_question",
            "presentation",
            "ends_when_ranked",
        )
        labels = {
            "distribution": "What counts the same",
            "criterion": "What is judged",
            "target_half_width": "Target half-width",
            "design": "How the sample is drawn",
            "workers_per_question": "People per question",
            "ends_when_ranked": "End when ranked",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        instance = self.instance
        kind = class_of(instance.kind)
        shown = [(name, kind.distributions[name].label) for name in instance.distributions]
        criteria = [(criterion.name, criterion.label) for criterion in kind.criteria]
        self.fields["distribution"] = forms.ChoiceField(choices=shown, label="What counts the same")
        self.fields["criterion"] = forms.ChoiceField(choices=criteria, label="What is judged")
        if not issubclass(kind, TrackWithRecall):
            del self.fields["scope"]
        if not kind.presents:
            del self.fields["presentation"]
        self.fields["workers_per_question"].validators += [
            MinValueValidator(1),
            MaxValueValidator(MOST_PEOPLE),
        ]
        why = frozen_by(instance)
        for field in self.fields.values():
            field.disabled = bool(why)  # whatever is sent, it stays
            field.help_text = why or field.help_text


def frozen_by(track: Track) -> str:
    """Why what draws rest on is fixed, as a sentence; empty while nothing was read or drawn."""
    if track.status == Track.Status.CLOSED:
        return "Fixed: the track is closed."
    if track.submissions.exists():
        return "Fixed: plans and samples of runs rest on it."
    if DocumentSample.objects.filter(track=track).exists():
        return "Fixed: documents were drawn by it."
    return ""


class CorpusWords(forms.ModelForm):  # type: ignore[type-arg]
    """What a track's page says of its texts."""

    class Meta:
        model = Corpus
        fields = ("description", "licence", "may_be_downloaded")
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}
        labels = {
            "description": "Of the texts",
            "may_be_downloaded": "Everybody may download the texts",
        }
        help_texts: ClassVar = {
            "may_be_downloaded": (
                "Without it they are neither downloaded nor read whole. The sentence of a judged"
                " claim is shown to its team, and to everybody once the track is closed."
            ),
        }


@for_admins
def show(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; what was sent is stored whole or not at all, and noted."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    given = request.POST or None
    forms_ = (
        TrackWords(given, instance=track, prefix="track"),
        TrackTerms(given, instance=track, prefix="terms"),
        CorpusWords(given, instance=track.corpus, prefix="corpus"),
    )
    valid = [form.is_valid() for form in forms_]  # all, so that all show their errors
    if request.method == "POST" and all(valid):
        _save(forms_, track, cast(User, request.user))
        messages.success(request, "Saved. This is how everybody sees it.")
        return redirect("track" if track.status != "draft" else "desk-track", slug=slug)
    status = 422 if request.method == "POST" else 200
    context = {"track": track, "forms": forms_}
    return render(request, "desk/describe.html", context, status=status)


@transaction.atomic
def _save(forms_: tuple[Any, ...], track: Track, who: User) -> None:
    """Saves what was changed and no more, for the track may have been moved meanwhile; and notes
    which fields are different now.
    """
    changed = [name for form in forms_ for name in form.changed_data]
    for form in forms_:
        form.instance.save(update_fields=form.changed_data)
    if changed:
        words = ", ".join(name.replace("_", " ") for name in changed)
        note(
            "describe",
            f"track:{track.slug}",
            who=who,
            why="Written on the track’s page.",
            after=words,
            track=track.slug,
        )


urlpatterns = [path("desk/tracks/<slug:slug>/describe/", show, name="desk-track-describe")]
