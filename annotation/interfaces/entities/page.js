// The entities page: words, marks, the inspector beside them, the list of entities, keys, saving.
//
// Keys are taken here before keys.js sees them; what it prints of them stands in the HTML.

import { DocumentView } from "./document.js";
import { Draft } from "../shared/draft.js";
import { send as sendOff } from "../shared/sending.js";
import { Marks } from "./marks.js";
import { drawInspector, drawList } from "./panel.js";
import { toggle } from "./same_as.js";
import { keep, recall } from "../shared/store.js";

const data = JSON.parse(document.getElementById("document-data").textContent);
const form = document.querySelector("form.judge");
const place = document.getElementById("text");
const inspector = document.getElementById("inspector");
const list = document.getElementById("entities");
const primary = document.getElementById("primary");
const missing = document.getElementById("missing");
const say = document.getElementById("say");
const readBar = document.getElementById("read-bar");
const readWords = document.getElementById("read-words");
const nothing = form.elements.nothing;
const flag = form.querySelector("details.flag");

const marks = new Marks(data);
const sentences = data.sentences.length;
const CHUNK = 60; // words that "Continue reading" uncovers
let at = { first: 0, last: 1, anchor: 0, active: null };
let read = 0;
let phase = "mark";
let seen = false; // whether anybody has touched the page: before that nothing is selected

const view = new DocumentView(place, marks, {
  onPick: (token, extend) => (extend ? select(at.anchor, token) : pick(token)),
  onMark: (first, last) => markTokens(first, last),
  onDrag: (first, last) => { at = { first, last, anchor: first, active: null }; seen = true; paint(); },
});

// -- Where one is

function pick(token) {
  const mention = marks.at(token);
  at = mention ? { first: mention.first, last: mention.last, anchor: token, active: mention.id } : { first: token, last: token + 1, anchor: token, active: null };
  arrive();
}

function select(from, to) {
  at = { first: Math.min(from, to), last: Math.max(from, to) + 1, anchor: from, active: at.active };
  const same = marks.mentions.find((one) => one.first === at.first && one.last === at.last);
  if (same) at.active = same.id;
  arrive();
}

function arrive() {
  seen = true;
  read = Math.max(read, marks.sentenceOf[Math.min(at.last, marks.words.length) - 1] + 1);
  draw();
  view.show(at.first);
  const mention = marks.find(at.active);
  const words = marks.text(at.first, at.last);
  say.textContent = mention ? `${words}, ${mention.type ? marks.word(mention.type) : "no type"}, number ${mention.entity}` : words;
}

/** By a word: signs between words are reached by extending. */
function move(step) {
  const from = step > 0 ? (at.active === null && at.last - at.first === 1 ? at.first : at.last - 1) : at.first;
  const end = marks.words.length - 1;
  let next = seen ? from + step : at.first;
  const mention = marks.at(Math.max(0, Math.min(next, end)));
  if (mention && mention.id === at.active) next = step > 0 ? mention.last : mention.first - 1;
  while (next > 0 && next < end && !/[\p{L}\p{N}]/u.test(marks.words[next])) next += step;
  pick(Math.max(0, Math.min(next, end)));
}

function moveSentence(step) {
  const target = marks.sentenceOf[at.first] + step;
  const next = marks.sentenceOf.findIndex((one) => one === Math.max(0, Math.min(sentences - 1, target)));
  if (next >= 0) pick(next);
}

function extend(step) {
  const far = at.anchor === at.first || at.anchor < at.last - 1 ? at.last - 1 : at.first;
  const end = at.anchor <= at.first ? at.last - 1 : far;
  const next = Math.max(0, Math.min(marks.words.length - 1, (at.last - at.first === 1 ? at.first : end) + step));
  select(at.anchor, next);
}

// -- What one does

function markTokens(first, last, type = "") {
  const active = marks.find(at.active);
  const made = active && (active.first !== first || active.last !== last) && first < active.last && active.first < last && !type ? marks.resize(active.id, first, last) : marks.mark(first, last, type);
  if (nothing) nothing.checked = false;
  at = { first, last, anchor: first, active: made.id };
  changed();
  arrive();
}

