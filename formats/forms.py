"""Reads a declared form: questions about texts that an admin writes in YAML, without code.

    name: helpfulness
    title: How helpful is it?
    price: 0.05
    questions:
      - name: helpful
        kind: rating
        ask: How helpful is the text?
        range: [1, 5]
        cues: {1: of no use, 5: answers everything}

Kinds of question: `rating` (a number of a range), `choice` (one of some answers, each with what it
counts), `preference` (which of two texts is better, or neither) and `text` (free words, which are
kept and not scored). docs/formats.md has every key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation

from formats.cleaning import clean_text
from formats.messages import Report, quote
from formats.yaml_text import BadYaml, Node, read_yaml

KINDS = ("rating", "choice", "preference", "text")
SHOWN = ("question", "source", "reference")
LONGEST_NAME, LONGEST, MOST = 19, 500, 9
BYTES = 200_000
TAKEN = frozenset(
    {"flag", "problem", "remark", "csrfmiddlewaretoken"}
    # A field of such a name would hide what a page's script asks of its form.
    | {"action", "method", "submit", "elements", "dataset", "remove", "closest", "matches"}
)
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")
_FORM = frozenset(
    {"name", "title", "offered_as", "guide", "shows", "price", "seconds", "people"}
    | {"second_share", "questions", "tutorial"}
)
_QUESTION = frozenset(
    {"name", "kind", "label", "ask", "required", "direction", "range", "cues", "answers", "ties"}
)
_ANSWER = frozenset({"label", "value", "cue"})
_TUTORIAL = frozenset({"needed", "minutes", "intro", "questions"})
_TAUGHT = frozenset({"text", "texts", "question", "source", "reference", "right", "tests", "why"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One button: its label, and its value on the question's scale."""

    label: str
    value: float
    cue: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a form; a question with free text has no answers."""

    name: str
    kind: str
    label: str
    ask: str
    required: bool
    higher_is_better: bool
    low: float
    high: float
    answers: tuple[Answer, ...]

    def scale_share(self, value: float) -> float:
        """Return the position of a value on the scale, in [0, 1]."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question of a tutorial: the text that is shown, the right answers by their values, and the
    reason.
    """

    texts: tuple[str, ...]
    beside: dict[str, str]
    right: dict[str, float | str]
    tests: str
    why: str


@dataclass(frozen=True, slots=True)
class Form:
    """A valid form: every value is present and in its range."""

    name: str
    title: str
    offered_as: str
    guide: tuple[str, ...]
    shows: tuple[str, ...]
    price: Decimal
    seconds: int
    people: int
    second_share: Decimal | None
    """Share of the texts that one more person rates; None: the service's default"""
    questions: tuple[Question, ...]
    needed: int = 0
    minutes: int = 0
    intro: tuple[str, ...] = ()
    lessons: tuple[Lesson, ...] = field(default=())

    @property
    def is_comparison(self) -> bool:
        """Return whether the form shows two texts and asks which is better."""
        return any(question.kind == "preference" for question in self.questions)

    @property
    def scored_questions(self) -> tuple[Question, ...]:
        """Return the questions with numeric answers, each of which is a criterion."""
        return tuple(question for question in self.questions if question.kind != "text")


def read_form(text: str, report: Report) -> Form | None:
    """Return the form in a YAML text; None if there is an error. The report then names each error
    with its line, its field and the correction.
    """
    before = report.errors
    if len(text.encode("utf-8", "replace")) > BYTES:
        report.add("limits.form", 0, f"The form is longer than {BYTES // 1000} kB. Shorten it.")
        return None
    node = _parse_yaml(text, report)
    if node is None:
        return None
    form = _Reader(report).form(node)
    return form if report.errors == before else None


def _parse_yaml(text: str, report: Report) -> Node | None:
    try:
        node = read_yaml(text)
    except BadYaml as problem:
        report.add("syntax.yaml", problem.line, str(problem))
        return None
    if node is None:
        report.add("syntax.empty", 0, "The form has no content. Write what it asks.")
    return node


