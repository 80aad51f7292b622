// The form page: keys, drafts, what is missing. Without it the page is a plain form that works.

import { Draft, minutesOf, plural } from "../shared/draft.js";

const form = document.getElementById("answer");
const parts = [...form.querySelectorAll(".step-part")];
const missing = document.getElementById("missing");
const submitButton = form.querySelector(".submit-bar .primary");
const clock = document.getElementById("clock");
let current = 0;

const isDone = (part) => Boolean(part.querySelector("input:checked"));
const isFlagged = () => Boolean(form.querySelector("input[name=problem]:checked")?.value);
const firstMissing = () => parts.find((part) => !isDone(part));

function paint() {
  for (const part of parts) {
    part.querySelector(".step .n").classList.toggle("done", isDone(part));
    part.toggleAttribute("data-at-hand", part === parts[current]);
  }
  if (isFlagged() || !firstMissing()) missing.hidden = true;
}

class FormDraft extends Draft {
  tell() {
    const yours = `This question is yours for another ${plural(minutesOf(this.leaseEnds - Date.now()), "minute")}.`;
    if (this.failing) this.kept.textContent = this.unsaved();
    else if ("framed" in form.dataset) this.kept.textContent = this.savedAt ? "Draft saved." : form.dataset.framed;
    else this.kept.textContent = `${this.savedAt ? "Draft saved." : "Saved on the server after every answer."} ${yours}`;
  }
}

const draft = new FormDraft(form, {
  fill: () => {},
  kept: document.getElementById("kept"),
  lost: (sentence) => {
    missing.textContent = sentence;
    missing.hidden = false;
    submitButton.disabled = true;
    if (form.dataset.next) setTimeout(() => { location.assign(form.dataset.next); }, 4000);
  },
});

function onKey(event) {
  const typing = event.target.matches?.("input:not([type=radio]), textarea, select");
  if (event.altKey || event.ctrlKey || event.metaKey || typing) return;
  if (event.key === "Enter" && event.target.matches("input")) {
    event.preventDefault();
    form.requestSubmit(submitButton);
  }
  if (!/^[1-9]$/.test(event.key)) return;
  const input = parts[current]?.querySelectorAll("input[type=radio]")[Number(event.key) - 1];
  if (!input) return;
  event.preventDefault();
  input.click();
  if (current < parts.length - 1) current += 1;
  (parts[current].querySelector("input:checked") || parts[current].querySelector("input")).focus();
  paint();
}

form.addEventListener("change", () => { paint(); draft.soon(); });
form.addEventListener("input", () => draft.soon());
form.addEventListener("focusin", (event) => {
  const at = parts.indexOf(event.target.closest?.(".step-part"));
  if (at >= 0) { current = at; paint(); }
});
form.addEventListener("submit", (event) => {
  const part = firstMissing();
  if (event.submitter?.hasAttribute("formaction") || isFlagged() || !part) {
    if (draft.sending) event.preventDefault();
    draft.sent();
    return;
  }
  event.preventDefault();
  missing.textContent = part.dataset.missing;
  missing.hidden = false;
  current = parts.indexOf(part);
  part.querySelector("input").focus();
  paint();
});
document.addEventListener("keydown", onKey, true);

const began = Date.now() - 1000 * Number(form.dataset.elapsed || 0);
setInterval(() => {
  const seconds = Math.round((Date.now() - began) / 1000);
  clock.textContent = seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}, 1000);
current = Math.max(0, parts.indexOf(firstMissing() || parts.at(-1)));
paint();
document.documentElement.dataset.ready = "1";
