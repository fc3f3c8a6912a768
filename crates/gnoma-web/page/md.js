// Markdown as elements: paragraphs, headings, lists, quotes, tables, code, emphasis, links. A text that comes
// in pieces is drawn in pieces: blocks that are finished stay as they are, and only the last one is drawn again.

import { clean, h } from "./dom.js";

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
const TABLE_RULE = /^(?!.{2000}) {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** A whole text as a list of elements. @param {string} text */
export function markdown(text) {
  return blocks(clean(text).split("\n"), 0);
}

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
  // Below the headings of the page itself.
  if (heading) return [h("h" + Math.min(6, heading[1].length + 2), null, inline(heading[2])), at + 1];
  if (RULE.test(line)) return [h("hr", null), at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quoted(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return listed(lines, at, depth);
  if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1]) && lines[at + 1].includes("-")) return tabled(lines, at);
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines[end])) end++;
  return [h("p", null, inline(lines.slice(at, end).map((it) => it.trimStart()).join("\n"))), end];
}

const begins = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)
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

function code(text, language) {
  return h("pre", { tabindex: "0", "data-language": language.split(/\s/)[0] || undefined }, h("code", null, text));
}

function quoted(lines, at, depth) {
  const inner = [];
  let end = at;
  for (let found; end < lines.length && (found = QUOTE.exec(lines[end])); end++) inner.push(found[1]);
  return [h("blockquote", null, blocks(inner, depth + 1)), end];
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
  return [h(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : undefined }, items.map((item) => h("li", null, loose(item, depth)))), end];
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
  return [h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", null, h("thead", null, row("th", heads)), h("tbody", null, body))), end];
}

const INLINE = /(`{1,8})([^`]|[^`][\s\S]{0,600}?[^`])\1(?!`)|(\*\*|__)(?=\S)([\s\S]{0,600}?\S)\3|(\*)(?=[^\s*])([^*]{0,600}?[^\s*])\*(?!\*)|(?<![\w])_(?=[^\s_])([^_]{0,600}?[^\s_])_(?!\w)|~~(?=\S)([\s\S]{0,600}?\S)~~|!?\[([^\]\n]{1,500})\]\(<?([^\s)<>]{1,2000})>?(?:[ \t]+"[^"\n]*")?\)|\\([!-/:-@[-`{-~])|(https?:\/\/[^\s<>"'`|)\]]{1,2000})| {2,}\n|\\\n/;

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
  const [whole, ticks, coded, strong, bold, star, slanted, under, struck, label, target, escaped, address] = found;
  const inner = (text) => inline(text, depth + 1);
  if (ticks) return [h("code", null, /^ .*[^ ].* $/.test(coded) ? coded.slice(1, -1) : coded)];
  if (strong) return [h("strong", null, inner(bold))];
  if (star) return [h("em", null, inner(slanted))];
  if (under) return [h("em", null, inner(under))];
  if (struck) return [h("del", null, inner(struck))];
  if (label) return link(target, inner(label), whole);
  if (escaped) return [escaped];
  if (address) {
    const end = address.replace(/[.,;:!?]+$/, "");
    return [...link(end, [end], end), address.slice(end.length)].filter(Boolean);
  }
  return [h("br", null)];
}

/** A link to the web; anything else stays text. Its address is shown where its words say another one. */
function link(target, label, whole) {
  let url = null;
  try { url = new URL(target); } catch { /* no address of its own */ }
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return [whole];
  const words = label.map((it) => (typeof it === "string" ? it : it.textContent)).join("");
  const element = h("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank", title: url.href }, label);
  return words === target || url.href === words ? [element] : [element, h("span", { class: "host" }, ` (${url.host || url.pathname})`)];
}

/** A text that grows, as elements in `element`. */
export class Growing {
  #element; #chunk = null; #rest = ""; #open = []; #fence = null; #code = null; #lines = 0; #dirty = false;
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
      const pre = code("", fence[2].trim());
      this.#code = pre.firstChild;
      this.#settled(pre);
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
    this.#code.lastElementChild.append(clean(line) + "\n");
    return true;
  }
}
