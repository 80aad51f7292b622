// Moving through rows by key: j and k move, Enter opens the first link of the row.
//
// <tbody data-rows> or <ul data-rows>: its children are the rows; the one at hand has the class selected and is scrolled into view.

import { register } from "./keys.js";

// The rows are looked up at every key: a part of the page that keeps itself up to date may hold them.
function start() {
  const rows = () => [...document.querySelectorAll("[data-rows] > *")].filter((row) => row.getClientRects().length);
  const at = () => rows().findIndex((row) => row.classList.contains("selected"));

  function select(index) {
    const all = rows();
    if (!all.length) return false;
    const next = Math.min(all.length - 1, Math.max(0, index));
    all.forEach((row, i) => row.classList.toggle("selected", i === next));
    all[next].scrollIntoView({ block: "nearest" });
    all[next].querySelector("a[href]")?.focus({ preventScroll: true });
    return true;
  }

  register("j", "next row", () => select(at() + 1));
  register("k", "row before", () => select(at() < 0 ? 0 : at() - 1));
}

if (document.querySelector("[data-rows]")) start();
