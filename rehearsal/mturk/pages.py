"""Pages of workers: the list of HITs, a preview, the work in its frame, and the result."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote, urlencode
from xml.sax.saxutils import unescape

from rehearsal.mturk.hits import ROWS, find_hit, hit_status
from rehearsal.mturk.qualifications import meets_requirements
from rehearsal.mturk.store import Books, new_id, to_dollars

NOT_AVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1rem; max-width: 84rem; }
header { display: flex; flex-wrap: wrap; gap: .75rem 1.5rem; align-items: center; }
iframe { width: 100%; height: 44rem; border: 1px solid GrayText; margin-top: 1rem; }
form { display: inline; } button, input { font: inherit; padding: .4rem .9rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .5rem .75rem .5rem 0; }
tr + tr { border-top: 1px solid color-mix(in srgb, GrayText 40%, transparent); }
"""
SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
OFFERED = 20


def page_html(title: str, body: str) -> str:
    """Return a whole HTML page with this title and body."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><main>{body}</main></body></html>"
    )


def sign_in_page() -> str:
    """Return the login page, which accepts any name."""
    return page_html(
        "A local marketplace",
        "<h1>A local marketplace</h1><p>This stands in for Mechanical Turk. No money moves here."
        ' Say who you are; any name will do.</p><form action="/"><label>Worker id <input'
        ' name="workerId" required pattern="[A-Za-z0-9_-]{1,64}"></label> <button>Go'
        " on</button></form>",
    )


def listing_page(
    worker: str,
    assignments: Iterable[sqlite3.Row],
    hits: Iterable[sqlite3.Row],
    lacking: Iterable[sqlite3.Row] = (),
    letters: Iterable[sqlite3.Row] = (),
) -> str:
    """Return the worker's accepted HITs, the offered ones, the qualifications that they lack for
    others, and their messages.
    """
    query = urlencode({"workerId": worker})
    mine = "".join(
        f'<li><a class="held" href="/work?{query}&amp;assignmentId={row["id"]}">Go on with your'
        " work</a></li>"
        for row in assignments
    )
    table_rows = "".join(
        '<tr><td><a class="hit"'
        f' href="/preview?{query}&amp;hitId={row["id"]}">{escape(row["title"])}</a></td>'
        f"<td>${to_dollars(row['reward'])}</td><td>{row['duration'] // 60} min</td></tr>"
        for row in hits
    )
    offered = (
        f"<table><thead><tr><th>HIT</th><th>Reward</th><th>Time</th></tr></thead><tbody>{table_rows}</tbody></table>"
        if table_rows
        else "<p>Nothing is offered to you now.</p>"
    )
    asks = "".join(
        f"<li>{escape(row['name'])}. {escape(row['description'])} "
        + _button_html("/qualify", "Request", workerId=worker, qualificationTypeId=row["id"])
        + "</li>"
        for row in lacking
    )
    more = f"<h2>For more HITs you need</h2><ul>{asks}</ul>" if asks else ""
    letter_items = "".join(
        f"<li><b>{escape(row['subject'])}</b><br>{_make_links(row['text'])}</li>" for row in letters
    )
    post = f"<h2>Messages</h2><ul>{letter_items}</ul>" if letter_items else ""
    return page_html(
        "HITs",
        "<h1>HITs for"
        f" {escape(worker)}</h1>{f'<ul>{mine}</ul>' if mine else ''}{offered}{more}{post}",
    )


def _make_links(text: str) -> str:
    return re.sub(
        r"https?://[^\s<]+",
        lambda match: f'<a href="{match.group(0)}">{match.group(0)}</a>',
        escape(text),
    )


def preview_page(worker: str, hit: sqlite3.Row) -> str:
    """Return a HIT before it is accepted; its page does not learn the worker's id."""
    src = external_question_url(
        hit["question"], {"assignmentId": NOT_AVAILABLE, "hitId": hit["id"]}
    )
    return page_html(
        hit["title"],
        f"<header><h1>{escape(hit['title'])}</h1><span>${to_dollars(hit['reward'])}</span>"
        + _button_html("/accept", "Accept", workerId=worker, hitId=hit["id"])
        + f"</header>{_frame_html(src)}",
    )


def work_page(worker: str, hit: sqlite3.Row, assignment: str, origin: str) -> str:
    """Return the page of an accepted HIT."""
    src = external_question_url(
        hit["question"],
        {
            "assignmentId": assignment,
            "hitId": hit["id"],
            "workerId": worker,
            "turkSubmitTo": origin,
        },
    )
    return page_html(
        hit["title"],
        f"<header><h1>{escape(hit['title'])}</h1><span>${to_dollars(hit['reward'])}</span>"
        f"{_button_html('/return', 'Return', workerId=worker, assignmentId=assignment)}</header>"
        f"{_frame_html(src)}",
    )


