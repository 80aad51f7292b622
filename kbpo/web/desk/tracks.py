"""The pages of tracks: create one, open, freeze and close it; and the list of corpora."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from annotation.platforms import registry
from annotation.platforms.registry import marketplace_names, platform_by_name
from annotation.quality.gold import gold_money_left, gold_policy, gold_results
from annotation.questions.order import (
    PER_PAIR,
    PER_TOKEN,
    CannotOrder,
    ordered_samples,
    plan_documents,
)
from kbpo.accounts.models import Team, User
from kbpo.corpus.models import Corpus
from kbpo.experts.draw import drawn_rounds
from kbpo.money.models import Budget, Price
from kbpo.money.spend import balance, committed_amount
from kbpo.releases.make import order_release
from kbpo.releases.models import Release
from kbpo.releases.write import CannotRelease
from kbpo.sampling.models import DocumentSample, ExpertCheck
from kbpo.sampling.open_track import (
    MOVES,
    CannotMove,
    Money,
    close_track,
    create_track,
    freeze_track,
    open_track,
)
from kbpo.tracks.models import Track
from kbpo.tracks.recall import TrackWithRecall, kind_with_recall_or_none
from kbpo.tracks.registry import KINDS, count_inputs, kind_of, track_class, track_classes
from kbpo.web.components.figures import count_text, half_width_text, percent_text, plural, time_text
from kbpo.web.http import current_admin, for_admins, form_reason, has_typed_word
from kbpo.web.table import Column, Table, link_html, tag_html

VERBS = {"open": open_track, "freeze": freeze_track, "close": close_track}
BECOMES = {"open": "open", "freeze": "frozen", "close": "closed"}
CONSEQUENCES = {
    "open": "Everybody sees its board, and teams can submit to it and spend its budget.",
    "freeze": (
        "It accepts no more submissions; confirmed runs are judged as ordered. It can be opened"
        " again."
    ),
    "close": (
        "All judgments, samples and seeds become public, and the track accepts no more runs. This"
        " cannot be undone. Teams with private runs are notified."
    ),
}
MONEY = ("budget", "day", "submission", "team", "reward", "extra", "seconds")


def platform_choices() -> list[tuple[str, str]]:
    """Return the platforms where questions can be published."""
    there = {name: platform_by_name(name) for name in ("pool", *marketplace_names())}
    return [
        (name, platform.capabilities.title)
        for name, platform in there.items()
        if name == "pool" or platform.account() is not None
    ]


def _dollars_field(
    label: str, *, min_value: float = 0, max_digits: int = 12, **options: Any
) -> Any:
    return forms.DecimalField(
        label=f"{label}, in dollars",
        min_value=min_value,
        max_digits=max_digits,
        decimal_places=2,
        **options,
    )


class TrackForm(forms.Form):
    """The form for a new track."""

    corpus = forms.ModelChoiceField(
        Corpus.objects.order_by("name"), to_field_name="slug", empty_label=None
    )
    name = forms.CharField(max_length=120, help_text="Shown on the board.")
    description = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 3}))
    kind = forms.ChoiceField()
    distribution = forms.ChoiceField(
        label="Equal weight for",
        help_text="The guaranteed distribution: its sample is made large enough for the target.",
    )
    criterion = forms.ChoiceField(label="What is judged", help_text="The guaranteed criterion.")
    target_half_width = forms.DecimalField(
        min_value=0.005,
        max_value=0.2,
        decimal_places=3,
        initial="0.030",
        label="Target half-width",
        help_text="0.030 is ±3 points, of the 80 % interval.",
    )
    design = forms.ChoiceField(
        choices=[
            ("poisson", "each at most once, with its own probability"),
            ("iid", Track.Design.IID.label),
        ],
        initial="poisson",
        label="How the sample is drawn",
        help_text="The first needs fewer judgments; the second draws exactly as published.",
    )
    ends_when_ranked = forms.BooleanField(
        required=False,
        label="End when ranked",
        help_text="Stop judging a run once its rank is decided; unspent money returns.",
    )
    scope = forms.ChoiceField(
        choices=Track.Scope.choices,
        initial="sentence",
        help_text="Largest distance of the two names, for recall.",
    )
    workers_per_question = forms.IntegerField(
        min_value=1,
        max_value=15,
        label="People per question",
        help_text="Of three, two are asked first, and the third only where they differ.",
    )
    owner = forms.ModelChoiceField(
        Team.objects.order_by("name"),
        to_field_name="slug",
        required=False,
        empty_label="none: every team may submit",
        label="Team of a study",
        help_text=("Only this team can submit to a study. Its corpus has no development part."),
    )
    platform = forms.ChoiceField(
        choices=platform_choices,
        initial="pool",
        help_text="Where questions are published; a marketplace’s fee is added.",
    )
    budget = _dollars_field("Total budget", initial="500.00")
    day = _dollars_field("Cap for a day", required=False)
    submission = _dollars_field("Cap for one submission", required=False)
    team = _dollars_field("Budget of every team", required=False)
    reward = _dollars_field("Price of one answer", min_value=0.01, max_digits=8)
    extra = _dollars_field(
        "Extra for an answer that takes more work",
        max_digits=8,
        help_text="Reserved for every answer, and returned if not earned.",
    )
    seconds = forms.IntegerField(
        min_value=1, max_value=36000, label="Expected seconds for one answer"
    )

    why = forms.CharField(max_length=500, label="Purpose", help_text="It is logged.")

    def __init__(self, data: Any, *, kind: str, initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial | {"kind": kind})
        of_kind = track_class(kind)
        asking, distributions = of_kind.asking[0], of_kind.measures.distributions
        choices = {
            "kind": [(name, name) for name in track_classes()],
            "distribution": [(name, one.label) for name, one in distributions.items()],
            "criterion": [(one.name, one.label) for one in of_kind.measures.criteria],
        }
        for name, options in choices.items():
            cast(forms.ChoiceField, self.fields[name]).choices = options
        self.initial = {
            **self.initial,
            "distribution": list(distributions)[-1],
            "criterion": of_kind.measures.criteria[0].name,
            "workers_per_question": asking.people,
            "reward": asking.reward,
            "extra": asking.extra,
            "seconds": asking.seconds,
        }
        if not issubclass(of_kind, TrackWithRecall):
            del self.fields["scope"]
        if not asking.extra:
            del self.fields["extra"]

    def create(self, who: User) -> Track | None:
        """Create the track and return it; None with errors at the fields if that fails."""
        cleaned = dict(self.cleaned_data)
        fee_rate = registry.platform_fee_rate(cleaned["platform"])
        money = Money(**{name: cleaned.pop(name, None) for name in MONEY}, fee_rate=fee_rate)
        try:
            return create_track(
                cleaned.pop("corpus"), cleaned.pop("name"), money=money, who=who, **cleaned
            )
        except ValidationError as wrong:
            errors = wrong.message_dict if hasattr(wrong, "error_dict") else {"": wrong.messages}
            for field, sentences in errors.items():
                shown = "name" if field == "slug" else field
                self.add_error(shown if shown in self.fields else None, sentences)
            return None


TONES = {"open": "good", "draft": ""}
TRACKS = (
    Column(
        "name",
        "Track",
        cell=lambda row: link_html(reverse("desk-track", args=[row.slug]), row.name),
    ),
    Column("corpus", "Corpus", attrgetter("corpus.name")),
    Column("status", "State", cell=lambda row: tag_html(row.status, TONES.get(row.status, "warn"))),
    Column(
        "target",
        "Target",
        attrgetter("target_half_width"),
        lambda row: half_width_text(row.target_half_width),
        is_number=True,
    ),
    Column("n", "Submissions", cell=lambda row: count_text(row.n), is_number=True),
)
CORPORA = (
    Column("name", "Corpus"),
    Column("texts", "Texts", cell=lambda row: count_text(row.texts), is_number=True),
    Column(
        "relations",
        "Relations in its schema",
        lambda row: len(row.relation_names()),
        is_number=True,
    ),
    Column("loaded_at", "Loaded", cell=lambda row: time_text(row.loaded_at)),
    Column("n", "Tracks", is_number=True),
)


@for_admins
def list_tracks(request: HttpRequest) -> HttpResponse:
    """Return all tracks and corpora."""
    corpora = list(Corpus.objects.annotate(n=Count("tracks")).order_by("name"))
    counted = [track_class(kind).n_inputs_of(corpora) for kind in KINDS]
    for corpus in corpora:
        corpus.texts = max(n_inputs[corpus.pk] for n_inputs in counted)  # type: ignore[attr-defined]
    confirmed = Q(submissions__confirmed_at__isnull=False)
    tracks = Track.objects.select_related("corpus").annotate(
        n=Count("submissions", filter=confirmed)
    )
    context = {
        "tracks": Table("tracks", TRACKS, tracks.order_by("-pk")),
        "corpora": Table("corpora", CORPORA, corpora),
    }
    return render(request, "desk/tracks.html", context)


@for_admins
def new_track(request: HttpRequest) -> HttpResponse:
    """Return the form for a new track. The default kind is the first one that fits the corpus."""
    if not Corpus.objects.exists():
        return redirect("desk-tracks")
    choices, slug = track_classes(), request.GET.get("corpus", "")
    kind = request.POST.get("kind") or request.GET.get("kind", "")
    if kind not in choices:
        corpora = list(Corpus.objects.filter(slug=slug))
        usable = (name for name in KINDS if any(track_class(name).n_inputs_of(corpora).values()))
        kind = next(usable, "kbp")
    form = TrackForm(request.POST or None, kind=kind, initial={"corpus": slug})
    if (
        request.method == "POST"
        and form.is_valid()
        and (track := form.create(current_admin(request)))
    ):
        messages.success(request, f"{track.name} is created as a draft. Check it, then open it.")
        return redirect("desk-track", slug=track.slug)
    by_name = Corpus.objects.order_by("name")
    chosen = by_name.filter(slug=form["corpus"].value()).first() or by_name[0]
    of_kind, status = track_class(kind), 422 if request.method == "POST" else 200
    context = {
        "form": form,
        "forms": [form],
        "status": status,
        "corpus": chosen,
        "kind": kind,
        "kinds": {name: of_kind.words.kind or name for name, of_kind in choices.items()},
        "words": of_kind.words,
        "n_inputs": of_kind.n_inputs_of([chosen])[chosen.pk],
    }
    return render(request, "desk/track_new.html", context, status=status)


@for_admins
def show_track(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the page of a track. A POST changes its status."""
    track = get_object_or_404(Track.objects.select_related("corpus"), slug=slug)
    refusal = _change_status(track, request) if request.method == "POST" else ""
    if request.method == "POST" and not refusal:
        return redirect("desk-track", slug=slug)
    lacking = steps_before_opening(track)
    moves = [
        {
            "verb": verb,
            "consequence": CONSEQUENCES[verb],
            "word": track.slug if verb == "close" or (verb == "open" and lacking) else "",
            "lacking": lacking if verb == "open" else [],
            "why": track.status != Track.Status.DRAFT,
        }
        for verb, becomes in BECOMES.items()
        if track.status in MOVES[becomes]
    ]
    kind = kind_of(track)
    latest = track.evaluations.order_by("-number").first()
    steps = track_checklist(track)
    context: dict[str, Any] = {
        "track": track,
        "kind": kind,
        "steps": steps,
        "next_step": None if track.status == Track.Status.CLOSED else next_step(steps),
        "moves": moves,
        "refusal": refusal,
        "money": balance(track=track),
        "budgets": Budget.objects.filter(track=track).select_related("team").order_by("scope"),
        "releases": track.releases.order_by("-number"),
        "prices": Price.objects.filter(track=track),
        "submissions": (
            track.submissions.select_related("team").exclude(confirmed_at=None).order_by("-pk")[:50]
        ),
        "read_in_full": (
            DocumentSample.objects.filter(track=track, settled_at__isnull=False).count()
        ),
        "misses": latest.report.misses if latest else None,
        "distributions": [kind.measures.distributions[name].label for name in track.distributions],
        "guaranteed": [
            kind.measures.distributions[track.distribution].label,
            kind.measures.criterion(track.criterion).label,
        ],
        "platform": dict(platform_choices()).get(track.platform, track.platform),
        "n_inputs": count_inputs(track),
        "has_recall": kind_with_recall_or_none(track) is not None,
    }
    return render(request, "desk/track.html", context, status=409 if refusal else 200)


