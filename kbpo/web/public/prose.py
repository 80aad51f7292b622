"""Pages of text: about, help, methods, and the API, generated from its schema."""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView
from drf_spectacular.generators import SchemaGenerator

from kbpo.accounts.models import Token
from kbpo.money.models import Price
from kbpo.submissions.models import Submission
from kbpo.web.public.people import TOKEN_DAYS

STATES = {
    "received": "The file is being read.",
    "read": "Its sample and price are being planned.",
    "planned": "Its page shows the price. Nothing is spent yet.",
    "confirmed": "The price is reserved. The sample is being drawn.",
    "judging": "People answer. Scores are provisional.",
    "scored": "The sample is judged. More judgments can be ordered.",
    "refused": "Nothing in the file is usable. It cost nothing.",
    "expired": "The plan was not confirmed. It cost nothing.",
    "withdrawn": "You withdrew it; it is off the board.",
    "failed": "The service failed. Its page has a Retry button.",
}
"""Status of a submission -> description for its owner"""


@require_safe
def show_about(request: HttpRequest) -> HttpResponse:
    return render(request, "prose/about.html")


@require_safe
def show_help(request: HttpRequest) -> HttpResponse:
    """Return the help page: roles, formats, statuses, prices, questions."""
    prices = Price.objects.filter(track__status="open").select_related("track")
    context = {
        "states": [(label, STATES[status]) for status, label in Submission.Status.choices],
        "days_to_confirm": Submission.DEADLINES["planned"][0].days,
        "prices": prices.order_by("track__name", "interface"),
        "upload_mb": settings.UPLOAD_LIMIT_MB,
        "unpacked_mb": settings.UNPACKED_LIMIT_MB,
        "relations": settings.RELATION_LIMIT,
        "lease_minutes": settings.LEASE_MINUTES,
    }
    return render(request, "prose/help.html", context)


@require_safe
def show_methods(request: HttpRequest) -> HttpResponse:
    return render(request, "prose/methods.html")


@require_safe
def show_api(request: HttpRequest) -> HttpResponse:
    site = settings.SITE_URL.rstrip("/")
    return render(
        request,
        "prose/api.html",
        {
            "endpoints": list_endpoints(),
            "site": site,
            "schema": reverse("api-schema"),
            "install_command": install_command(),
            "scopes": Token.Scope.choices,
            "days": TOKEN_DAYS,
            "rate": settings.API_RATE,
            "rate_of_strangers": settings.API_RATE_OF_STRANGERS,
        },
    )


RUN_ADDRESSES = "/api/submissions/"


@dataclass(frozen=True)
class Endpoint:
    """One method of an API address, from the schema."""

    method: str
    address: str
    says: str
    public: bool
    """Whether it needs no token; the description states who may see a run"""
    fields: tuple[tuple[str, bool], ...]
    """Names of the request's fields, and whether they are required"""
    query: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Return the anchor of the endpoint on the page."""
        address = self.address.strip("/").replace("/", "-").replace("{", "").replace("}", "")
        return f"{self.method}-{address}".lower()


@cache
def list_endpoints() -> tuple[Endpoint, ...]:
    """Return all endpoints of the API from its schema, in the order of addresses."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    forms = schema.get("components", {}).get("schemas", {})
    return tuple(
        _read_endpoint(method, address, operation, forms)
        for address, operations in sorted(schema["paths"].items())
        for method, operation in operations.items()
    )


def _read_endpoint(
    method: str, address: str, operation: dict[str, Any], forms: dict[str, Any]
) -> Endpoint:
    bodies: dict[str, Any] = operation.get("requestBody", {}).get("content", {})
    content = next(iter(bodies), "")
    shape = (
        forms.get(bodies[content]["schema"].get("$ref", "").rpartition("/")[2], {})
        if content
        else {}
    )
    required = set(shape.get("required", ()))
    parameters = operation.get("parameters", [])
    return Endpoint(
        method=method.upper(),
        address=address,
        says=" ".join(operation.get("description", "").split()),
        public=not all(operation.get("security", [{}])) and not address.startswith(RUN_ADDRESSES),
        fields=tuple((name, name in required) for name in shape.get("properties", {})),
        query=tuple(parameter["name"] for parameter in parameters if parameter["in"] == "query"),
    )


HOME = Path(settings.BASE_DIR) / "client"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the wheel, so that equal trees give equal bytes"""


@cache
def build_wheel() -> tuple[str, bytes]:
    """Return the name and the bytes of the wheel (PEP 427), built from `client/pyproject.toml`. The
    client is pure Python, so nothing is compiled.
    """
    pyproject = tomllib.loads((HOME / "pyproject.toml").read_text())
    project = pyproject["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    folder = f"{stem}.dist-info"
    files = dict(_module_files(pyproject["tool"]["setuptools"]))
    files[f"{folder}/METADATA"] = _wheel_metadata(project)
    files[f"{folder}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: kbpo\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    scripts = [f"{name} = {where}" for name, where in project["scripts"].items()]
    files[f"{folder}/entry_points.txt"] = "\n".join(["[console_scripts]", *scripts, ""]).encode()
    record = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(text)}")
    files[f"{folder}/RECORD"] = "\n".join([*record, f"{folder}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _module_files(declared: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the modules of the client's packages and their data files."""
    for package in declared["packages"]:
        home = (HOME / declared["package-dir"][package]).resolve()
        wanted = sorted(home.glob("*.py"))
        for pattern in declared["package-data"].get(package, ()):
            wanted += sorted(home.glob(pattern))
        for file in wanted:
            folder = package.replace(".", "/")
            yield f"{folder}/{file.relative_to(home).as_posix()}", file.read_bytes()


def _wheel_metadata(project: dict[str, Any]) -> bytes:
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
    path("about/", show_about, name="about"),
    path("help/", show_help, name="help"),
    path("methods/", show_methods, name="methods"),
    path("api/", show_api, name="api"),
    path("try/", RedirectView.as_view(pattern_name="try"), name="try-it"),
    path("client/", redirect_to_wheel, name="client"),
    path("client/<str:name>", download_wheel, name="client-file"),
]
