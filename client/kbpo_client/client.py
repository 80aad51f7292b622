"""The API of the service as Python methods.

What is a list comes as a pandas data frame where pandas is installed, else as a list of
dictionaries; everything else as the service said it.
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
"""A pandas data frame, or a list of `Json` where there is no pandas or none is wanted"""

RESTING = {"planned", "scored", "refused", "expired", "withdrawn", "failed"}
"""Statuses of a submission that wait for nobody but its owner"""
BLOCK = 1 << 16
TOO_LARGE, BUSY, AWAY = 413, 429, 500
"""Statuses of HTTP: a body is too large; too many requests; from here on the service, or a proxy
before it, is in trouble"""
PATIENCE, LONGEST_WAIT = 900.0, 60.0
"""Seconds for which a watch outlasts a service that is away, and from look to look at most"""
ASK_ADDRESS = "Is the address right?"
MOST_WAITS = 5
"""How often a request is repeated that the service asked to come later"""


class Refused(Exception):
    """The service understood the request and declined it; the text is its sentence.

    `code` is the service's word for the reason, `status` that of HTTP.
    """

    def __init__(self, detail: str, code: str = "", status: int = 0) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status


class _Watched:
    """A file whose reader tells how many bytes were taken from it."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell
        self.fileno, self.seek = file.fileno, file.seek

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._tell(len(block))
        return block


class Unreachable(Exception):
    """The service did not answer; the text says how that showed."""


