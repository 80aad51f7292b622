"""What the doors make of good files: mentions, provenance, strings, inverses, links; and that all
doors agree.
"""

import io
import json
from unicodedata import normalize

import pytest
from toy import (
    CARRIE,
    DEBBIE,
    EDDIE,
    LIMITS,
    PARENTS,
    TEXTS,
    TOY,
    entity,
    kb,
    read,
    read_table,
    span,
    tac,
    whole,
)

from formats.corpus import read_corpus
from formats.doors import detect_format, read_claims
from formats.lookup import DocumentView, MemoryCorpus
from formats.messages import Report
from formats.relation import RelationClaim
from formats.schema import shipped_schema

ACME = entity(":E5", "ORG", ("D3", "Acme “Labs”"))
JOSE = entity(":E6", "PER", ("D3", "José Núñez"))


def codes(report: Report) -> set[str]:
    return set(report.by_code) - {"consistency.missing_inverse"}


def test_a_relation_line_becomes_a_claim_about_the_closest_mentions() -> None:
    (claim,), report = read(kb(CARRIE, ':E1\tlink\t"m.01tnbn"', DEBBIE, PARENTS))
    assert claim.document == "D1"
    assert claim.subject == span("D1", "Fisher", 1), (
        "“Fisher” in the third sentence has fewer tokens between"
    )
    assert claim.object == span("D1", "Debbie Reynolds")
    assert (claim.predicate, claim.subject_type, claim.object_type) == ("per:parents", "PER", "PER")
    assert claim.provenance == [(0, len(TEXTS["D1"]))]
    assert claim.confidence == 0.8
    assert claim.subject_canonical == span("D1", "Carrie Fisher")
    assert (claim.subject_link, claim.object_link) == ("m.01tnbn", None)
    assert (claim.subject_entity, claim.object_entity) == (":E1", ":E2")
    assert not codes(report)


def test_the_place_of_a_value_stands_before_its_justifications() -> None:
    """Cold Start of 2016 and 2017 writes PLACE;JUSTIFICATION,… for strings."""
    second, word = tac("D1", "actress", 1), entity(":String_1", "STRING", ("D1", "actress"))
    word += "\n" + f':String_1\tmention\t"actress"\t{second}'
    for value in ('"actress"', ":String_1"):
        nearest = f":E1\tper:title\t{value}\t{whole('D1')}"
        (claim,), report = read(kb(CARRIE, word, nearest))
        assert claim.object == span("D1", "actress") and not codes(report)
        placed = f":E1\tper:title\t{value}\t{second};D1:0-28, {whole('D1')}\t0.5"
        (claim,), report = read(kb(CARRIE, word, placed))
        assert claim.object == span("D1", "actress", 1) and not codes(report)
        assert claim.provenance == [span("D1", "actress", 1), (0, 29), (0, len(TEXTS["D1"]))]
        assert claim.confidence == 0.5


def test_a_place_that_cannot_be_read_drops_the_line() -> None:
    for place in ("D1:5", "", "NIL"):
        relation = f':E1\tper:title\t"actress"\t{place};{whole("D1")}'
        claims, report = read(kb(CARRIE, relation))
        assert not claims and report.by_code["syntax.offsets"] == 1


def test_events_and_sentiment_are_known_and_not_evaluated() -> None:
    where = whole("D1")
    beyond = [
        ":Event_1\ttype\tLIFE.DIE",
        f':Event_1\tmention.actual\t"died"\t{tac("D1", "died")}',
        f':Event_1\tcanonical_mention.actual\t"died"\t{tac("D1", "died")}\t1.0',
        f':Event_1\tmention\t"died"\t{tac("D1", "died")}',
        f":Event_1\tlife.die:victim.actual\t:E1\t{where};{tac('D1', 'Fisher', 1)};NIL\t1.0",
        f":E1\tper:life.die_victim.generic\t:Event_1\t{where};{where};NIL",
        f":E1\tper:likes\t:E2\t{where}",
        f":E2\tper:is_disliked_by\t:E1\t{where}",
    ]
    (claim,), report = read(kb(CARRIE, DEBBIE, PARENTS, *beyond))
    assert claim.predicate == "per:parents"
    assert report.errors == 0 and report.by_code["schema.ignored_predicate"] == len(beyond)
    assert report.relation_lines == 3, "lines about events are no relations"


