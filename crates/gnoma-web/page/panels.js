// What is looked at beside the conversation: models, places to go back to, changes, facts, settings.

import { diff } from "./diff.js";
import { byId, clean, cost, fill, h, tokens, when } from "./dom.js";
import { total } from "./fold.js";
import { armName, MODES, SETTINGS, STEPS, THINKING } from "./words.js";

const dialog = byId("panel");
let before = null;

/** Opens a panel; `body` may still be on its way. */
export async function panel(title, body) {
  fill(byId("panel-title"), title);
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

byId("close-panel").addEventListener("click", closePanel);
dialog.addEventListener("close", () => before?.isConnected && before.focus());

const choices = (items) => h("ul", { class: "choices" }, items.map((item) => h("li", null, item)));

/** A model to go on with, or the router's choice. */
export async function models(say, pinned, chosen) {
  const reply = await say({ models: { ask: false } });
  const pick = (arm) => h("button", { type: "button", "aria-pressed": "false", onclick: () => chosen(arm) });
  const auto = pick(null);
  auto.append("Let gnoma choose for each turn", h("small", null, "by the kind of task, price, speed and what it learnt"));
  const known = reply.choices.filter((it) => it.arm).map((it) => {
    const button = pick(it.arm);
    button.append(clean(it.name), h("small", null, clean(it.about), it.window ? `, ${tokens(it.window)} tokens` : "", armName(it.arm) === pinned ? ", answered last" : ""));
    return button;
  });
  return [choices([auto, ...known]), h("h3", null, "How models are chosen"), h("pre", { tabindex: "0" }, clean((await say({ explain: "routing" }).catch(() => ({ text: "" }))).text ?? ""))];
}

/** Places of the conversation that can be gone back to. */
export async function points(say, chosen) {
  const { points } = await say("points");
  if (!points.length) return h("p", null, "Nothing was said yet that could be taken back.");
  return [h("p", { class: "note" }, "Files and conversation go back to before the turn. “Redo” undoes it."), choices(points.map((point) => {
    const files = point.files === null ? "files not known" : point.files === 1 ? "1 file" : `${point.files} files`;
    return h("button", { type: "button", onclick: () => chosen(point) }, clean(point.prompt), h("small", null, `${when(point.at_ms)}, ${files} changed since`));
  }))];
}

export async function changes(say) {
  const { text } = await say("changes");
  return text.trim() ? diff(text) : h("p", null, "No files were changed.");
}

/** Settings that are safe to change from afar; `names` are those that the server lets through. */
export async function settings(say, view, names) {
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
  return [status, h("h3", null, "How much models think in this session"), h("div", { class: "row" }, thinking), h("h3", null, "From the next session on"), rows,
    h("p", { class: "note" }, "Other settings, keys and providers are changed at the machine itself.")];
}

/** The plan of the work, with the step that is under way in its first line. */
export function showPlan(steps) {
  const box = byId("plan");
  box.hidden = steps.length === 0;
  const text = JSON.stringify(steps);
  if (box.dataset.steps === text) return;
  box.dataset.steps = text;
  const done = steps.filter((it) => it.status === "done").length;
  const active = steps.find((it) => it.status === "active");
  fill(byId("plan-now"), `Plan: ${done} of ${steps.length} done`, active ? `, now: ${clean(active.text)}` : "");
  fill(byId("plan-steps"), steps.map((it) => {
    const [mark, word] = STEPS[it.status] ?? STEPS.pending;
    return h("li", { "data-status": it.status }, h("span", { "aria-hidden": "true" }, mark), h("span", { class: "sr" }, `${word}: `), h("span", null, clean(it.text)));
  }));
}

/** Facts about a session. */
export async function facts(say, view) {
  const { usage } = await say("usage");
  const fact = (name, value) => (value ? [h("dt", null, name), h("dd", null, value)] : []);
  const window = view.info.window;
  return h("dl", null,
    fact("Folder", clean(view.folder)), fact("Branch", clean(view.info.branch ?? "")), fact("Model", clean(armName(view.arm) || view.info.model || "")),
    fact("Mode", MODES[view.mode]), fact("Messages", String(view.messages)),
    fact("Context", `${tokens(view.context?.tokens || total(view.last_call))}${window ? ` of ${tokens(window)}` : ""} tokens`),
    fact("Read", `${tokens(usage.usage.input)} tokens, ${tokens(usage.usage.cache_read)} from the cache`), fact("Written", `${tokens(usage.usage.output)} tokens`),
    fact("Cost", cost(usage)), fact("Saved", view.info.incognito ? "no (incognito)" : view.info.is_kept ? "yes" : "no"),
    fact("Session", view.session), fact("Tools", view.tools.map(clean).join(", ")));
}

