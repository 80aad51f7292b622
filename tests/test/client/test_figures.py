"""Figures are written one way: one decimal in per cent, an en dash, a minus sign, Decimal money,
times in UTC.
"""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from kbpo_client.summary import percent_with_interval

from kbpo.web.components import figures


@pytest.mark.parametrize(
    ("value", "n", "written"),
    [
        (0.3, None, "30.0"),
        (0.3, 50, "30.0"),
        (0.304, 49, "30"),
        (-0.001, None, "−0.1"),
        (0.0, None, "0.0"),
        (None, None, "–"),
        (float("nan"), None, "–"),
        (-0.0001, None, "0.0"),
        (1.0, None, "100.0"),
        (0.875, 24, "88"),
        (0.8749999999999998, 24, "88"),
        (0.865, 24, "87"),
        (0.8745, 24, "87"),
    ],
)
def test_a_share_has_one_decimal_and_none_below_50_judgments(value, n, written):
    assert figures.number_text(value, n=n) == written
    if value is not None and value >= 0:
        assert (
            percent_with_interval({"value": value, "n_labels": 99 if n is None else n}) == written
        )


def test_an_interval_has_an_en_dash_and_words_where_it_is_negative():
    assert figures.interval_text(0.286, 0.314) == "28.6–31.4"
    assert figures.interval_text(-0.009, 0.006) == "−0.9 to +0.6"
    assert figures.interval_text(None, 0.3) == "–"


def test_the_per_cent_sign_never_wraps():
    assert figures.percent_text(0.3) == "30.0\u00a0%"
    assert figures.half_width_text(0.025) == "±2.5\u00a0%"


def test_money_is_decimal_and_to_the_cent():
    assert figures.money_text(Decimal("1931.8")) == "$1,931.80"
    assert figures.money_text(Decimal("31.80"), cents=False) == "$32"
    assert figures.money_text(Decimal("-0.155")) == "−$0.16"
    with pytest.raises(TypeError):
        figures.money_text(31.8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(3, "3 s"), (48 * 60, "48 min"), (2 * 3600, "2 h"), (9000, "2.5 h"), (3 * 86400, "3 days")],
)
def test_durations_are_rounded_honestly(seconds, written):
    assert figures.duration_text(timedelta(seconds=seconds)).replace("\u00a0", " ") == written


def test_times_are_utc_with_the_word():
    noon = datetime(2026, 11, 20, 15, 5, tzinfo=timezone(timedelta(hours=1)))
    assert figures.time_text(noon).replace("\u00a0", " ") == "20 November 2026, 14:05 UTC"
    assert (
        figures.time_text(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), date=False).replace("\u00a0", " ")
        == "03:04 UTC"
    )
    with pytest.raises(ValueError, match="zone"):
        figures.time_text(datetime(2026, 1, 2, 3, 4))
