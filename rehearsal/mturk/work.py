"""The worker's side: what is offered, accept, return, send in."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from rehearsal.mturk.hits import ROWS, hit_of, status_of
from rehearsal.mturk.qualifications import may
from rehearsal.mturk.store import Books, new_id

SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
OFFERED = 20


class Refused(Exception):
    """A worker cannot do this; the text is a sentence for them."""


def offered(books: Books, worker: str, most: int = OFFERED) -> list[sqlite3.Row]:
    """HITs with a free place that a worker may accept and has not done, oldest first."""
    sql = (
        ROWS + " WHERE NOT h.disposed AND h.expiration > ? AND h.most > (SELECT count(*) FROM"
        " assignment a"
        " WHERE a.hit = h.id AND a.status NOT IN ('Returned', 'Abandoned'))"
        " AND NOT EXISTS (SELECT 1 FROM assignment a WHERE a.hit = h.id AND a.worker = ?"
        " AND a.status NOT IN ('Returned', 'Abandoned')) ORDER BY h.number LIMIT ?"
    )
    hits = books.all(sql, books.now, worker, 5 * most)
    return [row for row in hits if may(books, worker, row["qualifications"])][:most]


def accepted_assignments(books: Books, worker: str) -> list[sqlite3.Row]:
    """Return what a worker has accepted and not sent in."""
    return books.all(
        "SELECT * FROM assignment WHERE worker = ? AND status = 'Accepted' ORDER BY number", worker
    )


def letters(books: Books, worker: str) -> list[sqlite3.Row]:
    """Return what the requester wrote to a worker, the newest first."""
    return books.all("SELECT * FROM letter WHERE worker = ? ORDER BY number DESC LIMIT 20", worker)


def accept(books: Books, worker: str, hit: str) -> str:
    """Return the assignment that a worker has now. An identifier that was returned is given to the
    next worker.
    """
    row = hit_of(books, hit)
    mine = books.find(
        "SELECT * FROM assignment WHERE hit = ? AND worker = ? AND status NOT"
        " IN ('Returned', 'Abandoned')",
        hit,
        worker,
    )
    if mine is not None and mine["status"] == "Accepted":
        return str(mine["id"])
    if mine is not None:
        raise Refused("You have done this one.")
    if status_of(row, books.now) != "Assignable":
        raise Refused("Nobody can take this one any more.")
    if not may(books, worker, row["qualifications"]):
        raise Refused("You lack a qualification for this one.")
    times = {"worker": worker, "accepted": books.now, "deadline": books.now + row["duration"]}
    given_back = books.find(
        "SELECT id FROM assignment WHERE hit = ? AND status IN ('Returned', 'Abandoned')", hit
    )
    if given_back is not None:
        books.run(
            "UPDATE assignment SET worker = ?, accepted = ?, deadline = ?, status = 'Accepted'"
            " WHERE id = ?",
            *times.values(),
            given_back["id"],
        )
        return str(given_back["id"])
    assignment = new_id()
    books.insert("assignment", id=assignment, hit=hit, status="Accepted", **times)
    return assignment


def give_back(books: Books, worker: str, assignment: str) -> bool:
    """Return whether a worker returned what they had."""
    return bool(
        books.run(
            "UPDATE assignment SET status = 'Returned' WHERE id = ? AND worker = ? AND"
            " status = 'Accepted'",
            assignment,
            worker,
        )
    )


def send_in(books: Books, assignment: str, fields: Mapping[str, Sequence[str]]) -> None:
    """Stores a worker's answer. Raises Refused if it cannot be taken."""
    row = books.find("SELECT * FROM assignment WHERE id = ?", assignment)
    if row is None:
        raise Refused("There is no such assignment.")
    if row["status"] != "Accepted":
        raise Refused(f"This assignment is {row['status'].lower()}; nothing can be sent in for it.")
    answers = {name: "|".join(values) for name, values in fields.items() if name != "assignmentId"}
    if not answers:
        raise Refused("The form has no field but assignmentId.")
    delay = hit_of(books, row["hit"])["approval_delay"]
    books.run(
        "UPDATE assignment SET status = 'Submitted', submitted = ?, auto_approval = ?, answer = ?"
        " WHERE id = ?",
        books.now,
        books.now + delay,
        answers_xml(answers),
        assignment,
    )


def answers_xml(answers: Mapping[str, str]) -> str:
    """Return the fields of a form as the platform keeps them."""
    parts = [
        f"<Answer><QuestionIdentifier>{escape(name)}</QuestionIdentifier><FreeText>{escape(value)}</FreeText></Answer>"
        for name, value in answers.items()
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?><QuestionFormAnswers'
        f' xmlns="{SCHEMA}">{"".join(parts)}</QuestionFormAnswers>'
    )
