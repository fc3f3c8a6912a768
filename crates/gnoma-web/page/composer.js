// The message box: commands behind `/`, files behind `@`, pictures and text files, what was written before, and a draft
// for each session that survives a reload.

import { byId, clean, count, fill, firstLine, h, iconButton, memory, short } from "./dom.js";
import { icon } from "./icons.js";
import { hear, toast } from "./toast.js";

/** Offers that are shown at once. */
const MAX_OFFERS = 8;
/** Drafts that are remembered; the oldest goes first. */
const MAX_DRAFTS = 50;
/** What goes with one message. */
const MAX_ATTACHED = 8;
const MAX_ATTACHED_CHARS = 6 << 20;
const MAX_TEXT_FILE_BYTES = 128 << 10;
/** Larger pictures are made smaller: models see no more of them. */
const MAX_PIXELS = 2000;
const MAX_PICTURE_BYTES = 1500 << 10;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A line that is meant as a command: a slash and a name. A path is none. */
export const COMMAND = /^\/([a-z][\w:-]*)(?:\s+([\s\S]*))?$/i;

export class Composer {
  #form = byId("composer"); #field = byId("say"); #box = byId("offers"); #list = byId("attached");
  #app; #session = null; #attached = []; #offers = []; #chosen = 0; #query = null; #files = null; #past = -1; #own = "";

