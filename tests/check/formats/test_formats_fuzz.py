"""Whatever bytes come in: messages or the package's own FormatError, nothing else; and what comes
out can be stored.
"""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import (
    CARRIE,
    DEBBIE,
    PARENTS,
    TOY,
    corpus_lines,
    kb,
    read,
    read_documents,
    read_table,
    span,
    whole,
)

from formats.annotations import GOLD_COLUMNS, MENTION_COLUMNS
from formats.messages import FormatError
from formats.relation import RelationClaim
from formats.schema import load_schema

GOOD = kb(
    CARRIE, DEBBIE, PARENTS, f':E2\tper:title\t"actress"\t{whole("D1")}\t0.1', ':E1\tlink\t"m.1"'
)
JSON = json.dumps(
    {
        "doc": "D1",
        "subject": span("D1", "Fisher", 1),
        "predicate": "per:parents",
        "object": span("D1", "Debbie Reynolds"),
        "provenance": [[0, 50]],
        "confidence": 0.5,
        "subject_type": "PER",
        "object_link": "m.2",
    }
).encode()

pieces = st.sampled_from(
    [
        b":E1",
        b":E2",
        b":E9",
        b"type",
        b"mention",
        b"canonical_mention",
        b"link",
        b"per:parents",
        b"org:students",
        b"PER",
        b'"Fisher"',
        b'"actress"',
        b'"2016-12-27"',
        b'"\\',
        b"D1:0-12",
        b"D1:0-90",
        b"D1:0-12,D2:0-5",
        b"D1:99999999999-1",
        b"0.5",
        b"nan",
        b"1e999",
        b"\t",
        b"\t",
        b"\t",
        b"\n",
        b"\n",
        b"\r\n",
        b"\x00",
        b"\xff",
        "Ünï".encode(),
        b"#",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"{",
        b"}",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.floats()
    | st.text(max_size=5)
    | st.just("D1"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
keys = st.sampled_from(
    [
        "doc",
        "subject",
        "predicate",
        "object",
        "provenance",
        "confidence",
        "subject_type",
        "object_link",
        "subject_canonical",
        "id",
        "text",
        "tokens",
        "sentences",
        "date",
        "title",
    ]
)


def check(claims: list[RelationClaim]) -> None:
    for claim in claims:
        view = TOY.get(claim.document)
        assert view is not None
        for place in (
            claim.subject,
            claim.object,
            claim.subject_canonical,
            claim.object_canonical,
            *claim.provenance,
        ):
            assert view.contains_span(place)
        assert claim.confidence is None or 0 <= claim.confidence <= 1
        for text in (
            claim.subject_link,
            claim.object_link,
            claim.subject_entity,
            claim.object_entity,
        ):
            assert "\x00" not in (text or "").encode().decode()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_give_messages(data: bytes) -> None:
    for prefix in (
        b"",
        b"run\n:E1\t",
        b"{",
        b"\x1f\x8b",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    ):
        claims, report = read(prefix + data)
        check(claims)
        assert len(report) > 0
    read_documents(data)
    read_table("gold", "\t".join(GOLD_COLUMNS).encode() + b"\n" + data)
    read_table("mentions", "\t".join(MENTION_COLUMNS).encode() + b"\n" + data)


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=60).map(b"".join))
def test_shuffled_pieces_of_a_knowledge_base_give_messages(data: bytes) -> None:
    claims, report = read(b"run\n:E1\ttype\tPER\n" + data)
    check(claims)
    assert claims or report.errors


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD)), st.binary(max_size=4), st.integers(0, 20), st.booleans())
def test_a_damaged_knowledge_base_gives_messages(
    at: int, inserted: bytes, removed: int, packed: bool
) -> None:
    data = gzip.compress(GOOD) if packed else GOOD
    check(read(data[:at] + inserted + data[at + removed :])[0])


@settings(max_examples=300, deadline=None)
@given(keys, values)
def test_any_value_of_any_key_gives_messages(key: str, value: object) -> None:
    check(read(json.dumps(json.loads(JSON) | {key: value}).encode())[0])
    document = json.loads(corpus_lines().splitlines()[0])
    read_documents(json.dumps(document | {key: value}).encode())


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["entity_types", "predicates", "turned", "ignored", "exclusive", "x"]),
        values,
    )
)
def test_a_bad_schema_raises_nothing_but_its_own_error(data: dict[str, object]) -> None:
    try:
        load_schema(data)
    except FormatError as error:
        assert str(error).endswith(".")


BROKEN = {
    "list.json": b"[" * 100_000,
    "timestamp.yaml": b"a: !!timestamp x",
    "tag.yaml": b"a: !!bool maybe",
    "number.yaml": b"a: !!int ''",
    "control.yaml": b"a: \x08",
    "deep.yaml": b"[" * 100_000,
    "key.yaml": b"? [a]\n: b\n",
    "self.yaml": b"a: &a [*a]\nentity_types: *a\npredicates: []",
    "infinite.json": b'{"entity_types": [], "predicates": [{"name": "a", "types": [["A", "B"]],'
    b' "frequency": 1e999}]}',
    "one_side.json": b'{"entity_types": [], "predicates": [{"name": "a", "types": [["A"]]}]}',
    "nul.json": b'{"name": "a\\u0000", "entity_types": [{"name": "A"}], "predicates": []}',
    "surrogate.json": b'{"name": "\\ud800", "entity_types": [{"name": "A"}], "predicates": []}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_schema_file_raises_nothing_but_its_own_error(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    with pytest.raises(FormatError, match="schema"):
        load_schema(tmp_path / name)


@pytest.mark.parametrize("name", ["a\x00b.json", "\ud800.json", "x" * 5000, "/"])
def test_a_name_that_no_schema_has_raises_nothing_but_its_own_error(name: str) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        load_schema(name)


def test_a_fine_file_still_has_claims() -> None:
    assert len(read(GOOD)[0]) == 2
    assert len(read(JSON.replace(b"[[0, 50]]", b"[[0, 99]]"))[0]) == 1
