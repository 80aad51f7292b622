// What stands beside the document: the inspector of the words at hand, and the list of entities, conflicts first.

import { classOf } from "./document.js";
import { weekdayOf } from "./dates.js";
import { sameAs } from "./same_as.js";

const el = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
};
const cap = (key) => el("kbd", { class: "only-keys", "aria-hidden": "true" }, key.toUpperCase());

/** Draws what can be done with the words at hand; `at` is null before anything was touched. */
export function drawInspector(place, marks, at, act) {
  const mention = at && marks.find(at.active);
  const exact = mention && mention.first === at.first && mention.last === at.last;
  place.classList.toggle("sheet", Boolean(at));
  if (!at) { place.replaceChildren(...welcome()); return; }
  const words = marks.text(at.first, at.last);
  const count = at.last - at.first;
  const about = exact && mention.type ? `${marks.word(mention.type)}, ` : exact ? "no type yet, " : "not marked, ";
  const head = el("div", { class: "head" },
    el("b", {}, `“${words.length > 60 ? `${words.slice(0, 58)}…` : words}”`), el("span", { class: "quiet" }, `${about}${count === 1 ? "1 word" : `${count} words`}`),
    exact ? el("button", { type: "button", class: "link-button", "data-act": "remove" }, "Remove ", el("kbd", { class: "only-keys", "aria-hidden": "true" }, "Del")) : null,
    el("button", { type: "button", class: "link-button close", "data-act": "close" }, "Close"));
  const parts = [head, types(marks, exact ? mention.type : ""), edges()];
  if (exact) parts.push(...whoIsIt(marks, mention), ...holds(marks, mention, place, act));
  place.replaceChildren(...parts.filter(Boolean));
}

function welcome() {
  return [document.getElementById("asked").content.cloneNode(true)];
}

function types(marks, chosen) {
  const buttons = [...marks.types.values()].map((one) =>
    el("button", { type: "button", class: `type ${classOf(one.name)}`, "aria-pressed": String(one.name === chosen), title: one.about, "data-act": "type", "data-value": one.name },
      el("span", { class: "swatch", "aria-hidden": "true" }), one.word, " ", one.key ? cap(one.key) : null));
  return el("div", { class: "types", role: "group", "aria-label": "What it is" }, ...buttons);
}

function edges() {
  const button = (value, sign, words) => el("button", { type: "button", class: "edge", "data-act": "grow", "data-value": value, "aria-label": words, title: words }, sign);
  return el("div", { class: "edges", role: "group", "aria-label": "Where it begins and ends" },
    el("span", {}, button("left+", "←+", "One word more at the beginning"), button("left-", "→−", "One word less at the beginning")),
    el("span", {}, button("right-", "−←", "One word less at the end"), button("right+", "+→", "One word more at the end")));
}

function whoIsIt(marks, mention) {
  if (!marks.linkable(mention.type)) return [];
  const others = marks.mentions.filter((one) => one.entity === mention.entity && one.id !== mention.id);
  const person = mention.type.startsWith("PER");
  const likely = marks.candidates(mention);
  const rows = likely.map((one, index) => choice(String(one.id), index + 1, one.name, `${one.id}, ${one.where}`, one.id === mention.entity && !mention.open));
  rows.push(choice(others.length ? "0" : String(mention.entity), 0, person ? "Somebody new" : "Something new", "", !others.length && !mention.open));
  const name = others.length && marks.nameOf(mention.entity).id !== mention.id ? el("button", { type: "button", class: "link-button", "data-act": "name" }, "Call the entity by these words") : null;
  const kin = others.find((one) => one.type !== mention.type);
  const all = kin ? el("button", { type: "button", class: "link-button", "data-act": "all", "data-value": mention.type }, `All ${others.length + 1} are ${marks.word(mention.type)}`) : null;
  const another = sameAs(el, marks, mention, new Set(likely.map((one) => one.id)));
  return [el("p", { class: "label" }, person ? "Who is it?" : "What is it?"), el("div", { class: "who" }, ...rows), another, name, all];
}

function choice(entity, digit, words, note, chosen) {
  return el("button", { type: "button", class: "who-one", "data-act": "entity", "data-value": entity, "data-digit": String(digit), "aria-pressed": String(chosen) },
    el("span", { class: "cap-key", "aria-hidden": "true" }, String(digit)), el("span", {}, el("b", {}, words), " ", el("small", {}, note)));
}

