// The state of a session as the fold of its events: the same as `SessionView::apply` of the protocol, and a
// test holds the two against each other. Nothing here knows of a document.

const MAX_ANSWER_BYTES = 256 << 10;
const MAX_THINKING_BYTES = 64 << 10;
const MAX_ARGUMENT_BYTES = 64 << 10;
const MAX_OUTPUT_BYTES = 8 << 10;
const MAX_CALLS = 256;
const MAX_QUEUED = 64;
const MAX_EVENTS = 64;
const MAX_RECENT_BYTES = 64 << 10;
/** What an event takes beside its texts. */
const REST = 128;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of a text in UTF-8. @param {string} text */
export function bytesOf(text) {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}

/** The end of a text that grows, and how many bytes before it were let go. */
export class Tail {
  #bytes;
  constructor({ text = "", skipped = 0 } = {}) {
    this.text = text;
    this.skipped = skipped;
    this.#bytes = bytesOf(text);
  }
  /** @param {string} piece @param {number} limit */
  push(piece, limit) {
    this.text += piece;
    this.#bytes += bytesOf(piece);
    if (this.#bytes <= limit * 2) return;
    const all = encoder.encode(this.text);
    let cut = all.length - limit;
    while (cut < all.length && (all[cut] & 0xc0) === 0x80) cut++;
    this.text = decoder.decode(all.subarray(cut));
    this.skipped += cut;
    this.#bytes = all.length - cut;
  }
}

const noUsage = () => ({ input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 });

/** Tokens of a call: what it occupies of the window. */
export const total = (usage) => usage.input + usage.cache_read + usage.cache_write + usage.output;

function add(usage, other) {
  for (const name in usage) usage[name] += other[name] ?? 0;
}

function subtract(usage, other) {
  for (const name in usage) usage[name] = Math.max(0, usage[name] - (other[name] ?? 0));
}

/** The name of an event, a request or a reply, and its content. */
export function named(value) {
  if (typeof value === "string") return [value, undefined];
  for (const name in value) return [name, value[name]];
  return ["unknown", undefined];
}

/** A view as it came, with its texts made to grow. */
export function viewOf(snapshot) {
  const turn = snapshot.turn;
  if (turn) {
    turn.text = new Tail(turn.text);
    turn.thinking = new Tail(turn.thinking);
    for (const draft of turn.drafts) draft.arguments = new Tail(draft.arguments);
    for (const running of turn.calls) running.output = new Tail(running.output);
  }
  return snapshot;
}

/** The view of a session of which nothing has happened yet. */
export function emptyView(session, epoch, parent = null) {
  return {
    session, epoch, parent, seq: 0, at_ms: 0, folder: "", tools: [], mode: "auto", thinking: null, plan: [], state: "idle",
    info: {
      version: "", folder: "", branch: null, profile: null, incognito: false, is_kept: false, model: null,
      window: null, last_call: noUsage(), before: noUsage(), theme: "", vim: false, found: null, commands: [],
    },
    models: [], messages: 0, arm: null, last_call: noUsage(),
    context: { tokens: 0, window: null, fullness: "ok" }, usage: noUsage(), micro_usd: 0, is_cost_partial: false, turn: null, recent: [],
  };
}

function emptyTurn(at) {
  return {
    started_ms: at, round: 0, why: "", text: new Tail(), thinking: new Tail(), drafts: [], calls: [],
    questions: [], queue: [], usage: noUsage(),
  };
}

/** Other words for where a step of a plan stands. */
const STATUSES = { __proto__: null, in_progress: "active", completed: "done" };

/** The questions that wait for a person: of the turn, and of elfs that go on without one. */
export const questionsOf = (view) => [...(view?.turn?.questions ?? []), ...(view?.asked ?? [])];

/** Takes in the next envelope; says whether it was news. */
export function apply(view, envelope) {
  if (envelope.epoch !== view.epoch || envelope.seq <= view.seq) return false;
  view.seq = envelope.seq;
  view.at_ms = envelope.at_ms;
  const [kind, event] = named(envelope.event);
  applyEvent(view, kind, event, envelope.at_ms);
  remember(view.recent, kind, event, envelope);
  return true;
}

function applyEvent(view, kind, event, at) {
  switch (kind) {
    case "started":
      view.folder = event.cwd;
      view.tools = event.tools;
      view.mode = event.mode;
      view.messages = event.messages ?? 0;
      break;
    case "info": view.info = event; break;
    case "models": view.models = event.models; break;
    case "state":
      view.state = event;
      if (event === "active") {
        view.turn = emptyTurn(at);
        view.turn.questions = view.asked ?? [];
        view.asked = undefined;
      } else if (event !== "cancelling") {
        view.turn = null;
        view.asked = undefined;
      }
      break;
    case "mode_changed": view.mode = event.mode; break;
    case "thinking_changed": view.thinking = event.thinking ?? null; break;
    case "plan_changed": view.plan = event.steps.map((step) => ({ ...step, status: STATUSES[step.status] ?? step.status ?? "pending" })); break;
    case "appended": view.messages += 1; break;
    case "round_started": view.arm = event.arm; break;
    case "usage":
      view.last_call = { ...event.round };
      add(view.usage, event.round);
      break;
    case "turn_ended":
      add(view.usage, event.usage);
      subtract(view.usage, view.turn?.usage ?? noUsage());
      break;
    case "cost":
      view.micro_usd = event.session_micro_usd;
      view.is_cost_partial ||= (event.call_micro_usd ?? null) === null;
      break;
    case "compacted": view.last_call = noUsage(); break;
    case "context": view.context = { ...event }; break;
    case "permission_asked": if (!view.turn) view.asked = [...(view.asked ?? []), question(event)]; break;
    case "permission_decided": {
      const left = (view.asked ?? []).filter((it) => it.call.id !== event.call);
      view.asked = left.length ? left : undefined;
      break;
    }
  }
  if (view.turn) applyToTurn(view.turn, kind, event);
}

function beginAnswer(turn) {
  turn.text = new Tail();
  turn.thinking = new Tail();
  turn.drafts = [];
}

function question(event) {
  const asked = { call: event.call, reason: event.reason, preview: event.preview ?? null, always: event.always ?? null };
  if (event.inquiry != null) asked.inquiry = event.inquiry;
  if (event.during != null) asked.during = event.during;
  if (event.parts?.length) asked.parts = event.parts;
  if (event.notable?.length) asked.notable = event.notable;
  if (event.dangers?.length) asked.dangers = event.dangers;
  return asked;
}

function applyToTurn(turn, kind, event) {
  switch (kind) {
    case "round_started":
      turn.round = event.round;
      turn.why = event.why;
      beginAnswer(turn);
      break;
    case "arm_changed": case "retrying": beginAnswer(turn); break;
    case "text": turn.text.push(event.text, MAX_ANSWER_BYTES); break;
    case "thinking": turn.thinking.push(event.text, MAX_THINKING_BYTES); break;
    case "tool_call_drafted":
      if (turn.drafts.length < MAX_CALLS) turn.drafts.push({ id: event.call, name: event.name, arguments: new Tail() });
      break;
    case "tool_call_delta":
      turn.drafts.findLast((draft) => draft.id === event.call)?.arguments.push(event.fragment, MAX_ARGUMENT_BYTES);
      break;
    case "appended": if (event.role === "assistant") beginAnswer(turn); break;
    case "queued": turn.queue = event.queue.slice(0, MAX_QUEUED); break;
    case "permission_asked": turn.questions.push(question(event)); break;
    case "permission_decided": turn.questions = turn.questions.filter((it) => it.call.id !== event.call); break;
    case "tool_started":
      if (turn.calls.length < MAX_CALLS) turn.calls.push({ call: event.call, output: new Tail() });
      break;
    case "tool_progress":
      turn.calls.find((it) => it.call.id === event.call)?.output.push(event.text, MAX_OUTPUT_BYTES);
      break;
    case "tool_ended":
      turn.calls = turn.calls.filter((it) => it.call.id !== event.result.call_id);
      turn.questions = turn.questions.filter((it) => it.call.id !== event.result.call_id);
      break;
    case "usage": turn.usage = { ...event.turn }; break;
  }
}

const KEPT = new Set([
  "round_started", "routed", "arm_changed", "conferred", "checking", "checked", "cost", "compacted", "uncompacted", "appended",
  "permission_decided", "tool_ended", "usage", "retrying", "continuing", "notice", "turn_ended",
]);

function remember(recent, kind, event, envelope) {
  if (!KEPT.has(kind)) return;
  const size = eventBytes(kind, event);
  if (size > MAX_RECENT_BYTES) return;
  recent.push({ seq: envelope.seq, at_ms: envelope.at_ms, event: envelope.event });
  let bytes = 0;
  for (const it of recent) bytes += eventBytes(...named(it.event));
  while (recent.length > MAX_EVENTS || bytes > MAX_RECENT_BYTES) {
    const oldest = recent.shift();
    if (!oldest) break;
    bytes -= eventBytes(...named(oldest.event));
  }
}

/** Bytes that an event takes, roughly: its texts, and something for the rest. */
function eventBytes(kind, event) {
  const sum = (items, bytes) => (items ?? []).reduce((all, item) => all + bytes(item), 0);
  switch (kind) {
    case "notice": return bytesOf(event.text) + REST;
    case "appended": return messageBytes(event) + REST;
    case "tool_ended": return resultBytes(event.result) + bytesOf(event.diff ?? "") + REST;
    case "compacted": return bytesOf(event.summary) + REST;
    case "uncompacted": return bytesOf(event.summary ?? "") + REST;
    case "checked": return bytesOf(event.evidence) + REST;
    case "turn_ended": return sum(event.undelivered, messageBytes) + REST;
    case "routed": return sum(event.candidates, bytesOf) + REST;
    default: return REST;
  }
}

function resultBytes(result) {
  return result.parts.reduce((all, part) => all + (part.text ? bytesOf(part.text.text) : part.image?.base64.length ?? 0), 0);
}

function messageBytes(message) {
  return message.content.reduce((all, content) => {
    const [kind, value] = named(content);
    switch (kind) {
      case "text": case "thinking": return all + bytesOf(value.text);
      case "image": return all + value.base64.length;
      case "redacted_thinking": return all + bytesOf(value.data);
      case "tool_call": return all + bytesOf(JSON.stringify(value.arguments));
      case "tool_result": return all + resultBytes(value);
      default: return all;
    }
  }, 0);
}
