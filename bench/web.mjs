// See bench/web. PAGE=crates/gnoma-web/page shows the page as it lies there, without building the program.
import { spawn, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { hostilePlaces, hostileReply, PAYLOADS } from "./web-hostile.mjs";
import { product, reply } from "./web-product.mjs";
import { tasks } from "./web-tasks.mjs";
import { fastPaint, fastReview, flood, lightPage } from "./web-speed.mjs";

const { values: o } = parseArgs({ options: { pictures: { type: "boolean" }, turns: { type: "string", default: "2000" }, deltas: { type: "string", default: "20000" }, quick: { type: "boolean" }, speed: { type: "boolean" }, hostile: { type: "boolean" }, tasks: { type: "boolean" }, looks: { type: "boolean" } } });
const browserHome = createRequire(join(resolve(process.env.GNOMA_BROWSER), "x.js"));
const { chromium } = browserHome("playwright-core");
const AXE = readFileSync(browserHome.resolve("axe-core/axe.min.js"), "utf8");
const GNOMA = resolve(process.env.GNOMA);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

let failed = 0;
const say = (ok, name, more = "") => { if (!ok) failed++; console.log(ok ? "PASS" : "FAIL", name, more); return ok; };

// ---- A model whose words are a script

const words = (text) => text.split(/(?<= )/).map((content) => ({ content }));
const call = (name, args, id = "call_1", index = 0) => ({ tool_calls: [{ index, id, type: "function", function: { name, arguments: JSON.stringify(args) } }] });
const OLD = "def slug(title):\n    return title.lower().replace(' ', '-')\n";
const NEW = "import re\n\n\ndef slug(title):\n    return re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')\n";

/** What the model says to a conversation: pieces, and the pause between them. */
function script(messages) {
  const lastUser = messages.findLastIndex((it) => it.role === "user");
  const asked = textOf(messages[lastUser]);
  const step = messages.length - 1 - lastUser;
  const results = messages.slice(lastUser + 1).filter((it) => it.role === "tool").length;
  if (/slug/.test(asked) && !/look at/.test(asked)) {
    const steps = ["Read slug.py", "Replace the expression", "Say what has changed"].map((text, place) => ({ text, status: ["done", "active", "pending"][place] }));
    if (!results) return { pieces: [...words("I look at `slug.py` first. "), call("fs_read", { path: "slug.py" }), call("plan", { steps }, "call_3", 1)] };
    if (results === 2) return { pieces: [...words("Several blanks give several dashes. One expression replaces them all. "), call("fs_edit", { path: "slug.py", old_string: OLD, new_string: NEW }, "call_2")] };
    return { pieces: words("**Fixed.** `slug.py` now makes one dash of whatever is no letter or digit:\n\n| title | slug |\n|---|---|\n| `Hello,  World!` | `hello-world` |\n| `--a--` | `a` |\n\n1. The expression takes runs, not single characters.\n2. Dashes at both ends are cut off.\n") };
  }
  if (/two look at it/.test(asked)) {
    if (results) return { pieces: words("Both agree: the function is fine, and the module needs a test. ") };
    const tasks = ["style", "tests"].map((name) => ({ name, task: `look at slug.py: ${name}` }));
    return { pieces: [...words("I ask two elfs. "), call("elf_spawn", { tasks }, "call_9")] };
  }
  if (/look at slug.py: tests/.test(asked) && !results) return { pieces: [...words("No test covers blanks. "), call("fs_write", { path: "test_slug.py", content: "from slug import slug\n\n\ndef test_blanks():\n    assert slug('a  b') == 'a-b'\n" }, "call_8")] };
  if (/look at slug.py:/.test(asked)) return { pieces: Array.from({ length: 80 }, (_, i) => ({ content: `Line ${i + 1} is fine. ` })), pause: 100 };
  if (/count/.test(asked)) return { pieces: Array.from({ length: 600 }, (_, i) => ({ content: `${i + 1} sheep, ` })), pause: 25 };
  if (/hear me/.test(asked)) return { pieces: words("I heard you. ") };
  if (/flood/.test(asked)) {
    const text = "Here is **some** text with `code` and words, a list:\n\n- one\n- two\n\n```rust\nfn main() {}\nlet y = 2;\n```\n\nAnd a paragraph that goes on ".split(/(?<= )/);
    return { pieces: Array.from({ length: +o.deltas }, (_, i) => ({ content: i % text.length ? text[i % text.length] : `Part ${i}: ${text[0]}` })), burst: 100 };
  }
  if (/hostile \d/.test(asked)) {
    const payload = PAYLOADS[+/\d+/.exec(asked)[0]];
    if (!results) return { pieces: [{ content: payload + "\n" }, call("bash", { command: "cat <<'END'\n" + payload + "\nEND" })] };
    if (results === 1) return { pieces: [{ content: payload }, call("fs_write", { path: `x ${payload.replace(/[/\u0000-\u001f\u202a-\u202e]/g, "_").slice(0, 60)}.txt`, content: payload }, "call_2")] };
    return { pieces: [{ content: "Said: " + payload + "\n\n" + payload }] };
  }
  const other = reply(asked, { results, step, words, call }) ?? hostileReply(asked, { results, call });
  if (other) return other;
  return { pieces: words(`Turn ${step}: understood. ${short(asked)} `) };
}
const short = (text) => text.slice(0, 60);
const textOf = (message) => (typeof message?.content === "string" ? message.content : (message?.content ?? []).map((it) => it.text ?? "").join(""));

function model() {
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "GET") return response.end(JSON.stringify({ data: [{ id: "m1" }] }));
    const { pieces, pause = 0, burst = 1, breaks = false, status, error } = script(JSON.parse(body).messages);
    if (status) return response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: error, type: "invalid_request_error" } }));
    response.setHeader("content-type", "text/event-stream");
    let calls = false;
    for (const [place, delta] of pieces.entries()) {
      calls ||= Boolean(delta.tool_calls);
      if (response.destroyed) return;
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`);
      if (pause || place % burst === burst - 1) await (pause ? wait(pause) : new Promise(setImmediate));
    }
    if (breaks) return response.destroy();
    response.end(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: calls ? "tool_calls" : "stop" }], usage: { prompt_tokens: 900, completion_tokens: 40 } })}\n\ndata: [DONE]\n\n`);
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

