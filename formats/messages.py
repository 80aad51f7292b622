"""Messages about files, with a code, a line and a sentence, collected in a report. The part of a
code before the dot is its family; the table in README.md explains each code.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Severity = Literal["error", "warning", "info"]

_ERRORS = """
    syntax.empty syntax.binary syntax.encoding syntax.control syntax.gzip_truncated
    syntax.gzip_corrupt syntax.zip syntax.format syntax.columns syntax.header syntax.entity_id
    syntax.string syntax.offsets syntax.json syntax.json_list syntax.nan syntax.quote syntax.yaml
    syntax.key_missing syntax.value syntax.number syntax.output_empty syntax.nothing_usable
    reference.document reference.other_corpus reference.input reference.entity
    reference.entity_order reference.untyped reference.offsets reference.gloss
    reference.other_inputs reference.system reference.output reference.criterion
    consistency.input_twice consistency.input_missing consistency.document_twice
    consistency.order consistency.straddle consistency.input_id consistency.score_twice
    consistency.scores_missing consistency.one_system consistency.judgment_twice
    consistency.form
    schema.unknown_predicate schema.unknown_type schema.string schema.itself schema.form
    schema.range
    limits.upload limits.unpacked limits.ratio limits.lines limits.line limits.relations
    limits.document limits.form limits.output limits.passages
"""
_WARNINGS = """
    syntax.gzip_trailing syntax.run_id syntax.confidence syntax.key_unknown syntax.date
    syntax.seconds syntax.bidirectional syntax.invisible syntax.markup
    reference.provenance reference.string reference.passage
    consistency.two_types consistency.entity_types consistency.links consistency.canonicals
    consistency.predicates consistency.inverse consistency.duplicate consistency.mention_twice
    schema.arguments
"""
_INFOS = """
    reference.canonical
    consistency.missing_inverse consistency.duplicate_turned
    schema.ignored_predicate
