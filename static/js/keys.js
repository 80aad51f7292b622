// One registry of keys. It handles them, prints the hints on the page and fills the sheet that `?` opens.
//
// In HTML:    <button data-key="Enter" data-key-verb="submit">   the key presses it (or focuses a field)
//             data-key-scope on a step                           where steps share a key, the one with the focus has it,
//                                                                then the one with data-at-hand
//             data-key-quiet                                     works and stands on the sheet, but is not hinted
//             <div data-key-hints></div>                         the hints appear here
// In a module: import { register } from "./keys.js"; register("z", "undo", undo);
// "g l" means g, then l. A key never fires while somebody types, except those with Ctrl or Escape.

const programmed = new Map();
let pending = "";
let pendingTimer = 0;

/** Gives a key to a function; the function may return false to say that the key was not for it. */
function register(key, verb, action, { quiet = false } = {}) {
  programmed.set(key, { key, verb, action, quiet });
  printHints();
}

function unregister(key) {
  programmed.delete(key);
  printHints();
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

function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const held = event.ctrlKey || event.metaKey;
  if (isTyping(event.target) && !held && event.key !== "Escape") return;
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
    cap.textContent = WORDS[part] || (part.length === 1 ? part.toUpperCase() : part);
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
  const groups = grouped(bindings().filter((one) => !one.quiet));
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
  list.append(...grouped(bindings()).map((group) => hint(group, "li")));
  const close = document.createElement("form");
  close.method = "dialog";
  const button = document.createElement("button");
  button.className = "button";
  button.textContent = "Close";
  close.append(button);
  dialog.replaceChildren(title, list, close);
  dialog.showModal();
}

function begin() {
  document.documentElement.classList.add("js");
  document.addEventListener("keydown", onKey);
  register("?", "keys and help", sheet, { quiet: true });
  for (const opener of document.querySelectorAll("[data-key-sheet]")) {
    opener.hidden = false;
    opener.addEventListener("click", sheet);
  }
  return { register, unregister, bindings, printHints };
}

// One registry a page, even where a server gives this file two addresses (with and without a hash in its name).
const shared = (globalThis.kbpoKeys ??= begin());
const { register: sharedRegister, unregister: sharedUnregister, bindings: sharedBindings, printHints: sharedHints } = shared;
export { sharedRegister as register, sharedUnregister as unregister, sharedBindings as bindings, sharedHints as printHints };
