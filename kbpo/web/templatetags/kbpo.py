"""Template tags and filters of the design system: {% load kbpo %}. templates/components/README.md shows each one."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString, mark_safe

from kbpo.web import drawing, figures
from kbpo.web.drawing import Axis, Interval, Kind, Tone

register = template.Library()


# Figures


@register.filter
def number(value: float | None, n: int | None = None) -> str:
    """A share in per cent without the sign: “30.0”; {{ share|number:judged }} drops the decimal below 50."""
    return figures.number_text(value, n=n)


@register.filter
def percent(value: float | None, n: int | None = None) -> str:
    """A share with its sign: “30.0 %”."""
    return figures.percent_text(value, n=n)


@register.filter
def signed(value: float | None) -> str:
    """A difference of shares in points: “+1.2”, “−0.1”."""
    return figures.number_text(value, signed=True)


@register.filter
def plus_minus(value: float) -> str:
    """A planned half-width: “±3 %”."""
    return figures.half_width_text(value)


@register.filter
def count(value: int | None) -> str:
    """A whole number with commas: “25,676”; a dash where there is none."""
    return figures.DASH if value is None else figures.count_text(int(value))


@register.filter
def money(value: Decimal | int | str | None) -> str:
    """An amount to the cent, where it is spent: “$31.80”."""
    return figures.DASH if value is None or value == "" else figures.money_text(value)


@register.filter
def dollars(value: Decimal | int | str | None) -> str:
    """An amount to the dollar, for prose: “$32”."""
    return figures.DASH if value is None or value == "" else figures.money_text(value, cents=False)


@register.filter
def duration(value: timedelta | float) -> str:
    """A duration: “48 min”."""
    return figures.duration_text(value)


@register.filter
def about(value: timedelta | float) -> str:
    """A duration as a promise: “about 48 min”."""
    return figures.about_text(value)


@register.filter
def utc(value: datetime | None) -> str:
    """A date and time: “20 November 2026, 14:05 UTC”."""
    return figures.time_text(value) if value else figures.DASH


@register.filter
def utc_time(value: datetime | None) -> str:
    """A time of day: “14:05 UTC”."""
    return figures.time_text(value, date=False) if value else figures.DASH


# Drawings


@register.simple_tag
def interval_bar(
    estimate: float | None,
    low80: float | None,
    high80: float | None,
    low95: float | None,
    high95: float | None,
    axis: Axis,
    kind: Kind = "final",
    tone: Tone = "a",
    name: str = "",
) -> SafeString:
    """An interval drawn on a shared axis, with what it says for a screen reader."""
    drawn = drawing.draw_interval(
        Interval(estimate, low80, high80, low95, high95), axis, kind=kind, tone=tone, name=name
    )
    return mark_safe(drawn)  # drawing escapes every text


@register.simple_tag
def bar(interval: Interval, axis: Axis, kind: Kind = "final", tone: Tone = "a", name: str = "") -> SafeString:
    """The same bar from an Interval, for views that hand one over whole."""
    return mark_safe(drawing.draw_interval(interval, axis, kind=kind, tone=tone, name=name))


@register.simple_tag
def axis_head(axis: Axis, signed: bool = False) -> SafeString:
    """The labels of an axis, once in the head of its column."""
    return mark_safe(drawing.draw_axis(axis, signed=signed))


@register.simple_tag
def difference_bar(interval: Interval, axis: Axis, name: str = "") -> SafeString:
    """A difference on an axis with a zero line."""
    return mark_safe(drawing.draw_difference(interval, axis, name=name))


@register.simple_tag
def tie_lines(lanes: int, parts: Sequence[tuple[int, drawing.Part]]) -> SafeString:
    """One row's part of the tie lines; put it in <td class="c-ties">."""
    return mark_safe(drawing.draw_ties(lanes, parts))


@register.inclusion_tag("components/figures.html")
def interval_figures(interval: Interval, n: int | None = None, level: int = 80) -> dict[str, str]:
    """The written figures beside a bar: estimate in bold, interval in the second voice."""
    estimate, written = drawing.figures_of(interval, n=n, level=int(level))
    return {"estimate": estimate, "written": written}


@register.simple_tag
def interval_text(low: float | None, high: float | None, n: int | None = None) -> str:
    """An interval alone: “28.6–31.4”."""
    return figures.interval_text(low, high, n=n)


# Frame


@register.simple_tag
def url_if_any(name: str, *args: Any, **kwargs: Any) -> str:
    """The address of a named page, or nothing where there is none: links are shown only if they lead on."""
    try:
        return reverse(name, args=args, kwargs=kwargs)
    except NoReverseMatch:
        return ""


NAV: Mapping[str, Sequence[tuple[str, str, str]]] = {
    # name of the page, what is written, keys
    "public": [
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
        ("queues", "Queues", ""),
        ("money", "Money", ""),
        ("people", "People", ""),
        ("tracks", "Tracks", ""),
        ("home", "Leaderboard", "g l"),
    ],
}


@register.inclusion_tag("components/nav.html")
def nav(current: str = "", menu: str = "public") -> dict[str, object]:
    """The links of a menu to the pages that exist, the current one marked."""
    links = [
        {"url": url, "text": text, "keys": keys, "current": name == current}
        for name, text, keys in NAV[menu]
        if (url := url_if_any(name))
    ]
    return {"links": links}