def _change_status(track: Track, request: HttpRequest) -> str:
    """Change the status of the track, and return why not, as a sentence; empty if it was changed. A
    draft is opened only if a run could be paid and, with open steps, only after a confirmation.
    """
    verb, who = request.POST.get("verb", ""), current_admin(request)
    if verb == "release":
        try:
            made = order_release(track, who)
        except CannotRelease as refusal:
            return str(refusal)
        messages.success(
            request, f"Release {made.number} is being made. It will appear on this page."
        )
        return ""
    if verb not in VERBS:
        return "Choose: open, freeze or close."
    if verb == "close" and not has_typed_word(request, track.slug):
        return f"Nothing was closed: type {track.slug} to confirm."
    if verb == "open" and track.status == Track.Status.DRAFT:
        cap = Budget.objects.filter(track=track, scope=Budget.Scope.TRACK).first()
        if cap is not None and committed_amount(cap, None, None) >= cap.cap:
            return f"Nothing was opened: nothing is left of its budget of ${cap.cap}. Raise it."
        lacking = ", ".join(step.name for step in steps_before_opening(track))
        if lacking and not has_typed_word(request, track.slug):
            return f"Nothing was opened: {lacking} is missing. Type {track.slug} to open it anyway."
    try:
        moved = VERBS[verb](track, who, form_reason(request))
    except CannotMove as refusal:
        return str(refusal)
    messages.success(request, f"{moved.name} is {moved.get_status_display().lower()} now.")
    return ""


