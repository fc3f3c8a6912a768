// Texts that would be markup, a script or a wrong link if the page let them, in every place where a model, a tool, a file, a
// project, a person or a server can set a text.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const RUN = "window.__in=1";
const BY_HAND = [
  `<svg><script>${RUN}</script></svg>`, `<iframe srcdoc='<script>parent.__in=1</script>'>`, `[x](java\tscript:${RUN})`, "![x](https://evil.example/p.png)", "<img src=https://evil.example/p.png>", `[x](http://a"onmouseover=${RUN})`, `<http://evil.example/" onclick=${RUN}>`,
  "```html\n<script>" + RUN + "</script>\n```", "```\"><script>" + RUN + "</script>\nx\n```", `</div></main><script>${RUN}</script>`, `--><script>${RUN}</script>`, `]]><script>${RUN}</script>`, `</textarea><script>${RUN}</script>`, `</title><script>${RUN}</script>`,
  "<style>*{display:none}</style>", "<link rel=stylesheet href=https://evil.example/x.css>", "<meta http-equiv=refresh content='0;url=https://evil.example'>", "<base href=https://evil.example/>", "<form action=https://evil.example><button>x</button></form>",
  `<math><mtext><script>${RUN}</script></mtext></math>`, `&lt;script&gt;${RUN}&lt;/script&gt;`, `\\u003cscript\\u003e${RUN}\\u003c/script\\u003e`, `\${${RUN}}`, `{{constructor.constructor('${RUN}')()}}`, `javascript:${RUN}`,
  `\u202e<script>${RUN}</script>\u202c`, `\u001b]8;;javascript:${RUN}\u0007x\u001b]8;;\u0007`, `<ScRiPt\u0000>${RUN}</ScRiPt>`,
];
const ELEMENTS = [
  `<script>${RUN}</script>`, `<img src=x onerror=${RUN}>`, `<svg onload=${RUN}>`, `<iframe src=javascript:${RUN}>`, `<body onload=${RUN}>`, `<a href=javascript:${RUN}>x</a>`, `<object data=javascript:${RUN}>`, `<embed src=javascript:${RUN}>`,
  `<details open ontoggle=${RUN}>`, `<video><source onerror=${RUN}>`, `<input autofocus onfocus=${RUN}>`, `<marquee onstart=${RUN}>`,
];
const ADDRESSES = [`javascript:${RUN}`, `JaVaScRiPt:${RUN}`, `\u0001javascript:${RUN}`, `java&#115;cript:${RUN}`, `data:text/html,<script>${RUN}</script>`, `vbscript:${RUN}`, "blob:null/x", "file:///etc/passwd"];
/** What Markdown puts around an element, and around an address. */
const AROUND = [(it) => it, (it) => `\`${it}\``, (it) => `# ${it}`, (it) => `- ${it}`, (it) => `| ${it} | b |\n|---|---|\n| ${it} | c |`];
const LINKS = [(it) => `[x](${it})`, (it) => `![x](${it})`, (it) => `<${it}>`, (it) => `[x][1]\n\n[1]: ${it}`];
const each = (all, around) => all.flatMap((it) => around.map((wrap) => wrap(it)));

export const PAYLOADS = [...BY_HAND, ...each(ELEMENTS, AROUND), ...each(ADDRESSES, LINKS)];
/** Payloads in one line, as names, titles and steps have them. */
const LINES = PAYLOADS.filter((it) => !/\n/.test(it));
const CHOICES = 9;
const TOOLS = 8;
const STEPS = 20;

/** Sees to it that no element of a kind that the page never makes gets into it, not even for a moment, and no handler. */
export const watch = () => {
  window.__got = [];
  const own = (it) => it.matches("script[src^='/'], script[src^='app'], link[href^='/'], head > meta, svg.icon, svg.icon *, svg.ring, svg.ring *, svg.bar, svg.bar *, img[src^='data:image/'], #app form, form, input");
  const look = (it) => {
    if (it.nodeType !== 1) return;
    for (const one of [it, ...it.querySelectorAll("*")]) {
      const isBad = one.matches("script, iframe, object, embed, base, style, link, meta, svg, math, video, audio, source, marquee, img, template, frame, applet") && !own(one);
      const isHandler = [...one.attributes].some(({ name }) => name.startsWith("on"));
      const isLink = one.matches("a[href]") && !/^(https?:|mailto:)/.test(one.protocol);
      if (isBad || isHandler || isLink || (one.matches("form") && one.hasAttribute("action"))) window.__got.push(one.outerHTML.slice(0, 120));
    }
  };
  new MutationObserver((all) => { for (const { addedNodes } of all) addedNodes.forEach(look); }).observe(document, { childList: true, subtree: true });
};

