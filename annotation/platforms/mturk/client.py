"""Calls of the requester's API: one attempt each; failures are told apart by whether something may
have happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

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

from annotation.platforms.base import PlatformDown, Refused, UnknownOutcome
from annotation.platforms.mturk.account import usable

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


def call(operation: str, **request: Any) -> dict[str, Any]:
    """Return what the platform answers. Raises PlatformDown if nothing happened, UnknownOutcome if
    nobody knows, Refused.
    """
    try:
        answer: dict[str, Any] = getattr(_client(usable().endpoint), xform_name(operation))(
            **request
        )
    except ClientError as error:
        raise _meaning(operation, error) from error
    except NOTHING_HAPPENED as error:
        raise PlatformDown(
            f"{operation}: the platform cannot be reached ({type(error).__name__})."
        ) from error
    except BotoCoreError as error:
        raise UnknownOutcome(f"{operation}: no answer came ({type(error).__name__}).") from error
    return answer


def pages(operation: str, name: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Everything that a list holds, page by page, under the name of its member."""
    token: dict[str, Any] = {}
    while True:
        answer = call(operation, MaxResults=MOST_RESULTS, **request, **token)
        yield from answer.get(name, [])
        if not answer.get("NextToken"):
            return
        token = {"NextToken": answer["NextToken"]}


def _meaning(operation: str, error: ClientError) -> Exception:
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


def _client(endpoint: str) -> Any:
    keys = settings.MTURK_ACCESS_KEY_ID, settings.MTURK_SECRET_ACCESS_KEY
    return _make_client(endpoint, *keys, float(settings.MTURK_TIMEOUT))
