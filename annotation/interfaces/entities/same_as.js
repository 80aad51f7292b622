// "Same as another …": finds any entity of the document by typing, for antecedents that no button stands for.
//
// A combobox: the field filters, the arrows move, Enter takes. The running list can be picked from meanwhile.

/** The button and the field behind it; `act("entity", number)` when one is taken. Null if every entity has a button. */
export function sameAs(el, marks, mention, shown) {
  const all = marks.others(mention);
  if (all.every((one) => shown.has(one.id))) return null;
  const open = el("button", { type: "button", class: "link-button", id: "another", "data-act": "another", "aria-expanded": "false", "aria-controls": "same-as" }, "Same as another … ", el("kbd", { class: "only-keys", "aria-hidden": "true" }, "E"));
  const field = el("input", { id: "same-filter", type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "same-options", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
  const options = el("div", { id: "same-options", class: "who same-options", role: "listbox", "aria-label": "Entities of the document" });
  const none = el("p", { class: "quiet small", role: "status" });
  const box = el("div", { id: "same-as", hidden: true }, el("div", { class: "field" }, el("label", { for: "same-filter" }, "Same as: type a part of its name, or pick it in the list of entities"), field), options, none);
  const fill = () => {
    const found = marks.namedLike(all, field.value);
    options.replaceChildren(...found.map((one) => option(el, marks, one)));
    options.hidden = !found.length;
    none.textContent = found.length ? "" : "No entity is called that.";
    light(field, options, 0);
  };
  field.addEventListener("input", fill);
  field.addEventListener("keydown", (event) => onKey(event, field, options));
  fill();
  return el("div", { class: "another" }, open, box);
}

/** Opens or closes the field; whether it is open now. */
export function toggle(place, wanted) {
  const box = place.querySelector("#same-as");
  if (!box) return false;
  const open = wanted ?? box.hidden;
  box.hidden = !open;
  place.querySelector("#another").setAttribute("aria-expanded", String(open));
  if (open) {
    const field = box.querySelector("input");
    field.value = ""; // what was looked for before is no help now
    field.dispatchEvent(new Event("input"));
    field.focus();
    box.scrollIntoView({ block: "nearest" });
  }
  return open;
}

function option(el, marks, one) {
  return el("button", { type: "button", class: "who-one", role: "option", id: `same-${one.id}`, tabindex: "-1", "aria-selected": "false", "data-act": "entity", "data-value": String(one.id) },
    el("span", {}, el("b", {}, marks.textOf(one.name)), " ", el("small", {}, `${one.id}, ${marks.word(one.type)}`)));
}

function onKey(event, field, options) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const rows = [...options.children];
  const at = rows.findIndex((one) => one.getAttribute("aria-selected") === "true");
  if (step && rows.length) {
    event.preventDefault();
    light(field, options, (at + step + rows.length) % rows.length);
  } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    rows[at]?.click();
  }
}

function light(field, options, at) {
  [...options.children].forEach((one, number) => one.setAttribute("aria-selected", String(number === at)));
  const row = options.children[at];
  if (row) {
    field.setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView?.({ block: "nearest" });
  } else field.removeAttribute("aria-activedescendant");
}
