"""Writes and reads releases: all data from which a board's numbers are computed, as tables with one
row on each line.

Each table is JSON Lines. A row ends with `check`, the beginning of its own SHA-256, so that one
altered row can be named; `SHA256SUMS` has the sums of the files. Data for people only (names,
positions in documents, single answers) is in the same rows or in separate tables, and is not read
here.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.data import LIKE, Data, Draws, Guess, Noise, SingleRatings
from scoring.documents import Annotated, Facts
from scoring.double_sampling import Checks
from scoring.inclusion import Inclusion
from scoring.pool import Pool
from scoring.slices import Cut

Row = dict[str, Any]
FORMAT = 4
CHECK = "check"
ABOUT, SUMS = "release.json", "SHA256SUMS"
LOWERS = "lowers"
"""Column of a label of two texts: the systems for which a rating of the first text is reversed"""


INPUT = "input_number"
"""Column of an instance: its input, if numbers are about inputs like these"""


class BadRelease(Exception):
    """Raised for a file that is not a release, or cannot be read; the text is a sentence."""


# --- rows -------------------------------------------------------------------------------------


def with_checksum(row: Mapping[str, Any]) -> Row:
    """Return the row with its checksum."""
    return {**row, CHECK: _row_checksum(row)}


def is_altered(row: Mapping[str, Any]) -> bool:
    """Return whether a row's checksum does not match its content."""
    return row.get(CHECK) != _row_checksum({name: row[name] for name in row if name != CHECK})


