"""What is remembered of single things: read once while somebody remembers, anew after that."""

from __future__ import annotations

from kbpo.corpus.cache import cache_reads, read_cached


class Table:
    """Numbers and their squares, but for 3; and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def read(self, keys: list[int]) -> dict[int, int]:
        self.asked.append(keys)
        return {key: key**2 for key in keys if key != 3}


def test_without_remembering_all_is_read_each_time() -> None:
    table = Table()
    assert read_cached("squares", [2, 3, 2, 1], table.read) == {2: 4, 1: 1}
    assert read_cached("squares", [2], table.read) == {2: 4}
    assert table.asked == [[2, 3, 1], [2]]


def test_what_is_known_is_not_read_again_nor_what_is_known_not_to_be() -> None:
    table = Table()
    with cache_reads():
        assert read_cached("squares", [2, 3], table.read) == {2: 4}
        assert list(read_cached("squares", [5, 3, 2], table.read).items()) == [(5, 25), (2, 4)]
        assert read_cached("squares", [3, 2], table.read) == {2: 4}
        assert read_cached(("squares", "public"), [2], table.read) == {2: 4}, "another question"
    assert table.asked == [[2, 3], [5], [2]]
    assert read_cached("squares", [2], table.read) == {2: 4}
    assert table.asked[-1] == [2], "forgotten"


def test_a_moment_within_another_is_of_its_own() -> None:
    table = Table()
    with cache_reads():
        read_cached("squares", [2], table.read)
        with cache_reads():
            read_cached("squares", [2], table.read)
        read_cached("squares", [2], table.read)
    assert table.asked == [[2], [2]]
