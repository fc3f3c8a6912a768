// What has changed, beside the conversation: the files, their lines, what was looked at, and comments on lines that go
// into the message box.

import { fileElement, parse, sums, tally } from "./diff.js";
import { baseName, byId, clean, count, fill, h, iconButton, memory, short } from "./dom.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";

/** Windows from which on two columns are the first choice. */
const WIDE = 1700;
/** Windows from which on it stands beside the conversation. */
const BESIDE = 1100;

const SINCE = [["turn", "Last turn that changed files"], ["start", "Start of the session"], ["commit", "Last commit"]];

export class Review {
  #box = byId("review"); #button = byId("open-review");
  #app; #session = null; #since = "turn"; #seen = new Set(); #text = null; #about = ""; #body = null; #undo = 0; #isEntry = false;

  /** `app` has: changes(since), revert(since, path, hunk), redo(), comment(text), canSteer(), complain(error). */
  constructor(app) {
    this.#app = app;
    this.#button.append(icon("diff"), h("span", { class: "label" }, "Changes"));
    this.#button.setAttribute("aria-label", "Changes");
    this.#button.addEventListener("click", () => (this.isOpen ? this.close() : this.open()));
    // On a phone both are tabs.
    byId("tab-talk").addEventListener("click", () => { if (this.isOpen) this.close(); });
    byId("tab-review").addEventListener("click", () => { if (!this.isOpen) this.open(); });
    this.#mark();
    this.#box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      this.close();
    });
  }

  get isOpen() { return !this.#box.hidden; }

  #mark() {
    this.#button.setAttribute("aria-expanded", String(this.isOpen));
    byId("tab-talk").setAttribute("aria-pressed", String(!this.isOpen));
    byId("tab-review").setAttribute("aria-pressed", String(this.isOpen));
  }

  /** Another session is in view. */
  show(session) {
    if (session === this.#session) return;
    this.#session = session;
    this.#seen.clear();
    this.#text = null;
    this.#undo = 0;
    if (this.isOpen) this.close(false, true);
  }

  /** `isBack`: the browser has gone back already. */
  close(isFocused = true, isBack = false) {
    this.#box.hidden = true;
    this.#mark();
    if (this.#isEntry && !isBack) history.back();
    this.#isEntry = false;
    if (isFocused) (this.#button.offsetParent ? this.#button : byId("tab-talk")).focus();
  }

  async open() {
    // Where it covers the page, Back closes it.
    if (!this.isOpen && innerWidth < BESIDE) {
      history.pushState(null, "");
      this.#isEntry = true;
    }
    this.#box.hidden = false;
    this.#mark();
    this.#frame();
    byId("review-title").focus();
    await this.refresh();
  }

  get #isSplit() { return (memory.get("diff") ?? (innerWidth >= WIDE ? "split" : "one")) === "split" && innerWidth >= BESIDE; }

  #frame() {
    const since = h("select", { "aria-label": "Changes since", onchange: () => { this.#since = since.value; this.refresh(); } }, SINCE.map(([value, text]) => h("option", { value, selected: value === this.#since }, text)));
    const split = iconButton("split", { name: "Two columns", "aria-pressed": String(this.#isSplit), onclick: () => { memory.set("diff", this.#isSplit ? "one" : "split"); split.setAttribute("aria-pressed", String(this.#isSplit)); this.#draw(); } });
    this.#body = h("div", { class: "review-body", tabindex: "0", role: "region", "aria-label": "Changed files and lines" });
    fill(this.#box, h("div", { class: "review-head" }, h("h2", { id: "review-title", tabindex: "-1" }, "Changes"), since, h("span", { id: "review-undo" }), innerWidth >= BESIDE && split, iconButton("close", { name: "Close the changes", onclick: () => this.close() })), this.#body);
  }

  /** After a turn or a rewind, redo no longer brings back a revert. */
  forgetReverts() { this.#undo = 0; if (this.isOpen) this.#drawUndo(); }

  /** Reads what has changed, and draws it if that is news. */
  async refresh() {
    if (!this.isOpen) return;
    const session = this.#session;
    if (this.#text === null) fill(this.#body, h("p", { class: "note" }, "One moment …"));
    try {
      const text = await this.#app.changes(this.#since);
      if (session !== this.#session || !this.isOpen) return;
      const start = /^(?:diff --git |--- |Binary )/m.exec(text)?.index ?? text.length;
      this.#about = clean(text.slice(0, start)).trim();
      this.#text = text.slice(start);
      this.#draw();
    } catch (error) {
      if (session === this.#session) fill(this.#body, h("p", { class: "note bad", role: "alert" }, `${error.message}. ${error.remedy ?? ""}`));
    }
  }

  /** Whether a file can be reverted: the server knows it by its name, which is not shown whole where it has control characters. */
  #canRevert(file) { return this.#app.canSteer() && file.name && !file.name.includes("\ufffd"); }

  /** Reverts a file, or one hunk of it; the state before it is a checkpoint, so that it can be undone. */
  async #revert(button, file, hunk) {
    button.disabled = true;
    try {
      const { text } = await this.#app.revert(this.#since, file.name, hunk?.text);
      this.#undo++;
      toast(text.split("\n", 1)[0]);
      await this.refresh();
      this.#body.focus();
    } catch (error) {
      button.disabled = false;
      this.#app.complain(error);
    }
  }

  #drawUndo() {
    const undo = async () => {
      try {
        await this.#app.redo();
        this.#undo--;
        toast("The revert is undone.");
        await this.refresh();
        this.#body.focus();
      } catch (error) { this.#app.complain(error); }
    };
    fill(byId("review-undo"), this.#undo > 0 && iconButton("rewind", { words: "Undo revert", onclick: undo }));
  }

  #draw() {
    const top = this.#body.scrollTop;
    this.#drawUndo();
    const files = parse(this.#text ?? "");
    const [added, removed] = sums(files);
    fill(byId("review-title"), files.length ? [`${count(files.length, "file")} `, tally(added, removed)] : "Changes");
    if (!files.length) return fill(this.#body, h("p", { class: "note" }, this.#about ? `No changes. ${this.#about}` : "No files were changed."));
    const isSplit = this.#isSplit;
    const many = files.length > 12;
    const elements = files.map((file) => {
      if (this.#canRevert(file)) {
        // From the last one on, so that the places of those before stay.
        for (const [place, hunk] of [...file.hunks.entries()].reverse()) {
          const make = () => {
            const button = iconButton("rewind", { words: "Revert", "aria-label": `Revert change ${place + 1} of ${file.hunks.length} in ${short(file.path, 120)}`, onclick: () => this.#revert(button, file, hunk) });
            return h("div", { class: "hunk-tools" }, button);
          };
          file.rows.splice(hunk.row, 0, { kind: "tool", make });
        }
      }
      const lines = fileElement(file, { isSplit, isOpen: !many && !this.#seen.has(keyOf(file)) });
      if (this.#app.canSteer()) {
        lines.classList.add("commentable");
        lines.addEventListener("click", (event) => {
          const line = event.target.closest?.(".number") && event.target.closest(".line[data-line]");
          if (line) this.#comment(file, +line.dataset.line, line, { isGone: line.dataset.gone !== undefined });
        });
      }
      return lines;
    });
    fill(this.#body, this.#about && h("p", { class: "note" }, this.#about.replace(/:$/, "")), this.#tree(files, elements), h("div", { class: isSplit ? "diff split" : "diff" }, elements));
    this.#body.scrollTop = top;
  }

  /** The files by folder, with a tick for those that were looked at. */
  #tree(files, elements) {
    let folder = null;
    return h("ul", { class: "files-tree", "aria-label": "Changed files" }, files.map((file, place) => {
      const at = file.path.includes("/") ? file.path.slice(0, file.path.lastIndexOf("/")) : "";
      const heading = at !== folder && at ? h("li", { class: "folder" }, at) : null;
      folder = at;
      const key = keyOf(file);
      const name = short(file.path || "Lines", 120);
      const tick = h("input", { type: "checkbox", "aria-label": `Looked at ${name}`, onchange: () => {
        if (tick.checked) this.#seen.add(key);
        else this.#seen.delete(key);
        item.classList.toggle("done", tick.checked);
        elements[place].open = !tick.checked;
      } });
      tick.checked = this.#seen.has(key);
      const go = () => { elements[place].open = true; elements[place].scrollIntoView({ block: "start" }); elements[place].querySelector("summary")?.focus({ preventScroll: true }); };
      const item = h("li", { class: tick.checked ? "done" : "" }, tick, h("button", { type: "button", class: "plain", onclick: go }, h("span", { class: "path" }, baseName(name)), h("span", { class: "gap" }), h("span", null, tally(file.added, file.removed))),
        this.#app.canSteer() && iconButton("note", { name: `Comment on a line of ${name}`, onclick: () => { elements[place].open = true; this.#comment(file, file.rows.find((it) => it.kind === "added")?.after ?? 1, elements[place].querySelector(".diff-lines") ?? elements[place].lastElementChild, { isFirst: true }); } }),
        this.#canRevert(file) && this.#revertButton(file, name));
      return [heading, item];
    }));
  }

  #revertButton(file, name) {
    const button = iconButton("rewind", { name: `Revert ${name}`, onclick: () => this.#revert(button, file) });
    return button;
  }

  /** A comment on a line, or on one that is gone; it becomes a part of the next message. */
  #comment(file, line, element, { isFirst = false, isGone = false } = {}) {
    this.#body.querySelector(".comment")?.remove();
    const words = h("textarea", { rows: "2", "aria-label": "Comment", placeholder: "What about this line? It goes into your message.", dir: "auto" });
    const number = h("input", { type: "number", min: "1", value: String(line), "aria-label": "Line" });
    const add = (event) => {
      event.preventDefault();
      if (!words.value.trim()) return words.focus();
      const at = +number.value || line;
      const code = file.rows.find((it) => (isGone ? it.kind === "removed" && it.before === at : it.after === at))?.text;
      form.remove();
      this.#app.comment(`\`${file.path}:${at}\`${isGone ? ", a removed line" : ""}${code === undefined ? "" : `\n> ${short(code.trim(), 200)}\n`}\n${words.value.trim()}`);
      toast("The comment is in your message.");
    };
    const form = h("form", { class: "comment", onsubmit: add, onkeydown: (event) => { if (event.key === "Escape") { event.preventDefault(); form.remove(); } } },
      words, h("div", { class: "row" }, h("label", { class: "note" }, "Line ", number), h("span", { class: "gap" }), h("button", { type: "button", class: "plain", onclick: () => form.remove() }, "Cancel"), h("button", { type: "submit", class: "first" }, "Add to message")));
    if (isFirst) element.before(form);
    else (element.closest(".pair") ?? element).after(form);
    words.focus();
  }
}

const keyOf = (file) => `${file.path}\n${file.added}\n${file.removed}`;
