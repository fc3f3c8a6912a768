// What things are called for people.

import { firstLine, short } from "./dom.js";

export const MODES = {
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

/** Where a step of a plan stands. */
export const STEPS = { done: ["✓", "done"], active: ["▸", "under way"], pending: ["·", "not begun"] };

/** Arguments that say by themselves what a call does, the most telling first. */
const TELLING = ["command", "path", "file_path", "url", "pattern", "query", "prompt", "task"];

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

/** A call in a line. */
export function brief(call) {
  const [first] = argumentsOf(call);
  return first ? short(firstLine(first[1]), 120) : "";
}

export const armName = (arm) => (arm ? `${arm.provider}/${arm.model}` : "");

/** How a turn ended, where that is worth saying. */
export function ending(outcome) {
  const [kind, how] = typeof outcome === "string" ? [outcome] : Object.entries(outcome)[0];
  switch (kind) {
    case "complete": return how.stop === "refusal" ? "The model refused." : "";
    case "cancelled": return "Stopped.";
    case "round_limit": return `Stopped after ${how.rounds} model calls. Write “continue” to go on.`;
    case "stuck": return `Stopped: no progress (${how.what}).`;
    case "unfit": return `No answer had the form that it must have: ${how.why}`;
    case "failed": return `Failed: ${how.error.message}${how.error.hint ? ". " + how.error.hint : ""}`;
    default: return kind;
  }
}

export function stateOf(session) {
  if (session.questions > 0) return "asks";
  return { idle: "idle", active: "works", cancelling: "stops", closed: "closed" }[session.state] ?? session.state;
}
