// Questions that wait for a person: all of what would run, why it is asked, what it would change, and the same
// answers as at the terminal, on buttons that never leave the screen and under the same keys.

import { argumentList } from "./cards.js";
import { diff, wholeOf } from "./diff.js";
import { byId, clean, fill, h, ticked } from "./dom.js";
import { icon } from "./icons.js";
import { markdown } from "./md.js";
import { argumentsOf, inWords, reasonsOf, sentence } from "./words.js";

/** A question of an elf, without the name of the mode that asks. */
const withoutMode = (reason) => reason.replace(/: mode [a-z_]+: /, ": ");

/** Keys that come this soon after a question were meant for what was there before. */
const READY_MS = 700;

const TITLES = { __proto__: null, bash: "Run this command?", "fs.edit": "Edit this file?", "fs.write": "Write this file?", "fs.read": "Read this?", "elf.spawn": "Start these elfs?" };

const titleOf = ({ call }) => TITLES[call.name] ?? `Use ${clean(call.name.replace(".", ": "))}?`;

export class Questions {
  #box = byId("questions");
  #shown = new Map();
  #answer; #place; #since = 0; #last;

  /**
   * `answer(call, answer)` sends an answer; `place(rule, scope)` tells where a rule would be kept.
   */
  constructor(answer, place) {
    this.#answer = answer;
    this.#place = place;
    addEventListener("keydown", (event) => this.#key(event));
  }

  /** The question that is in sight. */
  get #current() { return [...this.#shown.values()].find((it) => !it.hidden); }

  /** Shows the questions of a turn, one at a time; gives those that are new. */
  show(questions, canAnswer) {
    const open = new Set();
    const news = [];
    for (const question of questions) {
      const id = question.call.id + "\n" + question.reason;
      open.add(id);
      if (this.#shown.has(id)) continue;
      const element = this.#card(question, canAnswer);
      this.#shown.set(id, element);
      this.#box.append(element);
      news.push({ question, element });
    }
    let hadFocus = false;
    for (const [id, element] of this.#shown) {
      if (open.has(id)) continue;
      hadFocus ||= element.contains(document.activeElement);
      element.remove();
      this.#shown.delete(id);
    }
    const all = [...this.#shown.values()];
    const current = this.#current ?? all[0];
    for (const it of all) it.hidden = it !== current;
    all.forEach((it, place) => this.#count(it, place, all.length));
    this.#box.hidden = all.length === 0;
    this.#see(current);
    if (hadFocus) (current?.querySelector("h2") ?? byId("say")).focus();
    return news;
  }

  /** Another question is in sight: what was pressed for the one before does not count for it. */
  #see(current) {
    if (current === this.#last) return;
    this.#last = current;
    this.#since = performance.now();
  }

  get #isReady() { return performance.now() - this.#since > READY_MS; }

  #count(element, place, many) {
    fill(element.querySelector(".which"), many > 1 && h("button", { type: "button", class: "plain", onclick: () => this.#next(element) }, `${place + 1} of ${many}, next`));
  }

  #next(element) {
    const all = [...this.#shown.values()];
    const next = all[(all.indexOf(element) + 1) % all.length];
    for (const it of all) it.hidden = it !== next;
    this.#see(next);
    next.querySelector("h2").focus();
  }

  /** The keys of the terminal, while nobody writes. */
  #key(event) {
    const card = this.#current;
    if (!card || event.repeat || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.target.matches?.("input, textarea, select")) return;
    const button = card.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (button && this.#isReady && !button.disabled) {
      event.preventDefault();
      button.click();
    } else if (event.key.length === 1 && !" ynarp".includes(event.key) && event.target.matches?.(".question h2")) {
      // What is written is meant for the message box.
      byId("say").focus();
    }
  }

  #card(question, canAnswer) {
    const { call, reason, preview, inquiry, during, notable, parts, dangers } = question;
    // What an elf asks says so itself, and shows all of the elf's call.
    const isOfElf = Boolean(during) && call.name === "elf.spawn";
    const { mode, list } = reasonsOf(withoutMode(reason), call, dangers);
    const isBad = !inquiry && (dangers?.length > 0 || notable?.length > 0);
    const title = inquiry ? "The model asks you a question" : isOfElf ? "An elf needs your approval" : titleOf(question);
    const head = h("header", null, icon(inquiry ? "ask" : isBad ? "alert" : inWords(call).icon), h("h2", { tabindex: "-1" }, title), h("span", { class: "which" }), mode && h("span", { class: "mode", title: "Permission mode" }, h("span", { class: "sr" }, "Permission mode: "), mode));
    const about = inquiry ? h("div", { class: "reason message", dir: "auto" }, markdown(reason)) : [
      isOfElf ? null : what(call, Boolean(preview)),
      named(notable),
      reasons(list),
      preview ? diff(preview, { whole: wholeOf(call) }) : null,
      parts?.length ? this.#parts(parts) : null,
    ];
    const status = h("p", { class: "note bad", role: "status" });
    const send = (answer) => {
      for (const it of card.querySelectorAll("button, input, select")) it.disabled = true;
      this.#answer(call.id, answer).catch((error) => {
        status.textContent = `${error.message}. ${error.remedy ?? ""}`;
        for (const it of card.querySelectorAll("button, input, select")) it.disabled = false;
      });
    };
    const choices = !canAnswer ? [h("p", { class: "note" }, "This link lets you watch; somebody else has to answer.")]
      : inquiry ? this.#words(inquiry, send) : this.#permission(question, send, isBad, status);
    const card = h("section", { class: isBad ? "question danger" : "question", "aria-label": title }, head, h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "What is asked" }, about), h("footer", null, choices, status));
    return card;
  }

