"""The pages for trying to judge: examples for everybody, of which nothing is stored."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.clickjacking import xframe_options_sameorigin

from annotation.interfaces.base import BadAnswer
from annotation.interfaces.registry import interface_of
from annotation.interfaces.shared.statements import side_by_side
from annotation.models import Question
from kbpo.web.http import HEADER
from kbpo.web.judging.views import raw_of, show

EXAMPLES = Path(__file__).with_name("try_examples.json")


@cache
def examples() -> list[dict[str, Any]]:
    """Return the examples: interface, payload, right answer and explanation."""
    examples: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples


def example_at(interface: str) -> int:
    """Return the number of the first example of an interface; 0 without one."""
    for number, example in enumerate(examples(), start=1):
        if example["interface"] == interface:
            return number
    return 0


def index(request: HttpRequest) -> HttpResponse:
    """Redirect to the first example."""
    return redirect("try_question", number=1)


@xframe_options_sameorigin
def question(request: HttpRequest, number: int) -> HttpResponse:
    """Return an example (GET), or the comparison with the right answer (POST); also inside frames
    of this site.
    """
    answer = _answer(request, number)
    answer[HEADER] = "frame-ancestors 'self'; form-action 'self'"
    return answer


def _answer(request: HttpRequest, number: int) -> HttpResponse:
    if not 1 <= number <= len(examples()):
        raise Http404
    example = examples()[number - 1]
    interface = interface_of(example["interface"])
    asked = Question(
        interface=example["interface"],
        payload=example["payload"],
        target_id=0,
        reward=interface.terms.reward,
        seconds=interface.terms.seconds,
    )
    context: dict[str, Any] = {
        "trying": True,
        "number": number,
        "of": len(examples()),
        "elapsed": 0,
    }
    if request.method != "POST":
        return show(request, asked, None, context)
    raw = raw_of(request.POST)
    try:
        interface.parse(asked, raw)
    except BadAnswer as bad:
        return show(request, asked, raw, context | {"error": str(bad)}, status=422)
    right = interface.parse(asked, example["right"])
    shown = {
        "beside": side_by_side(interface, asked, interface.parse(asked, raw), right),
        "why": example["why"],
    }
    return render(request, "annotation/tried.html", context | shown)