GOLD_WANTED = 10
"""Recommended number of gold questions of a track; a smaller set soon becomes known"""
READ_WANTED = 20
"""Recommended number of documents to read in full before recall is informative"""

OPEN = "Open"
"""The step that must come last, after all others"""


@dataclass(frozen=True)
class Step:
    """A step of setting up a track: its name, its state in words, and its cost."""

    name: str
    done: bool
    says: str
    url: str
    verb: str
    """Text of its button"""
    price: Decimal | None = None
    needed: bool = True
    """Whether the track is not ready without it"""
    another: tuple[str, str] | None = None
    """An alternative: address and text of a link"""
    under_way: bool = False
    """Whether everything that it still needs was ordered"""


def track_checklist(track: Track) -> list[Step]:
    """Return the steps of a track in order; of a closed one only those without payments."""
    if track.status == Track.Status.CLOSED:
        return [
            _documents_step(track),
            _description_step(track),
            *_check_steps(track),
            _release_step(track),
        ]
    return [
        _documents_step(track),
        _description_step(track),
        *_reading_steps(track),
        _gold_step(track),
        _open_step(track),
        *_check_steps(track),
    ]


def next_step(steps: list[Step]) -> Step | None:
    """Return the first open step; None if there is none."""
    return next(iter(open_steps(steps)), None)


