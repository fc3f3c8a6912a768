// Unified diffs by file: folds, numbers, colours of the language, marks on the words that changed, one column or two.
// What is added and taken away is also said in words.

import { clean, count, h } from "./dom.js";
import { highlight, languageOf } from "./highlight.js";
import { icon } from "./icons.js";

/** Lines of a file that are drawn at once; the rest once it is near. */
const MAX_LINES = 200;
/** Lines in one element that the browser lays out only where it is seen. */
const CHUNK = 50;
/** The height of a line, as in the style. */
const LINE_EM = 1.6;
/** Unchanged lines in a row that are folded, and those that stay around a change. */
const FOLDED = 10;
const AROUND = 3;
/** Pairs of lines that are compared; larger edits are shown as all of the old and all of the new. */
const MAX_COMPARED = 250000;
/** Longer lines get no marks on words. */
const MAX_MARKED = 400;
/** The part of two lines that must be the same, so that the rest is marked. */
const MIN_SHARE = 0.4;

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const CUT = /^\[(\d+) more diff lines: \+(\d+) -(\d+)\]$/;
const BINARY = /^Binary or large files (?:a\/(.*)|\/dev\/null) and (?:b\/(.*)|\/dev\/null) differ$/;

const cleanLine = (line) => clean(line.replace(/\r$/, "")).replace(/\n/g, "␍");
const afterSlash = (name) => name.replace(/^[ab]\//, "");

/**
 * The files of a diff, each with its hunks as they came and the rows at which they begin. A hunk ends where its counts say, so that a line that begins with `---` is what it is.
 * @param {string} text
 */
export function parse(text) {
  const files = [];
  let file = null;
  let [before, after, left, right] = [0, 0, 0, 0];
  const begin = () => files.push((file = { path: "", name: "", from: "", rows: [], hunks: [], notes: [], added: 0, removed: 0 })) && file;
  const row = (kind, a, b, words) => (file ?? begin()).rows.push({ kind, before: a, after: b, text: words });
  const raw = text.replace(/\n$/, "").split("\n");
  const lines = raw.map(cleanLine);
  // Lines that did not come are counted, too.
  const cutOff = ([, all, added, removed]) => {
    file ??= begin();
    file.cut = +all;
    file.added += +added;
    file.removed += +removed;
  };
  const extend = (place) => { const last = file?.hunks.at(-1); if (last) last.to = place + 1; };
  for (const [place, line] of lines.entries()) {
    const hunk = HUNK.exec(line);
    const sign = line[0];
    if (left > 0 || right > 0) {
      const cut = CUT.exec(line);
      if (cut) {
        cutOff(cut);
        file.hunks.pop();
        [left, right] = [0, 0];
        continue;
      }
      extend(place);
      if (sign === "+" && right > 0) { row("added", 0, after++, line.slice(1)); file.added++; right--; continue; }
      if (sign === "-" && left > 0) { row("removed", before++, 0, line.slice(1)); file.removed++; left--; continue; }
      if ((sign === " " || line === "") && left > 0 && right > 0) { row("same", before++, after++, line.slice(1)); left--; right--; continue; }
      if (sign === "\\") { row("note", 0, 0, line.slice(2)); continue; }
      [left, right] = [0, 0];
    }
    const cut = CUT.exec(line);
    if (hunk) {
      const since = +hunk[3];
      const last = file?.rows.findLast((it) => it.after);
      if (last && since > last.after + 1) row("gap", 0, 0, String(since - last.after - 1));
      else if (!last && since > 1) row("gap", 0, 0, String(since - 1));
      [before, left, after, right] = [+hunk[1], +(hunk[2] ?? 1), +hunk[3], +(hunk[4] ?? 1)];
      if (!file) begin();
      file.hunks.push({ row: file.rows.length, from: place, to: place });
    } else if (line.startsWith("diff --git ")) {
      begin().path = / b\/(.*)$/.exec(line)?.[1] ?? line.slice(11);
    } else if (line.startsWith("--- ") && (lines[place + 1] ?? "").startsWith("+++ ")) {
      if (!file || file.rows.length || file.from || file.isBinary) begin();
      [file.from, file.name] = [line.slice(4), afterSlash(raw[place].slice(4))];
    } else if (line.startsWith("+++ ") && file?.from) {
      const name = line.slice(4).split("\t")[0];
      file.path = afterSlash(name === "/dev/null" ? file.from : name);
      if (name !== "/dev/null") file.name = afterSlash(raw[place].slice(4));
      file.state = name === "/dev/null" ? "deleted" : file.from === "/dev/null" ? "new" : "";
    } else if (cut) cutOff(cut);
    else if (line.startsWith("\\")) { row("note", 0, 0, line.slice(2)); extend(place); }
    else if (/^(index |new file|deleted file|similarity |old mode|new mode|rename )/.test(line)) continue;
    else if (BINARY.test(line)) {
      const names = BINARY.exec(line);
      Object.assign(begin(), { isBinary: true, path: names[2] ?? names[1], name: raw[place].replace(BINARY, (_, a, b) => b ?? a) }).notes.push(line);
    } else if (/^Binary /.test(line) && files.length) begin().notes.push(line);
    else if (line.trim()) (file && !file.rows.length ? file : begin()).notes.push(line);
  }
  // A hunk that was cut off can be looked at, no more.
  if (left > 0 || right > 0) file?.hunks.pop();
  for (const hunk of files.flatMap((it) => it.hunks)) hunk.text = raw.slice(hunk.from, hunk.to).join("\n") + "\n";
  return files.filter((it) => it.rows.length || it.notes.length || it.path);
}

/** How many lines a diff adds and takes away. @param {string} text */
export const counted = (text) => sums(parse(text));

/** How many lines files of a diff add and take away. */
export const sums = (files) => [files.reduce((all, it) => all + it.added, 0), files.reduce((all, it) => all + it.removed, 0)];

/** How much was added and taken away, in colours. */
export const tally = (added, removed) => [h("span", { class: "plus" }, `+${added}`), " ", h("span", { class: "minus" }, `−${removed}`)];

/** The lines of two texts as those of a diff: what both have in the same order stays. */
function compare(a, b) {
  if (a.length * b.length > MAX_COMPARED) return [...a.map((it) => "-" + it), ...b.map((it) => "+" + it)];
  // How many lines the rests from each pair of places on have in common.
  const same = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) same[i][j] = a[i] === b[j] ? same[i + 1][j + 1] + 1 : Math.max(same[i + 1][j], same[i][j + 1]);
  const out = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push(" " + a[i++]); j++; } else if (j >= b.length || (i < a.length && same[i + 1][j] >= same[i][j + 1])) out.push("-" + a[i++]);
    else out.push("+" + b[j++]);
  }
  return out;
}