// ---- The program

const root = mkdtempSync(join(tmpdir(), "gnoma-web-"));
const [home, project] = [join(root, "home"), join(root, "slugs")];
const provider = await model();
mkdirSync(join(home, ".config/gnoma"), { recursive: true });
mkdirSync(join(root, "run"), { mode: 0o700 });
mkdirSync(project);
writeFileSync(join(project, "slug.py"), OLD);
mkdirSync(join(home, ".config/gnoma/tasks"), { recursive: true });
writeFileSync(join(home, ".config/gnoma/tasks/pair.md"), "---\ndescription: Two steps\n---\n\n## Greet\n\n```sh\necho hello\n```\n\n## Say\n\nhear me\n");
writeFileSync(join(home, ".config/gnoma/config.toml"), `[provider]\ndefault = "test"\nmodel = "m1"\n[provider.endpoints]\ntest = "http://127.0.0.1:${provider.address().port}/v1"\n`);
const env = { HOME: home, PATH: process.env.PATH, TZ: "UTC", LANG: "C.UTF-8", XDG_RUNTIME_DIR: join(root, "run"), TERM: "xterm-256color" };
const port = await new Promise((done) => { const it = createServer().listen(0, "127.0.0.1", () => { const { port } = it.address(); it.close(() => done(port)); }); });

