"""The API of the service as Python methods.

Lists are returned as pandas data frames if pandas is installed, else as lists of dictionaries;
everything else is returned as the service sent it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast
from urllib.parse import parse_qs, urlsplit

import httpx

try:
    import pandas
except ImportError:
    pandas = None

Json = dict[str, Any]
Table: TypeAlias = Any
"""A pandas data frame; a list of `Json` without pandas, or with `frames=False`"""

RESTING = {"planned", "scored", "refused", "expired", "withdrawn", "failed"}
"""Statuses of a submission that waits for its owner only"""
BLOCK = 1 << 16
TOO_LARGE, BUSY, AWAY = 413, 429, 500
"""HTTP statuses: the body is too large; too many requests; from this one on, the service or a proxy
in front of it has failed"""
PATIENCE, LONGEST_WAIT = 900.0, 60.0
"""Seconds for which a watch tolerates an absent service, and the longest time between two requests
"""
ASK_ADDRESS = "Is the address right?"
MOST_WAITS = 5
"""How often a request is repeated if the service asks to retry later"""


class Refused(Exception):
    """Raised if the service refused the request; the text is its sentence. `code` is the service's
    reason code, `status` the HTTP status.
    """

    def __init__(self, detail: str, code: str = "", status: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status


class _Watched:
    """A file that reports how many bytes were read from it."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell
        self.fileno, self.seek = file.fileno, file.seek

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._tell(len(block))
        return block


class Unreachable(Exception):
    """Raised if the service did not answer; the text describes the failure."""


