"""Knowledge bases over the toy corpus, and a quick way to upload them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbpo.submissions.models import Submission
from kbpo.submissions.receive import store_submission


@pytest.fixture(autouse=True)
def uploads(settings: Any, tmp_path: Path) -> Path:
    """An empty directory for uploads."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def entity(toy: Any, name: str, kind: str, *mentions: tuple[str, str, int]) -> list[str]:
    """Lines of an entity; the first mention of each document is its canonical one."""
    lines, seen = [f":{name}\ttype\t{kind}"], set()
    for document, text, which in mentions:
        begin, end = toy.span(document, text, which)
        place = f"{document}:{begin}-{end - 1}"
        lines.append(f':{name}\tmention\t"{text}"\t{place}')
        if document not in seen:
            lines.append(f':{name}\tcanonical_mention\t"{text}"\t{place}')
            seen.add(document)
    return lines


def relation(
    toy: Any, subject: str, predicate: str, object_: str, document: str, confidence: float = 0.5
) -> str:
    """A relation line whose provenance is the whole document."""
    last = len(toy.documents[document].text) - 1
    return f":{subject}\t{predicate}\t:{object_}\t{document}:0-{last}\t{confidence}"


@pytest.fixture
def kb(toy: Any) -> list[str]:
    """Five relations: Mara is one entity of two documents and has three facts, one of them
    predicted twice.
    """
    return [
        "toy_run",
        *entity(
            toy, "Mara", "PER", ("d1", "Mara Lindt", 0), ("d1", "Lindt", 1), ("d3", "Mara Lindt", 0)
        ),
        *entity(
            toy,
            "Nordwerk",
            "ORG",
            ("d1", "Nordwerk", 0),
            ("d1", "Nordwerk", 1),
            ("d3", "Nordwerk", 0),
        ),
        *entity(toy, "Halden", "GPE", ("d1", "Halden", 0)),
        *entity(toy, "Oslo", "GPE", ("d3", "Oslo", 0)),
        *entity(toy, "Bergen", "GPE", ("d1", "Bergen", 0)),
        relation(toy, "Mara", "per:organizations_founded", "Nordwerk", "d1"),
        relation(toy, "Mara", "per:organizations_founded", "Nordwerk", "d3"),
        relation(toy, "Mara", "per:place_of_birth", "Halden", "d1"),
        relation(toy, "Mara", "per:place_of_residence", "Oslo", "d3"),
        relation(toy, "Nordwerk", "org:place_of_headquarters", "Bergen", "d1"),
    ]


@pytest.fixture
def upload(toy: Any) -> Callable[..., Submission]:
    """Uploads lines or bytes as Patterns, or as another team."""

    def send(
        content: list[str] | bytes, *, team: str = "Patterns", user: str = "Rosa", **more: Any
    ) -> Submission:
        data = content if isinstance(content, bytes) else ("\n".join(content) + "\n").encode()
        more = {"name": "Run", "file_name": "run.kb.tsv"} | more
        return store_submission(
            toy.track, toy.teams[team], toy.users[user], io.BytesIO(data), **more
        )

    return send
