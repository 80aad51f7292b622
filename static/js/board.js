// Walks the board by keyboard: j and k move, Enter opens.
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
