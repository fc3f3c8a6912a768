// The page: which session is shown, what comes of it, and what a person does with it.

import { Questions } from "./ask.js";
import { byId, clean, cost, fill, h, short, tokens } from "./dom.js";
import { apply, named, questionsOf, total, viewOf } from "./fold.js";
import { ask, enter, Refused, Stream } from "./net.js";
import { changes, closePanel, facts, models, panel, points, settings, showPlan } from "./panels.js";
import { showElfs, showHits, showLists } from "./sessions.js";
import { Transcript } from "./transcript.js";
import { armName, CHOSEN_HERE, MODES } from "./words.js";

/** Messages that are read at once. */
const PAGE = 80;
const MAX_HITS = 30;
const MAX_STORED = 40;
/** Characters of a finished answer that are read out. */
const MAX_HEARD = 600;
/** How often a session that has gone is opened again, and how much longer each wait is. */
const MAX_ATTEMPTS = 4;
const AGAIN_MS = 400;
/** Between two looks at the list of sessions, however much happens. */
const LIST_MS = 400;

const BUILD = document.querySelector('meta[name="gnoma-build"]').content;

let hello = null;
let stream = null;
/** The session that is shown, its state, and the number of the first message that is drawn. */
let current = null;
let view = null;
let first = 0;
/** Its folder, which it is opened with again when the server was started anew. */
let folder = null;
let attempts = 0;
/** One that was shown and has gone; it is shown again once somebody opens it. */
let awaited = null;
let live = [];
let stored = [];
let drawing = 0;

const heard = byId("heard");
const hear = (text) => { heard.textContent = ""; setTimeout(() => (heard.textContent = text), 50); };
const transcript = new Transcript(hear);
const say = (request) => ask(current, request);
const canSteer = () => hello?.rights === "steer";
const questions = new Questions(
  (call, answer) => say({ answer: { call, answer } }),
  async (rule, scope) => "Saved: " + (await say({ keep_rule: { rule, scope, dry_run: true } })).text,
);

function banner(...children) {
  fill(byId("banner"), children);
}

function complain(error) {
  banner(`${error.message}. ${error.remedy ?? ""}`, h("button", { type: "button", onclick: () => banner() }, "Close"));
}

const trying = (what) => (...args) => Promise.resolve(what(...args)).catch(complain);

// ---- What comes

function told(kind, data) {
  switch (kind) {
    case "hello": greeted(data); break;
    case "snapshot": snapshot(viewOf(data)); break;
    case "event":
      if (data.session === current && view && apply(view, data)) happened(...named(data.event), data);
      break;
    case "process":
      list();
      if (named(data)[0] === "opened" && data.opened.session === awaited) show(awaited);
      if (named(data)[0] === "stopping") banner("The server is stopping. The page goes on once it runs again.");
      break;
    case "refused": refused(data); break;
    case "denied": locked(data); break;
  }
}

function greeted(data) {
  if (data.build !== BUILD) {
    banner("The server was updated; this page is of an older version.", h("button", { type: "button", class: "first", onclick: () => location.reload() }, "Reload"));
  }
  hello = { ...hello, ...data };
  list();
}

function snapshot(next) {
  if (next.session !== current) return;
  const isSame = view && view.epoch === next.epoch;
  view = next;
  attempts = 0;
  transcript.clear();
  byId("start").hidden = true;
  transcript.begin(view);
  draw();
  // Before its first event a session does not say how many messages it goes on with.
  if (view.folder) read(isSame);
}

/** Reads what was said last; what comes meanwhile is drawn after it. */
async function read(isSame) {
  folder = view.folder;
  const { session, epoch, messages } = view;
  try {
    const { history } = await say({ history: { before: messages, max: PAGE } });
    if (current !== session || view.epoch !== epoch) return;
    first = history.first;
    transcript.older(first, history.messages, notes(view.recent, messages));
  } catch (error) {
    complain(error);
  }
  byId("earlier").hidden = first === 0;
  transcript.release();
  if (!isSame) transcript.toEnd();
}

/** What happened lately beside what was said, by the number of the message after which it did. */
function notes(recent, messages) {
  const all = new Map();
  let after = messages;
  for (const { at_ms, event } of recent.toReversed()) {
    const [kind, what] = named(event);
    if (kind === "appended") after--;
    else all.set(after - 1, [{ kind, event: what, at_ms }, ...(all.get(after - 1) ?? [])]);
  }
  return all;
}

