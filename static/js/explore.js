// The explorer: its permalink is copied by a click or its key, where a browser lets a page do that.

for (const link of document.querySelectorAll("[data-copy]")) {
  const words = link.textContent;
  link.setAttribute("aria-live", "polite");
  link.addEventListener("click", (event) => {
    if (!navigator.clipboard || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    navigator.clipboard.writeText(link.href).then(() => {
      link.textContent = "Copied";
      setTimeout(() => { link.textContent = words; }, 1500);
    }, () => location.assign(link.href));
  });
}
// The list alone moves to what is chosen of it: on a phone it lies below, and the page begins above.
const chosen = document.querySelector(".x-list .chosen");
if (chosen) {
  const list = chosen.parentElement;
  list.scrollTop = chosen.offsetTop - list.offsetTop - (list.clientHeight - chosen.offsetHeight) / 2;
}
if (matchMedia("(max-width: 999.98px)").matches) document.querySelector(".x-fold")?.removeAttribute("open");
