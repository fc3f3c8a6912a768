// The conversation: what was said, what was done, and what is being written, drawn at most once a frame.

import { named } from "./fold.js";
import { Card, Draft, picture } from "./cards.js";
import { byId, clean, duration, h, short, tokens } from "./dom.js";
import { Growing, markdown } from "./md.js";
import { armName, ending } from "./words.js";

/** A page that is not seen draws so often. */
const HIDDEN_MS = 1000;
/** Characters of thinking that are drawn while it is written. */
const MAX_THINKING = 8000;
/** What drawing may take of a frame. */
const FRAME_MS = 6;
/** Between two drawings of what is being written: often enough for whoever reads along. */
const PAUSE_MS = 40;
/** How many times longer than it took the next drawing waits, so that several pages leave each other and the person room. */
const REST = 3;
/** Characters of a message that are drawn at once; a longer one is drawn over several frames. */
const MAX_AT_ONCE = 4000;
/** What gnoma itself tells a model begins so. */
const SYSTEM_NOTE = "[system] ";
/** Pixels from the end that still count as the end. */
const NEAR = 80;

export class Transcript {
  #messages = byId("messages");
  #live = byId("live");
  #scroller = byId("transcript");
  #ops = [];
  #scheduled = false;
  #cards = new Map();
  #early = new Map();
  #growing = null; #answer = null;
  #thinking = null; #thought = "";
  #drafts = new Map();
  #dirty = new Set();
  #follows = true;
  #held = false;
  /** When it may be drawn again. */
  #next = 0;
  #started = 0;
  #said;

