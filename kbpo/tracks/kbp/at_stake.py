"""What a team says of relations that a question touches besides the pair that it asks about."""

from __future__ import annotations

_SAID_IN_IT = """
    SELECT 1 FROM instances_instance i
    JOIN submissions_prediction p ON p.instance_id = i.id
    JOIN submissions_submission s ON s.id = p.submission_id{sides}
    WHERE i.document_id = t.document_id AND s.team_id = ANY(asked.teams)
"""
_MENTIONS = """
    JOIN (VALUES ('a', t.a_begin, t.a_end), ('b', t.b_begin, t.b_end))
        AS side (letter, mention_begin, mention_end)
        ON (mention_begin, mention_end) IN (
            (i.subject_begin, i.subject_end), (i.object_begin, i.object_end),
            (p.subject_canonical_begin, p.subject_canonical_end),
            (p.object_canonical_begin, p.object_canonical_end))"""
OTHER_CANDIDATE = "$.candidates[*] ? (@.span[0] != $.span[0] || @.span[1] != $.span[1])"
"""The JSON path of what a mention, a side of a question's payload, may refer to besides itself:
where there is something, people are asked"""

LINKED = f"""EXISTS ({_SAID_IN_IT.format(sides=_MENTIONS)}
      AND jsonb_path_exists(asked.payload -> side.letter, '{OTHER_CANDIDATE}'))"""
"""What people say of a mention beside one relation settles it for all: a team has a stake in who it
is wherever a prediction of theirs has it, or claims that something refers to it."""
READ_WHOLE = f"t.kind = 'document' AND EXISTS ({_SAID_IN_IT.format(sides='')})"
"""Who reads a whole document marks all that may be predicted in it."""