function act(name, value) {
  const mention = marks.find(at.active);
  if (name === "type") return mention && mention.first === at.first && mention.last === at.last ? after(() => marks.retype(mention.id, value)) : markTokens(at.first, at.last, value);
  if (name === "grow") return grow(value);
  if (name === "mark") return markTokens(at.first, at.last);
  if (name === "go") return pick(Number(value));
  if (name === "unmarked") return nextUnmarked();
  if (name === "close") { seen = false; at.active = null; draw(); return undefined; }
  if (!mention) return undefined;
  if (name === "another") return another(value);
  if (name === "entity") return after(() => marks.assign(mention.id, Number(value)));
  if (name === "remove") return after(() => { marks.remove(mention.id); at.active = null; });
  if (name === "name") return after(() => marks.name(mention.entity, mention.id));
  if (name === "all") return after(() => marks.retypeAll(mention.entity, value));
  if (name === "value") return after(() => marks.value(mention.id, value), true);
  if (name === "propose") return after(() => marks.value(mention.id, value));
  if (name === "link") return after(() => marks.link(mention.entity, value), true);
  return undefined;
}

/** Opens or closes the field that finds any entity; while it is open the running list can be picked from too. */
function another(wanted) {
  const open = toggle(inspector, wanted);
  list.classList.toggle("picking", open);
  if (!open) place.focus({ preventScroll: true });
}

function grow(which) {
  const [first, last] = { "left+": [at.first - 1, at.last], "left-": [at.first + 1, at.last], "right+": [at.first, at.last + 1], "right-": [at.first, at.last - 1] }[which];
  if (first < 0 || last > marks.words.length || first >= last) return;
  const mention = marks.find(at.active);
  if (mention && mention.first === at.first && mention.last === at.last) {
    marks.resize(mention.id, first, last);
    changed();
  }
  at = { ...at, first, last, anchor: first };
  arrive();
}

function after(change, typing = false) {
  change();
  changed();
  if (typing) drawRest();
  else draw();
  const mention = marks.find(at.active);
  if (mention && !typing) say.textContent = `${marks.textOf(mention)}, ${mention.type ? marks.word(mention.type) : "no type"}, number ${mention.entity}`;
}

function changed() {
  if (phase === "send") phase = "check";
  missing.hidden = true;
  draft.soon();
}

function turn(done) {
  if (!done) return;
  if (at.active !== null && !marks.find(at.active)) at.active = null;
  changed();
  draw();
}

function nextUnmarked() {
  const found = marks.nextUnmarked(seen ? at.last : 0);
  if (!found) { tell("No unmarked word looks like anything that is asked."); return; }
  at = { first: found[0], last: found[1], anchor: found[0], active: null };
  arrive();
}

function nextOpen() {
  const open = marks.conflicts();
  if (!open.length) { tell("No question is open."); return; }
  const next = open.find((one) => marks.find(one.mention).first > at.first) || open[0];
  const mention = marks.find(next.mention);
  at = { first: mention.first, last: mention.last, anchor: mention.first, active: mention.id };
  arrive();
  say.textContent = next.sentence;
}

function tell(...parts) {
  missing.replaceChildren(...parts);
  missing.hidden = false;
}

// -- Mark, check, send

function goOn() {
  if (flag.open && form.querySelector("input[name=problem]:checked")?.value) return send();
  if (read < sentences) return continueReading();
  const open = marks.conflicts();
  if (phase === "mark" || open.length) {
    phase = "check";
    draw();
    if (open.length) { nextOpen(); tell(open.length === 1 ? "1 question is open. Settle it, then send." : `${open.length} questions are open. Settle them, then send.`); return undefined; }
    const found = marks.nextUnmarked(0);
    if (found) tell("Look through the list, and with J through words that look like names. Then send.");
    phase = "send";
    draw();
    return undefined;
  }
  if (!marks.mentions.length && !nothing.checked) { tell("Nothing is marked yet. If there is nothing to mark, tick the box."); return undefined; }
  if (phase === "check") { phase = "send"; draw(); return undefined; }
  return send();
}

const isReady = () => phase === "send" && read >= sentences && !marks.conflicts().length;

function continueReading() {
  let words = 0;
  const from = marks.sentenceOf.findIndex((one) => one >= read);
  let last = from;
  while (last >= 0 && last < marks.words.length && words < CHUNK) { words += 1; last += 1; }
  read = last < 0 || last >= marks.words.length ? sentences : marks.sentenceOf[last] + 1;
  draft.soon();
  draw();
  if (from >= 0) view.show(from);
}

function send() {
  fill();
  sendOff(form, draft, { tell, busy });
}