"""

SEVERITY: dict[str, Severity] = {
    **dict.fromkeys(_ERRORS.split(), "error"),
    **dict.fromkeys(_WARNINGS.split(), "warning"),
    **dict.fromkeys(_INFOS.split(), "info"),
}

# After one of these the reader stops: what it has read so far is not the file that the researcher
# meant.
FATAL = frozenset(
    {
        "syntax.empty",
        "syntax.binary",
        "syntax.gzip_truncated",
        "syntax.gzip_corrupt",
        "syntax.zip",
        "syntax.json_list",
        "syntax.quote",
        "syntax.format",
        "syntax.header",
        "limits.upload",
        "limits.unpacked",
        "limits.ratio",
        "limits.lines",
        "limits.relations",
    }
)


def family_of_code(code: str) -> str:
    """Return the family of a code: syntax, reference, consistency, schema or limits."""
    return code.partition(".")[0]


Columns = tuple[int, int]

EXCERPT = 240
# PostgreSQL stores no NUL and UTF-8 has no surrogates; the other controls would disturb a terminal
# or a page.
_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class FormatError(ValueError):
    """Raised for a file of ours (a schema) that cannot be used at all; the text is a sentence for
    the person who wrote it.
    """


@dataclass(frozen=True, slots=True)
class Message:
    """One coded defect of a file."""

    code: str
    severity: Severity
    line: int
    """Line number, from 1; 0 if the message is about the file as a whole."""
    text: str
    line_text: str = ""
    culprit: Columns | None = None
    """Columns [begin, end) of `line_text` that caused the message."""

    @property
    def family(self) -> str:
        """Return the family of the code: syntax, reference, consistency, schema or limits."""
        return family_of_code(self.code)


class Report:
    """All messages about one file: the first ones are stored, all are counted by code and
    severity.
    """

    def __init__(self, keep: int = 10_000) -> None:
        self.keep = keep
        self.messages: list[Message] = []
        self.by_code: Counter[str] = Counter()
        self.fatal = False
        """Whether the reader gave up, in which case nothing of the file may be used."""
        self.file_errors = 0
        """Number of errors about the file as a whole."""
        self.lines = 0
        """Number of lines of the file, once it was read completely."""
        self.relation_lines = 0
        """Number of lines that predict relations, usable or not."""

    def add(
        self, code: str, line: int, text: str, source: str = "", culprit: Columns | None = None
    ) -> None:
        """Count one message, and store it while there is room or if it is about the whole file.
        `source` is the whole line.
        """
        self.by_code[code] += 1
        self.fatal = self.fatal or code in FATAL
        self.file_errors += line == 0 and SEVERITY[code] == "error"
        if len(self.messages) < self.keep or line == 0 or code in FATAL:
            shown, columns = excerpt_around(source, culprit)
            self.messages.append(
                Message(code, SEVERITY[code], line, replace_unprintable(text), shown, columns)
            )

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return sum(self.by_code.values())

    @property
    def by_severity(self) -> Counter[str]:
        """Return the number of messages of each severity, stored or not."""
        counts: Counter[str] = Counter()
        for code, count in self.by_code.items():
            counts[SEVERITY[code]] += count
        return counts

    @property
    def errors(self) -> int:
        """Return the number of errors, stored or not."""
        return self.by_severity["error"]

    @property
    def has_only_unknown_names(self) -> bool:
        """Return whether the only errors are names of missing objects, which may be added later."""
        wrong = {code for code in self.by_code if SEVERITY[code] == "error"}
        return bool(wrong) and all(family_of_code(code) == "reference" for code in wrong)


def replace_unprintable(text: str) -> str:
    """Return the text with each character that cannot be stored or shown replaced by a replacement
    character.
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def quote(text: str, limit: int = 60) -> str:
    """Return the text in typographic quotation marks, shortened in the middle to keep a sentence
    readable.
    """
    if len(text) > limit:
        text = text[: limit * 2 // 3] + "…" + text[-limit // 4 :]
    return f"“{text}”"


def excerpt_around(line: str, culprit: Columns | None) -> tuple[str, Columns | None]:
    """Return the part of a line that is shown, with the culprit's columns in it."""
    if culprit is not None:
        culprit = max(0, min(culprit[0], len(line))), max(0, min(culprit[1], len(line)))
    if len(line) <= EXCERPT:
        return replace_unprintable(line), culprit
    begin = 0 if culprit is None else max(0, min(culprit[0] - EXCERPT // 4, len(line) - EXCERPT))
    end = begin + EXCERPT
    shown = (
        ("…" if begin else "")
        + replace_unprintable(line[begin:end])
        + ("…" if end < len(line) else "")
    )
    if culprit is None:
        return shown, None
    shift = (1 if begin else 0) - begin
    return shown, (culprit[0] + shift, min(culprit[1], end) + shift)


def column_position(line: str, index: int) -> Columns:
    """Return the beginning and end of the tab-separated column with this index in the line."""
    begin = 0
    for _ in range(index):
        at = line.find("\t", begin)
        if at < 0:
            return len(line), len(line)
        begin = at + 1
    end = line.find("\t", begin)
    return begin, len(line) if end < 0 else end


FIRST = 20
"""Number of first errors that must be of one kind"""
FEWEST = 2
_OF_FORM = ("syntax.json", "syntax.key_missing", "syntax.columns")
_KEY = re.compile(r'"(\w+)"\s*:')
_KINDS = (
    ({"input_id", "output"}, "outputs, one for each input"),
    ({"doc", "subject", "predicate", "object"}, "relations"),
    ({"input_id"}, "the inputs of a track"),
    ({"id", "text"}, "documents"),
    ({"doc", "begin", "end"}, "the mentions of documents"),
)


def explain_wrong_format(report: Report, expected: str) -> str:
    """Return a sentence about a file without usable lines whose first errors are all of one kind
    and about the form of a line; empty otherwise.
    """
    errors = list(islice((one for one in report if one.severity == "error" and one.line), FIRST))
    if len(errors) < FEWEST or len({one.code for one in errors}) > 1:
        return ""
    first = errors[0]
    if first.code not in _OF_FORM:
        return ""
    keys = set(_KEY.findall(first.line_text))
    kind = next((words for names, words in _KINDS if names <= keys), "")
    if first.code == "syntax.json" and first.line_text.strip() in ("{", "["):
        kind = "one JSON value over many lines, such as a schema"
    seems = f"The file seems to hold {kind}" if kind else "It seems to be another kind of file"
    return f" {seems}: its first {len(errors)} lines all fail in the same way. Expected {expected}."
