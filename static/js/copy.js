// A permalink is copied by a click or its key, where a browser lets a page do that.

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
