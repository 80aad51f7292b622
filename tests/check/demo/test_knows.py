"""What a perfect worker answers, on the demo corpus and on real documents."""

from pathlib import Path

import pytest

from rehearsal.newspaper.knows import Knowledge, read_rows

REAL = Path(__file__).parents[4] / "shared" / "data" / "redocred"


def agrees_with_gold(knowledge: Knowledge, gold: Path, limit: int) -> None:
    for _, row in zip(range(limit), read_rows(gold), strict=False):
        subject = int(row["subj_begin"]), int(row["subj_end"])
        object_ = int(row["obj_begin"]), int(row["obj_end"])
        answer = knowledge.true_answer(row["doc_id"], subject, object_)
        turned = knowledge.true_answer(row["doc_id"], object_, subject)
        assert (row["predicate"], ">") in answer.holds and (row["predicate"], "<") in turned.holds
        assert (answer.subject_canonical, answer.object_link) == (
            turned.object_canonical,
            turned.subject_link,
        )


def test_it_agrees_with_the_demo_gold(demo: Path) -> None:
    knowledge = Knowledge(demo / "mentions.tsv", demo / "gold.tsv")
    agrees_with_gold(knowledge, demo / "gold.tsv", 100_000)
    links = [row for row in read_rows(demo / "mentions.tsv") if row["link"]]
    assert links
    for row in links:
        span = int(row["begin"]), int(row["end"])
        answer = knowledge.true_answer(row["doc_id"], span, span)
        assert answer.subject_link == row["link"]
        assert answer.subject_canonical == (int(row["canonical_begin"]), int(row["canonical_end"]))


def test_pairs_that_are_not_listed_have_no_relation(demo: Path) -> None:
    knowledge = Knowledge(demo / "mentions.tsv", demo / "gold.tsv")
    (document, span) = next(iter(knowledge.mentions))
    assert knowledge.true_answer(document, span, span).holds == frozenset()
    unknown = knowledge.true_answer("no such document", (3, 7), (9, 12))
    assert (
        unknown.holds == frozenset()
        and unknown.subject_canonical == (3, 7)
        and unknown.subject_link == ""
    )


def test_it_reads_real_gzipped_files() -> None:
    if not REAL.is_dir():
        pytest.skip("the Re-DocRED test set is not beside this checkout")
    knowledge = Knowledge(REAL / "mentions.tsv.gz", REAL / "gold.tsv.gz")
    assert sum(map(len, knowledge.relations.values())) == 17448
    agrees_with_gold(knowledge, REAL / "gold.tsv.gz", 2000)
