// The page: which session is shown, what comes of it, and what a person does with it.

import { Actions } from "./actions.js";
import { Questions } from "./ask.js";
import { look, news, register } from "./attention.js";
import { Composer } from "./composer.js";
import { baseName, byId, clean, cost, fill, firstLine, h, memory, short, when } from "./dom.js";
import { apply, named, questionsOf, total, viewOf } from "./fold.js";
import { icon, ring } from "./icons.js";
import { ask, enter, newId, Refused, Stream } from "./net.js";
import { applyLook, closePanel, complainInPanel, facts, models, panel, showPlan, taskRun } from "./panels.js";
import { Review } from "./review.js";
import { folders, remember, showElfs, showHits, showLists, titleOf } from "./sessions.js";
import { hear, toast } from "./toast.js";
import { Transcript } from "./transcript.js";
import { armName, CHOSEN_HERE, MODES } from "./words.js";

/** Messages that are read at once, and pages that are read to find a place. */
const PAGE = 80;
const MAX_PAGES = 40;
const MAX_HITS = 30;
const MAX_FILES = 5000;
/** Places of words that are marked in a message. */
const MAX_MARKS = 200;
const MAX_STORED = 60;
/** Characters of a finished answer that are read out. */
const MAX_HEARD = 600;
/** How often a session that has gone is opened again, and how much longer each wait is. */
const MAX_ATTEMPTS = 4;
const AGAIN_MS = 400;
/** Pixels from the beginning of what is drawn from which on earlier messages are read. */
const NEAR_TOP = 400;
/** Between two looks at the list of sessions, however much happens. */
const LIST_MS = 400;
/** Between two looks at elfs and commands at work, of which no event tells. */
const BESIDE_MS = 3000;
/** Whoever wrote this lately is writing: a question does not take the focus. */
const WRITING_MS = 2500;

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
/** Words that are looked for once a session is there. */
let sought = null;
let live = [];
const stored = new Map();
let drawing = 0;
let written = -Infinity;
/** The session in which the first message of the page without one will begin, once somebody begins to write or choose there. */
let prepared = null;
let atHome = null;

const say = (request) => ask(current, request);
const canSteer = () => hello?.rights === "steer";
const titleNow = () => titleOf(live.find((it) => it.status.session === current) ?? {}, new Map([...stored.values()].flat().map((it) => [it.id, it])));

function banner(...children) {
  fill(byId("banner"), children);
}

function complain(error) {
  if (complainInPanel(error)) return;
  banner(`${error.message}. ${error.remedy ?? ""}`, h("button", { type: "button", onclick: () => banner() }, "Close"));
}

const trying = (what) => (...args) => Promise.resolve().then(() => what(...args)).catch(complain);

const transcript = new Transcript({
  canSteer,
  output: (result, from, max) => say({ output: { result, from, max_bytes: max } }).then((it) => it.output, (error) => complain(error)),
  rewind: (words, element, isFork) => {
    const same = [...document.querySelectorAll("#messages .message.user")].filter((it) => it.querySelector(".bubble").textContent === element.querySelector(".bubble").textContent);
    actions.rewindTo(words, same.length - 1 - same.indexOf(element), isFork);
  },
  fork: () => actions.fork(),
  review: () => review.open(),
});
const questions = new Questions(
  (call, answer) => say({ answer: { call, answer } }),
  async (rule, scope) => "Will be saved in " + (await say({ keep_rule: { rule, scope, dry_run: true } })).text,
);
const composer = new Composer({
  send, complain,
  run: (name, argument) => actions.run(name, argument),
  commands: () => actions.commands(),
  // Where no session is shown yet, the one that the first message will begin in answers.
  files: async () => (await ask(current ?? (await prepare()).session, { files: { max: MAX_FILES } })).text.split("\n").filter(Boolean),
  prompts: () => transcript.prompts,
  isPrivate: () => Boolean(view?.info.incognito),
});
const review = new Review({
  canSteer, complain,
  changes: async (since) => (await say({ turn: "changes", start: "session_changes", commit: "commit_changes" }[since])).text,
  revert: (since, path, hunk) => say({ revert_file: { since, path, hunk } }),
  redo: () => say("redo"),
  comment: (text) => composer.append(text),
});
const actions = new Actions({
  say, ask, send, canSteer, show, composer, review, transcript, complain,
  view: () => view, hello: () => hello, title: titleNow, openNew: trying(openNew), openSide: () => { openSide(); byId("words").focus(); },
  refresh: () => { list(); trying(readStored)(); },
  deleted: (id) => { if (id === current) leave(); list(); trying(readStored)(); },
});

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
  byId("earlier").hidden = true;
  transcript.clear();
  transcript.begin(view);
  composer.show(current);
  review.show(current);
  draw();
  // Before its first event a session does not say how many messages it goes on with.
  if (view.folder) read(isSame);
  goOn(true);
}

