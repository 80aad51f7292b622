"""Calls the requester's API, with one attempt each. Failures are distinguished by whether something
may have happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
    SSLError,
)
from django.conf import settings

from annotation.platforms.base import (
    Account,
    Advert,
    PlatformDown,
    Refused,
    UnknownOutcome,
    usable_account,
)

if TYPE_CHECKING:
    from annotation.models import HIT

NOTHING_HAPPENED = (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
    SSLError,
)
THROTTLED = (
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "RequestThrottled",
    "SlowDown",
)
MOST_RESULTS = 100
SANDBOX = "mturk-requester-sandbox."
LOOPBACK = ("127.0.0.1", "::1", "localhost")
CENT = Decimal("0.01")
FEE = Decimal("0.20")
"""The fee on rewards and bonuses for HITs with fewer than ten assignments"""
SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
MARK = "kbpo:"
"""Prefix of our token in RequesterAnnotation"""
KEYWORDS = "reading, text, judge, relations, names, news"
HIT_ID_IN_TEXT = re.compile(r"\b[A-Z0-9]{20,64}\b")


def call_operation(operation: str, **request: Any) -> dict[str, Any]:
    """Call an operation of the platform, and return its response. Raises PlatformDown if nothing
    happened, UnknownOutcome if that is unknown, and Refused.
    """
    keys = settings.MTURK_ACCESS_KEY_ID, settings.MTURK_SECRET_ACCESS_KEY
    try:
        client = _make_client(usable_endpoint().endpoint, *keys, float(settings.MTURK_TIMEOUT))
        answer: dict[str, Any] = getattr(client, xform_name(operation))(**request)
    except ClientError as error:
        raise _exception_of_error(operation, error) from error
    except NOTHING_HAPPENED as error:
        raise PlatformDown(
            f"{operation}: the platform cannot be reached ({type(error).__name__})."
        ) from error
    except BotoCoreError as error:
        raise UnknownOutcome(f"{operation}: no answer came ({type(error).__name__}).") from error
    return answer


def list_items(operation: str, name: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield all items of a list, page by page."""
    token: dict[str, Any] = {}
    while True:
        answer = call_operation(operation, MaxResults=MOST_RESULTS, **request, **token)
        yield from answer.get(name, [])
        if not answer.get("NextToken"):
            return
        token = {"NextToken": answer["NextToken"]}


def _exception_of_error(operation: str, error: ClientError) -> Exception:
    told: dict[str, Any] = error.response
    message = str(told.get("Error", {}).get("Message", ""))
    spoken = re.search(r"AWS\.MechanicalTurk\.(\w+)", f"{told.get('TurkErrorCode', '')} {message}")
    code = spoken.group(1) if spoken else str(told.get("Error", {}).get("Code", ""))
    status = int(told.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in THROTTLED or status == 429:
        return PlatformDown(f"{operation}: the platform wants fewer calls ({code}).")
    if status >= 500 or code == "ServiceFault":
        return UnknownOutcome(f"{operation}: the platform has a fault ({status}).")
    return Refused(f"{operation}: {message}", code)


@lru_cache(maxsize=4)
def _make_client(endpoint: str, key: str, secret: str, timeout: float) -> Any:
    config = Config(
        connect_timeout=timeout,
        read_timeout=timeout,
        retries={"total_max_attempts": 1, "mode": "standard"},
        parameter_validation=True,
    )
    # No retries of the SDK's own: every repeat here is a decision of ours.
    return boto3.session.Session().client(
        "mturk",
        endpoint_url=endpoint,
        region_name="us-east-1",
        config=config,
        aws_access_key_id=key or None,
        aws_secret_access_key=secret or None,
    )


def account() -> Account | None:
    """Return the configured endpoint; None if there is none."""
    endpoint = settings.MTURK_ENDPOINT_URL
    if not endpoint:
        return None
    host = urlsplit(endpoint).hostname or ""
    real = host not in LOOPBACK and not host.startswith(SANDBOX)
    trouble = ""
    if real and not settings.REAL_MONEY:
        trouble = (
            f"{host} pays with real money, but REAL_MONEY is not true: nothing is published"
            " or paid there."
        )
    elif settings.REAL_MONEY and not real:
        trouble = (
            f"REAL_MONEY is true, but {host} is a place for trials: nothing is published"
            " or paid there."
        )
    elif real and not endpoint.startswith("https://"):
        trouble = f"{host} must be reached over https: nothing is published there."
    state = f"Real money moves at {host}." if real else f"Play money, at {host}."
    return Account(endpoint, real, not trouble, trouble or state)


def refuse_other_endpoint(endpoint: str, subject: str) -> None:
    """Raise PlatformDown, with a sentence, for an object of another endpoint than the configured
    one. So work in a sandbox is never paid with real money, and the books of two endpoints are
    never mixed.
    """
    now = usable_endpoint().endpoint
    if endpoint != now:
        where = f"was made at {endpoint}" if endpoint else "has no recorded endpoint"
        raise PlatformDown(
            f"{subject} {where}, and {now} is set (MTURK_ENDPOINT_URL):"
            " nothing is done with it here."
        )


def usable_endpoint() -> Account:
    """Return the endpoint. Raises PlatformDown with a sentence if it cannot be used."""
    return usable_account(account())


def amount_text(amount: Decimal) -> str:
    """Return an amount in the API's format. Raises ValueError for one that is not positive or finer
    than a cent.
    """
    if not isinstance(amount, Decimal) or amount <= 0 or amount != amount.quantize(CENT):
        raise ValueError(f"{amount!r} is no amount in dollars and whole cents.")
    return f"{amount:.2f}"


def external_question_xml(path: str) -> str:
    """Return the question of a HIT in the API's format: the address of our page, with `&` escaped;
    the frame uses the full height.
    """
    address = escape(settings.SITE_URL.rstrip("/") + path, {'"': "&quot;"})
    return (
        f'<ExternalQuestion xmlns="{SCHEMA}"><ExternalURL>{address}</ExternalURL>'
        "<FrameHeight>0</FrameHeight></ExternalQuestion>"
    )


def existing_hit_id(refusal: Refused) -> str:
    """Return the id of the HIT that was created with the same token, from the platform's refusal;
    empty if the refusal names none.
    """
    named = HIT_ID_IN_TEXT.search(str(refusal).partition(":")[2])
    return named.group(0) if named is not None else ""


def hit_annotation(hit: HIT) -> str:
    """Return the annotation with which a HIT is published; it contains our token."""
    return MARK + hit.token


def token_in_annotation(annotation: str) -> str:
    """Return our token in an annotation; empty if the HIT is not ours."""
    return annotation.removeprefix(MARK) if annotation.startswith(MARK) else ""


def title_and_description(advert: Advert) -> tuple[str, str]:
    """Return the title and the description of a HIT, as workers see them in the list."""
    about = "one question" if advert.questions == 1 else f"{advert.questions} questions"
    minutes = max(1, round(advert.work_seconds / 60))
    description = f"{advert.title}: {about}, about {minutes} min. Flags are paid like answers."
    return advert.title, f"{description} {advert.before}".strip()
