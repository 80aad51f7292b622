"""What an interface pays by default is said by its kind of track and by itself, and is the same."""

from __future__ import annotations

from decimal import Decimal

import pytest

from annotation.interfaces.registry import interface_by_name
from kbpo.tracks.base import Asking
from kbpo.tracks.registry import KINDS, track_class

ASKED = [asking for kind in KINDS for asking in track_class(kind).asking]


@pytest.mark.parametrize("asking", ASKED, ids=lambda asking: asking.interface)
def test_a_tutorial_tells_the_price_that_a_track_pays(asking: Asking) -> None:
    interface = interface_by_name(asking.interface)
    assert interface.terms.reward == asking.reward
    assert interface.terms.seconds == asking.seconds


def test_kinds_of_relations_and_of_texts_are_among_them() -> None:
    assert {"relation", "language_quality", "answer_correctness"} <= {
        asking.interface for asking in ASKED
    }


def test_a_price_is_whole_cents() -> None:
    with pytest.raises(ValueError, match="relation is paid in whole cents"):
        Asking("relation", Decimal("0.055"), 20)
