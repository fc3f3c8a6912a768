// What a person waits for: the first paint, a long diff, a page that answers while a model writes fast.
import { readFileSync } from "node:fs";

const load = () => `at a load of ${readFileSync("/proc/loadavg", "utf8").split(" ")[0]}`;
const shown = (all) => all.map((it) => it.toFixed(0)).join(", ");

/** What the main threads of the pages do meanwhile: the longest CPU time and the longest time of one task, a page each. */
async function traced(browser, act) {
  const tracer = await browser.newBrowserCDPSession();
  const trace = [];
  tracer.on("Tracing.dataCollected", ({ value }) => trace.push(...value));
  const ended = new Promise((done) => tracer.once("Tracing.tracingComplete", done));
  await tracer.send("Tracing.start", { traceConfig: { includedCategories: ["toplevel", "__metadata"] }, transferMode: "ReportEvents" });
  await act();
  await tracer.send("Tracing.end");
  await ended;
  const mains = trace.filter((it) => it.name === "thread_name" && it.args.name === "CrRendererMain");
  const most = (time) => mains.map((main) => trace.filter((it) => it.pid === main.pid && it.tid === main.tid && it[time]).reduce((all, it) => Math.max(all, it[time] / 1000), 0));
  return { work: most("tdur"), tasks: most("dur") };
}

/** The first paint of a page that is opened again, the best of some: it is the page that counts and not what else the machine does. */
export async function fastPaint({ desk, base, say }) {
  const all = [];
  for (let i = 0; i < 7; i++) {
    const page = await desk.context().newPage();
    await page.goto(`${base}/`);
    await page.waitForSelector("#start button");
    all.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await page.close();
  }
  all.sort((a, b) => a - b);
  say(all[0] < 150, "first paint", `${shown(all)} ms, ${load()}`);
}

/** What goes over the wire when a browser opens the page for the first time, and how long its main thread works at a time. */
export async function lightPage({ person, browser, links, say }) {
  const page = await person(1280, "light");
  const network = await page.context().newCDPSession(page);
  let bytes = 0;
  network.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await network.send("Network.enable");
  // The browser loads a page of its own as it starts.
  await page.waitForTimeout(2000);
  const { work, tasks } = await traced(browser, async () => {
    await page.goto(links[0]);
    await page.waitForSelector("#start button");
  });
  say(bytes < 120 * 1024, "the page is light", `${(bytes / 1024).toFixed(1)} KB`);
  say(Math.max(...work) <= 50, "opening it keeps the browser busy for moments only", `${shown(work)} ms of CPU, ${shown(tasks)} ms in all, ${load()}`);
  await page.context().close();
}

/** A diff of 5,000 lines in the review: until its first lines are there, and until all are. */
export async function fastReview({ desk, browser, base, api, say, write, idle }) {
  const { session } = (await api("process/open", { interactive: true, detach: "keep" })).body.opened;
  await api(`sessions/${session}/set_mode`, { mode: "accept_edits" });
  await desk.goto(`${base}/#/${session}`);
  await desk.waitForSelector("#start .welcome");
  await write(desk, "long file");
  await desk.waitForFunction(() => /Wrote/.test(document.getElementById("messages").textContent));
  await idle(desk);
  let times;
  const { work } = await traced(browser, async () => {
    times = await desk.evaluate(async () => {
      const since = performance.now();
      const box = document.getElementById("review");
      const answered = new PerformanceObserver(() => {});
      answered.observe({ type: "resource" });
      document.getElementById("open-review").click();
      while (!box.querySelector(".line.added")) await new Promise(requestAnimationFrame);
      const answer = performance.getEntriesByType("resource").findLast((it) => it.name.endsWith("/messages")).responseEnd - since;
      await new Promise(requestAnimationFrame);
      const first = performance.now() - since;
      for (let more; (more = box.querySelector(".more"));) {
        if (!more.disabled) more.click();
        await new Promise(requestAnimationFrame);
      }
      return [answer, first, performance.now() - since];
    });
  });
  const has = (place) => desk.evaluate((it) => document.getElementById("review").textContent.includes(`line_${it} = ${it - 1}`), place);
  const whole = (await has(1)) && (await has(2500)) && (await has(5000));
  say(whole && times[2] - times[0] < 300, "a diff of 5,000 lines in review, every line reachable", `answer ${shown([times[0]])}, first lines ${shown([times[1]])}, all ${shown([times[2]])} ms; longest work ${shown(work)} ms of CPU, ${load()}`);
}

/**
 * Thousands of pieces for pages that show the same session. What counts is how long a page works at a time: how long its
 * frames are also tells what else the machine does.
 */
export async function flood({ browser, deltas, say, told, write, idle, wait }, session, pages) {
  await write(pages[0], "start over");
  await idle(pages[0]);
  for (const page of pages) {
    await page.evaluate((it) => (location.hash = "#/" + it), session);
    await told(page, "start over");
    await page.evaluate(() => { window.__frames = []; let last = performance.now(); const tick = (at) => { window.__frames.push(at - last); last = at; requestAnimationFrame(tick); }; requestAnimationFrame(tick); });
  }
  let ms;
  const { work, tasks } = await traced(browser, async () => {
    const since = Date.now();
    await write(pages[0], "flood");
    await wait(500);
    for (const page of pages) await page.waitForFunction(() => document.getElementById("stop").hidden, null, { timeout: 60000 });
    ms = Date.now() - since;
  });
  const frames = await Promise.all(pages.map((page) => page.evaluate(() => Math.max(...window.__frames.slice(2)))));
  say(Math.max(...work) <= 50, `${deltas} deltas, ${pages.length} pages: the longest work at a time`, `${shown(work)} ms of CPU, ${shown(tasks)} ms in all; the longest frames ${shown(frames)} ms, ${load()}; ${ms} ms`);
}
