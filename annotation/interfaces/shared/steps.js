// A page of steps, each with a few answers: keys, drafts, what is missing. Without it the page is a plain form that works.

import { CARRIED, Draft } from "./draft.js";
import { send, wayBack } from "./sending.js";
import { keep as keepHere, recall } from "./store.js";

class FormDraft extends Draft {
  tell() {
    if (this.loggedOut) this.kept.replaceChildren(...wayBack(this.loggedOut));
    else if (this.failing) this.kept.textContent = this.unsaved();
    else if ("framed" in this.form.dataset) this.kept.textContent = this.savedAt ? "Draft saved." : this.form.dataset.framed;
    else this.kept.textContent = `${this.savedAt ? "Draft saved." : "Saved on the server after every answer."} ${this.yours("question")}`;
  }
}

/** Puts back what this browser kept when the page was left, or while the server was away. Before anything reads the form. */
function putBack(form) {
  const store = `draft:${form.dataset.token}`;
  const kept = JSON.parse(recall(store) || "null");
  keepHere(store, null);
  if (!kept || typeof kept !== "object" || Array.isArray(kept)) return false;
  for (const [name, value] of Object.entries(kept)) {
    const field = form.elements[name];
    if (field && !CARRIED.includes(name)) field.value = value;
  }
  return true;
}

const isPutBack = putBack(document.getElementById("answer"));

/** Begins a page. `isDone` says whether a step is answered, `isAsked` whether it has to be, `changed` is called after
 * every change, `fill` before the form is saved or sent, `reveal` before a step gets the focus. Returns what other parts of the page need. */
export function begin({
  isDone = (part) => Boolean(part.querySelector("input[type=radio]:checked")), isAsked = () => true, changed = () => {}, fill = () => {},
  reveal = () => {},
} = {}) {
  const form = document.getElementById("answer");
  const parts = [...form.querySelectorAll(".step-part")];
  const missing = document.getElementById("missing");
  const submitButton = form.querySelector(".submit-bar .primary");
  const clock = document.getElementById("clock");
  let current = 0;
  let lacking = null; // the step that the line about what is missing speaks of

  const isFlagged = () => Boolean(form.querySelector("input[name=problem]:checked")?.value);
  const firstMissing = () => parts.find((part) => isAsked(part) && !isDone(part));
  const focusable = (part) => part.querySelector("input:checked") || part.querySelector("input:enabled, textarea:enabled, button:enabled");

  function paint() {
    for (const part of parts) {
      part.querySelector(".step .n")?.classList.toggle("done", isDone(part));
      part.toggleAttribute("data-at-hand", part === parts[current]);
    }
    if (isFlagged() || !firstMissing() || (lacking && isDone(lacking))) missing.hidden = true;
    else if (lacking && missing.textContent !== lacking.dataset.missing) missing.textContent = lacking.dataset.missing;
  }

  const draft = new FormDraft(form, {
    fill,
    kept: document.getElementById("kept"),
    lost: (sentence, late) => {
      tell(sentence);
      if (late) return;
      submitButton.disabled = true;
      if (form.dataset.next) setTimeout(() => { location.assign(form.dataset.next); }, 4000);
    },
  });

  function tell(...sentences) {
    lacking = null;
    missing.replaceChildren(...sentences);
    missing.hidden = false;
  }

  function update() {
    changed();
    paint();
    draft.soon();
  }

  function goTo(part) {
    current = parts.indexOf(part);
    reveal(part);
    focusable(part)?.focus();
    paint();
  }

  function pick(digit) {
    const input = parts[current]?.querySelectorAll("input[type=radio]")[digit - 1];
    if (!input || input.disabled) return false;
    input.click();
    const next = parts.slice(current + 1).find((part) => isAsked(part));
    goTo(isDone(parts[current]) && next && isAsked(parts[current]) ? next : parts[current]);
    return true;
  }

  function onKey(event) {
    const typing = event.target.matches?.("input:not([type=radio]), textarea, select");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(submitButton);
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey || typing || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      [...form.querySelectorAll(".submit-bar .primary")].find((one) => one.getClientRects().length)?.click();
    }
    if (/^[1-9]$/.test(event.key) && pick(Number(event.key))) event.preventDefault();
  }

  const flag = form.querySelector(".flag");
  // Only where somebody opens it: the server may send it open.
  flag?.addEventListener("toggle", () => {
    if (flag.open && navigator.userActivation?.hasBeenActive !== false) flag.scrollIntoView({ block: "nearest" });
  });
  form.addEventListener("change", update);
  form.addEventListener("input", (event) => { if (event.target.matches("textarea, input:not([type=radio])")) update(); });
  form.addEventListener("focusin", (event) => {
    const at = parts.indexOf(event.target.closest?.(".step-part"));
    if (at >= 0) { current = at; paint(); }
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("formaction")) { draft.sent(); return; }
    event.preventDefault();
    const part = firstMissing();
    if (isFlagged() || !part) {
      fill();
      send(form, draft, { tell, busy: (on) => { submitButton.disabled = on; } });
      return;
    }
    tell(part.dataset.missing);
    lacking = part;
    goTo(part);
  });
  addEventListener("pageshow", () => { draft.sending = false; submitButton.disabled = false; });
  document.addEventListener("keydown", onKey, true);

  const began = Date.now() - 1000 * Number(form.dataset.elapsed || 0);
  setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    clock.textContent = seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }, 1000);
  changed();
  current = Math.max(0, parts.indexOf(firstMissing() || parts.at(-1)));
  reveal(parts[current]);
  paint();
  if (isPutBack) draft.soon();
  document.documentElement.dataset.ready = "1";
  return { form, update, goTo, tell };
}