function holds(marks, mention, place, act) {
  if (marks.isDate(mention.type)) {
    const none = mention.value === "none";
    const input = el("input", { id: "value", "data-act": "value", value: none ? "" : mention.value, autocomplete: "off", inputmode: "numeric", maxlength: 10, placeholder: none ? "cannot be told" : "2013-03", "aria-describedby": "weekday" });
    const weekday = el("output", { id: "weekday", class: "quiet", for: "value" }, weekdayOf(mention.value));
    input.addEventListener("input", () => { weekday.textContent = weekdayOf(input.value.trim()); });
    return [el("div", { class: "field" }, el("label", { for: "value" }, "The date, as 2013-03 or 2013-03-25"), el("div", { class: "dated" }, input, weekday)), proposal(marks, mention),
      el("label", { class: "check" }, el("input", { type: "checkbox", "data-act": "value", checked: none }), " The text does not tell it")];
  }
  if (!marks.linkable(mention.type)) return [];
  const link = marks.linkOf(mention.entity);
  const input = el("input", { id: "link", "data-act": "link", value: link === "none" ? "" : link, autocomplete: "off", spellcheck: "false", maxlength: 255 });
  return [el("div", { class: "field" }, el("label", { for: "link" }, "Its Wikipedia title, if you know it"), input),
    el("label", { class: "check" }, el("input", { type: "checkbox", "data-act": "link", checked: link === "none" }), " It has no page")];
}

/** The day that "Saturday" was, to be taken by one key; null where there is nothing to propose. */
function proposal(marks, mention) {
  const date = marks.proposed(mention);
  if (!date || date === mention.value) return null;
  const written = `written ${marks.written}, a ${weekdayOf(marks.written)}`;
  return el("button", { type: "button", class: "who-one", "data-act": "propose", "data-value": date, "data-digit": "1" },
    el("span", { class: "cap-key", "aria-hidden": "true" }, "1"), el("span", {}, el("b", {}, `${date}${weekdayOf(date) ? `, ${weekdayOf(date)}` : ""}`), " ", el("small", {}, `perhaps: ${written}`)));
}

/** Draws the running list: what is open, then the entities by type. */
export function drawList(place, marks, conflicts, phase) {
  const entities = [...marks.entities().values()];
  const count = marks.mentions.length;
  const parts = [el("div", { class: "head" }, el("h2", {}, "Entities"), el("span", { class: "quiet" }, count ? `${entities.length} with ${count} mention${count === 1 ? "" : "s"}` : "none yet"))];
  if (conflicts.length) {
    const rows = conflicts.map((one) => el("li", {}, el("button", { type: "button", class: "link-button", "data-act": "go", "data-value": String(marks.find(one.mention).first) }, one.sentence)));
    parts.push(el("div", { class: "notice warn" }, el("b", {}, conflicts.length === 1 ? "1 question open." : `${conflicts.length} questions open.`), el("ul", {}, ...rows)));
  }
  for (const type of [...marks.types.values(), { name: "", word: "Not said yet" }]) {
    const own = entities.filter((one) => one.type === type.name);
    if (!own.length) continue;
    parts.push(el("h3", { class: "label" }, type.word), el("ul", { class: "entity-list" }, ...own.map((one) => row(marks, one))));
  }
  if (phase !== "mark") parts.push(el("p", {}, el("button", { type: "button", class: "link-button", "data-act": "unmarked" }, "Next unmarked word that looks like a name ", cap("j"))));
  place.replaceChildren(...parts);
}

function row(marks, one) {
  const words = marks.textOf(one.name);
  const value = one.mentions[0].value;
  const aside = marks.isDate(one.type) ? (value === "none" ? "cannot be told" : `${value} ${weekdayOf(value).slice(0, 3)}`) : one.mentions.length > 1 ? `×${one.mentions.length}` : "";
  return el("li", { "data-entity": String(one.id) }, el("button", { type: "button", class: "entity", "data-act": "go", "data-value": String(one.name.first) },
    el("span", { class: `n ${classOf(one.type)}` }, String(one.id)), el("span", { class: "words" }, words), el("span", { class: "aside" }, aside)));
}
