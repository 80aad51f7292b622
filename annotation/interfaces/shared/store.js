// What this browser keeps. In the frame of another site a browser may forbid it, and throws: then nothing is kept here.

/** What is kept under a name; null if nothing is, or nothing may be. */
export function recall(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

/** Keeps a text under a name (null: forgets it); whether that was possible. */
export function keep(name, text) {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
    return true;
  } catch { return false; }
}