class Client:
    """A connection to one service, with a token where one is needed.

    Methods raise Refused with the service's own sentence, and Unreachable without an answer. With
    `frames=False` lists are lists of dictionaries even if pandas is installed. If the service asks
    to repeat a request later, it is repeated a few times; `tell_wait` is called before each wait.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout: float = 60.0,
        frames: bool = True,
        tell_wait: Callable[[str], None] | None = None,
    ) -> None:
        self._frames = frames and pandas is not None
        self._tell_wait = tell_wait
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Token {token}"
        try:
            self._http = httpx.Client(
                base_url=url.rstrip("/") + "/api/", headers=headers, timeout=timeout
            )
        except httpx.InvalidURL as error:
            raise Unreachable(f"{url} is no address of a service: {error}.") from error

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def tracks(self) -> Table:
        """Return all tracks as a table."""
        return self._as_table(self._get_json("tracks/")["tracks"])

    def track(self, slug: str) -> Json:
        """Return a track with its corpus and the links to its documents."""
        return self._get_json(f"tracks/{slug}/")

    def schema(self, slug: str) -> Json:
        """Return the schema of a track's corpus."""
        return self._get_json(f"tracks/{slug}/schema/")

    def board(self, slug: str, **switches: str) -> Json:
        """Return the leaderboard; `distribution`, `criterion`, `population` and `sort` select
        another view.
        """
        return self._get_json(f"tracks/{slug}/board/", **switches)

    def scores(self, slug: str, **switches: str) -> Table:
        """Return the systems of a leaderboard with their figures, one row each."""
        return self._as_table(self.board(slug, **switches)["systems"])

    def compare(self, slug: str, a: int, b: int, **switches: str) -> Json:
        """Return the differences between two systems of a board with intervals, by relation, and
        their overlap. `evaluation` selects an earlier state.
        """
        return self._get_json(f"tracks/{slug}/compare/", a=a, b=b, **switches)

    def submissions(self, **switches: Any) -> Table:
        """Return the runs of your teams, the latest first, filtered by `track` and `status`."""
        return self._as_table(self._numbered_pages("submissions/", of="submissions", **switches))

    def submission(self, number: int) -> Json:
        """Return a submission: its status, plan and scores."""
        return self._get_json(f"submissions/{number}/")

    def problems(self, number: int) -> Table:
        """Return the problems in the file of a submission."""
        return self._as_table(self._numbered_pages(f"submissions/{number}/problems/"))

    def predictions(self, number: int, **filters: str) -> Iterator[Json]:
        """Yield a submission's predictions, each with the judgments that you may see.

        Filters are those of the page: `verdict` (right, wrong, undecided, judged, unjudged,
        disputed), `part` (the part that is wrong, or any), `votes="split"`, `who="alone"`,
        `relation`, `type`, `q` (words of the text), `entity` (name of the subject or object),
        `document`, `sort`.
        """
        yield from self._cursor_pages(f"submissions/{number}/predictions/", **filters)

    def judgments(self, number: int, *, verdict: str = "judged", **filters: str) -> Table:
        """Return the judged predictions of a submission, filtered by `verdict` and the filters of
        `predictions`.
        """
        return self._as_table(self.predictions(number, verdict=verdict, **filters))

    def errors(self, number: int, **filters: str) -> Table:
        """Return the judged predictions that are wrong, in whole or in a part; if people rate, all
        that they rated, the worst first.
        """
        track = self.track(self.submission(number)["track"])
        single = {criterion["name"]: criterion["single"] for criterion in track["criteria"]}
        is_rated = single[track["criterion"]] == "mean"
        chosen = {"sort": "worst"} if is_rated else {"part": "any"}
        return self.judgments(number, **(chosen | filters))

    def dispute(self, number: int, prediction: int, note: str) -> Json:
        """Dispute the judgment of one of your predictions: an expert judges it blind."""
        address = f"submissions/{number}/predictions/{prediction}/dispute/"
        return cast(Json, self._send_with_retries("POST", address, json={"note": note}).json())

    def slices(self, number: int) -> Table:
        """Return the scores of a submission by slice: by relation, by class of entity,
        and so on.
        """
        return self._as_table(self._get_json(f"submissions/{number}/slices/")["slices"])

    def metrics(self, slug: str, figure: str = "worth", criterion: str = "") -> Table:
        """Return the worth of the metrics and judges of a track, all together first. `figure`
        selects another table (`prompts`, `systems`, `width`, `judgments`), `criterion` another
        criterion.
        """
        chosen = {"criterion": criterion} if criterion else {}
        return self._as_table(
            self._numbered_pages(f"tracks/{slug}/metrics/", figure=figure, **chosen)
        )

    def missed(self, number: int, *, who: str = "missed", **filters: str) -> Table:
        """Return the true facts of fully read documents that a submission does not predict: those
        that other systems predict, or with `who="nobody"` those that none does. Filters:
        `relation`, `entity`, `q`, `document`, `sort`.
        """
        chosen = {name: value for name, value in filters.items() if value}
        return self._as_table(
            self._numbered_pages(f"submissions/{number}/missed/", who=who, **chosen)
        )

    def submit(
        self,
        track: str,
        path: str | Path,
        name: str,
        *,
        description: str = "",
        paper: str = "",
        code: str = "",
        private: bool = False,
        anonymous: bool = False,
        team: str = "",
        again: bool = False,
        tell: Callable[[int], None] | None = None,
    ) -> Json:
        """Upload a file; a repeat after a broken connection returns the same submission.

        `paper` and `code` are addresses. A `private` run is shown to nobody else until `publish`,
        but a data release of the closed track has it without its name; others see an `anonymous`
        run under a number. `team` is the slug of your team, by default the first. `again` uploads
        a file that was uploaded before. `tell` is called with the size of each block sent.
        """
        path = Path(path)
        fields = {"track": track, "name": name, "description": description}
        fields |= {"paper": paper, "code": code} | ({"team": team} if team else {})
        flags = {"private": private, "anonymous": anonymous, "again": again}
        with path.open("rb") as file:
            key = _idempotency_key(file, *fields.values(), *flags.values())
            file.seek(0)
            answer = self._send_with_retries(
                "POST",
                "submissions/",
                data=fields | {flag: str(is_set).lower() for flag, is_set in flags.items()},
                files={"file": (path.name, file if tell is None else _Watched(file, tell))},
                headers={"Idempotency-Key": key},
                timeout=httpx.Timeout(60.0, write=None, read=None),
            )
        return cast(Json, answer.json())

    def edit(self, number: int, **said: Any) -> Json:
        """Change the given fields of a submission: `name`, `description`, `paper`, `code`,
        `private`, `anonymous`.
        """
        return cast(
            Json, self._send_with_retries("PATCH", f"submissions/{number}/", json=said).json()
        )

    def publish(self, number: int) -> Json:
        """Make a private submission public. This cannot be undone."""
        return self.edit(number, private=False)

    def confirm(self, number: int, **choices: Any) -> Json:
        """Confirm a plan, which reserves its price, with `half_width`, `good_lines_only` and
        `development` (the number of judged development predictions). A price above `at_most`, as
        "12.50", is refused.
        """
        answer = self._send_with_retries("POST", f"submissions/{number}/confirm/", json=choices)
        return cast(Json, answer.json())

    def order(
        self,
        number: int,
        half_width: str,
        order: int | None = None,
        made_at: str | None = None,
        *,
        at_most: str | None = None,
    ) -> Json:
        """Order more judgments for a narrower interval. A price above `at_most`, as "12.50", is
        refused.
        """
        said = {"half_width": half_width, "order": order, "made_at": made_at, "at_most": at_most}
        choices = {name: value for name, value in said.items() if value is not None}
        answer = self._send_with_retries("POST", f"submissions/{number}/order/", json=choices)
        return cast(Json, answer.json())

    def withdraw(self, number: int) -> Json:
        """Withdraw a submission. Existing judgments are kept and paid."""
        return cast(Json, self._send_with_retries("POST", f"submissions/{number}/withdraw/").json())

    def retry(self, number: int) -> Json:
        """Retry a failed submission."""
        return cast(Json, self._send_with_retries("POST", f"submissions/{number}/retry/").json())

    def delete(self, number: int) -> None:
        """Delete a refused upload or a discarded draft with its file. Runs are
        withdrawn instead.
        """
        self._send_with_retries("DELETE", f"submissions/{number}/")

    def judges(self, track: str) -> list[Json]:
        """Return the metrics and judges of a track, each with the number of its scores."""
        return list(self._get_json(f"tracks/{track}/judges/")["judges"])

    def unscored(self, track: str, judge: Json, *, after: int = 0, limit: int = 100) -> Json:
        """Return the items that a judge (its name, version and prompt) has not scored: `results`,
        and the `count` of all. For admins.
        """
        return self._get_json(f"tracks/{track}/unscored/", **judge, after=after, limit=limit)

    def bring_scores(
        self, track: str, judge: Json, scores: list[Json], *, not_tuned: bool = False
    ) -> Json:
        """Store the scores of a judge, a list of `id` and `value`; all or none. `not_tuned` states
        that the judge was not tuned on judgments of the track.
        """
        body = {**judge, "scores": scores, "not_tuned": not_tuned}
        answer = self._send_with_retries("POST", f"tracks/{track}/scores/", json=body)
        return cast(Json, answer.json())

    def import_scores(
        self, track: str, path: str | Path, judge: Json, *, not_tuned: bool = False
    ) -> Json:
        """Store a file of scores; all or none. `not_tuned` states that the judge was not tuned on
        judgments of the track.
        """
        path, judge = Path(path), {**judge, "not_tuned": not_tuned}
        with path.open("rb") as file:
            answer = self._send_with_retries(
                "POST", f"tracks/{track}/judges/", data=judge, files={"file": (path.name, file)}
            )
        return cast(Json, answer.json())

    def wait(
        self,
        number: int,
        *,
        seconds: float = 5.0,
        tell: Callable[[Json], None] | None = None,
        tell_trouble: Callable[[str], None] | None = None,
    ) -> Json:
        """Return the submission once it waits for you or has ended; `tell` is called after each
        request. If the service is away, requests are repeated at growing intervals for a quarter of
        an hour, and `tell_trouble` is called.
        """
        answered_at, pause = None, seconds
        while True:
            try:
                submission = self.submission(number)
            except (Unreachable, Refused) as trouble:
                is_away = isinstance(trouble, Unreachable) or trouble.status >= AWAY
                is_new = answered_at is None or time.monotonic() - answered_at > PATIENCE
                if is_new or not is_away:
                    raise
                if tell_trouble is not None:
                    tell_trouble(_retry_text(trouble, pause))
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_WAIT)
                continue
            answered_at, pause = time.monotonic(), seconds
            if tell is not None:
                tell(submission)
            if submission["status"] in RESTING:
                return submission
            time.sleep(seconds)

    def download(
        self,
        slug: str,
        path: str | Path,
        *,
        what: str = "documents",
        tell: Callable[[int], None] | None = None,
    ) -> Path:
        """Write the documents of a track's corpus to a file; all or nothing. `what` may be
        "mentions" for the types of its mentions; `tell` is called with the size of each block.
        """
        return self._download_to_file(f"tracks/{slug}/{what}/", Path(path), tell)

    def releases(self, slug: str) -> list[Json]:
        """Return the releases of a track, the latest first, each with its SHA-256."""
        return list(self._get_json(f"tracks/{slug}/releases/")["releases"])

    def download_release(
        self, release: Json, path: str | Path, *, tell: Callable[[int], None] | None = None
    ) -> Path:
        """Write the file of a release; all or nothing. Raises Refused if its SHA-256 differs."""
        return self._download_to_file(release["link"], Path(path), tell, wanted=release["digest"])

    def _download_to_file(
        self, url: str, path: Path, tell: Callable[[int], None] | None, *, wanted: str = ""
    ) -> Path:
        """Write the content of an address to a file. The file is unchanged if that fails or the
        SHA-256 is not `wanted`.
        """
        part = path.with_name(path.name + ".part")
        for attempt in range(MOST_WAITS + 1):
            digest = hashlib.sha256()
            try:
                with self._http.stream("GET", url) as answer:
                    if answer.status_code == 200:
                        _check_is_from_service(answer)
                        with part.open("wb") as file:
                            for block in answer.iter_raw(BLOCK):
                                file.write(block)
                                digest.update(block)
                                if tell is not None:
                                    tell(len(block))
                        break
                    answer.read()
            except OSError:  # a full disk, say
                part.unlink(missing_ok=True)
                raise
            except httpx.HTTPError as error:
                part.unlink(missing_ok=True)
                raise Unreachable(_failure_text(error, self._http.base_url)) from error
            if not self._wait_if_asked(answer, attempt):
                raise _refusal_exception(answer)
        if wanted and digest.hexdigest() != wanted:
            part.unlink()
            raise Refused(
                f"{path.name} arrived damaged: its SHA-256 is {digest.hexdigest()}.", "damaged"
            )
        part.replace(path)
        return path

    def _as_table(self, records: Iterable[Json]) -> Table:
        """Return records as a table. In a data frame each part of a nested value is a column, as
        `f1_value`.
        """
        if not self._frames:
            return list(records)
        return pandas.json_normalize(list(records), sep="_")

    def _get_json(self, path: str, **parameters: Any) -> Json:
        return cast(Json, self._send_with_retries("GET", path, params=parameters).json())

    def _numbered_pages(
        self, path: str, *, of: str = "results", **parameters: Any
    ) -> Iterator[Json]:
        """Yield the rows of all pages."""
        offset = 0
        while True:
            page = self._get_json(path, limit=1000, offset=offset, **parameters)
            yield from page[of]
            offset += len(page[of])
            if not page[of] or offset >= page["count"]:
                return

    def _cursor_pages(self, path: str, **filters: str) -> Iterator[Json]:
        """Yield the rows of all pages of a list with `next`."""
        after = ""
        while True:
            asked = {"limit": 500, "after": after, **filters}
            page = self._get_json(path, **{name: value for name, value in asked.items() if value})
            yield from page["results"]
            if not page["next"]:
                return
            after = parse_qs(urlsplit(page["next"]).query)["after"][0]

    def _send_with_retries(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the response. Requests that the service asks to repeat later are repeated a few
        times.
        """
        for attempt in range(MOST_WAITS + 1):
            try:
                answer = self._http.request(method, path, **options)
            except httpx.HTTPError as error:
                raise Unreachable(_failure_text(error, self._http.base_url)) from error
            if answer.is_success:
                return _check_is_from_service(answer)
            if "files" in options or not self._wait_if_asked(answer, attempt):
                break
        raise _refusal_exception(answer)

    def _wait_if_asked(self, answer: httpx.Response, attempt: int) -> bool:
        """Wait if the service asked to repeat the request soon, and return whether it did."""
        later = answer.headers.get("Retry-After", "")
        if answer.status_code not in (BUSY, 503) or not later.isdecimal():
            return False
        seconds = float(later)
        if seconds > LONGEST_WAIT or attempt == MOST_WAITS:
            return False
        if self._tell_wait is not None:
            self._tell_wait(_retry_text(_refusal_exception(answer), seconds))
        time.sleep(seconds)
        return True


def _retry_text(trouble: Exception, seconds: float) -> str:
    """Return a sentence on why a request failed and when it is repeated."""
    return f"{trouble} It is asked again in {seconds:.0f} s."


def _check_is_from_service(answer: httpx.Response) -> httpx.Response:
    """Return the response. Raises Unreachable if it is not from this service."""
    if answer.headers.get("Content-Type", "").startswith("text/"):  # ours is JSON
        host = answer.url.host
        raise Unreachable(f"{host} answers, but not as KBP Online does. {ASK_ADDRESS}")
    return answer


def _refusal_exception(answer: httpx.Response) -> Exception:
    """Return the exception for a refusal, by the service or by a proxy."""
    if answer.has_redirect_location:
        there = answer.url.join(answer.headers["Location"])
        return Unreachable(f"{answer.url.host} leads to {there}. {ASK_ADDRESS}")
    try:
        refusal = answer.json()
        return Refused(str(refusal["detail"]), str(refusal["error"]), answer.status_code)
    except (ValueError, KeyError, TypeError):
        return _proxy_refusal_exception(answer)


def _proxy_refusal_exception(answer: httpx.Response) -> Exception:
    """Return the exception for a refusal that is not from the service but from a proxy
    before it.
    """
    status, host = answer.status_code, answer.url.host
    if status >= AWAY:
        return Unreachable(
            f"{host} answers {status} {answer.reason_phrase}. Try again in a minute."
        )
    if status == TOO_LARGE:
        return Refused(f"What stands before {host} lets no file as large through.", "large", status)
    if status in (401, 403, 407):
        return Unreachable(
            f"{host} answers {status} with a page of a proxy or another service. {ASK_ADDRESS}"
        )
    asked = f" {ASK_ADDRESS}" if status == 404 else ""
    return Refused(f"The service answered {status} without a reason.{asked}", "error", status)


def _failure_text(error: httpx.HTTPError, url: httpx.URL) -> str:
    """Return a sentence on why there was no answer and what to do."""
    site = str(url).removesuffix("api/").rstrip("/")
    if isinstance(error, httpx.UnsupportedProtocol):
        return f"{site} is no address of a service: it begins with https:// or http://."
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{site} does not answer ({str(error).strip('[]')}). {ASK_ADDRESS}"
    if isinstance(error, httpx.TimeoutException):
        return f"{site} does not answer: it took too long. Try again in a few minutes."
    return f"{site} does not answer any more: the connection broke off. Try again."


def _idempotency_key(file: BinaryIO, *words: object) -> str:
    """Return the same key for the same upload, so that a repeat creates no second submission."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode())
    for block in iter(lambda: file.read(BLOCK), b""):
        digest.update(block)
    return digest.hexdigest()
