// The page's own files while the server is away, and notifications where a page alone cannot show them.
// Only the files named here are cached: no answer of the API, and so nothing of a conversation.

const SHELL = "gnoma-{{build}}";
const FILES = /^\/(?:[a-z-]+\.(?:js|css|svg|webmanifest))?$/;

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("gnoma-") && name !== SHELL) await caches.delete(name);
  // The browser asks for the page while it wakes the worker.
  await registration.navigationPreload?.enable();
  await clients.claim();
})()));

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin || url.search || !FILES.test(url.pathname)) return;
  event.respondWith((async () => {
    try {
      const answer = (await event.preloadResponse) ?? (await fetch(event.request));
      if (answer.ok) {
        const copy = answer.clone();
        event.waitUntil(caches.open(SHELL).then((cache) => cache.put(url.pathname, copy)));
      }
      return answer;
    } catch (error) {
      const known = await caches.match(url.pathname);
      if (known) return known;
      throw error;
    }
  })());
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const pages = await clients.matchAll({ type: "window" });
    const page = pages.find((it) => it.visibilityState === "visible") ?? pages[0];
    const { session } = event.notification.data ?? {};
    if (!page) return clients.openWindow(session ? `/#/${session}` : "/");
    page.postMessage({ session });
    return page.focus();
  })());
});