/** Reads what was said last; what comes meanwhile is drawn after it. */
async function read(isSame) {
  folder = view.folder.replace(/(?<=.)\/+$/, "");
  remember(folder);
  const { session, epoch, seq, messages } = view;
  try {
    const { history } = await say({ history: { before: messages, max: PAGE } });
    if (current !== session || view.epoch !== epoch) return;
    first = history.first;
    // What has happened since is drawn as it comes.
    transcript.older(first, history.messages, notesOf(history, seq), !view.turn);
  } catch (error) {
    complain(error);
  }
  byId("earlier").hidden = first === 0;
  begun();
  draw();
  transcript.release();
  if (sought) locate(sought);
  else if (!isSame) transcript.toEnd();
}

/** What is known of messages beside their words, up to an event, by the number of the message after which it happened. */
function notesOf({ notes = [] }, seq = Infinity) {
  const all = new Map();
  for (const { after, seq: number, at_ms, event } of notes) {
    const [kind, what] = named(event);
    if (number <= seq) all.set(after, [...(all.get(after) ?? []), { kind, event: what, at_ms }]);
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
      begun();
      break;
    case "started": read(false); break;
    case "turn_ended":
      returned(event.undelivered ?? []);
      review.forgetReverts();
      review.refresh();
      break;
  }
  transcript.take(kind, event, view, envelope.at_ms);
  draw();
}

/** What could not be delivered goes back to where it was written. */
function returned(messages) {
  const text = messages.flatMap((it) => it.content.map((content) => content.text?.text ?? "")).join("\n").trim();
  if (text) composer.prepend(text);
}

/** A session that is not there any more may be stored: it is opened again, here or by another page. */
async function refused({ session, error }) {
  if (session !== current) return;
  let cause = error.cause;
  while (error.kind === "no_session" && hello && canSteer() && attempts < MAX_ATTEMPTS) {
    await new Promise((done) => setTimeout(done, attempts++ * AGAIN_MS));
    if (session !== current) return;
    try {
      if (!placeOf(session)) await readStored();
      const where = placeOf(session) ?? folder ?? hello.folder;
      const { opened } = await ask(null, { open: { folder: where, start: { stored: { id: session, fork: false } }, interactive: true, detach: "keep" } });
      return show(opened.session);
    } catch (other) {
      cause = other.message;
    }
  }
  if (session !== current) return;
  awaited = session;
  leave(`The session is not open any more: ${cause}.`);
}

/** Goes home from a session that is not there; what was written to one that was lost comes along. */
function leave(why = "") {
  const lost = why && current;
  view = null;
  current = null;
  history.replaceState(null, "", location.pathname);
  home(why);
  if (lost) composer.adopt(lost);
}

function locked(error) {
  banner();
  hello = null;
  view = null;
  current = null;
  goOn(false);
  live = [];
  stored.clear();
  stream?.close();
  for (const id of ["composer", "new", "search", "earlier", "open-side"]) byId(id).hidden = true;
  for (const id of ["messages", "live", "lists", "hits", "title", "where", "state"]) byId(id).replaceChildren();
  fill(byId("title"), "gnoma");
  closeSide();
  closePanel();
  drawNow();
  byId("composer").hidden = true;
  fill(byId("start"), h("div", { class: "welcome" }, h("h2", null, "This page needs its link"), h("p", null, "Run ", h("code", null, "gnoma web"), " and open the link that it prints."), h("p", { class: "note" }, clean(error.message ?? ""))));
  byId("start").hidden = false;
  byId("main").classList.add("empty");
}

// ---- What is drawn

function draw() {
  if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; drawNow(); });
}

