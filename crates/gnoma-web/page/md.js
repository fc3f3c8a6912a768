// Markdown as elements: paragraphs, headings, lists, quotes, tables, code, emphasis, links. A text that comes
// in pieces is drawn in pieces: blocks that are finished stay as they are, and only the last one is drawn again.

import { diff } from "./diff.js";
import { clean, h } from "./dom.js";
import { highlight, languageOf } from "./highlight.js";
import { copyButton } from "./toast.js";

/** Longest block that is drawn again with every piece. */
const MAX_OPEN = 4096;
/** Finished blocks that the browser lays out as one, or not at all where they are out of sight. */
const CHUNK = 30;
/** Lines of code in one element, so that a piece costs what it adds. */
const CODE_LINES = 60;
/** How deep quotes, lists and emphasis may lie in each other. */
const MAX_DEPTH = 6;

// Lines of 2,000 characters and more are words and nothing else, and what stands between two marks of emphasis has
// at most 600: a text of nothing but marks must cost no more than any other.
const FENCE = /^(?!.{2000}) {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^(?!.{2000}) {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$/;
const RULE = /^(?!.{2000}) {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])([ \t]+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const INDENTED = /^(?: {4}|\t)/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;
const REFERENCE = /^ {0,3}\[([^\]^\n][^\]\n]{0,200})\]:[ \t]+<?(\S{1,2000}?)>?(?:[ \t]+["'(][^\n]*)?$/;
const TABLE_RULE = /^(?!.{2000}) {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** Addresses that are named elsewhere in the text, by their names. */
let references = new Map();

/** A whole text as a list of elements. @param {string} text */
export function markdown(text) {
  const lines = clean(text).split("\n");
  references = new Map();
  let fence = null;
  const kept = lines.filter((line) => {
    const mark = FENCE.exec(line)?.[1];
    if (fence ? closes(line, fence) : mark) fence = fence ? null : mark;
    const found = fence ? null : REFERENCE.exec(line);
    if (found) references.set(found[1].toLowerCase(), found[2]);
    return !found;
  });
  return blocks(kept, 0);
}

/** Whether a text names addresses elsewhere than where it uses them. @param {string} text */
export const hasReferences = (text) => text.split("\n").some((line) => REFERENCE.test(line));

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) { at++; continue; }
    const [element, next] = block(lines, at, depth);
    out.push(element);
    at = next;
  }
  return out;
}

function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  // All are one below the heading of the turn: models skip levels, and a page must not.
  if (heading) return [h("h3", { dir: "auto", "data-level": heading[1].length }, inline(heading[2])), at + 1];
  if (RULE.test(line)) return [h("hr", null), at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quoted(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return listed(lines, at, depth);
  if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1]) && lines[at + 1].includes("-")) return tabled(lines, at);
  if (INDENTED.test(line)) return indented(lines, at);
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines[end])) end++;
  const under = end < lines.length && end - at <= 3 ? UNDERLINE.exec(lines[end]) : null;
  if (under) return [h("h3", { dir: "auto", "data-level": under[1][0] === "=" ? 1 : 2 }, inline(lines.slice(at, end).join(" ").trim())), end + 1];
  return [h("p", { dir: "auto" }, inline(lines.slice(at, end).map((it) => it.trimStart()).join("\n"))), end];
}

const begins = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || UNDERLINE.test(line)
  || /^ {0,3}([-*+]|1[.)])[ \t]+\S/.test(line);

function closes(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && text === mark[0].repeat(text.length);
}

function fenced(lines, at, fence) {
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], fence[1])) end++;
  return [code(lines.slice(at + 1, end).join("\n"), fence[2].trim()), end + 1];
}

function indented(lines, at) {
  let end = at;
  while (end < lines.length && (INDENTED.test(lines[end]) || (!lines[end].trim() && INDENTED.test(lines[end + 1] ?? "")))) end++;
  return [code(lines.slice(at, end).map((it) => it.replace(INDENTED, "")).join("\n"), ""), end];
}

