// The page on which answers are checked: one paragraph at a time, marks by mouse, finger or key, words read back.

import { begin } from "../shared/steps.js";
import { Passage } from "./passage.js";

const form = document.getElementById("answer");
const plausible = form.querySelector("[data-step=plausible]");
const question = document.getElementById("question").textContent;
const response = document.getElementById("response").textContent;
const passages = [...form.querySelectorAll(".passage")].map((element) => new Passage(element, question, response, () => page.update()));
const bar = form.querySelector(".submit-bar");
const pager = bar.querySelector(".pager");
const SIGNS = { correct: "✓", incorrect: "✗", neither: "–" };
const WORDS = { correct: "shows it correct", incorrect: "shows it incorrect", neither: "does not say" };
const settled = plausible.querySelector(".settled");
let shown = 0;
let isChanging = false;
for (const one of document.querySelectorAll(".asked-for p")) if (one.scrollHeight > one.clientHeight) one.tabIndex = 0; // keys scroll it

const isPlausible = () => plausible.querySelector("input:checked")?.value === "yes";
const passageOf = (part) => passages.find((one) => one.element === part);

/** Step 1 as one line once it is done, until somebody wants to change it. */
function fold() {
  const isFolded = isPlausible() && !isChanging;
  settled.hidden = !isFolded;
  for (const one of plausible.querySelectorAll(".asks, .choices")) one.hidden = isFolded;
}

function changed() {
  fold();
  for (const [at, one] of passages.entries()) {
    one.paint();
    one.element.hidden = !isPlausible() || at !== shown;
    const button = pager.children[at];
    button.toggleAttribute("aria-current", at === shown);
    button.dataset.says = one.isDone ? one.says : "";
    button.lastChild.textContent = SIGNS[one.says] || " ";
    const words = !one.says ? ", not decided" : `: ${WORDS[one.says]}${one.isDone ? "" : ", not confirmed"}`;
    button.setAttribute("aria-label", `Paragraph ${one.letter}${words}`);
  }
  pager.hidden = !isPlausible() || passages.length < 2;
  const isFlagged = Boolean(form.querySelector("[name=problem]:checked")?.value);
  bar.classList.toggle("confirming", isPlausible() && !isFlagged && passages[shown].isToConfirm);
}

/** Shows a paragraph, with its words read back where some are marked. */
function reveal(part) {
  const at = passages.indexOf(passageOf(part));
  if (at < 0) return;
  shown = at;
  passages[at].isChanging = false;
  changed();
}

function show(at) {
  if (isPlausible() && at >= 0 && at < passages.length) page.goTo(passages[at].element);
}

/** To the next paragraph that is not decided; to the button that sends, if all are. */
function onward() {
  const order = [...passages.keys()].map((step) => (shown + 1 + step) % passages.length);
  const next = order.find((at) => !passages[at].isDone);
  if (next === undefined) bar.querySelector(".primary").focus();
  else show(next);
}

const page = begin({
  isDone: (part) => (part === plausible ? Boolean(part.querySelector("input:checked")) : Boolean(passageOf(part)?.isDone)),
  isAsked: (part) => part === plausible || isPlausible(),
  changed,
  fill: () => passages.forEach((one) => one.write()),
  reveal,
});

settled.querySelector("button").addEventListener("click", () => {
  isChanging = true;
  fold();
  page.goTo(plausible);
});
form.addEventListener("focusin", (event) => {
  if (!isChanging || plausible.contains(event.target)) return;
  isChanging = false;
  fold();
});
form.addEventListener("change", (event) => {
  if (plausible.contains(event.target) && isPlausible()) { isChanging = false; show(shown); } // its choices are folded: the focus moves on
  const at = passages.findIndex((one) => one.element.contains(event.target));
  if (at >= 0 && event.target.value === "neither") onward();
});
bar.querySelector(".confirm")?.addEventListener("click", () => {
  passages[shown].confirmed.value = "1";
  page.update();
  onward();
});
bar.querySelector(".change-it")?.addEventListener("click", () => {
  passages[shown].isChanging = true;
  changed();
  passages[shown].element.querySelector("input:checked").focus();
});
addEventListener("keydown", (event) => { // from the choice, too: there a browser would choose another one
  const at = passages[shown];
  const isOutside = event.target === document.body || event.target.matches?.("[type=radio]");
  if (!event.shiftKey || !["ArrowLeft", "ArrowRight"].includes(event.key) || !isOutside || !isPlausible() || !at.needsMarks) return;
  event.stopPropagation();
  at.box.focus();
  at.onArrow(event);
}, true);
pager.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) show(Number(button.dataset.to));
});
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches?.("input:not([type=radio]), textarea")) return;
  if (document.querySelector("dialog[open]")) return;
  const step = { n: 1, p: -1 }[event.key];
  if (step && isPlausible()) { event.preventDefault(); show(shown + step); }
});
