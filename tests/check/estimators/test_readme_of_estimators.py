"""The tables of estimators/README.md name every public function, only what exists, and a test that
uses it.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import estimators

HERE = Path(__file__).parent
README = (Path(estimators.__file__).parent / "README.md").read_text()
NAMED = [
    pair
    for pair in re.findall(r"`((?:onthejob\.)?\w+)\.(\w+)`", README)
    if pair != ("numpy", "random")
]
# What other modules are made of, or offer under their own names.
INNER = {"checks", "labelled", "mixture", "pool", "sums", "votes"}
ROWS = re.findall(r"^\| (`[\w.]+\.\w+`.*?) \| .* \| (`test_\w+`.*?) \|$", README, re.MULTILINE)


def public_functions() -> Iterator[FunctionType]:
    for info in pkgutil.walk_packages(estimators.__path__, "estimators."):
        module = importlib.import_module(info.name)
        inner = info.name.removeprefix("estimators.") in INNER
        for name, thing in vars(module).items():
            here = getattr(thing, "__module__", "") == module.__name__ and not inner
            if isinstance(thing, FunctionType) and here and name[0] != "_":
                yield thing


def test_every_public_function_is_named():
    named = [
        getattr(importlib.import_module(f"estimators.{module}"), name, None)
        for module, name in NAMED
    ]
    assert [
        f"{thing.__module__}.{thing.__name__}" for thing in public_functions() if thing not in named
    ] == []


def test_everything_named_exists():
    for module, name in NAMED:
        assert hasattr(importlib.import_module(f"estimators.{module}"), name), f"{module}.{name}"


def test_every_row_of_the_tables_is_read():
    inside = [name for functions, _ in ROWS for name in re.findall(r"`[\w.]+\.(\w+)`", functions)]
    assert len(inside) > 70
    assert {thing.__name__ for thing in public_functions()} - set(inside) == set()


def names_in(file: Path) -> set[str]:
    """Every name that a file uses; what it only imports, or tells in a string, is none."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    plain = {node.id for node in nodes if isinstance(node, ast.Name)}
    return plain | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize(
    ("functions", "tests"), ROWS, ids=lambda cell: re.sub(r"\W+", " ", cell)[:40]
)
def test_the_test_named_uses_the_function(functions, tests):
    files = [next(HERE.rglob(f"{name}.py")) for name in re.findall(r"`(test_\w+)`", tests)]
    used = set().union(*(names_in(file) for file in files))
    unused = [name for name in re.findall(r"`[\w.]+\.(\w+)`", functions) if name not in used]
    assert unused == [], f"{', '.join(file.name for file in files)}: nothing there uses {unused}"


def test_the_first_example_runs():
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    scope: dict[str, object] = {}
    exec(example[1], scope)
    assert 0 < scope["result"].value[1] < 1