let server;
let links;
async function start() {
  server = spawn(GNOMA, ["web", "--port", String(port)], { cwd: project, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  server.stderr.on("data", (piece) => (said += piece));
  for (let i = 0; i < 200 && !/serves its page/.test(said); i++) await wait(50);
  links = [...said.matchAll(/http:\/\/\S+#t=[0-9a-f]{64}/g)].map(([it]) => it);
  if (links.length !== 2) throw new Error("no links: " + said);
}
await start();
const base = `http://127.0.0.1:${port}`;
const token = links[0].split("=")[1];
const api = async (path, body, bearer = token) => {
  const response = await fetch(base + "/api/v1/" + path, { method: body === undefined ? "GET" : "POST", headers: { Authorization: `Bearer ${bearer}` }, body: body && JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
};

// ---- The browser

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
const bad = [];
const outside = new Set();
async function person(width, colorScheme, link, init = null) {
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 800 }, colorScheme, reducedMotion: "reduce", hasTouch: width < 500, serviceWorkers: process.env.PAGE ? "block" : "allow" });
  if (process.env.PAGE) await context.route(/:\d+\/([a-z-]+\.(js|css|svg|webmanifest))?($|[?#])/, unbuilt);
  if (init) await context.addInitScript(init);
  const page = await context.newPage();
  page.on("console", (it) => it.type() === "error" && bad.push(it.text()));
  page.on("pageerror", (it) => bad.push(it.message));
  page.on("dialog", (it) => { bad.push("dialog"); it.dismiss(); });
  page.on("request", (it) => { const url = new URL(it.url()); if (!/^(data|blob):/.test(it.url()) && url.hostname !== "127.0.0.1") outside.add(it.url()); });
  if (link) await page.goto(link);
  return page;
}
/** The page as it lies in its folder, in place of the one in the program. */
let policy;
async function unbuilt(route) {
  const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
  const kind = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml", webmanifest: "application/manifest+json" }[name.split(".").pop()];
  policy ??= (await route.fetch({ url: `${base}/` })).headers()["content-security-policy"];
  await route.fulfill({ status: 200, headers: { "content-type": kind, "content-security-policy": policy }, body: readFileSync(join(process.env.PAGE, name), "utf8").replaceAll("{{build}}", await build()) });
}
let known;
const build = async () => (known ??= /content="([0-9a-f]{12})"/.exec(await (await fetch(`${base}/`)).text())[1]);
const told = (page, text) => page.waitForFunction((it) => document.getElementById("transcript").textContent.includes(it), text, { timeout: 30000 });
const write = async (page, text) => { await page.fill("#say", text); await page.click("#send"); };
const idle = (page) => page.waitForFunction(() => document.getElementById("stop").hidden && !document.getElementById("composer").hidden, null, { timeout: 60000 });
/** Every state once more with `--looks`: light, dark, on a phone, at 200 % and in forced colours. */
const LOOKS = [["light", 1280, 800, {}], ["dark", 1280, 800, { colorScheme: "dark" }], ["phone", 390, 844, {}], ["dark phone", 390, 844, { colorScheme: "dark" }], ["200 %", 640, 400, {}], ["forced colours", 1280, 800, { forcedColors: "active" }]];
const tested = new Set();
async function axe(page, name) {
  await page.evaluate(AXE);
  const violations = async () => (await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] }))).violations;
  const judge = (found, look) => say(!found.length, `axe: ${look}`, found.map((it) => `${it.id} x${it.nodes.length}: ${it.nodes[0].target}`).join("; "));
  judge(await violations(), name);
  const state = name.replace(/^.*?, /, "");
  if (!o.looks || tested.has(state)) return;
  tested.add(state);
  const usual = page.viewportSize();
  // A list that covers a phone closes where it has a place beside the conversation.
  for (const [look, width, height, media] of LOOKS.filter(([, width]) => usual.width >= 900 || width < 900)) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: "light", forcedColors: "none", ...media });
    await wait(150);
    judge(await violations(), `${look}, ${state}`);
  }
  await page.setViewportSize(usual);
  await page.emulateMedia({ colorScheme: /dark/.test(name) ? "dark" : "light", forcedColors: "none" });
  await wait(150);
}
/** Takes a picture, small enough to lie in the project. */
async function picture(page, name) {
  if (!o.pictures) return;
  const usual = page.viewportSize();
  await page.setViewportSize(usual.width < 500 ? { width: 390, height: 700 } : name === "review" ? { width: 1100, height: 490 } : { width: 900, height: 500 });
  await page.locator(name === "dark" ? "details.tool[open]" : "#main").last().evaluate((it) => it.scrollIntoView({ block: "end" }));
  await wait(300);
  await page.screenshot({ path: `docs/pictures/web-${name}.png` });
  await page.setViewportSize(usual);
}