def test_a_pair_in_one_sentence_comes_before_a_nearer_pair_in_two() -> None:
    relation = f":E2\tper:children\t:E1\t{whole('D2')}"
    (claim,), _ = read(kb(CARRIE, DEBBIE, relation))
    assert (claim.subject, claim.object) == (
        span("D2", "Debbie Reynolds"),
        span("D2", "Carrie Fisher"),
    )


def test_relations_may_come_before_their_mentions() -> None:
    assert (
        read(kb(PARENTS, CARRIE, DEBBIE))[0][0].subject
        == read(kb(CARRIE, DEBBIE, PARENTS))[0][0].subject
    )


def test_comments_blank_lines_and_white_space_at_the_end_are_passed_over() -> None:
    claims, report = read(kb("# a comment", "", "   ", CARRIE, DEBBIE + "\t ", PARENTS + "  "))
    assert len(claims) == 1
    assert not codes(report)


def test_provenance_in_several_documents_is_a_claim_for_each() -> None:
    relation = f":E2\tper:children\t:E1\t{whole('D2')},{whole('D1')}\t0.4"
    claims, _ = read(kb(CARRIE, DEBBIE, relation))
    assert [claim.document for claim in claims] == ["D2", "D1"]
    assert [claim.line for claim in claims] == [14, 14]


def test_subject_and_object_may_lie_in_two_provenances_of_one_document() -> None:
    relation = f":E1\tper:parents\t:E2\t{tac('D1', 'Carrie Fisher')},{tac('D1', 'Debbie Reynolds')}"
    (claim,), _ = read(kb(CARRIE, DEBBIE, relation))
    assert claim.subject == span("D1", "Carrie Fisher")
    assert claim.provenance == [span("D1", "Carrie Fisher"), span("D1", "Debbie Reynolds")]


def test_a_repeated_string_means_its_occurrence_closest_to_the_subject() -> None:
    (claim,), _ = read(kb(DEBBIE, f':E2\tper:title\t"actress"\t{whole("D1")}'))
    assert claim.object == claim.object_canonical == span("D1", "actress", 1)
    assert (claim.object_type, claim.object_entity, claim.object_link) == ("TITLE", None, None)


def test_a_string_is_found_as_whole_words_only() -> None:
    assert codes(read(kb(DEBBIE, f':E2\tper:title\t"act"\t{whole("D1")}'))[1]) >= {
        "reference.string"
    }


@pytest.mark.parametrize(
    "value", ["2016-12-27", "2016-12-XX", "2016-12", "XXXX-12-27", "2016", "December 27, 2016"]
)
def test_a_normalised_date_is_found_by_its_written_forms(value: str) -> None:
    (claim,), report = read(kb(CARRIE, f':E1\tper:date_of_death\t"{value}"\t{whole("D1")}'))
    assert TEXTS["D1"][slice(*claim.object)] in "December 27, 2016"
    assert claim.object_type == "DATE"
    assert not codes(report)


def test_another_date_is_not_found() -> None:
    for value in ("1955-12", "2017", "2016-13-41", "XXXX"):
        claims, report = read(
            kb(EDDIE, CARRIE, f':E1\tper:date_of_death\t"{value}-01"\t{tac("D2", "Fisher", 1)}')
        )
        assert not claims
        assert report.by_code["reference.string"] + report.by_code["reference.provenance"] == 1


def test_a_string_entity_with_mention_lines_is_found_by_them() -> None:
    date = ':S1\ttype\tSTRING\n:S1\tnormalized_mention\t"2016-12-27"\t' + tac(
        "D1", "December 27, 2016"
    )
    (claim,), report = read(kb(CARRIE, date, f":E1\tper:date_of_death\t:S1\t{whole('D1')}"))
    assert claim.object == span("D1", "December 27, 2016")
    assert (claim.object_type, claim.object_entity) == ("DATE", ":S1")
    assert codes(report) == {"reference.canonical"}