/** A diff of what a call replaces, where the one that was told is no longer known: by its result, else by its arguments. @param {any} call @param {string} [result] @returns {string | null} */
export function diffOfCall(call, result = "") {
  const { path, file_path: other, old_string: old, new_string: next, edits, content } = call.arguments ?? {};
  const name = path ?? other;
  if (typeof name !== "string") return null;
  const lines = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
  const hunks = call.name === "fs.edit" ? /^@@ -\d/m.exec(result)?.index : undefined;
  if (hunks !== undefined && !/^\[\d+ more diff lines\]$/m.test(result)) {
    return `--- ${result.startsWith("@@ -0,0 ", hunks) ? "/dev/null" : "a/" + name}\n+++ b/${name}\n${result.slice(hunks)}\n`;
  }
  if (call.name === "fs.edit") {
    const all = (Array.isArray(edits) && edits.length ? edits : [{ old_string: old, new_string: next }]).filter((it) => typeof it?.old_string === "string" && typeof it?.new_string === "string");
    const hunks = all.map((it) => [lines(it.old_string), lines(it.new_string)]).map(([a, b]) => `@@ -1,${a.length} +1,${b.length} @@\n${compare(a, b).join("\n")}\n`);
    return hunks.length ? `--- a/${name}\n+++ b/${name}\n${hunks.join("")}` : null;
  }
  if (call.name === "fs.write" && typeof content === "string") {
    const all = lines(content);
    return `--- /dev/null\n+++ b/${name}\n@@ -0,0 +1,${all.length} @@\n${all.map((it) => "+" + it).join("\n")}\n`;
  }
  return null;
}

/** Lines that came cut short become whole again, where the call says how they go on. @param {any[]} rows @param {any[]} whole */
function complete(rows, whole) {
  let from = 0;
  for (const row of rows) {
    const [line, known] = [row.text, row.text.slice(0, -1)];
    if (!line.endsWith("…") || !(row.kind in SIGNS)) continue;
    const place = whole.findIndex((it, at) => at >= from && it.kind === row.kind && it.text.length > line.length && it.text.startsWith(known));
    if (place < 0) continue;
    row.text = whole[place].text;
    from = place + 1;
  }
}

