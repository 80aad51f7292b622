// One registry of keys. It handles them, prints the hints on the page and fills the sheet that `?` opens.
//
// In HTML:    <button data-key="Enter" data-key-verb="submit">   the key presses it (or focuses a field)
//             data-key-scope on a step                           where steps share a key, the one with the focus has it,
//                                                                then the one with data-at-hand
//             data-key-quiet                                     works and stands on the sheet, but is not hinted
//             <div data-key-hints></div>                         the hints appear here
// In a module: import { register } from "./keys.js"; register("z", "undo", undo);
// "g l" means g, then l. A key never fires while somebody types, except those with Ctrl or Escape.
//
// A link with rel="next" or "prev" leaves for a page like this one: keys that are pressed until that is there wait for it,
// and follow its links.
//
// Keys of a single character can be switched off, and letters changed, on the sheet. `data-keys` on the body says how
// somebody has them, `data-keys-url` where that is kept with them; of others this browser keeps it. A page need not know:
// a changed key arrives as the key that it stands for.

const IS_APPLE = /^(Mac|iP)/.test(navigator.platform);
const programmed = new Map();
const KEPT = "keys";
let own = { off: false, keys: {} }; // key of the page -> key that is pressed instead
let pending = "";
let pendingTimer = 0;
const WAITING = "keys-waiting";
const LONGEST_WAIT = 5000;
let leftAt = -Infinity;
let waiting = [];

/** Gives a key to a function; the function may return false to say that the key was not for it. */
function register(key, verb, action, { quiet = false } = {}) {
  programmed.set(key, { key, verb, action, quiet });
  printHints();
}

function unregister(key) {
  programmed.delete(key);
  printHints();
}

/** Words about a key as this machine's keyboard has it: Apple's have ⌘ where others have Ctrl. */
function named(words) {
  return IS_APPLE ? words.replace("Ctrl", "⌘") : words;
}

function isShown(element) {
  return element.getClientRects().length > 0 && !element.closest("[inert]");
}

function marked() {
  return [...document.querySelectorAll("[data-key]")].map((element) => ({
    key: element.dataset.key,
    verb: element.dataset.keyVerb || element.textContent.trim(),
    quiet: "keyQuiet" in element.dataset,
    element,
  }));
}

/** Every key that works now, the page's own first. */
function bindings() {
  const all = [...programmed.values(), ...marked()];
  const seen = new Set();
  return all.filter(({ key }) => key && !seen.has(key) && seen.add(key));
}

// -- One's own keys

function sound(found) {
  return { off: Boolean(found?.off), keys: found?.keys && typeof found.keys === "object" ? found.keys : {} };
}

function readOwn() {
  const said = document.body.dataset.keys;
  try { own = sound(JSON.parse(said || localStorage.getItem(KEPT) || "{}")); } catch { own = sound({}); }
  if (said) keepHere();
}

function keepHere() {
  try { localStorage.setItem(KEPT, JSON.stringify(own)); } catch { /* a frame may not */ }
}

async function keepOwn() {
  keepHere();
  const url = document.body.dataset.keysUrl;
  if (!url) return true;
  const said = new FormData();
  said.set("keys", JSON.stringify(own));
  for (const name of ["csrfmiddlewaretoken", "proof"]) {
    const field = document.querySelector(`input[name="${name}"]`);
    if (field) said.set(name, field.value);
  }
  return fetch(url, { method: "POST", body: said }).then((reply) => reply.ok).catch(() => false);
}

const isCharacter = (key) => key.length === 1 && key !== " ";
const pressedFor = (key) => own.keys[key] || key;

/** Whether a key works now. A sequence works if each of its keys does. */
const works = (key) => !(own.off && key.split(" ").some(isCharacter));

