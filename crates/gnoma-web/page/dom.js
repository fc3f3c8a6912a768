// Elements out of values. A string is always text: nothing here, and nothing elsewhere in the page, parses
// markup, and the server's content security policy would not let it.

import { icon } from "./icons.js";

/**
 * Makes an element. Attributes are strings, true or false; what begins with `on` is a listener.
 * @param {string} tag @param {Record<string, any> | null} attributes @param {...any} children
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const name in attributes) {
    const value = attributes[name];
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) put(element, child);
    else element.append(child);
  }
}

/** Puts children in the place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

/** A quiet button of an icon, and words where it has some. `name` is what it is called where it has none. */
export function iconButton(image, { name, words, onclick, ...more } = {}) {
  return h("button", { type: "button", class: "plain", "aria-label": words ? undefined : name, title: words ? undefined : name, onclick, ...more }, icon(image), words);
}

export const byId = (id) => document.getElementById(id);

/** Characters that steer the direction of text or are not seen: shown as what they are. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** A text without terminal sequences, and with unseen characters made visible. */
export function clean(text) {
  return text.replace(ESCAPES, "").replace(/\r\n?/g, "\n")
    .replace(UNSEEN, (it) => `<U+${it.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

/** A text of at most so many characters. */
export const short = (text, most) => (text.length > most ? text.slice(0, most - 1).trimEnd() + "…" : text);

export const firstLine = (text) => (text.trim().split("\n", 1)[0] ?? "");

/** `1 file`, `2 files`. */
export const count = (number, word, many = word + "s") => `${number.toLocaleString()} ${number === 1 ? word : many}`;

/** The last part of a path. */
export const baseName = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

/** A time of day, or a date where it is another day. */
export function when(ms) {
  const date = new Date(ms);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { day: "numeric", month: "short" });
}

export function duration(ms) {
  if (ms < 950) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function tokens(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** What a session cost; more where the price of some calls is not known. */
export function cost({ micro_usd: micro, is_cost_partial: isPartial }) {
  if (!isPartial) return money(micro);
  return micro > 0 ? `at least ${money(micro)}` : "unknown";
}

/** Micro-dollars. */
export function money(micro) {
  const dollars = micro / 1e6;
  return `$${dollars < 0.1 && micro > 0 ? dollars.toFixed(4) : dollars.toFixed(2)}`;
}

/** A text in which what stands between backticks is code. */
export const ticked = (text) => text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? h("code", null, part) : part));

/** What the page remembers in this browser; a browser that stores nothing forgets it. */
export const memory = {
  get(name) {
    try { return localStorage.getItem("gnoma-" + name); } catch { return null; }
  },
  set(name, value) {
    try {
      if (value === null || value === "") localStorage.removeItem("gnoma-" + name);
      else localStorage.setItem("gnoma-" + name, value);
    } catch { /* a full or locked store is no reason to stop */ }
  },
  /** A list of texts. @returns {string[]} */
  list(name) {
    try {
      const list = JSON.parse(memory.get(name) ?? "[]");
      return Array.isArray(list) ? list.filter((it) => typeof it === "string") : [];
    } catch { return []; }
  },
};
