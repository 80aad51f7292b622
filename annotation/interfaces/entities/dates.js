// Reads dates as English texts write them: "November 12, 1926" is 1926-11-12. What is not certain stays empty.

const MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
const month = (word) => {
  const short = word.toLowerCase().replace(/\.$/, "");
  const at = short.length < 3 ? -1 : MONTHS.findIndex((name) => name === short || name.slice(0, 3) === short || (short === "sept" && name === "september"));
  return at < 0 ? "" : String(at + 1).padStart(2, "0");
};
const day = (number) => String(Number(number)).padStart(2, "0");

/** Whether a text is a year, a month or a day that the calendar has. */
export function isDate(text) {
  const parts = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/.exec(text);
  if (!parts || parts[1] === "0000") return false;
  const [, year, mon = "01", date = "01"] = parts;
  const found = new Date(`${year}-${mon}-${date}T00:00:00Z`);
  return !Number.isNaN(found.getTime()) && found.toISOString().slice(0, 10) === `${year}-${mon}-${date}`;
}

/** The normal form of a date in words, or "". */
export function normalDate(text) {
  const words = text.replace(/(\d)(st|nd|rd|th)\b/gi, "$1").replace(/,/g, " ").replace(/\bof\b/gi, " ").trim().split(/\s+/);
  let found = "";
  if (words.length === 1) found = /^\d{4}(-\d{2}){0,2}$/.test(words[0]) ? words[0] : "";
  else if (words.length === 2 && month(words[0]) && /^\d{4}$/.test(words[1])) found = `${words[1]}-${month(words[0])}`;
  else if (words.length === 3 && /^\d{4}$/.test(words[2])) {
    if (month(words[0]) && /^\d{1,2}$/.test(words[1])) found = `${words[2]}-${month(words[0])}-${day(words[1])}`;
    else if (month(words[1]) && /^\d{1,2}$/.test(words[0])) found = `${words[2]}-${month(words[1])}-${day(words[0])}`;
  }
  return isDate(found) ? found : "";
}

/** Whether words look like a date, certain or not. */
export function looksLikeDate(text) {
  const words = text.split(/\s+/);
  return /^(1[0-9]|20)\d{2}$/.test(text) || Boolean(normalDate(text)) || (words.length <= 4 && words.some((word) => word !== "may" && month(word) && /^\p{Lu}/u.test(word)) && words.some((word) => /\d/.test(word)));
}

const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const SHORT = 3;
const utc = (text) => new Date(`${text}T00:00:00Z`);
const shifted = (written, days) => new Date(utc(written).getTime() + days * 86400000).toISOString().slice(0, 10);
const dayOf = (word) => {
  const short = word.replace(/\.$/, "");
  return DAYS.findIndex((name) => name === short || (short.length >= SHORT && short.length <= 5 && name.startsWith(short) && name !== short));
};

/** The weekday of a whole date, "Saturday"; "" for anything else. */
export function weekdayOf(text) {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || !isDate(text)) return "";
  const name = DAYS[utc(text).getUTCDay()];
  return name[0].toUpperCase() + name.slice(1);
}

/** Whether two words are a day or a month that is told by another: "last March", "next Saturday". */
export function isToldByAnother(first, word) {
  return /^(last|next)$/i.test(first) && (dayOf(word.toLowerCase()) >= 0 || Boolean(month(word)));
}

/** The date that "Saturday", "yesterday" or "last March" most likely is in a text of that day: a day that news name is
 * the one before, unless they say that it is to come. "" where that cannot be told; whoever judges decides. */
export function proposedDate(text, written) {
  if (!weekdayOf(written)) return "";
  const words = text.toLowerCase().replace(/(\d)(st|nd|rd|th)\b/g, "$1").replace(/,/g, " ").trim().split(/\s+/).filter((word) => !["on", "the", "of", "this", "past", "in", "early", "late", "morning", "afternoon", "evening", "night"].includes(word));
  const ahead = ["next", "coming"].includes(words[0]);
  const back = words[0] === "last";
  const [word, other, third] = ahead || back ? words.slice(1) : words;
  if (third !== undefined || word === undefined) return "";
  if (other === undefined) return byOneWord(word, written, ahead, back);
  const [name, number] = month(word) ? [word, other] : [other, word];
  if (!month(name) || !/^\d{1,2}$/.test(number)) return "";
  const years = [-1, 0, 1].map((step) => `${Number(written.slice(0, 4)) + step}-${month(name)}-${day(number)}`).filter(isDate);
  const apart = (one) => Math.abs(utc(one) - utc(written));
  return years.sort((a, b) => apart(a) - apart(b))[0] || "";
}

function byOneWord(word, written, ahead, back) {
  const near = { yesterday: -1, today: 0, tonight: 0, tomorrow: 1 }[word];
  if (near !== undefined) return ahead || back ? "" : shifted(written, near);
  if (dayOf(word) >= 0) {
    const since = (utc(written).getUTCDay() - dayOf(word) + 7) % 7; // 0: the day itself
    if (ahead) return shifted(written, 7 - since);
    return shifted(written, back && since === 0 ? -7 : -since);
  }
  const year = Number(written.slice(0, 4));
  if (word === "year") return back || ahead ? String(year + (ahead ? 1 : -1)) : String(year);
  if (!month(word)) return "";
  const now = written.slice(5, 7);
  if (ahead) return `${month(word) > now ? year : year + 1}-${month(word)}`;
  return `${month(word) > now || (back && month(word) === now) ? year - 1 : year}-${month(word)}`;
}
