"""The tables of estimators/README.md name every public function, only what exists, and its test."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import estimators

HERE = Path(__file__).parent
README = (Path(estimators.__file__).parent / "README.md").read_text()
NAMED = [pair for pair in re.findall(r"`(\w+)\.(\w+)`", README) if pair != ("numpy", "random")]
# What other modules are made of, or offer under their own names.
INNER = {"checks", "labelled", "mixture", "pool", "sums", "votes"}


def public_functions() -> Iterator[FunctionType]:
    for info in pkgutil.iter_modules(estimators.__path__):
        module = importlib.import_module(f"estimators.{info.name}")
        for name, thing in vars(module).items():
            here = getattr(thing, "__module__", "") == module.__name__ and info.name not in INNER
            if isinstance(thing, FunctionType) and here and name[0] != "_":
                yield thing


def test_every_public_function_is_named():
    named = [getattr(importlib.import_module(f"estimators.{module}"), name, None) for module, name in NAMED]
    assert [f"{thing.__module__}.{thing.__name__}" for thing in public_functions() if thing not in named] == []


def test_everything_named_exists():
    for module, name in NAMED:
        assert hasattr(importlib.import_module(f"estimators.{module}"), name), f"{module}.{name}"


def test_every_test_named_exists():
    for name in re.findall(r"`(test_\w+)`", README):
        assert (HERE / f"{name}.py").exists(), name


def test_the_first_example_runs():
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    scope: dict[str, object] = {}
    exec(example[1], scope)
    assert 0 < scope["result"].value[1] < 1
