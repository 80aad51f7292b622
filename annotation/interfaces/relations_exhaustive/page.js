// The pairs of a document, one after the other in the order of the text: what holds, keys, undo and redo, saving.

import { Draft } from "../shared/draft.js";
import { send as sendOff } from "../shared/sending.js";
import { History } from "../shared/history.js";

const data = JSON.parse(document.getElementById("document-data").textContent);
const form = document.querySelector("form.judge");
const place = document.getElementById("text");
const choices = document.getElementById("choices");
const rarer = document.getElementById("rarer");
const meanings = document.getElementById("meanings");
const primary = document.getElementById("primary");
const explained = form.id === "explained";
const missing = document.getElementById("missing");
const say = document.getElementById("say");
const summary = document.getElementById("summary");
const flag = form.querySelector("details.flag");
const chars = /[\ud800-\udfff]/.test(data.text) ? Array.from(data.text) : null; // offsets count characters
const slice = (begin, end) => (chars ? chars.slice(begin, end).join("") : data.text.slice(begin, end));
const pairs = data.pairs.map(([a, b, options, sentence]) => ({ a: data.mentions[a], b: data.mentions[b], numbers: [a, b], options: data.options[options], sentence }));

let answers = {}; // number of a pair -> the parts that hold; a pair without an entry is not judged yet
const history = new History(); // of [pair at hand, answers]
let at = 0;
let summed = null; // the answers that Enter has shown the summary of

// -- The text: every mention an element, the pair at hand and its sentences lit

const spots = new Map();
const sentences = data.sentences.map(() => document.createElement("span"));

function build() {
  const doc = document.createElement("div");
  doc.className = "doc pair-text";
  const end = chars ? chars.length : data.text.length;
  const inOrder = data.mentions.map((one, number) => [one.span[0], one.span[1], number]).sort((a, b) => a[0] - b[0]);
  let from = 0;
  data.sentences.forEach(([begin], number) => {
    const stop = number + 1 < data.sentences.length ? data.sentences[number + 1][0] : end;
    if (begin > from) doc.append(slice(from, begin));
    from = begin;
    const holder = sentences[number];
    while (inOrder.length && inOrder[0][0] < stop) {
      const [first, last, mention] = inOrder.shift();
      if (first < from) continue;
      const mark = document.createElement("mark");
      mark.className = "m-other";
      mark.textContent = slice(first, last);
      holder.append(slice(from, first), mark);
      spots.set(mention, mark);
      from = last;
    }
    if (stop > from) holder.append(slice(from, stop));
    from = Math.max(from, stop);
    doc.append(holder);
  });
  if (end > from) doc.append(slice(from, end));
  place.replaceChildren(doc);
}

let lit = [];
function light(pair) {
  for (const [element, className] of lit) {
    element.className = className;
    delete element.dataset.badge;
  }
  lit = [];
  const set = (element, className, badge) => {
    if (!element) return;
    lit.push([element, element.className]);
    element.className = className;
    if (badge) element.dataset.badge = badge;
  };
  const first = sentences.findIndex((one) => one.contains(spots.get(pair.numbers[0])));
  for (let number = Math.max(0, first); number <= pair.sentence; number += 1) set(sentences[number], "lit", "");
  set(spots.get(pair.numbers[0]), "m-subject", "A");
  set(spots.get(pair.numbers[1]), "m-object", "B");
  document.getElementById("sentence-number").textContent = `Sentence ${pair.sentence + 1} of ${data.sentences.length}`;
  const box = spots.get(pair.numbers[1])?.getBoundingClientRect();
  if (!box) return;
  const scrolls = (one) => one.scrollHeight > one.clientHeight + 4 && getComputedStyle(one).overflowY === "auto";
  const side = [place, place.closest(".text-side")].find(scrolls);
  const top = side ? side.getBoundingClientRect().top : 0;
  const bottom = side ? side.getBoundingClientRect().bottom : innerHeight * 0.5;
  if (box.top < top + 40 || box.bottom > bottom - 60) (side || window).scrollBy({ top: box.top - top - (bottom - top) / 3 });
}

// -- The pair at hand

const piece = (text, className) => Object.assign(document.createElement("span"), { className, textContent: text });

function sentenceOf(pair, option) {
  const [subject, object] = option.forward ? [pair.a, pair.b] : [pair.b, pair.a];
  const [roleOfSubject, roleOfObject] = option.forward ? ["subject", "object"] : ["object", "subject"];
  return option.template.split(/(\{subject\}|\{object\})/).filter(Boolean).map((part) =>
    part === "{subject}" ? piece(subject.gloss, roleOfSubject) : part === "{object}" ? piece(object.gloss, roleOfObject) : piece(part, "verb"));
}

function choice(text, value, digit, checked, none) {
  const label = document.createElement("label");
  label.className = none ? "choice none" : "choice";
  const input = Object.assign(document.createElement("input"), { type: "checkbox", value, checked });
  if (none) input.dataset.none = "";
  const key = Object.assign(piece(digit, "cap-key"), { ariaHidden: "true" });
  const words = piece("", "text");
  words.append(...text);
  label.append(input, key, words);
  if (!none) label.append(piece("holds", "state"));
  return label;
}

