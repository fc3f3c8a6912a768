// What things are called for people. Tables whose keys come from models or servers have no prototype: a tool may be named
// `constructor`.

import { firstLine, short } from "./dom.js";

export const MODES = {
  __proto__: null,
  default: "Ask before everything",
  accept_edits: "Edit without asking",
  auto: "Read without asking",
  plan: "Plan: read only",
  deny: "Run nothing",
  bypass: "Run everything",
};

/** Modes that can be chosen here; running everything unasked is chosen at the machine itself. */
export const CHOSEN_HERE = ["auto", "default", "accept_edits", "plan", "deny"];

/** Settings that are safe to change here: what they are, and their values where there are few. */
export const SETTINGS = {
  __proto__: null,
  "provider.thinking": ["How much models think: off, adaptive, or a number of tokens"],
  "provider.effort": ["How hard models think", ["none", "low", "medium", "high"]],
  "provider.temperature": ["Sampling temperature, 0 to 2"],
  "tools.bash_timeout": ["Time limit of a shell command, such as 30s"],
  "tools.max_rounds": ["Maximum model calls in a turn"],
};

/** How much models can be told to think in a session, as it is sent. */
export const THINKING = [
  [null, "As the settings say"], ["off", "Not at all"], ["adaptive", "As much as the task needs"],
  [{ tokens: 2000 }, "About 2,000 tokens"], [{ tokens: 8000 }, "About 8,000 tokens"], [{ tokens: 32000 }, "About 32,000 tokens"],
];

/** Where a step of a plan stands: its icon, and the word for it. */
export const STEPS = { __proto__: null, done: ["check", "done"], active: ["right", "under way"], pending: ["more", "not begun"] };

/** Arguments that say by themselves what a call does, the most telling first. */
const TELLING = ["command", "pattern", "path", "file_path", "url", "query", "prompt", "task", "question", "name"];

export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");

/** The arguments of a call, the most telling first. @returns {[string, string][]} */
export function argumentsOf(call) {
  const all = call.arguments;
  if (typeof all !== "object" || all === null || Array.isArray(all)) return [["", asText(all)]];
  const names = Object.keys(all);
  const main = TELLING.find((name) => names.includes(name));
  if (main) names.unshift(...names.splice(names.indexOf(main), 1));
  return names.map((name) => [name, asText(all[name])]);
}

/** Tools in words: the icon, what is done and what is being done; `looks` are those that change nothing and come in rows. */
const TOOLS = {
  __proto__: null,
  "fs.read": ["file", "Read", "Reading", true],
  "fs.ls": ["folder", "Listed", "Listing", true],
  "fs.glob": ["search", "Looked for", "Looking for", true],
  "fs.grep": ["search", "Searched", "Searching", true],
  read_result: ["file", "Read more of", "Reading more of", true],
  "fs.edit": ["edit", "Edited", "Editing"],
  "fs.write": ["edit", "Wrote", "Writing"],
  bash: ["terminal", "Ran", "Running"],
  "elf.spawn": ["hat", "Asked", "Asking"],
  elf: ["hat", "Elfs", "Elfs"],
  ask: ["ask", "Asked you", "Asks you"],
  skill: ["spark", "Read the skill", "Reading the skill"],
  job: ["terminal", "Background command:", "Background command:"],
};

/** How the line of a call that failed begins. */
const FAILED = { __proto__: null, "fs.read": "Could not read", "fs.ls": "Could not list", "fs.glob": "Could not look for", "fs.grep": "Could not search", "fs.edit": "Did not edit", "fs.write": "Did not write", bash: "Failed:", "elf.spawn": "Elfs failed:" };

/** Where a step of a task stands: its icon, and the word for it. */
export const TASK_STEPS = { __proto__: null, waiting: ["more", "not begun"], begun: ["right", "begun"], done: ["check", "done"], failed: ["alert", "failed"], stopped: ["stop", "stopped"], skipped: ["more", "left out"] };

/** The tool of the model's plan: it is shown above the message box, and needs no card. */
export const PLAN = "plan";

/** A call in words: `done` and `doing` begin the line, `what` is what it is about. */
export function inWords(call) {
  const [icon, done, doing, looks = false] = TOOLS[call.name] ?? ["spark", "Used", "Using"];
  return { icon, done, doing, looks, failed: FAILED[call.name] ?? "Failed:", what: TOOLS[call.name] ? brief(call) : call.name.replace(".", ": ") + (brief(call) ? ` ${brief(call)}` : "") };
}

