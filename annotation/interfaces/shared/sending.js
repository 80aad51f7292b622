// Sends an answer so that nothing is lost: offline, logged out, or logged in anew, the page stays and says what to do.

const AWAY = "We cannot be reached: perhaps you are offline. Nothing is lost, this page keeps your answer. Send it again when you are back.";

const PAUSE = 2000; // milliseconds after which a busy site is asked once more

/** Posts the form to a page of ours that answers a script; with a fresh token once more if that is all that was wrong,
 * and once more where the site was busy: what comes twice is stored once. */
export async function post(form, url) {
  let waited = false;
  let renewed = false;
  for (;;) {
    const reply = await fetch(url, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" }, signal: AbortSignal.timeout(20000) });
    const said = await reply.json();
    if (reply.status === 503 && !waited) {
      waited = true;
      await new Promise((go) => { setTimeout(go, PAUSE); });
      continue;
    }
    const token = form.elements.csrfmiddlewaretoken;
    if (!said.csrf || !token || renewed) return { reply, said };
    renewed = true;
    token.value = said.csrf;
  }
}

/** What is shown when somebody is logged out: the sentence, and where to log in without leaving the page. */
export function wayBack(said) {
  const link = Object.assign(document.createElement("a"), { href: said.login, target: "_blank", rel: "noopener", textContent: "Log in" });
  return [`${said.error} `, link];
}

/** Whether the question that came with the answer to the last one stands on the page now: one of the same kind. */
function shown({ next, page }, here) {
  const came = new DOMParser().parseFromString(page, "text/html");
  const script = (of) => of.querySelector('script[src*="/interfaces/"]')?.getAttribute("src");
  if (!came.getElementById("answer") || script(came) !== script(document)) return false;
  here.abort();
  history.pushState(null, "", next);
  document.title = came.title;
  document.querySelector("header.top").replaceWith(came.querySelector("header.top"));
  document.getElementById("content").replaceWith(came.getElementById("content"));
  scrollTo(0, 0);
  document.getElementById("content").focus({ preventScroll: true });
  globalThis.kbpoKeys?.refresh();
  return true;
}

addEventListener("popstate", () => location.reload()); // what stands there now is another question

/** Sends the answer and goes on. Nothing is gone before the server has it; `tell` shows why not, `busy` whether it is on
 * its way. */
export async function send(form, draft, { tell, busy, here = null, begin = null }) {
  if (draft.sending) return;
  draft.sending = true;
  if (draft.url) draft.remember();
  busy(true);
  const stay = (...parts) => { draft.sending = false; busy(false); tell(...parts); };
  if (!navigator.onLine) { stay(AWAY); return; }
  try {
    if (!draft.url) { form.submit(); return; }
    if (!("told" in form.dataset)) { // the answer is a page, not words for a script: first see whether anybody is there
      const reply = await fetch(draft.url, { method: "POST", body: new FormData(form), signal: AbortSignal.timeout(20000) });
      if (reply.status >= 500 && reply.status !== 503) { stay(AWAY); return; }
      draft.sent();
      form.submit();
      return;
    }
    const { said } = await post(form, form.action || location.href);
    if (said.next) {
      draft.sent();
      if (!begin || !said.page || !shown(said, here)) location.assign(said.next);
      else begin();
    } else if (said.login) stay(...wayBack(said));
    else stay(said.error || AWAY);
  } catch { stay(AWAY); }
}
