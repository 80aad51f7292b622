"""How fluid the entities page is on a long document: milliseconds from an action to the painted
frame, in Chromium.

usage: python benchmarks/mark_long_document.py [TOKENS [MENTIONS]]        (default: 3000 300)

The page, its style sheets and scripts are the real ones, served without a database; the document is
generated. 90 % of the mentions are there from the start, as after a reload; the rest are marked by
keys and mouse. `frame` is the time until the next frame is painted, `script` what of it the page's
own code takes, `cpu` how long the page's main thread really ran for it: unlike the others it does
not count what else the machine is doing.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
TYPES = ["PER", "ORG", "GPE", "DATE"]
MEASURE = """async (action) => {
  const keys = (key, shift) => document.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: shift, bubbles: true, cancelable: true }));
  const begin = performance.now();
  for (const [key, shift] of action) keys(key, shift);
  const script = performance.now() - begin;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return [script, performance.now() - begin];
}"""  # noqa: E501


def document(
    n_tokens: int, n_mentions: int, seed: int = 1
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A payload of generated words in sentences of about 23, and mentions of about a third as many
    entities.
    """
    rng = random.Random(seed)
    words = [
        "".join(rng.choice("aeioubdfglmnrst") for _ in range(rng.randint(2, 9))) for _ in range(800)
    ]
    names = [
        "".join(rng.choice("aeioubdfglmnrst") for _ in range(rng.randint(4, 9))).capitalize()
        for _ in range(300)
    ]
    begins = sorted(rng.sample(range(0, n_tokens - 3, 4), n_mentions))
    entities = [
        (rng.choice(TYPES[:3]), rng.sample(names, rng.randint(1, 3)))
        for _ in range(n_mentions // 3)
    ]
    chosen = {at: rng.choice(entities) for at in begins}
    tokens: list[str] = []
    marked: list[tuple[int, int, str, str]] = []
    while len(tokens) < n_tokens:
        at = len(tokens)
        if at in chosen:
            kind, called = chosen[at]
            tokens += called
            marked.append((at, at + len(called), kind, " ".join(called)))
        else:
            tokens.append("." if at % 23 == 22 else rng.choice(words))
    text, spans = "", []
    for word in tokens:
        text += "" if word == "." or not text else " "
        spans.append([len(text), len(text) + len(word)])
        text += word
    ends = [at + 1 for at, word in enumerate(tokens) if word == "."] or [len(tokens)]
    sentences = [
        [spans[a][0], spans[b - 1][1]]
        for a, b in zip([0, *ends], [*ends, len(tokens)], strict=True)
        if a < b
    ]
    first: dict[str, list[int]] = {}
    mentions: list[dict[str, Any]] = []
    for a, b, kind, name in marked:
        span = [spans[a][0], spans[b - 1][1]]
        mentions.append(
            {"span": span, "type": kind, "canonical": first.setdefault(f"{kind} {name}", span)}
        )
    payload = {
        "document": {"key": "long", "title": "A long story", "date": "2013-04-02"},
        "text": text,
        "tokens": spans,
        "sentences": sentences,
        "types": [
            {"name": t, "description": t, "value": "date" if t == "DATE" else None} for t in TYPES
        ],
    }
    return payload, mentions


def page_of(payload: dict[str, Any], mentions: list[dict[str, Any]]) -> str:
    """The page as its annotator gets it, with these mentions marked."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
    os.environ.setdefault("DATABASE_URL", "postgres://nobody@localhost/none")
    os.environ.setdefault("REDIS_URL", "redis://localhost")
    django.setup()
    from django.contrib.auth.models import AnonymousUser
    from django.template.loader import render_to_string
    from django.test import RequestFactory

    from annotation.interfaces.entities.interface import Entities
    from annotation.models import Question

    numbers: dict[str, int] = {}
    rows = [
        one | {"entity": numbers.setdefault(str(one["canonical"]), len(numbers) + 1)}
        for one in mentions
    ]
    interface = Entities()
    question = Question(interface="entities", payload=payload, target_id=0)
    page = interface.render(question, {"mentions": [json.dumps(rows)], "read": ["1"]})
    request = RequestFactory().get("/annotate/")
    request.user = AnonymousUser()
    context = {
        "page": page,
        "script": interface.script,
        "reward": 22.5,
        "seconds": 6750,
        "trying": True,
    }
    return render_to_string("interfaces/entities/page.html", context, request=request)


@contextmanager
def served(html: str) -> Iterator[str]:
    """The address of a server that has this page, and the static files beside it."""

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/static/"):
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(html.encode())

        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(ROOT))

        def log_message(self, *args: Any) -> None:
            """Nothing: the table is all that is printed."""

    Handler.extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def times(page: Any, mentions: list[dict[str, Any]], rest: int) -> dict[str, list[list[float]]]:
    """Action -> [script, frame, cpu] in milliseconds, each time."""
    right, extend = [["ArrowRight", False]], [["ArrowRight", True]]
    found: dict[str, list[list[float]]] = {}

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def ran() -> float:
        metrics = {
            one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]
        }
        return 1000 * float(metrics["TaskDuration"])

    def act(name: str, keys: list[list[Any]]) -> None:
        before = ran()
        measured = page.evaluate(MEASURE, keys)
        found.setdefault(name, []).append([*measured, ran() - before])

    for _ in range(rest):
        page.evaluate(MEASURE, [["j", False]])  # to the next unmarked name
        act("mark a name", [["p", False]])
        act("say that it is somebody new", [["0", False]])
        act("move by a word", right)
        act("extend by a word", extend)
        act("undo", [["z", False]])
        act("redo", [["y", False]])
        act("next unmarked name", [["j", False]])
    for _ in range(5):
        act("move through 50 words, held down", right * 50)
    return found


def main(n_tokens: int = 3000, n_mentions: int = 300) -> None:
    from playwright.sync_api import sync_playwright

    payload, mentions = document(n_tokens, n_mentions)
    rest = max(1, len(mentions) // 10)
    random.Random(2).shuffle(mentions)
    given = {str(one["canonical"]) for one in mentions[rest:]}
    there = {str(one["span"]) for one in mentions[rest:]}
    start = [
        one if str(one["canonical"]) in there else one | {"canonical": one["span"]}
        for one in mentions[rest:]
    ]
    print(
        f"{len(payload['tokens']):,} tokens, {len(start):,} of {len(mentions):,} mentions marked,"
        f" {len(given)} entities"
    )
    with served(page_of(payload, start)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        load = page.evaluate("performance.now()")
        found = times(page, mentions, rest)
        browser.close()
    print(f"ready {load:.0f} ms after the page was asked for\n")
    print(
        f"{'action':36} {'times':>5} {'cpu':>8} {'95 %':>8} {'script':>8} {'frame':>8}   (medians"
        " in ms; 95 % of cpu)"
    )
    for name, rows in found.items():
        script, frame, cpu = (float(np.median(column)) for column in np.array(rows).T)
        most = float(np.percentile(np.array(rows)[:, 2], 95))
        print(f"{name:36} {len(rows):5} {cpu:8.1f} {most:8.1f} {script:8.1f} {frame:8.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
