"""What a team wrote that a question touches besides the outputs that are predictions of theirs."""

from __future__ import annotations

COMPARED = """t.content ? 'texts' AND EXISTS (
    SELECT 1 FROM submissions_submission s
    JOIN generation_written w ON w.submission_id = s.id
    WHERE s.team_id = ANY(asked.teams) AND w.key = t.content->>'input'
      AND t.content->'texts' ? w.text)"""
"""One of two texts that are compared, be it in a pair of another team's private run, which the team
does not predict itself."""