/** What the model of web.mjs answers to these tests; nothing for others. */
export function hostileReply(asked, { results, call }) {
  if (!/^hostile [a-z]/.test(asked)) return null;
  const part = +(/\d+/.exec(asked)?.[0] ?? 0);
  const some = LINES.slice(part * TOOLS, (part + 1) * TOOLS);
  if (/^hostile words/.test(asked)) return { pieces: PAYLOADS.map((it) => ({ content: it + "\n\n" })) };
  if (/^hostile thoughts/.test(asked)) return { pieces: [{ reasoning_content: PAYLOADS.join("\n") }, { content: "thought" }] };
  if (/^hostile error/.test(asked)) return { status: 400, error: LINES.join(" ") };
  if (results) return { pieces: [{ content: "It is done." }] };
  if (/^hostile plan/.test(asked)) return { pieces: [call("plan", { steps: LINES.slice(0, STEPS).map((text, place) => ({ text, status: place ? "pending" : "active" })) })] };
  if (/^hostile question/.test(asked)) return { pieces: [call("ask", { question: PAYLOADS.slice(part * CHOICES, (part + 1) * CHOICES).join("\n\n").slice(0, 1900), choices: LINES.slice(part * CHOICES, (part + 1) * CHOICES).map((it) => it.slice(0, 190)) })] };
  if (/^hostile tools/.test(asked)) return { pieces: some.flatMap((it, place) => [call(it, { path: it, [it]: it }, `tool_${part}_${place}`, place)]) };
  if (/^hostile elfs/.test(asked)) return { pieces: [call("elf_spawn", { tasks: some.slice(0, 4).map((it) => ({ name: it.slice(0, 40), task: `hear me: ${it}` })) }, `elf_${part}`)] };
  if (/^hostile output/.test(asked)) return { pieces: [call("bash", { command: "cat payloads.txt; git status --short" })] };
  if (/^hostile background/.test(asked)) return { pieces: [call("bash", { command: `sleep 60 # ${some[0]}`, background: true })] };
  return null;
}

/** The places of a project and a person in which a text is shown: names of files, commands, tasks, branches and folders. */
export function plant(home, root) {
  const names = LINES.map((it, place) => `${place} ${it.replace(/[/\u0000-\u001f\u202a-\u202e]/g, "_").slice(0, 100)}`);
  const folder = join(root, names.find((it) => it.includes("onerror")).slice(0, 60));
  mkdirSync(join(folder, ".claude/commands"), { recursive: true });
  mkdirSync(join(home, ".config/gnoma/tasks"), { recursive: true });
  writeFileSync(join(folder, "payloads.txt"), PAYLOADS.join("\n"));
  const git = (...args) => execFileSync("git", ["-C", folder, "-c", "user.name=x", "-c", "user.email=x@example.org", ...args], { stdio: "ignore" });
  git("init", "-q", "-b", "<img/src=x/onerror=window.__in=1>");
  for (const name of names) writeFileSync(join(folder, name), "before\n");
  git("add", ".");
  git("commit", "-qm", "all");
  for (const name of names) writeFileSync(join(folder, name), LINES[parseInt(name, 10)] + "\n");
  LINES.slice(0, 20).forEach((it, place) => {
    writeFileSync(join(folder, `.claude/commands/c${place}.md`), `---\ndescription: ${JSON.stringify(it)}\n---\nhear me\n`);
    writeFileSync(join(home, `.config/gnoma/tasks/t${place}.md`), `---\ndescription: ${JSON.stringify(it)}\n---\n\n## ${it}\n\n\`\`\`sh\necho hello\n\`\`\`\n`);
  });
  return folder;
}

