// The explorer: what is chosen is in sight, and a line of the file is shown where it is asked for.

// The list alone moves to what is chosen of it: on a phone it lies below, and the page begins above.
const chosen = document.querySelector(".x-list .chosen");
if (chosen) {
  const list = chosen.parentElement;
  list.scrollTop = chosen.offsetTop - list.offsetTop - (list.clientHeight - chosen.offsetHeight) / 2;
}
if (matchMedia("(max-width: 999.98px)").matches) document.querySelector(".x-fold")?.removeAttribute("open");

const link = document.querySelector("[data-line]");
link?.addEventListener("click", async (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const shown = document.querySelector(".x-line");
  shown.hidden = !shown.hidden;
  if (shown.hidden || shown.textContent) return;
  shown.textContent = "Reading the file …";
  try {
    const answer = await fetch(link.href, { credentials: "same-origin" });
    if (!answer.headers.get("Content-Type")?.startsWith("text/plain")) throw new Error(answer.statusText);
    shown.textContent = await answer.text();
  } catch {
    location.assign(link.href);
  }
});
