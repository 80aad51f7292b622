// What was changed in a text: how many characters, and where. The server counts again; its number is the one that counts.

const MOST_CELLS = 2e7; // of the table of distances: some hundred milliseconds
const MOST_WORDS = 4e6; // of the table of words, which is kept whole
const FEW = 16; // changes that are looked for first

/** What two lists begin and end with alike: [length of the beginning, length of the end]. */
function alike(a, b) {
  const most = Math.min(a.length, b.length);
  let begin = 0;
  while (begin < most && a[begin] === b[begin]) begin += 1;
  let end = 0;
  while (end < most - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return [begin, end];
}

/** Characters put in, taken out or replaced; `exact` is false where so much was changed of texts so long that it takes too
 * much time while somebody types: then it is the most that it can be. */
export function charactersChanged(before, after) {
  const [begin, end] = alike(before, after);
  const a = Uint32Array.from(Array.from(before.slice(begin, before.length - end)), (one) => one.codePointAt(0));
  const b = Uint32Array.from(Array.from(after.slice(begin, after.length - end)), (one) => one.codePointAt(0));
  const all = Math.max(a.length, b.length);
  for (let most = Math.max(FEW, Math.abs(a.length - b.length)); ; most *= 2) {
    const wanted = Math.min(most, all);
    if (a.length * Math.min(2 * wanted + 1, b.length) > MOST_CELLS) return { changed: all, exact: false };
    const changed = distanceWithin(a, b, wanted);
    if (changed <= wanted) return { changed, exact: true };
  }
}

/** How many of a list were put in, taken out or replaced if these are at most `most`, and more than `most` if they are more.
 * Of the table only what is so near to its diagonal is looked at (Ukkonen 1985, Algorithms for approximate string matching). */
function distanceWithin(a, b, most) {
  const beyond = most + 1;
  const last = most + b.length - a.length;
  if (last < 0 || last > 2 * most) return beyond;
  const row = Uint32Array.from({ length: 2 * most + 2 }, (_, at) => (at < most || at > 2 * most ? beyond : at - most));
  for (let i = 1; i <= a.length; i += 1) { // row[at] is for column i + at - most
    const own = a[i - 1];
    const to = Math.min(2 * most, b.length - i + most);
    let at = 0;
    let left = beyond;
    if (i <= most) { left = i; row[most - i] = i; at = most - i + 1; }
    for (; at <= to; at += 1) {
      let least = own === b[i + at - most - 1] ? row[at] : row[at] + 1;
      if (row[at + 1] < least) least = row[at + 1] + 1;
      if (left < least) least = left + 1;
      row[at] = least;
      left = least;
    }
    if (to < 2 * most) row[to + 1] = beyond;
  }
  return row[last];
}

/** The words of both texts in order, as [kind, words]: "kept", "out" or "in". */
export function wordsChanged(before, after) {
  const a = before.match(/\s+|\S+/g) || [];
  const b = after.match(/\s+|\S+/g) || [];
  const [begin, end] = alike(a, b);
  const from = a.slice(begin, a.length - end);
  const to = b.slice(begin, b.length - end);
  const middle = from.length * to.length > MOST_WORDS ? [["out", from.join("")], ["in", to.join("")]] : aligned(from, to);
  return joined([["kept", a.slice(0, begin).join("")], ...middle, ["kept", a.slice(a.length - end).join("")]]);
}

/** The longest common subsequence of two lists of words, told as what is kept, taken out and put in. */
function aligned(a, b) {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const parts = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { parts.push(["kept", a[i]]); i += 1; j += 1; }
    else if (j >= b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) { parts.push(["out", a[i]]); i += 1; }
    else { parts.push(["in", b[j]]); j += 1; }
  }
  return parts;
}

/** The same with neighbours of one kind together: what is taken out first, then what is put in. A blank between two
 * changes belongs to them. */
function joined(parts) {
  const found = [];
  let out = "";
  let put = "";
  const end = () => {
    if (out) found.push(["out", out]);
    if (put) found.push(["in", put]);
    out = "";
    put = "";
  };
  parts.forEach(([kind, words], at) => {
    const next = parts[at + 1]?.[0];
    if (kind === "kept" && /^\s+$/.test(words) && (out || put) && next && next !== "kept") { out += words; put += words; }
    else if (kind === "kept") {
      end();
      if (found.at(-1)?.[0] === "kept") found.at(-1)[1] += words;
      else if (words) found.push(["kept", words]);
    }
    else if (kind === "out") out += words;
    else put += words;
  });
  end();
  return found;
}