/** What a call is about, in a line. */
export function brief(call) {
  const given = call.arguments ?? {};
  if (call.name === "elf.spawn" && Array.isArray(given.tasks)) {
    return short(given.tasks.map((it) => it?.name || firstLine(asText(it?.task ?? ""))).join(", "), 120);
  }
  if (call.name === "elf") return short([given.action, ...(Array.isArray(given.names) ? given.names : [])].filter((it) => typeof it === "string").join(" "), 120);
  if (call.name === "fs.read" && typeof given.path === "string") return given.path;
  const [first] = argumentsOf(call);
  const text = first ? firstLine(first[1]) : "";
  // A value that is no text says nothing by its first line.
  const says = !/^[[{]/.test(text);
  if (!says) return "";
  if ((call.name === "fs.grep" || call.name === "fs.glob") && typeof given.path === "string" && given.path !== ".") return short(`${text} in ${given.path}`, 120);
  return short(text, 160);
}

/**
 * The background command that a call starts or asks about: its number, its command where it is started, and the state where
 * the result says it; null of other calls.
 */
export function jobOf(call, text) {
  const { command = "", id } = call.arguments ?? {};
  if (call.name === "bash") {
    const started = /^job (\d+) started$|continues as job (\d+)\]$/m.exec(text);
    return started && { id: +(started[1] ?? started[2]), command: asText(command) };
  }
  const state = call.name === "job" && /^job \d+: (.*)$/m.exec(text)?.[1];
  return state && Number.isInteger(id) ? { id, state, isOver: !state.startsWith("Running") } : null;
}

/** What came of a call that looked, in a few words. @returns {string} */
export function outcome(call, text) {
  if (call.name === "fs.grep") {
    const hits = text.split("\n").filter((line) => /^[^\n]*:\d+:/.test(line)).length;
    return hits === 1 ? "1 hit" : `${hits} hits`;
  }
  if (call.name === "fs.glob") {
    const files = /^no file matches/.test(text) ? 0 : text.split("\n").filter((line) => line.trim() && !line.startsWith("[")).length;
    return files === 1 ? "1 file" : `${files} files`;
  }
  return "";
}

/** Several looks in one line: "3 reads, 2 searches". */
export function looksInWords(calls) {
  const kinds = [["read", ["fs.read", "read_result"]], ["search", ["fs.grep", "fs.glob"]], ["list", ["fs.ls"]]];
  const parts = kinds.map(([word, names]) => [word, calls.filter((it) => names.includes(it.name)).length]).filter(([, number]) => number);
  return parts.map(([word, number]) => `${number} ${number === 1 ? word : word === "search" ? "searches" : word + "s"}`).join(", ");
}

/** A reason in its parts: what stands between backticks is a command or a name, and stays whole. */
function partsOf(reason) {
  const parts = [];
  let quoted = false;
  let from = 0;
  for (let at = 0; at < reason.length; at++) {
    if (reason[at] === "`") quoted = !quoted;
    else if (!quoted && reason.startsWith("; ", at)) { parts.push(reason.slice(from, at)); from = at + 2; }
  }
  parts.push(reason.slice(from));
  return parts.map((it) => it.trim()).filter(Boolean);
}

/**
 * The reasons of a question one by one, the worst first as they come, with the mode that asks. `dangers` are what the
 * server names of them as lost, sent, or not what it seems: those are said in red.
 */
export function reasonsOf(reason, call, dangers = []) {
  const found = /^mode ([a-z_]+): /.exec(reason);
  const rest = found ? reason.slice(found[0].length) : reason;
  const command = typeof call?.arguments?.command === "string" ? call.arguments.command.trim() : null;
  const bad = dangers.flatMap(partsOf);
  const list = partsOf(rest).map((text) => {
    // The command is above: it is not said again.
    const words = command && text.startsWith("`" + command + "`") ? "it" + text.slice(command.length + 2) : text;
    return { text: words[0].toUpperCase() + words.slice(1), isBad: bad.some((it) => text.includes(it)) };
  });
  return { mode: found ? MODES[found[1]] ?? found[1] : "", list };
}

export const armName = (arm) => (arm ? `${arm.provider}/${arm.model}` : "");

/** A text with one stop at its end. */
export const sentence = (text) => text.trim().replace(/[.\s]*$/, "") + ".";

/** How a turn ended, where that is worth saying. */
export function ending(outcome) {
  const [kind, how] = typeof outcome === "string" ? [outcome] : Object.entries(outcome)[0];
  switch (kind) {
    case "complete": return how.stop === "refusal" ? "The model refused." : "";
    case "cancelled": return "Stopped.";
    case "round_limit": return `Stopped after ${how.rounds} model calls. Write “continue” to go on.`;
    case "stuck": return `Stopped: no progress (${how.what}).`;
    case "unfit": return `No answer had the form that it must have: ${how.why}`;
    case "failed": return `Failed: ${sentence(how.error.message)}${how.error.hint ? " " + sentence(how.error.hint) : ""}`;
    default: return kind;
  }
}

export function stateOf(session) {
  if (session.questions > 0) return "asks";
  return { idle: "idle", active: "works", cancelling: "stops", closed: "closed" }[session.state] ?? session.state;
}