function happened(kind, event, envelope) {
  switch (kind) {
    case "text": case "thinking": case "tool_call_drafted": case "tool_call_delta": case "tool_progress":
      transcript.take(kind, event, view);
      return;
    case "appended":
      if (event.role === "assistant" && !event.content.some((it) => it.tool_call)) {
        hear("Answer: " + short(event.content.map((it) => it.text?.text ?? "").join(" "), MAX_HEARD));
      }
      break;
    case "started": read(false); break;
    case "turn_ended": returned(event.undelivered ?? []); break;
  }
  transcript.take(kind, event, view, envelope.at_ms);
  draw();
}

/** What could not be delivered goes back to where it was written. */
function returned(messages) {
  const text = messages.flatMap((it) => it.content.map((content) => content.text?.text ?? "")).join("\n").trim();
  const field = byId("say");
  if (text) field.value = field.value ? `${text}\n${field.value}` : text;
}

/** A session that is not there any more may be stored: it is opened again, here or by another page. */
async function refused({ session, error }) {
  if (session !== current) return;
  let cause = error.cause;
  while (error.kind === "no_session" && folder && canSteer() && attempts < MAX_ATTEMPTS) {
    await new Promise((done) => setTimeout(done, attempts++ * AGAIN_MS));
    if (session !== current) return;
    try {
      const { opened } = await ask(null, { open: { folder, start: { stored: { id: session, fork: false } }, interactive: true, detach: "keep" } });
      return show(opened.session);
    } catch (other) {
      cause = other.message;
    }
  }
  if (session !== current) return;
  awaited = session;
  view = null;
  current = null;
  history.replaceState(null, "", location.pathname);
  home(`The session is not open any more: ${cause}.`);
}

function locked(error) {
  hello = null;
  view = null;
  byId("composer").hidden = true;
  byId("messages").replaceChildren();
  fill(byId("start"), h("h2", null, "This page needs its link"), h("p", null, "Run ", h("code", null, "gnoma web"), " and open the link that it prints."), h("p", { class: "note" }, clean(error.message ?? "")));
  byId("start").hidden = false;
  byId("state").textContent = "";
}

// ---- What is drawn

function draw() {
  if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; drawNow(); });
  if (document.hidden) ask4attention();
}

function drawNow() {
  const turn = view?.turn;
  const open = questionsOf(view);
  const state = !view ? "" : open.length ? "asks" : { idle: "", active: "works", cancelling: "stops", closed: "closed" }[view.state];
  const badge = byId("state");
  badge.textContent = state;
  badge.dataset.state = state;
  const title = live.find((it) => it.status.session === current)?.title;
  const name = title || (view ? "New session" : "gnoma");
  byId("title").textContent = clean(short(name, 100));
  document.title = (open.length ? "? " : state === "works" ? "▸ " : "") + clean(short(name, 60));
  byId("facts").hidden = byId("open-menu").hidden = !view;
  if (view) {
    const arm = armName(view.arm) || view.info.model || "";
    const used = view.context?.tokens || total(view.last_call);
    const size = view.context?.window ?? view.info.window;
    const share = size && used ? `${Math.round((100 * used) / size)} %` : "";
    fill(byId("facts"), [clean(arm), share, view.micro_usd ? cost(view) : ""].filter(Boolean).join(" · ") || "Facts");
    byId("facts").setAttribute("aria-label", `Model, context and cost: ${byId("facts").textContent}`);
    if (byId("mode").value !== view.mode) drawModes();
  }
  byId("composer").hidden = !view || !canSteer();
  byId("stop").hidden = !turn;
  byId("stop").disabled = view?.state === "cancelling";
  byId("send").textContent = turn ? "Steer" : "Send";
  drawQueue(turn?.queue ?? []);
  const news = questions.show(open, canSteer());
  if (news.length) attend(news);
  showPlan(view?.plan ?? []);
  showElfs(live, current, show);
}

function drawModes() {
  const shown = CHOSEN_HERE.includes(view.mode) ? CHOSEN_HERE : [view.mode, ...CHOSEN_HERE];
  fill(byId("mode"), shown.map((mode) => h("option", { value: mode }, MODES[mode] ?? mode)));
  byId("mode").value = view.mode;
}

const textOf = (contents) => contents.map((it) => it.text?.text ?? "[picture]").join(" ");

function drawQueue(queue) {
  const box = byId("queue");
  box.hidden = queue.length === 0;
  const text = JSON.stringify(queue);
  if (box.dataset.queue === text) return;
  box.dataset.queue = text;
  const without = (place) => trying(async () => {
    await say({ edit_queue: { was: queue, queue: queue.filter((_, it) => it !== place) } });
    returned([{ content: queue[place] }]);
    byId("say").focus();
  });
  fill(box, queue.length ? h("p", { class: "note" }, "Waits for the next step of the model:") : null,
    h("ul", null, queue.map((contents, place) => h("li", null, h("span", null, clean(short(textOf(contents), 200))),
      canSteer() && h("button", { type: "button", onclick: without(place), "aria-label": `Take back: ${clean(short(textOf(contents), 60))}` }, "Take back")))));
}