function busy(on) {
  primary.disabled = on;
  clearTimeout(late);
  if (on) late = setTimeout(() => { primary.firstChild.textContent = "Sending … "; }, 300);
  else { drawn = {}; drawRest(); }
}
let late = 0;

function fill() {
  form.elements.mentions.value = JSON.stringify(marks.toJson());
  form.elements.read.value = String(read);
}

// -- Drawing

function paint() {
  view.paint({ first: seen ? at.first : 0, last: seen ? at.last : 0, active: at.active, read });
}

function named(words) {
  return globalThis.kbpoKeys?.named(words) ?? words;
}

function draw() {
  paint();
  drawInspector(inspector, marks, seen ? at : null, act);
  list.classList.remove("picking");
  drawRest();
}

let drawn = {};
function drawRest() {
  const entity = marks.find(at.active)?.entity;
  const now = { state: marks.state, entity, phase, read };
  if (Object.keys(now).every((name) => drawn[name] === now[name])) return; // moving about changes nothing here
  const open = drawn.state === marks.state ? drawn.open : marks.conflicts();
  const same = drawn.state === marks.state && drawn.phase === phase;
  if (!same) drawList(list, marks, open, phase);
  if (!same || drawn.entity !== entity) {
    list.querySelector(".current")?.classList.remove("current");
    list.querySelector(`[data-entity="${entity}"]`)?.classList.add("current");
  }
  drawn = { ...now, open };
  drawSummary(phase === "send" && read >= sentences && !open.length);
  readBar.value = Math.min(read, sentences);
  readWords.textContent = `${Math.min(read, sentences)} of ${sentences} sentence${sentences === 1 ? "" : "s"}`;
  const step = read < sentences ? "mark" : phase;
  for (const one of document.querySelectorAll(".phases [data-phase]")) {
    if (one.dataset.phase === step) one.setAttribute("aria-current", "step");
    else one.removeAttribute("aria-current");
  }
  primary.firstChild.textContent = `${read < sentences ? "Continue reading" : phase === "mark" ? "Check" : phase === "send" && !open.length ? "Send" : open.length ? "Next open question" : "Send"} `;
  primary.lastElementChild.textContent = phase === "send" && read >= sentences && !open.length ? named("Ctrl Enter") : "C";
  document.getElementById("undo").disabled = !marks.history.canUndo;
  document.getElementById("redo").disabled = !marks.history.canRedo;
  document.getElementById("nothing").hidden = marks.mentions.length > 0;
}

/** What is sent, before it is sent. */
function drawSummary(shown) {
  const summary = document.getElementById("summary");
  summary.hidden = !shown;
  if (!shown) return;
  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const entities = [...marks.entities().values()];
  const kinds = [...marks.types.values()].map((one) => [entities.filter((entity) => entity.type === one.name).length, one.word]).filter(([n]) => n);
  const titles = entities.filter((one) => !["", "none"].includes(marks.linkOf(one.id) ?? "")).length;
  summary.querySelector("p").textContent = marks.mentions.length
    ? `${count(marks.mentions.length, "mark")} of ${entities.length} different ${entities.length === 1 ? "thing" : "things"}: ${kinds.map(([n, word]) => `${n} ${word.toLowerCase()}`).join(", ")}. ${titles ? `${count(titles, "Wikipedia title")}. ` : ""}Read to the end.`
    : "Nothing is marked: the document has nothing to mark.";
}

// -- Size of the text

const SIZES = ["", "larger", "largest", "small"];
let size = Math.max(0, SIZES.indexOf(recall("text-size") || ""));
function zoom(step) {
  size = (size + step + SIZES.length) % SIZES.length;
  place.className = `zoom ${SIZES[size]}`;
  keep("text-size", SIZES[size]);
}

// -- Keys

const typing = (target) => target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
const TYPE_KEYS = new Map(data.types.filter((one) => one.key).map((one) => [one.key, one.name]));
const MOVES = { ArrowRight: () => move(1), ArrowLeft: () => move(-1), ArrowDown: () => moveSentence(1), ArrowUp: () => moveSentence(-1) };
const EXTENDS = { ArrowRight: () => extend(1), ArrowLeft: () => extend(-1) };
const KEYS = {
  z: () => turn(marks.undo()), y: () => turn(marks.redo()), j: nextUnmarked, n: nextOpen, c: () => (isReady() ? tell(named("All is ready. Ctrl and Enter send it.")) : goOn()),
  Delete: () => act("remove"), Backspace: () => act("remove"), w: () => inspector.querySelector("input[data-act=link], input[data-act=value]")?.focus(),
  e: () => act("another"), "+": () => zoom(1), "=": () => zoom(1), "-": () => zoom(-1), f: () => { flag.open = !flag.open; },
};

