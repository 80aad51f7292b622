"""The local endpoint takes what botocore’s model of the service knows, and refuses the rest as the
service would.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from mturk_world import Turk

from rehearsal.marketplace import model

SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=toy",
    "Content-Type": "application/x-amz-json-1.1",
}


def call(turk: Turk, operation: str, said: Any) -> tuple[int, dict[str, Any]]:
    """The answer to a request that boto3 would not have sent."""
    headers = SIGNED | {"X-Amz-Target": model.TARGET + operation}
    try:
        request = urllib.request.Request(turk.url, json.dumps(said).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())


@pytest.mark.parametrize(
    ("operation", "said", "sentence"),
    [
        ("GetHIT", {"HITId": "3A", "Colour": "red"}, "Unknown parameter Colour."),
        ("ListReviewableHITs", {"Status": "Lost"}, "'Lost' is none of Reviewable, Reviewing."),
        (
            "ListAssignmentsForHIT",
            {"HITId": "3A", "AssignmentStatuses": ["Lost"]},
            "'Lost' is none of Submitted",
        ),
        ("GetHIT", {}, 'Missing required parameter in input: "HITId"'),
        ("GetHIT", ["3A"], "The request is no JSON object."),
        ("PaintHIT", {}, "There is no operation PaintHIT."),
    ],
)
def test_what_the_model_does_not_know_is_refused(
    market: Turk, operation: str, said: Any, sentence: str
) -> None:
    status, told = call(market, operation, said)
    assert (status, told["__type"]) == (400, "ValidationException")
    assert sentence in told["Message"]
    assert market.rows("SELECT * FROM call") == []


def test_what_it_knows_is_done(market: Turk) -> None:
    status, told = call(market, "ListReviewableHITs", {"Status": "Reviewing"})
    assert (status, told["NumResults"]) == (200, 0)
