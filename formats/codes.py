"""The codes of all messages about files, by severity. The part before the dot is the family; the
table in README.md explains each.
"""

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


def family(code: str) -> str:
    """Return the family of a code: syntax, reference, consistency, schema or limits."""
    return code.partition(".")[0]