function drawNow() {
  const turn = view?.turn;
  const open = questionsOf(view);
  const state = !view ? "" : open.length ? "asks" : { idle: "", active: "works", cancelling: "stops", closed: "closed" }[view.state];
  const badge = byId("state");
  badge.textContent = { asks: "needs you", works: "working", stops: "stopping" }[state] ?? state;
  badge.dataset.state = state;
  const name = titleNow() || (view ? "New session" : "gnoma");
  byId("title").textContent = clean(short(name, 100));
  byId("where").textContent = view ? clean([baseName(view.folder || ""), view.info.branch ?? ""].filter(Boolean).join(" · ")) : "";
  const asking = live.filter((it) => it.status.questions > 0 && it.status.session !== current).length + (open.length ? 1 : 0);
  document.title = (asking ? `(${asking}) ` : state === "works" ? "▸ " : "") + clean(short(name, 60));
  for (const id of ["facts", "open-menu"]) byId(id).hidden = !view;
  byId("open-review").hidden = byId("tabs").hidden = !view || !canSteer();
  byId("tab-talk").toggleAttribute("data-news", open.length > 0 && review.isOpen);
  if (view) drawFacts();
  byId("composer").hidden = !hello || !canSteer() || Boolean(current && !view);
  byId("mode").hidden = byId("model").hidden = Boolean(current && !view);
  if (!current) drawChoices(atHome?.mode ?? "", atHome?.arm);
  byId("stop").hidden = !turn;
  byId("stop").disabled = view?.state === "cancelling";
  byId("send").setAttribute("aria-label", turn ? "Steer" : "Send");
  drawQueue(turn?.queue ?? []);
  const isNew = questions.show(open, canSteer());
  if (isNew.length) attend(isNew);
  showPlan(view?.plan ?? [], Boolean(turn));
  showElfs(live, current, show, {
    isPrivate: Boolean(view?.info.incognito), jobs: transcript.jobs, opened: trying((id) => openStored(folder, id)),
    showJob: (id) => { const { element } = transcript.jobs.get(id).card; element.closest(".group")?.setAttribute("open", ""); element.open = true; element.scrollIntoView({ block: "center" }); element.querySelector("summary").focus(); },
    showRun: (report) => panel(`Task ${clean(report.task)}`, taskRun(report)),
  });
}

function drawFacts() {
  const arm = armName(view.arm) || view.info.model || "";
  const used = view.context?.tokens || total(view.last_call);
  const size = view.context?.window ?? view.info.window;
  const share = size && used ? used / size : 0;
  const text = [share ? `${Math.round(100 * share)} %` : "", view.micro_usd ? cost(view) : ""].filter(Boolean).join(" · ");
  if (byId("facts").dataset.text !== text + arm) {
    byId("facts").dataset.text = text + arm;
    fill(byId("facts"), ring(share), h("span", { class: "label" }, text));
    byId("facts").setAttribute("aria-label", `Model, context and cost: ${clean(arm)}${text ? ", " + text : ""}`);
  }
  drawChoices(view.mode, view.arm ?? view.info.model);
}

/** What is chosen below the message: the mode, and the model; both are open where no session is in view. */
function drawChoices(mode, arm) {
  const name = clean(typeof arm === "string" ? arm : armName(arm));
  const key = JSON.stringify([mode, name]);
  if (byId("mode").dataset.key === key && byId("mode").value === mode) return;
  byId("mode").dataset.key = key;
  fill(byId("model"), icon("chip"), h("span", { class: "label" }, baseName(name) || "Model"));
  byId("model").setAttribute("aria-label", `Model: ${name || "chosen for each turn"}`);
  const shown = CHOSEN_HERE.includes(mode) ? CHOSEN_HERE : [mode, ...CHOSEN_HERE];
  if ([...byId("mode").options].map((it) => it.value).join() !== shown.join()) fill(byId("mode"), shown.map((it) => h("option", { value: it }, MODES[it] ?? (it || "Permission mode"))));
  byId("mode").value = mode;
}

/** Opens the session that the first message of the page will begin in, and shows what is chosen there. */
function prepare() {
  const own = (prepared ??= (async () => {
    const session = await anySession(hello.folder);
    const { status: { mode, arm } } = await ask(session, "status");
    return { session, mode, arm };
  })());
  own.then((it) => { if (prepared === own) { atHome = it; draw(); } }, () => { prepared = null; });
  return own;
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
    composer.focus();
  });
  fill(box, queue.length ? h("p", { class: "note" }, "Waits for the next step of the model:") : null,
    h("ul", null, queue.map((contents, place) => h("li", null, h("span", { dir: "auto" }, clean(short(textOf(contents), 200))),
      canSteer() && h("button", { type: "button", class: "plain", onclick: without(place), "aria-label": `Take back: ${clean(short(textOf(contents), 60))}` }, "Take back")))));
}

