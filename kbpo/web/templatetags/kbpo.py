"""Template tags and filters of the design system: {% load kbpo %}. templates/components/README.md
shows each one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape, format_html_join
from django.utils.safestring import SafeString, mark_safe

from annotation.platforms.registry import marketplace_names, platform_by_name
from annotation.questions.limits import people_asked_text
from annotation.workers.intake import volunteer_policy
from annotation.workers.models import Intake
from kbpo.tracks.base import Pages, Words
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.web.components import drawing, figures, plots, viewer
from kbpo.web.components.drawing import Interval, Kind
from scoring.words import ALL_JUDGED

register = template.Library()


# Figures


@register.filter
def people(track: Track | None) -> str:
    """Return how many people answer each question of a track, in words."""
    return people_asked_text(track) if track is not None else figures.DASH


def _dash_if_none(write: Callable[..., str]) -> Callable[..., str]:
    """Return a filter that writes a value; a dash if the value is missing."""

    def filter_value(value: Any) -> str:
        return figures.DASH if value is None or value == "" else write(value)

    return filter_value


@register.filter
def number(value: float | None, n: int | None = None) -> str:
    """Return a share in per cent without the sign: “30.0”; {{ share|number:judged }} drops the
    decimal below 50.
    """
    return figures.number_text(value, n=n)


@register.filter
def percent(value: float | None, n: int | None = None) -> str:
    """Return a share with its sign: “30.0 %”."""
    return figures.percent_text(value, n=n)


@register.filter
def signed(value: float | None) -> str:
    """Return a difference of shares in points: “+1.2”, “−0.1”."""
    return figures.number_text(value, signed=True)


# “±3 %”, “25,676”, “$31.80”, “$32”, “48 min”, “about 48 min”, “20 November 2026, 14:05 UTC”
register.filter("plus_minus", _dash_if_none(figures.half_width_text))
register.filter("count", _dash_if_none(lambda value: figures.count_text(int(value))))
register.filter("money", _dash_if_none(figures.money_text))
register.filter("dollars", _dash_if_none(partial(figures.money_text, cents=False)))
register.filter("duration", _dash_if_none(figures.duration_text))
register.filter("about", _dash_if_none(figures.about_text))
register.filter("utc", _dash_if_none(figures.time_text))
register.filter("utc_time", _dash_if_none(partial(figures.time_text, date=False)))


@register.filter
def either_case(word: str | None) -> str:
    """Return the `pattern` of an input for a word in any case. Other characters are escaped by
    number, since browsers refuse some within brackets.
    """
    if word is None:
        return figures.DASH
    each = (
        f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else f"\\u{{{ord(letter):x}}}"
        for letter in word
    )
    return "".join(each) + " *"


# Drawings


register.simple_tag(drawing.draw_interval, name="bar")
register.simple_tag(drawing.draw_axis, name="axis_head")
register.simple_tag(drawing.draw_coefficient, name="coefficient_bar")
register.simple_tag(drawing.draw_difference, name="difference_bar")
register.simple_tag(drawing.draw_ties, name="tie_lines")
register.simple_tag(plots.draw_precision_recall, name="precision_recall_plot")
register.simple_tag(plots.draw_arrival, name="arrival_plot")
register.simple_tag(plots.draw_history, name="history_plot")
register.simple_tag(viewer.document_html, name="document")
register.simple_tag(viewer.line_html, name="at_fault")


@register.filter
def coefficient(value: float | str | None) -> str:
    """Return a coefficient of agreement: “0.76”, “−0.10”."""
    return figures.coefficient_text(None if isinstance(value, str) else value)


@register.inclusion_tag("components/legend.html")
def interval_legend(kind: Kind = "final") -> dict[str, object]:
    """Return the drawing of an interval in this style, and the words that explain it."""
    return {"glyph": drawing.draw_legend(kind), "words": drawing.LEGENDS[kind]}


@register.inclusion_tag("components/legend.html")
def alone_legend() -> dict[str, object]:
    """Return the drawing of the thin line for an interval from people alone, and the words that
    explain it.
    """
    return {"glyph": drawing.draw_alone_legend(), "words": drawing.PEOPLE_ALONE}


@register.inclusion_tag("components/figures.html")
def interval_figures(interval: Interval, n: int | None = None, level: int = 80) -> dict[str, str]:
    """Return the figures next to a bar: the estimate in bold, then the interval or “all judged”."""
    estimate, written = drawing.interval_figures(interval, n=n, level=int(level))
    if interval.low95 is not None and interval.low95 == interval.high95:
        written = ALL_JUDGED
    return {"estimate": estimate, "written": written}


@register.simple_tag
def interval_text(low: float | None, high: float | None, n: int | None = None) -> str:
    """Return an interval as text: “28.6–31.4”."""
    return figures.interval_text(low, high, n=n)


@register.simple_tag
def all_judged() -> str:
    """Return the words that stand in place of an interval without width: “all judged”."""
    return ALL_JUDGED


# Frame


@register.simple_tag
def url_if_any(name: str, *args: Any, **kwargs: Any) -> str:
    """Return the address of a named page; empty if it does not exist."""
    try:
        return reverse(name, args=args, kwargs=kwargs)
    except NoReverseMatch:
        return ""


@register.simple_tag
def release_url(track: object) -> str:
    """Return the address of the latest release of a closed track; empty if there is none."""
    if not isinstance(track, Track) or track.status != Track.Status.CLOSED:
        return ""
    release = track.releases.filter(status="made").order_by("-number").first()
    return reverse("release", args=[track.slug, release.number]) if release else ""


@register.simple_tag
def volunteer_url() -> str:
    """Return the address to volunteer as annotator; empty while volunteers are not accepted."""
    return "" if volunteer_policy() == Intake.Volunteers.CLOSED else reverse("annotate_volunteer")


NAV: Mapping[str, Sequence[tuple[str, str, str]]] = {
    # name of the page, what is written, keys
    "public": [
        ("tracks", "Tracks", "g t"),
        ("home", "Leaderboard", "g l"),
        ("explore", "Explore", "g e"),
        ("compare", "Compare", "g c"),
        ("submit", "Submit", "g s"),
        ("methods", "Methods", "g m"),
        ("help", "Help", ""),
        ("about", "About", ""),
    ],
    "admin": [
        ("desk", "Desk", "g d"),
        ("desk-tracks", "Tracks", "g t"),
        ("desk-quality", "Quality", "g q"),
        ("desk-workers", "Annotators", "g a"),
        ("desk-people", "People", "g p"),
        ("desk-requests", "Requests", "g r"),
        ("desk-money", "Money", "g m"),
        ("desk-log", "Log", ""),
        ("desk-platforms", "Platforms", ""),
        ("home", "Leaderboard", "g l"),
    ],
}


@register.inclusion_tag("components/nav.html", takes_context=True)
def nav(context: template.Context, current: str = "", menu: str = "public") -> dict[str, object]:
    """Return the links of a menu, the current one marked; users have links to their runs and
    questions first.
    """
    user, own = context.get("user"), []
    if menu == "public" and getattr(user, "is_researcher", False):
        own.append(("runs", "Your runs", "g r"))
    if menu == "public" and getattr(user, "is_annotator", False):
        own.append(("annotate", "Judge", "g j"))
    pages = [*own, *NAV[menu]]
    links = [
        {"url": url, "text": text, "keys": keys, "current": name == current}
        for name, text, keys in pages
        if (url := url_if_any(name))
    ]
    return {"links": links}


@register.inclusion_tag("components/real_money.html")
def real_money() -> dict[str, Any]:
    """Return the accounts of the marketplaces, for the note on whether they pay real money."""
    accounts = [platform_by_name(name).account() for name in marketplace_names()]
    return {"accounts": [account for account in accounts if account is not None]}


# Plots and documents


@register.filter
def words(track: Track) -> Words:
    return kind_of(track).words


@register.filter
def pages(track: Track) -> Pages:
    return kind_of(track).pages


# The next two are no templates, since a page has dozens of them and a template takes ten times as
# long for each.


@register.simple_tag
def sentence(pieces: Iterable[tuple[str, str]]) -> SafeString:
    """Return a sentence from pieces, each with its role: verb, subject, object."""
    return format_html_join("", '<span class="{1}">{0}</span>', pieces)


@register.simple_tag
def pills(name: str, candidates: Iterable[tuple[str, str, str, bool]]) -> SafeString:
    """Return radio buttons for the names that a mention may refer to: value, words, the longer name
    that is excluded, and whether it is selected.
    """
    letter, pills = escape(name), []
    for value, words, fuller, chosen in candidates:
        checked = " checked" if chosen else ""
        besides = f" <small>not {escape(fuller)}</small>" if fuller else ""
        pills.append(
            f'<label class="pill {letter}"><input type="radio" name="{letter}"'
            f' value="{escape(value)}"{checked}>{escape(words)}{besides}</label>'
        )
    return mark_safe(f'<div class="pills">{"".join(pills)}</div>')


@register.inclusion_tag("components/chip.html")
def mention_chip(text: str, mention_type: str, number: int | None = None) -> dict[str, object]:
    """Return a mention with its type, shown by colour and underline, and the number of
    its entity.
    """
    return {
        "text": text,
        "type": mention_type,
        "type_class": viewer.type_class(mention_type),
        "number": number,
    }


# Parts of pages


@register.inclusion_tag("components/journey.html", takes_context=True)
def journey(context: template.Context, stages: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """Return the stages of a submission; each has name, state (done, now, failed, waiting), of,
    note, share and retry_url.
    """
    return {"stages": stages, "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("components/problems.html")
def problem_list(problems: Iterable[object]) -> dict[str, object]:
    """Return the problems of an upload; each has line, severity, code, text, line_text,
    culprit_begin and culprit_end.
    """
    return {"problems": problems}


@register.inclusion_tag("components/switch.html")
def switch(
    label: str, options: Iterable[Mapping[str, object]], key: str = "", verb: str = ""
) -> dict[str, object]:
    """Return a segmented switch of links; each option has url, text and current. `key` selects the
    next option, cyclically.
    """
    shown = list(options)
    current = next((place for place, option in enumerate(shown) if option.get("current")), -1)
    following = shown[(current + 1) % len(shown)] if key and shown else None
    return {"label": label, "options": shown, "following": following, "key": key, "verb": verb}


@register.inclusion_tag("components/slider.html")
def precision_slider(
    rows: Sequence[Mapping[str, object]],
    chosen: int = 0,
    name: str = "target",
    now: float | None = None,
) -> dict[str, object]:
    """Return a slider of half-widths, or a table without JavaScript; rows have value, half_width,
    n, cost and time.
    """
    return {"rows": rows, "chosen": int(chosen), "name": name, "now": now, "last": len(rows) - 1}


@register.inclusion_tag("components/choice.html")
def choice(
    name: str,
    value: str,
    text: str,
    key: str = "",
    note: str = "",
    checked: bool = False,
    several: bool = False,
    state: str = "",
    verb: str = "choose",
) -> dict[str, object]:
    """Return one answer as a row; with `several` more than one can be selected."""
    return locals()


@register.inclusion_tag("components/step.html")
def step(number: int | str, text: str, note: str = "", done: bool = False) -> dict[str, object]:
    """Return the heading of a step: its number in a circle, green with a tick if `done`."""
    return locals()


@register.inclusion_tag("components/tag.html")
def tag(text: str, kind: str = "") -> dict[str, object]:
    """Return a status in a word; `kind` is info, good, bad, warn or empty."""
    return locals()


@register.inclusion_tag("components/verdict.html")
def verdict(right: bool | None, is_judged: object = False, source: str = "") -> dict[str, object]:
    """Return a verdict as sign and text, never colour alone: right, wrong, judged (if people rate),
    judged in part, or not judged.
    """
    return {"right": right, "is_judged": is_judged, "source": source}


@register.inclusion_tag("components/empty.html")
def empty(sentence: str, url: str = "", action: str = "") -> dict[str, object]:
    """Return the text of an empty list and the action that fills it."""
    return locals()


@register.inclusion_tag("components/key_hints.html")
def key_hints() -> dict[str, object]:
    """Return the element in which keys.js shows the keys of the page."""
    return {}


@register.inclusion_tag("components/paid_bar.html")
def paid_bar(share: float, have: str, want: str) -> dict[str, object]:
    """Return a bar of the part that is paid already (solid) and the part left to judge
    (hatched).
    """
    share = min(1.0, max(0.0, share))
    return {
        "width": f"{100 * share:.3g}%",
        "have": have,
        "want": want,
        "percent": figures.percent_text(share),
    }
