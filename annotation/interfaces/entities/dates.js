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