/** Gives all that a call writes, where its diff was cut. @param {any} call */
export const wholeOf = (call) => () => parse(diffOfCall(call) ?? "")[0] ?? null;

/** Where two lines begin and end to differ, at borders of words. */
function marks(a, b) {
  if (a.length > MAX_MARKED || b.length > MAX_MARKED) return null;
  const [x, y] = [a.match(/\w+|\W/gu) ?? [], b.match(/\w+|\W/gu) ?? []];
  let start = 0;
  while (start < x.length && start < y.length && x[start] === y[start]) start++;
  let end = 0;
  while (end < x.length - start && end < y.length - start && x[x.length - 1 - end] === y[y.length - 1 - end]) end++;
  const length = (list, from, to) => list.slice(from, to).join("").length;
  const same = x.slice(0, start).concat(x.slice(x.length - end)).join("").trim().length;
  // Lines that have little in common are not marked: all of them is the change.
  if (same < MIN_SHARE * Math.max(a.trim().length, b.trim().length) || (same === a.length && same === b.length)) return null;
  return [[length(x, 0, start), a.length - length(x, x.length - end, x.length)], [length(y, 0, start), b.length - length(y, y.length - end, y.length)]];
}

/** Makes pairs of a line that went and the one that came for it. */
function pair(rows) {
  for (let at = 0; at < rows.length;) {
    if (rows[at].kind !== "removed") { at++; continue; }
    let middle = at;
    while (rows[middle]?.kind === "removed") middle++;
    let end = middle;
    while (rows[end]?.kind === "added") end++;
    for (let place = 0; place < Math.min(middle - at, end - middle); place++) {
      rows[at + place].partner = rows[middle + place];
      rows[middle + place].partner = rows[at + place];
    }
    at = end;
  }
}

function code(row, language) {
  const [parts] = highlight(row.text, language);
  const { kind, text: own, partner } = row;
  const mark = partner && (kind === "removed" ? marks(own, partner.text)?.[0] : marks(partner.text, own)?.[1]);
  if (!mark) return parts.map(([name, text]) => (name ? h("span", { class: name }, text) : text));
  const out = [];
  const [from, to] = mark;
  let at = 0;
  for (const [name, text] of parts) {
    const cuts = [0, Math.min(Math.max(from - at, 0), text.length), Math.min(Math.max(to - at, 0), text.length), text.length];
    for (let place = 0; place < 3; place++) {
      const piece = text.slice(cuts[place], cuts[place + 1]);
      if (piece) out.push(h(place === 1 ? "mark" : "span", name ? { class: name } : null, piece));
    }
    at += text.length;
  }
  return out;
}

const SIGNS = { added: ["+", "added"], removed: ["−", "removed"], same: ["", ""] };

function line(row, language, numbers) {
  if (row.kind === "gap") return h("p", { class: "note" }, `⋯ ${count(+row.text, "unchanged line")}`);
  if (row.kind === "note") return h("p", { class: "note" }, row.text);
  if (row.kind === "tool") return row.make();
  const [sign, word] = SIGNS[row.kind];
  const number = (it) => h("span", { class: "number", "aria-hidden": "true" }, it || "");
  return h("div", { class: "line " + row.kind, "data-line": row.after || row.before || undefined, "data-gone": row.kind === "removed" }, numbers.map((side) => number(row[side])),
    h("span", { class: "sign", "aria-hidden": "true" }, sign), word && h("span", { class: "sr" }, word + " "), h("span", { class: "text" }, row.text ? code(row, language) : " "));
}

/** Rows for two columns: what went at the left, what came in its place at the right. */
function columns(rows, language) {
  const out = [];
  for (let at = 0; at < rows.length;) {
    const sides = [[], []];
    if (rows[at].kind === "same") {
      for (const side of sides) side.push(rows[at]);
      at++;
    } else {
      while (rows[at]?.kind === "removed") sides[0].push(rows[at++]);
      while (rows[at]?.kind === "added") sides[1].push(rows[at++]);
    }
    for (let place = 0; place < Math.max(sides[0].length, sides[1].length); place++) {
      out.push(h("div", { class: "pair" }, sides.map((side, which) => (side[place] ? line(side[place], language, [which ? "after" : "before"]) : h("div", { class: "line empty" })))));
    }
  }
  return out;
}

