"""The Django app of the web: its system checks, and the static files of interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage, Tags, Warning, register
from django.core.files.storage import FileSystemStorage

from annotation import interfaces
from kbpo.releases.parquet import pyarrow_version


@register(Tags.security, deploy=True)
def check_server(app_configs: Any, **kwargs: Any) -> list[Warning]:
    """Return warnings about settings that are unsafe on a server, and about releases without
    Parquet.
    """
    warnings = []
    if any(host.startswith(("*", ".")) for host in settings.ALLOWED_HOSTS):
        hint = "Name the hosts: with a wildcard visitors decide where links in mails lead."
        warnings.append(Warning("ALLOWED_HOSTS has a wildcard.", hint=hint, id="kbpo.W001"))
    if not settings.SITE_URL.startswith("https://"):
        hint = "Passwords, tokens and workers' answers travel to it; put a proxy with TLS in front."
        warnings.append(Warning("SITE_URL begins with http://.", hint=hint, id="kbpo.W002"))
    if not settings.PROXIES:
        hint = "Behind a proxy all visitors then have its address, and share one limit of log-ins."
        warnings.append(Warning("PROXIES is 0.", hint=hint, id="kbpo.W003"))
    if pyarrow_version() is None:
        hint = "pip install -r requirements-parquet.txt"
        sentence = "pyarrow is not installed: releases will be JSON Lines alone, without Parquet."
        warnings.append(Warning(sentence, hint=hint, id="kbpo.W004"))
    return warnings


PREFIX = "interfaces"
SERVED = (".js", ".css")


class InterfaceFinder(BaseFinder):
    """Finds the static files of interfaces under `interfaces/<name>/<file>`."""

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


class WebConfig(AppConfig):
    name = "kbpo.web"
