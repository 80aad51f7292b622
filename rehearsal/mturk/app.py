"""The WSGI application: the requester's API at `/`, the worker's pages, and switches for faults and
the clock.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs, urlencode
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from botocore.model import ListShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.session import get_session
from botocore.validate import ParamValidator

from rehearsal.mturk import assignments, hits, pages, qualifications, store
from rehearsal.mturk.store import Books, RequestError, Store

VERSION = "2006-05-05"
PATIENCE = 5.0
TARGET = "MTurkRequesterServiceV20170117."
MOST_BYTES = 1_000_000
WORKER = re.compile(r"[A-Za-z0-9_-]{1,64}")
BOOKS = ("hit_type", "hit", "assignment", "bonus", "qualification", "letter", "call")


def update_settings(books: Books, request: dict[str, Any]) -> dict[str, Any]:
    """Store the notification settings of a HIT type; without a notification, only switch them on or
    off.
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


def notify_subscriber(books: Books, event: str, hit: str) -> None:
    """Notify the subscriber of a HIT's type of an event, in a separate thread."""
    row = books.find(
        "SELECT n.* FROM notice n JOIN hit h ON h.type = n.type WHERE h.id = ? AND n.active", hit
    )
    if row is None or event not in json.loads(row["events"]):
        return
    address = row["destination"]
    if not address.startswith("http"):
        return
    stamp = {"EventType": event, "HITId": hit, "HITTypeId": row["type"]}
    message = {"Events": [stamp | {"EventTimestamp": books.now}]}
    body = json.dumps({"Type": "Notification", "Message": json.dumps(message)}).encode()

    def post_event() -> None:
        kind = {"Content-Type": "text/plain; charset=UTF-8"}
        request = urllib.request.Request(address, data=body, headers=kind)
        try:
            urllib.request.urlopen(request, timeout=PATIENCE).close()
        except OSError as trouble:
            log.warning("A notification could not be delivered: %s", trouble)

    threading.Thread(target=post_event, daemon=True).start()


class Invalid(Exception):
    """Raised for a request that the service model does not allow; the text says where."""


@cache
def service_model() -> ServiceModel:
    """Return the model of the requester service as boto3 ships it."""
    return get_session().get_service_model("mturk")


def operation_model(name: str) -> OperationModel:
    """Return the model of an operation. Raises Invalid if there is none of that name."""
    if name not in service_model().operation_names:
        raise Invalid(f"There is no operation {name}.")
    return service_model().operation_model(name)


def check_request(name: str, request: Any) -> None:
    """Raise Invalid for a request that boto3 could not have sent."""
    if not isinstance(request, dict):
        raise Invalid("The request is no JSON object.")
    shape = operation_model(name).input_shape
    if unknown := set(request) - set(shape.members):
        raise Invalid(f"Unknown parameter {sorted(unknown)[0]}.")
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise Invalid(report.generate_report())
    _check_enums(request, shape)


def _check_enums(value: Any, shape: Shape) -> None:
    """Raise Invalid for a value outside of an enumeration, which the client does not check."""
    if isinstance(shape, StructureShape):
        for member, part in value.items():
            _check_enums(part, shape.members[member])
    elif isinstance(shape, ListShape):
        for entry in value:
            _check_enums(entry, shape.member)
    elif getattr(shape, "enum", None) and value not in shape.enum:
        raise Invalid(f"{value!r} is none of {', '.join(shape.enum)}.")


