"""A baseline that returns the sentence that shares most words with the question; without a
question, the beginning of the text.

    python baseline.py inputs.jsonl.gz > baseline.jsonl

Needs only Python. A simple start for your own system: change what you like.
"""

import gzip
import json
import re
import sys
from typing import Any

Record = dict[str, Any]

SENTENCES = 2  # of a text without a question: news tells the most first


def split_into_sentences(text: str) -> list[str]:
    """Return the sentences of a text, split at full stops."""
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+", text.strip()) if sentence]


def word_stems(text: str) -> set[str]:
    """Return the beginnings of the longer words of a text."""
    return {word[:6] for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


def predict_output(input_record: Record) -> Record:
    """Return the output for one input, and the passage that it comes from."""
    passages = input_record.get("passages") or []
    texts = [split_into_sentences(text) for text in passages or [input_record.get("source", "")]]
    wanted = word_stems(input_record.get("question", ""))
    if not wanted:
        place = next((number for number, text in enumerate(texts) if text), 0)
        output = " ".join(texts[place][:SENTENCES])
    else:
        candidates = [(sentence, number) for number, text in enumerate(texts) for sentence in text]
        output, place = max(
            candidates,
            key=lambda sentence_place: len(word_stems(sentence_place[0]) & wanted),
            default=("", 0),
        )  # of equal ones the first
    record = {"input_id": input_record["input_id"], "output": output}
    return record | ({"passage": place} if passages else {})


def main(inputs: str) -> None:
    """Print the outputs, one on each line."""
    with gzip.open(inputs, "rt", encoding="utf-8") as lines:
        for asked in map(json.loads, lines):
            print(json.dumps(predict_output(asked)))


if __name__ == "__main__":
    main(*sys.argv[1:])