class Client:
    """A connection to one service, with a token where one is needed.

    Methods raise Refused with the service's own sentence, and Unreachable where there is none.
    `frames=False`: lists of dictionaries although pandas is installed. A request that the service
    asks to come later with is sent again then, a few times; `tell_wait` hears of each such wait.
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
        """Closes the connection."""
        self._http.close()

    def tracks(self) -> Table:
        """Return the tracks there are."""
        return self._table(self._get("tracks/")["tracks"])

    def track(self, slug: str) -> Json:
        """One track, with its corpus and where its documents can be had."""
        return self._get(f"tracks/{slug}/")

    def schema(self, slug: str) -> Json:
        """Return the schema of a track's corpus, as in its file."""
        return self._get(f"tracks/{slug}/schema/")

    def board(self, slug: str, **switches: str) -> Json:
        """Return the leaderboard; `distribution`, `criterion`, `population` and `sort` choose
        another view.
        """
        return self._get(f"tracks/{slug}/board/", **switches)

    def scores(self, slug: str, **switches: str) -> Table:
        """Return the systems of a leaderboard with their numbers, a row each."""
        return self._table(self.board(slug, **switches)["systems"])

    def compare(self, slug: str, a: int, b: int, **switches: str) -> Json:
        """Return how two systems of a board differ, each difference with its interval; by relation;
        and what both predict or one alone. `evaluation` chooses an earlier state.
        """
        return self._get(f"tracks/{slug}/compare/", a=a, b=b, **switches)

    def submissions(self, **switches: Any) -> Table:
        """Return the runs of your teams, the latest first; `track` and `status` choose."""
        return self._table(self._pages("submissions/", of="submissions", **switches))

    def submission(self, number: int) -> Json:
        """One submission: where it is, its plan, its scores so far."""
        return self._get(f"submissions/{number}/")

    def problems(self, number: int) -> Table:
        """Return what the reader noticed in a submission's file."""
        return self._table(self._pages(f"submissions/{number}/problems/"))

    def predictions(self, number: int, **filters: str) -> Iterator[Json]:
        """Yield a submission's predictions with what people said of each, as far as you may see.

        Filters are those of the page: `verdict` (right, wrong, undecided, judged, unjudged,
        disputed), `part` (the part that is wrong, or any), `votes="split"`, `who="alone"`,
        `relation`, `type`, `q` (words of the text), `entity` (name of the subject or
        object), `document`, `sort`.
        """
        yield from self._after(f"submissions/{number}/predictions/", **filters)

    def judgments(self, number: int, *, verdict: str = "judged", **filters: str) -> Table:
        """Return a submission's judged predictions; `verdict` and the filters of `predictions`
        choose.
        """
        return self._table(self.predictions(number, verdict=verdict, **filters))

    def errors(self, number: int, **filters: str) -> Table:
        """Return the judged predictions that people found wrong, in whole or in a part; where
        people rate, all that they rated, the worst first.
        """
        chosen = {"sort": "worst"} if self._is_rated(number) else {"part": "any"}
        return self.judgments(number, **(chosen | filters))

    def _is_rated(self, number: int) -> bool:
        """Return whether people rate a submission's predictions, so that none is right or wrong."""
        track = self.track(self.submission(number)["track"])
        single = {criterion["name"]: criterion["single"] for criterion in track["criteria"]}
        return bool(single[track["criterion"]] == "mean")

    def dispute(self, number: int, prediction: int, note: str) -> Json:
        """Says that a judgment of a prediction of yours is wrong: an expert is asked, blind."""
        address = f"submissions/{number}/predictions/{prediction}/dispute/"
        return cast(Json, self._send("POST", address, json={"note": note}).json())

    def slices(self, number: int) -> Table:
        """Return a submission's scores by slice: by relation, by class of entity, and so on."""
        return self._table(self._get(f"submissions/{number}/slices/")["slices"])

    def metrics(self, slug: str, figure: str = "worth", criterion: str = "") -> Table:
        """Return what the metrics and judges of a track are worth, all together first. `figure`
        chooses another table of the page: `prompts` (what each question is worth), `systems`,
        `width`, `judgments`; `criterion` what is judged.
        """
        chosen = {"criterion": criterion} if criterion else {}
        return self._table(self._pages(f"tracks/{slug}/metrics/", figure=figure, **chosen))

    def missed(self, number: int, *, who: str = "missed", **filters: str) -> Table:
        """Return what people found true in documents that they read in full and a submission does
        not state: what others found, or with `who="nobody"` what no system did. Filters:
        `relation`, `entity`, `q`, `document`, `sort`.
        """
        chosen = {name: value for name, value in filters.items() if value}
        return self._table(self._pages(f"submissions/{number}/missed/", who=who, **chosen))

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
        """Uploads a file; a repeat after a broken connection returns the same submission.

        `paper` and `code` are addresses. A `private` run is shown to nobody else until
        `publish`, but a data release of the closed track holds it without its name; of an
        `anonymous` one others see a number. The release has what your team had been shown before,
        which may tell which other runs are yours. `team`: which of yours, by its slug; else the
        first. `again`: yes, although the same file is there already. `tell` hears of every block's
        size as it is sent.
        """
        path = Path(path)
        fields = {"track": track, "name": name, "description": description}
        fields |= {"paper": paper, "code": code} | ({"team": team} if team else {})
        flags = {"private": private, "anonymous": anonymous, "again": again}
        with path.open("rb") as file:
            key = _digest(file, *fields.values(), *flags.values())
            file.seek(0)
            answer = self._send(
                "POST",
                "submissions/",
                data=fields | {flag: str(is_set).lower() for flag, is_set in flags.items()},
                files={"file": (path.name, file if tell is None else _Watched(file, tell))},
                headers={"Idempotency-Key": key},
                timeout=httpx.Timeout(60.0, write=None, read=None),
            )
        return cast(Json, answer.json())

    def edit(self, number: int, **said: Any) -> Json:
        """Says of a submission what is given: `name`, `description`, `paper`, `code`, `private`,
        `anonymous`. The rest stays as it is.
        """
        return cast(Json, self._send("PATCH", f"submissions/{number}/", json=said).json())

    def publish(self, number: int) -> Json:
        """Shows a private submission to everybody. That stays."""
        return self.edit(number, private=False)

    def confirm(self, number: int, **choices: Any) -> Json:
        """Confirms a plan, which reserves its price; `half_width`, `good_lines_only` and
        `development` (how many development predictions are judged) choose.
        What costs more by now than `at_most`, as "12.50", is not confirmed.
        """
        answer = self._send("POST", f"submissions/{number}/confirm/", json=choices)
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
        """Orders more judgments for a narrower interval. What costs more by now than `at_most`, as
        "12.50", is not ordered.
        """
        said = {"half_width": half_width, "order": order, "made_at": made_at, "at_most": at_most}
        choices = {name: value for name, value in said.items() if value is not None}
        answer = self._send("POST", f"submissions/{number}/order/", json=choices)
        return cast(Json, answer.json())

    def withdraw(self, number: int) -> Json:
        """Takes a submission back. What people have judged is kept and paid."""
        return cast(Json, self._send("POST", f"submissions/{number}/withdraw/").json())

    def retry(self, number: int) -> Json:
        """Puts a submission that was given up back where it was; it is tried again at once."""
        return cast(Json, self._send("POST", f"submissions/{number}/retry/").json())

    def delete(self, number: int) -> None:
        """Deletes a refused upload or a discarded draft, with its file; a run is withdrawn."""
        self._send("DELETE", f"submissions/{number}/")

    def judges(self, track: str) -> list[Json]:
        """Return the metrics and judges of a track, and how much of it each has scored."""
        return list(self._get(f"tracks/{track}/judges/")["judges"])

    def unscored(self, track: str, judge: Json, *, after: int = 0, limit: int = 100) -> Json:
        """Return what a judge (its name, version and prompt) has not scored yet: `results`, and the
        `count` of all that is left. For admins.
        """
        return self._get(f"tracks/{track}/unscored/", **judge, after=after, limit=limit)

    def bring_scores(
        self, track: str, judge: Json, scores: list[Json], *, not_tuned: bool = False
    ) -> Json:
        """Brings what a judge says: a list of `id` and `value`. All is stored, or nothing.
        `not_tuned` states that no judgment of the track tuned the judge.
        """
        body = {**judge, "scores": scores, "not_tuned": not_tuned}
        answer = self._send("POST", f"tracks/{track}/scores/", json=body)
        return cast(Json, answer.json())

    def import_scores(
        self, track: str, path: str | Path, judge: Json, *, not_tuned: bool = False
    ) -> Json:
        """Brings a file of scores: it is stored whole, or not at all. `not_tuned` states that no
        judgment of the track tuned the judge.
        """
        path, judge = Path(path), {**judge, "not_tuned": not_tuned}
        with path.open("rb") as file:
            answer = self._send(
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
        """Return the submission once it waits for nobody but you; `tell` is called at every look.

        A service that has answered and then is away is asked again, at growing distances, for a
        quarter of an hour; `tell_trouble` hears of it.
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
                    tell_trouble(_asked_again(trouble, pause))
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
        """Writes the documents of a track's corpus to a file, whole or not at all.

        `what` may be "mentions" for the types of its mentions; `tell` hears of every block's size.
        """
        return self._save(f"tracks/{slug}/{what}/", Path(path), tell)

    def releases(self, slug: str) -> list[Json]:
        """Return the releases of a track, the latest first, each with its SHA-256."""
        return list(self._get(f"tracks/{slug}/releases/")["releases"])

    def download_release(
        self, release: Json, path: str | Path, *, tell: Callable[[int], None] | None = None
    ) -> Path:
        """Writes the file of a release, whole and as it was published, or not at all. Raises
        Refused if it is another.
        """
        return self._save(release["link"], Path(path), tell, wanted=release["digest"])

    def _save(
        self, url: str, path: Path, tell: Callable[[int], None] | None, *, wanted: str = ""
    ) -> Path:
        """Writes what stands at an address to a file, which stays as it was if that fails or has
        not the SHA-256 that is `wanted`.
        """
        part = path.with_name(path.name + ".part")
        for attempt in range(MOST_WAITS + 1):
            digest = hashlib.sha256()
            try:
                with self._http.stream("GET", url) as answer:
                    if answer.status_code == 200:
                        _checked_answer(answer)
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
            if not self._came_later(answer, attempt):
                raise _refusal(answer)
        if wanted and digest.hexdigest() != wanted:
            part.unlink()
            raise Refused(
                f"{path.name} arrived damaged: its SHA-256 is {digest.hexdigest()}.", "damaged"
            )
        part.replace(path)
        return path

    def _table(self, records: Iterable[Json]) -> Table:
        """Return records as a table. In a frame each part of a nested value is a column, as
        `f1_value`.
        """
        if not self._frames:
            return list(records)
        return pandas.json_normalize(list(records), sep="_")

    def _get(self, path: str, **parameters: Any) -> Json:
        return cast(Json, self._send("GET", path, params=parameters).json())

    def _pages(self, path: str, *, of: str = "results", **parameters: Any) -> Iterator[Json]:
        """Yield the rows of all pages."""
        offset = 0
        while True:
            page = self._get(path, limit=1000, offset=offset, **parameters)
            yield from page[of]
            offset += len(page[of])
            if not page[of] or offset >= page["count"]:
                return

    def _after(self, path: str, **filters: str) -> Iterator[Json]:
        """Yield the rows of all pages, each of which says where the next one begins."""
        after = ""
        while True:
            asked = {"limit": 500, "after": after, **filters}
            page = self._get(path, **{name: value for name, value in asked.items() if value})
            yield from page["results"]
            if not page["next"]:
                return
            after = parse_qs(urlsplit(page["next"]).query)["after"][0]

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the answer. What the service asks to come later with is sent again, a few
        times.
        """
        for attempt in range(MOST_WAITS + 1):
            try:
                answer = self._http.request(method, path, **options)
            except httpx.HTTPError as error:
                raise Unreachable(_failure_text(error, self._http.base_url)) from error
            if answer.is_success:
                return _checked_answer(answer)
            if "files" in options or not self._came_later(answer, attempt):
                break
        raise _refusal(answer)

    def _came_later(self, answer: httpx.Response, attempt: int) -> bool:
        """Return whether the service asked to be asked again soon, and that is now."""
        seconds = _later(answer)
        if seconds is None or seconds > LONGEST_WAIT or attempt == MOST_WAITS:
            return False
        if self._tell_wait is not None:
            self._tell_wait(_asked_again(_refusal(answer), seconds))
        time.sleep(seconds)
        return True


def _later(answer: httpx.Response) -> float | None:
    """In how many seconds the service asks to be asked again; None where it does not."""
    later = answer.headers.get("Retry-After", "")
    return float(later) if answer.status_code in (BUSY, 503) and later.isdecimal() else None


def _asked_again(trouble: Exception, seconds: float) -> str:
    """Return why a request failed, and when it is repeated."""
    return f"{trouble} It is asked again in {seconds:.0f} s."


def _checked_answer(answer: httpx.Response) -> httpx.Response:
    """Return the answer. Raises Unreachable where what answers well is another service than
    this.
    """
    if answer.headers.get("Content-Type", "").startswith("text/"):  # ours is JSON
        host = answer.url.host
        raise Unreachable(f"{host} answers, but not as KBP Online does. {ASK_ADDRESS}")
    return answer


def _refusal(answer: httpx.Response) -> Exception:
    """Return the refusal of the service; of what stands before it if it is not in its words."""
    if answer.has_redirect_location:
        there = answer.url.join(answer.headers["Location"])
        return Unreachable(f"{answer.url.host} leads to {there}. {ASK_ADDRESS}")
    try:
        refusal = answer.json()
        return Refused(str(refusal["detail"]), str(refusal["error"]), answer.status_code)
    except (ValueError, KeyError, TypeError):
        return _not_ours(answer)


def _not_ours(answer: httpx.Response) -> Exception:
    """Return what to make of a refusal that is not in the words of the service: of something before
    it.
    """
    status, host = answer.status_code, answer.url.host
    if status >= AWAY:
        return Unreachable(
            f"{host} answers {status} {answer.reason_phrase}: the service is down, or what stands"
            " before it. Try again in a few minutes."
        )
    if status == TOO_LARGE:
        return Refused(f"What stands before {host} lets no file as large through.", "large", status)
    if status in (401, 403, 407):
        return Unreachable(
            f"{host} answers {status} with a page of its own, not as KBP Online does: a proxy,"
            f" perhaps. {ASK_ADDRESS}"
        )
    asked = f" {ASK_ADDRESS}" if status == 404 else ""
    return Refused(f"The service answered {status} without a reason.{asked}", "error", status)


def _failure_text(error: httpx.HTTPError, url: httpx.URL) -> str:
    """Return why nothing answered and what to do, as a sentence."""
    site = str(url).removesuffix("api/").rstrip("/")
    if isinstance(error, httpx.UnsupportedProtocol):
        return f"{site} is no address of a service: it begins with https:// or http://."
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{site} does not answer ({str(error).strip('[]')}). {ASK_ADDRESS}"
    if isinstance(error, httpx.TimeoutException):
        return f"{site} does not answer: it took too long. Try again in a few minutes."
    return f"{site} does not answer any more: the connection broke off. Try again."


def _digest(file: BinaryIO, *words: object) -> str:
    """Return a key that is the same for the same upload, so that a repeat makes no second
    submission.
    """
    digest = hashlib.sha256("\0".join(map(str, words)).encode())
    for block in iter(lambda: file.read(BLOCK), b""):
        digest.update(block)
    return digest.hexdigest()
