"""Qualifications: types, holders, requests; blocked workers; messages to workers."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from rehearsal.mturk.hits import page_limits, page_of_results
from rehearsal.mturk.store import DELETED, Books, RequestError, new_id

Request = dict[str, Any]
Answer = dict[str, Any]
APPROVED_PERCENT, APPROVED_NUMBER, LOCALE = (
    "000000000000000000L0",
    "00000000000000000040",
    "00000000000000000071",
)


def create_qualification_type(books: Books, request: Request) -> Answer:
    """Return a new type of qualification; its name must be new."""
    if books.find("SELECT 1 FROM qualification_type WHERE name = ?", request["Name"]):
        raise RequestError(
            "QualificationTypeAlreadyExists", f"You have a qualification type {request['Name']!r}."
        )
    kind = new_id()
    books.insert(
        "qualification_type",
        id=kind,
        name=request["Name"],
        description=request["Description"],
        keywords=request.get("Keywords", ""),
        status=request["QualificationTypeStatus"],
        auto_granted=int(request.get("AutoGranted", False)),
        auto_value=request.get("AutoGrantedValue", 1),
        created=books.now,
    )
    return {"QualificationType": _qualification_as_json(_find_type(books, kind))}


def delete_qualification_type(books: Books, request: Request) -> Answer:
    """Delete a type. Its name is free again, and no more HITs are created of a HIT type that
    requires it.
    """
    kind = _find_type(books, request["QualificationTypeId"])["id"]
    books.run("UPDATE qualification_type SET status = ?, name = id WHERE id = ?", DELETED, kind)
    return {}


def _find_type(books: Books, kind: str) -> sqlite3.Row:
    row = books.find("SELECT * FROM qualification_type WHERE id = ? AND status <> ?", kind, DELETED)
    if row is None:
        raise RequestError(
            "QualificationTypeDoesNotExist", f"Qualification type {kind} does not exist."
        )
    return row


def _qualification_as_json(row: sqlite3.Row) -> Answer:
    return {
        "QualificationTypeId": row["id"],
        "CreationTime": row["created"],
        "Name": row["name"],
        "Description": row["description"],
        "Keywords": row["keywords"],
        "QualificationTypeStatus": row["status"],
        "IsRequestable": True,
        "AutoGranted": bool(row["auto_granted"]),
        "AutoGrantedValue": row["auto_value"],
    }


def list_qualification_types(books: Books, request: Request) -> Answer:
    """Return the types, all ours, whose name has the words of the query."""
    limit, after = page_limits(request)
    types = books.all(
        "SELECT * FROM qualification_type WHERE name LIKE ? AND status <> ? ORDER BY created, id"
        " LIMIT ? OFFSET ?",
        f"%{request.get('Query', '')}%",
        DELETED,
        limit + 1,
        after,
    )
    return page_of_results(
        "QualificationTypes", [_qualification_as_json(row) for row in types], limit, after
    )


def associate_qualification(books: Books, request: Request) -> Answer:
    """Give a worker a qualification, or another value of it."""
    kind = _find_type(books, request["QualificationTypeId"])["id"]
    books.run(
        "INSERT INTO qualification VALUES (?, ?, ?, ?, 'Granted') ON CONFLICT (type, worker)"
        " DO UPDATE SET value = excluded.value, at = excluded.at, status = 'Granted'",
        kind,
        request["WorkerId"],
        request.get("IntegerValue", 1),
        books.now,
    )
    books.run(
        "DELETE FROM qualification_request WHERE type = ? AND worker = ?", kind, request["WorkerId"]
    )
    return {}


def disassociate_qualification(books: Books, request: Request) -> Answer:
    """Revoke a qualification."""
    kind = _find_type(books, request["QualificationTypeId"])["id"]
    if not books.run(
        "DELETE FROM qualification WHERE type = ? AND worker = ?", kind, request["WorkerId"]
    ):
        raise RequestError(
            "InvalidQualificationState", f"Worker {request['WorkerId']} does not have {kind}."
        )
    return {}


def list_qualification_requests(books: Books, request: Request) -> Answer:
    """Return the open requests for a qualification."""
    limit, after = page_limits(request)
    requests = books.all(
        "SELECT * FROM qualification_request WHERE type = ? ORDER BY at LIMIT ? OFFSET ?",
        request.get("QualificationTypeId", ""),
        limit + 1,
        after,
    )
    told_requests = [
        {
            "QualificationRequestId": row["id"],
            "QualificationTypeId": row["type"],
            "WorkerId": row["worker"],
            "SubmitTime": row["at"],
        }
        for row in requests
    ]
    return page_of_results("QualificationRequests", told_requests, limit, after)


def accept_qualification_request(books: Books, request: Request) -> Answer:
    """Grant a request."""
    row = _pending_request(books, request)
    return associate_qualification(
        books, {"QualificationTypeId": row["type"], "WorkerId": row["worker"]} | request
    )


def reject_qualification_request(books: Books, request: Request) -> Answer:
    """Refuse a request; the reason is shown to its worker alone."""
    row = _pending_request(books, request)
    books.run("DELETE FROM qualification_request WHERE id = ?", row["id"])
    name = _find_type(books, row["type"])["name"]
    subject = f"Your request for the qualification {name} was turned down"
    books.insert(
        "letter",
        worker=row["worker"],
        subject=subject,
        text=request.get("Reason", ""),
        at=books.now,
    )
    return {}


def _pending_request(books: Books, request: Request) -> sqlite3.Row:
    row = books.find(
        "SELECT * FROM qualification_request WHERE id = ?", request["QualificationRequestId"]
    )
    if row is None:
        raise RequestError(
            "QualificationRequestDoesNotExist",
            "There is no such request, or it was answered already.",
        )
    return row


def block_worker(books: Books, request: Request) -> Answer:
    """Block a worker from all HITs."""
    books.run(
        "INSERT OR REPLACE INTO blocked VALUES (?, ?)", request["WorkerId"], request["Reason"]
    )
    return {}


def unblock_worker(books: Books, request: Request) -> Answer:
    """Unblock a worker."""
    books.run("DELETE FROM blocked WHERE worker = ?", request["WorkerId"])
    return {}


def notify_workers(books: Books, request: Request) -> Answer:
    """Send a message to workers; those who never worked for us get none."""
    if len(request["WorkerIds"]) > 100:
        raise RequestError(
            "ParameterValidationError", "At most 100 workers can be written to at once."
        )
    failed = []
    for worker in request["WorkerIds"]:
        if not books.find("SELECT 1 FROM assignment WHERE worker = ?", worker):
            failed.append(
                {
                    "NotifyWorkersFailureCode": "HardFailure",
                    "WorkerId": worker,
                    "NotifyWorkersFailureMessage": "This worker has not worked for you.",
                }
            )
        else:
            books.insert(
                "letter",
                worker=worker,
                subject=request["Subject"],
                text=request["MessageText"],
                at=books.now,
            )
    return {"NotifyWorkersFailureStatuses": failed}


def request_qualification(books: Books, kind: str, worker: str) -> None:
    """Store a worker's request for a qualification."""
    _find_type(books, kind)
    books.run(
        "INSERT OR IGNORE INTO qualification_request VALUES (?, ?, ?, ?)",
        new_id(),
        kind,
        worker,
        books.now,
    )


