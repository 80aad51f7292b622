"""Serves the command-line client as a wheel that pip installs from this service."""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_safe

HOME = Path(settings.BASE_DIR) / "client"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file in it: equal trees make equal bytes"""


@cache
def build_wheel() -> tuple[str, bytes]:
    """Return the name and the bytes of the wheel (PEP 427), built from `client/pyproject.toml`. The
    client is pure Python, so nothing is compiled.
    """
    pyproject = tomllib.loads((HOME / "pyproject.toml").read_text())
    project = pyproject["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    folder = f"{stem}.dist-info"
    files = dict(_modules(pyproject["tool"]["setuptools"]))
    files[f"{folder}/METADATA"] = _metadata(project)
    files[f"{folder}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: kbpo\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    scripts = [f"{name} = {where}" for name, where in project["scripts"].items()]
    files[f"{folder}/entry_points.txt"] = "\n".join(["[console_scripts]", *scripts, ""]).encode()
    record = [f"{name},sha256={_digest(text)},{len(text)}" for name, text in files.items()]
    files[f"{folder}/RECORD"] = "\n".join([*record, f"{folder}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _modules(declared: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the modules of the client's packages and their data files."""
    for package in declared["packages"]:
        home = (HOME / declared["package-dir"][package]).resolve()
        wanted = sorted(home.glob("*.py"))
        for pattern in declared["package-data"].get(package, ()):
            wanted += sorted(home.glob(pattern))
        for file in wanted:
            folder = package.replace(".", "/")
            yield f"{folder}/{file.relative_to(home).as_posix()}", file.read_bytes()


def _metadata(project: dict[str, Any]) -> bytes:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    for extra, wanted in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in wanted]
    return "\n".join([*lines, "", (HOME / project["readme"]).read_text()]).encode()


def _digest(text: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()


def install_command() -> str:
    """Return the pip command that installs the client from this service."""
    site = settings.SITE_URL.rstrip("/")
    return f"pip install {site}{reverse('client-file', args=[build_wheel()[0]])}"


@require_safe
def redirect_to_wheel(request: HttpRequest) -> HttpResponse:
    """Redirect to the wheel of this version."""
    return redirect("client-file", build_wheel()[0])


@require_safe
def download_wheel(request: HttpRequest, name: str) -> HttpResponse:
    """Return the wheel. Raises Http404 with the current address for another version."""
    current, content = build_wheel()
    if name != current:
        raise Http404(f"The client of this service is {reverse('client-file', args=[current])}.")
    return HttpResponse(content, content_type="application/zip")


urlpatterns = [
    path("client/", redirect_to_wheel, name="client"),
    path("client/<str:name>", download_wheel, name="client-file"),
]
