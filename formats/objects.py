"""The JSON objects on lines, with what is wrong with a line that holds none."""

import json
from typing import Any

from formats.messages import Report


class _NaN(ValueError):
    """The line holds NaN or an infinity, which Python writes and JSON does not have."""


def _refuse_constant(name: str) -> None:
    raise _NaN(name)


class Objects:
    """Parses the lines of a file. NaN, which pandas writes for what is missing, is reported once
    with the number of lines, by `finish`.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._with_nan = 0
        self._first = (0, "")

    def parse(self, number: int, line: str) -> dict[str, Any] | None:
        """Return the object on a line, or None after a message."""
        try:
            data = json.loads(line, parse_constant=_refuse_constant)
        except _NaN:
            if not self._with_nan:
                self._first = number, line
            self._with_nan += 1
            return None
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        text = "This line is not one JSON object. It is dropped."
        self._report.add("syntax.json", number, text, line)
        return None

    def finish(self) -> None:
        """Report the lines with NaN."""
        if self._with_nan:
            number, line = self._first
            lines = f"{self._with_nan:,} lines hold" if self._with_nan > 1 else "This line holds"
            are = "They are" if self._with_nan > 1 else "It is"
            text = f"{lines} NaN, which is no JSON; write null for a missing value. {are} dropped."
            self._report.add("syntax.nan", number, text, line)
