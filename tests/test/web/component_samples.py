"""Sample values of the components of the design system."""

from datetime import timedelta
from decimal import Decimal
from math import sqrt

from kbpo.web.components.drawing import Interval, axis_over, pack_ties
from kbpo.web.components.plots import Moment, Point
from kbpo.web.components.viewer import Span

TEXT = (
    "James Whitman “Jim” McLamore was with David Edgerton responsible for the expansion of a"
    " restaurant. McLamore attended Northfield Mount Hermon School before matriculating at Cornell"
    " University. He wrote <b>&amp;</b> once, and the page shows it as he wrote it."
)

# F1, precision, recall and the number of labels of made-up systems.
SYSTEMS = [
    ("Patterns run 3", "Document-level rules", 0.300, 0.412, 0.236, 464),
    ("Neural run 5", "Threshold 0.08", 0.294, 0.261, 0.336, 433),
    (
        "Twin run 2",
        "A copy of Patterns with other thresholds and a long description",
        0.289,
        0.652,
        0.186,
        612,
    ),
    ("Neural run 4", "Threshold 0.25", 0.275, 0.468, 0.204, 445),
    ("Patterns run 1", "First try", 0.212, 0.843, 0.122, 41),
]
TIES = [[0, 1, 2], [1, 2, 3], [3, 4]]


def around(value: float, n: int) -> Interval:
    """An interval of the width that n independent judgments would give."""
    error = sqrt(value * (1 - value) / n)
    return Interval(
        value,
        value - 1.28 * error,
        value + 1.28 * error,
        value - 1.96 * error,
        value + 1.96 * error,
    )


def context() -> dict[str, object]:
    """Sample values for every component."""
    lanes, parts = pack_ties(TIES, len(SYSTEMS))
    rows = [
        {
            "name": name,
            "note": note,
            "f1": around(f1, 1500),
            "precision": around(precision, n),
            "recall": around(recall, 900),
            "n": n,
            "parts": parts[index],
            "url": "#",
            "kind": "few" if n < 50 else "final",
        }
        for index, (name, note, f1, precision, recall, n) in enumerate(SYSTEMS)
    ]
    fourth = around(0.532, 477)
    differences = [
        ("F1", Interval(0.012, 0.002, 0.023, -0.004, 0.028)),
        ("Precision", Interval(-0.121, -0.143, -0.099, -0.155, -0.088)),
        ("Recall", Interval(-0.001, -0.009, 0.006, -0.013, 0.010)),
    ]
    return {
        "rows": rows,
        "lanes": lanes,
        "f1_axis": axis_over([around(row[2], 1500) for row in SYSTEMS]),
        "precision_axis": axis_over([around(row[3], row[5]) for row in SYSTEMS], ticks=3),
        "recall_axis": axis_over([around(row[4], 900) for row in SYSTEMS], ticks=3),
        "kinds": [
            (kind, tone, fourth)
            for kind, tone in (
                ("final", "a"),
                ("final", "b"),
                ("final", "quiet"),
                ("live", "a"),
                ("moment", "a"),
                ("live", "b"),
                ("published", "a"),
                ("few", "a"),
            )
        ],
        "kind_axis": axis_over([fourth]),
        "differences": differences,
        "difference_axis": axis_over(
            [interval for _, interval in differences], bounds=(-1.0, 1.0), zero=True
        ),
        "points": [
            Point(
                name.replace(" run", ""), around(precision, n), around(recall, 900), first=index < 3
            )
            for index, (name, _, _, precision, recall, n) in enumerate(SYSTEMS)
        ],
        "moments": moments(),
        "plan": (689, 0.03),
        "text": TEXT,
        "spans": spans(),
        "stages": STAGES,
        "failed_stages": [STAGES[0], FAILED, {"name": "Scored", "state": "waiting"}],
        "problems": PROBLEMS,
        "switch_options": [
            {"url": "#a", "text": "Every prediction", "current": True},
            {"url": "#b", "text": "Every relation", "current": False},
            {"url": "#c", "text": "Every entity", "current": False},
            {"url": "#d", "text": "Entity × relation", "current": False},
        ],
        "levels": [{"url": "#80", "text": "80 %", "current": True}, {"url": "#95", "text": "95 %"}],
        "slider_rows": [
            {
                "value": "0.03",
                "half_width": 0.03,
                "n": 212,
                "cost": Decimal("31.80"),
                "time": timedelta(hours=2),
            },
            {
                "value": "0.025",
                "half_width": 0.025,
                "n": 512,
                "cost": Decimal("76.80"),
                "time": timedelta(hours=5),
            },
            {
                "value": "0.02",
                "half_width": 0.02,
                "n": 1068,
                "cost": Decimal("160.20"),
                "time": timedelta(hours=10),
            },
        ],
    }