def sent_page(worker: str) -> str:
    """Return the page after an answer was stored, shown inside the frame."""
    return page_html(
        "Sent in",
        (
            "<h1>Sent in</h1><p>Your answer has arrived.</p>"
            f'<p><a target="_top" href="/?{urlencode({"workerId": worker})}">To the next'
            " HIT</a></p>"
        ),
    )


def refused_page(sentence: str) -> str:
    """Return the page of a refusal."""
    return page_html(
        "Not possible",
        f'<h1>Not possible</h1><p>{escape(sentence)}</p><p><a target="_top" href="/">Back</a></p>',
    )


def external_question_url(question: str, parameters: Mapping[str, str]) -> str:
    """Return the address of an ExternalQuestion with the parameters that the platform appends."""
    address_element = re.search(r"<ExternalURL>\s*(.*?)\s*</ExternalURL>", question, re.S)
    address = (
        unescape(address_element.group(1), {"&quot;": '"', "&apos;": "'"})
        if address_element
        else "about:blank"
    )
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters, quote_via=quote)}"


def _frame_html(src: str) -> str:
    return f'<iframe id="task" name="task" title="The work" src="{escape(src)}"></iframe>'


def _button_html(action: str, words: str, **fields: str) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in fields.items()
    )
    return (
        f'<form method="post" action="{action}"'
        f' id="{words.lower()}">{hidden}<button>{words}</button></form>'
    )


class Refused(Exception):
    """Raised if a worker cannot do this; the text is a sentence for them."""


def offered_hits(books: Books, worker: str, limit: int = OFFERED) -> list[sqlite3.Row]:
    """Return the HITs with a free place that a worker may accept and has not done, oldest first."""
    sql = (
        ROWS + " WHERE NOT h.disposed AND h.expiration > ? AND h.most > (SELECT count(*) FROM"
        " assignment a"
        " WHERE a.hit = h.id AND a.status NOT IN ('Returned', 'Abandoned'))"
        " AND NOT EXISTS (SELECT 1 FROM assignment a WHERE a.hit = h.id AND a.worker = ?"
        " AND a.status NOT IN ('Returned', 'Abandoned')) ORDER BY h.number LIMIT ?"
    )
    hits = books.all(sql, books.now, worker, 5 * limit)
    return [row for row in hits if meets_requirements(books, worker, row["qualifications"])][:limit]


def accepted_assignments(books: Books, worker: str) -> list[sqlite3.Row]:
    """Return the assignments that a worker has accepted and not submitted."""
    return books.all(
        "SELECT * FROM assignment WHERE worker = ? AND status = 'Accepted' ORDER BY number", worker
    )


def messages_to_worker(books: Books, worker: str) -> list[sqlite3.Row]:
    """Return the requester's messages to a worker, newest first."""
    return books.all("SELECT * FROM letter WHERE worker = ? ORDER BY number DESC LIMIT 20", worker)


def accept_hit(books: Books, worker: str, hit: str) -> str:
    """Accept a HIT for a worker, and return the assignment. The id of a returned assignment is
    reused for the next worker.
    """
    row = find_hit(books, hit)
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
    if hit_status(row, books.now) != "Assignable":
        raise Refused("Nobody can take this one any more.")
    if not meets_requirements(books, worker, row["qualifications"]):
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


def return_assignment(books: Books, worker: str, assignment: str) -> bool:
    """Return an assignment to the platform, and return whether the worker held it."""
    return bool(
        books.run(
            "UPDATE assignment SET status = 'Returned' WHERE id = ? AND worker = ? AND"
            " status = 'Accepted'",
            assignment,
            worker,
        )
    )


def submit_assignment(books: Books, assignment: str, fields: Mapping[str, Sequence[str]]) -> None:
    """Store a worker's answer. Raises Refused if it is not accepted."""
    row = books.find("SELECT * FROM assignment WHERE id = ?", assignment)
    if row is None:
        raise Refused("There is no such assignment.")
    if row["status"] != "Accepted":
        raise Refused(f"This assignment is {row['status'].lower()}; nothing can be sent in for it.")
    answers = {name: "|".join(values) for name, values in fields.items() if name != "assignmentId"}
    if not answers:
        raise Refused("The form has no field but assignmentId.")
    delay = find_hit(books, row["hit"])["approval_delay"]
    books.run(
        "UPDATE assignment SET status = 'Submitted', submitted = ?, auto_approval = ?, answer = ?"
        " WHERE id = ?",
        books.now,
        books.now + delay,
        answers_xml(answers),
        assignment,
    )


def answers_xml(answers: Mapping[str, str]) -> str:
    """Return the fields of a form in the platform's format."""
    parts = [
        f"<Answer><QuestionIdentifier>{escape(name, quote=False)}</QuestionIdentifier>"
        f"<FreeText>{escape(value, quote=False)}</FreeText></Answer>"
        for name, value in answers.items()
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?><QuestionFormAnswers'
        f' xmlns="{SCHEMA}">{"".join(parts)}</QuestionFormAnswers>'
    )