/** Leads the person to a question, unless they are writing. */
function attend(fresh) {
  const { question, element } = fresh[0];
  const title = element.querySelector("h2").textContent;
  hear(`${title} ${short(clean(question.reason), 200)}`);
  const at = document.activeElement;
  const isWriting = (at?.matches("input, textarea, select") && (at.value || performance.now() - written < WRITING_MS)) || byId("panel").open || byId("review").contains(at);
  if (!isWriting && !element.hidden) element.querySelector("h2").focus();
  list();
}

// ---- The list of sessions

/** A session with its folder in one form, so that those of a project stand together. */
const placed = (session) => ({ ...session, folder: session.folder.replace(/(?<=.)\/+$/, "") });

let listing = null;
let again = false;
let lookAgain = 0;
/** Reads the list anew, soon, and once however often it is asked for. */
function list() {
  if (listing) { again = true; return; }
  listing = (async () => {
    try {
      live = hello ? (await ask(null, "list")).live.map(placed) : [];
      look(live, current);
      drawLists();
      drawNow();
      clearTimeout(lookAgain);
      if (live.some(({ parent, jobs, status }) => (parent === current && status.state === "active") || (status.session === current && jobs))) lookAgain = setTimeout(() => document.hidden || list(), BESIDE_MS);
    } catch { /* the stream says what is wrong */ }
    await new Promise((done) => setTimeout(done, LIST_MS));
    listing = null;
    if (again) { again = false; list(); }
  })();
}

function drawLists() {
  const known = new Set([...stored.values()].flat().map((it) => it.id));
  showLists({
    live: live.filter((it) => it.status.messages || it.subscribers || it.status.session === current || known.has(it.status.session) || it.title), stored, current, news, canSteer: canSteer(), filter: byId("words").value.trim(),
    chosen: (session) => { show(session); closeSide(); }, opened: trying(openStored), fresh: trying(openNew), more: forSession,
  });
}

function forSession(id) {
  const open = live.find((it) => it.status.session === id);
  const [place, facts] = [...stored].flatMap(([where, all]) => all.filter((it) => it.id === id).map((it) => [where, it]))[0] ?? [];
  actions.forSession({ id, folder: open?.folder ?? place, title: titleOf(open ?? facts ?? {}), isLive: Boolean(open) });
}

/** The folder of a saved session, as far as it is known. */
const placeOf = (id) => [...stored].find(([, all]) => all.some((it) => it.id === id))?.[0];

/** A session in that folder in which nothing was said yet and that nobody has before them. */
const unused = (where) => live.find((it) => it.folder === where && !it.parent && !it.status.messages && !it.subscribers)?.status.session;

/** Reads which sessions are saved, of all projects that this browser has seen. */
async function readStored() {
  if (!canSteer()) return;
  const places = [...new Set([folder ?? hello.folder, hello.folder, ...live.map((it) => it.folder), ...folders()])];
  await Promise.all(places.map(async (place) => {
    const found = (await ask(null, { stored_in: { spec: { folder: place }, max: MAX_STORED } }).catch(() => ({ stored: [] }))).stored;
    if (found.length) stored.set(place, found);
    else stored.delete(place);
  }));
  if (!hello) return stored.clear();
  drawLists();
  if (!byId("start").hidden && !byId("start").contains(document.activeElement)) begun();
}

async function openStored(where, id) {
  const { opened } = await ask(null, { open: { folder: where, start: { stored: { id, fork: false } }, interactive: true, detach: "keep" } });
  closeSide();
  show(opened.session);
}

/** A session in that folder in which nothing was said; it is opened where there is none. */
const anySession = async (where) => unused(where) ?? (await ask(null, { open: { folder: where, interactive: true, detach: "keep" } })).opened.session;

async function openNew(where) {
  const session = prepared && where === hello.folder ? (await prepared).session : await anySession(where);
  closeSide();
  remember(where);
  show(session);
  composer.focus();
  return session;
}

