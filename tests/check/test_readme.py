"""What the READMEs name exists, and what exists is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.test import Client
from django.urls import Resolver404, resolve
from test_architecture import DJANGO, MAY

from kbpo import environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
READMES = {
    top: sorted((ROOT / top).rglob("README.md")) for top in ("kbpo", "annotation", "rehearsal")
}
DOCUMENTS = [
    path.relative_to(ROOT)
    for path in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / room / "README.md" for room in ("benchmarks", "formats", "estimators")),
        *(path for top in ("kbpo", "annotation", "rehearsal") for path in READMES[top]),
        ROOT / "templates/components/README.md",
    )
]
ENV_EXAMPLE = set(re.findall(r"^([A-Z][A-Z0-9_]*)=", (ROOT / ".env.example").read_text(), re.M))
OUR_COMMANDS = {
    path.stem
    for path in ROOT.glob("*/**/management/commands/[a-z]*.py")
    if ".venv" not in path.parts
}


def code_of(text: str) -> list[str]:
    """Everything that a document sets as code: blocks and spans."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.M | re.S)
    return blocks + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def targets_named(text: str) -> set[str]:
    return {name for code in code_of(text) for name in re.findall(r"\bmake ([a-z]+)", code)}


def commands_named(text: str) -> set[tuple[str, frozenset[str]]]:
    """Every management command in the code, with the options that stand in its line."""
    found = set()
    for code in code_of(text):
        for name, rest in re.findall(r"manage\.py ([a-z_]+)([^\n#;&|]*)", code):
            found.add((name, frozenset(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest))))
    return found


def paths_named(text: str) -> set[str]:
    """Links, and spans of code that look like files of ours."""
    links = {
        link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link
    }
    spans = set()
    for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        rooms = (
            r"(?:kbpo|annotation|estimators|formats|templates|static|tests|benchmarks|docs|\.ci)"
        )
        if re.fullmatch(
            rf"{rooms}/[\w./-]*|[\w.-]+\.(?:md|yml|toml)|Makefile|Dockerfile|\.env\.example", code
        ):
            spans.add("/" + code)
    return links - {""} | spans


def addresses_named(text: str) -> set[str]:
    return {
        code
        for code in re.findall(r"`(/[^`\s]*)`", text)
        if not code.startswith(("/var/", "/work"))
    }


def known_options(command: str) -> set[str]:
    parser = load_command_class(get_commands()[command], command).create_parser(
        "manage.py", command
    )
    return {option for action in parser._actions for option in action.option_strings}


def missing_paths(document: Path, text: str) -> list[str]:
    made_later = {"/benchmarks/out/"}
    return [
        name
        for name in sorted(paths_named(text) - made_later)
        if not (ROOT / name[1:] if name[0] == "/" else (ROOT / document).parent / name).exists()
        and "NAME" not in name
        and not (name.count("/") == 1 and any((ROOT / document).parent.glob(f"**/{name[1:]}")))
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_what_a_document_names_exists(document: Path) -> None:
    text = (ROOT / document).read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets_named(text) - targets == set()
    assert missing_paths(document, text) == []
    wrong = []
    for name, options in commands_named(text):
        if name not in get_commands():
            wrong.append(name)
        else:
            wrong += [f"{name} {option}" for option in options - known_options(name)]
    for address in addresses_named(text):
        try:
            resolve(address)
        except Resolver404:
            wrong.append(address)
    for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", text):
        if "_" in name and name not in ENV_EXAMPLE and not hasattr(settings, name):
            wrong.append(name)
    for name in re.findall(r"`((?:kbpo|annotation)\.[a-z_.]+)`", text):
        module = ROOT.joinpath(*name.split("."))
        if not (module.is_dir() or module.with_suffix(".py").exists()):
            wrong.append(name)
    assert wrong == []


def test_every_command_of_ours_is_named() -> None:
    named = {name for name, _ in commands_named(README)}
    assert {"demo", "tick"} <= OUR_COMMANDS
    assert OUR_COMMANDS - named == set()


def test_every_setting_that_is_read_is_in_the_example() -> None:
    assert len(environment.REGISTRY) > 10
    assert set(environment.REGISTRY) - ENV_EXAMPLE == set()


def test_continuous_integration_runs_the_tests_as_the_readme_does() -> None:
    """The other command is played at night (`tests/soak/test_demo_market.py`)."""
    commands = {line.split("#")[0].strip() for line in code_of(README)[0].splitlines()} - {""}
    assert commands == {"make demo", "make test"}
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert {match[0] for line in lines if (match := re.match(r"make [a-z]+", line))} == {
        "make test"
    }


def table_of(text: str) -> dict[str, tuple[set[str], set[str]]]:
    """The import table of a README: room -> (rooms of ours, packages of others)."""
    rows = {}
    section = text.split("## Who may import whom")[1].split("\n## ")[0]
    for room, ours, others in re.findall(r"^\| `([\w.]+)` \| (.*?) \| (.*?) \|$", section, re.M):
        packages = set(re.findall(r"`(\w+)`", others)) | (DJANGO if "Django" in others else set())
        rows[room] = (set(re.findall(r"`([\w.]+)`", ours)), packages)
    return rows


def test_the_import_table_is_the_one_that_is_executed() -> None:
    assert table_of((ROOT / "kbpo" / "README.md").read_text()) == MAY


def test_every_word_and_step_of_the_pipeline_is_named() -> None:
    from kbpo.celery import PIPELINE

    text = (ROOT / "kbpo" / "README.md").read_text()
    modules = {path.rpartition(".")[0] for path in PIPELINE.values()}
    assert [module for module in modules if f"`{module}`" not in text] == []


@pytest.mark.parametrize("name", ["kb", "json_lines", "corpus", "mentions", "gold"])
def test_the_examples_of_the_page_are_those_of_the_document(name: str) -> None:
    example = (ROOT / "templates" / "prose" / "examples" / f"{name}.txt").read_text()
    assert example in (ROOT / "docs" / "formats.md").read_text()


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["/", "/methods/", "/api/schema/"])
def test_the_public_addresses_of_the_readme_answer(name: str) -> None:
    assert f"`{name}`" in README
    assert Client().get(name).status_code == 200
