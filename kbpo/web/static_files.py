"""Finds the scripts and style sheets that lie in the directories of the crowd's interfaces. What
else lies there (Python, templates, the right answers of tutorials) is not served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage
from django.core.files.storage import FileSystemStorage

from annotation import interfaces

PREFIX = "interfaces"
SERVED = (".js", ".css")


class InterfaceFinder(BaseFinder):
    """`interfaces/<name>/<file>`, for scripts and style sheets."""

    def __init__(self, app_names: Any = None, *args: Any, **kwargs: Any) -> None:
        self.home = Path(interfaces.__file__).parent
        self.storage = FileSystemStorage(location=self.home)
        self.storage.prefix = PREFIX  # type: ignore[attr-defined]

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return []

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
        """Yield the path of every file within the home of the interfaces, and the storage."""
        for path in sorted(self.home.glob("*/*")):
            if path.suffix in SERVED:
                yield path.relative_to(self.home).as_posix(), self.storage

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """Return the file that is served under a path; an empty list if there is none."""
        wanted = {f"{PREFIX}/{name}": name for name, _ in self.list(None)}
        if path not in wanted:
            return []
        file = self.storage.path(wanted[path])
        return [file] if find_all else file