def shape_answer(name: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer as JSON. Raises KeyError for a field that the model does not have, which
    means that this endpoint is wrong.
    """
    shape = operation_model(name).output_shape
    as_json: dict[str, Any] = _shape_value(answer, shape)
    return as_json


def _shape_value(value: Any, shape: Shape) -> Any:
    if isinstance(shape, StructureShape):
        return {
            key: _shape_value(part, shape.members[key])
            for key, part in value.items()
            if part is not None
        }
    if isinstance(shape, ListShape):
        return [_shape_value(member, shape.member) for member in value]
    if shape.type_name == "timestamp":
        return value.timestamp() if isinstance(value, datetime) else float(value)
    return value


log = logging.getLogger(__name__)

Handler = Callable[[Books, dict[str, Any]], dict[str, Any]]
OPERATIONS: dict[str, Handler] = {
    "CreateHITType": hits.create_hit_type,
    "CreateHITWithHITType": hits.create_hit_with_hit_type,
    "GetHIT": hits.get_hit,
    "ListHITs": hits.list_hits,
    "ListReviewableHITs": hits.list_reviewable_hits,
    "CreateAdditionalAssignmentsForHIT": hits.create_additional_assignments,
    "UpdateExpirationForHIT": hits.update_expiration,
    "DeleteHIT": hits.delete_hit,
    "ListAssignmentsForHIT": assignments.list_assignments,
    "GetAssignment": assignments.get_assignment,
    "ApproveAssignment": assignments.approve_assignment,
    "RejectAssignment": assignments.reject_assignment,
    "SendBonus": assignments.send_bonus,
    "ListBonusPayments": assignments.list_bonus_payments,
    "GetAccountBalance": assignments.account_balance,
    "CreateQualificationType": qualifications.create_qualification_type,
    "DeleteQualificationType": qualifications.delete_qualification_type,
    "ListQualificationTypes": qualifications.list_qualification_types,
    "AssociateQualificationWithWorker": qualifications.associate_qualification,
    "DisassociateQualificationFromWorker": qualifications.disassociate_qualification,
    "ListQualificationRequests": qualifications.list_qualification_requests,
    "AcceptQualificationRequest": qualifications.accept_qualification_request,
    "RejectQualificationRequest": qualifications.reject_qualification_request,
    "CreateWorkerBlock": qualifications.block_worker,
    "DeleteWorkerBlock": qualifications.unblock_worker,
    "NotifyWorkers": qualifications.notify_workers,
    "UpdateNotificationSettings": update_settings,
}


class Reply(Exception):
    """A response with its status, body and headers, raised to end the handling of a request."""

    def __init__(
        self, status: str, body: str, kind: str = "text/html; charset=utf-8", **headers: str
    ) -> None:
        super().__init__(status)
        self.status, self.body = status, body.encode()
        self.headers = [
            ("Content-Type", kind),
            ("Content-Length", str(len(self.body))),
            *headers.items(),
        ]


class Endpoint:
    """The application over one store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        try:
            reply = self._handle_request(environ)
        except Reply as raised:
            reply = raised
        except (RequestError, pages.Refused) as no:
            reply = Reply("400 Bad Request", pages.refused_page(str(no)))
        except Exception:
            log.exception("The local endpoint failed at %s", environ.get("PATH_INFO"))
            reply = Reply("500 Internal Server Error", pages.refused_page("An internal error."))
        start(reply.status, reply.headers)
        return [reply.body]

    def _handle_request(self, environ: WSGIEnvironment) -> Reply:
        path, method = environ.get("PATH_INFO", "/"), environ["REQUEST_METHOD"]
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target:
            return self._handle_operation(environ, target.removeprefix(TARGET))
        if path == "/mturk/externalSubmit" and method == "POST":
            return self._take_external_submit(_read_form(environ))
        if path.startswith("/control/"):
            return self._handle_control(path.removeprefix("/control/"), method, environ)
        if method == "POST":
            return self._handle_worker_form(path, _read_form(environ))
        origin = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', 'localhost')}"
        return self._show_worker_page(path, parse_qs(environ.get("QUERY_STRING", "")), origin)

    def _handle_operation(self, environ: WSGIEnvironment, name: str) -> Reply:
        if "AWS4-HMAC-SHA256" not in environ.get("HTTP_AUTHORIZATION", ""):
            return _error_reply(
                "403 Forbidden", "MissingAuthenticationTokenException", "The request is not signed."
            )
        try:
            request = json.loads(_read_body(environ) or b"{}")
            check_request(name, request)
        except (ValueError, Invalid) as bad:
            return _error_reply("400 Bad Request", "ValidationException", str(bad))
        if name not in OPERATIONS:
            return _error_reply(
                "400 Bad Request", "UnknownOperationException", f"This endpoint does not do {name}."
            )
        return self._run_operation(name, request)

    def _run_operation(self, name: str, request: dict[str, Any]) -> Reply:
        with self.store.begin_call() as books:
            fault = store.next_fault(books, name)
        failures = {
            "throttle": (
                "throttled",
                _error_reply("400 Bad Request", "ThrottlingException", "Rate exceeded"),
            ),
            "refuse": (
                "refused",
                _error_reply("400 Bad Request", "RequestError", "The endpoint was told so."),
            ),
            "error": ("failed", _fault_reply()),
            "hang": ("held", _fault_reply()),
        }
        if fault is not None and fault.kind in failures:
            reply = self._log_call(name, *failures[fault.kind])
            if fault.kind == "hang":
                time.sleep(fault.seconds)
            return reply
        try:
            with self.store.begin_call() as books:
                answer = OPERATIONS[name](books, request)
                books.insert("call", operation=name, outcome="done", at=books.now)
        except RequestError as no:
            reply = _error_reply(
                "400 Bad Request", "RequestError", f"{no} ({no.code})", TurkErrorCode=no.code
            )
            return self._log_call(name, no.code, reply)
        if fault is not None and fault.kind == "timeout":
            self._log_call(name, "held", _fault_reply())
            time.sleep(fault.seconds)
        if fault is not None and fault.kind == "error_after":
            return _fault_reply()
        return _json_reply("200 OK", shape_answer(name, store.apply_fault(fault, answer)))

    def _log_call(self, name: str, outcome: str, reply: Reply) -> Reply:
        with self.store.begin_call() as books:
            books.insert("call", operation=name, outcome=outcome, at=books.now)
        return reply

    def _take_external_submit(self, form: dict[str, list[str]]) -> Reply:
        assignment = form.get("assignmentId", [""])[0]
        with self.store.begin_call() as books:
            fault = store.next_fault(books, "externalSubmit")
            if fault is not None and fault.kind == "error":
                refusal = pages.refused_page("The marketplace has a fault.")
                raise Reply("500 Internal Server Error", refusal)
            if fault is None or fault.kind != "lose":
                pages.submit_assignment(books, assignment, form)
            row = books.find("SELECT worker, hit, status FROM assignment WHERE id = ?", assignment)
        if row is not None and row["status"] == "Submitted":
            self._send_event("AssignmentSubmitted", row["hit"])
        return Reply("200 OK", pages.sent_page(row["worker"] if row else ""))

    def _show_worker_page(self, path: str, query: dict[str, list[str]], origin: str) -> Reply:
        worker = _worker_in_form(query) if "workerId" in query or path != "/" else ""
        with self.store.begin_call() as books:
            held = pages.accepted_assignments(books, worker)
            if path == "/" and worker:
                offered, letters = (
                    pages.offered_hits(books, worker),
                    pages.messages_to_worker(books, worker),
                )
                missing = qualifications.missing_types(books, worker)
                return Reply("200 OK", pages.listing_page(worker, held, offered, missing, letters))
            if path == "/":
                return Reply("200 OK", pages.sign_in_page())
            if path == "/preview":
                hit = hits.find_hit(books, query.get("hitId", [""])[0])
                return Reply("200 OK", pages.preview_page(worker, hit))
            if path == "/work":
                for row in held:
                    if row["id"] == query.get("assignmentId", [""])[0]:
                        hit = hits.find_hit(books, row["hit"])
                        return Reply("200 OK", pages.work_page(worker, hit, row["id"], origin))
                raise pages.Refused("You do not have this assignment.")
        raise Reply("404 Not Found", pages.refused_page("There is no such page."))

    def _handle_worker_form(self, path: str, form: dict[str, list[str]]) -> Reply:
        worker, returned = _worker_in_form(form), ""
        with self.store.begin_call() as books:
            if path == "/accept":
                assignment = pages.accept_hit(books, worker, form.get("hitId", [""])[0])
                where = "/work?" + urlencode({"workerId": worker, "assignmentId": assignment})
            elif path == "/return":
                assignment = form.get("assignmentId", [""])[0]
                if pages.return_assignment(books, worker, assignment):
                    row = books.one("SELECT hit FROM assignment WHERE id = ?", assignment)
                    returned = row["hit"]
                where = "/?" + urlencode({"workerId": worker})
            elif path == "/qualify":
                qualifications.request_qualification(
                    books, form.get("qualificationTypeId", [""])[0], worker
                )
                where = "/?" + urlencode({"workerId": worker})
            else:
                raise Reply("404 Not Found", pages.refused_page("There is no such page."))
        if returned:
            self._send_event("AssignmentReturned", returned)
        return Reply("303 See Other", "", Location=where)

    def _send_event(self, event: str, hit: str) -> None:
        """Send an event about a HIT, once its change is committed, so that the receiver can read
        the change.
        """
        with self.store.begin_call() as books:
            notify_subscriber(books, event, hit)
            if hits.hit_status(hits.find_hit(books, hit), books.now) == "Reviewable":
                notify_subscriber(books, "HITReviewable", hit)

    def _handle_control(self, subject: str, method: str, environ: WSGIEnvironment) -> Reply:
        settings = json.loads(_read_body(environ) or b"{}") if method == "POST" else {}
        with self.store.begin_call() as books:
            if subject == "faults":
                try:
                    store.add_fault(books, **settings) if settings else store.delete_faults(books)
                except (TypeError, ValueError) as bad:
                    return _json_reply("400 Bad Request", {"error": str(bad)})
            elif subject == "clock":
                books.advance(float(settings.get("advance", 0)))
            elif subject != "books":
                raise Reply("404 Not Found", pages.refused_page("There is no such switch."))
            tables = {name: books.all(f"SELECT * FROM {name}") for name in BOOKS}
            return _json_reply(
                "200 OK", {name: list(map(dict, rows)) for name, rows in tables.items()}
            )


def _worker_in_form(form: dict[str, list[str]]) -> str:
    worker = form.get("workerId", [""])[0]
    if not WORKER.fullmatch(worker):
        raise Reply(
            "400 Bad Request", pages.refused_page("Say who you are: letters, digits, - and _.")
        )
    return worker


def _read_body(environ: WSGIEnvironment) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > MOST_BYTES:
        raise Reply("413 Content Too Large", pages.refused_page("That is too much."))
    body: bytes = environ["wsgi.input"].read(length)
    return body


def _read_form(environ: WSGIEnvironment) -> dict[str, list[str]]:
    return parse_qs(_read_body(environ).decode("utf-8", "replace"), keep_blank_values=True)


def _json_reply(status: str, value: Any) -> Reply:
    return Reply(status, json.dumps(value), "application/x-amz-json-1.1")


def _error_reply(status: str, code: str, message: str, **more: str) -> Reply:
    return _json_reply(status, {"__type": code, "Message": message, "message": message, **more})


def _fault_reply() -> Reply:
    return _error_reply(
        "500 Internal Server Error", "ServiceFault", "The service has a fault. Try again."
    )


class Threads(ThreadingMixIn, WSGIServer):
    """A server that handles clients in parallel."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected."""


class Quiet(WSGIRequestHandler):
    """A handler that does not log requests, and does not look up client names."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def address_string(self) -> str:
        return str(self.client_address[0])


@contextmanager
def serve_endpoint(
    path: Path | str, port: int = 0, host: str = "127.0.0.1"
) -> Iterator[tuple[str, Store]]:
    """Yield the address and the store of an endpoint that runs in threads of this process."""
    store = Store(path)
    server = make_server(host, port, Endpoint(store), server_class=Threads, handler_class=Quiet)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}", store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        store.close()
