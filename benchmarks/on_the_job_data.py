"""Streams of inputs with labels and frozen people, for `on_the_job.py`.

Nothing is committed. Where a file is missing, `Missing` says what to do.
"""

from __future__ import annotations

import ast
import functools
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "benchmarks" / "out"
CROWD_NER = ROOT.parent / "shared" / "data" / "crowd_ner"
SHA256 = {
    "vaderSentiment-3.3.2.tar.gz": (
        "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
    ),
    "wikigold.conll.gz": "3fa6201ddc6cf686378415bd4fd8dea3c7ecb8a254539f03ebb1c1876aeb4f76",
    "tweets.jsonl.gz": "ea3d87a8702d8ffcbd1bd73ee1230a898eb77c00b773e156878310c108635bb0",
}


class Missing(Exception):
    """Raised if a data set is missing; the message says how to get it."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Inputs in their order, and what each person would answer about each position.

    `responses`, `delays` and `workers` of an input have a row for each position and a column for
    each person, in the order in which people are asked; a worker of −1 has no name. `marked` are
    inputs that a table reports apart.
    """

    name: str
    labels: tuple[str, ...]
    n_features: int
    features: list[sparse.csr_array]
    gold: list[np.ndarray]
    responses: list[np.ndarray]
    delays: list[np.ndarray]
    workers: list[np.ndarray]
    texts: list[list[str]]
    marked: np.ndarray


def read_checked(path: Path) -> bytes:
    """Return the content of a file that is the one expected."""
    if not path.exists():
        raise Missing(f"{path} is not there")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256[path.name]:
        raise Missing(f"{path} is another version: its SHA-256 is not {SHA256[path.name]}")
    return content


