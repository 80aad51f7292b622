"""Metrics of single outputs, distances of edits, similar words:
values by hand, and what is undefined.
"""

import doctest
import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.rating_model import fit_ratings
from formats import words
from kbpo.tracks.texts import edits, metrics
from kbpo.tracks.texts.edits import character_edit_share, count_changed_characters, word_edit_rate
from kbpo.tracks.texts.metrics import (
    LONGEST,
    METRICS,
    Scored,
    compute_metrics,
    other_references,
)
from kbpo.tracks.texts.shipped import PRIORS
from kbpo.tracks.texts.track import word_weights

OF_REFERENCES = sorted(name for name, metric in METRICS.items() if metric.needs == "references")


def values(text: str, *references: str, source: str = "") -> dict[str, float]:
    [row] = compute_metrics([Scored.from_output(text, references, source)])
    return row


def test_the_metrics_of_a_small_example_are_those_by_hand() -> None:
    row = values("the cat sat", "the cat ran away", source="One day the cat sat down.")
    assert row["rouge_1_f"] == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert row["rouge_1_r"] == pytest.approx(2 / 4)
    assert row["rouge_2_f"] == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert row["rouge_l_f"] == row["rouge_1_f"]
    assert row["length"] == 3
    assert row["copy_rate"] == 1.0
    # Precision 2/3, 1/2, and a smoothed half of one trigram; brevity exp(1 − 4/3).
    by_hand = math.exp(1 - 4 / 3) * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)
    assert row["bleu"] == pytest.approx(by_hand)


@pytest.mark.parametrize("name", OF_REFERENCES)
def test_the_reference_itself_is_perfect_and_something_else_is_nothing(name: str) -> None:
    text = "Mara Lindt founded Nordwerk in Bergen."
    assert values(text, text)[name] == pytest.approx(1.0)
    assert values("xyz qqq", text)[name] < 0.1


@pytest.mark.parametrize("name", OF_REFERENCES)
def test_of_several_references_the_nearest_counts(name: str) -> None:
    near, far = "Mara Lindt founded Nordwerk.", "Nothing of the kind was ever said."
    text = "Mara Lindt has founded Nordwerk."
    both = values(text, far, near)[name]
    assert both >= values(text, near)[name] - 1e-9
    assert both > values(text, far)[name]


def test_what_is_not_defined_is_nan() -> None:
    row = values("A text.")
    assert all(math.isnan(row[name]) for name in OF_REFERENCES)
    assert math.isnan(row["copy_rate"]) and row["length"] == 2
    assert math.isnan(values("A text.", "  ")["bleu"])
    assert math.isnan(values("…", source="word and word")["copy_rate"])
    thai = values("แมวนั่งบนเสื่อ", "แมวนั่งบนเสื่อ", source="แมวนั่งบนเสื่อ")
    assert thai["chrf"] == pytest.approx(1.0)
    assert all(math.isnan(thai[name]) for name in ("bleu", "rouge_1_f", "length", "copy_rate"))


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("今年没有下雨，2019年也一样。", "他在2019年搬到了上海。", 2 * 2 / (11 + 9)),
        ("他在二零一九年搬到了上海。", "他在2019年搬到了上海。", 2 * 8 / (12 + 9)),
        ("猫がマットに座った。", "猫がマットの上に座った。", 2 * 9 / (9 + 11)),
        ("Погода хорошая, NATO", "Страны NATO подписали договор", 2 / 7),
        ("नमस्ते दुनिया", "नमस्ते भारत", 1 / 2),
        ("Jose\u0301 left", "Jose\u0301 stayed", 1 / 2),
    ],
)
def test_rouge_compares_the_words_of_every_script_that_it_knows(
    output: str, reference: str, expected: float
) -> None:
    assert values(output, reference)["rouge_1_f"] == pytest.approx(expected)


def test_bleu_takes_the_tokenizer_of_the_script() -> None:
    assert 0.3 < values("他在上海工作了十年。", "他在上海住了十年。")["bleu"] < 0.9
    assert 0.3 < values("猫がマットに座った。", "猫がマットの上に座った。")["bleu"] < 0.9


def test_marks_do_not_cut_words() -> None:
    assert values("नमस्ते दुनिया")["length"] == 2
    assert values("नमस्ते दुनिया", source="नमस्ते दुनिया है")["copy_rate"] == 1.0


