// The marks in one document: mentions and the entities that they name, with undo; what is open, what is likely.
//
// A state is a value: { mentions, links, names, read }. A mention is { id, first, last, type, entity, value, open };
// tokens first … last - 1; `guessed` if nobody chose its entity. Nothing here touches the page.

import { isDate, isToldByAnother, looksLikeDate, normalDate, proposedDate } from "./dates.js";
import { History } from "../shared/history.js";

const NOT_IN_NAMES = /^(an?|the|his|her|its|their|my|our|whose|former|then|now|new|old|retired|acting|first|of|and|or|is|was|as|by|with|to|for|in|at|on)$/i;
const BEGINS_NO_NAME = /^(an?|the|his|her|its|their|my|our|of|and|or|as|by|with|to|for|from|in|at|on|after|before|when|while|if|but)$/i;
const EMPTY = { mentions: [], links: {}, names: {} };

export class Marks {
  constructor(data) {
    this.types = new Map(data.types.map((one) => [one.name, one]));
    this.dateType = data.types.find((one) => one.value === "date")?.name || "";
    const chars = /[\ud800-\udfff]/.test(data.text) ? Array.from(data.text) : null; // offsets count characters, not halves of them
    this.slice = (begin, end) => (chars ? chars.slice(begin, end).join("") : data.text.slice(begin, end));
    this.spans = data.tokens;
    this.words = data.tokens.map(([begin, end]) => this.slice(begin, end));
    this.sentenceOf = sentencesOf(data.tokens, data.sentences);
    this.texts = new Map();
    const within = (at) => at > 0 && this.sentenceOf[at] === this.sentenceOf[at - 1] && /[\p{L}\p{N},]$/u.test(this.words[at - 1]);
    this.named = new Set(this.words.filter((word, at) => /^\p{Lu}/u.test(word) && word !== "I" && within(at))); // names also where they begin a sentence
    this.cues = new Set(data.types.flatMap((one) => one.cues || [])); // small words that some type begins with
    this.written = data.date || "";
    this.counts = data.types.some((one) => one.value === "number");
    this.state = EMPTY;
    this.history = new History();
  }

  // -- Reading

  get mentions() { return this.state.mentions; }
  find(id) { return this.state.mentions.find((one) => one.id === id) || null; }
  text(first, last) {
    const key = first * 65536 + last;
    if (!this.texts.has(key)) this.texts.set(key, this.slice(this.spans[first][0], this.spans[last - 1][1]).replace(/\s+/g, " "));
    return this.texts.get(key);
  }
  textOf(mention) { return this.text(mention.first, mention.last); }
  linkable(type) { return Boolean(type) && this.types.get(type)?.value == null; }
  isDate(type) { return this.types.get(type)?.value === "date"; }
  proposed(mention) { return proposedDate(this.textOf(mention), this.written); }
  linkOf(entity) { return this.state.links[entity] || ""; }

  /** The shortest mention over a token. */
  at(token) {
    const over = this.state.mentions.filter((one) => one.first <= token && token < one.last);
    return over.sort((a, b) => (a.last - a.first) - (b.last - b.first))[0] || null;
  }

  /** The mention by whose words an entity is called: the one that was chosen, else the first longest. */
  nameOf(entity) { return this.entities().get(entity)?.name || null; }

  /** Entity -> { id, name, type, mentions }, in the order of their first mentions. */
  entities() {
    if (this.known?.state === this.state) return this.known.entities;
    const found = new Map();
    for (const mention of this.state.mentions) {
      if (!found.has(mention.entity)) found.set(mention.entity, { id: mention.entity, mentions: [] });
      found.get(mention.entity).mentions.push(mention);
    }
    for (const one of found.values()) {
      const chosen = one.mentions.find((own) => own.id === this.state.names[one.id]);
      one.name = chosen || one.mentions.reduce((best, own) => (this.textOf(own).length > this.textOf(best).length ? own : best));
      one.type = one.name.type;
    }
    this.known = { state: this.state, entities: found };
    return found;
  }

