// The precision slider: a range over the rows of the table below it, and the choice said in a sentence.
// A button with data-slider-order in the same form takes the words "Order up to 212 judgments, at most $31.80".

function start(slider) {
  const choices = [...slider.querySelectorAll("tbody input[type=radio]")];
  const holder = slider.querySelector("[data-slider-range]");
  const range = holder.querySelector("input");
  const says = slider.querySelector("[data-slider-says]");
  const order = (slider.closest("form") || document).querySelector("[data-slider-order]");

  function strong(text) {
    const element = document.createElement("b");
    element.textContent = text;
    return element;
  }

  function tell() {
    const index = choices.findIndex((one) => one.checked);
    if (index < 0) return;
    const { half, n, cost, time } = choices[index].dataset;
    range.value = index;
    range.setAttribute("aria-valuetext", `${half}, at most ${n} judgments and ${cost}`);
    range.style.setProperty("--at", `${(100 * index) / Math.max(1, choices.length - 1)}%`);
    says.replaceChildren(strong(half), " takes at most ", strong(`${n} more judgments`), " and ", strong(cost), ", about ", strong(time), ".");
    if (order) order.textContent = `Order up to ${n} judgments, at most ${cost}`;
  }

  range.addEventListener("input", () => {
    choices[Number(range.value)].checked = true;
    tell();
  });
  slider.addEventListener("change", tell);
  holder.hidden = choices.length < 2;
  tell();
}

document.querySelectorAll("[data-slider]").forEach(start);
document.addEventListener("live:replaced", (event) => event.target.querySelectorAll("[data-slider]").forEach(start));