  /** `said(text)` is told what a reader of the screen shall hear. */
  constructor(said) {
    this.#said = said;
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
    this.#beginAnswer();
    this.#follows = true;
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
    const draw = () => { this.#scheduled = false; this.#flush(); };
    const pause = document.hidden ? HIDDEN_MS : this.#next - performance.now();
    if (pause > 0) setTimeout(document.hidden ? draw : () => requestAnimationFrame(draw), pause);
    else requestAnimationFrame(draw);
  }

  #flush() {
    const ops = this.#ops;
    this.#ops = [];
    const since = performance.now();
    for (const op of ops) this.#do(op);
    const until = performance.now() + FRAME_MS;
    for (const it of this.#dirty) if (it.draw(until) ?? true) this.#dirty.delete(it);
    if (this.#follows) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    const took = performance.now() - since;
    this.#next = since + Math.max(this.#dirty.size ? 0 : PAUSE_MS, took * (1 + REST));
    if (this.#dirty.size) this.#schedule();
  }

  #do({ kind, event, pieces, at, started }) {
    switch (kind) {
      case "text":
        if (!this.#growing) {
          this.#answer = h("div", { class: "message assistant" });
          this.#growing = new Growing(this.#answer);
          this.#live.append(this.#answer);
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
      case "round_started": this.#beginAnswer(); break;
      case "appended":
        this.#appended(event);
        break;
      case "tool_started": this.#card(event.call)?.starts(); break;
      case "tool_progress": this.#cards.get(event.call)?.progress(event.all); break;
      case "tool_ended": this.#card(event.call)?.ends(event.result, event.diff ?? null, event.duration_ms); break;
      default: this.#note(kind, event, at, started);
    }
  }

  #beginAnswer() {
    for (const it of [this.#growing, ...this.#drafts.values()]) this.#dirty.delete(it);
    this.#growing = this.#answer = this.#thinking = null;
    this.#thought = "";
    this.#drafts.clear();
    this.#live.replaceChildren();
  }

  /** What was drawn while it was written stays, where it is what was said in the end. */
  #appended(message) {
    if (message.role !== "assistant") return this.#messages.append(...this.#message(message));
    const [growing, answer] = [this.#growing, this.#answer];
    const texts = message.content.filter((it) => it.text?.text.trim());
    const isDrawn = growing && texts.length === 1 && texts[0].text.text === growing.text;
    this.#beginAnswer();
    if (isDrawn) this.#dirty.add(growing);
    this.#messages.append(...this.#message(message, isDrawn ? answer : null));
  }

  #think(text) {
    if (!this.#thinking) {
      this.#thinking = h("pre", { tabindex: "0" });
      this.#live.append(h("details", { class: "thinking" }, h("summary", null, "Thinking …"), this.#thinking));
    }
    this.#thought = (this.#thought + text).slice(-MAX_THINKING);
    this.#thinking.textContent = clean(this.#thought);
  }

  #card(call) {
    const known = this.#cards.get(call.id);
    if (known) return known;
    const card = new Card(call);
    this.#cards.set(call.id, card);
    this.#messages.append(card.element);
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
        if (card && !card.isOver) card.ends(result);
        else if (!card) this.#early.set(result.call_id, result);
      }
      return [];
    }
    const parts = [];
    let texts = [];
    const isPerson = message.role === "user";
    const flush = () => {
      if (texts.length) parts.push(h("div", { class: "message " + message.role }, isPerson && h("span", { class: "sr" }, "You wrote: "), texts));
      texts = [];
    };
    for (const content of message.content) {
      const [kind, value] = named(content);
      if (kind === "text" && isPerson && value.text.startsWith(SYSTEM_NOTE)) {
        parts.push(h("p", { class: "note" }, clean(value.text.slice(SYSTEM_NOTE.length))));
      } else if (kind === "text" && value.text.trim() && drawn) {
        flush();
        parts.push(drawn);
      } else if (kind === "text" && value.text.trim()) texts.push(...(isPerson ? [h("p", { class: "said" }, clean(value.text))] : this.#text(value.text)));
      else if (kind === "image") texts.push(picture(value, "Picture that you sent"));
      else if (kind === "thinking" && value.text.trim()) {
        flush();
        parts.push(h("details", { class: "thinking" }, h("summary", null, "Thinking"), h("pre", { tabindex: "0" }, clean(value.text))));
      } else if (kind === "tool_call") {
        flush();
        const card = new Card(value);
        this.#cards.set(value.id, card);
        const early = this.#early.get(value.id);
        if (early) { card.ends(early); this.#early.delete(value.id); }
        parts.push(card.element);
      }
    }
    flush();
    return parts;
  }

  /** Puts older messages before what there is; `notes` maps a message's number to what happened after it. */
  older(first, messages, notes = new Map()) {
    const before = this.#scroller.scrollHeight - this.#scroller.scrollTop;
    // Cards of later calls keep their ids: those of older ones must not take their places.
    const later = new Map(this.#cards);
    const box = document.createDocumentFragment();
    const own = this.#messages;
    this.#messages = box;
    messages.forEach((message, place) => {
      box.append(...this.#message(message));
      for (const { kind, event, at_ms } of notes.get(first + place) ?? []) {
        if (kind === "tool_ended") this.#cards.get(event.call.id)?.ends(event.result, event.diff ?? null, event.duration_ms);
        else this.#note(kind, event, at_ms);
      }
    });
    this.#messages = own;
    for (const [id, card] of later) this.#cards.set(id, card);
    own.prepend(box);
    if (this.#follows) this.toEnd();
    else this.#scroller.scrollTop = this.#scroller.scrollHeight - before;
  }

  #note(kind, event, at, started) {
    const add = (level, ...children) => this.#messages.append(h("p", { class: "note " + level }, children));
    switch (kind) {
      case "notice": add(event.level, clean(event.text)); break;
      case "routed": this.#messages.append(routing(event)); break;
      case "arm_changed": add("warning", `${armName(event.from)} was replaced by ${armName(event.to)}: ${clean(event.why)}`); break;
      case "retrying": add("warning", `${clean(event.error.message)}. Retrying in ${duration(event.wait_ms)} (attempt ${event.attempt}).`); break;
      case "conferred": add("", `${event.members.map(armName).join(", ")} were asked; the words of ${armName(event.author)} stand.`); break;
      case "checking": add("", `${clean(event.by)} checks the work of ${armName(event.arm)}.`); break;
      case "checked":
        this.#messages.append(h("details", { class: "note" }, h("summary", null, `${event.passed ? "Passed" : "Did not pass"}: ${short(clean(event.by), 120)}`), h("pre", { tabindex: "0" }, clean(event.evidence))));
        break;
      case "compacted":
        this.#messages.append(h("details", { class: "note" }, h("summary", null, `${event.messages} messages were replaced by a summary`), markdown(event.summary)));
        break;
      case "turn_ended": {
        const told = ending(event.outcome);
        const facts = [at && started ? duration(at - started) : "", `${tokens(event.usage.output)} tokens written`].filter(Boolean).join(", ");
        add(told ? "warning" : "end", told ? `${clean(told)} ` : "", facts);
        this.#said(told || "The turn is finished.");
        break;
      }
    }
  }
}

/** How a turn was routed, with the reasons. */
function routing(event) {
  return h("details", { class: "note routing" },
    h("summary", null, `${event.arms.map(armName).join(", ")}: ${short(clean(event.why), 160)}`),
    h("p", null, `Task: ${clean(event.kind)}, ${event.complexity} % hard, by ${clean(event.decided_by)}; ${clean(event.strategy)}.`),
    h("ul", null, event.candidates.map((line) => h("li", null, clean(line)))));
}
