// The document on the page: one element a word, painted by comparing with what stands there; words by mouse and finger.

/** Builds the text and reports what is pointed at: `onPick(token)`, `onMark(first, last)` after dragging or twice. */
export class DocumentView {
  constructor(place, marks, { onPick, onMark, onDrag }) {
    Object.assign(this, { place, marks, onPick, onMark, onDrag });
    this.tokens = [];
    this.gaps = [];
    this.painted = marks.words.map(() => "");
    this.sentences = [];
    this.build();
    this.listen();
  }

  build() {
    const doc = document.createElement("div");
    doc.className = "doc words";
    let end = 0;
    let sentence = null;
    this.marks.words.forEach((word, at) => {
      const [begin, after] = this.marks.spans[at];
      const number = this.marks.sentenceOf[at];
      if (!sentence || this.sentences.length <= number) {
        while (this.sentences.length <= number) {
          sentence = document.createElement("span");
          sentence.className = "s";
          this.sentences.push(sentence);
        }
        doc.append(sentence);
      }
      const gap = document.createElement("i");
      gap.textContent = this.marks.slice(end, begin);
      const token = document.createElement("span");
      token.className = "t";
      token.dataset.t = String(at);
      token.textContent = word;
      sentence.append(gap, token);
      this.gaps.push(gap);
      this.tokens.push(token);
      end = after;
    });
    this.place.replaceChildren(doc);
  }

  /** Paints the marks, the words chosen, and what is not read yet. Only what differs is touched. */
  paint({ first, last, active, read }) {
    const words = this.painted.length;
    const wanted = new Array(words).fill("");
    for (const one of this.marks.mentions) {
      const chosen = one.id === active ? " now" : "";
      for (let at = one.first; at < one.last; at += 1) {
        if (wanted[at]) { wanted[at] += " over"; continue; }
        const edge = (at === one.first ? " first" : "") + (at === one.last - 1 ? ` last|${one.entity}` : "");
        wanted[at] = `m ${classOf(one.type)}${one.open ? " open" : ""}${chosen}${edge}`;
      }
    }
    for (let at = first; at < last && at < words; at += 1) wanted[at] += `~ sel${at === first ? " sel-first" : ""}${at === last - 1 ? " sel-last" : ""}`;
    for (let at = 0; at < words; at += 1) {
      if (wanted[at] !== this.painted[at]) this.touch(at, wanted[at]);
    }
    this.painted = wanted;
    if (this.read === read) return;
    this.read = read;
    this.sentences.forEach((one, number) => one.classList.toggle("unread", number >= read));
  }

  touch(at, wanted) {
    const [mark, sel = ""] = wanted.split("~");
    const [look, rest = ""] = mark.split("|");
    const number = rest.split(" ")[0];
    const over = rest.includes("over") ? " over" : "";
    const token = this.tokens[at];
    token.className = `t ${look}${over}${sel}`;
    if (number) token.dataset.n = number;
    else delete token.dataset.n;
    const inside = look && !look.includes(" first");
    this.gaps[at].className = `${inside ? look.replace(/ last.*/, "") : ""}${sel && !sel.includes("sel-first") ? " sel" : ""}`.trim();
  }

  show(at) {
    const token = this.tokens[at];
    if (!token) return;
    const box = token.getBoundingClientRect();
    const sheet = document.querySelector(".inspector.sheet")?.getBoundingClientRect();
    const bottom = sheet && sheet.height && sheet.width > innerWidth - 20 ? sheet.top : innerHeight - 60;
    if (box.top < 70 || box.bottom > bottom) scrollBy({ top: box.top - Math.max(90, bottom / 2.5) });
  }

  // -- Mouse and finger. A finger scrolls: it picks words, it does not drag over them.

  listen() {
    let from = -1;
    let to = -1;
    this.place.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      from = to = this.tokenAt(event.target);
    });
    this.place.addEventListener("pointermove", (event) => {
      if (from < 0 || !(event.buttons & 1)) return;
      const at = this.tokenAt(document.elementFromPoint(event.clientX, event.clientY), from);
      if (at < 0 || at === to) return;
      to = at;
      this.onDrag(Math.min(from, to), Math.max(from, to) + 1);
    });
    addEventListener("pointerup", () => {
      if (from >= 0 && to >= 0 && from !== to) this.onMark(Math.min(from, to), Math.max(from, to) + 1);
      this.dragged = from >= 0 && from !== to;
      from = to = -1;
    });
    this.place.addEventListener("click", (event) => {
      const at = this.tokenAt(event.target);
      if (at >= 0 && !this.dragged) this.onPick(at, event.shiftKey);
      this.dragged = false;
    });
    this.place.addEventListener("dblclick", (event) => {
      const at = this.tokenAt(event.target);
      if (at >= 0 && !this.marks.at(at)) this.onMark(at, at + 1);
    });
  }

  /** The word there; a gap is the word after it, or, where a drag from another came that far, the word before. */
  tokenAt(element, from = Infinity) {
    const isGap = element?.localName === "i";
    const token = isGap ? element.nextElementSibling : element?.closest?.(".t");
    if (!token || !this.place.contains(token)) return -1;
    const at = Number(token.dataset.t);
    return isGap && at > from ? at - 1 : at;
  }
}

/** The class that tells a type by colour and underline, as in the viewer of documents. */
export function classOf(type) {
  const name = type.toLowerCase();
  if (!type) return "t-none";
  return ["per", "org", "loc", "gpe", "date", "time", "num", "misc"].includes(name) ? `t-${name}` : name === "fac" ? "t-loc" : "t-misc";
}