/** Pieces of diffs that are still plain text, and how each becomes lines. */
const plain = new WeakMap();
// A piece becomes lines once it is near: until then its text is there, can be found and read, and is as high.
const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    target.replaceChildren(...plain.get(target)());
  }
}, { scrollMargin: "100%" });

/** Rows as elements, in pieces of which those far below stay plain text until they are near; long unchanged parts are folded. */
function drawn(rows, language, isSplit) {
  const out = [];
  const lines = (some) => (isSplit ? columns(some, language) : some.map((row) => line(row, language, ["before", "after"])));
  const piece = (some, at, all) => {
    const box = h("div", { class: "chunk" });
    box.style.containIntrinsicBlockSize = `auto ${some.length * LINE_EM}em`;
    if (at < MAX_LINES) box.append(...lines(some));
    else {
      box.append(h("div", { class: "text" }, some.map((row) => `${SIGNS[row.kind][0] || " "} ${row.text}\n`).join("")));
      plain.set(box, () => lines(some));
      near.observe(box);
    }
    all.push(box);
  };
  const draw = (from, to, all = out) => {
    for (let at = from; at < to;) {
      // What can be pressed, and what is no line, is always there.
      if (!(rows[at].kind in SIGNS)) { all.push(line(rows[at++])); continue; }
      let end = at;
      // What belongs together stays together where that is near.
      while (end < to && rows[end].kind in SIGNS && (end - at < CHUNK || (end - at < 2 * CHUNK && rows[end].kind !== "same"))) end++;
      piece(rows.slice(at, end), at, all);
      at = end;
    }
  };
  let from = 0;
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (rows[end]?.kind === "same") end++;
    const [first, last] = [at + (at ? AROUND : 0), end - (end < rows.length ? AROUND : 0)];
    if (last - first >= FOLDED) {
      draw(from, first);
      const unfold = () => {
        const all = [];
        draw(first, last, all);
        button.replaceWith(...all);
      };
      const button = h("button", { type: "button", class: "fold", onclick: unfold }, `⋯ ${count(last - first, "unchanged line")}`);
      out.push(button);
      from = last;
    }
    at = Math.max(end, at + 1);
  }
  draw(from, rows.length);
  return out;
}

/** One file of a diff. `isSplit`: in two columns; `whole(file)` gives all of one that was cut. */
export function fileElement(file, { isSplit = false, isOpen = true, isOnly = false, head = null, whole = null } = {}) {
  const language = languageOf(file.path);
  const box = h("div", { class: "diff-lines", tabindex: "0", role: "group", "aria-label": `Lines of ${file.path || "the diff"}` });
  let isDrawn = false;
  const draw = () => {
    if (isDrawn) return;
    isDrawn = true;
    if (whole && file.rows.some((it) => it.text.endsWith("…"))) complete(file.rows, whole()?.rows ?? []);
    pair(file.rows);
    box.append(...file.notes.map((text) => h("p", { class: "note" }, text)), ...drawn(file.rows, language, isSplit));
    if (file.cut) {
      const all = whole?.();
      const note = h("p", { class: "note" }, `${count(file.cut, "more line")} of this diff did not come along.`);
      const show = () => {
        // A new file is nothing but what is written; of another one the beginning of the diff stays, and says what goes.
        if (file.state === "new") box.replaceChildren(more);
        else note.textContent = "The diff ends here. All that is written:";
        more.replaceWith(...drawn(all.rows, language, isSplit));
      };
      const more = all && h("button", { type: "button", class: "more", onclick: show }, `Show all ${count(all.rows.length, "line")} that are written`);
      box.append(note, ...(more ? [more] : []));
    }
  };
  if (isOnly && !file.path) {
    draw();
    return box;
  }
  const element = h("details", { class: "diff-file", open: isOpen, ontoggle: () => element.open && draw() },
    h("summary", null, icon("right"), h("span", { class: "path" }, file.path || "Lines"), file.state && h("span", { class: "note" }, file.state), h("span", null, tally(file.added, file.removed)), head?.(file)), box);
  if (isOpen) draw();
  return element;
}

/** A diff, file by file. @param {string} text @param {Parameters<typeof fileElement>[1]} [options] */
export function diff(text, options = {}) {
  const files = parse(text);
  const [added, removed] = sums(files);
  return h("div", { class: options.isSplit ? "diff split" : "diff", role: "group", "aria-label": `Diff of ${count(files.length, "file")}: ${added} lines added, ${removed} removed` },
    files.map((file) => fileElement(file, { ...options, isOnly: files.length === 1 })));
}
