// What is looked at beside the conversation: models, places to go back to, changes, facts, settings.

import { diff } from "./diff.js";
import { byId, clean, fill, h, money, tokens, when } from "./dom.js";
import { total } from "./fold.js";
import { armName, MODES } from "./words.js";

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
    fact("Cost", money(usage.micro_usd)), fact("Saved", view.info.incognito ? "no (incognito)" : view.info.is_kept ? "yes" : "no"),
    fact("Session", view.session), fact("Tools", view.tools.map(clean).join(", ")));
}

export { choices };
