// Questions that wait for a person: all of what would run, why it is asked, what it would change, and the same
// answers as at the terminal.

import { argumentList } from "./cards.js";
import { diff } from "./diff.js";
import { byId, clean, fill, h } from "./dom.js";
import { markdown } from "./md.js";

export class Questions {
  #box = byId("questions");
  #shown = new Map();
  #answer; #place;

  /**
   * `answer(call, answer)` sends an answer; `place(rule, scope)` tells where a rule would be kept.
   */
  constructor(answer, place) {
    this.#answer = answer;
    this.#place = place;
  }

  /** Shows the questions of a turn; gives those that are new. */
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
    this.#box.hidden = this.#shown.size === 0;
    if (hadFocus) (this.#shown.values().next().value?.querySelector("h2") ?? byId("say")).focus();
    return news;
  }

  #card(question, canAnswer) {
    const { call, reason, preview, inquiry, during, notable } = question;
    // What an elf asks says so itself, and shows all of the elf's call.
    const isOfElf = Boolean(during) && call.name === "elf.spawn";
    const title = inquiry ? "The model asks you a question" : isOfElf ? clean(reason) : `${clean(call.name)} needs your approval`;
    const heading = h("h2", { tabindex: "-1" }, title);
    const about = inquiry ? h("div", { class: "reason" }, markdown(reason))
      : [isOfElf ? null : [h("div", { class: "what" }, argumentList(call, Boolean(preview))), h("p", { class: "reason" }, clean(reason))], named(notable), preview ? diff(preview) : null];
    const status = h("p", { class: "note", role: "status" });
    const send = (answer) => {
      for (const it of card.querySelectorAll("button, input, select")) it.disabled = true;
      this.#answer(call.id, answer).catch((error) => {
        status.textContent = `${error.message}. ${error.remedy ?? ""}`;
        for (const it of card.querySelectorAll("button, input, select")) it.disabled = false;
      });
    };
    const choices = !canAnswer ? [h("p", { class: "note" }, "This link lets you watch; somebody else has to answer.")]
      : inquiry ? this.#words(inquiry, send) : this.#permission(question, send);
    const card = h("section", { class: "question", "aria-label": title }, heading, about, choices, status);
    return card;
  }

  #words(inquiry, send) {
    const field = h("input", { type: "text", "aria-label": "Your answer", autocomplete: "off" });
    const say = (event) => {
      event.preventDefault();
      if (field.value.trim()) send({ text: { text: field.value.trim() } });
    };
    return [
      h("div", { class: "buttons" }, inquiry.choices.map((text, place) => h("button", { type: "button", class: place ? "" : "first", onclick: () => send({ text: { text } }) }, clean(text)))),
      h("form", { class: "row", onsubmit: say }, field, h("button", { type: "submit" }, "Answer")),
      h("button", { type: "button", class: "quiet", onclick: () => send({ deny: { reason: "" } }) }, "No answer"),
    ];
  }

  #permission({ always, parts }, send) {
    const reason = h("input", { type: "text", "aria-label": "Why not; the model is told", placeholder: "Why not? (the model is told)", autocomplete: "off" });
    const deny = (event) => {
      event.preventDefault();
      send({ deny: { reason: reason.value.trim() } });
    };
    return [
      parts?.length ? this.#parts(parts, send) : null,
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "first", onclick: () => send("allow") }, parts?.length ? "Keep all of it" : "Approve once"),
        h("button", { type: "button", onclick: () => send({ deny: { reason: "" } }) }, "Deny")),
      always ? this.#always(always, send) : null,
      h("form", { class: "row", onsubmit: deny }, reason, h("button", { type: "submit" }, "Deny, and say why")),
    ];
  }

  /** What a command has changed on trial, to be chosen from. */
  #parts(parts, send) {
    const boxes = parts.map((name) => [name, h("input", { type: "checkbox" })]);
    const keep = () => {
      const names = boxes.filter(([, box]) => box.checked).map(([name]) => name);
      if (names.length) send({ part: { names } });
    };
    return h("fieldset", null, h("legend", null, "Keep a part of it"),
      boxes.map(([name, box]) => h("label", null, box, h("code", null, clean(name)))),
      h("button", { type: "button", onclick: keep }, "Keep what is ticked"));
  }

  /** The rule of a lasting yes: it can be changed, and hold longer. */
  #always(always, send) {
    const rule = h("input", { type: "text", value: always, "aria-label": "The rule", spellcheck: "false", autocomplete: "off" });
    const where = h("span", { class: "note", role: "status" });
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
    return h("details", { class: "always" }, h("summary", null, "Always approve ", h("code", null, clean(always))),
      h("form", { class: "row", onsubmit: allow }, rule, scope, h("button", { type: "submit" }, "Always approve")), where);
  }
}

/** What must be seen by name before a yes, the most important first. */
function named(notable) {
  if (!notable?.length) return null;
  return h("ul", { class: "notable", "aria-label": "Look at these first" },
    notable.map(({ name, what }) => h("li", null, h("code", null, clean(name)), ` ${clean(what)}`)));
}
