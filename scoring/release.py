"""A release: all that a board's numbers rest on, as tables of one row a line,
written and read back.

Each table is JSON Lines. A row ends with `check`, the beginning of its own SHA-256, so that one
altered row can be named; `SHA256SUMS` holds the files. What only people read (names, places in
documents, single answers) stands in the same rows or in tables of its own, and is not read here.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.arrays import Bools, Floats, Ids, Matrix
from scoring.combine import Chances
from scoring.data import Data, Draws, FollowedUp, Guess, Noise, SingleRatings
from scoring.documents import Annotated, Facts, InDocuments, KnownDocuments
from scoring.double_sampling import Checks
from scoring.inclusion import Disclosed, Inclusion
from scoring.pool import Pool
from scoring.slices import TABLE, Cut

Row = dict[str, Any]
FORMAT = 2
CHECK = "check"
ABOUT, SUMS = "release.json", "SHA256SUMS"
ROUTES = ("threshold", "draw", "document", "before")
"""What `Chances` holds, by name"""


class BadRelease(Exception):
    """Something that is no release, or one that cannot be read; the text is a sentence."""


# --- rows -------------------------------------------------------------------------------------


def checked(row: Mapping[str, Any]) -> Row:
    """The row with its check."""
    return {**row, CHECK: _check(row)}


def is_altered(row: Mapping[str, Any]) -> bool:
    """Whether a row is not what was written."""
    return row.get(CHECK) != _check({name: row[name] for name in row if name != CHECK})


def _check(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _number(value: float) -> float | None:
    """A number as JSON has it: what is unknown is null."""
    return None if math.isnan(value) else float(value)


def _float(value: float | None) -> float:
    return math.nan if value is None else value


# --- writing ----------------------------------------------------------------------------------


def about(data: Data, checks: Checks | None) -> Row:
    """What the tables do not hold: the numbers that are the same for all rows."""
    facts = data.facts
    return {
        "distributions": list(data.pool.p),
        "mean": data.mean,
        "correlation": data.rho,
        "unaided_correlation": {name: one.rho for name, one in data.unaided.items()},
        "noise": {name: one.variance for name, one in data.noise.items()},
        "scorers": data.pool.scorers,
        "everybody": _inclusion(data.inclusion),
        "known_documents": {
            "documents": data.fold.documents,
            "closed": data.fold.closed,
            "followed": None if data.fold.followed is None else sorted(data.fold.followed),
            "answered": data.fold.answered,
        },
        "facts": facts and {"n_annotated": facts.n_annotated, "n_documents": facts.n_documents},
        "has_follow_ups": data.followed_up is not None,
        "has_marks": data.in_documents is not None,
        "own_samples": [data.systems[column] for column in data.alone],
        "disclosed": {
            str(data.systems[column]): _inclusion(data.own[column]) for column in data.disclosed
        },
        "checks": checks
        and {
            "rounds": checks.rounds.tolist(),
            "judged_before_the_last": [
                data.systems[column] for column in np.flatnonzero(checks.since)
            ],
        },
    }


def _inclusion(now: Inclusion) -> Row:
    return {
        "of_document": now.of_document,
        "n_clusters": now.n_clusters,
        "released": now.released,
    }


def tables(data: Data, checks: Checks | None = None) -> dict[str, Iterable[Row]]:
    """The tables that the numbers rest on, by name: but for draws with replacement, which are a
    part of the history of all draws.
    """
    return {
        "targets": _targets(data),
        "instances": _instances(data),
        "predictions": _predictions(data.pool),
        "labels": _labels(data),
        "ratings": _ratings(data),
        "metrics": _metrics(data.pool),
        "own_samples": _own_samples(data),
        "disclosed": _disclosed(data),
        "documents": _documents(data),
        "facts": _facts(data.facts),
        "follow_ups": _follow_ups(data),
        "checks": _checks(data, checks),
        "checked": _checked(data, checks),
    }


def _targets(data: Data) -> Iterator[Row]:
    now, inside = _arrived(data.inclusion), data.in_documents
    u = rounded(data)
    for at, target in enumerate(data.pool.target_id.tolist()):
        row = {"target": target, "u": float(u[at]), **_at(now, at)}
        if inside is not None:
            row["marked"], row["mark"] = bool(inside.marked[at]), float(inside.mark[at])
            row["covered"], row["asked"] = bool(inside.covered[at]), bool(inside.asked[at])
        yield row


def rounded(data: Data) -> Floats:
    """(t,) a random number for each target that lies between the same two thresholds as its own.

    Its own is the same on all tracks of a corpus: it would tell what later ones will ask.
    """
    levels = [np.zeros(data.pool.u.size), np.ones(data.pool.u.size), data.inclusion.threshold]
    levels += [data.inclusion.chances.threshold, *data.alone.values()]
    levels += [one.chances.threshold for one in data.own.values()]
    table = np.stack(levels)
    below = np.where(table <= data.pool.u, table, 0.0).max(axis=0)
    above = np.where(table > data.pool.u, table, 1.0).min(axis=0)
    return np.asarray((below + above) / 2)


def _arrived(now: Inclusion) -> dict[str, NDArray[Any]]:
    """Column -> (t,) how targets came in."""
    chances = {name: getattr(now.chances, name) for name in ROUTES}
    return {
        **chances,
        "drawn": now.drawn,
        "counts": now.counts,
        "cluster": now.cluster,
        "highest": now.threshold,
    }


def _at(columns: Mapping[str, NDArray[Any]], at: int) -> Row:
    return {name: column[at].item() for name, column in columns.items()}


def _instances(data: Data) -> Iterator[Row]:
    pool, facts = data.pool, data.facts
    columns: dict[str, NDArray[Any]] = {"stratum": pool.predicate}
    columns |= {f"g_{name}": g for name, g in data.g.items()}
    columns |= {f"error_{name}": error for name, error in data.error.items()}
    for name, one in data.unaided.items():
        columns[f"unaided_g_{name}"] = one.g
        if one.error is not None:
            columns[f"unaided_error_{name}"] = one.error
    if facts is not None:
        columns |= {
            "fact": facts.fact,
            "in_scope": facts.in_scope,
            "pool_weight": facts.pool_weight,
            "inside": facts.inside,
            "marked": facts.marked,
        }
    for at, instance in enumerate(pool.instance.tolist()):
        row = {"instance": instance, "target": int(pool.target_id[pool.target[at]])}
        row |= _at(columns, at)
        if facts is not None:
            row["predicted_by"] = [data.systems[one] for one in np.flatnonzero(facts.predicted[at])]
        yield row


def _predictions(pool: Pool) -> Iterator[Row]:
    stored = sparse.csr_array(pool.confidence)
    tables_ = {f"p_{kind}": sparse.csr_array(p) for kind, p in pool.p.items()}
    pattern = sum((_ones(one) for one in tables_.values()), _ones(stored))
    rows, columns = sparse.coo_array(pattern).coords
    values = {name: np.asarray(one[rows, columns]).ravel() for name, one in tables_.items()}
    values["confidence"] = np.asarray(stored[rows, columns]).ravel()
    for at in np.lexsort((rows, columns)).tolist():
        row = {"system": pool.systems[columns[at]], "instance": int(pool.instance[rows[at]])}
        yield row | _at(values, at)


def _ones(table: Matrix) -> Matrix:
    """1 wherever an entry is stored, be it 0."""
    found = sparse.csr_array(table, copy=True)
    found.data = np.ones_like(found.data)
    return found


def _labels(data: Data) -> Iterator[Row]:
    for at, row in enumerate(data.judged.tolist()):
        label: Row = {"instance": int(data.pool.instance[row])}
        for criterion, verdicts in data.f.items():
            label[criterion] = _verdict(verdicts[at], data.systems)
        for criterion, noise in data.noise.items():
            label[f"ratings_{criterion}"] = int(noise.count[at])
        yield label


def _verdict(verdicts: Floats, systems: list[int]) -> float | dict[str, float | None] | None:
    """One number where it is the same for all systems; else one a system."""
    if np.isnan(verdicts).all() or (verdicts == verdicts[0]).all():
        return _number(verdicts[0])
    return {str(one): _number(value) for one, value in zip(systems, verdicts, strict=True)}


def _ratings(data: Data) -> Iterator[Row]:
    for criterion, noise in data.noise.items():
        one = noise.single
        for at, judge, value in zip(
            one.at.tolist(), one.judge.tolist(), one.value.tolist(), strict=True
        ):
            instance = int(data.pool.instance[data.judged[at]])
            yield {"criterion": criterion, "instance": instance, "judge": judge, "value": value}


def _metrics(pool: Pool) -> Iterator[Row]:
    for column, scorer in enumerate(pool.scorers):
        for at in np.flatnonzero(~np.isnan(pool.scores[:, column])).tolist():
            score = float(pool.scores[at, column])
            yield {"scorer": scorer, "instance": int(pool.instance[at]), "value": score}


def _own_samples(data: Data) -> Iterator[Row]:
    for column, threshold in data.alone.items():
        for at in np.flatnonzero(threshold).tolist():
            target = int(data.pool.target_id[at])
            yield {
                "system": data.systems[column],
                "target": target,
                "threshold": float(threshold[at]),
            }


def _disclosed(data: Data) -> Iterator[Row]:
    for column, disclosed in data.disclosed.items():
        then = data.disclosed_drawn[column]
        now = _arrived(data.own[column])
        columns = {f"own_{name}": values for name, values in now.items()}
        columns |= {
            "exact": disclosed.certainty,
            "unjudged": disclosed.unjudged,
            "exact_when_drawn": then.certainty,
            "unjudged_when_drawn": then.unjudged,
            "then_threshold": disclosed.threshold,
            "then_drawn": disclosed.drawn,
            "then_inside": disclosed.inside,
            "then_document": disclosed.document,
        }
        differs = disclosed.certainty | disclosed.unjudged | then.certainty | then.unjudged
        differs |= disclosed.inside | (disclosed.document > 0)
        for name, values in _arrived(data.inclusion).items():
            differs |= now[name] != values
        for at in np.flatnonzero(differs).tolist():
            target = int(data.pool.target_id[at])
            yield {"system": data.systems[column], "target": target, **_at(columns, at)}


def _documents(data: Data) -> Iterator[Row]:
    documents, first = data.documents, set(data.documents.first)
    for at, document in enumerate(documents.documents):
        chance = documents.inclusion
        yield {
            "document": document,
            "first": document in first,
            "probability": None if chance is None else float(chance[at]),
            "missed": int(data.facts.missed[at]) if data.facts is not None else 0,
        }


def _facts(facts: Facts | None) -> Iterator[Row]:
    if facts is None:
        return
    for at in range(facts.found.size):
        yield {
            "document": int(facts.document[at]),
            "fact": int(facts.code[at]),
            "predicate": int(facts.predicate[at]),
            "found": bool(facts.found[at]),
            "subject_link": str(facts.links[at, 0]),
            "object_link": str(facts.links[at, 1]),
        }


def _follow_ups(data: Data) -> Iterator[Row]:
    if data.followed_up is not None:
        for row, true in zip(
            data.followed_up.row.tolist(), data.followed_up.true.tolist(), strict=True
        ):
            yield {"instance": int(data.pool.instance[row]), "true": _number(true)}


def _checks(data: Data, checks: Checks | None) -> Iterator[Row]:
    """Yields each judged target with the rounds that could draw it, and their chances."""
    if checks is None:
        return
    for at, target in enumerate(data.pool.target_id[checks.target].tolist()):
        yield {
            "target": target,
            "by_crowd": bool(checks.by_crowd[at]),
            "imported": bool(checks.imported[at]),
            "checked": bool(checks.checked[at]),
            "pi": checks.pi[:, at].tolist(),
            "chance": checks.e[:, at].tolist(),
        }


def _checked(data: Data, checks: Checks | None) -> Iterator[Row]:
    """Yields what experts said of what they checked."""
    if checks is None:
        return
    asked = np.isin(data.pool.target[data.judged], checks.target[checks.checked])
    for at in np.flatnonzero(asked).tolist():
        row: Row = {"instance": int(data.pool.instance[data.judged[at]])}
        for criterion, verdicts in checks.f.items():
            row[criterion] = _verdict(verdicts[at], data.systems)
        yield row


def slice_rows(cuts: Sequence[Cut]) -> Iterator[Row]:
    """Yields the slices of a board, each with the number that instances name it by."""
    for number, cut in enumerate(cuts):
        yield {
            "slice": number,
            "group": cut.group,
            "name": cut.name,
            "weighed_by": cut.kind,
            "confidence": cut.confidence and list(cut.confidence),
            "stratum": cut.stratum,
        }


def in_slices(instances: Iterable[Row], cuts: Sequence[Cut]) -> Iterator[Row]:
    """Yields rows of instances with the slices in which each lies, and what it weighs where a table
    says so.
    """
    inside = np.stack([cut.inside for cut in cuts]) if cuts else np.zeros((0, 0), dtype=np.bool_)
    weighed = {number: cut.weight for number, cut in enumerate(cuts) if cut.weight is not None}
    for at, row in enumerate(instances):
        row["slices"] = np.flatnonzero(inside[:, at]).tolist() if cuts else []
        if weighed:
            row["weights"] = {str(number): float(w[at]) for number, w in weighed.items()}
        yield row


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """A release on a disk: a directory, or a zip file as it is downloaded."""

    path: Path

    @cached_property
    def _home(self) -> Path | zipfile.Path:
        if self.path.is_dir():
            return self.path
        if not self.path.exists():
            raise BadRelease(f"There is no {self.path}.")
        try:
            return zipfile.Path(self.path)
        except zipfile.BadZipFile:
            raise BadRelease(f"{self.path} is neither a directory nor a zip file.") from None

    def bytes(self, name: str) -> bytes:
        """A file of the release. Raises BadRelease if it is not there."""
        file = self._home / name
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
    def about(self) -> Row:
        """What `release.json` says. Raises BadRelease for a format that is not known here."""
        try:
            told = json.loads(self.bytes(ABOUT))
        except ValueError as error:
            raise BadRelease(f"{ABOUT} is no JSON: {error}.") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise BadRelease(
                f"{ABOUT} does not say format {FORMAT}: this version of kbpo cannot read it."
            )
        return told

    def lines(self, table: str) -> Iterator[tuple[int, Row]]:
        """Yields the rows of a table with their lines. Raises BadRelease for what is no row."""
        name = f"{table}.jsonl"
        for line, text in enumerate(self.bytes(name).splitlines(), 1):
            try:
                row = json.loads(text)
            except ValueError as error:
                raise BadRelease(f"{name}, line {line}: this is no JSON ({error}).") from error
            if not isinstance(row, dict):
                raise BadRelease(f"{name}, line {line}: this is no object.")
            yield line, row

    def columns(self, table: str) -> dict[str, list[Any]]:
        """A table as columns; no column of a table without rows."""
        rows = [row for _, row in self.lines(table)]
        return {name: [row.get(name) for row in rows] for name in rows[0]} if rows else {}


def read_data(release: Release) -> Data:
    """The data of a release. Raises BadRelease, or what numpy does, where tables make no sense."""
    return _Reader(release).data()


def read_checks(release: Release, data: Data) -> Checks | None:
    """What experts answered in a release; None where that is nothing, or was not part of it yet."""
    return _Reader(release).checks(data) if release.about["data"].get("checks") else None


def read_cuts(release: Release) -> list[Cut]:
    """The slices of a release; none of one that was made before they were part of it."""
    if "slices" not in release.about["rows"]:
        return []
    rows = [row for _, row in release.lines("slices")]
    instances = release.columns("instances")
    inside = np.zeros((len(rows), len(instances.get("slices", []))), dtype=np.bool_)
    for at, numbers in enumerate(instances.get("slices", [])):
        inside[numbers, at] = True
    return [
        Cut(
            group=row["group"],
            name=row["name"],
            inside=inside[number],
            kind=row["weighed_by"],
            confidence=row["confidence"] and (row["confidence"][0], row["confidence"][1]),
            weight=_floats(one[str(number)] for one in instances["weights"])
            if row["weighed_by"] == TABLE
            else None,
            stratum=row["stratum"],
        )
        for number, row in enumerate(rows)
    ]


class _Reader:
    """Reads the tables of one release into arrays."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.told: Row = release.about["data"]
        self.systems = [row["system"] for _, row in release.lines("systems")]
        self.column = {system: at for at, system in enumerate(self.systems)}
        self.instances = release.columns("instances")
        self.targets = release.columns("targets")
        self.instance = _ids(self.instances["instance"])
        self.target_id = _ids(self.targets["target"])

    def data(self) -> Data:
        told, pool = self.told, self.pool()
        judged, f, noise = self.labels()
        everybody = self.inclusion(self.targets, told["everybody"])
        disclosed, disclosed_drawn, own = self.disclosed(everybody)
        known = told["known_documents"]
        followed = None if known["followed"] is None else frozenset(known["followed"])
        documents, missed = self.documents()
        shown = [row["takes_part"] for _, row in self.release.lines("systems")]
        return Data(
            pool=pool,
            shown=_bools(shown),
            judged=judged,
            f=f,
            draws=self.draws(pool),
            inclusion=everybody,
            g=self.by_criterion("g_"),
            rho=told["correlation"],
            facts=self.facts(missed),
            documents=documents,
            disclosed=disclosed,
            own=own,
            fold=KnownDocuments(known["documents"], known["closed"], followed, known["answered"]),
            followed_up=self.followed_up(),
            in_documents=self.in_documents(),
            disclosed_drawn=disclosed_drawn,
            alone=self.own_samples(),
            noise=noise,
            mean=told["mean"],
            error=self.by_criterion("error_"),
            unaided=self.unaided(),
        )

    def rows_of(self, instances: Iterable[int]) -> Ids:
        """Rows of the pool. Raises KeyError for an instance that is not in it."""
        return _positions(self.instance, instances, "instance")

    def targets_of(self, targets: Iterable[int]) -> Ids:
        return _positions(self.target_id, targets, "target")

    def by_criterion(self, prefix: str) -> dict[str, Floats]:
        return {
            name.removeprefix(prefix): _floats(values)
            for name, values in self.instances.items()
            if name.startswith(prefix)
        }

    def pool(self) -> Pool:
        told = self.release.columns("predictions")
        row = self.rows_of(told["instance"])
        column = _ids([self.column[one] for one in told["system"]])
        shape = (self.instance.size, len(self.systems))

        def table(name: str) -> Matrix:
            return sparse.csr_array((_floats(told[name]), (row, column)), shape=shape)

        nothing = np.zeros(self.instance.size, dtype=np.int64)
        return Pool(
            systems=self.systems,
            teams=[0] * len(self.systems),
            instance=self.instance,
            target=self.targets_of(self.instances["target"]),
            target_id=self.target_id,
            u=_floats(self.targets["u"]),
            document=nothing,
            predicate=_ids(self.instances["stratum"]),
            types=np.full(self.instance.size, ""),
            subject=nothing,
            object=nothing,
            p={kind: table(f"p_{kind}") for kind in self.told["distributions"]},
            confidence=table("confidence"),
            scorers=self.told["scorers"],
            scores=self.metrics(),
        )

    def metrics(self) -> Floats:
        scorers: list[int] = self.told["scorers"]
        if not scorers:
            return np.zeros((0, 0))
        found = np.full((self.instance.size, len(scorers)), np.nan)
        told = self.release.columns("metrics")
        column = [scorers.index(one) for one in told["scorer"]]
        found[self.rows_of(told["instance"]), column] = told["value"]
        return found

    def labels(self) -> tuple[Ids, dict[str, Floats], dict[str, Noise]]:
        told = self.release.columns("labels")
        judged = self.rows_of(told.get("instance", []))
        noise = {
            criterion: Noise(
                _ids(told.get(f"ratings_{criterion}", [])),
                variance,
                self.single_ratings(criterion, judged),
            )
            for criterion, variance in self.told["noise"].items()
        }
        return judged, self.verdicts(told), noise

    def verdicts(self, told: Mapping[str, list[Any]]) -> dict[str, Floats]:
        """Criterion -> (n, m) what the rows of a table say of each system."""
        found = {}
        for criterion in self.told["correlation"]:
            column = told.get(criterion, [])
            found[criterion] = np.full((len(column), len(self.systems)), np.nan)
            for at, verdict in enumerate(column):
                if isinstance(verdict, dict):
                    found[criterion][at] = [_float(verdict[str(system)]) for system in self.systems]
                else:
                    found[criterion][at] = _float(verdict)
        return found

    def checks(self, data: Data) -> Checks:
        once, told = self.told["checks"], self.release.columns("checks")
        answered = self.release.columns("checked")
        rows = _positions(data.judged, self.rows_of(answered.get("instance", [])), "judged row")
        f = {}
        for criterion, verdicts in self.verdicts(answered).items():
            f[criterion] = np.full((data.judged.size, len(self.systems)), np.nan)
            f[criterion][rows] = verdicts
        return Checks(
            target=self.targets_of(told["target"]),
            rounds=_ids(once["rounds"]),
            pi=np.array(told["pi"], dtype=np.float64).T,
            e=np.array(told["chance"], dtype=np.float64).T,
            checked=_bools(told["checked"]),
            by_crowd=_bools(told["by_crowd"]),
            imported=_bools(told.get("imported", [False] * len(told["target"]))),
            f=f,
            since=np.isin(self.systems, once["judged_before_the_last"]),
        )

    def single_ratings(self, criterion: str, judged: Ids) -> SingleRatings:
        rows = [row for _, row in self.release.lines("ratings") if row["criterion"] == criterion]
        place = {row: at for at, row in enumerate(judged.tolist())}
        return SingleRatings(
            _ids([place[row] for row in self.rows_of(one["instance"] for one in rows).tolist()]),
            _ids([row["judge"] for row in rows]),
            _floats([row["value"] for row in rows]),
        )

    def draws(self, pool: Pool) -> dict[str, Draws]:
        """Draws with replacement, of the history of all."""
        drawn = [row for _, row in self.release.lines("draws") if row["instance"] is not None]
        found = {}
        for kind, p in pool.p.items():
            mine = [row for row in drawn if row["distribution"] == kind]
            if mine:
                times = _ids([row["times"] for row in mine])
                row = np.repeat(self.rows_of(one["instance"] for one in mine), times)
                owner = np.repeat(_ids([self.column[one["system"]] for one in mine]), times)
                overlap = np.asarray((p.T @ p).toarray())
                found[kind] = Draws(kind, row, owner, p[row].toarray(), overlap)
        return found

    def inclusion(self, told: Mapping[str, list[Any]], once: Row) -> Inclusion:
        chances = Chances(*(_floats(told[name]) for name in ROUTES))
        return Inclusion(
            chances=chances,
            drawn=_bools(told["drawn"]),
            counts=_bools(told["counts"]),
            cluster=_ids(told["cluster"]),
            of_document=once["of_document"],
            n_clusters=once["n_clusters"],
            threshold=_floats(told["highest"]),
            released=once["released"],
        )

    def disclosed(
        self, everybody: Inclusion
    ) -> tuple[dict[int, Disclosed], dict[int, Disclosed], dict[int, Inclusion]]:
        """Column -> what its team could see; the same if documents brought nothing in; and how
        targets came in for it.
        """
        disclosed, disclosed_drawn, own = {}, {}, {}
        by_system: dict[int, list[Row]] = {}
        for _, row in self.release.lines("disclosed"):
            by_system.setdefault(row["system"], []).append(row)
        for name, once in self.told["disclosed"].items():
            system = int(name)
            mine = by_system.get(system, [])
            at = self.targets_of(row["target"] for row in mine)
            t = self.target_id.size

            def spread(name: str, base: NDArray[Any], mine: list[Row] = mine, at: Ids = at) -> Any:
                values = base.copy()
                values[at] = [row[name] for row in mine]
                return values

            no, zero = np.zeros(t, dtype=np.bool_), np.zeros(t)
            now = {key: spread(f"own_{key}", base) for key, base in _arrived(everybody).items()}
            column = self.column[system]
            own[column] = self.inclusion(now, once)
            disclosed[column] = Disclosed(
                spread("exact", no),
                spread("unjudged", no),
                spread("then_threshold", zero),
                spread("then_drawn", zero),
                spread("then_inside", no),
                spread("then_document", zero),
            )
            disclosed_drawn[column] = replace(
                disclosed[column],
                certainty=spread("exact_when_drawn", no),
                unjudged=spread("unjudged_when_drawn", no),
            )
        return disclosed, disclosed_drawn, own

    def documents(self) -> tuple[Annotated, Ids]:
        rows = [row for _, row in self.release.lines("documents")]
        chance = [row["probability"] for row in rows]
        uniform = not rows or chance[0] is None
        return (
            Annotated(
                [row["document"] for row in rows],
                [row["document"] for row in rows if row["first"]],
                None if uniform else _floats(chance),
            ),
            _ids([row["missed"] for row in rows]),
        )

    def facts(self, missed: Ids) -> Facts | None:
        once = self.told["facts"]
        if once is None:
            return None
        told, instances = self.release.columns("facts"), self.instances
        predicted = np.zeros((self.instance.size, len(self.systems)), dtype=np.bool_)
        for at, systems in enumerate(instances["predicted_by"]):
            predicted[at, [self.column[system] for system in systems]] = True
        links = list(zip(told.get("subject_link", []), told.get("object_link", []), strict=True))
        return Facts(
            fact=_ids(instances["fact"]),
            in_scope=_bools(instances["in_scope"]),
            pool_weight=_floats(instances["pool_weight"]),
            predicted=predicted,
            document=_ids(told.get("document", [])),
            predicate=_ids(told.get("predicate", [])),
            found=_bools(told.get("found", [])),
            n_annotated=once["n_annotated"],
            n_documents=once["n_documents"],
            inside=_ids(instances["inside"]),
            marked=_bools(instances["marked"]),
            code=_ids(told.get("fact", [])),
            links=np.array(links, dtype=np.str_).reshape(-1, 2),
            missed=missed,
        )

    def followed_up(self) -> FollowedUp | None:
        if not self.told["has_follow_ups"]:
            return None
        told = self.release.columns("follow_ups")
        return FollowedUp(self.rows_of(told.get("instance", [])), _floats(told.get("true", [])))

    def in_documents(self) -> InDocuments | None:
        if not self.told["has_marks"]:
            return None
        told = self.targets
        return InDocuments(
            marked=_bools(told["marked"]),
            mark=_floats(told["mark"]),
            covered=_bools(told["covered"]),
            asked=_bools(told["asked"]),
        )

    def own_samples(self) -> dict[int, Floats]:
        told = self.release.columns("own_samples")
        found = {
            self.column[system]: np.zeros(self.target_id.size)
            for system in self.told["own_samples"]
        }
        at = self.targets_of(told.get("target", []))
        for place, system, threshold in zip(
            at, told.get("system", []), told.get("threshold", []), strict=True
        ):
            found[self.column[system]][place] = threshold
        return found

    def unaided(self) -> dict[str, Guess]:
        g, error = self.by_criterion("unaided_g_"), self.by_criterion("unaided_error_")
        return {
            name: Guess(g[name], rho, 0, error.get(name))
            for name, rho in self.told["unaided_correlation"].items()
        }


def _ids(values: Iterable[Any]) -> Ids:
    return np.array(list(values), dtype=np.int64)


def _floats(values: Iterable[Any]) -> Floats:
    return np.array([_float(value) for value in values], dtype=np.float64)


def _bools(values: Iterable[Any]) -> Bools:
    return np.array(list(values), dtype=np.bool_)


def _positions(known: Ids, wanted: Iterable[int], what: str) -> Ids:
    """Where each number stands among ascending ones. Raises KeyError with one that does not."""
    numbers = _ids(wanted)
    at = np.searchsorted(known, numbers)
    there = at < known.size
    there[there] = known[at[there]] == numbers[there]
    if not there.all():
        raise KeyError(f"{what} {numbers[~there][0]} is not among the {what}s")
    return at.astype(np.int64)
