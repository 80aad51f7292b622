"""A minimal browser for simulated workers: pages, forms and cookies over one persistent
connection.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urljoin, urlsplit

REDIRECTS = (301, 302, 303, 307, 308)


@dataclass
class Form:
    """A form of a page: its address, data attributes, and fields with their values."""

    id: str
    action: str
    data: dict[str, str]
    fields: list[tuple[str, str, bool]] = field(
        default_factory=list
    )  # name, value, whether it is sent as it stands
    labels: dict[tuple[str, str], str] = field(default_factory=dict)
    """(name, value) of a field -> the words of its label"""

    def form_values(self) -> dict[str, list[str]]:
        """Return the fields as they would be sent unchanged."""
        sent: dict[str, list[str]] = {}
        for name, value, chosen in self.fields:
            if chosen:
                sent.setdefault(name, []).append(value)
        return sent

    def options(self, name: str) -> list[str]:
        """Return the values of a group of boxes or buttons."""
        return [value for field, value, _ in self.fields if field == name]

    def offers(self, name: str, value: object) -> bool:
        """Return whether a group of boxes or buttons has this value."""
        return str(value) in self.options(name)


@dataclass
class Page:
    """A fetched page with its forms."""

    status: int
    path: str
    text: str
    forms: list[Form]
    data: dict[str, str] = field(default_factory=dict)
    """Contents of data scripts, by id"""

    def has_form(self, id: str) -> bool:
        return any(form.id == id for form in self.forms)

    def form(self, id: str = "") -> Form:
        """Return the form with an id; without one, the last form that posts. Raises LookupError if
        there is none.
        """
        matching = [form for form in self.forms if form.id == id or not id]
        if not matching:
            raise LookupError(f"{self.path} ({self.status}) has no form {id!r}")
        return matching[-1]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.current: Form | None = None
        self.data: dict[str, str] = {}
        self.reading = ""
        self.label: tuple[list[str], list[tuple[str, str]]] | None = None
        """Words of the current label, and the fields in it"""
        self.writing: tuple[str, str] | None = None
        """The current text area: its name, and its text so far"""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        if tag == "form" and have.get("method", "").lower() == "post":
            data = {name[5:]: value for name, value in have.items() if name.startswith("data-")}
            self.current = Form(have.get("id", ""), have.get("action", ""), data)
            self.forms.append(self.current)
        elif tag == "label":
            self.label = ([], [])
        elif tag == "script" and have.get("type") == "application/json":
            self.reading = have.get("id", "")
        elif tag == "textarea" and self.current is not None and "name" in have:
            self.writing = have["name"], ""
        elif tag == "input" and self.current is not None and "name" in have:
            box = have.get("type") in ("radio", "checkbox")
            value = have.get("value", "on" if box else "")
            self.current.fields.append((have["name"], value, "checked" in have if box else True))
            if self.label is not None:
                self.label[1].append((have["name"], value))

    def handle_data(self, data: str) -> None:
        if self.reading:
            self.data[self.reading] = self.data.get(self.reading, "") + data
        elif self.label is not None:
            self.label[0].append(data)
        if self.writing is not None:
            self.writing = self.writing[0], self.writing[1] + data

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.reading = ""
        if tag == "label" and self.label is not None:
            if self.current is not None:
                words = " ".join("".join(self.label[0]).split())
                self.current.labels |= dict.fromkeys(self.label[1], words)
            self.label = None
        if tag == "textarea" and self.writing is not None and self.current is not None:
            name, text = self.writing
            # As a browser does: a line break right after the tag is not part of the text.
            self.current.fields.append((name, text.removeprefix("\n"), True))
            self.writing = None
        if tag == "form":
            self.current = None


class Browser:
    """Fetches pages with cookies, follows redirects, submits forms, over one connection."""

    def __init__(self, base_url: str, timeout: float = 30.0) -> None:
        parts = urlsplit(base_url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self.base = base_url.rstrip("/")
        self.connection = kind(parts.netloc, timeout=timeout)
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> Page:
        return self._fetch("GET", path, None)

    def submit(self, form: Form, values: dict[str, list[str]]) -> Page:
        """Return the page that a form leads to."""
        return self._fetch("POST", form.action, urlencode(values, doseq=True))

    def send(self, form: Form, values: dict[str, list[str]]) -> None:
        """Submit a form without reading the page that it leads to."""
        self._request("POST", form.action, urlencode(values, doseq=True))

    def close(self) -> None:
        self.connection.close()

    def _fetch(self, method: str, path: str, body: str | None) -> Page:
        for _ in range(6):
            status, location, text = self._request(method, path, body)
            if status not in REDIRECTS:
                reader = _Reader()
                reader.feed(text)
                for form in reader.forms:
                    form.action = _path_of_url(urljoin(self.base + path, form.action or path))
                return Page(status, path, text, reader.forms, reader.data)
            method, body, path = "GET", None, _path_of_url(urljoin(self.base + path, location))
        raise ConnectionError(f"{path} redirects too often")

    def _request(self, method: str, path: str, body: str | None) -> tuple[int, str, str]:
        try:
            return self._send_request(method, path, body)
        except (
            http.client.HTTPException,
            ConnectionError,
        ):  # the server closed the connection that we kept
            self.connection.close()
            return self._send_request(method, path, body)

    def _send_request(self, method: str, path: str, body: str | None) -> tuple[int, str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "Referer": self.base + path}
        if body is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.base}
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                self.cookies |= {key: morsel.value for key, morsel in SimpleCookie(value).items()}
        if response.status >= 500:
            raise RuntimeError(f"{method} {path} answered {response.status}")
        return response.status, response.getheader("Location", ""), text


def _path_of_url(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")
