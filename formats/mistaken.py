"""What a file seems to be that was taken for another one: lines that all fail in the same way."""

import re
from itertools import islice

from formats.messages import Report

FIRST = 20
"""Errors that have to be of one kind"""
FEWEST = 2
_OF_FORM = ("syntax.json", "syntax.key_missing", "syntax.columns")
_KEY = re.compile(r'"(\w+)"\s*:')
_KINDS = (
    ({"input_id", "output"}, "outputs, one for each input"),
    ({"doc", "subject", "predicate", "object"}, "relations"),
    ({"input_id"}, "the inputs of a track"),
    ({"id", "text"}, "documents"),
    ({"doc", "begin", "end"}, "the mentions of documents"),
)


def explain_wrong_format(report: Report, expected: str) -> str:
    """Return a sentence about a file without usable lines whose first errors are all of one kind
    and about the form of a line; otherwise an empty string.
    """
    errors = list(islice((one for one in report if one.severity == "error" and one.line), FIRST))
    if len(errors) < FEWEST or len({one.code for one in errors}) > 1:
        return ""
    first = errors[0]
    if first.code not in _OF_FORM:
        return ""
    keys = set(_KEY.findall(first.line_text))
    kind = next((words for names, words in _KINDS if names <= keys), "")
    if first.code == "syntax.json" and first.line_text.strip() in ("{", "["):
        kind = "one JSON value over many lines, such as a schema"
    seems = f"The file seems to hold {kind}" if kind else "It seems to be another kind of file"
    return f" {seems}: its first {len(errors)} lines all fail in the same way. Expected {expected}."
