// The relation page: keys, steps, undo and redo, drafts. Without it the page is a plain form that works.
//
// It does not import keys.js: under hashed file names that would be a second copy of it with a second listener. Keys that
// depend on the step at hand are taken here, before keys.js sees them; what it prints and fires stands in the HTML.

import { CARRIED, Draft } from "../shared/draft.js";
import { History } from "../shared/history.js";
import { send, wayBack } from "../shared/sending.js";
import { keep as keepHere, recall } from "../shared/store.js";

/** Brings the question that stands on the page to life. */
function begin() {
  const form = document.getElementById("answer");
  const here = new AbortController(); // ends with this question: the next one comes into the same page
  const { signal } = here;
  const steps = [...form.querySelectorAll(".step-part")].filter((part) => part.querySelector("input[type=radio], input[type=checkbox][name=holds], input[name=none]"));
  const boxes = [...form.querySelectorAll("input[name=holds]")];
  const none = form.querySelector("input[name=none]");
  const missing = document.getElementById("missing");
  const undoButton = form.querySelector(".undo");
  const redoButton = form.querySelector(".redo");
  const submitButton = form.querySelector(".submit-bar .primary");
  const flag = form.querySelector("details.flag");
  const history = new History();
  let before = snapshot();
  let current = 0;

  // -- Steps

  function isDone(part) {
    return Boolean(part.querySelector("input[type=radio]:checked, input[name=holds]:checked, input[name=none]:checked"));
  }

  function paint() {
    for (const part of form.querySelectorAll(".step-part")) {
      const asked = steps.includes(part);
      part.querySelector(".step .n").classList.toggle("done", !asked || isDone(part));
      part.toggleAttribute("data-at-hand", part === steps[current]);
    }
    if (isFlagged() || !firstMissing()) missing.hidden = true;
    undoButton.hidden = !history.canUndo;
    redoButton.hidden = !history.canRedo;
  }

  function goTo(number, focus = true) {
    current = Math.max(0, Math.min(steps.length - 1, number));
    if (focus) {
      const part = steps[current];
      const input = part.querySelector("input[type=radio]:checked, input[type=checkbox]:checked") || part.querySelector("input");
      input.focus({ preventScroll: false });
    }
    paint();
  }

  function choicesOf(part) {
    return [...part.querySelectorAll(".pills input, .choices input[name=holds]")].filter((input) => input.getClientRects().length > 0);
  }

  function pick(digit) {
    const part = steps[current];
    const input = digit === 0 ? part.querySelector("input[name=none]") : choicesOf(part)[digit - 1];
    if (!input) return false;
    input.click();
    input.focus();
    const next = steps.findIndex((one, at) => at > current && !isDone(one)); // what stands picked is passed over
    if (input.type === "radio" && current < steps.length - 1) goTo(next < 0 ? current + 1 : next);
    return true;
  }

  // -- What is chosen, and back

  function fields() {
    return [...form.elements].filter((one) => one.name && !CARRIED.includes(one.name));
  }

  function snapshot() {
    return fields().map((one) => (one.type === "radio" || one.type === "checkbox" ? one.checked : one.value));
  }

  function restore(values) {
    fields().forEach((one, index) => {
      if (one.type === "radio" || one.type === "checkbox") one.checked = values[index];
      else one.value = values[index];
    });
    before = snapshot();
    paint();
  }

  function turn(values) {
    if (!values) return;
    restore(values);
    draft.soon();
  }

  function onChange(event) {
    const changed = event.target;
    if (changed === none && none.checked) boxes.forEach((box) => { box.checked = false; });
    if (changed.name === "holds" && changed.checked) none.checked = false;
    history.push(before);
    before = snapshot();
    paint();
    draft.soon();
  }

  function isFlagged() {
    return Boolean(form.querySelector("input[name=problem]:checked")?.value);
  }

  function firstMissing() {
    return steps.find((part) => !isDone(part));
  }

  const WORDS = { a: "Step 1 is missing: choose what A is.", b: "Step 2 is missing: choose what B is.", holds: "Step 3 is missing: pick what the text says, or “None of these”." };

  function onSubmit(event) {
    if (event.submitter?.hasAttribute("formaction")) { draft.sent(); return; }
    event.preventDefault();
    const part = firstMissing();
    if (isFlagged() || !part) { send(form, draft, { tell, busy, here, begin }); return; }
    tell(WORDS[part.dataset.step]);
    goTo(steps.indexOf(part));
  }

  function tell(...parts) {
    missing.replaceChildren(...parts);
    missing.hidden = false;
  }

  const word = submitButton.firstChild.textContent;
  let late = 0;

  function busy(on) {
    clearTimeout(late);
    if (on) late = setTimeout(() => { submitButton.firstChild.textContent = "Sending … "; }, 300);
    else submitButton.firstChild.textContent = word;
  }

  addEventListener("pageshow", () => { draft.sending = false; busy(false); }, { signal });

  // -- Drafts: as on the other pages; here they hold every field, and the page says how long the question is one's own

  class FieldsDraft extends Draft {
    remember() { this.here = keepHere(this.store, JSON.stringify(snapshot())); }

    tell() {
      if (this.loggedOut) this.kept.replaceChildren(...wayBack(this.loggedOut));
      else if (this.failing) this.kept.textContent = this.unsaved();
      else if ("framed" in form.dataset) this.kept.textContent = this.savedAt ? "Draft saved." : form.dataset.framed;
      else if (this.savedAt) this.kept.textContent = `Draft saved. ${this.yours("question")}`;
      else this.kept.textContent = `Saved on the server after every answer. ${this.yours("question")}`;
    }
  }

  function lost(sentence, late) {
    tell(sentence);
    if (late) return;
    submitButton.disabled = true;
    if (form.dataset.next) setTimeout(() => { location.assign(form.dataset.next); }, 4000);
  }

  const draft = new FieldsDraft(form, { fill: () => {}, kept: document.getElementById("kept"), lost, signal });

  function fromThisBrowser() {
    const values = JSON.parse(recall(draft.store) || "null");
    if (Array.isArray(values) && values.length === before.length) {
      restore(values);
      draft.soon();
    }
    keepHere(draft.store, null);
  }

  // -- The clock

  const began = Date.now() - 1000 * Number(form.dataset.elapsed || 0);
  const clock = document.getElementById("clock");

  function tick() {
    const seconds = Math.round((Date.now() - began) / 1000);
    clock.textContent = seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }

  // -- The whole document, in place

  const whole = document.getElementById("whole");
  const text = document.getElementById("text");
  let other = null;
  let fetching = false;

  async function fetchDocument() {
    const reply = await fetch(whole.href);
    return reply.ok ? new DOMParser().parseFromString(await reply.text(), "text/html").querySelector("#text .doc") : null;
  }

  async function toggleDocument(event) {
    event.preventDefault();
    if (fetching) return; // pressed twice: it comes
    if (other === null) {
      fetching = true;
      other = await fetchDocument().catch(() => null);
      fetching = false;
      if (other === null) return;
    }
    const shown = text.querySelector(".doc");
    shown.replaceWith(other);
    other = shown;
    const full = whole.firstElementChild;
    full.textContent = full.textContent.startsWith("Show") ? "Show less" : "Show the whole document";
    text.querySelector(".m-subject, .m-object")?.scrollIntoView({ block: "nearest" });
  }

  // -- Keys

  function typing(target) {
    return target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
  }

  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]") || typing(event.target)) return;
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      form.requestSubmit(submitButton);
    }
    if (/^[0-9]$/.test(event.key) && pick(Number(event.key))) event.preventDefault();
    if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      if (event.key === "j" && current === steps.length - 1) submitButton.focus();
      else goTo(current + (event.key === "j" ? 1 : -1));
    }
  }

  // -- Begin

  form.addEventListener("change", onChange);
  form.addEventListener("submit", onSubmit);
  form.addEventListener("focusin", (event) => {
    const at = steps.indexOf(event.target.closest?.(".step-part"));
    if (at >= 0 && at !== current) { current = at; paint(); }
  });
  form.addEventListener("input", (event) => { if (typing(event.target)) draft.soon(); });
  undoButton.addEventListener("click", () => turn(history.undo(before)));
  redoButton.addEventListener("click", () => turn(history.redo(before)));
  whole?.addEventListener("click", toggleDocument);
  flag?.addEventListener("toggle", () => {
    if (flag.open) flag.querySelector("input:checked")?.focus();
    else if (isFlagged()) { form.querySelector("input[name=problem][value='']").checked = true; draft.soon(); }
  });
  document.addEventListener("keydown", onKey, { capture: true, signal });
  if (draft.url) fromThisBrowser();
  const ticking = setInterval(tick, 1000);
  signal.addEventListener("abort", () => clearInterval(ticking));
  const first = firstMissing();
  goTo(first ? steps.indexOf(first) : steps.length - 1, false);
  before = snapshot();
  if (fields().some((one) => one.checked !== one.defaultChecked || one.value !== one.defaultValue)) draft.soon(); // chosen before this script was here
  tick();
  document.documentElement.dataset.ready = "1";
}

begin();
