// What is looked at beside the conversation: models, places to go back to, changes, facts, settings.

import { byId, clean, cost, count, duration, fill, h, memory, money, short, tokens, when } from "./dom.js";
import { named, total } from "./fold.js";
import { bar, icon } from "./icons.js";
import { read } from "./net.js";
import { armName, MODES, SETTINGS, STEPS, TASK_STEPS, THINKING } from "./words.js";

/** Turns whose costs are shown, and messages that are read to find them. */
const MAX_TURNS = 10;
const MAX_TURN_MESSAGES = 200;

const dialog = byId("panel");
let before = null;

/** Opens a panel; `body` may still be on its way. */
export async function panel(title, body) {
  fill(byId("panel-title"), title);
  fill(byId("panel-error"));
  const box = byId("panel-body");
  fill(box, h("p", { class: "note" }, "One moment …"));
  if (!dialog.open) {
    before = document.activeElement;
    dialog.showModal();
  }
  byId("panel-title").focus();
  try {
    fill(box, await body);
  } catch (error) {
    fill(box, h("p", { class: "note warning", role: "alert" }, `${error.message}. ${error.remedy ?? ""}`));
  }
}

export function closePanel() {
  if (dialog.open) dialog.close();
}

/** Says in an open panel what went wrong in it; false where none is open. */
export function complainInPanel(error) {
  if (!dialog.open) return false;
  fill(byId("panel-error"), `${error.message}. ${error.remedy ?? ""}`);
  return true;
}

byId("close-panel").append(icon("close"));
byId("close-panel").addEventListener("click", closePanel);
dialog.addEventListener("close", () => before?.isConnected && before.focus());

const choices = (items) => h("ul", { class: "choices" }, items.map((item) => h("li", null, item)));

/** A model to go on with, or the router's choice. */
export async function models(say, pinned, chosen) {
  const reply = await say({ models: { ask: false } });
  const known = reply.choices.filter((it) => it.arm);
  const isOne = known.some((it) => it.current);
  const pick = (arm, name, about, isChosen) => h("button", { type: "button", "aria-pressed": String(isChosen), onclick: () => chosen(arm) }, h("span", { class: "words" }, name, h("small", null, about)), isChosen && icon("check"));
  const routing = (await say({ explain: "routing" }).catch(() => ({ text: "" }))).text ?? "";
  return [choices([pick(null, "Let gnoma choose for each turn", "By the kind of task, price, speed and what it learnt", !isOne),
    ...known.map((it) => pick(it.arm, clean(it.name), [clean(it.about), it.window ? `${tokens(it.window)} tokens` : "", armName(it.arm) === pinned ? "answered last" : ""].filter(Boolean).join(", "), it.current))]),
  routing && h("details", null, h("summary", null, "How models are chosen"), h("pre", { tabindex: "0" }, clean(routing)))];
}

/** Places of the conversation that can be gone back to. */
export async function points(say, chosen) {
  const { points } = await say("points");
  if (!points.length) return h("p", null, "Nothing was said yet that could be taken back.");
  return [h("p", { class: "note" }, "Files and conversation go back to before the turn. “Redo” undoes it."), choices(points.map((point) => h("button", { type: "button", onclick: () => chosen(point) }, h("span", { class: "words" }, clean(point.prompt), h("small", null, `${when(point.at_ms)}, ${filesOf(point)} changed since`)))))];
}

/** How many files changed since a point, in words. */
export const filesOf = (point) => (point.files === null ? "files not known" : count(point.files, "file"));

/** A question of the page itself, with the answers as buttons. */
export function confirmation(text, answers) {
  return [h("p", null, text), h("div", { class: "buttons" }, answers.map(([name, act, kind = ""]) => h("button", { type: "button", class: kind, onclick: act }, name)))];
}

/** How the page looks, kept in this browser. */
export function applyLook() {
  const root = document.documentElement;
  for (const name of ["theme", "density"]) {
    const value = memory.get(name);
    if (value) root.dataset[name] = value;
    else delete root.dataset[name];
  }
}

function look() {
  const field = (name, label, values) => {
    const select = h("select", { "aria-label": label, onchange: () => { memory.set(name, select.value || null); applyLook(); } }, values.map(([value, text]) => h("option", { value, selected: (memory.get(name) ?? "") === value }, text)));
    return h("div", { class: "setting" }, h("p", null, label), h("div", { class: "row" }, select));
  };
  return [field("theme", "Colours", [["", "As the system"], ["light", "Light"], ["dark", "Dark"]]), field("density", "Space between lines", [["", "Roomy"], ["compact", "Compact"]])];
}

