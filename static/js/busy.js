// A form that is on its way says so. <button data-busy="Reading the file" data-busy-long="Reading the file, about 5 s">
// After 300 ms the button says what it is doing, after 3 s how long it will take. A second press does nothing.

document.addEventListener("submit", (event) => {
  const button = event.submitter || event.target.querySelector("button:not([type=button])");
  if (!button?.dataset.busy || event.defaultPrevented) return;
  if (button.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    return;
  }
  const words = button.innerHTML;
  // Not `disabled`: a disabled button's own name and value would not be sent.
  button.setAttribute("aria-disabled", "true");
  const timers = [
    setTimeout(() => { button.textContent = button.dataset.busy; }, 300),
    setTimeout(() => { button.textContent = button.dataset.busyLong || button.dataset.busy; }, 3000),
  ];
  // Coming back by the browser's own button finds the form as it was.
  addEventListener("pageshow", () => {
    timers.forEach(clearTimeout);
    button.removeAttribute("aria-disabled");
    button.innerHTML = words;
  }, { once: true });
});
