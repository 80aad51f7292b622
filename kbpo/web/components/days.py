"""Money by day as a small chart: a bar a day, today's in full colour, and the cap of a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape

from kbpo.web.components.figures import money_text

HEIGHT = 72
GAP = 0.25
"""Share of a day's width that stays empty"""


@dataclass(frozen=True)
class Day:
    """What was spent on a day, by the clock of UTC."""

    on: date
    amount: Decimal


def draw_days(days: Sequence[Day], cap: Decimal = Decimal(0)) -> str:
    """Return the bars as inline SVG with their ends named below; the cap, where one is set and in
    reach, as a dashed line.
    """
    most = max(day.amount for day in days)
    in_reach = bool(cap) and most * 4 >= cap
    top = max(most, cap if in_reach else Decimal(0)) or Decimal(1)
    width = 100 / len(days)
    bars = ""
    for k, day in enumerate(days):
        height = HEIGHT * day.amount / top
        kind = "today" if k == len(days) - 1 else "past"
        bars += (
            f'<rect class="{kind}" x="{(k + GAP / 2) * width:.2f}%" y="{HEIGHT - height:.1f}"'
            f' width="{(1 - GAP) * width:.2f}%" height="{height:.1f}"/>'
        )
    cap_y = HEIGHT * (1 - cap / top)
    line = f'<line x1="0" x2="100%" y1="{cap_y:.1f}" y2="{cap_y:.1f}"/>' if in_reach else ""
    highest = max(days, key=lambda day: day.amount)
    alt = f"Spent a day: {money_text(days[-1].amount)} today"
    if most:
        alt += f", at most {money_text(most)} on {highest.on:%-d %B}"
    cap_said = f"<span>{money_text(cap)} a day at most</span>" if in_reach else ""
    return (
        f'<figure class="days"><svg role="img" aria-label="{escape(alt)}" width="100%"'
        f' height="{HEIGHT}">{bars}{line}</svg><figcaption class="label"><span>'
        f"{days[0].on:%-d %b}</span>{cap_said}<span>today</span></figcaption></figure>"
    )