def test_rouge_and_its_stemmer_give_the_recorded_values() -> None:
    recorded = json.loads((Path(__file__).parent / "rouge_reference.json").read_text("utf-8"))
    for pair in recorded["scores"]:
        row = values(pair["output"], pair["reference"])
        for name in ("rouge_1_f", "rouge_1_r", "rouge_2_f", "rouge_l_f"):
            assert row[name] == pytest.approx(pair[name], abs=1e-12), (name, pair["output"])
    assert {word: metrics.porter_stem(word) for word in recorded["stems"]} == recorded["stems"]


def test_enormous_outputs_take_no_longer_than_long_ones() -> None:
    long = "word " * 40_000
    assert Scored.from_output(long, [long], long).text == long[:LONGEST]
    row = values(long, "word " * 30)
    assert row["length"] == LONGEST / 5
    assert 0 < row["rouge_1_f"] < 0.1


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_every_text_has_values_in_their_range_or_none(text: str, other: str, source: str) -> None:
    for name, value in values(text, other, source=source).items():
        assert math.isnan(value) or -1e-9 <= value <= METRICS[name].high + 1e-9


def test_a_reference_is_held_against_the_others() -> None:
    assert other_references(["one", "two", "one"], "one") == ("two", "one")
    assert other_references(["one"], "one") == ()
    assert other_references(["one"], "two") == ("one",)


def test_vectors_of_texts_that_say_the_same_are_similar() -> None:
    metric = METRICS["similarity"]
    cat, rug, shares = "The cat sat on the mat.", "A cat was sitting on a rug.", "Shares fell."
    assert metric(Scored.from_output(cat, [cat])) == pytest.approx(1.0)
    assert metric(Scored.from_output(cat, [rug])) > 0.3 + metric(Scored.from_output(cat, [shares]))
    assert metric(Scored.from_output(cat, [shares, rug])) == pytest.approx(
        metric(Scored.from_output(cat, [rug]))
    )
    assert (
        math.isnan(metric(Scored.from_output("…", [cat])))
        or metric(Scored.from_output("…", [cat])) < 0.5
    )
    assert math.isnan(metric(Scored.from_output(cat))) and "wordllama 0." in metric.version


@pytest.mark.parametrize("module", [edits, metrics, words])
def test_the_examples_run(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@given(st.text(max_size=30), st.text(max_size=30))
def test_an_edit_lies_between_nothing_and_everything(text: str, edited: str) -> None:
    share = character_edit_share(text, edited)
    assert 0 <= share <= 1
    assert (share == 0) == (text == edited)
    assert share == character_edit_share(edited, text)
    assert count_changed_characters(text, edited) == round(share * max(len(text), len(edited)))
    assert word_edit_rate(text, edited) >= 0


def test_words_edited_may_be_more_than_are_left() -> None:
    assert word_edit_rate("a b c d", "a") == 3
    assert word_edit_rate("a b", "") == 2
    assert word_edit_rate("", "") == 0


def test_texts_that_share_rare_words_are_similar() -> None:
    weights = word_weights(["the rare zebra", "a rare zebra", "the the the", "", "The end"])
    assert weights.shape[0] == 5 and weights[3].nnz == 0
    rows = weights.toarray()
    length = np.linalg.norm(rows, axis=1)
    length[3] = 1
    similarity = (rows @ rows.T) / np.outer(length, length)
    assert similarity[0, 1] > similarity[0, 2] > 0
    assert similarity[2, 4] > 0
    assert word_weights([]).shape == (0, 1)


def test_the_words_are_what_the_model_of_ratings_takes() -> None:
    texts = ["good text"] * 10 + ["bad text"] * 10
    rows = np.arange(20)
    rating = np.where(rows < 10, 0.9, 0.1)
    model = fit_ratings(
        np.zeros((20, 1)),
        rating,
        rows % 5,
        system=np.zeros(20, dtype=int),
        input=np.zeros(20, dtype=int),
        text=word_weights(texts),
    )
    assert model.g[:10].min() > 0.7 and model.g[10:].max() < 0.3


def test_a_prior_is_known_for_every_criterion_of_the_publication() -> None:
    gamma = {name: round(prior.sigma_a2 / prior.sigma_f2, 2) for name, prior in PRIORS.items()}
    assert gamma["fluency"] == 3.26 and gamma["overall"] == 2.17 and len(gamma) == 7
    most = (1 + gamma["fluency"]) / gamma["fluency"]
    assert most == pytest.approx(1.31, abs=0.01), "with annotator noise in σ_f² it was 1.8"
    assert PRIORS["fluency"] == pytest.approx((0.323 / 4, 0.099 / 4)), "from 0 to 1, not 1 to 3"
    assert all(sum(prior) <= 0.25 + 1e-12 for prior in PRIORS.values()), "as far as they can vary"
