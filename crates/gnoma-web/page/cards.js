// Tool calls: a line each, with arguments, output and diff behind it, drawn only once somebody looks.

import { counted, diff } from "./diff.js";
import { clean, duration, h, short } from "./dom.js";
import { argumentsOf, brief } from "./words.js";

/** Characters of an argument or output that are drawn at once. */
const MAX_SHOWN = 20000;
/** Characters of running output that are drawn. */
const MAX_LIVE = 4000;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A picture, where it is of a kind that is nothing but one. */
export function picture(image, about) {
  if (!IMAGES.includes(image.mime) || !/^[A-Za-z0-9+/=]*$/.test(image.base64)) return h("p", { class: "note" }, `[${short(clean(image.mime), 60)}]`);
  return h("img", { src: `data:${image.mime};base64,${image.base64}`, alt: about, loading: "lazy" });
}

/** A text that may be long: its beginning, and the rest on demand. */
export function long(text) {
  const shown = clean(text);
  const pre = h("pre", { tabindex: "0" }, shown.slice(0, MAX_SHOWN));
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
  #call; #output = ""; #result = null; #diff = null; #ms = null; #body; #state; #tally; #drawn = false; #live = null;
  constructor(call) {
    this.#call = call;
    this.#state = h("span", { class: "state" });
    this.#tally = h("span", { class: "tally" });
    this.#body = h("div", { class: "body" });
    this.element = h("details", { class: "tool", ontoggle: () => this.#draw() },
      h("summary", null, this.#state, h("code", { class: "tool-name" }, clean(call.name)),
        h("span", { class: "brief" }, clean(brief(call))), this.#tally),
      this.#body);
    this.#say("waits", "·");
  }

  get isOver() { return this.#result !== null; }

  #say(state, mark) {
    this.element.dataset.state = state;
    this.#state.replaceChildren(h("span", { "aria-hidden": "true" }, mark), h("span", { class: "sr" }, state));
  }

  starts() {
    if (!this.isOver) this.#say("runs", "▸");
  }

  /** Shows the end of its output while it runs. @param {string} output */
  progress(output) {
    this.#output = output;
    if (this.isOver) return;
    if (!this.#live) {
      this.#live = h("pre", { class: "live", tabindex: "0" });
      this.element.after(this.#live);
    }
    this.#live.textContent = clean(output.slice(-MAX_LIVE));
  }

  /** @param {any} result @param {string | null} diffText @param {number | null} ms */
  ends(result, diffText = null, ms = null) {
    this.#live?.remove();
    this.#live = null;
    const isNews = !this.isOver || diffText;
    this.#result = result;
    this.#diff = diffText ?? this.#diff;
    this.#ms = ms ?? this.#ms;
    this.#say(result.is_error ? "failed" : "done", result.is_error ? "✗" : "✓");
    const parts = [];
    if (this.#diff) {
      const [added, removed] = counted(this.#diff);
      parts.push(h("span", { class: "plus" }, `+${added}`), " ", h("span", { class: "minus" }, `−${removed}`), " ");
    }
    if (this.#ms !== null) parts.push(duration(this.#ms));
    this.#tally.replaceChildren(...parts);
    if (isNews && this.#drawn) { this.#drawn = false; this.#draw(); }
  }

  #draw() {
    if (!this.element.open || this.#drawn) return;
    this.#drawn = true;
    const shown = [...argumentList(this.#call).flat()];
    if (this.#diff) shown.push(diff(this.#diff));
    for (const part of this.#result?.parts ?? []) {
      if (part.text) shown.push(h("div", { class: "output" }, long(part.text.text)));
      else if (part.image) shown.push(picture(part.image, "Picture that the tool read"));
    }
    if (!this.#result && this.#output) shown.push(long(this.#output));
    this.#body.replaceChildren(...shown.flat());
  }
}

/** A call that the model is still writing. */
export class Draft {
  #text; #pre;
  constructor(name) {
    this.#text = "";
    this.#pre = h("pre", { class: "live" });
    this.element = h("div", { class: "draft" }, h("span", { class: "note" }, "writes ", h("code", null, clean(name))), this.#pre);
  }
  push(fragment) { this.#text = (this.#text + fragment).slice(-MAX_LIVE); }
  draw() { this.#pre.textContent = clean(this.#text); }
}