def open_steps(steps: list[Step]) -> list[Step]:
    """Return the necessary steps that are neither done nor in progress."""
    return [step for step in steps if step.needed and not step.done and not step.under_way]


def steps_before_opening(track: Track) -> list[Step]:
    """Return the open steps of a draft before it is opened; empty for other tracks."""
    if track.status != Track.Status.DRAFT:
        return []
    return [step for step in open_steps(track_checklist(track)) if step.name != OPEN]


def _track_address(page: str, track: Track) -> str:
    return reverse(page, args=[track.slug])


def _documents_step(track: Track) -> Step:
    kind = kind_of(track)
    n, name = count_inputs(track), kind.words.inputs.capitalize()
    return Step(name, n > 0, f"{n:,} of {track.corpus.name}", reverse("desk-corpora"), "Corpora")


def _description_step(track: Track) -> Step:
    missing = [
        name
        for name, text in (
            ("a description", track.description),
            ("who pays", track.who_pays),
            ("a description of the texts", track.corpus.description),
            ("their licence", track.corpus.licence),
        )
        if not text
    ]
    says = f"Missing: {', '.join(missing)}" if missing else "Complete"
    return Step(
        "Public page", not missing, says, _track_address("desk-track-describe", track), "Write it"
    )


def _reading_steps(track: Track) -> Iterator[Step]:
    """Yield the step of documents read in full, if recall is estimated from them."""
    if kind_with_recall_or_none(track) is None:
        return
    drawn = DocumentSample.objects.filter(track=track)
    n = drawn.filter(settled_at__isnull=False).count()
    ordered = drawn.filter(settled_at=None, pk__in=ordered_samples(track)).count()
    waits = drawn.count() - n - ordered
    says = f"{n:,} read in full" + (f", {ordered:,} ordered" if ordered else "")
    says += f", {waits:,} drawn and not ordered" if waits else ""
    wanted = min(READ_WANTED, track.corpus.n_test)
    under_way = n < wanted <= n + ordered
    price = None
    if n + ordered < wanted and not waits:
        try:
            price = plan_documents(track, wanted - n - ordered).at_most
        except CannotOrder as refusal:
            says += f". {refusal}"
    cents = f"token={PER_TOKEN * 100:.2f}&pair={PER_PAIR * 100:.2f}"
    address = f"{_track_address('desk-reading', track)}?n={max(wanted - n - ordered, 1)}&{cents}"
    if under_way:
        address = _track_address("desk-reading", track)
    uploaded = _track_address("desk-annotations", track), "Upload annotations"
    yield Step(
        "Reading, for recall",
        n >= wanted,
        says,
        address,
        "Look" if under_way else "Order",
        price,
        another=uploaded,
        under_way=under_way,
    )