/** Settings that are safe to change from afar; `names` are those that the server lets through. */
export async function settings(say, view, names, notices) {
  const known = new Map((await say("settings")).settings.map((it) => [it.key, it]));
  const status = h("p", { class: "note", role: "status" });
  const change = async (request, told) => {
    try { fill(status, clean((await say(request)).text ?? ""), told); } catch (error) { fill(status, `${error.message}. ${error.remedy}`); }
  };
  const now = JSON.stringify(view.thinking ?? null);
  const shown = THINKING.some(([value]) => JSON.stringify(value) === now) ? THINKING : [[view.thinking, `About ${view.thinking.tokens} tokens`], ...THINKING];
  const thinking = h("select", { "aria-label": "How much models think in this session", onchange: () => change({ set_thinking: { thinking: JSON.parse(thinking.value) } }, "It holds from the next call of a model on.") },
    shown.map(([value, text]) => h("option", { value: JSON.stringify(value), selected: JSON.stringify(value) === now }, text)));
  const rows = names.filter((name) => name in SETTINGS).map((name) => {
    const [about, choices] = SETTINGS[name];
    const is = known.get(name)?.value ?? "";
    const field = choices ? h("select", { "aria-label": about }, is ? null : h("option", { value: "" }, "not set"), choices.map((it) => h("option", { value: it, selected: it === is }, it)))
      : h("input", { type: "text", "aria-label": about, value: is, maxlength: "32", spellcheck: "false", autocomplete: "off" });
    const save = (event) => {
      event.preventDefault();
      if (field.value.trim()) change({ set_setting: { key: name, value: field.value.trim() } }, ". It holds from the next session on.");
    };
    return h("form", { class: "setting", onsubmit: save }, h("p", null, about, h("small", null, h("code", null, name), known.has(name) ? `, ${clean(known.get(name).origin)}` : "")), h("div", { class: "row" }, field, h("button", { type: "submit" }, "Save")));
  });
  return [status, h("h3", null, "This session"), h("div", { class: "setting" }, h("p", null, "How much models think"), h("div", { class: "row" }, thinking)),
    h("h3", null, "This browser"), look(), notices, h("h3", null, "From the next session on"), rows,
    h("p", { class: "note" }, "Other settings, keys and providers are changed at the machine itself.")];
}

/** How a run of a task went, step by step. */
export function taskRun({ steps, summary }) {
  return [h("ol", { class: "steps" }, steps.map((it) => {
    const [image, word] = TASK_STEPS[it.state] ?? TASK_STEPS.waiting;
    return h("li", null, icon(image), h("span", { dir: "auto" }, clean(it.title), it.why && h("small", null, clean(it.why))), h("small", null, [word, it.took_ms ? duration(it.took_ms) : "", it.micro_usd ? money(it.micro_usd) : ""].filter(Boolean).join(", ")));
  })), h("p", { dir: "auto" }, clean(summary))];
}

/** The plan of the work, with the step that is under way in its first line. */
export function showPlan(steps, isAtWork) {
  const box = byId("plan");
  // A plan that is done says nothing more once the turn is over.
  box.hidden = steps.length === 0 || (!isAtWork && steps.every((it) => it.status === "done"));
  const text = JSON.stringify(steps);
  if (box.dataset.steps === text) return;
  box.dataset.steps = text;
  const done = steps.filter((it) => it.status === "done").length;
  const active = steps.find((it) => it.status === "active");
  fill(byId("plan-now"), icon("plan"), h("span", { class: "label" }, `Plan: ${done} of ${steps.length} done`, active && [", now: ", h("bdi", null, clean(active.text))]));
  fill(byId("plan-steps"), steps.map((it) => {
    const [image, word] = STEPS[it.status] ?? STEPS.pending;
    return h("li", { "data-status": it.status }, icon(image), h("span", { class: "sr" }, `${word}: `), h("span", { dir: "auto" }, clean(it.text)));
  }));
}

