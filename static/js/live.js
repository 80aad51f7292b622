// A part of a page that keeps itself up to date.
//
// <section data-live="/submissions/7/?part=live" data-live-every="5"> … <span data-live-status></span> </section>
// The address answers with the section anew; when the new section has no data-live, the polling is over.
// A <template data-live-also="ID"> in it brings the new content of an element elsewhere on the page.
// What was unfolded (a details with an id) and chosen stays so.
// What was typed stays too; while a field with something typed has no successor, the section is not replaced.
// A new figure is announced politely if it stands in an element with data-live-say. Nothing moves while somebody
// types in the section or looks at another tab. After three failures the section says so and offers a reload.

const FAILURES = 3;

function watch(section) {
  const every = Math.max(2, Number(section.dataset.liveEvery) || 5) * 1000;
  let root = section;
  let updated = Date.now();
  let failures = 0;
  let etag = "";
  let timer = 0;
  let asking = false;
  const voice = document.createElement("div");
  voice.className = "vh";
  voice.setAttribute("aria-live", "polite");
  document.body.append(voice);

  const place = () => root.querySelector("[data-live-status]");

  function tell() {
    const status = place();
    if (!status || failures >= FAILURES) return;
    const seconds = Math.round((Date.now() - updated) / 1000);
    status.textContent = seconds < 90 ? `Updated ${seconds} s ago` : `Updated ${Math.round(seconds / 60)} min ago`;
  }

  function giveUp() {
    const status = place();
    if (!status) return;
    const since = new Date(updated).toISOString().slice(11, 16);
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Reload the page";
    status.replaceChildren(`Not updated since ${since} UTC. `, link);
  }

  function replace(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("[data-live], [data-live-done]");
    if (!fresh) throw new Error("the answer holds no live section");
    const typed = [...root.querySelectorAll("input:not([type=radio]):not([type=hidden]), textarea")]
      .filter((one) => one.value !== one.defaultValue).map((one) => [one.id, one.value]);
    if (typed.some(([id]) => !id || !fresh.querySelector(`#${CSS.escape(id)}`))) return false;
    const said = root.querySelector("[data-live-say]")?.textContent.trim();
    const open = [...root.querySelectorAll("details[id][open]")].map((one) => one.id);
    const chosen = [...root.querySelectorAll("input[type=radio]:checked")].map((one) => [one.name, one.value]);
    const kept = root.contains(document.activeElement) ? document.activeElement.id : "";
    root.replaceWith(fresh);
    root = fresh;
    open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    typed.forEach(([id, value]) => { document.getElementById(id).value = value; });
    [...root.querySelectorAll("input[type=radio]")]
      .filter((one) => chosen.some(([name, value]) => one.name === name && one.value === value))
      .forEach((one) => { one.checked = true; });
    root.querySelectorAll("template[data-live-also]").forEach((one) => {
      document.getElementById(one.dataset.liveAlso)?.replaceChildren(one.content.cloneNode(true));
    });
    root.dispatchEvent(new CustomEvent("live:replaced", { bubbles: true }));
    if (kept) document.getElementById(kept)?.focus();
    const says = root.querySelector("[data-live-say]")?.textContent.trim();
    if (says && says !== said) voice.textContent = says;
    return true;
  }

  const isBusy = () => document.hidden || root.matches(":active") || (root.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  async function ask() {
    clearTimeout(timer);
    if (asking) return;
    asking = true;
    if (!isBusy()) {
      try {
        const headers = { Accept: "text/html", "X-Requested-With": "live" };
        if (etag) headers["If-None-Match"] = etag;
        const answer = await fetch(root.dataset.live, { headers, credentials: "same-origin", signal: AbortSignal.timeout(10000) });
        if (!answer.ok && answer.status !== 304) throw new Error(`answered ${answer.status}`);
        const html = answer.status === 304 ? null : await answer.text();
        if (!isBusy()) { // nor does anything move for whoever began to type or to press meanwhile
          const replaced = html === null || replace(html);
          if (replaced && html !== null) etag = answer.headers.get("ETag") || "";
          if (replaced) updated = Date.now();
        }
        failures = 0;
      } catch {
        failures += 1;
        if (failures === FAILURES) giveUp();
      }
    }
    asking = false;
    if (!("live" in root.dataset)) return clearInterval(ticking);
    tell();
    timer = setTimeout(ask, every * Math.min(2 ** failures, 12));
  }

  const ticking = setInterval(tell, 1000);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && "live" in root.dataset) ask();
  });
  timer = setTimeout(ask, every);
}

document.querySelectorAll("[data-live]").forEach(watch);
