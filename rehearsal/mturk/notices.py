"""Notifications: who wants to hear of a type's HITs, and telling them.

A destination that is an address is told over HTTP, in the envelope of the topic service that would
stand between; any other is kept and told nothing. Like the platform we promise nothing: what cannot
be delivered is lost.
"""

from __future__ import annotations

import json
import logging
import threading
import urllib.request
from typing import Any

from rehearsal.mturk.refuse import RequestError
from rehearsal.mturk.store import Books

log = logging.getLogger(__name__)
VERSION = "2006-05-05"
PATIENCE = 5.0


def update_settings(books: Books, request: dict[str, Any]) -> dict[str, Any]:
    """Keeps whom to tell what of a type's HITs; without a notification only whether they are told
    at all.
    """
    kind, wanted = request["HITTypeId"], request.get("Notification")
    if books.find("SELECT 1 FROM hit_type WHERE id = ?", kind) is None:
        raise RequestError("HITTypeDoesNotExist", f"HIT type {kind} does not exist.")
    active = int(request.get("Active", True))
    if wanted is None:
        books.run("UPDATE notice SET active = ? WHERE type = ?", active, kind)
        return {}
    if wanted["Version"] != VERSION or not wanted["Destination"] or not wanted["EventTypes"]:
        raise RequestError(
            "ParameterValidationError",
            f"A notification has version {VERSION}, a destination, events.",
        )
    books.run("DELETE FROM notice WHERE type = ?", kind)
    books.insert(
        "notice",
        type=kind,
        destination=wanted["Destination"],
        transport=wanted["Transport"],
        events=json.dumps(wanted["EventTypes"]),
        active=active,
    )
    return {}


def tell(books: Books, event: str, hit: str) -> None:
    """Says what has happened to a HIT to whoever wants to hear it; nobody waits for that."""
    row = books.find(
        "SELECT n.* FROM notice n JOIN hit h ON h.type = n.type WHERE h.id = ? AND n.active", hit
    )
    if (
        row is None
        or event not in json.loads(row["events"])
        or not row["destination"].startswith("http")
    ):
        return
    message = {
        "Events": [
            {
                "EventType": event,
                "HITId": hit,
                "HITTypeId": row["type"],
                "EventTimestamp": books.now,
            }
        ]
    }
    body = json.dumps({"Type": "Notification", "Message": json.dumps(message)}).encode()
    threading.Thread(target=_deliver, args=(row["destination"], body), daemon=True).start()


def _deliver(address: str, body: bytes) -> None:
    request = urllib.request.Request(
        address, data=body, headers={"Content-Type": "text/plain; charset=UTF-8"}
    )
    try:
        urllib.request.urlopen(request, timeout=PATIENCE).close()
    except OSError as trouble:
        log.warning("A notification could not be delivered: %s", trouble)
