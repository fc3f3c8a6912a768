// What draws a person back: the title, the icon, a badge, and notifications of any session that asks or ends.

import { byId, clean, short } from "./dom.js";
import { titleOf } from "./sessions.js";
import { stateOf } from "./words.js";

/** What the page said last of each session. */
const states = new Map();
/** Sessions that have ended a turn since they were looked at. */
export const news = new Set();

let registration = null;

/** The worker that shows notifications and keeps the page's own files; a browser without one goes on without it. */
export async function register(opened) {
  if (!("serviceWorker" in navigator)) return;
  try {
    // Trusted types let this one address become a script, and no other.
    const policy = globalThis.trustedTypes?.createPolicy("shell", { createScriptURL: () => "/sw.js" });
    registration = await navigator.serviceWorker.register(policy ? policy.createScriptURL("") : "/sw.js");
    navigator.serviceWorker.addEventListener("message", ({ data }) => { if (/^[\w-]+$/.test(data?.session ?? "")) opened(data.session); });
  } catch { /* in a private window there is none */ }
}

/** Whether the browser can still be asked for notifications. */
export const canAsk = () => "Notification" in window && Notification.permission === "default";

async function notify(title, body, session) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const options = { body, tag: `gnoma-${session}`, icon: "/icon.svg", data: { session } };
  try {
    if (registration) await registration.showNotification(title, options);
    else new Notification(title, options);
  } catch { /* phones allow it to workers alone */ }
}

/** Looks at all sessions: who asks, who has ended. `current` is the one in view. */
export function look(live, current) {
  const asking = live.filter((it) => it.status.questions > 0);
  for (const session of live) {
    const { status } = session;
    const id = status.session;
    const before = states.get(id);
    const state = stateOf(status);
    states.set(id, { state, questions: status.questions });
    if (!before) continue;
    const title = short(clean(titleOf(session) || "New session"), 80);
    if (status.questions > before.questions) notify("gnoma needs an answer", title, id);
    else if (before.state === "works" && state === "idle" && !session.parent) {
      if (id !== current || document.hidden) news.add(id);
      notify("gnoma has finished", title, id);
    }
  }
  const known = new Set(live.map((it) => it.status.session));
  for (const id of states.keys()) if (!known.has(id)) { states.delete(id); news.delete(id); }
  if (!document.hidden) news.delete(current);
  const others = asking.filter((it) => it.status.session !== current);
  const count = asking.length;
  const icon = byId("favicon");
  const address = count ? "/icon-asks.svg" : "/icon.svg";
  if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
  if (navigator.setAppBadge) (count ? navigator.setAppBadge(count) : navigator.clearAppBadge()).catch(() => {});
  const side = byId("open-side");
  side.toggleAttribute("data-news", others.length > 0);
  side.setAttribute("aria-label", others.length ? `Sessions, ${others.length} need an answer` : "Sessions");
  return count;
}
