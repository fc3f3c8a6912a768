// The list of sessions: by project, then those that are open and those that are saved, by day; and the elfs of a session.

import { baseName, byId, clean, count, fill, firstLine, h, iconButton, memory, money, short, when } from "./dom.js";
import { icon } from "./icons.js";
import { inWords, stateOf } from "./words.js";

/** Folders that are remembered, so that their sessions are found again. */
const MAX_FOLDERS = 24;
/** Saved sessions of a project that are shown before "more". */
const MAX_SHOWN = 8;
const DAY_MS = 86400000;

/** The folders that sessions were seen in from this browser, the latest first. */
export const folders = () => memory.list("folders");

/** Remembers a folder. @param {string} folder */
export function remember(folder) {
  const all = folders();
  if (!folder || all[0] === folder) return;
  memory.set("folders", JSON.stringify([folder, ...all.filter((it) => it !== folder)].slice(0, MAX_FOLDERS)));
}

export const pinned = () => memory.list("pinned");

/** Pins a session to the top of its project, or takes it off. */
export function pin(id) {
  const all = pinned();
  memory.set("pinned", JSON.stringify(all.includes(id) ? all.filter((it) => it !== id) : [id, ...all].slice(0, 50)));
}

/** A title for people: what gnoma itself wrote into a copy is none. */
export function titleOf(session, known = new Map()) {
  const title = session.title ?? "";
  const source = session.forked_from?.[0] && known.get(session.forked_from[0])?.title;
  if (title.startsWith("[system]")) return source && !source.startsWith("[system]") ? `Fork of ${source}` : "Fork";
  return title;
}

function entry({ id, state, title, note, isCurrent, onclick, isDisabled = false, word = "" }) {
  return h("button", { type: "button", class: "entry", "data-session": id, "aria-current": isCurrent ? "true" : undefined, disabled: isDisabled, onclick },
    h("span", { class: "dot", "data-state": state }), h("span", { class: "words" },
      h("span", { class: "what", dir: "auto" }, word && h("span", { class: "sr" }, `${word}: `), short(clean(title), 80)), note && h("small", null, note)));
}

/** A session that is open: whether it asks, works, has news, or rests. */
function liveEntry(session, list, changed) {
  const { status, title, jobs } = session;
  const state = stateOf(status);
  const hasNews = list.news?.has(status.session);
  // What an elf does, on which model, for how much.
  const note = list.isOfElfs ? [...status.running.slice(-1).map((name) => inWords({ name, arguments: {} }).doing), status.arm ? baseName(status.arm.model) : "", status.micro_usd ? money(status.micro_usd) : ""].filter(Boolean).join(" · ") : changed;
  const words = [state === "idle" ? "" : state === "asks" ? "needs an answer" : state === "works" ? "working" : state, jobs ? `${jobs} in the background` : "", note].filter(Boolean);
  return entry({ id: status.session, state: state === "idle" && hasNews ? "news" : state, title: titleOf(session, list.known) || "New session", note: words.join(" · "), word: hasNews && state === "idle" ? "ended, not read" : "", isCurrent: status.session === list.current, onclick: () => list.chosen(status.session) });
}

/** Sessions below those that started them. */
export function tree(sessions, parent) {
  const known = new Set(sessions.map((it) => it.status.session));
  return sessions.filter((it) => (it.parent && known.has(it.parent) ? it.parent : null) === parent);
}

function branch(sessions, parent, list, depth = 0) {
  const here = depth < 8 ? tree(sessions, parent) : [];
  if (!here.length) return null;
  return h("ul", null, here.map((it) => h("li", { class: list.more ? "has-more" : "" }, liveEntry(it, list, when(it.changed_ms)), list.more && moreButton(it.status.session, it.title, list), branch(sessions, it.status.session, list, depth + 1))));
}

const moreButton = (id, title, list) => iconButton("more", { name: `More for ${short(clean(title || "this session"), 60)}`, class: "plain entry-more", onclick: () => list.more(id) });

function dayOf(ms, now) {
  const today = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= today) return "Today";
  if (ms >= today - DAY_MS) return "Yesterday";
  return ms >= today - 6 * DAY_MS ? "This week" : "Earlier";
}

const opened = new Set();

/**
 * Draws the list. `list` has: live, stored (by folder), current, news, filter, canSteer; chosen(session), opened(folder, id),
 * more(id), fresh(folder).
 */