def test_inverse_and_finer_names_become_canonical() -> None:
    relations = f":E5\torg:employees_or_members\t:E6\t{whole('D3')}\t0.7"
    (claim,), report = read(kb(ACME, JOSE, relations))
    assert claim.predicate == "per:employee_or_member_of"
    assert (claim.subject, claim.object) == (span("D3", "José Núñez"), span("D3", "Acme “Labs”"))
    assert (claim.subject_type, claim.subject_entity) == ("PER", ":E6")
    oslo = entity(":E7", "GPE", ("D3", "Oslo"))
    (claim,), _ = read(kb(JOSE, oslo, f":E6\tper:cities_of_residence\t:E7\t{whole('D3')}"))
    assert claim.predicate == "per:place_of_residence"
    assert not codes(report)


def test_both_instances_of_a_symmetric_predicate_are_kept() -> None:
    relations = f":E2\tper:spouse\t:E3\t{whole('D2')}\n:E3\tper:spouse\t:E2\t{whole('D2')}"
    claims, report = read(kb(DEBBIE, EDDIE, relations))
    assert len(claims) == 2
    assert not report.messages


def test_quotes_and_backslashes_are_escaped() -> None:
    text = 'He "Q" \\ and Acme met.'
    corpus_file = json.dumps({"id": "Q", "text": text}).encode()
    from toy import toy_corpus

    lines = (
        ':E1\ttype\tPER\n:E1\tcanonical_mention\t"He \\"Q\\" \\\\"\tQ:0-7\n'
        ':E2\ttype\tORG\n:E2\tcanonical_mention\t"Acme"\tQ:13-16\n:E1\tper:employee_or_member_of\t:E2\tQ:0-21'
    )
    (claim,), report = read(kb(lines), corpus=toy_corpus(corpus_file))
    assert text[slice(*claim.subject)] == 'He "Q" \\'
    assert not report.messages


def test_glosses_agree_in_composed_and_decomposed_unicode() -> None:
    lines = normalize("NFD", "\n".join((ACME, JOSE)))
    claims, report = read(kb(lines, f":E6\tper:employee_or_member_of\t:E5\t{whole('D3')}"))
    assert len(claims) == 1
    assert not report.messages


def test_the_first_of_two_duplicates_is_kept() -> None:
    relation = f":E1\tper:parents\t:E2\t{whole('D1')}"
    claims, report = read(
        kb(relation + "\t0.3", relation + "\t0.9", relation + "\t0.3", CARRIE, DEBBIE)
    )
    assert [claim.confidence for claim in claims] == [0.3]
    assert [m.text for m in report if m.code == "consistency.duplicate"] == [
        "Same relation as line 2 with another confidence. The first one is kept.",
        "Same relation as line 2. The first one is kept.",
    ]


def test_a_mention_with_two_types_stays_with_the_first_entity() -> None:
    other = entity(":E4", "ORG", ("D1", "Carrie Fisher"))
    founded = f":E2\tper:organizations_founded\t:E4\t{whole('D1')}"
    claims, report = read(kb(CARRIE, DEBBIE, other, founded))
    assert not claims
    assert codes(report) == {
        "consistency.two_types",
        "reference.provenance",
        "syntax.nothing_usable",
    }


def test_types_that_do_not_fit_are_kept_and_count_as_wrong() -> None:
    claims, report = read(kb(CARRIE, DEBBIE, f":E1\torg:founded_by\t:E2\t{whole('D1')}"))
    assert len(claims) == 1
    assert codes(report) == {"schema.arguments"}


def test_an_inclusive_end_that_is_exclusive_gets_a_hint() -> None:
    begin, end = span("D1", "Carrie Fisher")
    _, report = read(kb(f':E1\tmention\t"Carrie Fisher"\tD1:{begin}-{end}'))
    assert "the end is the last character" in next(iter(report)).text


def test_a_stream_that_cannot_be_rewound_is_read_twice_all_the_same() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    report = Report()
    schema = shipped_schema("tac_kbp")
    assert (
        len(list(read_claims(Pipe(kb(PARENTS, CARRIE, DEBBIE)), TOY, schema, LIMITS, report))) == 1
    )


