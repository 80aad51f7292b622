"""The page on which admins edit a track: its texts and prices at any time, the terms of its samples
before the first run or document.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from annotation.interfaces.registry import interface_by_name
from annotation.platforms.registry import platform_fee_rate
from annotation.questions.ask import answer_price
from formats.messages import FormatError
from formats.schema import WORDS, replace_words, words_as_yaml
from kbpo import clock
from kbpo.accounts.audit import write_audit_entry
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus
from kbpo.money.models import Price
from kbpo.sampling.designs.base import UNDER_WAY
from kbpo.sampling.models import DocumentSample
from kbpo.sampling.plan import set_price
from kbpo.tracks.models import Track
from kbpo.tracks.recall import TrackWithRecall
from kbpo.tracks.registry import FORM, track_class
from kbpo.web.http import for_admins

MOST_PEOPLE = 15
KEPT = 200
"""Greatest number of characters of an old value in the log's own column; the rest is in the other
column
"""


Change = tuple[str, str, str]
"""Name of a field, its old and its new value"""


class LinesField(forms.CharField):
    """Form field for a text of several lines, with normalized line ends."""

    def to_python(self, value: Any) -> Any:
        """Return the text with a line feed at each line end."""
        text = super().to_python(value)
        return text.replace("\r\n", "\n").replace("\r", "\n") if text else text


class TrackWords(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the texts of a track's page, and the limits of runs."""

    title = "The track"

    class Meta:
        model = Track
        fields = (
            "name",
            "description",
            "closes_on",
            "rules",
            "guidelines",
            "who_pays",
            "runs_a_week",
            "runs_in_all",
        )
        widgets = {
            "description": forms.Textarea(attrs={"rows": 3}),
            "rules": forms.Textarea(attrs={"rows": 4}),
            "guidelines": forms.Textarea(attrs={"rows": 6}),
            "closes_on": forms.DateInput(attrs={"type": "date"}),
        }
        field_classes: ClassVar = dict.fromkeys(("description", "rules", "guidelines"), LinesField)


class TrackTerms(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the terms of samples and guarantees, which are fixed once there are samples."""

    title = "Sampling"

    class Meta:
        model = Track
        fields = (
            "distribution",
            "criterion",
            "target_half_width",
            "design",
            "scope",
            "workers_per_question",
            "ends_when_ranked",
        )
        labels = {
            "distribution": "Equal weight for",
            "criterion": "What is judged",
            "target_half_width": "Target half-width",
            "design": "How the sample is drawn",
            "workers_per_question": "People per question",
            "ends_when_ranked": "End when ranked",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        instance = self.instance
        kind = track_class(instance.kind)
        shown = [(name, kind.measures.distributions[name].label) for name in instance.distributions]
        criteria = [(criterion.name, criterion.label) for criterion in kind.measures.criteria]
        self.fields["distribution"] = forms.ChoiceField(choices=shown, label="Equal weight for")
        self.fields["criterion"] = forms.ChoiceField(choices=criteria, label="What is judged")
        designs = [(name, instance.sampling_description(name)) for name in Track.Design.values]
        self.fields["design"] = forms.ChoiceField(choices=designs, label="How the sample is drawn")
        if not issubclass(kind, TrackWithRecall):
            del self.fields["scope"]
        self.fields["workers_per_question"].validators += [
            MinValueValidator(1),
            MaxValueValidator(MOST_PEOPLE),
        ]
        why = terms_refusal(instance)
        for field in self.fields.values():
            field.disabled = bool(why)  # whatever is sent, it stays
            field.help_text = why or field.help_text


def terms_refusal(track: Track) -> str:
    """Return why the terms are fixed, as a sentence; empty before the first run or document."""
    if track.status == Track.Status.CLOSED:
        return "Fixed: the track is closed."
    if track.submissions.exists():
        return "Fixed: plans and samples of runs depend on it."
    if DocumentSample.objects.filter(track=track).exists():
        return "Fixed: documents were drawn by it."
    return ""


class CorpusWords(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the description of a corpus on the page of a track."""

    title = "Its texts"

    class Meta:
        model = Corpus
        fields = ("description", "licence", "may_be_downloaded")
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}
        field_classes: ClassVar = {"description": LinesField}
        labels = {
            "description": "Of the texts",
            "may_be_downloaded": "Everybody may download the texts",
        }
        help_texts: ClassVar = {
            "may_be_downloaded": "Otherwise only sentences of judged claims become public.",
        }


