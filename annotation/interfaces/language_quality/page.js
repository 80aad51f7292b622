// The language quality page: mending is asked for as soon as a facet is rated below the top; what was changed is counted
// and shown while one types.

import { charactersChanged, wordsChanged } from "../shared/changes.js";
import { begin } from "../shared/steps.js";

const FEWEST = 5; // characters: fewer mend next to nothing
const SHOWN = 300; // characters of what was not changed, between two changes

const mend = document.querySelector("[data-step=edit]");
const facets = [...document.querySelectorAll(".step-part[data-top]")];
const field = document.getElementById("edit");
const original = document.getElementById("text").textContent;
const count = document.getElementById("changed");
const shown = document.getElementById("change");
let timer = 0;

const picked = (part) => part.querySelector("input:checked")?.value;
const isBelow = () => facets.some((part) => picked(part) && picked(part) !== part.dataset.top);
const isMended = () => field.value.trim() !== "" && field.value.trim() !== original.trim();

function clipped(words, at, of) {
  if (words.length <= SHOWN) return words;
  const begin = at === 0 ? "" : words.slice(0, SHOWN / 2);
  const end = at === of - 1 ? "" : words.slice(-SHOWN / 2);
  return `${begin} … ${end}`;
}

function paintChange() {
  const { changed, exact } = charactersChanged(original, field.value);
  const share = Math.round((100 * changed) / Math.max(original.length, field.value.length, 1));
  count.textContent = `${exact ? "" : "At most "}${changed.toLocaleString("en")} character${changed === 1 ? "" : "s"} changed, ${share} % of the text.`;
  if (exact && changed > 0 && changed < FEWEST) count.textContent += " That is almost nothing: correct all errors, or give the best ratings.";
  const parts = changed ? wordsChanged(original, field.value) : [];
  shown.replaceChildren(...parts.map(([kind, words], at) => {
    const element = document.createElement({ kept: "span", out: "del", in: "ins" }[kind]);
    element.className = { kept: "", out: "taken-out", in: "put-in" }[kind];
    element.textContent = kind === "kept" ? clipped(words, at, parts.length) : words.slice(0, 20 * SHOWN);
    return element;
  }));
  shown.hidden = !changed;
  if (shown.scrollHeight > shown.clientHeight) shown.tabIndex = 0; // keys scroll it
  else shown.removeAttribute("tabindex");
}

function changed() {
  mend.hidden = !isBelow();
  clearTimeout(timer);
  if (!mend.hidden) timer = setTimeout(paintChange, 150);
}

/** Writes into the field so that Ctrl Z takes it back. */
function write(text) {
  field.focus();
  field.select();
  if (!document.execCommand("insertText", false, text)) field.value = text;
}

const page = begin({
  isDone: (part) => (part === mend ? isMended() : Boolean(picked(part))),
  isAsked: (part) => part !== mend || isBelow(),
  changed,
});
document.getElementById("again").addEventListener("click", () => { write(original); page.update(); });
document.getElementById("undo").addEventListener("click", () => { field.focus(); document.execCommand("undo"); page.update(); });