@pytest.mark.parametrize(
    ("lines", "door"),
    [
        (["run", ":E1\ttype\tPER"], "tac_kb"),
        (["# note", "", '{"doc": "D1"}'], "json_lines"),
        (["D1:0-5\tper:parents\tD1:7-9\tD1:0-9\t1"], "mention_level"),
        (["run"], None),
        ([], None),
    ],
)
def test_the_door_is_known_from_the_first_lines(lines: list[str], door: str | None) -> None:
    assert detect_format(iter(lines)) == door


def json_line(**changes: object) -> bytes:
    data = {
        "doc": "D1",
        "subject": span("D1", "Fisher", 1),
        "predicate": "per:parents",
        "object": span("D1", "Debbie Reynolds"),
    } | changes
    return json.dumps(data).encode() + b"\n"


def test_json_lines_and_tac_kb_give_the_same_claim() -> None:
    (tac_claim,), _ = read(kb(CARRIE, DEBBIE, ':E1\tlink\t"m.1"', PARENTS))
    (claim,), report = read(
        json_line(
            confidence=0.8,
            provenance=[[0, len(TEXTS["D1"])]],
            subject_link="m.1",
            subject_canonical=span("D1", "Carrie Fisher"),
        )
    )
    tac_claim.subject_entity = tac_claim.object_entity = None
    claim.line = tac_claim.line
    assert claim == tac_claim
    assert not codes(report)


def test_json_lines_without_provenance_have_the_sentences_over_both_mentions() -> None:
    (claim,), _ = read(json_line())
    assert claim.provenance == [(span("D1", "Her mother")[0], len(TEXTS["D1"]))]
    assert claim.confidence is None
    assert claim.subject_canonical == claim.subject


def test_json_lines_take_types_from_the_mentions_of_the_corpus() -> None:
    view = TOY.get("D3")
    assert view is not None
    acme, oslo = span("D3", "Acme “Labs”"), span("D3", "Oslo")
    line = json.dumps(
        {"doc": "D3", "subject": acme, "predicate": "org:founded_by", "object": oslo}
    ).encode()
    assert codes(read(line)[1]) == {"reference.untyped", "syntax.nothing_usable"}
    view.mention_types = {oslo: "GPE"}
    (claim,), _ = read(line)
    view.mention_types = {}
    assert (claim.subject_type, claim.object_type) == ("ORG", "GPE")


def test_json_lines_turn_inverse_names_round() -> None:
    acme, jose = span("D3", "Acme “Labs”"), span("D3", "José Núñez")
    data = {
        "doc": "D3",
        "subject": acme,
        "predicate": "org:students",
        "object": jose,
        "object_link": "José",
    }
    (claim,), _ = read(json.dumps(data).encode())
    assert (claim.subject, claim.predicate, claim.object) == (jose, "per:schools_attended", acme)
    assert claim.subject_link == "José"


def test_markup_in_a_name_comes_back_as_it_was() -> None:
    (claim,), _ = read(json_line(subject_link="<script>alert(1)</script>"))
    assert claim.subject_link == "<script>alert(1)</script>"


def test_annotated_mentions_may_have_a_column_of_links() -> None:
    header = "doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end"
    for more, link in (("", ""), ("\tm.1", "m.1")):
        table = (
            f"{header}{more and chr(9) + 'link'}\nD1\t0\t13\tPER\t0\tCarrie Fisher\t0\t13{more}\n"
        )
        (record,), report = read_table("mentions", table.encode())
        assert (record.span, record.type, record.entity, record.link) == ((0, 13), "PER", "0", link)
        assert not report.messages


def test_annotated_relations_are_turned_into_canonical_direction() -> None:
    header = "doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end\n"
    acme, jose = span("D3", "Acme “Labs”"), span("D3", "José Núñez")
    row = "\t".join(map(str, ("D3", *acme, "org:students", *jose, 0, 40)))
    (record,), _ = read_table("gold", f"{header}{row}\n".encode())
    assert (record.subject, record.predicate, record.object) == (jose, "per:schools_attended", acme)


def test_names_of_entities_agree_in_composed_and_decomposed_unicode() -> None:
    jose = normalize("NFD", entity(":José", "PER", ("D3", "José Núñez")))
    claims, report = read(kb(jose, ACME, f":José\tper:employee_or_member_of\t:E5\t{whole('D3')}"))
    assert [claim.subject_entity for claim in claims] == [":José"]
    assert not report.messages


