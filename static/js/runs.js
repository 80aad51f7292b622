// Your runs: n moves to the next piece of news, Enter opens it.

import { register } from "./keys.js";

const links = [...document.querySelectorAll("[data-news]")];

if (links.length) {
  register("n", "next piece of news", () => {
    const next = links[(links.indexOf(document.activeElement) + 1) % links.length];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  });
}