class SchemaWords(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the texts of a schema, which annotators read in new questions and everybody reads on
    the page of the track.
    """

    title = "Its schema"

    schema = LinesField(
        widget=forms.Textarea(attrs={"rows": 16, "class": "code", "spellcheck": "false"}),
        label="Descriptions in the schema",
        help_text=(
            "Used in new questions on every track of these texts. Types and relations are fixed."
        ),
    )

    class Meta:
        model = Corpus
        fields = ("schema",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = self.instance.schema
        self.initial = {"schema": words_as_yaml(self.stored).strip()}

    def clean_schema(self) -> dict[str, Any]:
        shown = self.data.get(self.add_initial_prefix("schema"), "")
        try:
            return replace_words(self.stored, self.cleaned_data["schema"], displayed_text=shown)
        except FormatError as problem:
            raise ValidationError(str(problem)) from problem

    def changes(self) -> list[Change]:
        """Return the changed words."""
        after = {
            part: {word["name"]: word for word in self.instance.schema[part]} for part in WORDS
        }
        return [
            (f"{word['name']}, {key}", word.get(key) or "", after[part][word["name"]][key] or "")
            for part, keys in WORDS.items()
            for word in self.stored[part]
            for key in keys
            if (word.get(key) or "") != (after[part][word["name"]][key] or "")
        ]


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]
    """Form for the price of an answer through one interface."""

    title = "Prices"

    class Meta:
        model = Price
        fields = ("reward", "extra", "seconds")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        price = self.instance
        asked = f"“{interface_by_name(price.interface).title}”"
        why = "Fixed: the track is closed." if price.track.status == "closed" else ""
        labels = {
            "reward": f"Price of one answer to {asked}, in dollars",
            "extra": f"Extra for an answer to {asked} that takes more work, in dollars",
            "seconds": f"Expected seconds for one answer to {asked}",
        }
        least = {"reward": Decimal("0.01"), "extra": 0, "seconds": 1}
        for name, field in self.fields.items():
            field.label, field.disabled, field.help_text = labels[name], bool(why), why
            field.validators.append(MinValueValidator(least[name]))
        self.fields["seconds"].validators.append(MaxValueValidator(36000))
        if not why:
            note = f"It applies to new questions and unconfirmed plans. {_price_note(price.track)}"
            self.fields["reward"].help_text = note
        if not price.extra:
            del self.fields["extra"]

    def price(self) -> Price:
        """Return the price with the changes."""
        for name in self.fields.keys() - self.changed_data:
            setattr(self.instance, name, self.initial[name])
        return cast(Price, self.instance)


def _price_note(track: Track) -> str:
    """Return a sentence on the prices of confirmed runs."""
    under_way = track.submissions.filter(status__in=UNDER_WAY).count()
    if not under_way:
        return "A run keeps the price that it is confirmed at until it is scored."
    if under_way == 1:
        return "The run being judged keeps its confirmed price until it is scored."
    return f"The {under_way} runs being judged keep their confirmed prices until they are scored."


def track_prices(track: Track) -> list[Price]:
    """Return the price of an answer for every kind of question that a track asks; interfaces
    without a stored price have the default of the track's kind.
    """
    asked = [asking.interface for asking in track_class(track.kind).asking]
    stored = Price.objects.filter(track=track).order_by("pk").values_list("interface", flat=True)
    prices = [answer_price(track, interface) for interface in dict.fromkeys([*stored, *asked])]
    for price in prices:
        if price.pk is None:
            price.fee_rate = platform_fee_rate(track.platform)
    return prices


@for_admins
def edit_track(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the forms for the settings of a track. A POST saves all of them or none."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    sent = request.POST or None
    forms_ = [
        TrackWords(sent, instance=track, prefix="track"),
        TrackTerms(sent, instance=track, prefix="terms"),
        CorpusWords(sent, instance=track.corpus, prefix="corpus"),
    ]
    if track_class(track.kind).words.schema:
        forms_.append(SchemaWords(sent, instance=track.corpus, prefix="words"))
    for price in track_prices(track):
        forms_.append(PriceForm(sent, instance=price, prefix=f"price-{price.interface}"))
    for form in forms_:
        for name, field in form.fields.items():  # a save changes only fields that were edited
            is_sent = form.is_bound and form.add_initial_prefix(name) in form.data
            field.show_hidden_initial = is_sent or not form.is_bound
    valid = [form.is_valid() for form in forms_]  # all, so that all show their errors
    if request.method == "POST" and all(valid):
        _save_changes(forms_, track, cast(User, request.user))
        seen = "Visible to everybody."
        if track.status == Track.Status.DRAFT:
            seen = "Visible to admins only until the track is open."
        messages.success(request, f"Saved. {seen}")
        day = track.closes_on if "closes_on" in forms_[0].changed_data else None
        if day and day < clock.now().date() and track.status != Track.Status.CLOSED:
            # it may be meant
            follows = "The track’s page shows this date."
            if track.status == Track.Status.OPEN:
                follows = "Runs are accepted until you close the track."
            past = f"The last day, {day.day} {day:%B} {day.year}, is past."
            messages.warning(request, f"{past} {follows}")
        return redirect("track", slug=slug)
    status = 422 if request.method == "POST" else 200
    of_kind = track_class(track.kind)
    context = {
        "track": track,
        "forms": forms_,
        "status": status,
        "kind": of_kind.words.kind or of_kind.kind,
        "has_schema": bool(of_kind.words.schema),
        "declared": track.kind.startswith(FORM),
    }
    return render(request, "desk/describe.html", context, status=status)


@transaction.atomic
def _save_changes(forms_: list[Any], track: Track, who: User) -> None:
    """Save the changed fields, and log them."""
    changes: list[Change] = []
    for form in forms_:
        if form.changed_data and isinstance(form, PriceForm):
            set_price(form.price(), who)
        elif form.changed_data:
            form.instance.save(update_fields=form.changed_data)
            if isinstance(form, SchemaWords):
                changes += form.changes()
                continue
            for name in form.changed_data:
                before, after = form.initial.get(name), form.cleaned_data[name]
                changes.append((form[name].label, _field_as_text(before), _field_as_text(after)))
    for name, old, new in changes:
        former = f" It was: {old}" if len(old) > KEPT else ""
        write_audit_entry(
            "describe",
            f"track:{track.slug}",
            who=who,
            before=old,
            after=new,
            why=f"{name}, written on the track’s page.{former}",
            track=track.slug,
        )


def _field_as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


urlpatterns = [path("desk/tracks/<slug:slug>/describe/", edit_track, name="desk-track-describe")]