function onKey(event) {
  if (event.altKey || event.isComposing || document.querySelector("dialog[open], [popover]:popover-open")) return;
  const held = event.ctrlKey || event.metaKey;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  let action = null;
  if (held) action = { Enter: goOn, z: event.shiftKey ? KEYS.y : KEYS.z, y: KEYS.y }[key];
  if (event.target.id === "same-filter" && !held) {
    if (key !== "Escape") return; // the field has keys of its own
    event.preventDefault();
    event.stopPropagation();
    another(false);
    return;
  }
  if (typing(event.target)) {
    if (held && key !== "Enter") return;
    if (key === "Escape" || key === "Enter") { event.preventDefault(); event.target.blur(); place.focus({ preventScroll: true }); }
    if (!held) return;
  }
  if (!held) action = action || found(event, key);
  if (!action) return;
  event.preventDefault();
  event.stopPropagation();
  action();
}

function found(event, key) {
  if (event.target.closest?.("details.flag") && key !== "f") return null;
  if (key === "Enter") return event.target.matches("button, a, summary, input") ? null : () => act("mark");
  if (key === "Escape") return () => { at.active = null; at.last = at.first + 1; draw(); place.focus({ preventScroll: true }); };
  if (event.shiftKey && EXTENDS[key]) return EXTENDS[key];
  if (MOVES[key]) return MOVES[key];
  if (/^[0-9]$/.test(key)) return () => inspector.querySelector(`[data-digit="${key}"]`)?.click();
  if (TYPE_KEYS.has(key) && seen) return () => act("type", TYPE_KEYS.get(key));
  return KEYS[key] || null;
}

// -- Begin

const draft = new Draft(form, {
  fill,
  status: document.getElementById("saved"),
  kept: document.getElementById("kept"),
  lost: (sentence, late) => { tell(sentence); if (late) return; primary.disabled = true; if (form.dataset.next) setTimeout(() => location.assign(form.dataset.next), 4000); },
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button || button.matches("input")) return;
  const entity = list.matches(".picking") && button.closest("[data-entity]")?.dataset.entity;
  if (entity) act("entity", entity);
  else act(button.dataset.act, button.dataset.value);
  if (button.dataset.act === "another") return;
  if (button.isConnected && !inspector.contains(button)) return;
  const byKey = event.isTrusted && event.detail === 0; // who goes through the buttons by Tab stays there
  const same = byKey && inspector.querySelector(`[data-act="${button.dataset.act}"][data-value="${CSS.escape(button.dataset.value ?? "")}"]`);
  (same || place).focus({ preventScroll: true });
});
inspector.addEventListener("change", (event) => {
  const input = event.target.closest("input[data-act]");
  if (!input) return;
  act(input.dataset.act, input.type === "checkbox" ? (input.checked ? "none" : "") : input.value.trim());
  if (input.type === "checkbox") draw();
});
if ("preview" in form.dataset) form.inert = true; // it is shown to be read
else document.addEventListener("keydown", onKey, true);
document.getElementById("undo").addEventListener("click", () => turn(marks.undo()));
document.getElementById("redo").addEventListener("click", () => turn(marks.redo()));
document.getElementById("zoom").addEventListener("click", () => zoom(1));
primary.addEventListener("click", goOn);
form.addEventListener("submit", (event) => {
  if (event.submitter?.hasAttribute("formaction")) { fill(); draft.sent(); return; }
  event.preventDefault();
});
document.getElementById("send-flag").addEventListener("click", () => {
  if (form.querySelector("input[name=problem]:checked")?.value) send();
  else tell("Say what is wrong, then send the flag.");
});
flag.addEventListener("change", () => draft.soon());
nothing.addEventListener("change", () => draft.soon());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

const before = draft.remembered();
const left = before?.mentions || form.elements.mentions.value;
if (left) marks.fromJson(JSON.parse(left));
read = Math.max(1, Number(before?.read || form.elements.read.value) || 0);
if (before) draft.soon();
zoom(0);
if (read === 1) continueReading();
draw();
document.documentElement.dataset.ready = "1";
