"""The examples in the docstrings of every module of estimators run, and say what is printed
there.
"""

import doctest
import importlib
import pkgutil

import pytest

import estimators

MODULES = [
    "estimators",
    *(module.name for module in pkgutil.walk_packages(estimators.__path__, "estimators.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
