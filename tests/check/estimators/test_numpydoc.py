"""Every public function of estimators says what it takes and gives, with an example; every result
shows itself.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import FunctionType

import pytest

import estimators

README = (Path(estimators.__file__).parent / "README.md").read_text()
MODULES = {
    info.name.removeprefix("estimators."): importlib.import_module(info.name)
    for info in pkgutil.walk_packages(estimators.__path__, "estimators.")
}


def offered() -> dict[str, object]:
    """What the tables of the README name, and what a module says that it offers."""
    cells = [line.split(" | ")[0] for line in README.splitlines() if line.startswith("| `")]
    named = [
        (MODULES[module], name)
        for cell in cells
        for module, name in re.findall(r"`((?:onthejob\.)?\w+)\.(\w+)`", cell)
    ]
    named += [
        (module, name) for module in MODULES.values() for name in getattr(module, "__all__", ())
    ]
    return {
        f"{thing.__module__}.{name}": thing
        for module, name in named
        for thing in [getattr(module, name)]
    }


FUNCTIONS = {name: thing for name, thing in offered().items() if isinstance(thing, FunctionType)}
RESULTS = {
    f"{name}.{kind.__name__}": kind
    for name, module in MODULES.items()
    for kind in vars(module).values()
    if inspect.isclass(kind)
    and kind.__module__ == module.__name__
    and kind.__name__[0] != "_"
    and name not in {"checks", "labelled", "mixture"}  # what the other modules are made of
    and kind.__name__ != "Votes"
}


def parts(thing: object) -> dict[str, str]:
    """The sections of a docstring by their underlined heads."""
    pieces = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_the_tables_name_many():
    assert len(FUNCTIONS) > 70
    assert len(RESULTS) > 12


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_says_what_it_takes_and_gives_and_shows_an_example(name):
    function = FUNCTIONS[name]
    found = parts(function)
    assert {"Parameters", "Returns", "Examples"} - set(found) == set()
    assert f"{function.__name__}(" in found["Examples"]
    told = set(
        re.findall(r"\w+", " ".join(re.findall(r"^\S.*", found["Parameters"], re.MULTILINE)))
    )
    assert set(inspect.signature(function).parameters) - told == set()


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_result_has_an_example_and_cannot_be_changed(name):
    kind = RESULTS[name]
    assert ">>> " in parts(kind)["Examples"]
    if name.startswith("onthejob."):
        return  # models that learn and policies that plan change; results are frozen elsewhere
    frozen = (
        kind.__dataclass_params__.frozen
        if hasattr(kind, "__dataclass_params__")
        else issubclass(kind, tuple)
    )
    assert frozen or kind.__name__ == "Design"
