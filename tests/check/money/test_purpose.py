"""What money is for is a kind and a number; its name is read out of addresses alone."""

from __future__ import annotations

import pytest

from kbpo.money.models import KINDS, Purpose, purpose_or_none


@pytest.mark.parametrize("kind", KINDS)
def test_a_purpose_is_named_and_read_again(kind: str) -> None:
    assert Purpose.parse(str(Purpose(kind, 12))) == Purpose(kind, 12)
    assert Purpose(kind, 12).filter_condition("payer") == {"payer_kind": kind, "payer_number": 12}


@pytest.mark.parametrize(
    "name", ["", "submission", "submission:", "x:1", "submission:x", "submission:²", "gold:-1"]
)
def test_what_names_no_purpose_is_refused_with_the_name(name: str) -> None:
    with pytest.raises(ValueError, match="is no purpose"):
        Purpose.parse(name)


def test_a_number_that_no_column_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="is no purpose"):
        Purpose.parse("submission:" + "9" * 30)


def test_columns_are_set_both_or_neither() -> None:
    assert purpose_or_none("gold", 3) == Purpose("gold", 3)
    assert purpose_or_none(None, None) is None and purpose_or_none("gold", None) is None