/** Leads the person to a question, unless they are writing. */
function attend(news) {
  const { question, element } = news[0];
  const title = element.querySelector("h2").textContent;
  const reason = clean(question.reason);
  hear(title === reason ? short(title, 200) : `${title}. ${short(reason, 200)}`);
  const at = document.activeElement;
  const isWriting = (at?.matches("input, textarea") && at.value) || byId("panel").open;
  if (!isWriting) element.querySelector("h2").focus();
  ask4attention();
}

let noticed = "";
function ask4attention() {
  const open = questionsOf(view)[0];
  if (!open || !document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  if (noticed === open.call.id) return;
  noticed = open.call.id;
  new Notification("gnoma needs an answer", { body: short(clean(open.reason), 120), tag: "gnoma" });
}

// ---- The list of sessions

let listing = null;
let again = false;
/** Reads the list anew, soon, and once however often it is asked for. */
function list() {
  if (listing) { again = true; return; }
  listing = (async () => {
    try {
      live = (await ask(null, "list")).live;
      drawLists();
      drawNow();
    } catch { /* the stream says what is wrong */ }
    await new Promise((done) => setTimeout(done, LIST_MS));
    listing = null;
    if (again) { again = false; list(); }
  })();
}

function drawLists() {
  showLists({ live: live.filter((it) => it.status.messages || it.subscribers || it.status.session === current), stored, current, chosen: (session) => { show(session); closeSide(); }, opened: trying(openStored) });
}

/** A session in that folder in which nothing was said yet and that nobody has before them. */
const unused = (where) => live.find((it) => it.folder === where && !it.parent && !it.status.messages && !it.subscribers)?.status.session;

/**
 * Reads which sessions are saved. Only a session of the project knows; where there is none one is opened, which
 * ends by itself unless something is said in it.
 */
async function readStored() {
  if (!canSteer()) return;
  const here = current ?? live.find((it) => it.folder === hello.folder && !it.parent)?.status.session
    ?? (await ask(null, { open: { folder: hello.folder, interactive: true, detach: "keep" } })).opened.session;
  stored = (await ask(here, { stored: { max: MAX_STORED } })).stored;
  drawLists();
}

async function openStored(id) {
  const { opened } = await ask(null, { open: { folder: folder ?? hello.folder, start: { stored: { id, fork: false } }, interactive: true, detach: "keep" } });
  closeSide();
  show(opened.session);
}

async function openNew(where) {
  const session = unused(where) ?? (await ask(null, { open: { folder: where, interactive: true, detach: "keep" } })).opened.session;
  closeSide();
  show(session);
  byId("say").focus();
}

/** Shows a session. */
function show(session) {
  if (location.hash !== "#/" + session) history.pushState(null, "", "#/" + session);
  if (session !== current) {
    current = session;
    view = null;
    attempts = 0;
    awaited = null;
    transcript.clear();
    fill(byId("start"), h("p", { class: "note" }, "One moment …"));
    byId("start").hidden = false;
    byId("earlier").hidden = true;
    drawLists();
  }
  stream.again();
  trying(readStored)();
}

function home(why = "") {
  fill(byId("start"), h("h2", null, "gnoma"), why && h("p", { class: "note warning" }, clean(why)),
    canSteer() ? [h("p", null, "Open a session from the list, or start a new one in ", h("code", null, clean(hello.folder)), "."), h("button", { type: "button", class: "first", onclick: trying(() => openNew(hello.folder)) }, "Start a session")]
      : h("p", null, "Choose a session from the list to watch it."));
  byId("start").hidden = false;
  transcript.clear();
  transcript.release();
  drawNow();
  // Where the list has no place beside the conversation it is what there is to see.
  if (live.length || !canSteer()) openSide();
  trying(readStored)();
}

// ---- What a person does

const field = byId("say");

byId("composer").addEventListener("submit", trying(async (event) => {
  event.preventDefault();
  const text = field.value;
  if (!text.trim()) return;
  field.value = "";
  transcript.toEnd();
  try {
    await say({ send: { content: [{ text: { text } }] } });
    banner();
  } catch (error) {
    field.value = field.value ? `${text}\n${field.value}` : text;
    throw error;
  }
}));

field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches) {
    event.preventDefault();
    byId("composer").requestSubmit();
  }
});

const cancel = trying(() => say("cancel"));
byId("stop").addEventListener("click", cancel);
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || byId("panel").open) return;
  if (byId("side").classList.contains("open")) closeSide();
  else if (view?.turn && canSteer()) cancel();
});

