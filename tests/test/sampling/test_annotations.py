"""Imported annotation becomes labels of mentions, pairs and documents: whole, once, with its
probability.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from kbpo.corpus.load import CannotLoad
from kbpo.instances.models import Label
from kbpo.sampling.documents.draw import CannotDraw, draw_documents, named_documents
from kbpo.sampling.documents.import_annotations import ImportCounts, import_annotations
from kbpo.sampling.models import DocumentSample
from kbpo.tracks.models import Track

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(toy: Any, tmp_path: Path) -> tuple[Path, Path]:
    """gold.tsv and mentions.tsv: two relations of one pair in d1, one turned-round pair in d2, one
    relation in d3.
    """

    def row(document: str, subject: str, predicate: str, object_: str) -> str:
        spans = (*toy.span(document, subject), predicate, *toy.span(document, object_))
        return "\t".join(map(str, (document, *spans, 0, len(toy.documents[document].text))))

    gold = [
        "doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end",
        row("d1", "Mara Lindt", "per:organizations_founded", "Nordwerk"),
        row("d1", "Mara Lindt", "per:employee_or_member_of", "Nordwerk"),
        row("d2", "Per Berg", "per:parents", "Ola Berg"),
        row("d3", "Mara Lindt", "per:place_of_residence", "Oslo"),
    ]
    mara, lindt = toy.span("d1", "Mara Lindt"), toy.span("d1", "Lindt", 1)
    mentions = [
        "doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end\tlink",
        f"d1\t{mara[0]}\t{mara[1]}\tPER\t0\tMara Lindt\t{mara[0]}\t{mara[1]}\tMara_Lindt",
        f"d1\t{lindt[0]}\t{lindt[1]}\tPER\t0\tLindt\t{mara[0]}\t{mara[1]}\t",
    ]
    paths = tmp_path / "gold.tsv", tmp_path / "mentions.tsv"
    for path, lines in zip(paths, (gold, mentions), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def value(toy: Any, document: str, kind: str, *first: Any) -> Any:
    where = {"target__a_begin": first[0], "target__a_end": first[1]} if first else {}
    return Label.objects.get(
        target__document=toy.documents[document], target__kind=kind, **where
    ).value


def test_the_values_are_those_of_the_files(toy: Any, files: tuple[Path, Path]) -> None:
    documents = named_documents(toy.track, ["d1", "d2"])
    imported = import_annotations(toy.track, *files, documents, closed=True)
    assert imported == ImportCounts(
        {"mentions": 2, "pairs": 2}, 2, 0, 2, lacking=3, first_lacking=2
    )
    both = ["per:employee_or_member_of>", "per:organizations_founded>"]
    assert value(toy, "d1", "pair") == {"shown": both, "holds": both}
    assert value(toy, "d2", "pair") == {"shown": ["per:parents<"], "holds": ["per:parents<"]}
    mara = toy.span("d1", "Mara Lindt")
    assert value(toy, "d1", "mention", *mara) == {
        "canonical": list(mara),
        "type": "PER",
        "link": "Mara Lindt",
    }
    assert value(toy, "d1", "mention", *toy.span("d1", "Lindt", 1)) == {
        "canonical": list(mara),
        "type": "PER",
    }
    assert value(toy, "d2", "document") == {"scope": "document", "closed": True}
    assert not Label.objects.filter(target__document=toy.documents["d3"]).exists()
    assert set(Label.objects.values_list("source", "method")) == {("import", "gold")}


def test_documents_are_settled_with_their_probability(toy: Any, files: tuple[Path, Path]) -> None:
    import_annotations(toy.track, *files, named_documents(toy.track, ["d1"]))
    assert DocumentSample.objects.get().probability == 0.25
    import_annotations(toy.track, *files, named_documents(toy.track, ["d1", "d3"]))
    assert set(DocumentSample.objects.values_list("probability", "design")) == {(0.5, "uniform")}
    assert DocumentSample.objects.filter(settled_at__isnull=False).count() == 2


@pytest.mark.parametrize(
    ("options", "is_study", "is_public"),
    [
        ([], False, False),
        ([], True, True),
        (["--public"], False, True),
    ],
)
def test_an_import_is_public_where_it_was_published(
    toy: Any, files: tuple[Path, Path], options: list[str], is_study: bool, is_public: bool
) -> None:
    Track.objects.update(is_study=is_study, owner=toy.teams["Patterns"] if is_study else None)
    call_command("import_annotations", "toy", *map(str, files), "--all", *options)
    seen = {label.is_public for label in Label.objects.all()}
    assert seen == {is_public}


def test_one_bad_line_and_nothing_is_imported(toy: Any, files: tuple[Path, Path]) -> None:
    files[0].write_text(files[0].read_text() + "d1\t0\t4\tper:parents\t5\t999\t0\t9\n")
    with pytest.raises(CannotLoad, match=r"gold.tsv, line 6: The span 5-999"):
        import_annotations(toy.track, *files, named_documents(toy.track, ["d1"]))
    assert not Label.objects.exists() and not DocumentSample.objects.exists()


def test_draws_depend_on_the_seed_alone_and_unknown_documents_are_named(toy: Any) -> None:
    assert draw_documents(toy.track, 2, seed=5) == draw_documents(toy.track, 2, seed=5)
    assert {tuple(draw_documents(toy.track, 2, seed=seed)) for seed in range(40)} == {
        (one.pk, two.pk)
        for one in toy.documents.values()
        for two in toy.documents.values()
        if one.key < two.key
    }
    with pytest.raises(CannotDraw, match="The corpus has 4 documents; 5 cannot be drawn"):
        draw_documents(toy.track, 5, seed=1)
    with pytest.raises(CannotDraw, match="no document x, nor 1 others"):
        named_documents(toy.track, ["d1", "x", "y"])
