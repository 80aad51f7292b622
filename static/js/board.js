// Walks the board by keyboard: j and k move, Enter opens, x marks for comparing.
import { register } from "./keys.js";

const rows = [...document.querySelectorAll("tr[data-row]")];
let at = -1;

function select(to) {
  if (!rows.length) return;
  rows[at]?.classList.remove("selected");
  at = Math.max(0, Math.min(rows.length - 1, to));
  rows[at].classList.add("selected");
  rows[at].querySelector("a").focus({ preventScroll: true });
  rows[at].scrollIntoView({ block: "nearest" });
}

register("j", "next row", () => select(at + 1));
register("k", "row before", () => select(at - 1));
register("x", "mark for comparing", () => rows[at]?.querySelector(".mark input")?.click());
