// Tool calls in words, a line each: what was done, what came of it; behind it the result, and last the call as it was
// written. Drawn only once somebody looks.

import { diff, diffOfCall, parse, sums, tally, wholeOf } from "./diff.js";
import { clean, count, duration, h, short } from "./dom.js";
import { icon } from "./icons.js";
import { copyButton } from "./toast.js";
import { argumentsOf, asText, inWords, jobOf, looksInWords, outcome } from "./words.js";

/** Characters of an argument or output that are drawn at once. */
const MAX_SHOWN = 20000;
/** Characters of running output that are drawn. */
const MAX_LIVE = 4000;
/** Bytes of a saved output that are read with one click. */
const MAX_OUTPUT_BYTES = 256 << 10;
/** Faster calls do not say how long they took. */
const SLOW_MS = 1000;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A picture, where it is of a kind that is nothing but one. */
export function picture(image, about) {
  if (!IMAGES.includes(image.mime) || !/^[A-Za-z0-9+/=]*$/.test(image.base64)) return h("p", { class: "note" }, `[${short(clean(image.mime), 60)}]`);
  return h("img", { src: `data:${image.mime};base64,${image.base64}`, alt: about, loading: "lazy" });
}

/** A text that may be long: its beginning, and the rest on demand. */
export function long(text) {
  const shown = clean(text);
  const pre = h("pre", { tabindex: "0", dir: "ltr" }, shown.slice(0, MAX_SHOWN));
  if (shown.length <= MAX_SHOWN) return pre;
  const more = h("button", { type: "button", class: "quiet", onclick: () => { pre.textContent = shown; more.remove(); } }, `Show all ${shown.length.toLocaleString()} characters`);
  return [pre, more];
}

/** The arguments of a call; only the most telling, where the rest is what a preview shows. */
export function argumentList(call, hasPreview = false) {
  return argumentsOf(call).slice(0, hasPreview ? 1 : undefined).map(([name, text], place) => h("div", { class: "argument" },
    name && h("span", { class: place ? "name" : "name main" }, clean(name)), long(text)));
}