/** Shows a session. */
function show(session) {
  if (location.hash !== "#/" + session) history.pushState(null, "", "#/" + session);
  if (session !== current) {
    current = session;
    view = null;
    prepared = atHome = null;
    attempts = 0;
    awaited = null;
    news.delete(session);
    transcript.clear();
    composer.show(session);
    fill(byId("start"), h("p", { class: "note" }, "One moment …"));
    byId("start").hidden = false;
    byId("main").classList.remove("empty");
    byId("earlier").hidden = true;
    goOn(false);
    drawLists();
  }
  stream.again();
  trying(readStored)();
}

/** Commands of the project and examples that a beginning offers. */
const MAX_PROMPTS = 3;
const PROMPTS = ["Explain how this project is built and tested", "Find a bug in what changed last, and fix it", "Write a test for the part that has none"];

/** What a session shows in which nothing was said yet, and the page where no session is open. */
function begun() {
  const box = byId("start");
  box.hidden = Boolean(view && (view.messages || view.turn)) || Boolean(current && !view);
  byId("main").classList.toggle("empty", !box.hidden);
  if (box.hidden || !hello) return;
  const where = view?.folder || hello.folder;
  const { branch, commands = [] } = view?.info ?? {};
  const own = [...commands.filter((it) => it.origin === "project").map((it) => [`/${it.name} `, `/${it.name}${it.about ? ": " + firstLine(it.about) : ""}`]), ...(branch && !["main", "master"].includes(branch) ? [[`Review what changed on ${branch}`]] : []), ...PROMPTS.map((it) => [it])].slice(0, MAX_PROMPTS);
  const last = [...stored.get(where) ?? [], ...[...stored].filter(([it]) => it !== where).flatMap(([, all]) => all)].filter((it) => !it.child && !it.held_by && it.id !== current).slice(0, 3);
  fill(box, h("div", { class: "welcome" }, h("h2", null, canSteer() ? "What shall be done?" : "Watching"),
    h("p", { class: "where" }, h("span", { title: clean(where) }, icon("folder"), clean(where)), view?.info.branch && h("span", null, icon("fork"), clean(view.info.branch)), (view?.info.model || armName(view?.arm)) && h("span", null, icon("chip"), clean(view.info.model || armName(view.arm)))),
    !canSteer() && h("p", null, "Choose a session from the list to watch it."),
    canSteer() && last.length > 0 && [h("h3", null, "Go on with"), h("ul", null, last.map((it) => h("li", null, h("button", { type: "button", onclick: trying(() => openStored(placeOf(it.id), it.id)) }, icon("note"), short(clean(titleOf(it) || it.id), 70), h("small", null, when(it.changed_ms))))))],
    canSteer() && [h("h3", null, last.length ? "Or begin with" : "Begin with"), h("ul", null, own.map(([text, words = text]) => h("li", null, h("button", { type: "button", onclick: () => { composer.text = text; composer.focus(); } }, icon("spark"), short(clean(words), 100)))))]));
}

function home(why = "") {
  view = null;
  current = null;
  composer.show("home");
  goOn(false, why);
  review.show(null);
  transcript.clear();
  transcript.release();
  begun();
  if (why) banner(clean(why), h("button", { type: "button", onclick: () => banner() }, "Close"));
  drawNow();
  // Where the list has no place beside the conversation it is what a watcher comes for.
  if (!canSteer()) openSide();
  trying(readStored)();
}

// ---- What a person does

/** Messages that wait until their session is there again. */
const held = new Set();
const comesBack = (session, isGone) => new Promise((done, failed) => held.add({ session, isGone, done, failed }));

/** Goes on with messages of the session in view that wait; `isNew`: it was read anew. Those of others stay drafts, and `why` says so. */
function goOn(isNew, why = "") {
  for (const it of [...held]) {
    if (it.session !== current) it.failed(new Refused({ cause: why.replace(/\.$/, "") || "the message was not sent", remedy: "It is in the message box." }));
    else if (isNew || !it.isGone) it.done();
    else continue;
    held.delete(it);
  }
}