function draw() {
  const pair = pairs[at];
  const said = answers[at];
  document.getElementById("gloss-a").textContent = `“${pair.a.gloss}”`;
  document.getElementById("gloss-b").textContent = `“${pair.b.gloss}”`;
  const rows = pair.options.map((option, number) => [option, choice(sentenceOf(pair, option), option.part, option.rare ? "" : String(number + 1), Boolean(said?.includes(option.part)), false)]);
  choices.replaceChildren(...rows.filter(([option]) => !option.rare).map(([, row]) => row), choice(["None of these"], "", "0", Boolean(said && !said.length), true));
  const rare = rows.filter(([option]) => option.rare);
  rarer.hidden = !rare.length;
  rarer.open = rare.some(([option]) => said?.includes(option.part));
  rarer.querySelector("summary").textContent = `${rare.length} rarer relation${rare.length === 1 ? "" : "s"}`;
  rarer.querySelector(".choices").replaceChildren(...rare.map(([, row]) => row));
  drawMeanings(pair);
  drawState();
  light(pair);
}

/** What each sentence means, as the schema says it. */
function drawMeanings(pair) {
  const meaningOf = (option) => data.meanings[option.part.split(" ")[0].slice(0, -1)];
  const told = pair.options.filter(meaningOf);
  meanings.hidden = !told.length;
  const rows = told.flatMap((option) => {
    const term = document.createElement("dt");
    term.append(...sentenceOf(pair, option));
    const { definition, example, counter_example: counter } = meaningOf(option);
    const parts = [["", "", definition], ["right", "✓ holds: ", example], ["wrong", "✗ does not hold: ", counter]];
    return [term, ...parts.filter(([, , words]) => words).map(([role, sign, words]) => {
      const line = document.createElement("dd");
      line.append(piece(sign, role), words);
      return line;
    })];
  });
  meanings.querySelector("dl").replaceChildren(...rows);
}

function drawState() {
  const done = Object.keys(answers).length;
  document.getElementById("pair-number").textContent = String(at + 1);
  document.getElementById("pair-bar").value = done;
  document.getElementById("judged").textContent = `${done} of ${pairs.length} pair${pairs.length === 1 ? "" : "s"} judged`;
  drawSummary(done);
  primary.firstChild.textContent = explained ? "Next pair " : done === pairs.length ? "Send " : at === pairs.length - 1 ? "To what is not judged " : "Next pair ";
  document.getElementById("back").disabled = at === 0;
  document.getElementById("undo").disabled = !history.canUndo;
  document.getElementById("redo").disabled = !history.canRedo;
}

/** What is sent, before it is sent: every sentence that holds, each a way back to its pair. */
function drawSummary(done) {
  summary.hidden = explained || done < pairs.length;
  if (summary.hidden) return;
  const rows = pairs.flatMap((pair, number) => answers[number].map((part) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "link-button" });
    button.append(...sentenceOf(pair, pair.options.find((option) => option.part === part)));
    button.addEventListener("click", () => goTo(number));
    const row = document.createElement("li");
    row.append(button);
    return row;
  }));
  const none = pairs.filter((_, number) => !answers[number].length).length;
  summary.querySelector("p").textContent = rows.length ? `You say that this holds, and nothing of the other ${none === 1 ? "pair" : `${none} pairs`}:` : "You say that nothing of what is asked holds of any pair.";
  summary.querySelector("ul").replaceChildren(...rows);
}

const remember = () => history.push([at, answers]);

function set(said) {
  remember();
  answers = { ...answers };
  if (said === null) delete answers[at];
  else answers[at] = said;
  missing.hidden = true;
  draft.soon();
}

function onChange(event) {
  const input = event.target;
  if (!input.closest(".choices")) return;
  if ("none" in input.dataset) set(input.checked ? [] : null);
  else {
    const held = [...form.querySelectorAll(".choices input:not([data-none]):checked")].map((one) => one.value);
    set(held.length ? held : null);
  }
  const folded = rarer.open;
  draw();
  rarer.open = folded;
  form.querySelector(`.choices input[value="${CSS.escape(input.value)}"]`)?.focus({ preventScroll: true });
}

function goTo(number) {
  at = Math.max(0, Math.min(pairs.length - 1, number));
  const focused = document.activeElement;
  draw();
  uncover();
  if (!focused.isConnected) document.getElementById("pair-question").focus({ preventScroll: true }); // Tab goes on from here
  const pair = pairs[at];
  say.textContent = `Pair ${at + 1}: ${pair.a.gloss} and ${pair.b.gloss}`;
}

/** On a phone the text stays on top: the question of the next pair begins below it. */
function uncover() {
  const text = place.closest(".text-side").getBoundingClientRect();
  const question = document.getElementById("pair-question").getBoundingClientRect();
  if (question.left < text.right && question.top < text.bottom) scrollBy({ top: question.top - text.bottom - 8 });
}

