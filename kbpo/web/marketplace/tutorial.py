"""The tutorial of a marketplace worker who may accept no HIT before it: on a page of its own, whose
address is the key.

Forms and sentences are those of the frame (`ready.py`); no HIT is in hand, and no cookie is
read or set.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from annotation.marketplace.admit import standing
from annotation.models import Worker
from annotation.platforms import proof
from kbpo.web.marketplace.ready import Door, take_step, what_stands_before

PASSED = (
    "The marketplace gives you our qualification within some minutes; then you can accept our HITs "
    "there. You can close this page."
)


@never_cache
@csrf_exempt  # no cookie says who writes: the address does
@require_http_methods(["GET", "HEAD", "POST"])
def learn(request: HttpRequest, signed: str) -> HttpResponse:
    """Return the terms, the tutorial, and how it ended."""
    worker = get_object_or_404(Worker, handle=proof.worker_of_page(signed, proof.LEARN_SALT) or "-")
    response = _page(request, worker)
    response["Referrer-Policy"] = "no-referrer"
    return response


def _page(request: HttpRequest, worker: Worker) -> HttpResponse:
    state = standing(worker)
    if state.lesson is not None:
        door = Door(worker, state.lesson)
        if request.method == "POST" and (page := take_step(request, door)) is not None:
            return page
        state = standing(worker)
    if state.lesson is not None:
        return what_stands_before(request, Door(worker, state.lesson))
    context = {
        "title": "You have passed" if state.held else "No work for you",
        "sentence": PASSED if state.held else state.why,
    }
    return render(request, "annotation/learned.html", context)