  /** Who a mention may be, likeliest first: the same words, words in common, then the nearest. As many as there are digits. */
  candidates(mention, most = 9) {
    if (!this.linkable(mention.type)) return [];
    const own = this.textOf(mention).toLowerCase();
    const rated = [];
    for (const one of this.entities().values()) {
      const others = one.mentions.filter((other) => other.id !== mention.id);
      if (!others.length || one.type !== mention.type) continue;
      const names = others.map((other) => this.textOf(other).toLowerCase());
      const like = Math.max(...names.map((name) => this.likeness(own, name)));
      const fullest = names.reduce((best, name) => (name.length > best.length ? name : best)); // “Ada Hale”, also called “Hale”, is no “Ben Hale”
      const likeness = like === 3 || this.likeness(own, fullest) ? like : 0;
      const apart = Math.min(...others.map((other) => Math.abs(other.first - mention.first)));
      rated.push({ id: one.id, name: this.textOf(one.name), likeness, apart, where: this.where(mention, others) });
    }
    return rated.sort((a, b) => b.likeness - a.likeness || a.apart - b.apart).slice(0, most);
  }

  /** Every entity that a mention may be said to be: those of its own type first, else in the order of the text. */
  others(mention) {
    const found = [...this.entities().values()].filter((one) => this.linkable(one.type) && one.mentions.some((other) => other.id !== mention.id));
    return found.sort((a, b) => (b.type === mention.type) - (a.type === mention.type));
  }

  /** Those of some entities that one of the words for them has in it, whatever the case and the accents. */
  namedLike(entities, words) {
    const wanted = folded(words.trim());
    return entities.filter((one) => String(one.id) === wanted || one.mentions.some((own) => folded(this.textOf(own)).includes(wanted)));
  }

  likeness(one, other) {
    if (one === other) return 3;
    const [short, long] = [one, other].map((text) => text.split(" ")).sort((a, b) => a.length - b.length);
    return short.every((word) => long.includes(word)) ? 2 : initials(long) === short.join("").replace(/\./g, "") && short.join("").length > 1 ? 1 : 0;
  }

  where(mention, others) {
    const apart = others.map((other) => this.sentenceOf[mention.first] - this.sentenceOf[other.first]);
    const near = apart.reduce((best, one) => (Math.abs(one) < Math.abs(best) ? one : best));
    if (near === 0) return "same sentence";
    const number = Math.abs(near);
    return `${number === 1 ? "one sentence" : `${number} sentences`} ${near > 0 ? "before" : "after"}`;
  }

  /** What must be settled before it can be sent: { mention, sentence }, in the order of the text. */
  conflicts() {
    const found = [];
    const say = (mention, sentence) => found.push({ mention: mention.id, sentence });
    const names = new Map([...this.entities().values()].map((one) => [one.id, one.name]));
    let before = null;
    for (const one of this.state.mentions) {
      const words = `“${this.textOf(one)}”`;
      if (before && one.first < before.last) say(one, `${words} overlaps “${this.textOf(before)}”. Keep one of them.`);
      if (!before || one.last > before.last) before = one;
      const name = names.get(one.entity);
      if (!one.type) say(one, `What is ${words}? Choose a type.`);
      else if (this.isDate(one.type) && one.value !== "none" && !isDate(one.value)) say(one, `Which date is ${words}? Write it as 2013-03, or say that it cannot be told.${this.proposed(one) ? ` Perhaps ${this.proposed(one)}.` : ""}`);
      else if (name.id !== one.id && name.type !== one.type) say(one, `${words} is marked ${this.word(one.type)}, but the same as “${this.textOf(name)}”, which is marked ${this.word(name.type)}.`);
      else if (one.open) say(one, `${words} could be two ${one.type.startsWith("PER") ? "people" : "things"}. Read the sentence and choose.`);
    }
    return found;
  }

  word(type) { return (this.types.get(type)?.word || "nothing").toLowerCase(); }