const unanswered = (from) => [...pairs.keys()].map((step) => (from + step) % pairs.length).find((number) => !(number in answers));

function goOn() {
  if (!(at in answers)) { tell("Pick what the text says about this pair, or “None of these”."); return; }
  if (Object.keys(answers).length === pairs.length) {
    if (summed === answers) { send(); return; }
    summed = answers; // a digit and Enter for the last pair, as for those before, sends nothing that was not seen
    summary.scrollIntoView({ block: "nearest" });
    tell("All pairs are judged. Look through what you send; Enter sends it.");
    return;
  }
  goTo(at === pairs.length - 1 ? unanswered(0) : at + 1);
}

function noneForTheRest() {
  const open = [...pairs.keys()].filter((number) => pairs[number].sentence === pairs[at].sentence && !(number in answers));
  if (!open.length) { goTo(unanswered(at) ?? pairs.length - 1); return; }
  remember();
  answers = { ...answers, ...Object.fromEntries(open.map((number) => [number, []])) };
  draft.soon();
  const next = unanswered(at);
  goTo(next === undefined ? pairs.length - 1 : next);
  tell(`None for ${open.length} pair${open.length === 1 ? "" : "s"}. Z takes it back.`);
}

function turn(state) {
  if (!state) return;
  [at, answers] = state;
  missing.hidden = true;
  draft.soon();
  goTo(at);
}

const undo = () => turn(history.undo([at, answers]));
const redo = () => turn(history.redo([at, answers]));

function tell(...parts) {
  missing.replaceChildren(...parts);
  missing.hidden = false;
}

function fill() { form.elements.pairs.value = JSON.stringify(answers); }

function send() {
  fill();
  sendOff(form, draft, { tell, busy });
}

function busy(on) {
  primary.disabled = on;
  clearTimeout(late);
  if (on) late = setTimeout(() => { primary.firstChild.textContent = "Sending … "; }, 300);
  else drawState();
}
let late = 0;

// -- Keys

function pick(digit) {
  const input = digit === 0 ? choices.querySelector("[data-none]") : choices.querySelectorAll("input:not([data-none])")[digit - 1];
  input?.click();
}

const KEYS = {
  Backspace: () => goTo(at - 1), ArrowLeft: () => goTo(at - 1), ArrowRight: () => goTo(at + 1), x: noneForTheRest, z: undo, y: redo,
  n: () => { const next = unanswered(at); if (next !== undefined) goTo(next); }, m: () => { rarer.open = !rarer.open; }, w: () => { meanings.open = !meanings.open; }, f: () => { flag.open = !flag.open; },
};

function onKey(event) {
  const typing = event.target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.altKey || event.ctrlKey || event.metaKey || typing || event.target.closest?.("details.flag") || document.querySelector("dialog[open], [popover]:popover-open")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  let action = KEYS[key];
  if (/^[0-9]$/.test(key)) action = () => pick(Number(key));
  if (key === "Enter") action = event.target.matches("button, a, summary") && event.target !== primary ? null : goOn;
  if (!action || (key === "Enter" && event.repeat)) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

// -- Begin

const draft = new Draft(form, {
  fill,
  status: document.getElementById("saved"),
  kept: document.getElementById("kept"),
  lost: (sentence, late) => { tell(sentence); if (late) return; primary.disabled = true; if (form.dataset.next) setTimeout(() => location.assign(form.dataset.next), 4000); },
});
form.addEventListener("change", onChange);
form.addEventListener("submit", (event) => {
  if (event.submitter?.hasAttribute("formaction")) { fill(); draft.sent(); return; }
  event.preventDefault();
});
if (explained) document.getElementById("choices").closest("fieldset").inert = true; // the right answers, pair by pair
else if ("preview" in form.dataset) form.inert = true; // it is shown to be read
else document.addEventListener("keydown", onKey, true);
primary.addEventListener("click", () => {
  if (explained) goTo((at + 1) % pairs.length);
  else if (Object.keys(answers).length === pairs.length) send();
  else goOn();
});
document.getElementById("back").addEventListener("click", () => goTo(at - 1));
document.getElementById("undo").addEventListener("click", undo);
document.getElementById("redo").addEventListener("click", redo);
document.getElementById("none-rest").addEventListener("click", noneForTheRest);
document.getElementById("send-flag").addEventListener("click", () => {
  if (form.querySelector("input[name=problem]:checked")?.value) send();
  else tell("Say what is wrong, then send the flag.");
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

build();
const before = draft.remembered();
const left = before?.pairs || form.elements.pairs.value;
if (left) answers = Object.fromEntries(Object.entries(JSON.parse(left)).filter(([number, said]) => pairs[number] && Array.isArray(said)));
if (before) draft.soon();
goTo(explained ? 0 : unanswered(0) ?? pairs.length - 1);
document.documentElement.dataset.ready = "1";
