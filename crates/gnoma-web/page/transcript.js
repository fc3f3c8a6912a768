// The conversation: what was said, what was done, and what is being written, drawn at most once a frame.

import { named } from "./fold.js";
import { Card, Draft, Looks, picture } from "./cards.js";
import { tally } from "./diff.js";
import { baseName, byId, clean, count, duration, h, iconButton, money, short, tokens } from "./dom.js";
import { icon } from "./icons.js";
import { Growing, hasReferences, markdown } from "./md.js";
import { copyButton, hear } from "./toast.js";
import { armName, ending, PLAN, sentence } from "./words.js";

/** A page that is not seen draws so often. */
const HIDDEN_MS = 1000;
/** Characters of thinking that are drawn while it is written. */
const MAX_THINKING = 8000;
/** What drawing may take of a frame; the browser then takes several times as long to lay it out. */
const FRAME_MS = 3;
/** Between two drawings of what is being written: often enough for whoever reads along. */
const PAUSE_MS = 40;
/** How long the next drawing waits, as a multiple of what the frame before took, so that several pages leave each other and the person room. */
const REST = 1;
/** Characters of a message that are drawn at once; a longer one is drawn over several frames. */
const MAX_AT_ONCE = 4000;
/** What gnoma itself tells a model begins so. */
const SYSTEM_NOTE = "[system] ";
/** Pixels from the end that still count as the end. */
const NEAR = 80;
/** Prompts that ArrowUp brings back. */
const MAX_PROMPTS = 200;

const newTurn = () => ({ files: new Map(), answer: "", arm: null, micro_usd: null, calls: false, isOver: true });

export class Transcript {
  #messages = byId("messages");
  #live = byId("live");
  #scroller = byId("transcript");
  #ops = [];
  #scheduled = false;
  #cards = new Map();
  #early = new Map();
  #growing = null; #answer = null;
  /** What is drawn in the conversation of an answer that is being written. */
  #begun = [];
  #thinking = null; #thought = "";
  #drafts = new Map();
  #dirty = new Set();
  #follows = true;
  #held = false;
  /** When it may be drawn again. */
  #next = 0;
  #started = 0;
  #turn = newTurn();
  #retry = null;
  /** What is drawn now lies before what is there. */
  #isOlder = false;
  #actions;
  /** What the person wrote, the oldest first. */
  prompts = [];
  /** Background commands that the conversation tells of, by their numbers. */
  jobs = new Map();