/** Before anybody hears of a key: one that is off or was given away is nobody's, a changed one is what it stands for. */
function translate(event) {
  if (!event.isTrusted || !isCharacter(event.key) || event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const means = Object.keys(own.keys).find((one) => own.keys[one] === key) ?? (own.keys[key] ? "" : key);
  if (!own.off && means === key) return;
  event.stopImmediatePropagation();
  if (own.off || !means) return;
  event.preventDefault();
  event.target.dispatchEvent(new KeyboardEvent("keydown", { key: means, bubbles: true, cancelable: true, composed: true }));
}

/** Caps that stand in the page: with one's own keys on them, or gone. */
function relabel() {
  document.documentElement.classList.toggle("keys-off", own.off);
  for (const cap of document.querySelectorAll("kbd:not(.key-hints kbd, dialog kbd)")) {
    if (cap.textContent !== cap.dataset.now) cap.dataset.of = cap.textContent.trim().toLowerCase();
    if (!isCharacter(cap.dataset.of)) continue;
    cap.dataset.now = pressedFor(cap.dataset.of).toUpperCase();
    if (cap.textContent !== cap.dataset.now) cap.textContent = cap.dataset.now;
    cap.classList.toggle("off", own.off);
  }
}

function nameOf(event) {
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && event.key.length > 1 ? "Shift " : "";
  return (event.ctrlKey || event.metaKey ? "Ctrl " : "") + shift + name;
}

function isTyping(target) {
  return target.isContentEditable || target.matches("textarea, select, input:not([type=radio], [type=checkbox], [type=range], [type=button], [type=submit], [type=file])");
}

// Enter on a link or a button, space on a box: the browser's own meaning comes first.
function isBrowsers(event) {
  if (event.key === "Enter") return event.target.matches("a[href], button, summary, select, [type=submit], [type=file]");
  if (event.key === " ") return event.target.matches("button, summary, input, select");
  if (event.key.startsWith("Arrow")) return event.target.matches("[type=radio], [type=range], select");
  return false;
}

function use(element) {
  if (element.disabled) return;
  if (element.matches("input:not([type=radio], [type=checkbox], [type=submit], [type=button], [type=file]), textarea, select")) element.focus();
  else element.click();
}

function fire(key) {
  const own = programmed.get(key);
  if (own) return own.action() !== false;
  const found = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)];
  const atHand = document.activeElement.closest("[data-key-scope]") || document.querySelector("[data-key-scope][data-at-hand]");
  const element = found.find((one) => atHand?.contains(one) && isShown(one)) || found.find(isShown) || found.find((one) => one.matches(".nav a"));
  if (!element) return false;
  use(element);
  return true;
}

const isLeaving = () => performance.now() - leftAt < LONGEST_WAIT;

/** Keeps the keys that wait for the next page; `keys` none forgets them. */
function keepWaiting(keys) {
  waiting = keys;
  try {
    if (keys.length) sessionStorage.setItem(WAITING, JSON.stringify({ at: Date.now(), keys }));
    else sessionStorage.removeItem(WAITING);
  } catch { /* a frame may not */ }
}

function leaves(event) {
  const link = event.target.closest?.("a[rel=next], a[rel=prev]");
  if (link && !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.shiftKey) leftAt = performance.now();
}

/** What was pressed while this page was on its way: each follows a link; the rest waits where one leads. */
function catchUp() {
  let kept = null;
  try { kept = JSON.parse(sessionStorage.getItem(WAITING)); } catch { /* nothing waits */ }
  keepWaiting([]);
  if (!Array.isArray(kept?.keys) || Date.now() - kept.at > LONGEST_WAIT) return;
  while (kept.keys.length && !isLeaving()) {
    const key = kept.keys.shift();
    [...document.querySelectorAll(`a[data-key="${CSS.escape(key)}"]`)].find(isShown)?.click();
  }
  keepWaiting([...kept.keys, ...waiting]);
}

function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const held = event.ctrlKey || event.metaKey;
  if (isTyping(event.target) && !held && event.key !== "Escape") return;
  if (isLeaving() && isCharacter(event.key) && !held) {
    event.preventDefault();
    keepWaiting([...waiting, nameOf(event)]);
    return;
  }
  if (isBrowsers(event)) return;
  if (document.querySelector("dialog[open]")) return;
  const key = pending ? `${pending} ${nameOf(event)}` : nameOf(event);
  pending = "";
  if (fire(key)) event.preventDefault();
  else if (!held && bindings().some((one) => one.key.startsWith(`${key} `) && !one.key.startsWith("Ctrl"))) {
    pending = key;
    clearTimeout(pendingTimer);
    pendingTimer = setTimeout(() => { pending = ""; }, 1500);
  }
}

const WORDS = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", Delete: "Del" };

function caps(key) {
  return key.split(" ").map((part) => {
    const cap = document.createElement("kbd");
    const pressed = pressedFor(part);
    cap.textContent = WORDS[pressed] || (pressed.length === 1 ? pressed.toUpperCase() : named(pressed));
    return cap;
  });
}

// Digits that choose in a step would be nine hints; neighbours with one verb share it: 1–6 choose.
function grouped(list) {
  const groups = [];
  for (const one of list) {
    const last = groups.at(-1);
    if (last && last.verb === one.verb) last.keys.push(one.key);
    else groups.push({ verb: one.verb, keys: [one.key] });
  }
  return groups;
}

function hint({ keys, verb }, tag) {
  const item = document.createElement(tag);
  if (keys.length > 2) item.append(...caps(keys[0]), "–", ...caps(keys.at(-1)));
  else keys.forEach((key) => item.append(...caps(key)));
  const words = document.createElement("span");
  words.textContent = verb;
  item.append(" ", words);
  return item;
}