function code(text, words) {
  const name = words.split(/\s/)[0];
  if (name === "diff" && /^@@ /m.test(text)) return diff(text);
  const { element, inner, language } = codeBox(name);
  const lines = text.split("\n");
  let state = null;
  for (let from = 0; from < lines.length; from += CODE_LINES) {
    const piece = h("span", { class: "piece" });
    for (const line of lines.slice(from, from + CODE_LINES)) state = codeLine(piece, line, language, state);
    inner.append(piece);
  }
  return element;
}

/** A block of code: its language and a way to copy it above, the lines below. */
function codeBox(name) {
  const inner = h("code", null);
  const element = h("div", { class: "code", dir: "ltr" }, h("div", { class: "code-head" }, h("span", null, name || "text"), copyButton(() => inner.textContent.replace(/\n$/, ""))),
    h("pre", { tabindex: "0", "data-language": name || undefined }, inner));
  return { element, inner, language: languageOf(name || "text") };
}

function codeLine(piece, line, language, state) {
  const [parts, open] = highlight(line, language, state);
  for (const [name, text] of parts) piece.append(name ? h("span", { class: name }, text) : text);
  piece.append("\n");
  return open;
}

function quoted(lines, at, depth) {
  const inner = [];
  let end = at;
  for (let found; end < lines.length && (found = QUOTE.exec(lines[end])); end++) inner.push(found[1]);
  return [h("blockquote", { dir: "auto" }, blocks(inner, depth + 1)), end];
}

function listed(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (found && found[1].length === indent && /\d/.test(found[2]) === ordered && !RULE.test(lines[end])) {
      items.push([found[4]]);
      end++;
    } else if (!lines[end].trim()) {
      const next = lines[end + 1] ?? "";
      const follows = ITEM.exec(next);
      if (!next.trim() || !(next.startsWith(" ".repeat(indent + 2)) || follows?.[1].length === indent)) break;
      items.at(-1).push("");
      end++;
    } else if (lines[end].startsWith(" ".repeat(indent + 2)) || (found && found[1].length > indent)) {
      items.at(-1).push(lines[end].slice(Math.min(indent + (ordered ? 3 : 2), lines[end].search(/\S/))));
      end++;
    } else break;
  }
  const start = ordered ? parseInt(first[2], 10) : 1;
  return [h(ordered ? "ol" : "ul", { dir: "auto", start: ordered && start !== 1 ? start : undefined }, items.map((item) => h("li", null, loose(item, depth)))), end];
}

/** An item of one paragraph needs none around it. */
function loose(item, depth) {
  const task = /^\[([ xX])\] (.*)$/.exec(item[0]);
  const lines = task ? [`${task[1] === " " ? "☐" : "☑"} ${task[2]}`, ...item.slice(1)] : item;
  const inner = blocks(lines, depth + 1);
  if (inner[0]?.tagName === "P") inner.splice(0, 1, ...inner[0].childNodes);
  return inner;
}