/** The keys of the page. */
export function keys() {
  const rows = [["Enter", "send; during a turn, for the model's next step"], ["Shift+Enter", "a new line"], ["/ at the beginning", "commands and skills"], ["@", "files of the project"], ["Up, in an empty box", "what was written before"],
    ["Esc", "close what is open, or stop the turn"], ["y n", "approve once, deny a question"], ["a r p", "always, deny and say why, keep what is ticked"], ["Ctrl+K", "the list of sessions"], ["Ctrl+Shift+D", "the changes"], ["?", "this list"]];
  return h("dl", null, rows.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)]));
}

/** Facts about a session, with the sums of all for those who steer. */
export async function facts(say, view, steers) {
  const [{ usage }, parts, turns, [days, all]] = await Promise.all([say("usage"), windowParts(say), turnCosts(say), steers ? dayCosts() : []]);
  const fact = (name, value) => (value ? [h("dt", null, name), h("dd", null, value)] : []);
  const window = view.info.window;
  return [bars("What fills the context", parts), bars("The last turns", turns), bars("All sessions, the last days", days ?? []), h("dl", null,
    fact("Folder", clean(view.folder)), fact("Branch", clean(view.info.branch ?? "")), fact("Model", clean(armName(view.arm) || view.info.model || "")),
    fact("Mode", MODES[view.mode]), fact("Messages", String(view.messages)),
    fact("Context", `${tokens(view.context?.tokens || total(view.last_call))}${window ? ` of ${tokens(window)}` : ""} tokens`),
    fact("Read", `${tokens(usage.usage.input)} tokens, ${tokens(usage.usage.cache_read)} from the cache`), fact("Written", `${tokens(usage.usage.output)} tokens`),
    fact("Cost since it was opened", cost(usage)), fact("All sessions, 30 days", all), fact("Saved", view.info.incognito ? "no (incognito)" : view.info.is_kept ? "yes" : "no"),
    fact("Session", view.session), fact("Tools", view.tools.map(clean).join(", ")))];
}

/** Rows of a name, a part of the largest, and words, as bars. */
function bars(title, rows) {
  const most = Math.max(...rows.map(([, value]) => value));
  return most > 0 && [h("h3", null, title), h("dl", { class: "bars" }, rows.map(([name, value, words]) => [h("dt", { dir: "auto" }, name), h("dd", null, bar(value / most), words)]))];
}

const PARTS = { system: "gnoma's instructions", tools: "Tools", instructions: "The project's instructions", history: "Conversation", results: "Results of tools" };

async function windowParts(say) {
  const used = (await say({ explain: "context" }).catch(() => ({}))).window?.used ?? {};
  return Object.entries(PARTS).map(([name, words]) => [words, used[name] ?? 0, `${tokens(used[name] ?? 0)} tokens`]);
}

/** What the last turns cost, or took where no price is known. */
async function turnCosts(say) {
  const { history } = await say({ history: { before: null, max: MAX_TURN_MESSAGES } });
  const rows = [];
  let [prompt, micro] = ["", 0];
  const notes = [...history.notes ?? []];
  for (const [place, message] of history.messages.entries()) {
    const words = message.role === "user" ? message.content.map((it) => it.text?.text ?? "").join(" ").trim() : "";
    if (words && !words.startsWith("[system]")) prompt = words;
    while (notes[0]?.after <= history.first + place) {
      const [kind, event] = named(notes.shift().event);
      if (kind === "cost") micro = event.turn_micro_usd;
      if (kind !== "turn_ended") continue;
      rows.push([short(clean(prompt), 60), micro, event.usage.output]);
      micro = 0;
    }
  }
  const hasPrices = rows.some(([, it]) => it);
  return rows.slice(-MAX_TURNS).map(([name, it, output]) => [name || "…", hasPrices ? it : output, [hasPrices ? money(it) : "", `${tokens(output)} tokens written`].filter(Boolean).join(", ")]);
}

/** What all sessions took on the last days, and in 30 days, as `gnoma usage` says it. */
async function dayCosts() {
  const { total, rows } = await read("usage").catch(() => ({ total: null, rows: [] }));
  const words = (it) => [cost({ micro_usd: it.micro_usd ?? 0, is_cost_partial: it.unpriced_calls > 0 }), count(it.calls, "call"), `${tokens(it.output_tokens)} tokens written`].join(", ");
  const part = (it) => (total.micro_usd ? it.micro_usd ?? 0 : it.output_tokens);
  return [rows.slice(-MAX_TURNS).map(({ name, sums }) => [name, part(sums), words(sums)]), total && words(total)];
}
