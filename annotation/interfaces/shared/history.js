// Undo and redo of states that are values, for every annotation page.

export class History {
  constructor(most = 400) {
    Object.assign(this, { most, past: [], future: [] });
  }

  get canUndo() { return this.past.length > 0; }
  get canRedo() { return this.future.length > 0; }

  /** Remembers the state before a change. What was undone before cannot be done again then. */
  push(state) {
    this.past.push(state);
    if (this.past.length > this.most) this.past.shift();
    this.future = [];
  }

  /** The state before, given the one now; undefined if there is none. */
  undo(now) { return turn(this.past, this.future, now); }
  redo(now) { return turn(this.future, this.past, now); }

  clear() { this.past = []; this.future = []; }
}

function turn(from, to, now) {
  if (!from.length) return undefined;
  to.push(now);
  return from.pop();
}
