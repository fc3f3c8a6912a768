// The list of sessions: those that live, with the elfs that they have started below them, and those that are stored.

import { byId, clean, fill, h, short, when } from "./dom.js";
import { stateOf } from "./words.js";

const MARKS = { asks: "?", works: "▸", stops: "▪", idle: "", closed: "" };

function entry(session, current, chosen) {
  const { status, title, folder, jobs } = session;
  const state = stateOf(status);
  return h("button", { type: "button", "aria-current": status.session === current ? "true" : "false", onclick: () => chosen(status.session) },
    h("span", { class: "what" }, MARKS[state] ? h("span", { "aria-hidden": "true" }, MARKS[state] + " ") : "", short(clean(title || "New session"), 80)),
    h("small", null, [state, jobs ? `${jobs} in the background` : "", when(session.changed_ms), clean(folder.split("/").pop() ?? "")].filter(Boolean).join(" · ")));
}

/** Sessions below those that started them. */
export function tree(sessions, parent) {
  const known = new Set(sessions.map((it) => it.status.session));
  return sessions.filter((it) => (it.parent && known.has(it.parent) ? it.parent : null) === parent);
}

function branch(sessions, parent, current, chosen, depth = 0) {
  const here = depth < 8 ? tree(sessions, parent) : [];
  if (!here.length) return null;
  return h("ul", null, here.map((it) => h("li", null, entry(it, current, chosen), branch(sessions, it.status.session, current, chosen, depth + 1))));
}

export function showLists({ live, stored, current, chosen, opened }) {
  const living = new Set(live.map((it) => it.status.session));
  const rest = stored.filter((it) => !living.has(it.id));
  const box = byId("lists");
  const focused = box.contains(document.activeElement) ? document.activeElement.textContent : null;
  fill(box,
    h("h2", null, "Running"), branch(live, null, current, chosen) ?? h("p", { class: "note" }, "No session is open."),
    rest.length ? [h("h2", null, "Saved"), h("ul", null, rest.map((it) => h("li", null, h("button", { type: "button", disabled: Boolean(it.held_by), onclick: () => opened(it.id) },
      h("span", { class: "what" }, short(clean(it.title || it.id), 80)),
      h("small", null, it.held_by ? "open elsewhere" : `${it.messages} messages · ${when(it.changed_ms)}`)))))] : null);
  if (focused) [...box.querySelectorAll("button")].find((it) => it.textContent === focused)?.focus();
}

/** The elfs of a session, and how they are. */
export function showElfs(live, session, chosen) {
  const box = byId("elfs");
  const below = session ? branch(live, session, null, chosen) : null;
  box.hidden = !below;
  const focused = box.contains(document.activeElement);
  if (below) fill(box, h("h2", { class: "sr" }, "Elfs at work"), below);
  else if (focused) byId("say").focus();
}

export function showHits(hits, opened) {
  fill(byId("hits"), hits === null ? null : [h("h2", null, hits.length ? `Found ${hits.length}` : "Nothing found"),
    h("ul", null, hits.map((hit) => h("li", null, h("button", { type: "button", onclick: () => opened(hit.session) },
      h("span", { class: "what" }, short(clean(hit.title), 80)), h("small", null, short(clean(hit.snippet), 160))))))]);
}
