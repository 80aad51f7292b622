"""Checks that all formats share: predicates, types, duplicates, inverses, and whether any line is
usable.
"""

from array import array
from math import isnan, nan

from formats.lookup import CorpusLookup
from formats.mentions import CompactMap
from formats.messages import Columns, Report, explain_wrong_format, quote
from formats.opening import Limits
from formats.relation import RelationClaim
from formats.schema import NO_RELATION, Schema

_ALONE, _PAIRED = 1, 2
EXPECTED = (
    "is a TAC KBP knowledge base (tab-separated), or JSON Lines with doc, subject, predicate and"
    " object"
)


class ClaimChecks:
    """The claims so far, stored compactly (some 50 bytes a relation), and the messages
    about them.
    """

    def __init__(
        self, corpus: CorpusLookup, schema: Schema, limits: Limits, report: Report
    ) -> None:
        self.corpus = corpus
        self.schema = schema
        self.limits = limits
        self.report = report
        self._documents: dict[str, int] = {}
        self._predicates = {name: number for number, name in enumerate(schema.predicates)}
        self._predicate_names = list(schema.predicates)
        self._inverses: dict[tuple[str, str], int] = {}
        self._rows = CompactMap()
        self._group_rows = CompactMap()
        self._lines = array("I")
        self._confidences = array("d")
        self._row_predicates = array("H")
        self._states = bytearray()
        self._unknown_documents = 0
        self._relation_lines = 0

    def report_unknown_document(
        self, name: str, number: int, line: str, culprit: Columns | None
    ) -> None:
        """Report that the corpus does not have the document."""
        self._unknown_documents += 1
        text = (
            f"The document {quote(name)} is not in the corpus. What this line says about"
            " it is dropped."
        )
        self.report.add("reference.document", number, text, line, culprit)

    def document_number(self, name: str) -> int:
        """Return a small number for a document that the file mentions."""
        number = self._documents.get(name)
        if number is None:
            number = self._documents[name] = len(self._documents)
        return number

    def is_within_relation_limit(self, number: int) -> bool:
        """Count a relation line and return whether it is within the limit; report the first line
        beyond the limit.
        """
        self._relation_lines += 1
        if self._relation_lines <= self.limits.relations:
            return True
        text = f"The file has more than {self.limits.relations:,} relations. Nothing of it is used."
        self.report.add("limits.relations", number, text)
        return False

    def report_unread_predicate(
        self, name: str, number: int, line: str, culprit: Columns | None
    ) -> None:
        """Report why a predicate has no canonical reading."""
        if name in self.schema.ignored or name == NO_RELATION:
            self.report_not_evaluated(name, number, line, culprit)
            return
        shown = f"{quote(name)}{self._similar_names(name)}"
        text = f"The schema has no predicate {shown}. The line is dropped."
        self.report.add("schema.unknown_predicate", number, text, line, culprit)

    def report_not_evaluated(
        self, name: str, number: int, line: str, culprit: Columns | None
    ) -> None:
        """Report that a line uses a predicate that is known, but not evaluated."""
        text = f"{quote(name)} is known, but not evaluated here. The line is ignored."
        self.report.add("schema.ignored_predicate", number, text, line, culprit)

    def _similar_names(self, name: str) -> str:
        folded = name.strip().lower()
        same = [known for known in self.schema.predicates if known.lower() == folded]
        return f"; is {quote(same[0])} meant" if same else ""

    def report_wrong_types(
        self, predicate: str, subject_type: str, object_type: str, number: int, source: str
    ) -> None:
        """Report a relation whose predicate does not allow its argument types. The relation is kept
        and counts as wrong: removing it would raise the precision of the system.
        """
        pairs = ", ".join(f"{s} and {o}" for s, o in self.schema.predicates[predicate].types[:4])
        text = (
            f"{predicate} does not hold between {subject_type} and {object_type} in the schema,"
            f" only between {pairs}. The relation is kept, but nobody will be asked for it: it"
            " counts as wrong."
        )
        self.report.add("schema.arguments", number, text, source)

    def accept(self, claim: RelationClaim, turned: bool, source: str) -> bool:
        """Return whether the claim is new. A duplicate is reported; a contradiction is reported,
        but accepted.
        """
        if claim.subject == claim.object:
            self.report.add(
                "schema.itself",
                claim.line,
                "Subject and object are the same mention. The relation is dropped.",
                source,
            )
            return False
        document = self.document_number(claim.document)
        predicate = self._predicates[claim.predicate]
        (begin, end), (object_begin, object_end) = claim.subject, claim.object
        row = len(self._lines)
        earlier = self._rows.add((document, begin, end, predicate, object_begin, object_end), row)
        if earlier != -1:
            self._report_duplicate(claim, earlier, turned, source)
            return False
        self._lines.append(claim.line)
        self._confidences.append(nan if claim.confidence is None else claim.confidence)
        self._row_predicates.append(predicate)
        self._states.append(0)
        self._check_inverse(claim, document, predicate, row, source)
        if claim.predicate in self.schema.groups:
            self._check_group(claim, document, predicate, row, source)
        return True

    def _report_duplicate(
        self, claim: RelationClaim, earlier: int, turned: bool, source: str
    ) -> None:
        first, line = self._confidences[earlier], self._lines[earlier]
        same = isnan(first) if claim.confidence is None else first == claim.confidence
        if turned:
            text = f"The inverse of this relation is on line {line} already. It is counted once."
            self.report.add("consistency.duplicate_turned", claim.line, text, source)
            return
        other = "" if same else " with another confidence"
        text = f"Same relation as line {line}{other}. The first one is kept."
        self.report.add("consistency.duplicate", claim.line, text, source)

    def _check_inverse(
        self, claim: RelationClaim, document: int, predicate: int, row: int, source: str
    ) -> None:
        key = (claim.predicate, claim.object_type)
        inverse = self._inverses.get(key)
        if inverse is None:
            name = self.schema.inverse(claim.predicate, claim.object_type)
            inverse = self._inverses[key] = -1 if name is None else self._predicates[name]
        if inverse == -1:
            return
        (begin, end), (object_begin, object_end) = claim.subject, claim.object
        other = self._rows.get((document, object_begin, object_end, inverse, begin, end))
        self._states[row] = _ALONE
        if other != -1:
            self._states[row] = self._states[other] = _PAIRED
        if inverse == predicate:
            return
        contrary = self._rows.get((document, object_begin, object_end, predicate, begin, end))
        if contrary != -1:
            text = (
                f"{claim.predicate} holds in one direction only, but line {self._lines[contrary]}"
                " states it the other way round. Both are kept; one of them must be wrong."
            )
            self.report.add("consistency.inverse", claim.line, text, source)

    def _check_group(
        self, claim: RelationClaim, document: int, predicate: int, row: int, source: str
    ) -> None:
        group = self.schema.groups[claim.predicate]
        earlier = self._group_rows.add((document, *claim.subject, group, *claim.object), row)
        if earlier == -1 or self._row_predicates[earlier] == predicate:
            return
        other = self._predicate_names[self._row_predicates[earlier]]
        text = (
            f"{claim.predicate} and {other} (line {self._lines[earlier]}) exclude each other, but"
            " are stated of the same pair. Both are kept; one of them must be wrong."
        )
        self.report.add("consistency.predicates", claim.line, text, source)

    def finish(self) -> None:
        """Report problems of the file as a whole."""
        self.report.relation_lines = self._relation_lines
        if self.report.fatal:
            return
        self._report_missing_inverses()
        if not self._documents and self._unknown_documents:
            self.report.add(
                "reference.other_corpus",
                0,
                "None of the documents that the file names is in this corpus. "
                "It looks like a file for another corpus.",
            )
        if not self._lines:
            text = f"The file has no usable relation.{explain_wrong_format(self.report, EXPECTED)}"
            self.report.add("syntax.nothing_usable", 0, f"{text} It is refused.")

    def _report_missing_inverses(self) -> None:
        count = self._states.count(_ALONE)
        if not count:
            return
        rows: list[int] = []
        while (
            len(rows) < 3 and (at := self._states.find(_ALONE, rows[-1] + 1 if rows else 0)) != -1
        ):
            rows.append(at)
        lines = [self._lines[row] for row in rows]
        shown = ("line " if len(lines) == 1 else "lines ") + ", ".join(map(str, lines))
        if count > len(lines):
            shown += " …"
        has = "relation has" if count == 1 else "relations have"
        text = f"{count:,} {has} no inverse in the file ({shown}). Nothing is added or dropped."
        self.report.add("consistency.missing_inverse", lines[0], text)
