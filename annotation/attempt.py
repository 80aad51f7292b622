"""Try it: the real judging page on examples of our own, for anybody. Nothing is stored."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_of
from annotation.models import Question
from annotation.views import raw_of, show

EXAMPLES = Path(__file__).with_name("try_examples.json")


@cache
def examples() -> list[dict[str, Any]]:
    """The examples: interface, payload, and an explained answer that is shown afterwards."""
    found: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return found


def index(request: HttpRequest) -> HttpResponse:
    """To the first example."""
    return redirect("try_question", number=1)


def question(request: HttpRequest, number: int) -> HttpResponse:
    """An example to judge (GET), or what we would have said (POST)."""
    if not 1 <= number <= len(examples()):
        raise Http404
    example = examples()[number - 1]
    interface = interface_of(example["interface"])
    asked = Question(
        interface=example["interface"], payload=example["payload"], target_id=0, reward=interface.default_reward,
        seconds=interface.default_seconds,
    )  # fmt: skip
    context: dict[str, Any] = {"trying": True, "number": number, "of": len(examples()), "elapsed": 0}
    if request.method != "POST":
        return show(request, asked, None, context)
    raw = raw_of(request.POST)
    try:
        interface.parse(asked, raw)
    except BadAnswer as bad:
        return show(request, asked, raw, context | {"error": str(bad)}, status=422)
    return render(request, "annotation/tried.html", context | _explained(example, asked, raw))


def _explained(example: dict[str, Any], asked: Question, raw: dict[str, Any]) -> dict[str, Any]:
    """The visitor's answer beside ours."""
    page = interface_of(asked.interface).render(asked, raw)
    ours = set(example["holds"])
    choices = [one | {"ours": bool(ours & set(one["part"].split()))} for one in (*page["common"], *page["rarer"])]
    return {
        "page": page,
        "choices": [one for one in choices if one["chosen"] or one["ours"]],
        "same": all(one["chosen"] == one["ours"] for one in choices),
        "why": example["why"],
        "more": len(examples()),
    }