def feature_matrices(rows: list[list[list[int]]]) -> tuple[int, list[sparse.csr_array]]:
    """Return feature matrices of inputs whose positions list features by hash, with few columns.

    Rows have the Euclidean norm 1.
    """
    lists = [features for positions in rows for features in positions]
    lengths = np.array([len(features) for features in lists])
    flat = np.concatenate([np.array(features, dtype=np.int64) for features in lists])
    columns, local = np.unique(flat, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    data = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    whole = sparse.csr_array((data, local, indptr), shape=(len(lists), len(columns)))
    ends = np.cumsum([len(positions) for positions in rows])
    return len(columns), [
        whole[end - len(positions) : end] for end, positions in zip(ends, rows, strict=True)
    ]


def hash_features(features: list[str]) -> list[int]:
    return sorted({zlib.crc32(feature.encode()) % 2**18 for feature in features})


def token_features(tokens: list[str]) -> list[list[int]]:
    """Return the hashed features of each token: words around it, shape, prefixes and suffixes."""

    def shape(word: str) -> str:
        named = re.sub(r"[^\W\d_]", lambda m: "X" if m[0].isupper() else "x", word)
        return re.sub(r"(.)\1+", r"\1", re.sub(r"\d", "d", named))

    padded = ["<s>", "<s>", *tokens, "</s>", "</s>"]
    lower = [word.lower() for word in padded]
    rows = []
    for i in range(2, len(padded) - 2):
        word, low = padded[i], lower[i]
        features = [f"w={low}", f"W={word}", f"s={shape(word)}", f"-s={shape(padded[i - 1])}"]
        features += [f"+s={shape(padded[i + 1])}", f"-1={lower[i - 1]}", f"+1={lower[i + 1]}"]
        features += [f"~={lower[i + k]}" for k in (-2, -1, 1, 2)]
        features += [f"p{k}={low[:k]}" for k in range(1, 5)]
        features += [f"e{k}={low[-k:]}" for k in range(1, 5)]
        rows.append(hash_features(features))
    return rows


@functools.lru_cache(maxsize=2)
def load_digits(seed: int) -> Stream:
    """Return 720 images of the digits 0 to 3, with simulated people who are right in 93.6 % of
    answers.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise Missing("digits need scikit-learn: pip install -r requirements-dev.txt") from error
    rng = np.random.default_rng(seed)
    images, gold = load_digits(n_class=4, return_X_y=True)
    order = rng.permutation(len(gold))
    wrong = (gold[:, None] + rng.integers(1, 4, size=(len(gold), 5))) % 4
    responses = np.where(rng.random((len(gold), 5)) < 0.936, gold[:, None], wrong)
    delays = rng.lognormal(np.log(1.2), 0.5, size=(len(gold), 5))
    return Stream(
        name="digits",
        labels=("0", "1", "2", "3"),
        n_features=64,
        features=[sparse.csr_array(images[i : i + 1] / 16) for i in order],
        gold=[gold[i : i + 1] for i in order],
        responses=[responses[i : i + 1] for i in order],
        delays=[delays[i : i + 1] for i in order],
        workers=[np.full((1, 5), -1)] * len(order),
        texts=[["image"]] * len(order),
        marked=np.ones(len(order), dtype=bool),
    )


@functools.lru_cache(maxsize=1)
def load_vader() -> tuple[list[tuple[str, list[int]]], dict[str, float]]:
    """Return review snippets with their ratings, and the lexicon, of vaderSentiment's sources."""
    path = CACHE / "vaderSentiment-3.3.2.tar.gz"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-binary", ":all:"]
        fetch += ["--no-deps", "-d", str(CACHE), "vaderSentiment==3.3.2"]
        if subprocess.run(fetch, capture_output=True, check=False).returncode:
            raise Missing("vaderSentiment's sources cannot be had: " + " ".join(fetch[1:]))
    with tarfile.open(fileobj=io.BytesIO(read_checked(path))) as outer:

        def read_member(archive: tarfile.TarFile, end: str) -> bytes:
            name = next(name for name in archive.getnames() if name.endswith(end))
            file = archive.extractfile(name)
            assert file is not None
            return file.read()

        lines = read_member(outer, "vaderSentiment/vader_lexicon.txt").decode().splitlines()
        lexicon = {line.split("\t")[0]: float(line.split("\t")[1]) for line in lines}
        inner = io.BytesIO(read_member(outer, "hutto_ICWSM_2014.tar.gz"))
        with tarfile.open(fileobj=inner) as archive:
            truth = read_member(archive, "movieReviewSnippets_GroundTruth.txt").decode("latin-1")
            ratings = read_member(archive, "movieReviewSnippets_anonDataRatings.txt").decode(
                "latin-1"
            )
    texts = {line.split("\t")[0]: line.split("\t")[2] for line in truth.splitlines()}
    rated = [line.split("\t") for line in ratings.splitlines()]
    return [(texts[row[0]], ast.literal_eval(row[3])) for row in rated], lexicon


@functools.lru_cache(maxsize=2)
def load_sentiment(seed: int, rich: bool) -> Stream:
    """Return 1,000 review snippets with the ratings of real people.

    Gold is the sign of the mean of half of the raters; five of the other half are asked.
    """
    snippets, lexicon = load_vader()
    rng = np.random.default_rng(seed)
    texts, gold, responses = [], [], []
    for i in rng.permutation(len(snippets)):
        text, ratings = snippets[i]
        people = rng.permutation(ratings)
        half = len(people) // 2
        mean = people[:half].mean()
        if mean == 0 or len(people) - half < 5:
            continue
        answers = people[half : half + 5]
        coins = rng.integers(2, size=5)
        texts.append(text)
        gold.append(np.array([int(mean > 0)]))
        responses.append(np.where(answers == 0, coins, answers > 0).astype(np.int64)[None])
        if len(gold) == 1000:
            break
    rows = []
    for text in texts:
        words = re.findall(r"[a-z']+", text.lower())
        features = [f"w={word}" for word in words]
        if rich:
            scores = [lexicon[word] for word in words if word in lexicon]
            features += [f"+{k}" for k in range(min(sum(s > 0 for s in scores), 4))]
            features += [f"-{k}" for k in range(min(sum(s < 0 for s in scores), 4))]
            total = int(np.clip(np.round(sum(scores)), -5, 5))
            features += [f"sum={total}", f"sign={np.sign(total)}"] * bool(scores)
        rows.append([hash_features(features or ["empty"])])
    n_features, matrices = feature_matrices(rows)
    return Stream(
        name="sentiment, lexicon" if rich else "sentiment, unigrams",
        labels=("negative", "positive"),
        n_features=n_features,
        features=matrices,
        gold=gold,
        responses=responses,
        delays=[rng.exponential(6.6, size=(1, 5)) for _ in gold],
        workers=[np.full((1, 5), -1)] * len(gold),
        texts=[[text] for text in texts],
        marked=np.ones(len(gold), dtype=bool),
    )


@functools.lru_cache(maxsize=2)
def load_wikigold(seed: int) -> Stream:
    """Return 300 sentences of Wikipedia of up to 30 tokens with names, and simulated people.

    They are right 7 times in 10 on names and 93 times in 100 elsewhere.
    """
    labels = ("PER", "LOC", "ORG", "NONE")
    text = gzip.decompress(read_checked(CROWD_NER / "wikigold.conll.gz")).decode()
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    sentences = [[line.rsplit(" ", 1) for line in block] for block in blocks if len(block) <= 30]
    rng = np.random.default_rng(seed)
    chosen = [sentences[i] for i in rng.permutation(len(sentences))[:300]]
    code = {f"I-{name}": k for k, name in enumerate(labels)}
    gold, responses, delays = [], [], []
    for sentence in chosen:
        y = np.array([code.get(tag, 3) for _, tag in sentence])
        wrong = (y[:, None] + rng.integers(1, 4, size=(len(y), 5))) % 4
        quality = np.where(y == 3, 0.93, 0.7)[:, None]
        gold.append(y)
        responses.append(np.where(rng.random((len(y), 5)) < quality, y[:, None], wrong))
        delays.append(rng.lognormal(0.0, 0.54, size=(len(y), 5)))
    tokens = [[token for token, _ in sentence] for sentence in chosen]
    n_features, matrices = feature_matrices([token_features(words) for words in tokens])
    return Stream(
        name="wikigold",
        labels=labels,
        n_features=n_features,
        features=matrices,
        gold=gold,
        responses=responses,
        delays=delays,
        workers=[np.full(r.shape, -1) for r in responses],
        texts=tokens,
        marked=np.ones(len(gold), dtype=bool),
    )


@functools.lru_cache(maxsize=3)
def load_tweets(seed: int, kind: str) -> Stream:
    """Return 400 of 1,181 tweets, asked whether a token is a name of one kind, with real people.

    Five people marked each of the 187 tweets of section e, which is whole and reported apart; one
    or two the others. A person's answer about a token is whether they marked it; its delay is their
    seconds for the tweet divided by its number of tokens.
    """
    rng = np.random.default_rng(seed)
    lines = gzip.decompress(read_checked(CROWD_NER / "tweets.jsonl.gz")).decode().splitlines()
    parts: dict[str, list] = defaultdict(list)
    everything = [json.loads(line) for line in lines]
    last = [i for i, tweet in enumerate(everything) if tweet["section"] == "e"]
    others = [i for i, tweet in enumerate(everything) if tweet["section"] != "e"]
    for i in rng.permutation(last + list(rng.permutation(others)[:213])):
        tweet = everything[i]
        n = len(tweet["tokens"])
        people = [one for one in tweet["judgments"] if one["type"] == kind.lower()]
        people = [people[j] for j in rng.permutation(len(people))]
        parts["gold"].append(np.array([int(tag == kind) for tag in tweet["gold"]]))
        marks = np.array([[i in one["marked"] for one in people] for i in range(n)])
        parts["responses"].append(marks.astype(np.int64))
        parts["delays"].append(np.tile([one["seconds"] / n for one in people], (n, 1)))
        parts["workers"].append(np.tile([one["worker"] for one in people], (n, 1)))
        parts["texts"].append(tweet["tokens"])
        parts["marked"].append(tweet["section"] == "e")
    n_features, matrices = feature_matrices([token_features(words) for words in parts["texts"]])
    marked = np.array(parts.pop("marked"))
    return Stream(
        name=f"tweets, {kind}",
        labels=("NONE", kind),
        n_features=n_features,
        features=matrices,
        marked=marked,
        **parts,
    )
