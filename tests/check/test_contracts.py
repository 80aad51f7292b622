"""The contracts stay small, and say in words what they cannot do."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from annotation.interfaces.base import Interface
from annotation.platforms.base import Platform, Refused
from annotation.platforms.pool.platform import Pool
from annotation.platforms.registry import platform_by_name, platform_names
from kbpo.tracks.base import Track


def public(contract: type[Any]) -> set[str]:
    """The public names that a contract declares."""
    names = {*vars(contract), *contract.__annotations__}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(public(Platform) - {"name", "capabilities", "account"}))
def test_our_own_pages_refuse_in_a_sentence_what_only_a_marketplace_can_do(name: str) -> None:
    takes = signature(getattr(Platform, name)).parameters.values()
    needed = [one for one in takes if one.default is one.empty][1:]
    with pytest.raises(Refused) as refusal:
        getattr(Pool(), name)(*[None for _ in needed])
    assert str(refusal.value).endswith(".") and len(str(refusal.value)) > 40


@pytest.mark.parametrize(("contract", "most"), [(Track, 40), (Interface, 20), (Platform, 16)])
def test_contracts_stay_small(contract: type[Any], most: int) -> None:
    assert len(public(contract)) <= most, sorted(public(contract))


@pytest.mark.parametrize("name", platform_names())
def test_a_platform_has_the_name_and_the_methods_of_the_contract(name: str) -> None:
    platform = platform_by_name(name)
    assert platform.name == name
    for method in public(type(platform)) & public(Platform) - {"name", "capabilities"}:
        ours, theirs = (list(signature(getattr(one, method)).parameters)
                        for one in (type(platform), Platform))  # fmt: skip
        assert ours == theirs, method
    assert public(type(platform)) <= public(Platform)
