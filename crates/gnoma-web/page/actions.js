// What can be done with a session beside writing to it: one table for the menu and for the commands behind `/`.

import { byId, cost, h, short } from "./dom.js";
import { icon } from "./icons.js";
import { canAsk } from "./attention.js";
import { closePanel, confirmation, facts, filesOf, keys, models, panel, points, settings, showPlan } from "./panels.js";
import { beginTask, pin, pinned } from "./sessions.js";
import { toast } from "./toast.js";
import { armName, CHOSEN_HERE, MODES } from "./words.js";

/** What the terminal has and a page must not, or cannot; a test holds it against the terminal's own list. */
export const AT_TERMINAL = new Set(["login", "log", "logout", "key", "trust", "doctor", "shell", "vim", "theme", "profile", "provider", "providers", "incognito", "add-dir", "add-folder", "memory", "instructions", "mcp", "hooks", "plugins", "plugin", "agents", "skills", "elfs", "init", "copy", "drop", "version", "detach", "exit", "quit", "q"]);
/** Other names of commands, as at the terminal. */
export const ALIASES = { __proto__: null, help: "keys", cost: "usage", diff: "changes", clear: "new", config: "settings", status: "context", models: "model", undo: "rewind", title: "rename", think: "thinking", effort: "thinking", todo: "plan", route: "why", routing: "why", permission: "mode", permissions: "mode", perm: "mode", resume: "sessions", tasks: "task" };
/** What commands do. */
const ABOUT = {
  __proto__: null,
  model: "choose the model that answers",
  rewind: "go back to before a turn",
  redo: "undo the last rewind",
  compact: "replace the conversation with a summary",
  fork: "go on in a copy",
  rename: "give the session a title",
  changes: "what changed in files",
  context: "what fills the window, and the cost",
  export: "write the conversation to a file in its folder",
  why: "why this model was chosen",
  thinking: "how much models think in this session",
  plan: "the model's plan",
  cache: "what prompt caches saved, and what broke them",
  sessions: "open and saved ones",
  good: "the last turn was good",
  bad: "the last turn was bad",
  new: "a session in this folder",
  settings: "of this session and this browser",
  keys: "the keys of this page",
  close: "end the session; it stays saved",
  mode: "what needs approval",
  usage: "the cost since it was opened",
  task: "run a task; without a name, list them",
};
/** What `/task` does only in a terminal. */
const TASK_AT_TERMINAL = new Set(["save", "repair", "never", "edit", "new", "check", "delete", "import", "schedule", "suggestions"]);
/** What can be done about a step that may have had effects. */
const RESUME = ["again", "stronger", "skip"];
const NO_SUMMARY = "The conversation is not compacted, so there is no summary.";
/** Tries to delete a session that is only now being closed, and the wait between them. */
const MAX_TRIES = 6;
const RETRY_MS = 400;
/** Names of models that are alike are told apart where there are no more of them. */
const MAX_ALIKE = 4;

export class Actions {
  #app; #all;

