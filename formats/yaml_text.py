"""Reads YAML of plain values, each with its line number. Raises BadYaml for any other text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DEEPEST = 20
LONGEST_NUMBER = 10**15


class BadYaml(ValueError):
    """Raised for a YAML text that cannot be used; the text is a sentence with the reason and what
    to do, line 0 is the whole text.
    """

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


@dataclass(frozen=True, slots=True)
class Node:
    """A value with the line on which it begins; values of mappings and lists are nodes."""

    value: Any
    line: int

    @classmethod
    def from_yaml_node(cls, loader: Any, node: Any) -> Node:
        """Return the value of a node that PyYAML composed."""
        line = node.start_mark.line + 1
        if node.id == "mapping":
            pairs: dict[str, Node] = {}
            for key, value in node.value:
                name = str(loader.construct_object(key)) if key.id == "scalar" else "?"
                if name in pairs:
                    raise ValueError(f"the key {name} stands there twice")
                pairs[name] = cls.from_yaml_node(loader, value)
            return cls(pairs, line)
        if node.id == "sequence":
            return cls([cls.from_yaml_node(loader, one) for one in node.value], line)
        value = loader.construct_object(node)
        if isinstance(value, int) and abs(value) > LONGEST_NUMBER:
            raise ValueError(f"line {line} has a number of too many digits")
        return cls(value, line)

    def plain(self) -> Any:
        """Return the value without line numbers."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value


def read_yaml(text: str) -> Node | None:
    """Return the value of a YAML text; None if it is empty. Raises BadYaml, also for aliases, tags
    and deep nesting, which could take unlimited time or memory.
    """
    import yaml

    # The parser in C takes `?` inside a plain value, as YAML 1.2 does; the one in Python does not.
    safe_loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.lstrip("\ufeff")
    depth = 0
    try:
        for event in yaml.parse(text, safe_loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if refused := _refusal_of_event(yaml, event, depth):
                raise BadYaml(refused, event.start_mark.line + 1 if event.start_mark else 0)
        loader = safe_loader(text)
        try:
            root = loader.get_single_node()
            return None if root is None else Node.from_yaml_node(loader, root)
        finally:
            loader.dispose()
    except BadYaml:
        raise
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError, TypeError) as problem:
        mark = getattr(problem, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        said = getattr(problem, "problem", None) or " ".join(str(problem).split())
        raise BadYaml(
            f"This is no YAML: {said}. Correct the line and try again.", line
        ) from problem


def _refusal_of_event(yaml: Any, event: Any, depth: int) -> str:
    """Return a sentence on why this part of a text is refused (an alias, a tag, too deep); empty if
    it is allowed.
    """
    if isinstance(event, yaml.AliasEvent):  # a few of them unfold to millions
        return "Aliases (*) are not read here. Write it out."
    if getattr(event, "tag", None):  # some end in an error that is no YAMLError
        return "Tags (!) are not read here. Write the value alone."
    if depth > DEEPEST:  # else a page may take hours to read
        return f"Lists and keys are nested more than {DEEPEST} deep. Correct the brackets."
    return ""
