// One paragraph: its marks, how they are made, and the sentence in which they are read back.
//
// Places are counted in characters (code points), as the server counts them.

const length = (text) => Array.from(text).length;
const READ_BACK = 150;
const WHICH = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/** Letters of writings that set no blanks between words. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null; // older browsers: whole runs

/** The words of a text in which are no blanks, each with the place of its first unit. */
function unspaced(text, index) {
  return [...segmenter.segment(text)].map((word) => [word.segment, index + word.index]);
}

/** Where each word begins and ends; counted on from the word before, for a paragraph may be long. */
function wordsOf(text) {
  let [place, index] = [0, 0];
  return [...text.matchAll(/\S+/g)]
    .flatMap((run) => segmenter && UNSPACED.test(run[0]) ? unspaced(run[0], run.index) : [[run[0], run.index]])
    .map(([word, at]) => {
      const begin = place + length(text.slice(index, at));
      place = begin + length(word);
      index = at + word.length;
      return [begin, place];
    });
}

/** Words as they are read back: of very many the beginning and the end. */
function short(text) {
  const letters = Array.from(text);
  if (letters.length <= 2 * READ_BACK) return text;
  return `${letters.slice(0, READ_BACK).join("")} […] ${letters.slice(-READ_BACK).join("")}`;
}

export class Passage {
  constructor(element, question, response, changed) {
    Object.assign(this, { element, question, response, changed, isChanging: false });
    this.letter = element.dataset.letter;
    this.box = element.querySelector(".passage-text");
    this.letters = Array.from(this.box.textContent);
    this.help = element.querySelector(".mark-help");
    this.button = element.querySelector(".mark-it");
    this.readback = element.querySelector(".readback");
    this.field = element.querySelector(`[name="marks-${element.dataset.at}"]`);
    this.confirmed = element.querySelector(`[name="confirmed-${element.dataset.at}"]`);
    this.marks = JSON.parse(this.field.value || "[]");
    this.words = wordsOf(this.box.textContent);
    this.cursor = null;
    this.draw();
    this.listen();
  }

  get says() { return this.element.querySelector("input[type=radio]:checked")?.value || ""; }
  get needsMarks() { return this.says === "correct" || this.says === "incorrect"; }
  get isReadBack() { return this.needsMarks && this.marks.length > 0 && !this.isChanging; }
  get isConfirmed() { return this.confirmed.value === "1"; }
  get isToConfirm() { return this.isReadBack && !this.isConfirmed; }
  get isDone() { return this.says === "neither" || (this.needsMarks && this.marks.length > 0 && this.isConfirmed); }

  /** What stands between two places. */
  text(begin, end) { return this.letters.slice(begin, end).join(""); }

  write() { this.field.value = JSON.stringify(this.marks); }

  // -- How it looks

  draw() {
    const parts = [];
    let place = 0;
    for (const [at, [begin, end]] of this.marks.entries()) {
      parts.push(this.text(place, begin));
      const mark = document.createElement("mark");
      const off = document.createElement("button");
      off.type = "button";
      off.className = "unmark";
      off.textContent = "×";
      off.setAttribute("aria-label", `Remove the mark “${this.text(begin, end).slice(0, 60)}”`);
      mark.dataset.mark = at;
      mark.append(this.text(begin, end), off);
      parts.push(mark);
      place = end;
    }
    parts.push(this.text(place));
    this.box.replaceChildren(...parts);
    this.write();
  }

  paint() {
    this.element.dataset.says = this.says;
    this.help.hidden = !this.needsMarks;
    this.element.querySelector(".mark-count").textContent = `${this.marks.length} mark${this.marks.length === 1 ? "" : "s"}, at least 1 needed.`;
    this.readback.hidden = !this.isReadBack;
    const missing = !this.says ? "is missing: say what it shows." : !this.marks.length ? `: mark the words that show that it is ${this.says}.` : ": read the marked words again, and confirm them.";
    this.element.dataset.missing = `Paragraph ${this.letter}${missing.startsWith(":") ? "" : " "}${missing}`;
    this.readback.querySelector(".n").classList.toggle("done", this.isConfirmed);
    if (!this.readback.hidden) this.read();
  }

  read() {
    const means = this.readback.querySelector(".means");
    const answer = document.createElement("bdi");
    answer.className = "response";
    answer.textContent = short(this.response);
    const asked = document.createElement("bdi");
    asked.textContent = `“${short(this.question)}”`;
    const not = document.createElement("span");
    not.className = "not";
    not.textContent = this.says === "incorrect" ? "not " : "";
    means.replaceChildren(answer, " is ", not, "an answer to ", asked, " because:");
    this.readback.querySelector("ul").replaceChildren(...this.marks.map(([begin, end]) => {
      const item = document.createElement("li");
      item.dir = "auto";
      item.textContent = short(this.text(begin, end));
      return item;
    }));
    this.warn();
  }