function tabled(lines, at) {
  const cells = (line) => {
    const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
    const out = [""];
    let ticks = false;
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "\\" && text[i + 1] === "|") { out[out.length - 1] += "|"; i++; } else if (text[i] === "|" && !ticks) out.push("");
      else {
        if (text[i] === "`") ticks = !ticks;
        out[out.length - 1] += text[i];
      }
    }
    return out.map((cell) => cell.trim());
  };
  const heads = cells(lines[at]);
  const sides = cells(lines[at + 1]).map((it) => (it.endsWith(":") ? (it.startsWith(":") ? "mid" : "end") : ""));
  const row = (tag, line) => h("tr", null, heads.map((_, i) => h(tag, { class: sides[i] || undefined, scope: tag === "th" ? "col" : undefined }, inline(line[i] ?? ""))));
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end++;
  const body = lines.slice(at + 2, end).map((line) => row("td", cells(line)));
  return [h("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, h("table", { dir: "auto" }, h("thead", null, row("th", heads)), h("tbody", null, body))), end];
}

const ADDRESS = "(?:[^\\s()<>]|\\([^\\s()<>]*\\)){1,2000}";
const INLINE = new RegExp([
  "(`{1,8})([^`]|[^`][\\s\\S]{0,600}?[^`])\\1(?!`)",
  "\\*\\*\\*(?=\\S)([^*]{0,600}?[^\\s*])\\*\\*\\*",
  "\\*\\*(?=\\S)([\\s\\S]{0,600}?\\S)\\*\\*",
  "(?<!\\w)__(?=\\S)([\\s\\S]{0,600}?\\S)__(?!\\w)",
  "\\*(?=[^\\s*])([^*]{0,600}?[^\\s*])\\*(?!\\*)",
  "(?<!\\w)_(?=[^\\s_])([^_]{0,600}?[^\\s_])_(?!\\w)",
  "~~(?=\\S)([\\s\\S]{0,600}?\\S)~~",
  `\\[!\\[([^\\]\\n]{0,500})\\]\\(${ADDRESS}(?:[ \\t]+"[^"\\n]*")?\\)\\]\\(<?(${ADDRESS})>?\\)`,
  `!?\\[([^\\]\\n]{1,500})\\]\\(<?(${ADDRESS})>?(?:[ \\t]+"[^"\\n]*")?\\)`,
  "\\[\\^([\\w-]{1,20})\\]",
  "\\[([^\\]\\n]{1,500})\\]\\[([^\\]\\n]{0,200})\\]",
  "\\\\([!-/:-@[-`{-~])",
  "<(https?:\\/\\/[^\\s<>]{1,2000})>",
  "(https?:\\/\\/(?:[^\\s<>\"'`|()\\]]|\\([^\\s<>\"'`|()]*\\)){1,2000})",
  "&(amp|lt|gt|quot|apos|nbsp|#39);",
  "(<br ?\\/?>| {2,}\\n|\\\\\\n)",
].join("|"));
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'" };

/** What stands within a block: texts and elements. */
export function inline(text, depth = 0) {
  const out = [];
  let rest = text;
  while (rest) {
    const found = depth < MAX_DEPTH ? INLINE.exec(rest) : null;
    if (!found) { out.push(rest); break; }
    if (found.index) out.push(rest.slice(0, found.index));
    out.push(...mark(found, depth));
    rest = rest.slice(found.index + found[0].length);
  }
  return out;
}

function mark(found, depth) {
  const [whole, ticks, coded, both, bold, bolder, slanted, under, struck, badge, badgeTarget, label, target, foot, named, name, escaped, angled, address, entity] = found;
  const inner = (text) => inline(text, depth + 1);
  if (ticks) return [h("code", null, /^ .*[^ ].* $/.test(coded) ? coded.slice(1, -1) : coded)];
  if (both) return [h("strong", null, h("em", null, inner(both)))];
  if (bold ?? bolder) return [h("strong", null, inner(bold ?? bolder))];
  if (slanted ?? under) return [h("em", null, inner(slanted ?? under))];
  if (struck) return [h("del", null, inner(struck))];
  if (badgeTarget) return link(badgeTarget, [badge || "picture"], whole);
  if (label) return link(target, inner(label), whole);
  if (foot) return [h("sup", null, foot)];
  if (named) {
    const known = references.get((name || named).toLowerCase());
    return known ? link(known, inner(named), whole) : [whole];
  }
  if (escaped) return [escaped];
  if (angled) return link(angled, [angled], angled);
  if (address) {
    const end = address.replace(/[.,;:!?]+$/, "");
    return [...link(end, [end], end), address.slice(end.length)].filter(Boolean);
  }
  if (entity) return [ENTITIES[entity]];
  return [h("br", null)];
}

/** A link to the web; anything else stays text. Its address is shown where its words say another one. */
function link(target, label, whole) {
  let url = null;
  try { url = new URL(target); } catch { /* no address of its own */ }
  // A file of the project: what it is called, and where it is.
  if (!url && /^[\w./@#-]+$/.test(target)) return [...label, " (", h("code", null, target), ")"];
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return [whole];
  const words = label.map((it) => (typeof it === "string" ? it : it.textContent)).join("");
  const element = h("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank", title: url.href }, label);
  return words === target || url.href === words ? [element] : [element, h("span", { class: "host" }, ` (${url.host || url.pathname})`)];
}

/** A text that grows, as elements in `element`. */
export class Growing {
  #element; #chunk = null; #rest = ""; #open = []; #fence = null; #code = null; #language = null; #state = null; #lines = 0; #dirty = false;
  /** @param {HTMLElement} element */
  constructor(element) { this.#element = element; }

  /** All that has come. */
  text = "";

  /** @param {string} piece */
  push(piece) {
    this.text += piece;
    this.#rest += piece;
    this.#dirty = true;
  }

  /** Draws what has come since, or as much as there is time for; says whether that was all. */
  draw(until = Infinity) {
    if (!this.#dirty) return true;
    for (const it of this.#open) it.remove();
    this.#open = [];
    while (this.#settle()) if (performance.now() > until) return false;
    this.#dirty = false;
    if (!this.#rest) return true;
    if (this.#fence) {
      this.#code.append((this.#open[0] = document.createTextNode(clean(this.#rest))));
    } else {
      this.#open = markdown(this.#rest);
      this.#element.append(...this.#open);
    }
    return true;
  }

  /** Draws for good what cannot change any more; false where nothing is left of that. */
  #settle() {
    if (this.#fence) return this.#settleCode();
    const newline = this.#rest.indexOf("\n");
    const fence = newline >= 0 && FENCE.exec(this.#rest.slice(0, newline));
    if (fence) {
      this.#fence = fence[1];
      this.#lines = 0;
      const { element, inner, language } = codeBox(fence[2].trim().split(/\s/)[0]);
      [this.#code, this.#language, this.#state] = [inner, language, null];
      this.#settled(element);
      this.#rest = this.#rest.slice(newline + 1);
      return true;
    }
    let end = this.#boundary();
    if (end <= 0 && this.#rest.length > MAX_OPEN) {
      end = Math.max(this.#rest.lastIndexOf("\n", MAX_OPEN), this.#rest.lastIndexOf(" ", MAX_OPEN)) + 1 || MAX_OPEN;
    }
    if (end <= 0) return false;
    this.#settled(...markdown(this.#rest.slice(0, end)));
    this.#rest = this.#rest.slice(end);
    return true;
  }

  #settled(...elements) {
    if (!this.#chunk || this.#chunk.childElementCount >= CHUNK) this.#element.append((this.#chunk = h("div", { class: "chunk" })));
    this.#chunk.append(...elements);
  }

  /** Where the first blocks end for good: before a fence, or at an empty line that no list goes on after. */
  #boundary() {
    let at = 0;
    for (;;) {
      const end = this.#rest.indexOf("\n", at);
      if (end < 0) return 0;
      const line = this.#rest.slice(at, end);
      if (at > 0 && FENCE.test(line)) return at;
      const next = this.#rest[end + 1];
      if (!line.trim() && next !== undefined && !/[\s\d*+-]/.test(next)) return end + 1;
      at = end + 1;
    }
  }

  #settleCode() {
    const newline = this.#rest.indexOf("\n");
    if (newline < 0) return false;
    const line = this.#rest.slice(0, newline);
    this.#rest = this.#rest.slice(newline + 1);
    if (closes(line, this.#fence)) {
      this.#fence = null;
      return true;
    }
    if (this.#lines++ % CODE_LINES === 0) this.#code.append(h("span", { class: "piece" }));
    this.#state = codeLine(this.#code.lastElementChild, clean(line), this.#language, this.#state);
    return true;
  }
}
