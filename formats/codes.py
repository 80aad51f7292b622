"""The registry of all message codes: what can be said about a file, in which family, how severe it
is.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of message."""

    name: str
    severity: Severity
    description: str

    @property
    def family(self) -> str:
        """Return the part of the name before the dot: syntax, reference, consistency, schema or
        limits.
        """
        return self.name.partition(".")[0]


_ALL = (
    Code("syntax.empty", "error", "The file has no content."),
    Code(
        "syntax.binary",
        "error",
        "The file is not text: an archive, a picture, UTF-16, or packed twice.",
    ),
    Code("syntax.encoding", "error", "A line is not UTF-8. It is dropped."),
    Code(
        "syntax.control",
        "error",
        "A line holds a character that no text has (NUL, half a surrogate pair). Dropped.",
    ),
    Code("syntax.gzip_truncated", "error", "The gzip file ends too early. Nothing is used."),
    Code("syntax.gzip_corrupt", "error", "The gzip file is damaged. Nothing is used."),
    Code(
        "syntax.gzip_trailing",
        "warning",
        "Bytes follow the end of the gzip data. They are ignored.",
    ),
    Code(
        "syntax.format",
        "error",
        "The file is in none of the formats that are read here. Nothing is used.",
    ),
    Code(
        "syntax.run_id",
        "warning",
        "The first line is not a run id. It is read like every other line.",
    ),
    Code("syntax.columns", "error", "A line has the wrong number of columns. It is dropped."),
    Code(
        "syntax.header",
        "error",
        "The header of an annotation file is not the expected one. Nothing is used.",
    ),
    Code(
        "syntax.entity_id",
        "error",
        "The subject is not an entity id (`:E12`). The line is dropped.",
    ),
    Code("syntax.string", "error", "A quoted string cannot be read. The line is dropped."),
    Code("syntax.offsets", "error", "Offsets cannot be read. The line is dropped."),
    Code(
        "syntax.confidence",
        "warning",
        "The confidence is no number from 0 to 1. The line is kept without it.",
    ),
    Code("syntax.json", "error", "A line is not one JSON object. It is dropped."),
    Code("syntax.nan", "error", "Lines hold NaN, which is no JSON. They are dropped."),
    Code("syntax.quote", "error", "A quotation mark is not closed. Nothing is used."),
    Code("syntax.yaml", "error", "The file is no YAML. Nothing is used."),
    Code("syntax.key_missing", "error", "A required key is missing. The line is dropped."),
    Code("syntax.key_unknown", "warning", "A key is not known. It is ignored."),
    Code("syntax.value", "error", "A value is of the wrong kind. The line is dropped."),
    Code(
        "syntax.date",
        "warning",
        "The date of a document is not YYYY-MM-DD. The document is kept without a date.",
    ),
    Code("syntax.number", "error", "A value is no finite number. The line is dropped."),
    Code("syntax.seconds", "warning", "A working time is no number. Kept without it."),
    Code("syntax.output_empty", "error", "An output has no text. It is dropped."),
    Code("syntax.bidirectional", "warning", "A text turns its direction. The marks are removed."),
    Code("syntax.invisible", "warning", "A text holds invisible characters. They are removed."),
    Code("syntax.markup", "warning", "A text holds markup. Kept: people are shown it as text."),
    Code("syntax.nothing_usable", "error", "Nothing of the file is usable. It is refused."),
    Code(
        "reference.document",
        "error",
        "The document is not in the corpus. What lies in it is dropped.",
    ),
    Code(
        "reference.other_corpus",
        "error",
        "No document of the file is in the corpus: it is a file for another one.",
    ),
    Code("reference.input", "error", "The track has no such input. The line is dropped."),
    Code("reference.entity", "error", "An entity is not defined in the file. The line is dropped."),
    Code("reference.untyped", "error", "An entity has no usable type. The line is dropped."),
    Code(
        "reference.offsets",
        "error",
        "A span lies outside its document's text. The line is dropped.",
    ),
    Code("reference.gloss", "error", "A span does not hold its gloss. The line is dropped."),
    Code(
        "reference.provenance",
        "warning",
        "No mention lies inside the provenance. The relation is dropped.",
    ),
    Code(
        "reference.string",
        "warning",
        "A string value is not found inside the provenance. The relation is dropped.",
    ),
    Code(
        "reference.canonical",
        "info",
        "No canonical mention in the document. The first longest mention serves.",
    ),
    Code("reference.other_inputs", "error", "No line is about an input that is known here."),
    Code("reference.system", "error", "The system is not in the track. The line is dropped."),
    Code("reference.output", "error", "The system has no output for the input. Line dropped."),
    Code("reference.criterion", "error", "The track asks no such question. The line is dropped."),
    Code("reference.passage", "warning", "The input has no such passage. Kept without it."),
    Code("consistency.input_twice", "error", "One input has two outputs. The first one is used."),
    Code("consistency.input_missing", "error", "Inputs have no usable output. They are named."),
    Code("consistency.two_types", "warning", "One mention has two types. The first one is kept."),
    Code("consistency.entity_types", "warning", "One entity has two types. The first one is kept."),
    Code(
        "consistency.links",
        "warning",
        "One entity or mention has two links. The first one is kept.",
    ),
    Code(
        "consistency.canonicals",
        "warning",
        "Two canonical mentions in one document. The first one is kept.",
    ),
    Code(
        "consistency.predicates",
        "warning",
        "Two predicates that exclude each other for one pair. Both are kept.",
    ),
    Code(
        "consistency.inverse", "warning", "A relation and its contrary for one pair. Both are kept."
    ),
    Code(
        "consistency.missing_inverse",
        "info",
        "Relations without their inverse. Nothing is added or dropped.",
    ),
    Code(
        "consistency.duplicate",
        "warning",
        "The same relation as an earlier line. The first one is kept.",
    ),
    Code(
        "consistency.duplicate_turned",
        "info",
        "The inverse of an earlier line, turned round. Counted once.",
    ),
    Code(
        "consistency.document_twice", "error", "Two documents have one id. The first one is kept."
    ),
    Code(
        "consistency.order",
        "error",
        "Tokens or sentences overlap or are out of order. The document is dropped.",
    ),
    Code(
        "consistency.straddle",
        "error",
        "A token straddles the end of a sentence. The document is dropped.",
    ),
    Code(
        "consistency.mention_twice",
        "warning",
        "The same mention as an earlier line. The first one is kept.",
    ),
    Code("consistency.input_id", "error", "Two inputs have one id. The first one is kept."),
    Code("consistency.score_twice", "error", "Two scores of one output. The first one is kept."),
    Code("consistency.scores_missing", "error", "A metric has no score for some outputs."),
    Code("consistency.one_system", "error", "A metric has scores for one system alone."),
    Code("consistency.judgment_twice", "error", "One person answers twice. The first one is kept."),
    Code(
        "schema.unknown_predicate",
        "error",
        "The predicate is not in the schema. The line is dropped.",
    ),
    Code(
        "schema.ignored_predicate",
        "info",
        "The predicate is known, but not evaluated here. The line is ignored.",
    ),
    Code(
        "schema.unknown_type", "error", "The entity type is not in the schema. The line is dropped."
    ),
    Code(
        "schema.arguments",
        "warning",
        "The predicate cannot hold between these types. Kept: it counts as wrong.",
    ),
    Code(
        "schema.string",
        "error",
        "The argument must be an entity, not a string. The relation is dropped.",
    ),
    Code(
        "schema.itself",
        "error",
        "A relation of an entity or a mention to itself. The relation is dropped.",
    ),
    Code("consistency.form", "error", "Parts of a form do not go together. Nothing is used."),
    Code("schema.form", "error", "A field of a form is missing or wrong. Nothing is used."),
    Code("schema.range", "error", "A judgment lies outside the scale. The line is dropped."),
    Code("limits.upload", "error", "The file as uploaded is too large. Nothing is used."),
    Code("limits.unpacked", "error", "The file is too large when unpacked. Nothing is used."),
    Code(
        "limits.ratio",
        "error",
        "The file unpacks to suspiciously many times its size. Nothing is used.",
    ),
    Code("limits.lines", "error", "The file has too many lines. Nothing is used."),
    Code("limits.line", "error", "A line is too long. It is dropped."),
    Code("limits.relations", "error", "The file has too many relations. Nothing is used."),
    Code(
        "limits.document", "error", "The text of a document is too long. The document is dropped."
    ),
    Code("limits.form", "error", "A form is too long. Nothing is used."),
    Code("limits.output", "error", "An output is too long. It is dropped."),
    Code("limits.passages", "error", "An input has too many passages. It is dropped."),
)

CODES: dict[str, Code] = {code.name: code for code in _ALL}

# After one of these the reader stops: what it has read so far is not the file that the researcher
# meant.
FATAL = frozenset(
    {
        "syntax.empty",
        "syntax.binary",
        "syntax.gzip_truncated",
        "syntax.gzip_corrupt",
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