/** What a person waits for, and nothing else: `--speed`. */
async function speed() {
  const desk = await person(1280, "light", links[0]);
  await desk.waitForSelector("#start button");
  const given = { desk, browser, base, person, links, deltas: o.deltas, api, say, told, write, idle, wait };
  await lightPage(given);
  await fastPaint(given);
  await fastReview(given);
  const session = (await api("process/open", { interactive: true, detach: "keep" })).body.opened.session;
  await desk.goto(`${base}/#/${session}`);
  await desk.waitForSelector("#start .welcome");
  await flood(given, session, [desk, await person(390, "dark", links[0]), await person(768, "dark", links[1])]);
}

async function day() {
  const desk = await person(1280, "light", links[0]);
  await desk.waitForSelector("#start button");
  say(!(await desk.evaluate(() => location.href)).includes(token), "the token is gone from the address");
  const given = { desk, browser, base, deltas: o.deltas, api, say, told, write, idle, wait };
  await fastPaint(given);
  await desk.click("#start button");
  await write(desk, "The slug of “Hello,  World!” has two dashes. Please fix slug.py");
  await desk.waitForSelector(".question");
  say((await desk.textContent(".question h2")) === "Edit this file?", "a question with a diff", await desk.locator(".question .diff .added .text").last().textContent());
  say(await desk.evaluate(() => document.activeElement.textContent === "Edit this file?"), "the question has the focus");
  await axe(desk, "1280 light, a question");
  await picture(desk, "question");

  const phone = await person(390, "dark", links[0]);
  await phone.waitForSelector("#start button");
  await axe(phone, "390 dark, the beginning");
  await phone.waitForSelector("#open-side[data-news]");
  say(/^\(1\)/.test(await phone.title()), "another session that asks is in the title and at the list's button", await phone.title());
  await phone.click("#open-side");
  await axe(phone, "390 dark, the list");
  await phone.click("#lists .entry");
  await phone.waitForSelector(".question");
  await axe(phone, "390 dark, a question");
  say(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "390 px: nothing is wider than the screen");
  await picture(phone, "phone");
  const session = await desk.evaluate(() => location.hash.slice(2));
  const terminal = spawn("script", ["-qfec", `stty rows 40 cols 100; exec ${GNOMA} attach ${session}`, "/dev/null"], { cwd: project, env, stdio: ["pipe", "pipe", "ignore"] });
  let screen = "";
  terminal.stdout.on("data", (it) => (screen += it));
  for (let i = 0; i < 100 && !/approv|slug\.py/i.test(screen); i++) await wait(50);
  say(/slug\.py/.test(screen), "a terminal shows the same session");
  await phone.click(".question:not([hidden]) .yes");
  await told(desk, "One expression replaces them all");
  await told(desk, "Dashes at both ends are cut off");
  await idle(desk);
  say((await desk.locator(".question").count()) === 0, "answered from the phone, and gone at the desk");
  say(readFileSync(join(project, "slug.py"), "utf8") === NEW, "the file was changed");
  const second = await api(`sessions/${session}/answer`, { call: "call_2", answer: "allow" });
  say(second.status === 409, "a second answer is an error", second.body.cause);
  for (let i = 0; i < 60 && !/both ends/.test(screen); i++) await wait(50);
  say(/both ends/.test(screen), "the terminal saw the answer");
  say(/2 of 3|1 of 3/.test(await desk.textContent("#plan-now")), "the plan is shown", await desk.textContent("#plan-now"));
  await desk.locator("details.tool", { hasText: "Edited" }).locator("summary").first().click();
  await desk.waitForSelector("details.tool[open] .diff .added");
  say((await desk.locator("details.tool[open] .diff .added").count()) === 4, "the diff is behind the call");
  await axe(desk, "1280 light, a diff");
  await desk.emulateMedia({ colorScheme: "dark" });
  await picture(desk, "dark");
  await desk.setViewportSize({ width: 1280, height: 800 });
  await desk.click("#open-review");
  await desk.waitForSelector("#review .diff .added");
  await picture(desk, "review");
  await axe(desk, "1280 dark, review");
  await desk.click('#review button[aria-label="Close the changes"]');
  await desk.emulateMedia({ colorScheme: "light" });

  await desk.click("#open-menu");
  await desk.click('#panel-body [data-action="settings"]');
  await desk.waitForSelector(".setting");
  await axe(desk, "1280 light, settings");
  await desk.selectOption("#panel-body select >> nth=0", { label: "Not at all" });
  await desk.fill('input[aria-label="Maximum model calls in a turn"]', "20");
  await desk.locator(".setting", { hasText: "Maximum model calls" }).locator("button").click();
  await desk.waitForFunction(() => document.querySelector("#panel-body [role=status]").textContent.includes("tools.max_rounds"));
  const settings = readFileSync(join(home, ".config/gnoma/config.toml"), "utf8");
  say(/max_rounds = 20/.test(settings), "a setting is changed", (await desk.textContent("#panel-body [role=status]")).replace(root, "…"));
  const refusal = await api(`sessions/${session}/set_setting`, { key: "permission.mode", value: "bypass" });
  say(refusal.status === 403 && settings === readFileSync(join(home, ".config/gnoma/config.toml"), "utf8"), "others are not", refusal.body.cause);
  await desk.click("#close-panel");

  await write(desk, "Let two look at it");
  await desk.waitForFunction(() => document.querySelectorAll("#elfs button").length === 2, null, { timeout: 30000 });
  say(true, "two elfs at work are below their session");
  await desk.waitForFunction(() => /m1/.test(document.querySelector("#elfs .entry small")?.textContent ?? ""));
  say(true, "with what they do", await desk.locator("#elfs .entry small").first().textContent());
  await phone.waitForSelector(".question");
  say(/test_slug/.test(await phone.textContent(".question")), "an elf asks, at the phone", await phone.textContent(".question h2"));
  await axe(desk, "1280 light, elfs and a question");
  await axe(phone, "390 dark, elfs and a question");
  say(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "390 px: nor is this");
  await picture(phone, "elfs");
  screen = "";
  await phone.click(".question:not([hidden]) .yes");
  await desk.waitForFunction(() => !document.querySelector(".question"));
  for (let i = 0; i < 100 && !existsSync(join(project, "test_slug.py")); i++) await wait(50);
  say(existsSync(join(project, "test_slug.py")), "it is answered there, and the elf goes on");
  await desk.locator("#elfs button").first().click();
  await told(desk, "is fine.");
  say(true, "an elf is watched at work");
  await desk.goBack();
  await told(desk, "Both agree");
  await idle(desk);
  await desk.waitForFunction(() => document.querySelectorAll("#elfs .ended li").length === 2, null, { timeout: 15000 });
  await desk.click("#elfs .ended summary");
  await axe(desk, "1280 light, elfs that have ended");
  await desk.locator("#elfs .ended .entry", { hasText: "style" }).click();
  await told(desk, "is fine.");
  say(true, "elfs that have ended stay as rows that open what they did");
  await api(`sessions/${await desk.evaluate(() => location.hash.slice(2))}/close`, {});
  await desk.goBack();
  await told(desk, "Both agree");
  for (let i = 0; i < 100 && !/Both/.test(screen); i++) await wait(50);
  say(/Both/.test(screen), "the terminal saw all of it");
  terminal.kill("SIGKILL");

  await write(desk, "count sheep");
  await told(desk, "20 sheep");
  await write(desk, "hear me");
  await desk.waitForSelector("#queue li");
  say(true, "what is said meanwhile waits", (await desk.textContent("#queue li span")).trim());
  await desk.focus("#words");
  await desk.keyboard.press("Escape");
  await wait(300);
  say(await desk.locator("#stop").isVisible() && !(await desk.textContent("#transcript")).includes("Stopped."), "Escape in a field stops no turn");
  await desk.focus("#say");
  await desk.keyboard.press("Escape");
  await told(desk, "Stopped.");
  await idle(desk);
  say(true, "Escape stops the turn");

  // What could not be delivered is back in the box.
  await desk.fill("#say", "");
  const points = async () => (await api(`sessions/${session}/points`, {})).body.points.length;
  const before = await points();
  await desk.click("#open-menu");
  await desk.click('#panel-body [data-action="rewind"]');
  await desk.locator("#panel-body .choices button", { hasText: "slug" }).click();
  await axe(desk, "1280 light, rewind");
  await desk.click('#panel-body button:text-is("Conversation and files")');
  await desk.waitForFunction(() => !document.getElementById("messages").textContent.includes("slug.py"), null, { timeout: 20000 });
  say(readFileSync(join(project, "slug.py"), "utf8") === OLD, "rewind brings the file back");
  await desk.click("#open-menu");
  await desk.click('#panel-body [data-action="redo"]');
  await told(desk, "both ends");
  say(readFileSync(join(project, "slug.py"), "utf8") === NEW && (await points()) === before, "redo undoes it");
  await desk.waitForFunction(() => !document.getElementById("say").value, null, { timeout: 5000 }).catch(() => {});
  say((await desk.inputValue("#say")) === "", "redo takes back the prompt that rewind left");

  const watcher = await person(768, "dark", links[1]);
  await watcher.waitForSelector("#lists .entry");
  say(await watcher.locator("#new").isHidden() && await watcher.locator("#search").isHidden(), "who watches is offered nothing that they may not do");
  await watcher.locator("#lists .entry").last().click();
  await told(watcher, "both ends");
  say(await watcher.locator("#composer").isHidden(), "the other link shows no message box");
  await axe(watcher, "768 dark, watching");
  const watching = links[1].split("=")[1];
  say((await api(`sessions/${session}/cancel`, {}, watching)).status === 403, "and its token changes nothing");

  const old = await person(1280, "light");
  await old.route(`${base}/`, async (route) => { const answer = await route.fetch(); await route.fulfill({ response: answer, body: (process.env.PAGE ? readFileSync(join(process.env.PAGE, "index.html"), "utf8") : await answer.text()).replace(/(?<=gnoma-build" content=")[^"]+/, "000000000000") }); });
  await old.goto(links[0]);
  await old.waitForSelector('#banner button:text-is("Reload")');
  say(true, "an old page says reload");
  await old.close();

  bad.length = 0;
  server.kill("SIGKILL");
  await desk.waitForFunction(() => document.getElementById("banner").textContent.includes("lost"));
  say(true, "a killed server is told");
  await write(desk, "hear me again");
  await desk.waitForFunction(() => /Not sent yet/.test(document.getElementById("echo").textContent), null, { timeout: 30000 });
  await start();
  await desk.waitForFunction(() => [...document.querySelectorAll("#messages .message.user")].some((it) => it.textContent.includes("hear me again")), null, { timeout: 30000 });
  await idle(desk);
  say((await desk.locator("#echo .pending").count()) === 0 && (await desk.locator("#messages .message.user", { hasText: "hear me again" }).count()) === 1, "what is sent while the server is away arrives once it is back, once");
  // What a browser itself says of a connection that is refused.
  bad.splice(0, bad.length, ...bad.filter((it) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(it)));

  await desk.selectOption("#mode", "accept_edits");
  const many = o.quick ? Math.min(PAYLOADS.length, 50) : PAYLOADS.length;
  for (let i = 0; i < many; i++) {
    await write(desk, `hostile ${i}`);
    for (;;) {
      await desk.waitForFunction(() => document.querySelector(".question:not([hidden]) .yes") || document.getElementById("stop").hidden, null, { timeout: 30000 });
      await wait(60);
      const button = desk.locator(".question:not([hidden]) .yes").first();
      if (await button.count()) await button.click({ timeout: 3000 }).catch(() => {});
      else if (await desk.locator("#stop").isHidden()) break;
    }
  }
  for (const summary of await desk.locator("#messages details.tool > summary").all()) await summary.evaluate((it) => (it.parentElement.open = true));
  await wait(300);
  const inside = await desk.evaluate(() => ({
    ran: window.__in === 1,
    elements: [...document.querySelectorAll("#messages script, #messages iframe, #messages svg:not(.icon), #messages object, #messages embed, #messages form, #messages style, #messages link, #messages meta, #messages base, #messages img, #messages video, #messages input, #messages svg *:not(path)")].length,
    handlers: [...document.querySelectorAll("#messages *")].filter((it) => [...it.attributes].some((a) => a.name.startsWith("on"))).length,
    links: [...document.querySelectorAll("#messages a")].map((it) => it.protocol).filter((it) => !/^https?:|^mailto:/.test(it)),
    seen: document.getElementById("messages").textContent.includes("<script>window.__in=1</script>"),
    cards: document.querySelectorAll("#messages details.tool").length,
  }));
  say(!inside.ran && !inside.elements && !inside.handlers && !inside.links.length && inside.seen, `${many} hostile texts in words, output, names and diffs stay text`, JSON.stringify(inside));

  const program = (...args) => execFileSync(GNOMA, args, { cwd: project, env, encoding: "utf8" });
  await product({ desk, phone, api, program, person, links, base, project, session, wait, say, told, write, idle, axe, picture, bad, before: OLD, after: NEW, last: `hostile ${many - 1}` });

  for (let i = 0; i < 40 && !(await desk.textContent("#messages")).includes("has two dashes"); i++) {
    await desk.evaluate(() => document.getElementById("transcript").scrollTo(0, 0));
    await wait(150);
  }
  say((await desk.textContent("#messages")).includes("has two dashes"), "earlier messages come where one scrolls to them");

  await flood(given, session, [desk, phone, watcher]);
  await phone.close();
  await watcher.close();

  if (!o.quick) {
    const { body: { opened } } = await api("process/open", { interactive: true, detach: "keep" });
    const long = opened.session;
    for (let i = 0; i < +o.turns; i++) {
      await api(`sessions/${long}/send`, { content: [{ text: { text: `question ${i}` } }] });
      for (;;) { if ((await api(`sessions/${long}/status`, {})).body.status.messages >= 2 * (i + 1)) break; await wait(2); }
    }
    const fresh = await desk.context().newPage();
    const since = Date.now();
    await fresh.goto(`${base}/#/${long}`);
    await told(fresh, `question ${+o.turns - 1}`);
    say(Date.now() - since < 1000, `a session of ${o.turns} turns opens`, `${Date.now() - since} ms`);
    await fresh.close();
  }

  for (const [width, scheme] of [[390, "light"], [768, "light"], [768, "dark"], [1280, "dark"]]) {
    const page = await desk.context().newPage();
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.goto(`${base}/#/${session}`);
    await page.waitForSelector("#messages .message");
    await axe(page, `${width} ${scheme}, a conversation`);
    await page.close();
  }

  const ticks = () => { const it = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" "); return +it[11] + +it[12]; };
  await wait(1500);
  const used = ticks();
  await wait(o.quick ? 5000 : 20000);
  const memory = +/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1] / 1024;
  say(ticks() - used <= 1, "an idle server with pages open takes no time", `${ticks() - used} ticks, ${memory.toFixed(1)} MB`);
  const listening = execFileSync("sh", ["-c", `ss -ltnH 2>/dev/null || awk '$4=="0A"{print $2}' /proc/net/tcp /proc/net/tcp6`], { encoding: "utf8" }).split("\n").filter((it) => it.includes(`:${port} `) || it.toLowerCase().endsWith(":" + port.toString(16).padStart(4, "0")));
  say(listening.length === 1 && /127\.0\.0\.1:|0100007F:/i.test(listening[0]), "it listens on loopback alone", listening[0]?.trim());
  say(!bad.length, "no console errors", [...new Set(bad)].slice(0, 4).join(" | "));
  say(!outside.size, "no request leaves the machine", [...outside].slice(0, 3).join(" "));
}

try {
  if (o.speed) await speed();
  else if (o.hostile) await hostilePlaces({ person, api, base, home, root, links, say, told, write, idle, wait });
  else if (o.tasks) await tasks({ person, api, base, project, links, say, told, idle, wait, before: OLD });
  else await day();
} catch (error) {
  say(false, "it ran to its end", error.stack);
  for (const context of browser.contexts()) for (const [place, page] of context.pages().entries()) if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `failed-${browser.contexts().indexOf(context)}-${place}.png`) }).catch(() => {});
} finally {
  await browser.close();
  server.kill();
  await wait(300);
  provider.closeAllConnections();
  provider.close();
  rmSync(root, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