export function showLists(list) {
  const box = byId("lists");
  const focused = box.contains(document.activeElement) ? [document.activeElement.dataset.session, document.activeElement.className] : null;
  const sought = list.filter.toLowerCase();
  const fits = (title) => !sought || title.toLowerCase().includes(sought);
  list.known = new Map([...list.stored.values()].flat().map((it) => [it.id, it]));
  const living = new Set(list.live.map((it) => it.status.session));
  const places = [...new Set([...list.live.map((it) => it.folder), ...list.stored.keys()])];
  const order = folders();
  places.sort((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
  const parts = places.map((folder) => {
    const live = list.live.filter((it) => it.folder === folder && (it.parent || fits(titleOf(it, list.known))));
    const saved = (list.stored.get(folder) ?? []).filter((it) => !living.has(it.id) && !it.child && fits(titleOf(it, list.known)));
    return live.length || saved.length ? project(folder, live, saved, list) : null;
  }).filter(Boolean);
  fill(box, parts.length ? parts : h("p", { class: "note" }, sought ? "No title fits. Enter searches what was said." : "No session yet."));
  if (focused?.[0]) [...box.querySelectorAll("button")].find((it) => it.dataset.session === focused[0] && it.className === focused[1])?.focus();
}

function project(folder, live, saved, list) {
  const pins = pinned();
  const now = Date.now();
  const top = saved.filter((it) => pins.includes(it.id));
  const rest = saved.filter((it) => !pins.includes(it.id)).sort((a, b) => b.changed_ms - a.changed_ms);
  const isAll = list.filter || opened.has(folder);
  const shown = isAll ? rest : rest.slice(0, MAX_SHOWN);
  const days = new Map();
  for (const it of shown) days.set(dayOf(it.changed_ms, now), [...(days.get(dayOf(it.changed_ms, now)) ?? []), it]);
  const item = (it) => h("li", { class: list.canSteer ? "has-more" : "" }, entry({ id: it.id, state: "saved", title: titleOf(it, list.known) || it.id, isDisabled: Boolean(it.held_by) || !list.canSteer, onclick: () => list.opened(folder, it.id),
    note: [it.held_by ? "open elsewhere" : when(it.changed_ms), it.messages ? count(it.messages, "message") : it.forked_from ? "fork" : ""].filter(Boolean).join(" · ") }),
  list.canSteer && !it.held_by && moreButton(it.id, it.title, list));
  return h("section", { "aria-label": folder },
    h("h2", { title: clean(folder) }, icon("folder"), h("span", { class: "name" }, clean(baseName(folder))), list.canSteer && iconButton("plus", { name: `New session in ${clean(baseName(folder))}`, onclick: () => list.fresh(folder) })),
    branch(live, null, { ...list, more: list.canSteer ? list.more : null }),
    top.length > 0 && [h("h3", null, "Pinned"), h("ul", null, top.map(item))],
    [...days].map(([day, items]) => [h("h3", null, day), h("ul", null, items.map(item))]),
    shown.length < rest.length && h("button", { type: "button", class: "quiet", onclick: () => { opened.add(folder); showLists(list); } }, `${rest.length - shown.length} more`));
}

/** Elfs that a browser remembers. */
const MAX_ELFS = 100;
/** Elfs that were seen at work: session, id and title, the newest last. */
let elfs = memory.list("elfs");

function rememberElfs(live, session, isPrivate) {
  for (const it of live) {
    if (it.parent !== session) continue;
    const head = `${session} ${it.status.session} `;
    if (elfs.some((known) => known.startsWith(head))) continue;
    elfs = [...elfs, head + titleOf(it)].slice(-MAX_ELFS);
    if (!isPrivate) memory.set("elfs", JSON.stringify(elfs));
  }
}

/** Runs of tasks that are remembered. */
const MAX_RUNS = 20;
/** Runs of tasks that were started here: session, line, and the report once there is one. */
let runs = memory.list("tasks").flatMap((it) => { try { return [JSON.parse(it)]; } catch { return []; } });

/** Begins a row for a run of a task; gives how to end it with its report, or without one. */
export function beginTask(session, line, isPrivate) {
  const run = { session, line, isPrivate };
  runs = [...runs, run].slice(-MAX_RUNS);
  return (report) => {
    if (report) run.report = report;
    else runs = runs.filter((it) => it !== run);
    memory.set("tasks", JSON.stringify(runs.filter((it) => it.report && !it.isPrivate).map((it) => JSON.stringify(it))));
  };
}

/**
 * What a session has beside its conversation: elfs, background commands and runs of tasks. Those at work are rows; what has
 * ended stays below them, and can be opened. `about` has: isPrivate, jobs, opened(id), showJob(id), showRun(report).
 */
export function showElfs(live, session, chosen, about) {
  const box = byId("elfs");
  if (session) rememberElfs(live, session, about.isPrivate);
  const below = session ? branch(live, session, { current: null, chosen, known: new Map(), isOfElfs: true }) : null;
  const living = new Set(live.map((it) => it.status.session));
  const elfsOver = elfs.map((it) => it.match(/^(\S+) (\S+) (.*)$/s) ?? []).filter(([, parent, id]) => session && parent === session && !living.has(id));
  const running = live.find((it) => it.status.session === session)?.jobs ?? 0;
  const jobs = session ? [...about.jobs.values()] : [];
  // The server counts those that run; the conversation knows which have ended as far as the model has asked.
  const open = running ? jobs.filter((it) => !it.isOver) : [];
  const state = open.length <= running ? "running" : "running or ended";
  const here = runs.filter((it) => it.session === session);
  const job = (it, note) => entry({ id: `job ${it.id}`, state: note ? "works" : "saved", title: firstLine(it.command ?? `Command ${it.id}`), note: note || it.state || "ended", onclick: () => about.showJob(it.id) });
  const rows = [
    ...open.map((it) => job(it, state)),
    ...here.filter((it) => !it.report).map((it) => entry({ id: it.line, state: "works", title: `Task ${it.line}`, note: "running", onclick: () => byId("transcript").focus() })),
  ];
  const jobsOver = jobs.filter((it) => !open.includes(it));
  const runsOver = here.filter((it) => it.report);
  const many = elfsOver.length + jobsOver.length + runsOver.length;
  const focused = box.contains(document.activeElement) && document.activeElement;
  const unknown = running - open.length;
  box.hidden = !below && !rows.length && !many && unknown <= 0;
  if (box.hidden) {
    if (focused) byId("say").focus();
    return;
  }
  if (!box.childElementCount) fill(box, h("h2", { class: "sr" }, "Elfs, tasks and commands in the background"), h("div", null), h("div", null));
  const item = (it) => h("li", null, it);
  const atWork = h("div", null, below, rows.length > 0 && h("ul", null, rows.map(item)), unknown > 0 && h("p", { class: "note row" }, icon("terminal"), count(unknown, "command runs", "commands run"), " in the background"));
  if (!atWork.isEqualNode(box.children[1])) {
    box.children[1].replaceWith(atWork);
    if (focused && !focused.isConnected) ([...atWork.querySelectorAll(".entry")].find((it) => it.dataset.session === focused.dataset.session) ?? byId("say")).focus();
  }
  // What has ended stays as it is, open or closed, until there is more of it.
  const key = JSON.stringify([session, elfsOver.map(([, , id]) => id), jobsOver.map((it) => [it.id, it.state]), runsOver.length]);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const kinds = [[elfsOver, "elf"], [jobsOver, "command"], [runsOver, "task"]].filter(([all]) => all.length).map(([all, word]) => count(all.length, word));
  fill(box.children[2], many > 0 && h("details", { class: "ended" }, h("summary", null, icon("check"), `Ended: ${kinds.join(", ")}`, icon("right")), h("ul", null,
    elfsOver.map(([, , id, title]) => item(entry({ id, state: "saved", title, note: "done", onclick: () => about.opened(id) }))),
    jobsOver.map((it) => item(job(it, ""))),
    runsOver.map((it) => item(entry({ id: it.line, state: "saved", title: `Task ${it.line}`, note: it.report.state, onclick: () => about.showRun(it.report) }))))));
}

/** Projects that a search offers besides the one that it looked in. */
const MAX_OTHERS = 6;

/** What a search found, a session each. `about` has: words, where, others (folders), chosen(hit), again(folder). */
export function showHits(hits, about) {
  const bySession = new Map();
  for (const hit of hits ?? []) bySession.set(hit.session, [...(bySession.get(hit.session) ?? []), hit]);
  const project = hits && clean(baseName(about.where));
  fill(byId("hits"), hits === null ? null : [h("h2", { title: clean(about.where) }, h("span", { class: "name" }, bySession.size ? `Found in ${count(bySession.size, "session")} of ${project}` : `Nothing found in ${project}`), iconButton("close", { name: "Close the results", onclick: () => { showHits(null); byId("words").focus(); } })),
    h("ul", null, [...bySession].map(([id, some]) => h("li", null, h("button", { type: "button", class: "entry", onclick: () => about.chosen(some[0]) },
      h("span", { class: "words" }, h("span", { class: "what" }, short(clean(some[0].title), 80)), h("small", null, short(clean(some[0].snippet), 160)), some.length > 1 && h("small", null, count(some.length, "place"))))))),
    about.others.slice(0, MAX_OTHERS).map((it) => h("button", { type: "button", class: "quiet", title: clean(it), onclick: () => about.again(it) }, `Search in ${clean(baseName(it))}`))]);
}