byId("mode").addEventListener("change", trying(() => say({ set_mode: { mode: byId("mode").value } })));
byId("facts").addEventListener("click", () => panel("Facts", facts(say, view)));
byId("new").addEventListener("click", () => {
  const where = h("input", { type: "text", value: folder ?? hello?.folder ?? "", "aria-label": "Folder to work in", spellcheck: "false", autocomplete: "off" });
  const start = trying(async (event) => { event.preventDefault(); await openNew(where.value.trim()); closePanel(); });
  panel("New session", h("form", { onsubmit: start }, h("label", null, "Folder", h("div", { class: "row" }, where, h("button", { type: "submit", class: "first" }, "Start")))));
});

byId("search").addEventListener("submit", trying(async (event) => {
  event.preventDefault();
  const words = byId("words").value.trim();
  if (!words) return showHits(null);
  const here = current ?? live.find((it) => it.folder === hello?.folder)?.status.session;
  if (!here) throw new Refused({ cause: "open a session first", remedy: "Its project is searched." });
  const { hits } = await ask(here, { search: { words, max: MAX_HITS } });
  showHits(hits, trying(openStored));
}));

byId("earlier").addEventListener("click", trying(async () => {
  const { history } = await say({ history: { before: first, max: PAGE } });
  first = history.first;
  transcript.older(first, history.messages);
  byId("earlier").hidden = first === 0;
}));

byId("open-menu").addEventListener("click", () => {
  const actions = [
    ["Model", () => panel("Model", models(say, armName(view.arm), trying(async (arm) => { await say({ pin: { arm } }); closePanel(); })))],
    ["Rewind", () => panel("Rewind", points(say, trying(async (point) => {
      const { text } = await say({ rewind: { turns: point.turns, files: true, conversation: true } });
      closePanel();
      if (!field.value) field.value = point.prompt;
      hear(text);
    })))],
    ["Redo", trying(async () => { closePanel(); hear((await say("redo")).text); })],
    ["Changes", () => panel("Changed files", changes(say))],
    ["Model, context, cost", () => panel("Facts", facts(say, view))],
    ["Compact", trying(async () => { closePanel(); await say({ compact: { focus: "" } }); })],
    ["Good", trying(async () => { closePanel(); await say({ rate: { good: true } }); hear("Noted."); })],
    ["Bad", trying(async () => { closePanel(); await say({ rate: { good: false } }); hear("Noted."); })],
    ["Fork", trying(async () => { closePanel(); show((await say("fork")).opened.session); })],
    ["Rename", () => panel("Rename", renaming())],
    ["Settings", () => panel("Settings", settings(say, view, hello.settings ?? []))],
    ["End session", trying(async () => { closePanel(); await say("close"); })],
  ];
  if ("Notification" in window && Notification.permission === "default") {
    actions.push(["Notify me of questions", async () => { closePanel(); await Notification.requestPermission(); }]);
  }
  const shown = canSteer() ? actions : actions.filter(([name]) => name.startsWith("Model,"));
  panel("Menu", h("div", { class: "actions" }, shown.map(([name, act]) => h("button", { type: "button", onclick: act }, name))));
});

function renaming() {
  const title = h("input", { type: "text", "aria-label": "Title", value: byId("title").textContent, autocomplete: "off" });
  return h("form", { class: "row", onsubmit: trying(async (event) => { event.preventDefault(); await say({ rename: { title: title.value.trim() } }); closePanel(); list(); }) },
    title, h("button", { type: "submit", class: "first" }, "Rename"));
}

function openSide() {
  byId("side").classList.add("open");
  byId("open-side").setAttribute("aria-expanded", "true");
}

function closeSide() {
  byId("side").classList.remove("open");
  byId("open-side").setAttribute("aria-expanded", "false");
}
byId("open-side").addEventListener("click", () => {
  if (byId("side").classList.contains("open")) return closeSide();
  openSide();
  byId("words").focus();
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  (byId("composer").hidden ? byId("main") : field).focus();
});
addEventListener("popstate", () => follow());

function follow() {
  const session = /^#\/([\w-]+)$/.exec(location.hash)?.[1];
  if (session) show(session);
  else home();
}

async function begin() {
  try {
    hello = await enter();
  } catch (error) {
    if (error.status === 401) return locked(error);
    complain(error);
    return setTimeout(begin, 2000);
  }
  banner();
  live = (await ask(null, "list").catch(() => ({ live: [] }))).live;
  stream = new Stream(
    () => (current ? [view ? { session: current, epoch: view.epoch, seq: view.seq } : { session: current }] : []),
    told,
    (connected) => {
      if (connected) banner();
      else banner("The connection to the server is lost. The page goes on once it is back.");
    },
  );
  follow();
}

begin();