def moments() -> list[Moment]:
    """A running share that settles, with a band of the shape that anytime-valid intervals have."""
    made, right, low, high = [], 0.0, 0.0, 1.0
    for n in range(1, 478):
        right += 1.0 if (n * 7919) % 1000 < 532 else 0.0
        share = right / n
        half = 1.6 * sqrt(1 / n)
        low, high = max(low, share - half), min(high, share + half)
        if n % 3 == 0:
            made.append(Moment(n, share, low, high))
    return made


def spans() -> list[Span]:
    """Marks on the sample text, two of which cross."""

    def at(words: str, role: str, start: int = 0) -> Span:
        begin = TEXT.index(words, start)
        return Span(begin, begin + len(words), role)  # type: ignore[arg-type]

    second = TEXT.index("McLamore attended")
    return [
        at("James Whitman “Jim” McLamore", "other"),
        at(
            "McLamore attended Northfield Mount Hermon School before matriculating"
            " at Cornell University.",
            "provenance",
        ),
        at("McLamore", "subject", second),
        at("Northfield Mount Hermon School", "other"),
        at("Cornell University", "object"),
    ]


STAGES = [
    {"name": "Received", "state": "done", "of": "14:02:11", "note": "patterns.kb.tsv.gz, 0.2 MB"},
    {
        "name": "Read",
        "state": "done",
        "of": "in 3 s",
        "note": "6,158 relations in, 9 lines set aside",
    },
    {"name": "Sampled", "state": "done", "of": "in 2 s", "note": "506 drawn, 346 already judged"},
    {
        "name": "Being judged",
        "state": "now",
        "of": "131 of 160",
        "note": "about 48 min left",
        "share": 131 / 160,
    },
    {"name": "Scored", "state": "waiting", "note": "enters the board automatically"},
]
FAILED = {
    "name": "Read",
    "state": "failed",
    "of": "gave up at 14:05",
    "note": "The gzip file ends in the middle. Upload it again; this try costs no quota.",
    "retry_url": "#retry",
}
PROBLEMS = [
    {
        "line": "7,058",
        "severity": "error",
        "code": "type-not-allowed",
        "culprit_begin": 6,
        "culprit_end": 21,
        "text": "“educated at” cannot hold between a PER and a TIME. Line set aside.",
        "line_text": ":E635\tper:educated_at\t:E640\tRD_TEST_0065:0-170\t0.3189",
    },
    {
        "line": "6,702",
        "severity": "warning",
        "code": "repeated-relation",
        "culprit_begin": 45,
        "culprit_end": 51,
        "text": (
            "Same relation as line 6,701 with another confidence (0.9179). The first one is kept."
        ),
        "line_text": ":E586\tper:place_of_birth\t:E591\tRD_TEST:155-278\t0.3447",
    },
    {
        "line": "40–44",
        "severity": "note",
        "code": "several-canonical-mentions",
        "text": (
            "“Europe” has one canonical mention a document. That is what we"
            " expect; nothing changed."
        ),
    },
]