def _row_checksum(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _number_or_null(value: float) -> float | None:
    """Return a number for JSON; an unknown one is null."""
    return None if math.isnan(value) else float(value)


def _float_or_nan(value: float | None) -> float:
    return math.nan if value is None else value


# --- writing ----------------------------------------------------------------------------------


def release_metadata(data: Data, checks: Checks | None) -> Row:
    """Return the metadata of a release, which the tables do not contain."""
    facts = data.facts
    return {
        "distributions": list(data.pool.p),
        "base": data.base,
        "unweighed": data.unweighed,
        "found_also": data.found_also,
        "mean": data.mean,
        "correlation": data.rho,
        "unaided_correlation": {name: guesses.rho for name, guesses in data.unaided.items()},
        "noise": {name: _number_or_null(noise.variance) for name, noise in data.noise.items()},
        "scorers": data.pool.scorers,
        "released": data.inclusion.released,
        "closed_documents": data.closed_documents,
        "population": data.population,
        "facts": facts and {"n_annotated": facts.n_annotated, "n_documents": facts.n_documents},
        "checks": checks
        and {
            "rounds": checks.rounds.tolist(),
            "judged_before_the_last": [
                data.systems[column] for column in np.flatnonzero(checks.since)
            ],
        },
    }


def data_tables(data: Data, checks: Checks | None = None) -> dict[str, Iterable[Row]]:
    """Return the tables from which the numbers are computed, by name, except draws with
    replacement, which are part of the history of all draws.
    """
    return {
        "targets": _target_rows(data),
        "instances": _instance_rows(data),
        "predictions": _prediction_rows(data.pool),
        "labels": _label_rows(data),
        "ratings": _rating_rows(data),
        "metrics": _metric_rows(data.pool),
        "documents": _document_rows(data),
        "facts": _fact_rows(data.facts),
        "checks": _check_rows(data, checks),
        "checked": _expert_answer_rows(data, checks),
    }


def _target_rows(data: Data) -> Iterator[Row]:
    now = data.inclusion
    columns = {
        "u": rounded_random_numbers(data),
        "asked": now.asked,
        "threshold": now.threshold,
        "drawn": now.drawn,
        "mark": data.mark,
    }
    for place, target in enumerate(data.pool.target_id.tolist()):
        yield {"target": target, **_row_from_columns(columns, place)}


def rounded_random_numbers(data: Data) -> Floats:
    """Return (t,) a substitute for each target's random number, which lies on the same side of the
    target's threshold.

    The real one is the same on all tracks of a corpus, and would reveal the questions of later
    tracks.
    """
    threshold = data.inclusion.threshold
    return np.where(data.pool.u < threshold, threshold / 2, (1 + threshold) / 2)


def _row_from_columns(columns: Mapping[str, NDArray[Any]], place: int) -> Row:
    return {name: column[place].item() for name, column in columns.items()}


def _instance_rows(data: Data) -> Iterator[Row]:
    pool, facts = data.pool, data.facts
    columns: dict[str, NDArray[Any]] = {"stratum": pool.stratum}
    columns |= {INPUT: data.input} if data.input.size else {}
    columns |= {"document": pool.document} if pool.document.any() else {}
    columns |= {f"g_{name}": g for name, g in data.g.items()}
    columns |= {f"error_{name}": error for name, error in data.error.items()}
    for name, guesses in data.unaided.items():
        columns[f"unaided_g_{name}"] = guesses.g
        if guesses.error is not None:
            columns[f"unaided_error_{name}"] = guesses.error
    if facts is not None:
        columns |= {
            "fact": facts.fact,
            "in_scope": facts.in_scope,
            "pool_weight": facts.pool_weight,
            "inside": facts.inside,
            "marked": facts.marked,
        }
    for place, instance in enumerate(pool.instance.tolist()):
        row = {"instance": instance, "target": int(pool.target_id[pool.target[place]])}
        row |= _row_from_columns(columns, place)
        if facts is not None:
            row["predicted_by"] = [
                data.systems[column] for column in np.flatnonzero(facts.predicted[place])
            ]
        yield row


def _prediction_rows(pool: Pool) -> Iterator[Row]:
    stored = sparse.csr_array(pool.confidence)
    tables_ = {f"p_{kind}": sparse.csr_array(p) for kind, p in pool.p.items()}
    pattern = sum(
        (_stored_indicator(table) for table in tables_.values()), _stored_indicator(stored)
    )
    rows, columns = sparse.coo_array(pattern).coords
    values = {name: np.asarray(table[rows, columns]).ravel() for name, table in tables_.items()}
    values["confidence"] = np.asarray(stored[rows, columns]).ravel()
    for entry in np.lexsort((rows, columns)).tolist():
        row = {"system": pool.systems[columns[entry]], "instance": int(pool.instance[rows[entry]])}
        yield row | _row_from_columns(values, entry)


def _stored_indicator(table: Matrix) -> Matrix:
    """Return a matrix with 1 at every stored entry, even a stored 0."""
    indicator = sparse.csr_array(table, copy=True)
    indicator.data = np.ones_like(indicator.data)
    return indicator


def _label_rows(data: Data) -> Iterator[Row]:
    for number, row in enumerate(data.judged.tolist()):
        label: Row = {"instance": int(data.pool.instance[row])}
        for criterion, verdicts in data.f.items():
            label[criterion] = _common_or_by_system(verdicts[number], data.systems)
        for criterion, noise in data.noise.items():
            label[f"ratings_{criterion}"] = int(noise.count[number])
            if noise.within is not None:
                label[f"within_{criterion}"] = _number_or_null(noise.within[number])
            if noise.lowers is not None:
                label[LOWERS] = [
                    data.systems[column] for column in np.flatnonzero(noise.lowers[number])
                ]
        yield label


def _common_or_by_system(
    verdicts: Floats, systems: list[int]
) -> float | dict[str, float | None] | None:
    """Return one number if it is the same for all systems; otherwise one for each system."""
    if np.isnan(verdicts).all() or (verdicts == verdicts[0]).all():
        return _number_or_null(verdicts[0])
    return {
        str(system): _number_or_null(value) for system, value in zip(systems, verdicts, strict=True)
    }


def _rating_rows(data: Data) -> Iterator[Row]:
    for criterion, noise in data.noise.items():
        single = noise.single
        for judged_row, judge, value in zip(
            single.at.tolist(), single.judge.tolist(), single.value.tolist(), strict=True
        ):
            instance = int(data.pool.instance[data.judged[judged_row]])
            yield {"criterion": criterion, "instance": instance, "judge": judge, "value": value}


def _metric_rows(pool: Pool) -> Iterator[Row]:
    for column, scorer in enumerate(pool.scorers):
        for row in np.flatnonzero(~np.isnan(pool.scores[:, column])).tolist():
            score = float(pool.scores[row, column])
            yield {"scorer": scorer, "instance": int(pool.instance[row]), "value": score}


def _document_rows(data: Data) -> Iterator[Row]:
    documents, first_stage = data.documents, set(data.documents.first)
    for place, document in enumerate(documents.documents):
        chance = documents.inclusion
        yield {
            "document": document,
            "first": document in first_stage,
            "probability": None if chance is None else float(chance[place]),
            "missed": int(data.facts.missed[place]) if data.facts is not None else 0,
        }


def _fact_rows(facts: Facts | None) -> Iterator[Row]:
    if facts is None:
        return
    for place in range(facts.found.size):
        yield {
            "document": int(facts.document[place]),
            "fact": int(facts.code[place]),
            "predicate": int(facts.stratum[place]),
            "found": bool(facts.found[place]),
            "subject_link": str(facts.links[place, 0]),
            "object_link": str(facts.links[place, 1]),
        }


def _check_rows(data: Data, checks: Checks | None) -> Iterator[Row]:
    """Yield each judged target with the rounds that could draw it, and their probabilities."""
    if checks is None:
        return
    for place, target in enumerate(data.pool.target_id[checks.target].tolist()):
        yield {
            "target": target,
            "by_crowd": bool(checks.by_crowd[place]),
            "imported": bool(checks.imported[place]),
            "checked": bool(checks.checked[place]),
            "pi": checks.pi[:, place].tolist(),
            "chance": checks.e[:, place].tolist(),
        }


def _expert_answer_rows(data: Data, checks: Checks | None) -> Iterator[Row]:
    """Yield the experts' answers about the judgments that they checked."""
    if checks is None:
        return
    asked = np.isin(data.pool.target[data.judged], checks.target[checks.checked])
    for judged_row in np.flatnonzero(asked).tolist():
        row: Row = {"instance": int(data.pool.instance[data.judged[judged_row]])}
        for criterion, verdicts in checks.f.items():
            row[criterion] = _common_or_by_system(verdicts[judged_row], data.systems)
        yield row


def slice_rows(cuts: Sequence[Cut]) -> Iterator[Row]:
    """Yield the slices of a board, each with the number by which instances refer to it."""
    for number, cut in enumerate(cuts):
        yield {
            "slice": number,
            "group": cut.group,
            "name": cut.name,
            "weighed_by": cut.kind,
            "stratum": cut.stratum,
        }


def add_slices(instances: Iterable[Row], cuts: Sequence[Cut]) -> Iterator[Row]:
    """Yield rows of instances with the slices that contain each."""
    inside = np.stack([cut.inside for cut in cuts]) if cuts else np.zeros((0, 0), dtype=np.bool_)
    for place, row in enumerate(instances):
        row["slices"] = np.flatnonzero(inside[:, place]).tolist() if cuts else []
        yield row


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """A release on disk, as a directory or as the downloaded ZIP file, whose tables can be read."""

    path: Path

    @cached_property
    def _root_path(self) -> Path | zipfile.Path:
        if self.path.is_dir():
            return self.path
        if not self.path.exists():
            raise BadRelease(f"There is no {self.path}.")
        try:
            return zipfile.Path(self.path)
        except zipfile.BadZipFile:
            raise BadRelease(f"{self.path} is neither a directory nor a zip file.") from None

    def read_bytes(self, name: str) -> bytes:
        """Return a file of the release. Raises BadRelease if it is missing."""
        file = self._root_path / name
        if not file.is_file():
            raise BadRelease(
                f"{self.path} has no file {name}: it is no release, or not a whole one."
            )
        try:
            with file.open("rb") as opened:
                return bytes(opened.read())
        except (OSError, zipfile.BadZipFile, zlib.error) as error:
            raise BadRelease(f"{name} in {self.path} cannot be read: {error}.") from error

    @cached_property
    def metadata(self) -> Row:
        """Return the content of `release.json`. Raises BadRelease for an unknown format."""
        try:
            description = json.loads(self.read_bytes(ABOUT))
        except ValueError as error:
            raise BadRelease(f"{ABOUT} is no JSON: {error}.") from error
        if not isinstance(description, dict) or description.get("format") != FORMAT:
            raise BadRelease(
                f"{ABOUT} does not say format {FORMAT}: this version of kbpo cannot read it."
            )
        return description

    def lines(self, table: str) -> Iterator[tuple[int, Row]]:
        """Yield the rows of a table with their line numbers. Raises BadRelease for an
        invalid row.
        """
        name = f"{table}.jsonl"
        for line, text in enumerate(self.read_bytes(name).splitlines(), 1):
            try:
                row = json.loads(text)
            except ValueError as error:
                raise BadRelease(f"{name}, line {line}: this is no JSON ({error}).") from error
            if not isinstance(row, dict):
                raise BadRelease(f"{name}, line {line}: this is no object.")
            yield line, row

    def columns(self, table: str) -> dict[str, list[Any]]:
        """Return a table as columns; empty for a table without rows."""
        records = [row for _, row in self.lines(table)]
        return {name: [row.get(name) for row in records] for name in records[0]} if records else {}


def read_data(release: Release) -> Data:
    """Return the data of a release. Raises BadRelease, or an exception of numpy if tables are
    inconsistent.
    """
    return _Reader(release).data()


def read_checks(release: Release, data: Data) -> Checks | None:
    """Return the experts' answers in a release; None if it has none."""
    return _Reader(release).checks(data) if release.metadata["data"].get("checks") else None


def read_cuts(release: Release) -> list[Cut]:
    """Return the slices of a release; empty for older releases without them."""
    if "slices" not in release.metadata["rows"]:
        return []
    slice_rows = [row for _, row in release.lines("slices")]
    instances = release.columns("instances")
    inside = np.zeros((len(slice_rows), len(instances.get("slices", []))), dtype=np.bool_)
    for column, numbers in enumerate(instances.get("slices", [])):
        inside[numbers, column] = True
    return [
        Cut(
            group=row["group"],
            name=row["name"],
            inside=inside[number],
            kind=row["weighed_by"],
            stratum=row["stratum"],
        )
        for number, row in enumerate(slice_rows)
    ]


class _Reader:
    """Reads the tables of one release into arrays."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.told: Row = release.metadata["data"]
        self.systems = [row["system"] for _, row in release.lines("systems")]
        self.column = {system: column for column, system in enumerate(self.systems)}
        self.instances = release.columns("instances")
        self.targets = release.columns("targets")
        self.instance = _as_ids(self.instances["instance"])
        self.target_id = _as_ids(self.targets["target"])

    def data(self) -> Data:
        metadata, pool = self.told, self.pool()
        judged, f, noise = self.labels()
        documents, missed = self.documents()
        shown = [row["takes_part"] for _, row in self.release.lines("systems")]
        return Data(
            pool=pool,
            shown=_as_bools(shown),
            judged=judged,
            f=f,
            draws=self.draws(pool),
            inclusion=Inclusion(
                asked=_as_floats(self.targets["asked"]),
                drawn=_as_bools(self.targets["drawn"]),
                threshold=_as_floats(self.targets["threshold"]),
                released=metadata["released"],
            ),
            g=self.by_criterion("g_"),
            rho=metadata["correlation"],
            base=metadata["base"],
            unweighed=metadata["unweighed"],
            facts=self.facts(missed),
            documents=documents,
            closed_documents=metadata["closed_documents"],
            mark=_as_floats(self.targets["mark"]),
            noise=noise,
            found_also=metadata["found_also"],
            mean=metadata["mean"],
            error=self.by_criterion("error_"),
            input=_as_ids(self.instances.get(INPUT, [])),
            population=metadata.get("population", LIKE if INPUT in self.instances else ""),
            unaided=self.unaided(),
        )

    def rows_of(self, instances: Iterable[int]) -> Ids:
        """Return the rows of instances in the pool. Raises KeyError for an instance that is not in
        it.
        """
        return _positions_among(self.instance, instances, "instance")

    def positions_of_targets(self, targets: Iterable[int]) -> Ids:
        return _positions_among(self.target_id, targets, "target")

    def by_criterion(self, prefix: str) -> dict[str, Floats]:
        return {
            name.removeprefix(prefix): _as_floats(values)
            for name, values in self.instances.items()
            if name.startswith(prefix)
        }

    def pool(self) -> Pool:
        predictions = self.release.columns("predictions")
        row = self.rows_of(predictions["instance"])
        column = _as_ids([self.column[system] for system in predictions["system"]])
        shape = (self.instance.size, len(self.systems))

        def probability_table(name: str) -> Matrix:
            return sparse.csr_array((_as_floats(predictions[name]), (row, column)), shape=shape)

        nothing = np.zeros(self.instance.size, dtype=np.int64)
        return Pool(
            systems=self.systems,
            teams=[0] * len(self.systems),
            instance=self.instance,
            target=self.positions_of_targets(self.instances["target"]),
            target_id=self.target_id,
            u=_as_floats(self.targets["u"]),
            document=_as_ids(self.instances.get("document", nothing)),
            stratum=_as_ids(self.instances["stratum"]),
            types=np.full(self.instance.size, ""),
            subject=nothing,
            object=nothing,
            p={kind: probability_table(f"p_{kind}") for kind in self.told["distributions"]},
            confidence=probability_table("confidence"),
            scorers=self.told["scorers"],
            scores=self.metric_scores(),
        )

    def metric_scores(self) -> Floats:
        scorers: list[int] = self.told["scorers"]
        if not scorers:
            return np.zeros((0, 0))
        scores = np.full((self.instance.size, len(scorers)), np.nan)
        stored = self.release.columns("metrics")
        column = [scorers.index(scorer) for scorer in stored["scorer"]]
        scores[self.rows_of(stored["instance"]), column] = stored["value"]
        return scores

    def labels(self) -> tuple[Ids, dict[str, Floats], dict[str, Noise]]:
        stored = self.release.columns("labels")
        judged = self.rows_of(stored.get("instance", []))
        noise = {
            criterion: Noise(
                _as_ids(stored.get(f"ratings_{criterion}", [])),
                _float_or_nan(variance),
                self.single_ratings(criterion, judged),
                self.read_second_texts(stored),
                self.within(criterion, stored),
            )
            for criterion, variance in self.told["noise"].items()
        }
        return judged, self.verdicts(stored), noise

    def within(self, criterion: str, columns: Mapping[str, list[Any]]) -> Floats | None:
        """Return (n,) the variance of the ratings of each label, as in `Noise`; None in releases
        without it.
        """
        told = columns.get(f"within_{criterion}")
        return None if told is None else _as_floats(told)

    def read_second_texts(self, columns: Mapping[str, list[Any]]) -> Bools | None:
        """Return (n, m) the part of `Noise` about labels of two texts; None if each label is about
        one.
        """
        if LOWERS not in columns:
            return None
        return np.array([np.isin(self.systems, named) for named in columns[LOWERS]])

    def verdicts(self, columns: Mapping[str, list[Any]]) -> dict[str, Floats]:
        """Return criterion -> (n, m) the verdicts of a table's rows on each system."""
        verdicts_of = {}
        for criterion in self.told["correlation"]:
            column = columns.get(criterion, [])
            verdicts_of[criterion] = np.full((len(column), len(self.systems)), np.nan)
            for row, verdict in enumerate(column):
                if isinstance(verdict, dict):
                    verdicts_of[criterion][row] = [
                        _float_or_nan(verdict[str(system)]) for system in self.systems
                    ]
                else:
                    verdicts_of[criterion][row] = _float_or_nan(verdict)
        return verdicts_of

    def checks(self, data: Data) -> Checks:
        once, stored = self.told["checks"], self.release.columns("checks")
        answered = self.release.columns("checked")
        judged_rows = _positions_among(
            data.judged, self.rows_of(answered.get("instance", [])), "judged row"
        )
        f = {}
        for criterion, verdicts in self.verdicts(answered).items():
            f[criterion] = np.full((data.judged.size, len(self.systems)), np.nan)
            f[criterion][judged_rows] = verdicts
        return Checks(
            target=self.positions_of_targets(stored["target"]),
            rounds=_as_ids(once["rounds"]),
            pi=np.array(stored["pi"], dtype=np.float64).T,
            e=np.array(stored["chance"], dtype=np.float64).T,
            checked=_as_bools(stored["checked"]),
            by_crowd=_as_bools(stored["by_crowd"]),
            imported=_as_bools(stored.get("imported", [False] * len(stored["target"]))),
            f=f,
            since=np.isin(self.systems, once["judged_before_the_last"]),
        )

    def single_ratings(self, criterion: str, judged: Ids) -> SingleRatings:
        ratings = [row for _, row in self.release.lines("ratings") if row["criterion"] == criterion]
        place = {row: place for place, row in enumerate(judged.tolist())}
        return SingleRatings(
            _as_ids(
                [
                    place[row]
                    for row in self.rows_of(rating["instance"] for rating in ratings).tolist()
                ]
            ),
            _as_ids([row["judge"] for row in ratings]),
            _as_floats([row["value"] for row in ratings]),
        )

    def draws(self, pool: Pool) -> dict[str, Draws]:
        """Return the draws with replacement, from the history of all draws."""
        drawn = [row for _, row in self.release.lines("draws") if row["instance"] is not None]
        draws_of = {}
        for kind, p in pool.p.items():
            mine = [row for row in drawn if row["distribution"] == kind]
            if mine:
                times = _as_ids([row["times"] for row in mine])
                row = np.repeat(self.rows_of(draw["instance"] for draw in mine), times)
                owner = np.repeat(_as_ids([self.column[draw["system"]] for draw in mine]), times)
                overlap = np.asarray((p.T @ p).toarray())
                draws_of[kind] = Draws(kind, row, owner, p[row].toarray(), overlap)
        return draws_of

    def documents(self) -> tuple[Annotated, Ids]:
        records = [row for _, row in self.release.lines("documents")]
        chance = [row["probability"] for row in records]
        uniform = not records or chance[0] is None
        return (
            Annotated(
                [row["document"] for row in records],
                [row["document"] for row in records if row["first"]],
                None if uniform else _as_floats(chance),
            ),
            _as_ids([row["missed"] for row in records]),
        )

    def facts(self, missed: Ids) -> Facts | None:
        once = self.told["facts"]
        if once is None:
            return None
        stored, instances = self.release.columns("facts"), self.instances
        predicted = np.zeros((self.instance.size, len(self.systems)), dtype=np.bool_)
        for row, systems in enumerate(instances["predicted_by"]):
            predicted[row, [self.column[system] for system in systems]] = True
        links = list(
            zip(stored.get("subject_link", []), stored.get("object_link", []), strict=True)
        )
        return Facts(
            fact=_as_ids(instances["fact"]),
            in_scope=_as_bools(instances["in_scope"]),
            pool_weight=_as_floats(instances["pool_weight"]),
            predicted=predicted,
            document=_as_ids(stored.get("document", [])),
            stratum=_as_ids(stored.get("predicate", [])),
            found=_as_bools(stored.get("found", [])),
            n_annotated=once["n_annotated"],
            n_documents=once["n_documents"],
            inside=_as_ids(instances["inside"]),
            marked=_as_bools(instances["marked"]),
            code=_as_ids(stored.get("fact", [])),
            links=np.array(links, dtype=np.str_).reshape(-1, 2),
            missed=missed,
        )

    def unaided(self) -> dict[str, Guess]:
        g, error = self.by_criterion("unaided_g_"), self.by_criterion("unaided_error_")
        return {
            name: Guess(g[name], rho, 0, error.get(name))
            for name, rho in self.told["unaided_correlation"].items()
        }


def _as_ids(values: Iterable[Any]) -> Ids:
    return np.array(list(values), dtype=np.int64)


def _as_floats(values: Iterable[Any]) -> Floats:
    return np.array([_float_or_nan(value) for value in values], dtype=np.float64)


def _as_bools(values: Iterable[Any]) -> Bools:
    return np.array(list(values), dtype=np.bool_)


def _positions_among(ascending: Ids, wanted_values: Iterable[int], kind: str) -> Ids:
    """Return the position of each number among ascending ones. Raises KeyError for a
    missing one.
    """
    numbers = _as_ids(wanted_values)
    place = np.searchsorted(ascending, numbers)
    is_there = place < ascending.size
    is_there[is_there] = ascending[place[is_there]] == numbers[is_there]
    if not is_there.all():
        raise KeyError(f"{kind} {numbers[~is_there][0]} is not among the {kind}s")
    return place.astype(np.int64)