class _Reader:
    """Reads nodes, and reports errors in them."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def report_wrong(self, code: str, node: Node, path: str, sentence: str) -> None:
        where = f"{path}: " if path else ""
        self.report.add(code, node.line, f"{where}{sentence}")

    def form(self, node: Node) -> Form | None:
        keys = self.read_mapping(node, "", _FORM, ("name", "title", "questions"))
        if keys is None:
            return None
        name = self.name(keys.get("name"), "name")
        title = self.text(keys.get("title"), "title", 120)
        questions = self.questions(keys["questions"]) if "questions" in keys else []
        compares = any(question.kind == "preference" for question in questions)
        n_texts = 2 if compares else 1
        form = Form(
            name=name,
            title=title,
            offered_as=self.text(keys.get("offered_as"), "offered_as", 128, title),
            guide=self.texts(keys.get("guide"), "guide"),
            shows=self.read_shows(keys.get("shows")),
            price=self.read_money(keys.get("price"), "price", Decimal("0.05")),
            seconds=int(self.number(keys.get("seconds"), "seconds", 1, 36_000, 30, whole=True)),
            people=int(self.number(keys.get("people"), "people", 1, 15, 1, whole=True)),
            second_share=Decimal(str(self.number(keys["second_share"], "second_share", 0, 1, 0)))
            if "second_share" in keys
            else None,
            questions=tuple(questions),
        )
        if "tutorial" in keys:
            return self.tutorial(keys["tutorial"], form, n_texts)
        return form

    def questions(self, node: Node) -> list[Question]:
        items = self.items(node, "questions")
        if not items:
            self.report_wrong("schema.form", node, "questions", "There is no question. Write one.")
        if len(items) > MOST:
            sentence = f"{len(items)} questions; a page holds at most {MOST}. Leave some out."
            self.report_wrong("schema.form", node, "questions", sentence)
        questions: list[Question] = []
        for place, item in enumerate(items, start=1):
            question = self.question(item, f"questions {place}")
            if question is None:
                continue
            if question.name in {one.name for one in questions}:
                self.report_wrong(
                    "consistency.form",
                    item,
                    f"questions {place}, name",
                    f"{quote(question.name)} is the name of an earlier question. Choose another.",
                )
            questions.append(question)
        if questions and all(one.kind == "text" for one in questions):
            sentence = "All are free text, which cannot be scored. Add a rating or a choice."
            self.report_wrong("consistency.form", node, "questions", sentence)
        kinds = {one.kind for one in questions} - {"text"}
        if "preference" in kinds and len(kinds) > 1:
            sentence = (
                "A preference shows two texts, a rating or a choice one. Write two forms,"
                " one for each."
            )
            self.report_wrong("consistency.form", node, "questions", sentence)
        return questions

    def question(self, node: Node, path: str) -> Question | None:
        keys = self.read_mapping(node, path, _QUESTION, ("name", "kind", "ask"))
        if keys is None:
            return None
        name = self.name(keys.get("name"), f"{path}, name")
        if name in TAKEN:
            sentence = f"{quote(name)} is a field of every page. Choose another name."
            self.report_wrong("schema.form", keys["name"], f"{path}, name", sentence)
        kind = self.read_one_of(keys.get("kind"), f"{path}, kind", KINDS)
        ask = self.text(keys.get("ask"), f"{path}, ask", LONGEST)
        label = self.text(keys.get("label"), f"{path}, label", 60, name.replace("_", " ").title())
        required = self.read_bool(keys.get("required"), f"{path}, required", True)
        direction = self.read_one_of(
            keys.get("direction"), f"{path}, direction", ("higher", "lower"), "higher"
        )
        if kind != "text" and not required:
            sentence = "Only free text may be left out: a score needs every answer. Remove it."
            self.report_wrong("consistency.form", keys["required"], f"{path}, required", sentence)
        answers: list[Answer] = []
        low, high = 0.0, 1.0
        if kind == "rating":
            low, high, answers = self.rating(keys, path, node)
        elif kind == "choice":
            low, high, answers = self.choice(keys, path, node)
        elif kind == "preference":
            answers = self.read_preference(keys, path)
        for key in ("range", "cues", "answers", "ties"):
            belongs = {"range": "rating", "cues": "rating", "answers": "choice"}
            if key in keys and kind and kind != belongs.get(key, "preference"):
                sentence = f"A {kind} has no {key}. Remove it."
                self.report_wrong("consistency.form", keys[key], f"{path}, {key}", sentence)
        is_better = direction == "higher"
        return Question(name, kind, label, ask, required, is_better, low, high, tuple(answers))

    def rating(
        self, keys: dict[str, Node], path: str, node: Node
    ) -> tuple[float, float, list[Answer]]:
        ends = self.items(keys["range"], f"{path}, range") if "range" in keys else []
        values = [end.value for end in ends]
        if len(values) != 2 or not all(_is_whole_number(value) for value in values):
            at = keys.get("range", node)
            sentence = "A rating needs its range: two whole numbers, as in [1, 5]."
            self.report_wrong("schema.form", at, f"{path}, range", sentence)
            return 0.0, 1.0, []
        low, high = values
        if not 1 <= high - low < MOST:
            sentence = f"From {low} to {high}: take 2 to {MOST} steps, the lowest first."
            self.report_wrong("schema.form", keys["range"], f"{path}, range", sentence)
            return 0.0, 1.0, []
        cues = self.read_cues(keys.get("cues"), f"{path}, cues", low, high)
        answers = [Answer(str(step), step, cues.get(step, "")) for step in range(low, high + 1)]
        return float(low), float(high), answers

    def read_cues(self, node: Node | None, path: str, low: int, high: int) -> dict[int, str]:
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            self.report_wrong(
                "schema.form", node, path, "Write steps and words, as in {1: bad, 5: good}."
            )
            return {}
        cues = {}
        for key, value in node.value.items():
            if not re.fullmatch(r"-?\d{1,6}", key) or not low <= int(key) <= high:
                sentence = f"{quote(key)} is no step from {low} to {high}."
                self.report_wrong("schema.form", value, path, sentence)
            else:
                cues[int(key)] = self.text(value, f"{path}, {key}", 120)
        return cues

    def choice(
        self, keys: dict[str, Node], path: str, node: Node
    ) -> tuple[float, float, list[Answer]]:
        items = self.items(keys["answers"], f"{path}, answers") if "answers" in keys else []
        if not 2 <= len(items) <= MOST:
            sentence = f"A choice needs 2 to {MOST} answers, each with a label and a value."
            self.report_wrong(
                "schema.form", keys.get("answers", node), f"{path}, answers", sentence
            )
            return 0.0, 1.0, []
        answers: list[Answer] = []
        for place, item in enumerate(items, start=1):
            where = f"{path}, answers {place}"
            parts = self.read_mapping(item, where, _ANSWER, ("label", "value"))
            if parts is None or "value" not in parts or "label" not in parts:
                continue
            value = self.number(parts["value"], f"{where}, value", -1e6, 1e6, 0)
            label = self.text(parts["label"], f"{where}, label", 60)
            if label in {one.label for one in answers}:
                sentence = f"{quote(label)} is an answer already. Choose another label."
                self.report_wrong("consistency.form", item, f"{where}, label", sentence)
            cue = self.text(parts.get("cue"), f"{where}, cue", 120, "")
            answers.append(Answer(label, value, cue))
        values = [answer.value for answer in answers]
        if answers and min(values) == max(values):
            sentence = "All answers have the same value, so nothing can be scored. Change one."
            self.report_wrong("schema.form", keys["answers"], f"{path}, answers", sentence)
            return 0.0, 1.0, answers
        return min(values, default=0.0), max(values, default=1.0), answers

    def read_preference(self, keys: dict[str, Node], path: str) -> list[Answer]:
        ties = self.read_bool(keys.get("ties"), f"{path}, ties", True)
        neither = [Answer("Neither", 0.5, "both are as good")] if ties else []
        return [Answer("The first", 1.0), *neither, Answer("The second", 0.0)]

    def tutorial(self, node: Node, form: Form, n_texts: int) -> Form | None:
        keys = self.read_mapping(node, "tutorial", _TUTORIAL, ("questions",))
        if keys is None or "questions" not in keys:
            return None
        lessons = []
        for place, item in enumerate(self.items(keys["questions"], "tutorial, questions"), start=1):
            lesson = self.read_lesson(item, f"tutorial, questions {place}", form, n_texts)
            if lesson is not None:
                lessons.append(lesson)
        if not lessons:
            sentence = "A tutorial needs a question. Write one, or leave the tutorial out."
            self.report_wrong("schema.form", keys["questions"], "tutorial, questions", sentence)
            return None
        n = len(lessons)
        needed = self.number(keys.get("needed"), "tutorial, needed", 1, n, n, whole=True)
        minutes = self.number(keys.get("minutes"), "tutorial, minutes", 1, 120, n, whole=True)
        return replace(
            form,
            needed=int(needed),
            minutes=int(minutes),
            intro=self.texts(keys.get("intro"), "tutorial, intro"),
            lessons=tuple(lessons),
        )

    def read_lesson(self, node: Node, path: str, form: Form, n_texts: int) -> Lesson | None:
        shown = "texts" if n_texts == 2 else "text"
        keys = self.read_mapping(node, path, _TAUGHT, (shown, "right", "why"))
        if keys is None or not {shown, "right", "why"} <= keys.keys():
            return None
        texts = (
            self.texts(keys["texts"], f"{path}, texts", max_length=20_000)
            if n_texts == 2
            else (self.text(keys["text"], f"{path}, text", 20_000),)
        )
        if len(texts) != n_texts:
            self.report_wrong("schema.form", keys[shown], f"{path}, {shown}", "Write two texts.")
        right = self.right(keys["right"], f"{path}, right", form)
        beside = {
            name: self.text(keys[name], f"{path}, {name}", 20_000) for name in SHOWN if name in keys
        }
        tests = self.text(keys.get("tests"), f"{path}, tests", LONGEST, form.title)
        return Lesson(texts, beside, right, tests, self.text(keys["why"], f"{path}, why", LONGEST))

    def right(self, node: Node, path: str, form: Form) -> dict[str, float | str]:
        if not isinstance(node.value, dict):
            self.report_wrong(
                "schema.form", node, path, "Write each question’s name and its right value."
            )
            return {}
        right: dict[str, float | str] = {}
        for question in form.scored_questions:
            values = [answer.value for answer in question.answers]
            if question.name not in node.value:
                sentence = f"It has no answer to {quote(question.name)}. Write one."
                self.report_wrong("consistency.form", node, path, sentence)
                continue
            said = node.value[question.name]
            labels = {answer.label: answer.value for answer in question.answers}
            value = labels.get(said.value, said.value) if _is_scalar(said.value) else None
            if not values:  # what is wrong with its answers is told where they stand
                continue
            if isinstance(value, bool) or value not in values:
                known = ", ".join(f"{one:g}" for one in values)
                sentence = f"No answer of {quote(question.name)} is that; there are {known}."
                self.report_wrong("consistency.form", said, path, sentence)
            else:
                right[question.name] = float(value)
        for name in node.value.keys() - {one.name for one in form.questions}:
            sentence = f"There is no question {quote(name)}."
            self.report_wrong("consistency.form", node.value[name], path, sentence)
        return right

    def read_mapping(
        self, node: Node, path: str, known_keys: frozenset[str], required_keys: tuple[str, ...]
    ) -> dict[str, Node] | None:
        if not isinstance(node.value, dict):
            sentence = f"Expected here: keys with values; they are {', '.join(sorted(known_keys))}."
            self.report_wrong("schema.form", node, path, sentence)
            return None
        keys: dict[str, Node] = node.value
        for name in sorted(keys.keys() - known_keys):
            sentence = (
                f"The key {quote(name)} is not known; there are {', '.join(sorted(known_keys))}."
            )
            self.report_wrong("schema.form", keys[name], path, sentence)
        for name in required_keys:
            if name not in keys:
                self.report_wrong("schema.form", node, path, f"The key {name} is missing. Add it.")
        return keys

    def items(self, node: Node, path: str) -> list[Node]:
        if isinstance(node.value, list):
            return node.value
        self.report_wrong(
            "schema.form", node, path, "Expected here: a list, with a line “- ” for each."
        )
        return []

    def text(
        self, node: Node | None, path: str, max_length: int, default: str | None = None
    ) -> str:
        if node is None:
            return default or ""  # a missing required one was reported
        value = str(node.value) if isinstance(node.value, int | float) else node.value
        shown = clean_text(value).text if isinstance(value, str) else ""  # as outputs are shown
        if isinstance(node.value, bool) or not isinstance(value, str) or not shown:
            self.report_wrong("schema.form", node, path, "Expected here: text in quotation marks.")
            return ""
        if len(shown) > max_length or _UNPRINTABLE.search(value):
            allowed = f"at most {max_length:,} that can be printed"
            sentence = f"{len(shown):,} characters; {allowed}. Shorten it."
            self.report_wrong("schema.form", node, path, sentence)
            return ""
        return shown

    def texts(self, node: Node | None, path: str, max_length: int = LONGEST) -> tuple[str, ...]:
        items = self.items(node, path) if node is not None else []
        return tuple(
            self.text(item, f"{path} {n}", max_length) for n, item in enumerate(items, start=1)
        )

    def name(self, node: Node | None, path: str) -> str:
        name = self.text(node, path, LONGEST)
        if node is not None and name and (not _NAME.match(name) or len(name) > LONGEST_NAME):
            sentence = (
                f"{quote(name)} is no name: a small letter, then small letters, digits or “_”, at"
                f" most {LONGEST_NAME}."
            )
            self.report_wrong("schema.form", node, path, sentence)
        return name

    def read_one_of(
        self, node: Node | None, path: str, options: tuple[str, ...], default: str = ""
    ) -> str:
        if node is None:
            return default
        if node.value in options:
            return str(node.value)
        sentence = f"{quote(str(node.value))} is none of {', '.join(options)}. Choose one of them."
        self.report_wrong("schema.form", node, path, sentence)
        return ""

    def read_bool(self, node: Node | None, path: str, default: bool) -> bool:
        if node is None:
            return default
        if isinstance(node.value, bool):
            return node.value
        self.report_wrong("schema.form", node, path, "Expected here: yes or no.")
        return default

    def number(
        self,
        node: Node | None,
        path: str,
        low: float,
        high: float,
        default: float,
        *,
        whole: bool = False,
    ) -> float:
        if node is None:
            return default
        value = node.value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (whole and int(value) != value):
            kind = "a whole number" if whole else "a number"
            sentence = f"{quote(str(value))} is not {kind} from {low:g} to {high:g}."
            self.report_wrong("schema.form", node, path, sentence)
            return default
        return float(value)

    def read_money(self, node: Node | None, path: str, default: Decimal) -> Decimal:
        if node is None:
            return default
        try:
            amount = Decimal(str(node.value))
        except InvalidOperation:
            amount = Decimal("NaN")
        if (
            isinstance(node.value, bool)
            or not amount.is_finite()
            or not Decimal("0.01") <= amount <= 100
        ):
            sentence = f"{quote(str(node.value))} is no price from 0.01 to 100 dollars."
            self.report_wrong("schema.form", node, path, sentence)
            return default
        return amount.quantize(Decimal("0.01"))

    def read_shows(self, node: Node | None) -> tuple[str, ...]:
        items = self.items(node, "shows") if node is not None else []
        return tuple(self.read_one_of(item, "shows", SHOWN) for item in items)


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 1_000_000


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)


def error_sentences(report: Report) -> Iterator[str]:
    """Yield each message as a line: position, code, sentence."""
    for message in report:
        where = f"Line {message.line}" if message.line else "The file"
        yield f"{where} [{message.code}] {message.text}"
