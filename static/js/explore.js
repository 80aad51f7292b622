// The explorer: what is chosen is in sight.

// The list alone moves to what is chosen of it: on a phone it lies below, and the page begins above.
const chosen = document.querySelector(".x-list .chosen");
if (chosen) {
  const list = chosen.parentElement;
  list.scrollTop = chosen.offsetTop - list.offsetTop - (list.clientHeight - chosen.offsetHeight) / 2;
}
if (matchMedia("(max-width: 999.98px)").matches) document.querySelector(".x-fold")?.removeAttribute("open");
