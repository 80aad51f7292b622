"""HIT types and HITs: create, list, extend, expire, dispose."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import Any

from rehearsal.mturk.store import (
    DELETED,
    Books,
    RequestError,
    check_balance,
    new_id,
    platform_fee,
    to_cents,
    to_dollars,
)

Request = dict[str, Any]
Answer = dict[str, Any]
AUTO_APPROVAL = 30 * 86400
LONGEST_TOKEN, LONGEST_LIFE, MOST_RESULTS = 64, 365 * 86400, 100

ROWS = """
    SELECT h.*, t.title, t.description, t.keywords, t.reward, t.duration, t.approval_delay,
        t.qualifications,
           (SELECT count(*) FROM assignment a WHERE a.hit = h.id
               AND a.status = 'Accepted') AS pending,
           (SELECT count(*) FROM assignment a WHERE a.hit = h.id
               AND a.status = 'Submitted') AS submitted,
           (SELECT count(*) FROM assignment a WHERE a.hit = h.id
               AND a.status IN ('Approved', 'Rejected')) AS decided
    FROM hit h JOIN hit_type t ON t.id = h.type
"""


def hit_status(row: sqlite3.Row, now: float) -> str:
    """Return the status of a HIT: Assignable, Unassignable, Reviewable, Reviewing or Disposed."""
    if row["disposed"]:
        return "Disposed"
    free = row["most"] - row["pending"] - row["submitted"] - row["decided"]
    if row["expiration"] > now and free > 0:
        return "Assignable"
    if row["pending"]:
        return "Unassignable"
    return "Reviewing" if row["reviewing"] else "Reviewable"


def find_hit(books: Books, hit: str) -> sqlite3.Row:
    """Return a HIT with its type and its counts. Raises RequestError if there is none."""
    row = books.find(ROWS + " WHERE h.id = ?", hit)
    if row is None:
        raise RequestError("HITDoesNotExist", f"Hit {hit} does not exist.")
    return row


def hit_answer(row: sqlite3.Row, now: float) -> Answer:
    """Return a HIT in the platform's format."""
    return {
        "HITId": row["id"],
        "HITTypeId": row["type"],
        "HITGroupId": row["type"],
        "CreationTime": row["created"],
        "Title": row["title"],
        "Description": row["description"],
        "Keywords": row["keywords"],
        "Question": row["question"],
        "HITStatus": hit_status(row, now),
        "MaxAssignments": row["most"],
        "Reward": to_dollars(row["reward"]),
        "AutoApprovalDelayInSeconds": row["approval_delay"],
        "Expiration": row["expiration"],
        "AssignmentDurationInSeconds": row["duration"],
        "RequesterAnnotation": row["annotation"],
        "QualificationRequirements": json.loads(row["qualifications"]),
        "HITReviewStatus": "NotReviewed",
        "NumberOfAssignmentsPending": row["pending"],
        "NumberOfAssignmentsAvailable": max(
            0, row["most"] - row["pending"] - row["submitted"] - row["decided"]
        ),
        "NumberOfAssignmentsCompleted": row["decided"],
    }


def create_hit_type(books: Books, request: Request) -> Answer:
    """Return the type with these properties; created if new."""
    reward = to_cents(request["Reward"])
    for name, limit in (("Title", 128), ("Description", 2000), ("Keywords", 1000)):
        if len(request.get(name, "")) > limit:
            raise RequestError(
                "ParameterValidationError", f"{name} is longer than {limit} characters."
            )
    fields = {
        "title": request["Title"],
        "description": request["Description"],
        "keywords": request.get("Keywords", ""),
        "reward": reward,
        "duration": request["AssignmentDurationInSeconds"],
        "approval_delay": request.get("AutoApprovalDelayInSeconds", AUTO_APPROVAL),
        "qualifications": json.dumps(request.get("QualificationRequirements", []), sort_keys=True),
    }
    if (
        not 30 <= fields["duration"] <= LONGEST_LIFE
        or not 0 <= fields["approval_delay"] <= AUTO_APPROVAL
    ):
        raise RequestError("ParameterValidationError", "A duration is out of range.")
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    row = books.find("SELECT id FROM hit_type WHERE digest = ?", digest)
    if row is None:
        books.insert("hit_type", id=new_id(), digest=digest, **fields)
        row = books.one("SELECT id FROM hit_type WHERE digest = ?", digest)
    return {"HITTypeId": row["id"]}


def create_hit_with_hit_type(books: Books, request: Request) -> Answer:
    """Create a HIT and return it. A token that was used within a day is refused, with the HIT that
    it created.
    """
    token, annotation = (
        request.get("UniqueRequestToken", ""),
        request.get("RequesterAnnotation", ""),
    )
    if made := result_of_used_token(books, token, "CreateHITWithHITType"):
        raise RequestError("HitAlreadyExists", f'The HIT with ID "{made}" already exists.')
    kind = books.find("SELECT * FROM hit_type WHERE id = ?", request["HITTypeId"])
    if kind is None or _requires_deleted_qualification(books, kind["qualifications"]):
        raise RequestError(
            "HITTypeDoesNotExist", f"HIT type {request['HITTypeId']} does not exist."
        )
    most, life = request.get("MaxAssignments", 1), request["LifetimeInSeconds"]
    if (
        most < 1
        or not 30 <= life <= LONGEST_LIFE
        or len(annotation) > 255
        or "Question" not in request
    ):
        raise RequestError(
            "ParameterValidationError",
            "MaxAssignments, lifetime, annotation or question cannot be.",
        )
    fees = platform_fee(kind["reward"], most)
    check_balance(books, (kind["reward"] + fees) * most)
    hit = new_id()
    books.insert(
        "hit",
        id=hit,
        type=kind["id"],
        question=request["Question"],
        annotation=annotation,
        most=most,
        fee=fees,
        created=books.now,
        expiration=books.now + life,
    )
    store_token_result(books, token, "CreateHITWithHITType", hit)
    return {"HIT": hit_answer(find_hit(books, hit), books.now)}