  /** `actions` has what can be done with a message: `output`, `rewind`, `fork`, `review`, `canSteer`. */
  constructor(actions) {
    this.#actions = actions;
    this.#scroller.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
      this.#follows = scrollHeight - scrollTop - clientHeight < NEAR;
      byId("to-end").hidden = this.#follows;
    }, { passive: true });
    byId("to-end").addEventListener("click", () => this.toEnd());
    // Also where a question takes room, or what was out of sight turns out to be higher.
    const sizes = new ResizeObserver(() => this.#follows && this.toEnd());
    for (const it of [this.#scroller, this.#messages, this.#live]) sizes.observe(it);
  }

  /** Empties it. What comes is not drawn before what was said earlier is there: see `older` and `release`. */
  clear() {
    this.#held = true;
    this.#ops = [];
    this.#cards.clear();
    this.#dirty.clear();
    this.#early.clear();
    this.#messages.replaceChildren();
    this.#turn = newTurn();
    this.#retry = null;
    this.prompts = [];
    this.jobs.clear();
    byId("echo").replaceChildren();
    this.#beginAnswer();
    this.#follows = true;
  }

  /** Shows at once what is on its way; gives how to say more about it, and how to take it back. */
  echo(content) {
    const text = content.map((it) => it.text?.text ?? "").join("\n");
    const element = h("div", { class: "message user pending", "data-text": text }, h("div", { class: "bubble" }, content.map((it) => (it.image ? picture(it.image, "Picture that you send") : h("p", { class: "said", dir: "auto" }, clean(it.text.text))))), h("p", { class: "note" }, "Sending …"));
    byId("echo").append(element);
    this.toEnd();
    return { says: (words) => { element.lastElementChild.textContent = words; }, remove: () => element.remove() };
  }

  /** What was on its way has arrived, or waits in the queue. */
  #arrived(content) {
    const text = content.map((it) => it.text?.text ?? "").join("\n");
    [...byId("echo").children].find((it) => it.dataset.text === text)?.remove();
  }

  release() {
    this.#held = false;
    this.#schedule();
  }

  toEnd() {
    this.#follows = true;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  /** What the turn that runs has so far, by a view. */
  begin(view) {
    const turn = view.turn;
    if (!turn) return;
    if (turn.thinking.text) this.take("thinking", { text: turn.thinking.text });
    if (turn.text.text) this.take("text", { text: turn.text.text });
    for (const draft of turn.drafts) {
      this.take("tool_call_drafted", { call: draft.id, name: draft.name });
      this.take("tool_call_delta", { call: draft.id, fragment: draft.arguments.text });
    }
    for (const running of turn.calls) {
      this.take("tool_started", { call: running.call });
      if (running.output.text) this.take("tool_progress", { call: running.call.id, text: "", all: running.output.text });
    }
  }

  /** Takes in an event; it is drawn with the next frame. `view` is the state after it. */
  take(kind, event, view, at) {
    const last = this.#ops.at(-1);
    this.#started = view?.turn?.started_ms ?? this.#started;
    if ((kind === "text" || kind === "thinking") && last?.kind === kind) {
      last.pieces.push(event.text);
    } else if (kind === "tool_call_delta" && last?.kind === kind && last.event.call === event.call) {
      last.pieces.push(event.fragment);
    } else if (kind === "tool_progress") {
      const running = view?.turn?.calls.find((it) => it.call.id === event.call);
      const all = event.all ?? running?.output.text;
      if (all === undefined) return;
      if (last?.kind === kind && last.event.call === event.call) last.event.all = all;
      else this.#ops.push({ kind, event: { call: event.call, all } });
    } else {
      const pieces = kind === "tool_call_delta" ? [event.fragment] : [event?.text];
      this.#ops.push({ kind, event, pieces, at, started: this.#started });
    }
    this.#schedule();
  }

  #schedule() {
    if (this.#scheduled || this.#held) return;
    this.#scheduled = true;
    const draw = () => this.#flush();
    const pause = document.hidden ? HIDDEN_MS : this.#next - performance.now();
    if (pause > 0) setTimeout(document.hidden ? draw : () => requestAnimationFrame(draw), pause);
    else requestAnimationFrame(draw);
  }

  #flush() {
    const ops = this.#ops;
    this.#ops = [];
    const since = performance.now();
    for (const op of ops) this.#attempt(() => this.#do(op));
    const until = performance.now() + FRAME_MS;
    for (const it of this.#dirty) if (this.#attempt(() => it.draw(until)) ?? true) this.#dirty.delete(it);
    // Once the browser has laid it out and painted it: that takes longer than making it.
    setTimeout(() => {
      const took = performance.now() - since;
      this.#next = since + Math.max(this.#dirty.size ? 0 : PAUSE_MS, took * (1 + REST));
      this.#scheduled = false;
      if (this.#dirty.size || this.#ops.length) this.#schedule();
    });
  }

  /** Draws one thing: what cannot be drawn costs a line, and nothing that comes after it. */
  #attempt(draw) {
    try { return draw(); } catch (error) {
      console.error(error);
      this.#messages.append(h("p", { class: "note warning" }, `A part of the conversation cannot be shown here: ${sentence(clean(String(error.message)))}`));
    }
  }

  #do({ kind, event, pieces, at, started }) {
    switch (kind) {
      case "text":
        if (!this.#growing) {
          this.#answer = h("div", { class: "message assistant" });
          this.#growing = new Growing(this.#answer);
          // It stays where it is once it is whole: to move all of a long answer takes a browser longer than a frame.
          this.#begun.push(...this.#live.children, this.#answer);
          this.#messages.append(...this.#begun);
        }
        this.#growing.push(pieces.join(""));
        this.#dirty.add(this.#growing);
        break;
      case "thinking": this.#think(pieces.join("")); break;
      case "tool_call_drafted": {
        const draft = new Draft(event.name);
        this.#drafts.set(event.call, draft);
        this.#live.append(draft.element);
        break;
      }
      case "tool_call_delta": {
        const draft = this.#drafts.get(event.call);
        draft?.push(pieces.join(""));
        if (draft) this.#dirty.add(draft);
        break;
      }
      case "round_started":
        this.#turn.arm = event.arm;
        this.#retry = null;
        this.#beginAnswer();
        break;
      case "cost": this.#turn.micro_usd = event.turn_micro_usd; break;
      case "queued": for (const content of event.queue) this.#arrived(content); break;
      // What was drawn of an answer that broke off is not a part of the next one.
      case "retrying": case "arm_changed":
        this.#beginAnswer();
        this.#note(kind, event, at, started);
        break;
      case "appended": this.#appended(event); break;
      case "tool_started": this.#card(event.call)?.starts(); break;
      case "tool_progress": this.#cards.get(event.call)?.progress(event.all); break;
      case "tool_ended": this.#ended(event); break;
      case "permission_decided": if (!event.allowed) this.#cards.get(event.call)?.denied(); break;
      case "turn_ended":
        this.#note(kind, event, at, started);
        hear(ending(event.outcome) || "The turn is finished.");
        break;
      default: this.#note(kind, event, at, started);
    }
  }

  /** Appends what belongs to the conversation; looks in a row come in one line. */
  #put(parts) {
    for (const part of parts) {
      if (!(part instanceof Card)) { this.#messages.append(part); continue; }
      if (part.call.name === PLAN) continue;
      const last = this.#messages.lastElementChild;
      const before = last?.card;
      part.element.card = part;
      if (part.isLook && last?.looks) last.looks.add(part);
      else if (part.isLook && before?.isLook) {
        const looks = new Looks();
        last.replaceWith(looks.element);
        looks.add(before);
        looks.add(part);
      } else this.#messages.append(part.element);
    }
  }

  /** A call is over: its card says so, and the turn knows what it changed. */
  #ended({ call, result, diff, duration_ms: ms }) {
    const card = this.#card(call);
    if (!card) return;
    card.ends(result, diff ?? null, ms);
    this.#count(card);
  }

  /** Keeps what a call says of a background command; what an older page says is what was not known yet. */
  #noteJob(card) {
    const said = card.job;
    if (!said) return;
    const known = this.jobs.get(said.id);
    if (said.command === undefined) {
      if (!known || !this.#isOlder) this.jobs.set(said.id, { ...known, ...said, card: known?.card ?? card });
    } else if (!known || !this.#isOlder) this.jobs.set(said.id, { ...said, card });
    else if (known.command === undefined) this.jobs.set(said.id, { ...said, state: known.state, isOver: known.isOver, card });
  }

  #count(card) {
    this.#noteJob(card);
    for (const file of card.changes) {
      const known = this.#turn.files.get(file.path) ?? { added: 0, removed: 0, calls: new Map() };
      known.calls.set(card.call.id, file);
      known.added = [...known.calls.values()].reduce((all, it) => all + it.added, 0);
      known.removed = [...known.calls.values()].reduce((all, it) => all + it.removed, 0);
      this.#turn.files.set(file.path, known);
    }
  }

  /** Forgets what was being written; `kept` stays where it is drawn. */
  #beginAnswer(kept = null) {
    for (const it of [this.#growing, ...this.#drafts.values()]) this.#dirty.delete(it);
    this.#growing = this.#answer = this.#thinking = null;
    this.#thought = "";
    this.#drafts.clear();
    for (const it of this.#begun) if (it !== kept) it.remove();
    this.#begun = [];
    this.#live.replaceChildren();
  }

  /** What was drawn while it was written stays, where it is what was said in the end. */
  #appended(message) {
    if (message.role !== "assistant") {
      if (message.role === "user") this.#arrived(message.content);
      return this.#put(this.#message(message));
    }
    const [growing, answer] = [this.#growing, this.#answer];
    const texts = message.content.filter((it) => it.text?.text.trim());
    const isFirst = message.content.findIndex((it) => it.tool_call) >>> 0 > message.content.indexOf(texts[0]);
    const isDrawn = growing && texts.length === 1 && isFirst && texts[0].text.text === growing.text && !hasReferences(growing.text);
    this.#beginAnswer(isDrawn ? answer : null);
    if (!isDrawn) return this.#put(this.#message(message));
    this.#dirty.add(growing);
    const parts = this.#message(message, answer);
    const place = parts.indexOf(answer);
    answer.before(...parts.slice(0, place));
    this.#put(parts.slice(place + 1));
  }

  #think(text) {
    if (!this.#thinking) {
      this.#thinking = h("pre", { tabindex: "0", dir: "auto" });
      this.#live.append(h("details", { class: "thinking" }, h("summary", null, icon("spark"), "Thinking …"), this.#thinking));
    }
    this.#thought = (this.#thought + text).slice(-MAX_THINKING);
    this.#thinking.textContent = clean(this.#thought);
  }

  #card(call) {
    const known = this.#cards.get(call.id);
    if (known) return known;
    const card = new Card(call, this.#actions);
    this.#cards.set(call.id, card);
    this.#put([card]);
    return card;
  }

  /** A text as elements, drawn over several frames where it is long. */
  #text(text) {
    if (text.length <= MAX_AT_ONCE) return markdown(text);
    const element = h("div", null);
    const growing = new Growing(element);
    growing.push(text);
    this.#dirty.add(growing);
    this.#schedule();
    return [element];
  }

  /** A message as elements; `drawn` is its text, where that was drawn before. */
  #message(message, drawn = null) {
    if (message.role === "tool") {
      for (const content of message.content) {
        const result = content.tool_result;
        if (!result) continue;
        const card = this.#cards.get(result.call_id);
        if (card && !card.isOver) { card.ends(result); this.#count(card); } else if (!card) this.#early.set(result.call_id, result);
      }
      return [];
    }
    const parts = [];
    let texts = [];
    const isPerson = message.role === "user";
    const flush = () => {
      if (texts.length) parts.push(isPerson ? this.#said(texts, words) : h("div", { class: "message " + message.role }, texts));
      texts = [];
    };
    const words = message.content.map((it) => it.text?.text ?? "").filter((it) => it && !it.startsWith(SYSTEM_NOTE)).join("\n");
    const isPrompt = isPerson && message.content.some((it) => it.image || (it.text?.text.trim() && !it.text.text.startsWith(SYSTEM_NOTE)));
    if (isPrompt) {
      // A turn of which only messages are left still says what it changed.
      if (!this.#turn.isOver && !this.#turn.calls) parts.push(this.#footer());
      this.#turn = newTurn();
      if (words) this.prompts = [...this.prompts, words].slice(-MAX_PROMPTS);
    }
    if (message.role === "assistant") {
      this.#endRetry();
      this.#turn.isOver = false;
      this.#turn.calls = message.content.some((it) => it.tool_call);
      if (words.trim()) this.#turn.answer = words;
      this.#turn.arm = message.origin ?? this.#turn.arm;
    }
    for (const content of message.content) {
      const [kind, value] = named(content);
      if (kind === "text" && isPerson && value.text.startsWith(SYSTEM_NOTE)) {
        parts.push(h("p", { class: "note", dir: "auto" }, clean(value.text.slice(SYSTEM_NOTE.length))));
      } else if (kind === "text" && value.text.trim() && drawn) {
        flush();
        parts.push(drawn);
      } else if (kind === "text" && value.text.trim()) texts.push(...(isPerson ? [h("p", { class: "said", dir: "auto" }, clean(value.text))] : this.#text(value.text)));
      else if (kind === "image") texts.push(picture(value, "Picture that you sent"));
      else if (kind === "thinking" && value.text.trim()) {
        flush();
        parts.push(h("details", { class: "thinking" }, h("summary", null, icon("spark"), "Thinking"), h("pre", { tabindex: "0", dir: "auto" }, clean(value.text))));
      } else if (kind === "tool_call") {
        flush();
        const card = new Card(value, this.#actions);
        this.#cards.set(value.id, card);
        const early = this.#early.get(value.id);
        if (early) { card.ends(early); this.#count(card); this.#early.delete(value.id); }
        parts.push(card);
      }
    }
    flush();
    return parts;
  }

  /** An answer has come, or none will: that it was tried again is no longer of interest. */
  #endRetry() {
    this.#retry?.remove();
    this.#retry = null;
  }

  /** What the person said, as wide as its text, with what can be done from there. */
  #said(texts, words) {
    const acts = h("div", { class: "acts" }, copyButton(() => words), this.#actions.canSteer() && [
      iconButton("rewind", { words: "Rewind to here", onclick: () => this.#actions.rewind(words, element) }), iconButton("fork", { words: "Fork from here", onclick: () => this.#actions.rewind(words, element, true) })]);
    const element = h("div", { class: "message user" }, h("h2", { class: "sr" }, `You wrote: ${short(clean(words), 80)}`), h("div", { class: "bubble" }, texts), acts);
    return element;
  }

  /** The end of a turn: what it changed, what it took, and what can be done now. */
  #footer(facts = [], told = "") {
    const turn = this.#turn;
    turn.isOver = true;
    const { answer } = turn;
    const files = [...turn.files];
    const [added, removed] = files.reduce(([a, b], [, it]) => [a + it.added, b + it.removed], [0, 0]);
    const all = [...facts, turn.micro_usd ? money(turn.micro_usd) : "", turn.arm ? clean(baseName(turn.arm.model)) : ""].filter(Boolean);
    return h("div", { class: "turn-end" },
      told && h("p", { class: "note warning" }, told),
      files.length > 0 && h("details", { class: "changed" }, h("summary", null, icon("diff"), count(files.length, "changed file"), h("span", null, tally(added, removed)), icon("right")),
        h("ul", null, files.map(([path, it]) => h("li", null, h("span", null, path), h("span", null, tally(it.added, it.removed))))),
        h("div", { class: "row" }, h("button", { type: "button", class: "quiet", onclick: () => this.#actions.review() }, "Review changes"))),
      h("div", { class: "acts" }, answer && copyButton(() => answer), this.#actions.canSteer() && iconButton("fork", { words: "Fork", onclick: () => this.#actions.fork() })),
      h("span", null, all.join(" · ")));
  }

  /** Puts older messages before what there is; `notes` maps a message's number to what happened after it. */
  older(first, messages, notes = new Map(), isIdle = false) {
    const before = this.#scroller.scrollHeight - this.#scroller.scrollTop;
    // Cards of later calls keep their ids: those of older ones must not take their places.
    const later = new Map(this.#cards);
    const box = document.createDocumentFragment();
    const [own, turn, prompts, retry] = [this.#messages, this.#turn, this.prompts, this.#retry];
    // The newest page ends where what comes goes on; an older one ends before another turn.
    const isNewest = !own.hasChildNodes();
    this.#isOlder = !isNewest;
    this.#messages = box;
    this.#turn = newTurn();
    this.#retry = null;
    this.prompts = [];
    messages.forEach((message, place) => {
      this.#attempt(() => this.#put(this.#message(message)));
      for (const note of notes.get(first + place) ?? []) this.#attempt(() => this.#remind(note));
    });
    if (!isNewest && !this.#turn.isOver && !this.#turn.calls && own.firstElementChild?.matches(".message.user")) this.#put([this.#footer()]);
    if (isNewest && isIdle && !this.#turn.isOver && !this.#turn.calls) this.#put([this.#footer()]);
    this.#messages = own;
    this.#isOlder = false;
    if (!isNewest) [this.#turn, this.#retry] = [turn, retry];
    this.prompts = [...this.prompts, ...prompts].slice(-MAX_PROMPTS);
    for (const [id, card] of later) this.#cards.set(id, card);
    own.prepend(box);
    if (this.#follows) this.toEnd();
    else this.#scroller.scrollTop = this.#scroller.scrollHeight - before;
  }

  /** What is known of a message beside its words. */
  #remind({ kind, event, at_ms }) {
    if (kind === "tool_ended") {
      const card = this.#cards.get(event.call.id);
      if (card) { card.ends(event.result, event.diff ?? null, event.duration_ms); this.#count(card); }
    } else if (kind === "permission_decided") {
      if (!event.allowed) this.#cards.get(event.call)?.denied();
    } else if (kind === "round_started") {
      this.#turn.arm = event.arm;
      this.#turn.since ??= at_ms;
    } else if (kind === "cost") this.#turn.micro_usd = event.turn_micro_usd;
    else this.#note(kind, event, at_ms, this.#turn.since);
  }

  #note(kind, event, at, started) {
    const add = (level, ...children) => {
      const element = h("p", { class: "note " + level, dir: "auto" }, children);
      this.#messages.append(element);
      return element;
    };
    switch (kind) {
      case "notice": add(event.level, clean(event.text)); break;
      case "routed": this.#messages.append(routing(event)); break;
      case "arm_changed": add("warning", `${armName(event.from)} was replaced by ${armName(event.to)}: ${clean(event.why)}`); break;
      case "retrying": {
        // One line for all attempts of a call.
        this.#endRetry();
        this.#retry = add("warning", `${sentence(clean(event.error.message))} `);
        countDown(this.#retry, event.wait_ms, event.attempt);
        break;
      }
      case "conferred": add("", `${event.members.map(armName).join(", ")} were asked; the words of ${armName(event.author)} stand.`); break;
      case "checking": add("", `${clean(event.by)} checks the work of ${armName(event.arm)}.`); break;
      case "checked":
        this.#messages.append(h("details", { class: "note" }, h("summary", null, `${event.passed ? "Passed" : "Did not pass"}: ${short(clean(event.by), 120)}`), h("pre", { tabindex: "0" }, clean(event.evidence))));
        break;
      case "compacted":
        this.#messages.append(h("details", { class: "note" }, h("summary", null, `${event.messages} messages were replaced by a summary`), markdown(event.summary)));
        break;
      case "uncompacted": add("", event.summary ? "A compaction was undone; the summary before it counts again." : "The compaction was undone; the model gets the whole conversation again."); break;
      case "turn_ended": {
        this.#endRetry();
        const told = ending(event.outcome);
        this.#messages.append(this.#footer([at && started ? duration(at - started) : "", `${tokens(event.usage.output)} tokens written`], clean(told)));
        break;
      }
    }
  }
}

/** Counts the seconds until the next attempt down, as long as the line is there. */
function countDown(element, wait, attempt) {
  const text = document.createTextNode("");
  element.append(text);
  const until = performance.now() + wait;
  const tick = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    text.data = left > 0 ? `Attempt ${attempt} in ${left} s.` : `Attempt ${attempt} …`;
    if (left > 0 && (element.isConnected || left * 1000 >= wait - 1000)) setTimeout(tick, 1000);
  };
  tick();
}

/** How a turn was routed, with the reasons. */
function routing(event) {
  return h("details", { class: "note routing" },
    h("summary", null, icon("chip"), `${event.arms.map(armName).join(", ")}: ${short(clean(event.why), 160)}`),
    h("p", null, `Task: ${clean(event.kind)}, ${event.complexity} % hard, by ${clean(event.decided_by)}; ${clean(event.strategy)}.`),
    h("ul", null, event.candidates.map((line) => h("li", null, clean(line)))));
}