  /** `app` has: say, ask, send, view(), hello(), canSteer(), show, title(), openNew, openSide, composer, review, transcript, refresh, deleted, complain. */
  constructor(app) {
    this.#app = app;
    const { say } = app;
    const opens = (title, body) => () => panel(title, body());
    const act = (what) => async (argument) => { closePanel(); await what(argument); };
    const model = async (argument) => {
      if (!argument) return panel("Model", models(say, armName(app.view().arm), (arm) => this.#run(async () => { await say({ pin: { arm } }); closePanel(); toast(arm ? `${armName(arm)} answers from the next turn on.` : "gnoma chooses for each turn."); })));
      if (argument === "auto") {
        await say({ pin: { arm: null } });
        return toast("gnoma chooses for each turn.");
      }
      // A model that nobody lists is meant all the same.
      if (argument.endsWith("!")) {
        await say({ switch: { model: argument } });
        return toast(`The session goes on with ${short(argument.slice(0, -1), 60)}.`);
      }
      const known = (await say({ models: { ask: true } })).choices.filter((it) => it.arm);
      const exact = known.filter((it) => it.name === argument || armName(it.arm) === argument);
      const alike = exact.length ? exact : known.filter((it) => it.name.includes(argument));
      if (!alike.length) return toast(`No model is called ${short(argument, 60)}.`);
      if (alike.length > 1) return toast(`Several models are called so: ${alike.slice(0, MAX_ALIKE).map((it) => it.name).join(", ")}${alike.length > MAX_ALIKE ? " …" : ""}.`);
      await say({ pin: { arm: alike[0].arm } });
      return toast(`${armName(alike[0].arm)} answers from the next turn on.`);
    };
    const explained = (title, topic, none = "") => opens(title, async () => h("pre", { tabindex: "0" }, (await say({ explain: topic })).text || none));
    const compact = async (argument) => {
      const [, word, rest] = /^(\S*)\s*([\s\S]*)$/.exec(argument ?? "");
      if (word === "show" && !rest) return explained("Summary", "summary", NO_SUMMARY)();
      // The conversation says what came of it.
      if (word === "undo" && !rest) return say("undo_compaction");
      if (word === "edit" && rest) return say({ edit_summary: { summary: rest } });
      if (word === "edit") {
        const { text } = await say({ explain: "summary" });
        if (!text) return toast(NO_SUMMARY);
        app.composer.text = `/compact edit\n${text}`;
        return app.composer.focus();
      }
      toast("The conversation is being summarized.");
      return say({ compact: { focus: argument ?? "" } });
    };
    const thinking = async (argument) => {
      if (!argument) return opens("Settings", () => settings(say, app.view(), app.hello().settings ?? [], this.#notices()))();
      const number = /^\d+$/.test(argument) ? +argument : 0;
      if (!number && !["off", "adaptive", "default"].includes(argument)) return toast("/thinking takes off, adaptive, default or a number of tokens.");
      await say({ set_thinking: { thinking: number ? { tokens: number } : argument === "default" ? null : argument } });
      return toast("It holds from the next call of a model on.");
    };
    const plan = () => {
      const box = byId("plan");
      if (!app.view().plan?.length) return toast("The model has not made a plan.");
      showPlan(app.view().plan, true);
      box.open = true;
      return byId("plan-now").focus();
    };
    const mode = async (argument) => {
      const name = argument.replace("-", "_");
      if (!CHOSEN_HERE.includes(name)) return toast(`Modes: ${CHOSEN_HERE.join(", ")}.`);
      await say({ set_mode: { mode: name } });
      return toast(MODES[name]);
    };
    const task = async (argument) => {
      const [, word, rest] = /^(\S*)\s*([\s\S]*)$/.exec(argument);
      const look = { __proto__: null, "": "list", list: "list", schedules: "schedules", show: { show: { name: rest } }, history: { history: { name: rest } } }[word];
      if (look) {
        const { text, choices } = await say({ task: look });
        const all = text ?? choices.map((it) => `/task ${it.name}\n    ${it.about ?? ""}`).join("\n");
        return panel("Tasks", h("pre", { tabindex: "0" }, all || "No tasks. In a terminal, gnoma task new NAME writes one."));
      }
      if (TASK_AT_TERMINAL.has(word)) return toast(`/task ${word} is only at the terminal.`);
      const words = rest.split(/\s+/).filter(Boolean);
      const choice = RESUME.includes(words.at(-1)) ? words.pop() : null;
      const wanted = word === "resume" ? { resume: { run: words.join(" "), choice } } : { run: { line: word === "run" ? rest : argument } };
      // The conversation tells of the steps; a row above the message box stays.
      const run = beginTask(app.view().session, wanted.run?.line ?? `resume ${words.join(" ")}`, app.view().info.incognito);
      app.refresh();
      return void say({ task: wanted }).then(({ task: report }) => run(report), (error) => { run(null); app.complain(error); }).finally(app.refresh);
    };
    // Group, name of the command, words, icon, what it takes, what it does.
    this.#all = [
      ["Conversation", "model", "Model", "chip", "NAME or auto", model],
      ["Conversation", "rewind", "Rewind", "rewind", "", opens("Rewind", () => points(say, (point) => this.#confirmRewind(point)))],
      ["Conversation", "redo", "Redo", "redo", "", act(() => this.redo())],
      ["Conversation", "compact", "Compact", "squeeze", "FOCUS, show, edit or undo", act(compact)],
      ["Conversation", "fork", "Fork", "fork", "", act(() => this.fork())],
      ["Conversation", "rename", "Rename", "edit", "TITLE", (title) => (title ? this.#rename(title) : panel("Rename", this.#renaming()))],
      ["Look at", "changes", "Changes", "diff", "", act(() => app.review.open())],
      ["Look at", "context", "Model, context, cost", "gauge", "", opens("Context and cost", () => facts(say, app.view(), app.canSteer()))],
      ["Look at", "export", "Export", "file", "", act(async () => toast((await say({ export: { path: "" } })).text))],
      ["Look at", "why", "Why this model", "ask", "", (argument) => (argument ? toast("/why takes nothing here. The conversation has the reasons of each turn.") : explained("Why this model", "routing")())],
      ["Rate", "good", "Good", "good", "", act(async () => { await say({ rate: { good: true } }); toast("Noted: good."); })],
      ["Rate", "bad", "Bad", "bad", "", act(async () => { await say({ rate: { good: false } }); toast("Noted: bad."); })],
      ["Page", "new", "New session", "plus", "", act(() => app.openNew(app.view().folder))],
      ["Page", "settings", "Settings", "tune", "", opens("Settings", () => settings(say, app.view(), app.hello().settings ?? [], this.#notices()))],
      ["Page", "keys", "Keys", "key", "", opens("Keys", keys)],
      ["Page", "close", "End session", "stop", "", act(async () => { await say("close"); toast("The session has ended. It stays in the list."); })],
      ["", "mode", "Permission mode", "alert", "MODE", mode],
      ["", "thinking", "Thinking", "spark", "off, adaptive or TOKENS", thinking],
      ["", "plan", "Plan", "plan", "", plan],
      ["", "task", "Task", "plan", "NAME ARGUMENTS, show NAME or resume", task],
      ["", "cache", "Prompt cache", "gauge", "", explained("Prompt cache", "cache")],
      ["", "sessions", "Sessions", "list", "", () => app.openSide()],
      ["", "usage", "Cost", "gauge", "", async () => { const { usage } = await say("usage"); toast(`Since it was opened: ${cost(usage)}.`); }],
    ];
  }

  #run = async (what) => { try { return await what(); } catch (error) { this.#app.complain(error); } };

  /** The commands behind `/`: those of the page, and the session's own. */
  commands() {
    const own = this.#app.view()?.info.commands ?? [];
    const names = new Set(own.map((it) => it.name));
    return [...this.#all.filter(([, name]) => !names.has(name)).map(([, name, , , hint]) => ({ name, about: ABOUT[name], hint })), ...own];
  }

  /** Does what a command says; false where the words stay in the message box. */
  async run(name, argument) {
    if (!this.#app.view()) { toast("Commands need a session: send a message first."); return false; }
    if (this.#app.view().info.commands.some((it) => it.name.toLowerCase() === name)) {
      await this.#run(() => this.#app.send([{ text: { text: `/${name}${argument ? " " + argument : ""}` } }]));
      return true;
    }
    const found = this.#all.find(([, it]) => it === (ALIASES[name] ?? name));
    if (!found) {
      toast(AT_TERMINAL.has(name) ? `/${name} is only at the terminal: gnoma attach.` : `There is no command /${short(name, 40)}. To send it as words, put a blank before it.`);
      return false;
    }
    await this.#run(() => found[5](argument));
    return true;
  }

  /** The menu of the session. */
  menu() {
    const groups = ["Conversation", "Look at", "Rate", "Page"];
    const shown = this.#app.canSteer() ? this.#all : this.#all.filter(([, name]) => name === "context");
    panel("Menu", groups.map((group) => {
      const items = shown.filter(([it]) => it === group);
      return items.length ? h("div", { class: "menu-part" }, h("h3", null, group), h("ul", { class: "choices" }, items.map(([, name, words, image, , what]) => h("li", null, h("button", { type: "button", "data-action": name, onclick: () => this.#run(() => what("")) }, icon(image), h("span", null, words), h("small", { "aria-hidden": "true" }, `/${name}`)))))) : null;
    }));
  }

  keys() { panel("Keys", keys()); }

  #notices() {
    if (!("Notification" in window)) return h("p", { class: "note" }, "This browser shows no notifications.");
    const words = { granted: "This browser shows a notification when a session needs an answer or has finished, and the page is out of sight.", denied: "Notifications are blocked for this page in the browser's settings." };
    if (!canAsk()) return h("p", { class: "note" }, words[Notification.permission]);
    const button = h("button", { type: "button", onclick: async () => { const is = await Notification.requestPermission(); box.replaceChildren(words[is] ?? "Nothing has changed."); } }, icon("bell"), "Notify me of questions and ends");
    const box = h("p", { class: "note" }, button);
    return box;
  }

  // ---- Rewind, redo, fork

  #rewound = "";

  async #confirmRewind(point) {
    const rewind = (files) => () => this.#run(async () => {
      const { text } = await this.#app.say({ rewind: { turns: point.turns, files, conversation: true } });
      this.#app.review.forgetReverts();
      closePanel();
      if (!this.#app.composer.text) this.#app.composer.text = this.#rewound = point.prompt;
      toast(text);
    });
    panel("Rewind", confirmation(`Back to before “${short(point.prompt, 120)}”. ${filesOf(point)} changed since. Redo undoes it.`, [["Conversation and files", rewind(true), "first"], ["Conversation only", rewind(false)], ["Cancel", closePanel, "plain"]]));
  }

  /** Rewinds to before a message, or goes on from there in a copy; `later` messages after it say the same. */
  rewindTo(words, later, isFork = false) {
    return this.#run(async () => {
      const { points: all } = await this.#app.say("points");
      const exact = all.filter((it) => it.prompt === words);
      const isCut = (prompt) => prompt.length > 1 && prompt.endsWith("…") && words.startsWith(prompt.slice(0, -1));
      const same = (exact.length ? exact : all.filter((it) => isCut(it.prompt))).sort((a, b) => a.turns - b.turns);
      const point = same[later];
      if (!point) return toast("This message did not begin a turn, so there is nothing to rewind to.");
      if (!isFork) return this.#confirmRewind(point);
      const { session } = (await this.#app.say("fork")).opened;
      await this.#app.ask(session, { rewind: { turns: point.turns, files: false, conversation: true } });
      this.#app.show(session);
      this.#app.composer.text = words;
      return toast("This is a copy from before the message. The original session is unchanged.");
    });
  }

  redo() {
    return this.#run(async () => {
      toast((await this.#app.say("redo")).text);
      this.#app.review.forgetReverts();
      // What rewind put there is said again now.
      if (this.#app.composer.text === this.#rewound) this.#app.composer.text = "";
      this.#rewound = "";
    });
  }

  fork() {
    return this.#run(async () => {
      this.#app.show((await this.#app.say("fork")).opened.session);
      toast("This is a copy. The original session is unchanged.");
    });
  }

  #rename(title) {
    return this.#run(async () => {
      await this.#app.say({ rename: { title } });
      closePanel();
      toast("Renamed.");
      this.#app.refresh();
    });
  }

  #renaming(title = this.#app.title(), rename = (it) => this.#rename(it)) {
    const field = h("input", { type: "text", "aria-label": "Title", value: title, maxlength: "200", autocomplete: "off", dir: "auto" });
    return h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) rename(field.value.trim()); } }, field, h("button", { type: "submit", class: "first" }, "Rename"));
  }

  // ---- A session in the list

  /** What can be done with a session of the list. */
  forSession({ id, folder, title, isLive }) {
    const { ask } = this.#app;
    const opened = async () => (isLive ? id : (await ask(null, { open: { folder, start: { stored: { id, fork: false } }, interactive: true, detach: "keep" } })).opened.session);
    const rename = (name) => this.#run(async () => {
      await ask(await opened(), { rename: { title: name } });
      closePanel();
      toast("Renamed.");
      this.#app.refresh();
    });
    const remove = () => this.#run(async () => {
      if (isLive) await ask(id, "close");
      for (let tries = 1; ; tries++) {
        try { await ask(null, { delete: { spec: { folder }, id } }); break; } catch (error) {
          if (!isLive || tries >= MAX_TRIES) throw error;
          await new Promise((done) => setTimeout(done, RETRY_MS));
        }
      }
      closePanel();
      toast("Deleted.");
      this.#app.deleted(id);
    });
    const choice = (image, words, onclick, kind = "") => h("li", null, h("button", { type: "button", class: kind, onclick }, icon(image), words));
    panel(short(title || "Session", 80), h("ul", { class: "choices" },
      choice("edit", "Rename", () => panel("Rename", this.#renaming(title, rename))),
      isLive ? null : choice("pin", pinned().includes(id) ? "Unpin" : "Pin to the top", () => { pin(id); closePanel(); this.#app.refresh(); }),
      choice("trash", "Delete", () => panel("Delete", confirmation(`Delete “${short(title || id, 120)}” for good? Files stay as they are.`, [["Delete", remove, "bad"], ["Cancel", closePanel, "plain"]])))));
  }
}