@pytest.mark.parametrize(
    ("data", "seems"),
    [
        ('{"id": "D1", "text": "He said so."}\n' * 30, "hold documents: its first 20 lines"),
        (
            '{"input_id": "1", "output": "So."}\n' * 3,
            "hold outputs, one for each input: its first 3",
        ),
        (
            json.dumps({"types": ["PER"], "predicates": []}, indent=1),
            "hold one JSON value over many",
        ),
        ("one\ttwo\tthree\n" * 5, "be another kind of file: its first"),
        (json.dumps({"doc": "D9"}), ""),
    ],
)
def test_a_file_of_another_kind_is_told_so_once(data: str, seems: str) -> None:
    claims, report = read(data.encode())
    assert not claims
    (told,) = (one.text for one in report if one.code == "syntax.nothing_usable")
    assert (f"seems to {seems}" in told and "JSON Lines with doc, subject" in told) == bool(seems)
    assert bool(seems) or "seems" not in told


DOCRED = shipped_schema("docred")


def numbered_corpus() -> MemoryCorpus:
    """One document whose entities have numbers: Carrie Fisher, Debbie Reynolds, Eddie Fisher."""
    text = "Carrie Fisher is a child of Debbie Reynolds. Fisher and Eddie Fisher met."
    spans = {0: [(0, 13), (45, 51)], 1: [(28, 43)], 2: [(56, 68)]}
    record = next(
        read_corpus(
            [(1, json.dumps({"id": "D1", "title": "A family", "text": text}))], LIMITS, Report()
        )
    )
    types = {span: "PER" for mentions in spans.values() for span in mentions}
    other = DocumentView("D2", "Nothing.", [0], [7], [0], [8], title="Other")
    return MemoryCorpus([DocumentView.from_record(record, types, spans), other])


def predicted(*rows: dict[str, object]) -> tuple[list[RelationClaim], Report]:
    report = Report()
    file = io.BytesIO(json.dumps(rows).encode())
    return list(read_claims(file, numbered_corpus(), DOCRED, LIMITS, report)), report


def test_a_prediction_of_docred_is_about_the_closest_mentions() -> None:
    row = {"title": "A family", "h_idx": 0, "t_idx": 2, "r": "P22", "evidence": [1]}
    (claim, by_id), report = predicted(row, row | {"title": "D1", "t_idx": 1, "confidence": 0.5})
    assert report.errors == 0 and claim.document == by_id.document == "D1"
    assert (claim.subject, claim.predicate, claim.object) == ((45, 51), "per:father", (56, 68))
    assert (claim.subject_canonical, claim.confidence) == ((0, 13), None)
    assert claim.provenance == [(45, 73)]
    assert (by_id.subject, by_id.object, by_id.confidence) == ((0, 13), (28, 43), 0.5)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"title": "Nobody"}, "reference.document"),
        ({"title": "Other"}, "reference.entity_order"),
        ({"t_idx": 3}, "reference.entity"),
        ({"t_idx": 0}, "schema.itself"),
        ({"t_idx": "1"}, "syntax.value"),
        ({"h_idx": True}, "syntax.value"),
        ({"r": "P0"}, "schema.unknown_predicate"),
        ({"r": "P17"}, "schema.arguments"),
        ({"score": 0.3}, "syntax.key_unknown"),
        ({"confidence": 7}, "syntax.confidence"),
    ],
)
def test_a_prediction_of_docred_that_cannot_be_used_is_told_so(
    change: dict[str, object], code: str
) -> None:
    _, report = predicted({"title": "A family", "h_idx": 0, "t_idx": 1, "r": "P22"} | change)
    assert report.by_code[code] == 1


def test_a_corpus_without_numbers_of_entities_says_once_what_is_missing() -> None:
    claims, report = predicted(*[{"title": "Other", "h_idx": 0, "t_idx": 1, "r": "P17"}] * 3000)
    assert not claims and report.by_code["reference.entity_order"] == 1
    assert "whose column entity has the places in vertexSet" in report.messages[0].text