function printHints() {
  const groups = grouped(bindings().filter((one) => !one.quiet && works(one.key)));
  for (const place of document.querySelectorAll("[data-key-hints]")) {
    place.classList.add("key-hints");
    place.replaceChildren(...groups.map((group) => hint(group, "span")));
  }
}

function sheet() {
  let dialog = document.getElementById("key-sheet");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "key-sheet";
    dialog.setAttribute("aria-label", "Keys");
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
  }
  const title = document.createElement("h2");
  title.textContent = "Keys on this page";
  const list = document.createElement("ul");
  list.className = "key-list";
  list.append(...grouped(bindings()).map(line));
  const close = document.createElement("form");
  close.method = "dialog";
  close.innerHTML = `<p class="small" role="status"></p><p class="buttons"><button class="button primary">Keep</button>
    <button type="button" class="button" data-as-it-was>As it was</button><button type="button" class="button" data-close>Close</button></p>`;
  const on = document.createElement("label");
  on.className = "check";
  on.innerHTML = `<input type="checkbox"> <span>Keys of a single letter, digit or sign work</span>`;
  on.firstElementChild.checked = !own.off;
  close.addEventListener("submit", (event) => {
    event.preventDefault();
    keep(dialog, { off: !on.firstElementChild.checked, keys: wished(list) });
  });
  close.querySelector("[data-as-it-was]").addEventListener("click", () => keep(dialog, sound({})));
  close.querySelector("[data-close]").addEventListener("click", () => dialog.close());
  dialog.replaceChildren(title, on, list, close);
  if (!dialog.open) dialog.showModal();
}

/** A line of the sheet; a letter that stands alone has a field in which to change it. */
function line(group) {
  const item = hint(group, "li");
  const [key] = group.keys;
  if (group.keys.length > 1 || !/^[a-z]$/.test(key)) return item;
  const field = document.createElement("input");
  Object.assign(field, { value: pressedFor(key).toUpperCase(), maxLength: 1, size: 2, autocomplete: "off", spellcheck: false });
  field.dataset.of = key;
  field.setAttribute("aria-label", `Key for: ${group.verb}`);
  field.addEventListener("focus", () => field.select());
  item.querySelector("kbd").replaceWith(field);
  return item;
}

function wished(list) {
  const changed = { ...own.keys };
  for (const field of list.querySelectorAll("input")) {
    const key = field.value.trim().toLowerCase();
    if (key && key !== field.dataset.of) changed[field.dataset.of] = key;
    else delete changed[field.dataset.of];
  }
  return changed;
}

async function keep(dialog, wanted) {
  const keys = bindings().map((one) => one.key).filter(isCharacter).map((key) => wanted.keys[key] || key);
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  const tell = (sentence) => { dialog.querySelector("[role=status]").textContent = sentence; };
  if (twice) { tell(`Nothing was changed: ${twice.toUpperCase()} would be two things.`); return; }
  own = wanted;
  printHints();
  relabel();
  const kept = await keepOwn();
  sheet();
  tell(kept ? "Kept." : "It holds on this page; we could not keep it.");
}

/** What a page needs that was put in the place of another. */
function refresh() {
  for (const opener of document.querySelectorAll("[data-key-sheet]")) opener.hidden = false;
  if (IS_APPLE) for (const cap of document.querySelectorAll("kbd")) cap.textContent = named(cap.textContent);
  printHints();
  if (own.off || Object.keys(own.keys).length) relabel();
}

function begin() {
  document.documentElement.classList.add("js");
  readOwn();
  addEventListener("keydown", translate, true);
  document.addEventListener("keydown", onKey);
  addEventListener("click", leaves);
  addEventListener("pageshow", (event) => { if (event.persisted) { leftAt = -Infinity; keepWaiting([]); } });
  setTimeout(catchUp);
  if (own.off || Object.keys(own.keys).length) relabel();
  new MutationObserver(() => { if (own.off || Object.keys(own.keys).length) relabel(); }).observe(document.body, { childList: true, subtree: true });
  register("?", "keys and help", sheet, { quiet: true });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-key-sheet]")) sheet(); });
  refresh();
  return { register, unregister, bindings, printHints, refresh, named };
}

// One registry a page, even where a server gives this file two addresses (with and without a hash in its name).
const shared = (globalThis.kbpoKeys ??= begin());
const { register: sharedRegister, unregister: sharedUnregister, bindings: sharedBindings, printHints: sharedHints } = shared;
export { named, sharedRegister as register, sharedUnregister as unregister, sharedBindings as bindings, sharedHints as printHints };
