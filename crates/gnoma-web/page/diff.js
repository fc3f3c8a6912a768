// A unified diff as lines with numbers and colours; what is added and taken away is also said in words.

import { clean, h } from "./dom.js";

/** Lines that are drawn; a larger diff says how many more there are. */
const MAX_LINES = 1500;
const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** @param {string} text */
export function diff(text) {
  const lines = clean(text).replace(/\n$/, "").split("\n");
  let [before, after] = [1, 1];
  let within = !lines.some((line) => HUNK.test(line));
  const rows = [];
  for (const line of lines.slice(0, MAX_LINES)) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [before, after, within] = [+hunk[1], +hunk[2], true];
      rows.push(row("hunk", "", "", line));
    } else if (/^(diff |index |new file|deleted file|similarity |rename |Binary )/.test(line)) {
      within = false;
      rows.push(row("file", "", "", line));
    } else if (!within) rows.push(row("file", "", "", line));
    else if (line.startsWith("+")) rows.push(row("added", "", after++, line));
    else if (line.startsWith("-")) rows.push(row("removed", before++, "", line));
    else if (line.startsWith("\\")) rows.push(row("note", "", "", line));
    else rows.push(row("same", before++, after++, line));
  }
  if (lines.length > MAX_LINES) rows.push(row("note", "", "", `… ${lines.length - MAX_LINES} more lines`));
  const [added, removed] = counted(text);
  return h("div", { class: "diff", tabindex: "0", role: "region", "aria-label": `Diff: ${added} lines added, ${removed} removed` }, rows);
}

function row(kind, before, after, text) {
  return h("div", { class: "line " + kind }, h("span", { class: "number", "aria-hidden": "true" }, before), h("span", { class: "number", "aria-hidden": "true" }, after), h("span", { class: "text" }, text || " "));
}

/** How many lines a diff adds and takes away. @param {string} text */
export function counted(text) {
  let [added, removed] = [0, 0];
  for (const line of text.split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++ ")) added++;
    else if (line.startsWith("-") && !line.startsWith("--- ")) removed++;
  }
  return [added, removed];
}