  /** Says which marks hold the answer that they are to show wrong. */
  warn() {
    const warns = this.readback.querySelector(".warn-words");
    const answer = this.response.toLowerCase();
    const holding = this.says !== "incorrect" ? [] : [...this.marks.keys()].filter((at) => this.text(...this.marks[at]).toLowerCase().includes(answer));
    const which = this.marks.length === 1 ? "" : `${holding.map((at) => WHICH[at] || `${at + 1}th`).join(" and ")} `;
    const words = document.createElement("b");
    words.textContent = `Your ${which}${holding.length > 1 ? "marks contain" : "mark contains"} the answer itself.`;
    warns.hidden = !holding.length;
    warns.replaceChildren(...(holding.length ? [words, " Keep it only if those words show that the answer is wrong."] : []));
  }

  // -- Marks

  change() {
    this.reopen();
    this.draw();
    this.changed();
  }

  /** What was said or marked is another: it is to be read back again. */
  reopen() {
    this.confirmed.value = "";
    this.isChanging = false;
  }

  add(begin, end) {
    const touched = this.marks.filter(([b, e]) => b <= end && begin <= e);
    const rest = this.marks.filter((mark) => !touched.includes(mark));
    const joined = [Math.min(begin, ...touched.map(([b]) => b)), Math.max(end, ...touched.map(([, e]) => e))];
    this.marks = [...rest, joined].sort((one, two) => one[0] - two[0]);
    this.change();
  }

  remove(at) {
    this.marks.splice(at, 1);
    this.change();
    this.box.focus();
  }

  // -- Where the selection is

  /** The text nodes of the paragraph, without the crosses on its marks. */
  *nodes() {
    const walker = document.createTreeWalker(this.box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(".unmark")) yield walker.currentNode;
  }

  placeOf(node, offset) {
    const range = document.createRange();
    range.setStart(this.box, 0);
    range.setEnd(node, offset);
    let place = 0;
    for (const text of this.nodes()) {
      if (text === node) return place + length(text.data.slice(0, offset));
      if (range.comparePoint(text, 0) > 0) break;
      place += length(text.data);
    }
    return place;
  }

  at(place) {
    let left = place;
    let last = [this.box, 0];
    for (const node of this.nodes()) {
      const letters = Array.from(node.data);
      if (left <= letters.length) return [node, letters.slice(0, left).join("").length];
      left -= letters.length;
      last = [node, node.data.length];
    }
    return last;
  }

  /** What is chosen, from the beginning of a word to the end of one; null if nothing is. */
  chosen() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!this.box.contains(range.startContainer) || !this.box.contains(range.endContainer)) return null;
    const begin = this.placeOf(range.startContainer, range.startOffset);
    const end = this.placeOf(range.endContainer, range.endOffset);
    const inside = this.words.filter(([b, e]) => b < end && begin < e);
    return inside.length ? [inside[0][0], inside.at(-1)[1]] : null;
  }

  markChosen() {
    const chosen = this.chosen();
    if (!chosen || !this.needsMarks) return;
    getSelection().removeAllRanges();
    this.button.hidden = true;
    const last = this.words.findLastIndex(([begin]) => begin < chosen[1]); // from where the keys go on
    this.cursor = [last, last];
    this.add(...chosen);
  }

  /** Puts the selection on the words from the cursor's one end to the other. */
  point() {
    const [first, last] = [...this.cursor].sort((one, two) => one - two);
    const range = document.createRange();
    range.setStart(...this.at(this.words[first][0]));
    range.setEnd(...this.at(this.words[last][1]));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }

  onArrow(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.words.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const within = (at) => Math.max(0, Math.min(this.words.length - 1, at));
    if (!this.cursor) this.cursor = [0, 0];
    else if (event.shiftKey) this.cursor = [this.cursor[0], within(this.cursor[1] + step)];
    else { const to = within(this.cursor[1] + step); this.cursor = [to, to]; }
    if (event.shiftKey) this.marking = true;
    this.point();
  }

  listen() {
    this.box.addEventListener("click", (event) => {
      const mark = event.target.closest("mark");
      if (mark && getSelection().isCollapsed) this.remove(Number(mark.dataset.mark));
    });
    this.box.addEventListener("pointerup", (event) => { if (event.pointerType === "mouse") setTimeout(() => this.markChosen()); });
    this.box.addEventListener("keydown", (event) => { if (event.target === this.box) this.onArrow(event); });
    this.box.addEventListener("keyup", (event) => { if (event.key === "Shift" && this.marking) { this.marking = false; this.markChosen(); this.box.focus(); } });
    document.addEventListener("selectionchange", () => { this.button.hidden = !this.needsMarks || !this.chosen() || this.marking; });
    this.button.addEventListener("click", () => {
      this.markChosen();
      this.readback.scrollIntoView({ block: "nearest" }); // on a phone it begins beneath the bar
    });
    this.element.addEventListener("change", () => this.reopen());
  }
}
