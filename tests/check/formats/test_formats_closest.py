"""The closest pair of mentions, against the rule spelled out over all pairs."""

from bisect import bisect_left, bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from formats.lookup import DocumentView
from formats.relation import closest_pair
from formats.splitting import Span

WORDS = 24
VIEW = DocumentView(
    "D",
    "abc " * WORDS,
    [4 * i for i in range(WORDS)],
    [4 * i + 3 for i in range(WORDS)],
    [0, 20, 48, 80],
    [19, 47, 79, 95],
)

spans = st.tuples(st.integers(0, WORDS - 1), st.integers(0, 2), st.integers(0, 2)).map(
    lambda t: (4 * t[0] + t[1], 4 * min(t[0] + t[2], WORDS - 1) + 3)
)


def rule(subject: Span, object_: Span) -> tuple[bool, int, Span, Span]:
    """One sentence before two; fewer tokens between; the earlier span; the later span."""

    def sentence(span: Span) -> int:
        return bisect_right(VIEW.sentence_begins, span[0])

    def tokens(span: Span) -> tuple[int, int]:
        return bisect_right(VIEW.token_begins, span[0]) - 1, bisect_left(
            VIEW.token_ends, span[1]
        ) + 1

    (a, b), (x, y) = tokens(subject), tokens(object_)
    gap = max(0, x - b if x >= a else a - y)
    first, second = sorted((subject, object_))
    return sentence(subject) != sentence(object_), gap, first, second


@settings(max_examples=150, deadline=None)
@given(
    st.lists(spans, min_size=1, max_size=8, unique=True),
    st.lists(spans, min_size=1, max_size=8, unique=True),
)
def test_two_walks_find_what_the_rule_finds_among_all_pairs(
    subjects: list[Span], objects: list[Span]
) -> None:
    pairs = [(rule(s, o), s, o) for s in subjects for o in objects if s != o]
    found = closest_pair(VIEW, sorted(subjects), sorted(objects))
    if not pairs:
        assert found is None
    else:
        assert found is not None
        assert rule(*found) == min(pairs)[0]


def test_the_earlier_of_two_equally_close_pairs_wins() -> None:
    assert closest_pair(VIEW, [(8, 11)], [(0, 3), (16, 19)]) == ((8, 11), (0, 3))


def test_overlapping_mentions_have_no_tokens_between() -> None:
    assert closest_pair(VIEW, [(0, 11)], [(4, 7), (12, 15)]) == ((0, 11), (4, 7))


def test_one_and_the_same_mention_is_no_pair() -> None:
    assert closest_pair(VIEW, [(0, 3)], [(0, 3)]) is None
