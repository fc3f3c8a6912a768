// The way to the server: one exchange of the link's token, requests that get one reply each, and a stream of
// events that reconnects by itself and goes on where it was.

const API = "/api/v1/";
/** Events that are handled before the browser may draw. */
const SLICE_MS = 8;
const MIN_WAIT_MS = 500;
const MAX_WAIT_MS = 8000;
/** A stream that was silent for so long while the page was out of sight is opened again when it is back. */
const SLEEP_MS = 25000;
/** A stream that has shown no sign of life for so long is dead: the server gives one every 20 seconds. */
const SILENCE_MS = 50000;

/** Why a request had no effect: what happened, and what to do about it. */
export class Refused extends Error {
  constructor(error, status = 0) {
    super(error.cause ?? "the server does not answer");
    this.kind = error.kind ?? "closed";
    this.remedy = error.remedy ?? "";
    this.status = status;
  }
}

const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map((it) => it.toString(16).padStart(2, "0")).join("");
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
/** Lets the browser draw and hear the person before going on. */
const breathe = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); done(); };
  port2.postMessage(0);
});

let key = "";
let client = random();
let nextId = 1;

const headers = (more) => ({ "Gnoma-Key": key, ...more });

async function errorOf(response) {
  const text = await response.text().catch(() => "");
  try { return new Refused(JSON.parse(text), response.status); } catch { return new Refused({}, response.status); }
}

/** Lets the page in: by the token of the link, else by what an earlier one was exchanged for. */
export async function enter() {
  const token = /^#t=([0-9a-f]{64})$/.exec(location.hash)?.[1];
  if (token) {
    // It stays neither in the address nor in the history.
    history.replaceState(null, "", location.pathname);
    const response = await fetch(API + "exchange", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
    });
    if (!response.ok) throw await errorOf(response);
    const hello = await response.json();
    key = hello.key;
    localStorage.setItem("gnoma-key", key);
    return hello;
  }
  key = localStorage.getItem("gnoma-key") ?? "";
  return read("hello");
}

/** Reads what is no request of a session, at its address. @param {string} path */
export async function read(path) {
  const response = await fetch(API + path, { headers: headers() });
  if (!response.ok) throw await errorOf(response);
  return response.json();
}

/** The id of a request that may have to be sent again. */
export const newId = () => nextId++;

/**
 * Asks something. A request that got lost is sent again under its id, and has one effect. Fails with the kind
 * `unreachable` where no answer comes for some seconds.
 * @param {string | null} session @param {string | object} request @param {number} [id]
 */
export async function ask(session, request, id = newId()) {
  const message = JSON.stringify({ id, ...(session ? { session } : {}), request });
  for (let attempt = 0; ; attempt++) {
    let response;
    try {
      response = await fetch(API + "messages", {
        method: "POST", body: message, headers: headers({ "Content-Type": "application/json", "Gnoma-Client": client }),
      });
    } catch {
      if (attempt >= 4) throw new Refused({ kind: "unreachable", cause: "the server cannot be reached", remedy: "Do it again once the page is connected." });
      await wait(MIN_WAIT_MS * 2 ** attempt);
      continue;
    }
    if (!response.ok) throw await errorOf(response);
    const { reply } = await response.json();
    if (reply.result.Err) throw new Refused(reply.result.Err);
    return reply.result.Ok;
  }
}

/**
 * What happens, as it happens. `wanted()` names what to attach to, with positions, each time anew.
 * `told(kind, data)` gets events, `state(connected)` whether there is a connection.
 */
export class Stream {
  #abort = null;
  #over = false;
  #heard = 0;
  #wakeUp = () => {};
  #wanted; #told; #state;
  constructor(wanted, told, state) {
    this.#wanted = wanted;
    this.#told = told;
    this.#state = state;
    this.#reconnectLoop();
  }
  /** Connects again, for something else. */
  again() { this.#abort?.abort("again"); }
  /** The page is in sight again: it does not wait for what a sleeping machine has missed. */
  wake() {
    if (performance.now() - this.#heard > SLEEP_MS) this.again();
    this.#wakeUp();
  }
  close() { this.#over = true; this.#abort?.abort("closed"); }

  async #reconnectLoop() {
    let pause = MIN_WAIT_MS;
    while (!this.#over) {
      const abort = (this.#abort = new AbortController());
      try {
        if (await this.#read(abort)) pause = MIN_WAIT_MS;
      } catch (error) {
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
          this.#told("denied", error);
          return;
        }
      }
      if (abort.signal.reason === "again") continue;
      this.#state(false);
      await Promise.race([wait(pause), new Promise((done) => { this.#wakeUp = done; addEventListener("online", done, { once: true }); })]);
      pause = Math.min(pause * 2, MAX_WAIT_MS);
    }
  }

  async #read(abort) {
    // Ids of sessions need no escapes.
    const places = this.#wanted().map(({ session, epoch, seq }) => (epoch === undefined ? session : `${session}@${epoch}.${seq}`));
    const query = ["watch=1", ...places.map((place) => `attach=${place}`)].join("&");
    const response = await fetch(`${API}events?${query}`, { headers: headers(), signal: abort.signal });
    if (!response.ok) throw await errorOf(response);
    this.#state(true);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let since = performance.now();
    for (;;) {
      const silence = setTimeout(() => abort.abort("silent"), SILENCE_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return true;
      this.#heard = performance.now();
      rest += value;
      let start = 0;
      for (let end; (end = rest.indexOf("\n\n", start)) >= 0; start = end + 2) {
        this.#tell(rest.slice(start, end));
        if (performance.now() - since > SLICE_MS) {
          await breathe();
          since = performance.now();
          if (abort.signal.aborted) return true;
        }
      }
      rest = rest.slice(start);
    }
  }

  #tell(text) {
    let kind = "";
    let data = "";
    for (const line of text.split("\n")) {
      if (line.startsWith("event: ")) kind = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (kind && data) this.#told(kind, JSON.parse(data));
  }
}
