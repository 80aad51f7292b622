// Keeps what is being made: on the server every few seconds and on leave, in this browser while the server is away.

import { post, wayBack } from "./sending.js";
import { keep as keepHere, recall } from "./store.js";

export const minutesOf = (milliseconds) => Math.max(0, Math.round(milliseconds / 60000));
export const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });
const clock = (moment) => `${String(moment.getUTCHours()).padStart(2, "0")}:${String(moment.getUTCMinutes()).padStart(2, "0")} UTC`;

/** Fields that prove who sends the form; they are not part of what was made. */
export const CARRIED = ["csrfmiddlewaretoken", "proof", "answer"];

/** Saving for a form with `data-draft`, `data-token` and `data-lease`. `fill` writes the state into the form's fields;
 * `status` says when it was saved, `kept` until when the document is one's own. */
export class Draft {
  constructor(form, { fill, status, kept, lost, signal = undefined }) {
    Object.assign(this, { form, fill, status, kept, lost });
    this.url = form.dataset.draft;
    this.store = `draft:${form.dataset.token}`;
    this.lease = Number(form.dataset.lease || 0);
    this.leaseEnds = Date.now() + 1000 * this.lease;
    this.sessionEnds = form.dataset.session || "";
    this.loggedOut = null;
    this.savedAt = 0;
    this.failing = null;
    this.here = false;
    this.dirty = false;
    this.sending = false;
    this.saving = false;
    this.timer = 0;
    if (!this.url) return;
    const renewing = setInterval(() => this.keep(), 60000); // the lease is renewed while the page is open
    const telling = setInterval(() => this.tell(), 5000);
    signal?.addEventListener("abort", () => { clearInterval(renewing); clearInterval(telling); });
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") this.leave();
      else if (this.isOver()) this.keep(); // asleep for long: before anybody works on, see whose it is now
    }, { signal });
    addEventListener("pagehide", () => this.leave(), { signal });
    this.tell();
  }

  /** What this browser kept while the server was away: the values of the form's fields by name, or null. */
  remembered() {
    const found = JSON.parse(recall(this.store) || "null");
    return found && typeof found === "object" && !Array.isArray(found) ? found : null;
  }

  /** Saves in a moment. A save that is on its way is not put off: whoever never pauses is saved all the same. */
  soon() {
    if (!this.url) return;
    this.dirty = true;
    if (!this.timer) this.wait(2500);
  }

  wait(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), milliseconds);
  }

  async keep() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.url || this.sending) return;
    if (this.saving) { this.wait(500); return; } // one after the other: an older save must not arrive after a newer one
    this.saving = true;
    this.dirty = false;
    this.fill();
    try {
      const { reply, said } = await post(this.form, this.url);
      this.loggedOut = said.login ? said : null;
      if (reply.status === 409) {
        if (said.late) this.url = this.failing = ""; // not saved any more, but what was done may be sent, and is paid
        else this.sending = true;
        this.lost(said.error, said.late);
        return;
      }
      if (!reply.ok) throw new Error(String(reply.status));
      this.savedAt = Date.now();
      this.leaseEnds = this.savedAt + 1000 * said.lease_seconds;
      this.sessionEnds = said.session_ends || this.sessionEnds;
      this.failing = null;
      keepHere(this.store, null);
    } catch {
      this.failing = this.failing || new Date();
      this.remember();
      this.dirty = true;
      this.wait(5000);
    } finally { this.saving = false; }
    this.tell();
  }

  remember() {
    const fields = [...new FormData(this.form)].filter(([name]) => !CARRIED.includes(name));
    this.here = keepHere(this.store, JSON.stringify(Object.fromEntries(fields)));
  }

  leave() {
    if (!this.url || this.sending || !(this.dirty || this.saving)) return; // a save on its way may be broken off
    this.fill();
    this.remember();
    navigator.sendBeacon(this.url, new FormData(this.form));
    this.dirty = false;
  }

  /** Called when the answer itself goes off. */
  sent() {
    this.sending = true;
    clearTimeout(this.timer);
    if (this.url) keepHere(this.store, null);
  }

  unsaved() {
    const kept = this.here ? "your answers are kept in this browser" : "do not close this page";
    const over = this.isOver() ? ` ${this.yours("question")}` : "";
    return `Not saved since ${clock(this.failing)}. We keep trying; ${kept}.${over}`;
  }

  /** Until when somebody stays logged in, as the page says it. */
  session() {
    return this.sessionEnds ? ` You stay logged in until ${day.format(new Date(this.sessionEnds))}.` : "";
  }

  /** Whether the time is over for which it was one's own; a frame has none, its marketplace does. */
  isOver() { return this.lease > 0 && Date.now() > this.leaseEnds; }

  /** For how long `what` is one's own, as the page says it; when that is over, what it means for an answer. */
  yours(what) {
    const left = this.leaseEnds - Date.now();
    if (left > 0) return `This ${what} is yours for another ${plural(Math.max(1, minutesOf(left)), "minute")}.${this.session()}`;
    return `This ${what} was yours until ${clock(new Date(this.leaseEnds))}. If somebody has taken it since, an answer is paid, and does not count any more.`;
  }

  tell() {
    const seconds = Math.round((Date.now() - this.savedAt) / 1000);
    this.status.classList.toggle("saved", Boolean(this.savedAt) && !this.failing);
    if (this.failing) this.status.textContent = `Not saved since ${clock(this.failing)}`;
    else if (this.savedAt) this.status.textContent = seconds < 2 ? "saved just now" : seconds < 100 ? `saved ${seconds} s ago` : `saved ${minutesOf(1000 * seconds)} min ago`;
    if (this.loggedOut) this.kept.replaceChildren(...wayBack(this.loggedOut));
    else if (this.failing) this.kept.textContent = this.unsaved();
    else if ("framed" in this.form.dataset) this.kept.textContent = "Saved while you work: this page may be loaded anew. Send it in before the time of the HIT runs out.";
    else if (this.isOver()) this.kept.textContent = this.yours("document");
    else this.kept.textContent = `You can leave and come back: the document is yours until ${clock(new Date(this.leaseEnds))}.${this.session()}`;
  }
}