  /**
   * `app` has: send(content), run(name, argument), commands(), files(), prompts(), isPrivate(), complain(error).
   */
  constructor(app) {
    this.#app = app;
    const field = this.#field;
    field.addEventListener("input", () => { this.#past = -1; this.#changed(); this.#complete(); });
    field.addEventListener("click", () => this.#complete());
    field.addEventListener("blur", () => setTimeout(() => document.activeElement !== field && this.#close(), 150));
    field.addEventListener("keydown", (event) => this.#key(event));
    this.#form.addEventListener("submit", (event) => { event.preventDefault(); this.#submit(); });
    field.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      this.#take(files);
    });
    byId("attach").addEventListener("click", () => byId("files").click());
    byId("files").addEventListener("change", () => { this.#take([...byId("files").files]); byId("files").value = ""; });
    const main = byId("main");
    main.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files") || this.#form.hidden) return;
      event.preventDefault();
      this.#form.classList.add("over");
    });
    main.addEventListener("dragleave", (event) => { if (!main.contains(event.relatedTarget)) this.#form.classList.remove("over"); });
    main.addEventListener("drop", (event) => {
      this.#form.classList.remove("over");
      if (this.#form.hidden || !event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.#take([...event.dataTransfer.files]);
    });
  }

  /** The session that is written to: its draft comes, the other one's stays where it was written. */
  show(session) {
    if (session === this.#session) return;
    // Pictures and files stay with their session as long as the page is open.
    if (this.#attached.length) this.#aside.set(this.#session, this.#attached);
    else this.#aside.delete(this.#session);
    this.#session = session;
    this.#attached = this.#aside.get(session) ?? [];
    this.#field.value = session ? this.#drafts.get(session) ?? memory.get("draft-" + session) ?? "" : "";
    this.#files = null;
    this.#past = -1;
    this.#close();
    this.#drawAttached();
    this.#grow();
  }

  /** Takes over the draft of a session that is no longer there, unless something else is written. */
  adopt(session) {
    const text = memory.get("draft-" + session);
    if (!text || this.#field.value) return;
    this.#keep(session, "");
    this.text = text;
  }

  /** Puts words before what is written. */
  prepend(text) {
    this.#field.value = this.#field.value ? `${text}\n${this.#field.value}` : text;
    this.#changed();
  }

  /** Puts words behind what is written, and goes there. */
  append(text) {
    this.#field.value = this.#field.value.trim() ? `${this.#field.value.trimEnd()}\n\n${text}` : text;
    this.#changed();
    this.focus();
  }

  get text() { return this.#field.value; }
  set text(text) { this.#field.value = text; this.#changed(); }

  focus() {
    this.#field.focus();
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length);
  }

  // ---- Drafts

  /** Drafts of sessions of which nothing may be stored. */
  #drafts = new Map();
  /** What is attached to drafts of sessions out of view. */
  #aside = new Map();

  #changed() {
    this.#grow();
    if (this.#session) this.#keep(this.#session, this.#field.value);
  }

  #keep(session, text) {
    if (this.#app.isPrivate()) {
      this.#drafts.set(session, text);
      return;
    }
    memory.set("draft-" + session, text);
    const others = memory.list("drafts").filter((it) => it !== session);
    const all = text ? [...others, session] : others;
    for (const old of all.splice(0, Math.max(0, all.length - MAX_DRAFTS))) memory.set("draft-" + old, null);
    memory.set("drafts", JSON.stringify(all));
  }

  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }

  // ---- Sending

  async #submit() {
    const text = this.#field.value;
    const attached = this.#attached;
    const command = COMMAND.exec(text.trimEnd());
    if (command && !attached.length) {
      if (await this.#app.run(command[1].toLowerCase(), (command[2] ?? "").trim())) {
        this.#field.value = "";
        this.#changed();
      }
      return;
    }
    const words = [text.trim() ? text : "", ...attached.filter((it) => it.text).map((it) => `\`${it.name}\`:\n${fenced(it.text)}`)].filter(Boolean).join("\n\n");
    const content = [...(words ? [{ text: { text: words } }] : []), ...attached.filter((it) => it.image).map((it) => ({ image: it.image }))];
    if (!content.length) return;
    const session = this.#session;
    this.#field.value = "";
    this.#attached = [];
    this.#drawAttached();
    this.#close();
    this.#grow();
    try {
      // The draft stays stored until the message has arrived.
      await this.#app.send(content);
      if (this.#session !== session || !this.#field.value) this.#keep(session, "");
    } catch (error) {
      if (this.#session === session) {
        this.prepend(text);
        this.#attached = [...attached, ...this.#attached];
        this.#drawAttached();
      } else if (attached.length) this.#aside.set(session, attached);
      this.#app.complain(error);
    }
  }

  // ---- Keys

  #key(event) {
    if (event.isComposing) return;
    const isOpen = !this.#box.hidden;
    if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.#choose((this.#chosen + step + this.#offers.length) % this.#offers.length);
    } else if (isOpen && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      event.preventDefault();
      this.#accept(this.#chosen, event.key === "Enter");
    } else if (isOpen && event.key === "Escape") {
      event.preventDefault();
      this.#close();
    } else if (event.key === "Enter" && !event.shiftKey && (event.ctrlKey || event.metaKey || !matchMedia("(pointer: coarse)").matches)) {
      event.preventDefault();
      this.#form.requestSubmit();
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !event.shiftKey && !event.altKey) this.#recall(event);
  }

  /** What was written before, with the arrows. */
  #recall(event) {
    const field = this.#field;
    const isBrowsing = this.#past >= 0;
    if (!isBrowsing && (event.key === "ArrowDown" || field.value)) return;
    const all = this.#app.prompts();
    const next = this.#past + (event.key === "ArrowUp" ? 1 : -1);
    if (next >= all.length) return;
    event.preventDefault();
    if (!isBrowsing) this.#own = field.value;
    this.#past = next;
    field.value = next < 0 ? this.#own : all[all.length - 1 - next];
    this.#changed();
  }

  // ---- Completion

  async #complete() {
    const at = this.#field.selectionStart;
    const before = this.#field.value.slice(0, at);
    const command = /^\/([\w:-]*)$/.exec(before);
    const file = /(?:^|\s)@([^\s@]{0,200})$/.exec(before);
    if (command) {
      this.#query = { from: 0, to: at, isCommand: true };
      const name = command[1].toLowerCase();
      const all = this.#app.commands();
      this.#offer([...all.filter((it) => it.name.toLowerCase().startsWith(name)), ...all.filter((it) => !it.name.toLowerCase().startsWith(name) && it.name.toLowerCase().includes(name))]
        .map((it) => ({ ...it, name: "/" + it.name, insert: `/${it.name} ` })));
    } else if (file) {
      const query = (this.#query = { from: at - file[1].length - 1, to: at, isCommand: false });
      this.#files ??= await this.#app.files().catch(() => []);
      if (this.#query !== query) return;
      this.#offer(rank(file[1], this.#files).map((path) => ({ name: path, about: "", insert: `@${path} ` })));
    } else this.#close();
  }

  #offer(all) {
    this.#offers = all.slice(0, MAX_OFFERS);
    if (!this.#offers.length) return this.#close();
    fill(this.#box, this.#offers.map((it, place) => h("div", { class: "offer", role: "option", id: `offer-${place}`, onmousedown: (event) => { event.preventDefault(); this.#accept(place, false); } },
      h("span", { class: "name" }, clean(it.name)), h("span", { class: "about" }, clean(short([it.hint, firstLine(it.about ?? "")].filter(Boolean).join(" · "), 120))))));
    if (this.#box.hidden) hear(count(this.#offers.length, "completion"));
    this.#box.hidden = false;
    this.#choose(0);
  }

  #choose(place) {
    this.#chosen = place;
    [...this.#box.children].forEach((it, at) => it.setAttribute("aria-selected", at === place ? "true" : "false"));
    this.#box.children[place]?.scrollIntoView({ block: "nearest" });
    this.#field.setAttribute("aria-activedescendant", `offer-${place}`);
  }

  #close() {
    this.#box.hidden = true;
    this.#query = null;
    this.#offers = [];
    this.#field.removeAttribute("aria-activedescendant");
  }

  #accept(place, isMeant) {
    const offer = this.#offers[place];
    const { from, to, isCommand } = this.#query;
    this.#field.setRangeText(offer.insert, from, to, "end");
    this.#close();
    this.#changed();
    this.#field.focus();
    // A command that takes nothing more is done at once.
    if (isCommand && isMeant && !offer.hint) this.#form.requestSubmit();
  }

  // ---- What goes with a message

  async #take(files) {
    for (const file of files) {
      if (this.#attached.length >= MAX_ATTACHED) { toast(`At most ${MAX_ATTACHED} go with one message.`); break; }
      try {
        const item = PICTURES.includes(file.type) ? await asPicture(file) : await asWords(file);
        const all = [...this.#attached, item].reduce((sum, it) => sum + (it.text ?? it.image.base64).length, 0);
        if (all > MAX_ATTACHED_CHARS) { toast(`${short(file.name, 60)} is too large for this message.`); continue; }
        this.#attached.push(item);
      } catch (error) {
        toast(`${short(clean(file.name), 60)}: ${error.message}`);
      }
    }
    this.#drawAttached();
    this.#field.focus();
  }

  #drawAttached() {
    this.#list.hidden = !this.#attached.length;
    fill(this.#list, this.#attached.map((it) => h("li", null, it.image ? h("img", { src: `data:${it.image.mime};base64,${it.image.base64}`, alt: "" }) : icon("file"), h("span", null, short(clean(it.name), 40)),
      iconButton("close", { name: `Remove ${short(clean(it.name), 40)}`, onclick: () => { this.#attached = this.#attached.filter((other) => other !== it); this.#drawAttached(); this.#field.focus(); } }))));
  }
}

/** Paths that a query fits, the best first: in the name, in the path, letter by letter. */
export function rank(query, paths) {
  const sought = query.toLowerCase();
  const score = (path) => {
    const text = path.toLowerCase();
    const name = text.replace(/\/$/, "").split("/").pop();
    if (name.startsWith(sought)) return 0;
    if (name.includes(sought)) return 1;
    if (text.includes(sought)) return 2;
    let at = 0;
    for (const letter of text) if (letter === sought[at]) at++;
    return at === sought.length ? 3 : 4;
  };
  return paths.map((path) => [score(path), path]).filter(([points]) => points < 4).sort(([a, x], [b, y]) => a - b || x.length - y.length).map(([, path]) => path);
}

const encode = (blob) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(String(reader.result).split(",", 2)[1] ?? "");
  reader.onerror = () => failed(new Error("it cannot be read."));
  reader.readAsDataURL(blob);
});

/** A picture, made smaller where it is larger than models see. */
async function asPicture(file) {
  const bitmap = await createImageBitmap(file).catch(() => { throw new Error("this is no picture that the browser can read."); });
  const scale = Math.min(1, MAX_PIXELS / Math.max(bitmap.width, bitmap.height));
  let blob = file;
  if (scale < 1 || file.size > MAX_PICTURE_BYTES) {
    const canvas = h("canvas", { width: Math.round(bitmap.width * scale), height: Math.round(bitmap.height * scale) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
    if (!blob) throw new Error("it cannot be made smaller.");
  }
  bitmap.close();
  return { name: file.name || "picture", image: { mime: blob.type, base64: await encode(blob) } };
}

/** A text in a fence that is longer than any that it has. @param {string} text */
export function fenced(text) {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, it) => Math.max(most, it.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

async function asWords(file) {
  if (file.size > MAX_TEXT_FILE_BYTES) throw new Error(`only text files up to ${MAX_TEXT_FILE_BYTES >> 10} KB can be attached; name it with @ instead.`);
  const text = await file.text();
  if (text.includes("\0") || text.includes("\ufffd")) throw new Error("it is no text; only pictures and text files can be attached.");
  if (!text.trim()) throw new Error("it is empty.");
  return { name: file.name || "file", text: text.trimEnd() };
}
