// What an address points at is unfolded: the folds around it, and the one that a section begins with.

function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const own = target.matches("section") ? target.querySelector(":scope > details") : null;
  for (let one = own ?? target; one; one = one.parentElement) if (one.matches("details")) one.open = true;
  target.scrollIntoView();
}

unfold();
addEventListener("hashchange", unfold);