def _gold_step(track: Track) -> Step:
    n, rate = len(gold_results(track)), gold_policy(track).gold_rate
    says = f"{n:,} in use, as {percent_text(float(rate))} of the questions"
    if rate and gold_money_left(track) <= 0:
        says += "; no money is reserved for more answers"
    return Step(
        "Gold questions",
        n >= GOLD_WANTED,
        says,
        _track_address("desk-gold", track),
        "Make some",
        needed=False,
    )


def _open_step(track: Track) -> Step:
    done = track.status != Track.Status.DRAFT
    says = f"It is {track.get_status_display().lower() if done else 'a draft'}"
    return Step(OPEN, done, says, "#moves", "Open it" if not done else "Move it")


def _check_steps(track: Track) -> Iterator[Step]:
    if kind_of(track).words.unchecked:
        return
    rounds = drawn_rounds(track).count()
    left = ExpertCheck.objects.filter(track=track, kind="check", answered_at=None).count()
    says = f"{plural(rounds, 'round')} drawn" if rounds else "None is drawn yet"
    says += f", {left:,} to be answered" if left else ""
    address = _track_address("expert-next" if left else "desk-experts", track)
    verb = "Answer" if left else "Draw a round"
    yield Step("Expert checks", rounds > 0 and not left, says, address, verb, needed=False)


def _release_step(track: Track) -> Step:
    """Return the step of the latest data release of a closed track."""
    newest = track.releases.order_by("-number").first()
    says = "None is made yet"
    if newest is not None:
        says = f"Release {newest.number}: {newest.get_status_display().lower()}"
    return Step(
        "Release",
        newest is not None and newest.status == Release.Status.MADE,
        says,
        "#releases",
        "Make it" if newest is None else "See it",
        needed=False,
        under_way=newest is not None and newest.status == Release.Status.ORDERED,
    )


urlpatterns = [
    path("desk/tracks/", list_tracks, name="desk-tracks"),
    path("desk/tracks/new/", new_track, name="desk-track-new"),
    path("desk/tracks/<slug:slug>/", show_track, name="desk-track"),
]