/** Puts payloads into every place, and looks whether any became more than text. */
export async function hostilePlaces({ person, api, base, home, root, links, say, told, write, idle, wait }) {
  const folder = plant(home, root);
  const { body: { opened: { session } } } = await api("process/open", { folder, interactive: true, detach: "keep" });
  await api(`sessions/${session}/set_mode`, { mode: "accept_edits" });
  const page = await person(1280, "light", links[0], watch);
  await page.waitForSelector("#start .welcome");
  await page.goto(`${base}/#/${session}`);
  await page.waitForSelector("#start .welcome");
  const places = [];
  const seen = async (place, selector, least) => {
    const found = await page.evaluate(([it, all]) => { const text = [...document.querySelectorAll(it)].map((one) => one.textContent).join("\n"); return all.filter((one) => text.includes(one)).length; }, [selector, LINES.filter((it) => /^[ -~]+$/.test(it))]);
    const got = await page.evaluate(() => window.__got.splice(0));
    const ran = await page.evaluate(() => Boolean(window.__in));
    places.push(place);
    say(found >= least && !got.length && !ran, `hostile ${place} stays text`, `${found} seen${got.length ? ": " + got.slice(0, 3).join(" ") : ""}${ran ? ": it ran" : ""}`);
  };
  const answer = async () => {
    for (;;) {
      await page.waitForFunction(() => document.querySelector(".question:not([hidden])") || (document.getElementById("stop").hidden && !document.querySelector("#echo .pending")), null, { timeout: 60000 });
      const question = page.locator(".question:not([hidden]) footer .buttons button").first();
      if (!(await question.count())) return;
      await seen("question", ".question", 0);
      await page.locator(".question:not([hidden]) .yes, .question:not([hidden]) [data-key='1']").first().click({ timeout: 3000 }).catch(() => {});
      await wait(150);
    }
  };
  const turn = async (text) => { await write(page, text); await wait(200); await answer(); };
  await seen("beginning, branch and folder", "#start, #lists, #where", 1);
  await page.fill("#say", "/c");
  await page.waitForSelector("#offers .offer");
  await page.fill("#say", "@payl");
  await wait(300);
  await page.fill("#say", "@onerr");
  await page.waitForSelector("#offers .offer");
  await seen("offers of commands and files", "#offers", 0);
  await page.fill("#say", "");
  await turn("hostile words");
  await seen("answer", "#messages", 20);
  await turn("hostile thoughts");
  for (const it of await page.locator("#messages details").all()) await it.evaluate((one) => (one.open = true));
  await seen("thinking", "#messages .thinking", 20);
  await turn("hostile plan");
  await page.evaluate(() => { document.getElementById("plan").open = true; });
  await seen("plan", "#plan", 10);
  for (let part = 0; part * CHOICES < LINES.length; part++) await turn(`hostile question ${part}`);
  for (let part = 0; part * TOOLS < LINES.length; part++) await turn(`hostile tools ${part}`);
  for (const it of await page.locator("#messages details").all()) await it.evaluate((one) => (one.open = true));
  await seen("names and arguments of tools", "#messages", LINES.length / 2);
  await turn("hostile output");
  for (const it of await page.locator("#messages details").all()) await it.evaluate((one) => (one.open = true));
  await seen("output", "#messages .output", 20);
  for (let part = 0; part < 4; part++) await turn(`hostile elfs ${part}`);
  await turn("hostile background 1");
  await wait(500);
  for (const it of await page.locator("#elfs details").all()) await it.evaluate((one) => (one.open = true));
  await seen("rows of elfs and commands", "#elfs", 1);
  await turn("hostile error");
  await seen("error of the provider", "#messages", 10);
  for (const it of LINES.slice(0, 30)) await turn(it.startsWith("/") ? " " + it : it);
  await seen("messages of the person", "#messages .user", 20);
  for (const title of LINES) await api(`sessions/${session}/rename`, { title: title.slice(0, 190) });
  for (const [place, title] of LINES.slice(0, 12).entries()) {
    const { body } = await api("process/open", { folder, interactive: true, detach: "keep" });
    await api(`sessions/${body.opened.session}/rename`, { title });
    if (place % 2) await api(`sessions/${body.opened.session}/close`, {});
  }
  await page.reload();
  await told(page, "It is done.");
  await seen("titles in the list", "#lists, #title", 2);
  await page.locator(`#lists .entry[data-session="${session}"] + .entry-more`).click();
  await seen("menu of a session", "#panel", 0);
  await page.keyboard.press("Escape");
  await page.fill("#words", "onerror");
  await page.focus("#words");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#hits h2");
  await seen("hits", "#hits", 0);
  for (const panel of ["rewind", "model", "context", "why", "settings", "rename"]) {
    await page.click("#open-menu");
    await page.click(`#panel-body [data-action="${panel}"]`);
    await wait(400);
    await seen(`panel of ${panel}`, "#panel", 0);
    await page.click("#close-panel");
  }
  for (const command of ["/task", "/task show t3", "/task t3", "/model <", "/nothing-<img src=x onerror=window.__in=1>"]) {
    await page.fill("#say", command);
    await page.keyboard.press("Escape");
    await page.focus("#say");
    await page.keyboard.press("Enter");
    await wait(600);
    await answer();
    await seen(command, "#panel, #toasts", 0);
    if (await page.locator("#panel[open]").count()) await page.click("#close-panel");
    await page.fill("#say", "");
  }
  await page.click("#open-review");
  await page.selectOption('#review select[aria-label="Changes since"]', "commit");
  await page.waitForSelector("#review .diff-file", { timeout: 20000 });
  for (const it of await page.locator("#review details").all()) await it.evaluate((one) => (one.open = true));
  await seen("names and lines of a diff", "#review", 20);
  say(places.length > 20, `${PAYLOADS.length} payloads in ${new Set(places).size} places`, [...new Set(places)].join(", "));
  await page.context().close();
}