/** Sends what was written, in a new session where none is open; it is shown at once, and waits while the server is away. */
async function send(content) {
  written = -Infinity;
  if (!current) {
    const session = await openNew(hello.folder);
    await ask(session, { send: { content } });
    return;
  }
  const session = current;
  let id = newId();
  for (let tries = 1; ; tries++) {
    const echo = transcript.echo(content);
    try {
      await ask(session, { send: { content } }, id);
      // What was sent before may be in the conversation already.
      if (tries > 1) echo.remove();
      return banner();
    } catch (error) {
      const isGone = error.kind === "no_session";
      if ((!isGone && error.kind !== "unreachable") || tries >= MAX_ATTEMPTS) {
        echo.remove();
        throw error;
      }
      // What was answered is done with; what was not answered is the same request still.
      if (isGone) id = newId();
      echo.says("Not sent yet: it is sent once the session is there again.");
      const back = comesBack(session, isGone);
      stream.again();
      await back.finally(echo.remove);
    }
  }
}

/** Goes to where words were said, and reads earlier messages until they are found. */
async function locate(words) {
  sought = null;
  const session = current;
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  for (let page = 0; page < MAX_PAGES && current === session; page++) {
    const found = [...byId("messages").children].findLast((it) => parts.every((part) => it.textContent.toLowerCase().includes(part)));
    if (found) {
      mark(found, parts);
      found.scrollIntoView({ block: "center" });
      found.tabIndex = -1;
      return found.focus();
    }
    if (first === 0) break;
    await earlier();
  }
  return toast("The place is not in the conversation any more.");
}

/** Marks words in the text of an element, where the browser can. */
function mark(element, words) {
  if (!globalThis.Highlight) return;
  const ranges = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < MAX_MARKS; at = text.indexOf(word, at + word.length)) {
        ranges.push(new StaticRange({ startContainer: texts.currentNode, startOffset: at, endContainer: texts.currentNode, endOffset: at + word.length }));
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

/** What reads earlier messages now: whoever asks meanwhile waits for the same. */
let reading = null;
const earlier = () => (reading ??= trying(readEarlier)().finally(() => (reading = null)));

async function readEarlier() {
  const session = current;
  const { history } = await say({ history: { before: first, max: PAGE } });
  if (session !== current) return;
  first = history.first;
  transcript.older(first, history.messages, notesOf(history));
  byId("earlier").hidden = first === 0;
}

const cancel = trying(() => say("cancel"));
byId("stop").addEventListener("click", cancel);
byId("earlier").addEventListener("click", earlier);
byId("transcript").addEventListener("scroll", () => { if (byId("transcript").scrollTop < NEAR_TOP && !byId("earlier").hidden && view) earlier(); }, { passive: true });
byId("composer").addEventListener("focusin", () => { if (!current && canSteer()) prepare().catch(complain); });
byId("mode").addEventListener("change", trying(async () => {
  const mode = byId("mode").value;
  if (current) return say({ set_mode: { mode } });
  const home = await prepare();
  await ask(home.session, { set_mode: { mode } });
  home.mode = mode;
  return draw();
}));
byId("model").addEventListener("click", () => (current ? actions.run("model", "") : panel("Model", chooseAtHome())));

async function chooseAtHome() {
  const home = await prepare();
  const chosen = trying(async (arm) => {
    await ask(home.session, { pin: { arm } });
    home.arm = arm;
    closePanel();
    draw();
  });
  return models((request) => ask(home.session, request), "", chosen);
}

byId("facts").addEventListener("click", () => panel("Context and cost", facts(say, view, canSteer())));
byId("open-menu").addEventListener("click", () => actions.menu());
byId("say").addEventListener("input", () => (written = performance.now()));

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || byId("panel").open) return;
  const isField = event.target.matches?.("input, textarea, select");
  const isControl = event.ctrlKey || event.metaKey;
  if (event.key === "Escape") {
    // In a field it clears or closes what is there; only in an empty message box and outside of fields does it stop a turn.
    if (byId("side").classList.contains("open")) closeSide();
    else if (view?.turn && canSteer() && (!isField || (event.target === byId("say") && !event.target.value))) cancel();
  } else if (isControl && event.key === "k") {
    event.preventDefault();
    openSide();
    byId("words").focus();
  } else if (isControl && event.shiftKey && event.key.toLowerCase() === "d" && view && canSteer()) {
    event.preventDefault();
    if (review.isOpen) review.close();
    else review.open();
  } else if (event.key === "?" && !isField && !isControl) actions.keys();
});