  /** The next words from a token on that look like something of the types asked and are not marked: [first, last], or null. */
  nextUnmarked(from) {
    const marked = new Uint8Array(this.words.length + 1);
    for (const one of this.state.mentions) marked.fill(1, one.first, one.last);
    const again = this.repeated(marked);
    for (let step = 0; step < this.words.length; step += 1) {
      const at = (from + step) % this.words.length;
      if (marked[at]) continue;
      const end = () => this.dateEnd(at, marked) || this.endOf(at, marked, (word) => /^\p{Lu}/u.test(word), "of");
      if (again.has(at)) return [at, Math.max(again.get(at), this.looksNamed(at) ? end() : 0)]; // “Osted”, then “Osted Line”
      const inside = at > 0 && step > 0 && !marked[at - 1] && this.sentenceOf[at - 1] === this.sentenceOf[at];
      if (this.looksNamed(at) && !(inside && this.looksNamed(at - 1))) return [this.dateBegin(at, marked), end()];
      if (this.isCue(at) && !(inside && this.isCue(at - 1))) return this.around(at, marked);
    }
    return null;
  }

  /** Where words that are not marked stand that are marked elsewhere: first token -> last. */
  repeated(marked) {
    const found = new Map();
    const texts = new Map();
    for (const one of this.state.mentions) texts.set(this.textOf(one).toLowerCase(), one.last - one.first);
    for (let at = 0; at < this.words.length; at += 1) {
      for (const length of new Set(texts.values())) {
        const last = at + length;
        if (last > this.words.length || marked.subarray(at, last).some(Boolean)) continue;
        if (texts.get(this.text(at, last).toLowerCase()) === length && !(found.get(at) > last)) found.set(at, last);
      }
    }
    return found;
  }

  /** Where “last March” begins that is found at its month; the word itself elsewhere. */
  dateBegin(at, marked) {
    const whole = this.dateType && at > 0 && !marked[at - 1] && this.sentenceOf[at - 1] === this.sentenceOf[at];
    return whole && isToldByAnother(this.words[at - 1], this.words[at]) ? at - 1 : at;
  }

  /** Where “October 25, 1942” ends that begins at a word; 0 if no date does. */
  dateEnd(at, marked) {
    if (!this.dateType) return 0;
    for (let last = Math.min(at + 4, this.words.length); last > at + 1; last -= 1) {
      const free = !marked.subarray(at, last).some(Boolean) && this.sentenceOf[last - 1] === this.sentenceOf[at];
      if (free && /\d$/.test(this.words[last - 1]) && normalDate(this.text(at, last))) return last;
    }
    return 0;
  }

  endOf(at, marked, goesOn, through = null) {
    let last = at + 1;
    const follows = (one) => one < this.words.length && !marked[one] && goesOn(this.words[one]) && this.sentenceOf[one] === this.sentenceOf[at];
    while (follows(last) || (this.words[last] === through && !marked[last] && follows(last + 1))) last += 1; // “University of Bergen”
    return last;
  }

  /** The words around one that some type begins with: “its finance director”, “professor of chemistry”. */
  around(at, marked) {
    const same = (one) => one >= 0 && one < this.words.length && !marked[one] && this.sentenceOf[one] === this.sentenceOf[at];
    const small = (one) => same(one) && /^\p{Ll}{2,}/u.test(this.words[one]) && !NOT_IN_NAMES.test(this.words[one]);
    const first = small(at - 1) && same(at - 2) && NOT_IN_NAMES.test(this.words[at - 2]) ? at - 1 : at;
    const cues = (from) => this.endOf(from, marked, (word) => this.cues.has(word.toLowerCase()));
    let last = cues(at);
    while (small(last) && same(last + 1) && this.cues.has(this.words[last + 1].toLowerCase())) last = cues(last + 1); // “chief technology officer”
    return [first, same(last) && this.words[last] === "of" && small(last + 1) ? last + 2 : last];
  }

