// The form page: keys, drafts, what is missing. Without it the page is a plain form that works.

import { Draft } from "../shared/draft.js";
import { send, wayBack } from "../shared/sending.js";

/** Brings the question that stands on the page to life. */
function begin() {
  const form = document.getElementById("answer");
  const here = new AbortController(); // ends with this question: the next one comes into the same page
  const { signal } = here;
  const parts = [...form.querySelectorAll(".step-part")];
  const missing = document.getElementById("missing");
  const submitButton = form.querySelector(".submit-bar .primary");
  const clock = document.getElementById("clock");
  let current = 0;

  const isAnswered = (part) => Boolean(part.querySelector("input:checked") || part.querySelector("textarea")?.value.trim());
  const isDone = (part) => "free" in part.dataset || isAnswered(part);
  const focusable = (part) => part.querySelector("input:checked") || part.querySelector("input, textarea");
  const isFlagged = () => Boolean(form.querySelector("input[name=problem]:checked")?.value);
  const firstMissing = () => parts.find((part) => !isDone(part));

  function paint() {
    for (const part of parts) {
      part.querySelector(".step .n").classList.toggle("done", isAnswered(part));
      part.toggleAttribute("data-at-hand", part === parts[current]);
    }
    if (isFlagged() || !firstMissing()) missing.hidden = true;
  }

  function tell(...parts) {
    missing.replaceChildren(...parts);
    missing.hidden = false;
  }

  class FormDraft extends Draft {
    tell() {
      if (this.loggedOut) this.kept.replaceChildren(...wayBack(this.loggedOut));
      else if (this.failing) this.kept.textContent = this.unsaved();
      else if ("framed" in form.dataset) this.kept.textContent = this.savedAt ? "Draft saved." : form.dataset.framed;
      else this.kept.textContent = `${this.savedAt ? "Draft saved." : "Saved on the server after every answer."} ${this.yours("question")}`;
    }
  }

  const draft = new FormDraft(form, {
    fill: () => {},
    kept: document.getElementById("kept"),
    signal,
    lost: (sentence, late) => {
      tell(sentence);
      if (late) return;
      submitButton.disabled = true;
      if (form.dataset.next) setTimeout(() => { location.assign(form.dataset.next); }, 4000);
    },
  });

  function onKey(event) {
    const typing = event.target.matches?.("input:not([type=radio]), textarea, select");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit(submitButton);
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey || typing) return;
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      form.requestSubmit(submitButton);
    }
    if (!/^[1-9]$/.test(event.key)) return;
    if (parts[current]?.querySelector("textarea")) { // left by Tab: a digit is no word of it any more
      const open = parts.findIndex((part) => part.querySelector("input") && !isDone(part));
      if (open >= 0) current = open;
    }
    const input = parts[current]?.querySelectorAll("input[type=radio]")[Number(event.key) - 1];
    if (!input) return;
    event.preventDefault();
    input.click();
    if (current < parts.length - 1) current += 1;
    focusable(parts[current]).focus();
    paint();
  }

  form.addEventListener("change", () => { paint(); draft.soon(); });
  form.addEventListener("input", () => { paint(); draft.soon(); });
  form.addEventListener("focusin", (event) => {
    const at = parts.indexOf(event.target.closest?.(".step-part"));
    if (at >= 0) { current = at; paint(); }
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("formaction")) { draft.sent(); return; }
    event.preventDefault();
    const part = firstMissing();
    if (isFlagged() || !part) { send(form, draft, { tell, busy: (on) => { submitButton.disabled = on; }, here, begin }); return; }
    tell(part.dataset.missing);
    current = parts.indexOf(part);
    focusable(part).focus();
    paint();
  });
  addEventListener("pageshow", () => { draft.sending = false; submitButton.disabled = false; }, { signal });
  document.addEventListener("keydown", onKey, { capture: true, signal });

  const began = Date.now() - 1000 * Number(form.dataset.elapsed || 0);
  const ticking = setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    clock.textContent = seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(ticking));
  current = Math.max(0, parts.indexOf(firstMissing() || parts.at(-1)));
  paint();
  document.documentElement.dataset.ready = "1";
}

begin();