/** A call in the conversation. */
export class Card {
  #output = ""; #result = null; #diff = null; #ms = null; #body; #image; #verb; #brief; #tally; #drawn = false; #live = null; #words; #actions; #isDenied = false;
  /** `actions.output(id, from, max)` reads a result that was put aside; `actions.open(name)` shows an elf. */
  constructor(call, actions = {}) {
    this.call = call;
    this.#actions = actions;
    this.#words = inWords(call);
    this.#image = icon(this.#words.icon);
    this.#verb = h("span", { class: "verb" });
    this.#brief = h("span", { class: "brief", dir: "ltr" }, clean(this.#words.what));
    this.#tally = h("span", { class: "tally" });
    this.#body = h("div", { class: "body" });
    this.element = h("details", { class: "tool", ontoggle: () => this.#draw() },
      h("summary", null, this.#image, this.#verb, this.#brief, this.#tally, icon("right")), this.#body);
    this.#say("waits", this.#words.doing);
  }

  /** Whether its result is here; a note of its end comes without one. */
  get isOver() { return this.#result !== null && this.#result.parts.length > 0; }
  /** Whether it only looked, so that it can stand with others in one line. */
  get isLook() { return this.#words.looks; }
  /** What it changed. */
  changes = [];
  /** What its result says of a background command. */
  get job() { return this.#result && !this.#result.is_error ? jobOf(this.call, this.#result.parts.map((it) => it.text?.text ?? "").join("\n")) : null; }

  #say(state, verb) {
    this.element.dataset.state = state;
    this.#verb.replaceChildren(verb, h("span", { class: "sr" }, state === "done" ? "" : ` (${state})`));
  }

  starts() {
    if (!this.isOver) this.#say("runs", this.#words.doing);
  }

  /** Shows the end of its output while it runs. @param {string} output */
  progress(output) {
    this.#output = output;
    // Elfs have rows of their own while they work.
    if (this.isOver || this.call.name === "elf.spawn") return;
    if (!this.#live) {
      this.#live = h("pre", { class: "live", tabindex: "0", "aria-label": "Output so far", dir: "ltr" });
      this.element.after(this.#live);
    }
    // Whoever scrolled up reads; else the newest line is what counts.
    const { scrollTop, scrollHeight, clientHeight } = this.#live;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 24;
    this.#live.textContent = clean(output.slice(-MAX_LIVE));
    if (isAtEnd) this.#live.scrollTop = this.#live.scrollHeight;
  }

  /** Nobody approved it. */
  denied() {
    this.#isDenied = true;
    if (this.isOver) this.#say("failed", "Denied:");
  }

  /** @param {any} result @param {string | null} diffText @param {number | null} ms */
  ends(result, diffText = null, ms = null) {
    this.#live?.remove();
    this.#live = null;
    const isNews = !this.isOver || diffText;
    this.#result = result;
    const text = result.parts.map((it) => it.text?.text ?? "").join("\n");
    // After a while only the call and its result still say what it changed.
    this.#diff = diffText ?? this.#diff ?? (result.is_error || !this.isOver ? null : diffOfCall(this.call, text));
    this.#ms = ms ?? this.#ms;
    this.#say(result.is_error ? "failed" : "done", this.#isDenied ? "Denied:" : result.is_error ? this.#words.failed : this.#words.done);
    const parts = [];
    this.changes = this.#diff && !result.is_error ? parse(this.#diff) : [];
    if (this.changes.length) parts.push(tally(...sums(this.changes)), " ");
    const came = result.is_error || !this.isOver ? "" : outcome(this.call, text);
    if (came) parts.push(came);
    if (this.#ms !== null && this.#ms >= SLOW_MS) parts.push(came ? ", " : "", duration(this.#ms));
    this.#tally.replaceChildren(...parts.flat());
    this.element.dispatchEvent(new CustomEvent("over"));
    if (isNews && this.#drawn) { this.#drawn = false; this.#draw(); }
  }

  #draw() {
    if (!this.element.open || this.#drawn) return;
    this.#drawn = true;
    const shown = [];
    const { call } = this;
    if (call.name === "bash" && typeof call.arguments?.command === "string") shown.push(withCopy("$ " + call.arguments.command, call.arguments.command));
    if (call.name === "elf.spawn" && Array.isArray(call.arguments?.tasks)) shown.push(this.#elfs(call.arguments.tasks));
    if (this.#diff) shown.push(diff(this.#diff, { whole: wholeOf(call) }));
    for (const part of this.#result?.parts ?? []) {
      // Where a diff shows it, the words around it add nothing.
      if (part.text && !(this.#diff && !this.#result.is_error)) shown.push(h("div", { class: "output" }, withCopy(part.text.text), this.#rest(part.text.text)));
      else if (part.image) shown.push(picture(part.image, "Picture that the tool read"));
    }
    if (!this.#result && this.#output) shown.push(long(this.#output));
    shown.push(h("details", { class: "raw" }, h("summary", null, "As the model wrote it"), h("p", { class: "note" }, h("code", null, clean(call.name))), argumentList(call)));
    this.#body.replaceChildren(...shown.flat());
  }

  /** All of an output of which the model got a part. */
  #rest(text) {
    const id = /\[… \d+ of \d+ bytes are left out here and kept as `([\w-]{1,64})`/.exec(text)?.[1];
    if (!id || !this.#actions.output) return null;
    const pre = h("pre", { tabindex: "0", dir: "ltr", hidden: true });
    let from = 0;
    const button = h("button", { type: "button", class: "quiet", onclick: async () => {
      button.disabled = true;
      const part = await this.#actions.output(id, from, MAX_OUTPUT_BYTES);
      button.disabled = false;
      if (!part) return;
      pre.hidden = false;
      pre.append(clean(part.text));
      if (part.next === null || part.next === undefined) return button.remove();
      from = part.next;
      button.textContent = `Show more (${Math.round((100 * from) / part.total_bytes)} % shown)`;
    } }, "Show all of the output");
    return [pre, button];
  }

  #elfs(tasks) {
    return h("div", { class: "elfs" }, tasks.map((task) => h("div", { class: "elf-row" }, icon("hat"), h("strong", null, clean(asText(task?.name ?? "elf"))), h("span", { class: "task" }, clean(short(asText(task?.task ?? ""), 200))))));
  }
}

function withCopy(text, copied = text) {
  return h("div", { class: "with-copy" }, long(text), copyButton(() => copied));
}

/** Looks in a row, in one line. */
export class Looks {
  #cards = []; #verb; #words; #body;
  constructor() {
    this.#verb = h("span", { class: "verb" });
    this.#words = h("span", null);
    this.#body = h("div", { class: "body" });
    this.element = h("details", { class: "group" }, h("summary", null, icon("search"), this.#verb, this.#words, icon("right")), this.#body);
    this.element.looks = this;
  }
  add(card) {
    this.#cards.push(card);
    this.#body.append(card.element);
    card.element.addEventListener("over", () => this.#draw());
    this.#draw();
  }
  #draw() {
    const isOver = this.#cards.every((it) => it.isOver);
    const failed = this.#cards.filter((it) => it.element.dataset.state === "failed").length;
    this.#verb.textContent = isOver ? "Explored" : "Exploring";
    this.#words.textContent = looksInWords(this.#cards.map((it) => it.call)) + (failed ? `, ${count(failed, "failure")}` : "");
  }
}

/** A call that the model is still writing. */
export class Draft {
  #text = ""; #pre;
  constructor(name) {
    const { icon: image, doing } = inWords({ name, arguments: {} });
    this.#pre = h("pre", { class: "live", dir: "ltr" });
    this.element = h("div", { class: "draft" }, h("div", { class: "note row" }, icon(image), `${doing} …`), this.#pre);
  }
  push(fragment) { this.#text = (this.#text + fragment).slice(-MAX_LIVE); }
  draw() {
    this.#pre.textContent = clean(this.#text);
    this.#pre.scrollTop = this.#pre.scrollHeight;
  }
}
