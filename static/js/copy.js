// A permalink is copied by a click or its key, and a text by the button beside it, where a browser lets a page do that.

import { named } from "./keys.js";

/** Says so on what was clicked, for a moment. */
function say(element, words) {
  const before = element.dataset.words || (element.dataset.words = element.textContent);
  element.textContent = words;
  setTimeout(() => { element.textContent = before; }, 1500);
}

for (const link of document.querySelectorAll("[data-copy]")) {
  link.setAttribute("aria-live", "polite");
  link.addEventListener("click", (event) => {
    if (!navigator.clipboard || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    navigator.clipboard.writeText(link.href).then(() => say(link, "Copied"), () => location.assign(link.href));
  });
}

for (const button of document.querySelectorAll(".copied > button")) {
  const text = button.previousElementSibling;
  button.hidden = false;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", () => {
    const choose = () => { // without TLS, or where it is not allowed
      const before = button.dataset.words || (button.dataset.words = button.textContent);
      getSelection().selectAllChildren(text);
      button.textContent = matchMedia("(hover: none)").matches ? "Selected: copy it" : named("Selected: press Ctrl+C");
      button.addEventListener("blur", () => { button.textContent = before; }, { once: true });
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(() => say(button, "Copied"), choose);
    else choose();
  });
}