  #words(inquiry, send) {
    const field = h("input", { type: "text", "aria-label": "Your answer", placeholder: "Your answer", autocomplete: "off", dir: "auto" });
    const say = (event) => {
      event.preventDefault();
      if (field.value.trim()) send({ text: { text: field.value.trim() } });
    };
    return [
      h("div", { class: "buttons" }, inquiry.choices.map((text, place) => h("button", { type: "button", class: place ? "" : "first", "data-key": String(place + 1), onclick: () => send({ text: { text } }) }, clean(text), h("kbd", { "aria-hidden": "true" }, place + 1)))),
      h("form", { class: "row", onsubmit: say }, field, h("button", { type: "submit" }, "Answer"), h("button", { type: "button", class: "plain", onclick: () => send({ deny: { reason: "" } }) }, "No answer")),
    ];
  }

  #permission({ always, parts }, send, isBad, status) {
    const extra = h("div", { class: "extra" });
    const reason = h("input", { type: "text", "aria-label": "Why not; the model is told", placeholder: "Why not? (the model is told)", autocomplete: "off", dir: "auto" });
    const deny = (event) => {
      event.preventDefault();
      send({ deny: { reason: reason.value.trim() } });
    };
    const forms = {
      r: h("form", { class: "row", onsubmit: deny }, reason, h("button", { type: "submit" }, "Deny")),
      a: always && this.#always(always, send),
    };
    const show = (name) => () => {
      const isOpen = forms[name].isConnected;
      fill(extra, isOpen ? null : forms[name]);
      if (!isOpen) forms[name].querySelector("input").focus();
    };
    const choice = (key, text, onclick, kind = "") => h("button", { type: "button", class: kind, "data-key": key, "aria-keyshortcuts": key, onclick }, text, h("kbd", { "aria-hidden": "true" }, key));
    const keep = () => {
      const names = [...this.#box.querySelectorAll(".question:not([hidden]) fieldset input:checked")].map((it) => it.dataset.name);
      if (names.length) return send({ part: { names } });
      status.textContent = "Nothing is ticked: tick what shall be kept, or deny all of it.";
    };
    const deniesFirst = isBad;
    const yes = choice("y", parts?.length ? "Keep all of it" : "Approve once", () => send("allow"), isBad ? "yes bad" : "yes first");
    const no = choice("n", "Deny", () => send({ deny: { reason: "" } }), "no");
    return [
      h("div", { class: "buttons" }, deniesFirst ? [no, yes] : [yes, no],
        parts?.length ? choice("p", "Keep what is ticked", keep) : null,
        always ? choice("a", "Always …", show("a")) : null,
        choice("r", "Deny, say why …", show("r"))),
      extra,
    ];
  }

  /** What a command has changed on trial, to be chosen from. */
  #parts(parts) {
    return h("fieldset", null, h("legend", null, "What it changed; tick what to keep"),
      parts.map((name) => h("label", null, h("input", { type: "checkbox", "data-name": name }), h("code", null, clean(name)))));
  }

  /** The rule of a lasting yes: it can be changed, and hold longer. */
  #always(always, send) {
    const rule = h("input", { type: "text", value: always, "aria-label": "The rule that always approves", spellcheck: "false", autocomplete: "off" });
    const where = h("p", { class: "note", role: "status" });
    const tell = async () => {
      if (scope.value === "session") return fill(where);
      fill(where, await this.#place(rule.value.trim(), scope.value).catch((error) => error.message));
    };
    const scope = h("select", { "aria-label": "How long the rule holds", onchange: tell },
      h("option", { value: "session" }, "in this session"), h("option", { value: "project" }, "in this project"), h("option", { value: "user" }, "everywhere"));
    const allow = (event) => {
      event.preventDefault();
      const text = rule.value.trim();
      if (!text) return;
      const plain = text === always && scope.value === "session";
      send(plain ? "always" : { rule: { rule: text, scope: scope.value } });
    };
    return h("form", { class: "row", onsubmit: allow }, rule, scope, h("button", { type: "submit" }, "Always approve"), where);
  }
}

/** What would be done, as it would be done. */
function what(call, hasPreview) {
  const command = call.arguments?.command;
  if (call.name === "bash" && typeof command === "string") {
    const rest = argumentsOf(call).filter(([name]) => name !== "command");
    return h("div", { class: "what" }, h("pre", { tabindex: "0", dir: "ltr" }, clean(command)), rest.map(([name, text]) => h("p", { class: "note" }, clean(name), ": ", h("code", null, clean(text)))));
  }
  // A diff names its file itself.
  return hasPreview && inWords(call).icon === "edit" ? null : h("div", { class: "what" }, argumentList(call, hasPreview));
}

function reasons(list) {
  return list.length ? h("ul", { class: "reasons", "aria-label": "Why it is asked" }, list.map(({ text, isBad }) => h("li", { class: isBad ? "bad" : "" }, isBad && icon("alert"), h("span", { dir: "auto" }, isBad && h("span", { class: "sr" }, "Warning: "), ticked(sentence(clean(text))))))) : null;
}

/** What must be seen by name before a yes, the most important first. */
function named(notable) {
  if (!notable?.length) return null;
  return h("ul", { class: "reasons", "aria-label": "Look at these first" },
    notable.map(({ name, what: it }) => h("li", { class: "bad" }, icon("alert"), h("span", null, h("code", null, clean(name)), ` ${clean(it)}`))));
}
