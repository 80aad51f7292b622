"""What you are told, by which ways, over the API; and your webhooks."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from kbpo.accounts.models import EVENTS, Delivery, User, Webhook
from kbpo.accounts.preferences import (
    LONGEST,
    MOST,
    TESTS,
    Ways,
    add_webhook,
    choose,
    send_test,
    ways_of,
)
from kbpo.web.api.answers import declined, page_of_list
from kbpo.web.api.said import Said, read
from kbpo.web.api.submissions import PAGING, page_of
from kbpo.web.api.view import APIView


def _events() -> serializers.ChoiceField:
    """Return the name of an event; one that there is not is answered by those that there are."""
    sentence = f"“{{input}}” is not one of {', '.join(EVENTS)}."
    return serializers.ChoiceField(list(EVENTS), error_messages={"invalid_choice": sentence})


class WaysForm(Said):
    """By which ways you are told of what; what is left out stays as it is."""

    by_mail = serializers.ListField(
        child=_events(),
        required=False,
        help_text="The events that you are told of by mail: these and no others",
    )
    by_webhook = serializers.ListField(
        child=_events(),
        required=False,
        help_text="The events that your webhooks are called for: these and no others",
    )


class Notices(APIView):
    """What you are told, and by which ways: by mail, by your webhooks."""

    parser_classes = [JSONParser]

    @extend_schema(operation_id="get_notices", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """By which ways you are told of every kind of event, and where mail goes."""
        return Response(_preferences(cast(User, request.user)))

    @extend_schema(operation_id="choose_notices", request=WaysForm, responses=OpenApiTypes.OBJECT)
    def patch(self, request: Request) -> Response:
        """Choose of which events you are told by mail, and for which your webhooks are called. What
        is not sent stays as it is.
        """
        user, cleaned = cast(User, request.user), read(WaysForm, request)
        now = ways_of(user)
        choose(
            user,
            by_mail=cleaned.get("by_mail", [way.name for way in now if way.by_mail]),
            by_call=cleaned.get("by_webhook", [way.name for way in now if way.by_call]),
        )
        return Response(_preferences(user))


def _preferences(user: User) -> dict[str, Any]:
    return {"email": user.email, "events": [_way(way) for way in ways_of(user)]}


def _way(way: Ways) -> dict[str, Any]:
    return {
        "event": way.name,
        "when": way.words,
        "by_mail": way.by_mail,
        "by_webhook": way.by_call,
    }


class Sent(APIView):
    """The mails and calls that told you of something within thirty days, the latest first, and what
    came of each. A mail that is `printed` was not sent: the site sends none, and wrote it to its
    log.
    """

    @extend_schema(operation_id="list_sent", parameters=PAGING, responses={200: page_of_list()})
    def get(self, request: Request) -> Response:
        deliveries = cast(User, request.user).deliveries.select_related("hook").order_by("-pk")
        pages, page = page_of(deliveries, request, self)
        return pages.get_paginated_response([_sent(row) for row in page])


def _sent(row: Delivery) -> dict[str, Any]:
    return {
        "id": row.pk,
        "event": row.event,
        "subject": row.body.get("subject", ""),
        "webhook": row.hook_id,
        "to": row.hook.url if row.hook else row.address,
        "status": row.status,
        "reason": row.reason,
        "attempts": row.attempts,
        "answered": row.answered,
        "made_at": row.made_at,
    }


class WebhookForm(Said):
    """The address that is called."""

    url = serializers.CharField(max_length=LONGEST, help_text="Of the public network")


class Webhooks(APIView):
    """Your webhooks: addresses that are called with POST and JSON,
    signed, when something happens.
    """

    @extend_schema(operation_id="list_webhooks", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Your webhooks, and how many you may have. Their secrets stand on your page of notices."""
        hooks = cast(User, request.user).webhooks.order_by("pk")
        return Response({"most": MOST, "webhooks": [_hook(row) for row in hooks]})

    @extend_schema(
        operation_id="add_webhook",
        request=WebhookForm,
        responses={201: OpenApiTypes.OBJECT, **declined(409)},
    )
    def post(self, request: Request) -> Response:
        """Add a webhook. The answer has its secret, with which calls are signed: the header
        X-KBPO-Signature reads t=TIME,v1=HEX, where HEX is the HMAC-SHA256 of TIME, a full stop and
        the body.
        """
        said = read(WebhookForm, request)
        hook = add_webhook(cast(User, request.user), said["url"])
        return Response(_hook(hook) | {"secret": hook.secret}, status=201)


class WebhookDetail(APIView):
    """A webhook of yours."""

    @extend_schema(operation_id="remove_webhook", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a webhook of yours, with the calls that wait for it."""
        _own(request, pk).delete()
        return Response(status=204)


class WebhookTest(APIView):
    """Call a webhook of yours for a test. What came of it stands among what was sent."""

    @extend_schema(operation_id="test_webhook", request=None, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request, pk: int) -> Response:
        hook = _own(request, pk)
        call = send_test(hook)
        if call is None:
            sentence = f"{TESTS.most} tests were sent within the hour."
            raise Throttled(TESTS.wait(str(hook.user_id)), sentence)
        return Response(_sent(call), status=201)


def _hook(row: Webhook) -> dict[str, Any]:
    return {"id": row.pk, "url": row.url, "made_at": row.made_at, "pause": row.pause}


def _own(request: Request, pk: int) -> Webhook:
    row = Webhook.objects.filter(user=cast(User, request.user), pk=pk).first()
    if row is None:
        raise Http404(f"You have no webhook {pk}.")
    return row
