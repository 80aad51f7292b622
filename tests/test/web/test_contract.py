"""The API keeps what its schema says: whatever is sent, with a token and without, no answer is a
fault, and none is of a status, a kind or a form that the schema does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import strategies
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from undone import undone

from kbpo.accounts.models import Token
from kbpo.submissions.models import Prediction, Submission
from tests.conftest import Toy

pytestmark = pytest.mark.django_db
FEW, MANY = 4, 150
"""Requests of each operation, mode and person"""
ADDRESSES = 40
"""Of them where only the address can vary: it is a number or a name,
and one is as good as another
"""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
PEOPLE = {"nobody": "", "its team": "Rosa", "admin": "Admin"}
BY_DAY = ("its team", GenerationMode.NEGATIVE)


@pytest.fixture
def secrets(toy: Toy) -> dict[str, str]:
    """Who asks -> the token that is sent."""
    return {
        who: Token.create_with_secret(toy.users[name], "contract")[1] if name else ""
        for who, name in PEOPLE.items()
    }


@pytest.fixture
def schema(judged: Submission) -> Iterator[Any]:
    """The schema as the service itself gives it; no request ends the transaction of the test."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    found = schemathesis.openapi.from_wsgi("/api/schema/?format=json", WSGIHandler())
    found.config.generation.update(
        allow_extra_parameters=False,  # headers that are not known are ignored, and may be
        with_security_parameters=False,  # the token is the one that is sent here
    )
    yield found
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("who", "mode"),
    [
        # Bad requests that a team may send meet all that the others meet, and more.
        pytest.param(who, mode, marks=[] if (who, mode) == BY_DAY else pytest.mark.soak)
        for who in PEOPLE
        for mode in GenerationMode
    ],
)
def test_no_request_finds_a_fault_or_an_answer_that_the_schema_does_not_know(
    who: str,
    mode: GenerationMode,
    schema: Any,
    secrets: dict[str, str],
    judged: Submission,
    toy: Toy,
    request: pytest.FixtureRequest,
) -> None:
    known = {
        "slug": judged.track.slug,
        "id": judged.pk,
        "prediction": Prediction.objects.filter(submission=judged).order_by("pk")[0].pk,
        "key": judged.track.corpus.documents.order_by("pk")[0].key,
    }
    headers = {"Authorization": f"Token {secrets[who]}"} if secrets[who] else {}
    seed = request.config.getoption("--seed") or "0"
    n = MANY if request.config.getoption("--tier") == "soak" else FEW
    violations, asked = [], 0
    for operation in (result.ok() for result in schema.get_all_operations()):
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue  # there is nothing that could be wrong
        asker = Asker(operation, mode, known, headers)
        has_content = bool(operation.body or operation.query)
        try:
            asker.ask(n if has_content else min(n, ADDRESSES), seed)
        except (Exception, FailureGroup) as violation:
            said = f"{operation.label}: {_text(violation)}"
            violations.append(f"{said} What was sent: {asker.last[:500]}")
        asked += asker.asked
    assert not violations, "\n\n".join(violations)
    assert asked > 5 * n, "requests are sent"


@dataclass
class Asker:
    """Sends requests of one operation, and holds each answer to the schema."""

    operation: Any
    mode: GenerationMode
    known: dict[str, Any]
    """Names of parts of an address -> what exists"""
    headers: dict[str, str]
    asked: int = 0
    last: str = ""
    """The last request that was sent"""
    sent: set[str] = field(default_factory=set)
    """What was sent: the world is the same each time, so that it would be answered alike again"""

    def ask(self, n: int, seed: str) -> None:
        """Raises what schemathesis raises for the first answer that breaks the schema."""
        settings = hypothesis.settings(
            max_examples=n,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        cases = self.operation.as_strategy(generation_mode=self.mode)
        test = hypothesis.given(cases, strategies.booleans())(self._ask)
        hypothesis.seed(f"{seed}/{self.operation.label}")(settings(test))()

    def _ask(self, case: Any, is_known: bool) -> None:
        path = case.meta.components.get(ParameterLocation.PATH)
        if is_known and (path is None or path.mode is GenerationMode.POSITIVE):
            case.path_parameters.update({name: self.known[name] for name in case.path_parameters})
        request = repr((case.formatted_path, case.query, case.body, case.media_type, case.headers))
        if request in self.sent:
            return
        self.sent.add(request)
        self.last = request
        cache.clear()  # or the limit of requests a minute would be all that is seen
        self.asked += 1
        with undone():
            answer = case.call(headers=self.headers)
        checks = CHECKS
        if case.media_type not in (None, "application/json"):
            # Any bytes are a form, be it one without a field that is known.
            checks = [check for check in CHECKS if check is not negative_data_rejection]
        case.validate_response(answer, checks=checks, headers=self.headers)


def _text(violation: BaseException) -> str:
    """What schemathesis says of an answer: each failure, and how to send the request again."""
    said = getattr(violation, "exceptions", [violation])
    return " ".join(str(one) for one in said)[:2000]
