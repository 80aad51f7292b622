"""Who may import whom: the table of kbpo/README.md, executed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STANDARD = set(sys.stdlib_module_names) | {"__future__"}
DJANGO = {"django", "celery", "psycopg2", "rest_framework", "drf_spectacular", "redis"}

# room -> (rooms of ours, packages of others). `kbpo.tracks` means base, registry, models: never a
# kind of track.
BELOW = {"kbpo.queue", "kbpo.environment"}
MAY: dict[str, tuple[set[str], set[str]]] = {
    "estimators": (set(), {"numpy", "scipy"}),
    "formats": (set(), {"yaml"}),
    "kbpo.queue": (set(), DJANGO),
    "kbpo.accounts": (set(), DJANGO),
    "kbpo.corpus": ({"formats"}, DJANGO),
    "kbpo.instances": ({"kbpo.corpus"}, DJANGO),
    "kbpo.tracks": ({"kbpo.corpus"}, DJANGO | {"numpy"}),
    "kbpo.money": ({"kbpo.accounts", "kbpo.tracks"}, DJANGO),
    "kbpo.submissions": ({"kbpo.accounts", "kbpo.corpus", "kbpo.instances", "kbpo.tracks"}, DJANGO),
    "kbpo.tracks.kbp": (
        {
            "estimators",
            "formats",
            "kbpo.corpus",
            "kbpo.instances",
            "kbpo.submissions",
            "kbpo.tracks",
        },
        DJANGO | {"numpy"},
    ),
    "kbpo.sampling": (
        {
            "estimators",
            "kbpo.accounts",
            "kbpo.corpus",
            "kbpo.instances",
            "kbpo.money",
            "kbpo.submissions",
            "kbpo.tracks",
        },
        DJANGO | {"numpy", "scipy"},
    ),
    "kbpo.evaluation": (
        {
            "estimators",
            "kbpo.accounts",
            "kbpo.corpus",
            "kbpo.instances",
            "kbpo.money",
            "kbpo.submissions",
            "kbpo.tracks",
            "kbpo.sampling",
        },
        DJANGO | {"numpy", "scipy"},
    ),
    "kbpo.web": (
        {
            "estimators",
            "formats",
            "kbpo.accounts",
            "kbpo.corpus",
            "kbpo.instances",
            "kbpo.tracks",
            "kbpo.tracks.kbp",
            "kbpo.money",
            "kbpo.submissions",
            "kbpo.sampling",
            "kbpo.evaluation",
            "kbpo.embedded",
            "kbpo.celery",
            "rehearsal.newspaper",
            "annotation.desk.report",
        },
        DJANGO | {"numpy"},
    ),
    "rehearsal.newspaper": ({"formats"}, {"numpy"}),
    "annotation": (
        {
            "estimators",
            "kbpo.accounts",
            "kbpo.corpus",
            "kbpo.instances",
            "kbpo.money",
            "kbpo.submissions",
            "kbpo.sampling",
            "kbpo.tracks",
            "kbpo.tracks.kbp",
        },
        DJANGO | {"numpy", "boto3", "botocore"},
    ),
}


def room_of(module: str) -> str:
    """The longest room that a module lies in; the module itself if it lies in none."""
    known = (*MAY, *BELOW, "annotation.desk.report", "kbpo.embedded", "kbpo.celery")
    inside = [room for room in known if module == room or module.startswith(room + ".")]
    return max(inside, key=len) if inside else module


def modules() -> Iterator[tuple[str, Path]]:
    for top in ("estimators", "formats", "kbpo", "annotation"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if "migrations" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def forbidden(module: str, path: Path) -> Iterator[str]:
    room = room_of("annotation" if module == "annotation.desk.report" else module)
    if room not in MAY:
        return  # settings, urls, celery, embedded: the frame around the rooms
    ours, others = MAY[room]
    for line, name in imports(path):
        top = name.split(".")[0]
        target = room_of(name)
        if top in ("kbpo", "annotation", "estimators", "formats", "kbpo_client"):
            own = target == room or (room == "annotation" and target == "annotation.desk.report")
            if not (own or target in ours or target in BELOW):
                yield f"{path.relative_to(ROOT)}:{line}: {room} may not import {name}"
        elif top not in STANDARD and top not in others:
            yield f"{path.relative_to(ROOT)}:{line}: {room} may not import {top}"


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_a_module_imports_only_what_its_room_may(module: str, path: Path) -> None:
    assert list(forbidden(module, path)) == []


def test_the_table_would_catch_a_forbidden_import(tmp_path: Path) -> None:
    bad = ROOT / "kbpo" / "corpus" / "models.py"
    assert "kbpo.web" not in MAY["kbpo.corpus"][0]
    assert list(forbidden("estimators.models", bad))  # the same file would not do for the pure room


@pytest.mark.parametrize("name", ["settings", "urls", "celery", "wsgi"])
def test_the_frame_names_the_rooms_by_string_only(name: str) -> None:
    found = {target for _, target in imports(ROOT / "kbpo" / f"{name}.py")}
    ours = {one for one in found if one.split(".")[0] in {room.split(".")[0] for room in MAY}}
    assert ours <= {"kbpo.embedded", "kbpo.environment"}, (
        "an import here would be one that the table does not see"
    )


def test_the_package_of_the_project_is_empty() -> None:
    assert (ROOT / "kbpo" / "__init__.py").read_text() == ""


def test_of_the_crowd_only_its_report_is_imported_from_outside() -> None:
    found = {
        (module, target)
        for module, path in modules()
        if not module.startswith("annotation")
        for _, target in imports(path)
        if target.split(".")[0] == "annotation"
    }
    assert found and {module.split(".")[1] for module, _ in found} == {"web"}
    assert {room_of(target) for _, target in found} == {"annotation.desk.report"}


def test_boto3_is_imported_in_one_module_on_each_side_of_the_wire() -> None:
    users = [
        m
        for m, p in modules()
        if any(n.split(".")[0] in ("boto3", "botocore") for _, n in imports(p))
    ]
    assert set(users) == {
        "annotation.platforms.mturk.client",
        "rehearsal.marketplace.model",
    }


def test_http_stays_in_the_web_and_in_the_annotation_views() -> None:
    users = [m for m, p in modules() if any(n.startswith("django.http") for _, n in imports(p))]
    pages = {
        f"annotation.{name}"
        for name in (
            "views",
            "attempt",
            "decide",
            "expert",
            "frame",
            "learn",
            "say",
            "task",
            "task_ready",
            "task_side",
            "annotators.views",
            "annotators.pages",
            "annotators.desk",
        )
    }
    assert all(m.startswith("kbpo.web") or m in pages for m in users), users


def test_the_names_of_no_module_say_nothing() -> None:
    empty = {"utils", "helpers", "services", "managers", "misc", "common"}
    assert [m for m, _ in modules() if m.rsplit(".", 1)[-1] in empty] == []