def _requires_deleted_qualification(books: Books, requirements: str) -> bool:
    """Return whether a type of HIT requires a qualification that was deleted."""
    kinds = [load["QualificationTypeId"] for load in json.loads(requirements)]
    marks = ", ".join("?" * len(kinds))
    sql = f"SELECT 1 FROM qualification_type WHERE status = ? AND id IN ({marks})"
    return books.find(sql, DELETED, *kinds) is not None


def result_of_used_token(books: Books, token: str, operation: str) -> str:
    """Return the earlier result of a token; empty if the token is new. Raises RequestError if it is
    too long.
    """
    if len(token) > LONGEST_TOKEN:
        raise RequestError(
            "ParameterValidationError", f"A token has at most {LONGEST_TOKEN} characters."
        )
    row = (
        books.find("SELECT result FROM token WHERE name = ? AND operation = ?", token, operation)
        if token
        else None
    )
    return str(row["result"]) if row else ""


def store_token_result(books: Books, token: str, operation: str, result: str) -> None:
    """Store the result of a token, for a day."""
    if token:
        books.insert("token", name=token, operation=operation, result=result, at=books.now)


def get_hit(books: Books, request: Request) -> Answer:
    """Return a HIT."""
    return {"HIT": hit_answer(find_hit(books, request["HITId"]), books.now)}


def list_hits(books: Books, request: Request) -> Answer:
    """Return all HITs that are not disposed, newest first."""
    limit, after = page_limits(request)
    not_disposed = books.all(
        ROWS + " WHERE NOT h.disposed ORDER BY h.number DESC LIMIT ? OFFSET ?", limit + 1, after
    )
    return page_of_results(
        "HITs", [hit_answer(row, books.now) for row in not_disposed], limit, after
    )


def list_reviewable_hits(books: Books, request: Request) -> Answer:
    """Return the HITs that nobody works on any more."""
    limit, after = page_limits(request)
    wanted = request.get("Status", "Reviewable")
    not_disposed = books.all(ROWS + " WHERE NOT h.disposed ORDER BY h.number")
    reviewable = [
        hit_answer(row, books.now)
        for row in not_disposed
        if hit_status(row, books.now) == wanted and request.get("HITTypeId") in (None, row["type"])
    ]
    return page_of_results("HITs", reviewable[after : after + limit + 1], limit, after)


def page_limits(request: Request) -> tuple[int, int]:
    """Return the requested number of results, and the number of results to skip."""
    limit, token = request.get("MaxResults", 10), request.get("NextToken", "0")
    if not 1 <= limit <= MOST_RESULTS:
        raise RequestError(
            "ParameterValidationError", f"MaxResults lies between 1 and {MOST_RESULTS}."
        )
    if not token.isdecimal():
        raise RequestError("ParameterValidationError", "NextToken is not one of ours.")
    return limit, int(token)


def page_of_results(name: str, results: list[Answer], limit: int, after: int) -> Answer:
    """Return one page of results; `results` has one more than the page if there is another."""
    answer: Answer = {name: results[:limit], "NumResults": len(results[:limit])}
    return answer | ({"NextToken": str(after + limit)} if len(results) > limit else {})


def create_additional_assignments(books: Books, request: Request) -> Answer:
    """Add places to a HIT. Refused if the HIT has fewer than ten places and would get ten
    or more.
    """
    token, more = request.get("UniqueRequestToken", ""), request["NumberOfAdditionalAssignments"]
    row = find_hit(books, request["HITId"])
    if result_of_used_token(books, token, "CreateAdditionalAssignmentsForHIT"):
        raise RequestError("RequestAlreadyProcessed", "This token was used before.")
    if row["disposed"]:
        raise RequestError("InvalidHITState", f"HIT {row['id']} is disposed.")
    if row["most"] < 10 <= row["most"] + more:
        raise RequestError(
            "InvalidMaximumAssignmentsIncrease", "A HIT made for fewer than 10 stays below 10."
        )
    check_balance(books, (row["reward"] + row["fee"]) * more)
    books.run("UPDATE hit SET most = most + ? WHERE id = ?", more, row["id"])
    store_token_result(books, token, "CreateAdditionalAssignmentsForHIT", row["id"])
    return {}


def update_expiration(books: Books, request: Request) -> Answer:
    """Set when a HIT expires; the past expires it now."""
    row = find_hit(books, request["HITId"])
    if row["disposed"]:
        raise RequestError("InvalidHITState", f"HIT {row['id']} is disposed.")
    expires_at = max(books.now, float(request["ExpireAt"]))
    if expires_at > row["expiration"]:
        free = row["most"] - row["pending"] - row["submitted"] - row["decided"]
        check_balance(
            books,
            (row["reward"] + row["fee"]) * max(0, free) if row["expiration"] <= books.now else 0,
        )
    books.run("UPDATE hit SET expiration = ? WHERE id = ?", expires_at, row["id"])
    return {}


def delete_hit(books: Books, request: Request) -> Answer:
    """Dispose of a HIT that nobody works on and all of whose work is decided."""
    row = find_hit(books, request["HITId"])
    if row["disposed"]:
        raise RequestError("InvalidHITState", f"HIT {row['id']} is disposed already.")
    if hit_status(row, books.now) not in ("Reviewable", "Reviewing") or row["submitted"]:
        raise RequestError(
            "InvalidHITState", f"HIT {row['id']} has open places or undecided assignments."
        )
    books.run("UPDATE hit SET disposed = 1 WHERE id = ?", row["id"])
    return {}
