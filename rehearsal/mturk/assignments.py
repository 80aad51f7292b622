"""Assignments from the requester's side: listed, approved, rejected, rewarded with a bonus."""

from __future__ import annotations

import sqlite3
from typing import Any

from rehearsal.mturk.hits import (
    find_hit,
    hit_answer,
    page_limits,
    page_of_results,
    result_of_used_token,
    store_token_result,
)
from rehearsal.mturk.store import (
    Books,
    RequestError,
    available_amount,
    check_balance,
    held_amount,
    platform_fee,
    to_cents,
    to_dollars,
)

Request = dict[str, Any]
Answer = dict[str, Any]
DECIDED = ("Submitted", "Approved", "Rejected")
REGRET = 30 * 86400
"""Seconds for which a rejection can be undone."""


def assignment_json(row: sqlite3.Row) -> Answer:
    """Return an assignment in the platform's format."""
    return {
        "AssignmentId": row["id"],
        "WorkerId": row["worker"],
        "HITId": row["hit"],
        "AssignmentStatus": row["status"],
        "AutoApprovalTime": row["auto_approval"],
        "AcceptTime": row["accepted"],
        "SubmitTime": row["submitted"],
        "ApprovalTime": row["approved"],
        "RejectionTime": row["rejected"],
        "Deadline": row["deadline"],
        "Answer": row["answer"],
        "RequesterFeedback": row["feedback"],
    }


def list_assignments(books: Books, request: Request) -> Answer:
    """Return a HIT's submitted assignments."""
    limit, after = page_limits(request)
    find_hit(books, request["HITId"])
    wanted = request.get("AssignmentStatuses") or DECIDED
    marks = ", ".join("?" * len(wanted))
    sent_in = books.all(
        f"SELECT * FROM assignment WHERE hit = ? AND status IN ({marks}) ORDER BY submitted, number"
        " LIMIT ? OFFSET ?",
        request["HITId"],
        *wanted,
        limit + 1,
        after,
    )
    return page_of_results("Assignments", [assignment_json(row) for row in sent_in], limit, after)


def get_assignment(books: Books, request: Request) -> Answer:
    """Return a submitted assignment, with its HIT."""
    row = _submitted_assignment(books, request["AssignmentId"])
    return {
        "Assignment": assignment_json(row),
        "HIT": hit_answer(find_hit(books, row["hit"]), books.now),
    }


def _submitted_assignment(books: Books, assignment: str) -> sqlite3.Row:
    row = books.find("SELECT * FROM assignment WHERE id = ?", assignment)
    if row is None or row["status"] not in DECIDED:
        raise RequestError("AssignmentDoesNotExist", f"Assignment {assignment} does not exist.")
    return row


def approve_assignment(books: Books, request: Request) -> Answer:
    """Approve and pay an assignment; a rejected one only on request, within thirty days."""
    row = _submitted_assignment(books, request["AssignmentId"])
    late = row["status"] == "Rejected" and books.now - row["rejected"] <= REGRET
    if row["status"] != "Submitted" and not (late and request.get("OverrideRejection")):
        raise RequestError(
            "InvalidAssignmentState",
            "This operation can be called with a status of: Submitted. The assignment is"
            f" {row['status']}.",
        )
    books.run(
        "UPDATE assignment SET status = 'Approved', approved = ?, rejected = NULL, feedback = ?"
        " WHERE id = ?",
        books.now,
        request.get("RequesterFeedback"),
        row["id"],
    )
    return {}


def reject_assignment(books: Books, request: Request) -> Answer:
    """Reject an assignment, with a reason."""
    row = _submitted_assignment(books, request["AssignmentId"])
    if not request["RequesterFeedback"].strip() or len(request["RequesterFeedback"]) > 1024:
        raise RequestError(
            "ParameterValidationError", "A rejection needs feedback of at most 1024 characters."
        )
    if row["status"] != "Submitted":
        raise RequestError(
            "InvalidAssignmentState",
            "This operation can be called with a status of: Submitted. The assignment is"
            f" {row['status']}.",
        )
    books.run(
        "UPDATE assignment SET status = 'Rejected', rejected = ?, feedback = ? WHERE id = ?",
        books.now,
        request["RequesterFeedback"],
        row["id"],
    )
    return {}


def send_bonus(books: Books, request: Request) -> Answer:
    """Pay a bonus for a submitted assignment. A token works once a day."""
    token = request.get("UniqueRequestToken", "")
    if result_of_used_token(books, token, "SendBonus"):
        raise RequestError("RequestAlreadyProcessed", "A bonus was sent with this token.")
    amount = to_cents(request["BonusAmount"])
    row = _submitted_assignment(books, request["AssignmentId"])
    if row["worker"] != request["WorkerId"]:
        raise RequestError("WorkerDoesNotExist", "This worker did not do this assignment.")
    if amount < 1 or not request["Reason"].strip():
        raise RequestError("ParameterValidationError", "A bonus needs an amount and a reason.")
    check_balance(books, amount + platform_fee(amount))
    books.insert(
        "bonus",
        worker=row["worker"],
        assignment=row["id"],
        hit=row["hit"],
        cents=amount,
        fee=platform_fee(amount),
        reason=request["Reason"],
        at=books.now,
    )
    store_token_result(books, token, "SendBonus", row["id"])
    return {}


def list_bonus_payments(books: Books, request: Request) -> Answer:
    """Return the bonuses paid for a HIT or for an assignment."""
    limit, after = page_limits(request)
    column = "assignment" if request.get("AssignmentId") else "hit"
    value = request.get("AssignmentId") or request.get("HITId")
    if not value:
        raise RequestError("ParameterValidationError", "Name a HIT or an assignment.")
    bonuses = books.all(
        f"SELECT * FROM bonus WHERE {column} = ? ORDER BY number LIMIT ? OFFSET ?",
        value,
        limit + 1,
        after,
    )
    told_bonuses = [
        {
            "WorkerId": row["worker"],
            "BonusAmount": to_dollars(row["cents"]),
            "AssignmentId": row["assignment"],
            "Reason": row["reason"],
            "GrantTime": row["at"],
        }
        for row in bonuses
    ]
    return page_of_results("BonusPayments", told_bonuses, limit, after)


def account_balance(books: Books, request: Request) -> Answer:
    """Return the available balance, and what is held for open HITs."""
    return {
        "AvailableBalance": to_dollars(available_amount(books)),
        "OnHoldBalance": to_dollars(held_amount(books)),
    }