def missing_types(books: Books, worker: str) -> list[sqlite3.Row]:
    """Return the requester’s own qualification types that a worker lacks and that an active HIT
    requires for acceptance.
    """
    wanted = books.all(
        "SELECT DISTINCT t.qualifications FROM hit h JOIN hit_type t ON t.id = h.type"
        " WHERE NOT h.disposed AND h.expiration > ?",
        books.now,
    )
    kinds = {
        load["QualificationTypeId"]
        for row in wanted
        for load in json.loads(row["qualifications"])
        if load["Comparator"] == "Exists"
        and load.get("ActionsGuarded", "Accept") == "Accept"
        and not _meets_requirement(books, worker, load)
    }
    return [
        row
        for row in books.all("SELECT * FROM qualification_type ORDER BY name")
        if row["id"] in kinds
    ]


def meets_requirements(books: Books, worker: str, requirements: str) -> bool:
    """Return whether a worker meets the requirements of a HIT."""
    if books.find("SELECT 1 FROM blocked WHERE worker = ?", worker):
        return False
    return all(_meets_requirement(books, worker, load) for load in json.loads(requirements))


def _meets_requirement(books: Books, worker: str, requirement: dict[str, Any]) -> bool:
    kind, comparator = requirement["QualificationTypeId"], requirement["Comparator"]
    value = _qualification_value(books, worker, kind)
    if comparator in ("Exists", "DoesNotExist"):
        return bool((value is not None) == (comparator == "Exists"))
    if kind == LOCALE:  # everybody here lives where the requester wants
        return str(comparator) in ("EqualTo", "In")
    if value is None:
        return str(comparator) in ("NotEqualTo", "NotIn")
    wanted = requirement.get("IntegerValues", [])
    single = wanted[0] if wanted else 0
    met = {
        "LessThan": value < single,
        "LessThanOrEqualTo": value <= single,
        "GreaterThan": value > single,
        "GreaterThanOrEqualTo": value >= single,
        "EqualTo": value in wanted,
        "NotEqualTo": value not in wanted,
        "In": value in wanted,
        "NotIn": value not in wanted,
    }
    return bool(met[comparator])


def _qualification_value(books: Books, worker: str, kind: str) -> int | None:
    if kind in (APPROVED_PERCENT, APPROVED_NUMBER):
        row = books.one(
            "SELECT sum(status = 'Approved') AS good, sum(status = 'Rejected') AS bad FROM"
            " assignment WHERE worker = ?",
            worker,
        )
        good, bad = int(row["good"] or 0), int(row["bad"] or 0)
        return (
            good if kind == APPROVED_NUMBER else (100 * good // (good + bad) if good + bad else 100)
        )
    row_ = books.find("SELECT value FROM qualification WHERE type = ? AND worker = ?", kind, worker)
    return None if row_ is None else int(row_["value"])
