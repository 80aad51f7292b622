"""PRMSE of a machine's scores against people's ratings that somebody brings: a page and an API
call. Nothing of what is sent is stored.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from numpy.typing import NDArray
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.parsers import JSONParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from estimators.prmse import agreement_with, prmse
from formats.scores import LARGEST
from kbpo.accounts.limits import Limit
from kbpo.web.address import address_of
from kbpo.web.api.answers import declined
from kbpo.web.api.errors import Refused
from kbpo.web.api.said import Said
from kbpo.web.api.view import APIView

MOST_RESPONSES, MOST_RATERS, MOST_PLACES = 20_000, 50, 200_000
"""Of a table; the last is their product"""
TABLES = Limit("prmse", 20, 60)
"""Tables that one address may bring to the page and to the API together, in a minute: each costs
half a second"""
TOO_MANY = (
    f"More than {TABLES.most} tables came from your network in the last minute. Wait a minute."
)
RESAMPLES, SEED = 300, 2020
SYSTEM = "system"
"""The column of the machine's scores"""
EXAMPLE = "system,rater_1,rater_2\n3.4,3,4\n2.1,2,\n4.6,5,4\n1.2,1,1\n3.9,4,\n2.8,3,3\n"


class BadTable(Exception):
    """A table of scores that cannot be used; the text is a sentence."""


@dataclass(frozen=True, eq=False)
class Table:
    """People's ratings (N, R), NaN where there is none, and the machine's scores (N,)."""

    human: NDArray[np.float64]
    system: NDArray[np.float64]


def read_table(text: str) -> Table:
    """The table of a text with a header: a column `system`, all others are ratings, each of one
    rater. Raises BadTable with the line that is wrong.
    """
    dialect = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=dialect))
    header = [name.strip().lower() for name in rows[0]] if rows else []
    if SYSTEM not in header or len(header) < 2:
        raise BadTable(
            "The first line names the columns: `system` for the machine, and one for each rater."
        )
    if header.count(SYSTEM) > 1:
        raise BadTable("Two columns are called `system`: one machine is judged at a time.")
    place = header.index(SYSTEM)
    system, human = [], []
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise BadTable(f"Line {number} has {len(row)} columns; the first has {len(header)}.")
        numbers = [_number(cell, number) for cell in row]
        if math.isnan(numbers[place]):
            raise BadTable(f"Line {number} has no score of the machine.")
        system.append(numbers.pop(place))
        human.append(numbers)
    return _checked(np.array(human, dtype=np.float64), np.array(system, dtype=np.float64))


def _number(cell: str, line: int) -> float:
    """The finite number in a cell; NaN where it is empty. Raises BadTable."""
    if not cell.strip():
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise BadTable(f"Line {line}: “{cell.strip()[:20]}” is no finite number.")
    return number


def _checked(human: NDArray[np.float64], system: NDArray[np.float64]) -> Table:
    """The table. Raises BadTable if there is too little of it, or too much."""
    if system.size < 2 or not human.size:
        raise BadTable("There are fewer than two responses.")
    if system.size > MOST_RESPONSES or human.shape[1] > MOST_RATERS:
        raise BadTable(
            f"There are {system.size:,} responses and {human.shape[1]} raters; at most"
            f" {MOST_RESPONSES:,} and {MOST_RATERS} are reckoned here."
            " `estimators.prmse` takes more."
        )
    if human.size > MOST_PLACES:
        raise BadTable(
            f"There are {system.size:,} responses with a place for {human.shape[1]} raters each; at"
            f" most {MOST_PLACES:,} places are reckoned here. `estimators.prmse` takes more."
        )
    if np.isnan(human).all():
        raise BadTable("Nobody rated anything.")
    if max(float(np.nanmax(np.abs(human))), float(np.abs(system).max())) > LARGEST:
        raise BadTable(f"Scores and ratings lie between −{LARGEST:,} and {LARGEST:,}.")
    return Table(human, system)