byId("new").addEventListener("click", () => {
  const where = h("input", { type: "text", value: folder ?? hello?.folder ?? "", "aria-label": "Folder to work in", spellcheck: "false", autocomplete: "off" });
  const start = trying(async (event) => { event.preventDefault(); await openNew(where.value.trim()); closePanel(); });
  const known = [...new Set([hello?.folder, ...live.map((it) => it.folder), ...folders()])].filter(Boolean);
  panel("New session", [h("form", { class: "row", onsubmit: start }, where, h("button", { type: "submit", class: "first" }, "Start")),
    h("ul", { class: "choices" }, known.map((it) => h("li", null, h("button", { type: "button", onclick: trying(async () => { await openNew(it); closePanel(); }) }, icon("folder"), h("span", { class: "words" }, clean(baseName(it)), h("small", null, clean(it)))))))]);
});

byId("words").addEventListener("input", () => { drawLists(); if (!byId("words").value) showHits(null); });
byId("search").addEventListener("submit", trying(async (event) => {
  event.preventDefault();
  const words = byId("words").value.trim();
  if (!words) return showHits(null);
  return search(words, folder ?? hello?.folder);
}));

/** Searches what was said in a project; the others are offered below. */
async function search(words, where) {
  const here = (where === folder && current) || live.find((it) => it.folder === where)?.status.session || (canSteer() && (await anySession(where)));
  if (!here) throw new Refused({ cause: "open a session first", remedy: "Its project is searched." });
  const { hits } = await ask(here, { search: { words, max: MAX_HITS } });
  const chosen = trying(async (hit) => {
    sought = words;
    if (hit.session === current) { closeSide(); return locate(words); }
    if (live.some((it) => it.status.session === hit.session)) { closeSide(); return show(hit.session); }
    return openStored(where, hit.session);
  });
  const others = [...new Set([...live.map((it) => it.folder), ...stored.keys()])].filter((it) => it !== where);
  showHits(hits, { words, where, others, chosen, again: trying((other) => search(words, other)) });
}

const covered = () => [byId("tabs"), byId("transcript"), byId("dock"), byId("review"), ...byId("bar").querySelectorAll("button")];

function openSide() {
  byId("side").classList.add("open");
  byId("open-side").setAttribute("aria-expanded", "true");
  // Where it covers the page, the rest is out of reach meanwhile.
  for (const it of covered()) it.inert = matchMedia("(max-width: 899px)").matches;
}

function closeSide() {
  for (const it of covered()) it.inert = false;
  byId("side").classList.remove("open");
  byId("open-side").setAttribute("aria-expanded", "false");
}
byId("open-side").addEventListener("click", () => {
  openSide();
  byId("close-side").focus();
});
byId("close-side").addEventListener("click", () => { closeSide(); byId("open-side").focus(); });
matchMedia("(min-width: 900px)").addEventListener("change", closeSide);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  (byId("composer").hidden ? byId("main") : byId("say")).focus();
});
addEventListener("popstate", () => {
  closeSide();
  const isSame = view && location.hash === "#/" + current;
  if (isSame && review.isOpen) review.close(true, true);
  else if (!isSame) follow();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) { news.delete(current); list(); stream?.wake(); } });

function follow() {
  const session = /^#\/([\w-]+)$/.exec(location.hash)?.[1];
  if (session) show(session);
  else home();
}

function dress() {
  applyLook();
  for (const [id, image] of [["brand", "hat"], ["new", "plus"], ["close-side", "close"], ["open-side", "list"], ["open-menu", "more"], ["to-end", "down"], ["attach", "clip"], ["stop", "stop"], ["send", "up"]]) byId(id).prepend(icon(image));
}

async function begin() {
  try {
    hello = await enter();
  } catch (error) {
    if (error.status === 401) return locked(error);
    banner(error instanceof Refused ? `${error.message}. ${error.remedy}` : "The server cannot be reached. The page opens once it is there.");
    return setTimeout(begin, 2000);
  }
  banner();
  byId("new").hidden = byId("search").hidden = !canSteer();
  live = (await ask(null, "list").catch(() => ({ live: [] }))).live.map(placed);
  look(live, current);
  stream = new Stream(
    () => (current ? [view ? { session: current, epoch: view.epoch, seq: view.seq } : { session: current }] : []),
    told,
    (connected) => {
      if (connected) { banner(); goOn(false); }
      else banner("The connection to the server is lost. The page goes on once it is back.");
    },
  );
  follow();
  register((session) => { closeSide(); show(session); });
}

dress();
begin();