  /** Whether a word in small letters is one that some type begins with, or a figure where numbers are asked. */
  isCue(at) { return this.cues.has(this.words[at].toLowerCase()) || (this.counts && /\d/.test(this.words[at])); }

  looksNamed(at) {
    const word = this.words[at];
    if (this.dateType && /^(1[0-9]|20)\d{2}s?$/.test(word)) return true;
    if (!/^\p{Lu}/u.test(word) || word === "I") return false;
    const begins = at === 0 || this.sentenceOf[at] !== this.sentenceOf[at - 1] || /^["“'‘(]$/.test(this.words[at - 1]);
    if ((begins || /^[—–:]$/.test(this.words[at - 1])) && BEGINS_NO_NAME.test(word)) return false; // “At Osted Line’s office” names the Osted Line
    if (this.named.has(word) || /^\p{Lu}{2,}$/u.test(word)) return true;
    return !begins || (at + 1 < this.words.length && /^\p{Lu}/u.test(this.words[at + 1]));
  }

  // -- Changing: every change is one step of undo

  change(next) {
    this.history.push(this.state);
    this.state = { ...this.state, ...next };
  }

  undo() { return this.turn(this.history.undo(this.state)); }
  redo() { return this.turn(this.history.redo(this.state)); }

  turn(state) {
    if (state) this.state = state;
    return Boolean(state);
  }

  /** Marks tokens and returns the mention; without a type it is guessed from the same words elsewhere, or left open. */
  mark(first, last, type = "") {
    const there = this.state.mentions.find((one) => one.first === first && one.last === last);
    if (there) return type && type !== there.type ? this.retype(there.id, type) : there;
    const id = 1 + Math.max(0, ...this.state.mentions.map((one) => one.id));
    const blank = { id, first, last, type, entity: 0, value: "", open: false, guessed: false };
    const made = this.placed({ ...blank, type: type || this.guess(blank) });
    this.change({ mentions: inOrder([...this.state.mentions, made]) });
    return made;
  }

  guess(mention) {
    const own = this.text(mention.first, mention.last).toLowerCase();
    const rated = this.state.mentions.filter((one) => one.type).map((one) => [this.likeness(own, this.textOf(one).toLowerCase()), one.type]);
    const best = Math.max(0, ...rated.map(([likeness]) => likeness));
    const types = new Set(rated.filter(([likeness]) => likeness === best && best >= 2).map(([, type]) => type));
    if (types.size === 1) return [...types][0];
    return this.dateType && looksLikeDate(this.text(mention.first, mention.last)) ? this.dateType : "";
  }

  /** A mention with the entity that it most likely names; open where two are as likely. */
  placed(mention) {
    const value = this.isDate(mention.type) ? normalDate(this.textOf(mention)) || this.valueSaid(mention) : "";
    const likely = this.candidates(mention).filter((one) => one.likeness > 0);
    const best = likely.filter((one) => one.likeness === likely[0].likeness);
    if (!best.length) return { ...mention, value, entity: mention.entity || this.newEntity(), open: false, guessed: false };
    return { ...mention, value, entity: best[0].id, open: best.length > 1, guessed: true };
  }

  /** The date that the same words were said to be elsewhere; "" where nothing or two things were said. */
  valueSaid(mention) {
    const own = this.textOf(mention).toLowerCase();
    const same = this.state.mentions.filter((one) => one.id !== mention.id && one.type === mention.type && one.value && this.textOf(one).toLowerCase() === own);
    const said = new Set(same.map((one) => one.value));
    return said.size === 1 ? [...said][0] : "";
  }

  newEntity() {
    const used = new Set(this.state.mentions.map((one) => one.entity));
    let number = 1;
    while (used.has(number)) number += 1;
    return number;
  }

  update(id, change) {
    let found = null;
    const mentions = this.state.mentions.map((one) => (one.id === id ? (found = { ...one, ...change }) : one));
    return [found, mentions];
  }

  retype(id, type) {
    const mention = this.find(id);
    const alone = this.state.mentions.filter((one) => one.entity === mention.entity).length === 1;
    const free = alone || mention.guessed || !this.linkable(type); // an entity that was guessed was guessed for the old type
    const asked = free ? this.placed({ ...mention, type, entity: alone ? mention.entity : 0 }) : { ...mention, type, value: "", open: false };
    if (!this.linkable(type)) asked.entity = alone ? mention.entity : this.newEntity();
    const [found, mentions] = this.update(id, asked);
    this.change({ mentions });
    return found;
  }

  /** Gives all mentions of an entity one type. */
  retypeAll(entity, type) {
    this.change({ mentions: this.state.mentions.map((one) => (one.entity === entity ? { ...one, type } : one)) });
  }

  /** Says that a mention names an entity; 0 is a new one. */
  assign(id, entity) {
    const [found, mentions] = this.update(id, { entity: entity || this.newEntity(), open: false, guessed: false });
    this.change({ mentions });
    return found;
  }

  resize(id, first, last) {
    const [found, mentions] = this.update(id, { first, last });
    this.change({ mentions: inOrder(mentions) });
    return found;
  }

  remove(id) { this.change({ mentions: this.state.mentions.filter((one) => one.id !== id) }); }
  value(id, value) { this.change({ mentions: this.update(id, { value })[1] }); }
  link(entity, title) { this.change({ links: { ...this.state.links, [entity]: title } }); }
  name(entity, mention) { this.change({ names: { ...this.state.names, [entity]: mention } }); }

  // -- To the server and back

  toJson() {
    const names = new Map([...this.entities().values()].map((one) => [one.id, one.name]));
    const span = (one) => [this.spans[one.first][0], this.spans[one.last - 1][1]];
    return this.state.mentions.map((one) => {
      const name = names.get(one.entity);
      const sent = { span: span(one), type: one.type, canonical: span(this.linkable(one.type) ? name : one), entity: one.entity };
      if (one.value) sent.value = one.value;
      if (name.id === one.id && this.linkable(one.type) && this.linkOf(one.entity)) sent.link = this.linkOf(one.entity);
      if (name.id === one.id && this.state.names[one.entity] === one.id) sent.named = true;
      if (one.open) sent.open = true;
      if (one.guessed) sent.guessed = true;
      return sent;
    });
  }

  fromJson(rows) {
    const first = new Map(this.spans.map(([begin], at) => [begin, at]));
    const last = new Map(this.spans.map(([, end], at) => [end, at + 1]));
    const links = {};
    const names = {};
    const numbers = new Map();
    const mentions = [];
    for (const row of Array.isArray(rows) ? rows : []) {
      const [from, to] = [first.get(row.span?.[0]), last.get(row.span?.[1])];
      if (from === undefined || to === undefined || from >= to) continue;
      const id = mentions.length + 1;
      const name = String(row.canonical || row.span);
      if (!numbers.has(name)) numbers.set(name, numbers.size + 1);
      const entity = Number(row.entity) || numbers.get(name); // what we wrote ourselves has no numbers
      mentions.push({ id, first: from, last: to, type: this.types.has(row.type) ? row.type : "", entity, value: String(row.value || ""), open: Boolean(row.open), guessed: Boolean(row.guessed) });
      if (row.link) links[entity] = String(row.link);
      if (row.named) names[entity] = id;
    }
    this.state = { mentions: inOrder(mentions), links, names };
    this.history.clear();
  }
}

function inOrder(mentions) { return mentions.sort((a, b) => a.first - b.first || b.last - a.last); }
function initials(words) { return words.filter((word) => /^\p{L}/u.test(word) && !/^(of|the|and|for|in)$/.test(word)).map((word) => word[0]).join(""); }
function folded(text) { return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase(); }

function sentencesOf(tokens, sentences) {
  let at = 0;
  return tokens.map(([begin]) => {
    while (at + 1 < sentences.length && begin >= sentences[at + 1][0]) at += 1;
    return at;
  });
}