def reckon(table: Table, *, random_subset: bool) -> dict[str, Any]:
    """PRMSE with its 80 % interval and its parts, what is printed beside it, and the warnings."""
    estimate = prmse(
        table.human,
        table.system,
        random_subset=random_subset,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    low, high = math.floor(np.nanmin(table.human)), math.ceil(np.nanmax(table.human))
    beside = agreement_with(
        table.human, table.system, low=low, high=high if high > low else low + 1
    )
    ends = (math.nan, math.nan)
    if estimate.replicates is not None:
        interval = estimate.replicates.confidence_interval(0.8, method="percentile")
        ends = (float(np.asarray(interval[0])[0]), float(np.asarray(interval[1])[0]))
    numbers = {
        "prmse": estimate.value,
        "low80": ends[0],
        "high80": ends[1],
        "mse": estimate.mse,
        "true_score_variance": estimate.true_score_variance,
        "error_variance": estimate.error_variance,
        "pearson": beside.pearson,
        "qwk": beside.qwk,
        "r2": beside.r2,
        "rater_correlation": beside.rater_correlation,
        "degradation": beside.degradation,
    }
    finite: dict[str, Any] = {
        name: float(value) if math.isfinite(value) else None for name, value in numbers.items()
    }
    return finite | {
        "n": estimate.n,
        "n_multiple": estimate.n_multiple,
        "rounded": beside.continuous,
        "warnings": list(estimate.warnings),
    }


def show(request: HttpRequest) -> HttpResponse:
    """The form; a POST with a table shows the result beneath it."""
    text, refusal, result = EXAMPLE, "", None
    random_subset, status = True, 200
    if request.method == "POST":
        text, random_subset = request.POST.get("table", ""), "random" in request.POST
        if not TABLES.count(address_of(request)):
            refusal, status = TOO_MANY, 429
        else:
            try:
                result = reckon(read_table(text), random_subset=random_subset)
            except (BadTable, csv.Error) as error:
                refusal, status = str(error), 422
    context = {"text": text, "refusal": refusal, "result": result, "random": random_subset}
    answer = render(request, "prmse.html", context, status=status)
    if status == 429:
        answer["Retry-After"] = str(TABLES.wait(address_of(request)))
    return answer


class Ratings(Said):
    """A machine's scores, and people's ratings of the same responses."""

    system = serializers.ListField(
        child=serializers.FloatField(), min_length=2, max_length=MOST_RESPONSES
    )
    human = serializers.ListField(
        child=serializers.ListField(
            child=serializers.FloatField(allow_null=True), min_length=1, max_length=MOST_RATERS
        ),
        min_length=2,
        max_length=MOST_RESPONSES,
        help_text="One list a response, one place a rater; null where one did not rate",
    )
    random_subset = serializers.BooleanField(
        required=False, default=True, help_text="Whether what two people rated was drawn at random"
    )


class Prmse(APIView):
    """PRMSE of a machine's scores against ratings that are sent along; nothing is stored."""

    permission_classes = [AllowAny]
    parser_classes = [JSONParser]

    @extend_schema(
        operation_id="prmse",
        request=Ratings,
        responses={200: OpenApiTypes.OBJECT, **declined(422)},
    )
    def post(self, request: Request) -> Response:
        if not TABLES.count(address_of(request)):
            raise Throttled(TABLES.wait(address_of(request)), TOO_MANY)
        form = Ratings(data=request.data)
        form.is_valid(raise_exception=True)
        cleaned = form.validated_data
        human, system = cleaned["human"], np.array(cleaned["system"], dtype=np.float64)
        try:
            if len({len(row) for row in human}) > 1 or len(human) != system.size:
                raise BadTable("`human` has one list a response, all of one length.")
            ratings = np.array(
                [[math.nan if rating is None else rating for rating in row] for row in human],
                dtype=np.float64,
            )
            if not np.isfinite(system).all() or np.isinf(ratings).any():
                raise BadTable("Scores and ratings are finite numbers.")
            table = _checked(ratings, system)
        except BadTable as error:
            raise Refused(str(error), "bad_table", 422) from error
        return Response(reckon(table, random_subset=cleaned["random_subset"]))


urlpatterns = [path("methods/prmse/", show, name="prmse")]
