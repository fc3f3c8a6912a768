// What has happened, said to those who see and to those who listen.

import { byId, h, iconButton } from "./dom.js";

/** Toasts at once, and how long one stays. */
const MAX_TOASTS = 3;
const STAYS_MS = 4500;

/** Reads a text out. */
export function hear(text) {
  const heard = byId("heard");
  heard.textContent = "";
  setTimeout(() => (heard.textContent = text), 50);
}

/** Shows a text for a few seconds, and reads it out. */
export function toast(text) {
  if (!text) return;
  hear(text);
  const box = byId("toasts");
  const element = h("div", { class: "toast" }, text);
  box.append(element);
  while (box.childElementCount > MAX_TOASTS) box.firstElementChild.remove();
  setTimeout(() => element.remove(), STAYS_MS);
}

/** A button that copies what `text()` gives. */
export function copyButton(text, words = "Copy") {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      toast("Copied.");
    } catch {
      toast("The browser does not let the page copy. Select the text instead.");
    }
  };
  return iconButton("copy", { words, onclick: copy });
}
