// Ten tasks of a day, done twice: with the keyboard alone, and by nothing but the roles and names that a screen reader gets.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Tabs to reach anything; more would be no way. */
const MAX_TABS = 60;

/** A person who only has keys: what has the focus is known by its name, as a screen reader says it. */
function keyboard(page) {
  const focused = () => page.evaluate(() => { const it = document.activeElement; return (it.getAttribute("aria-label") ?? it.labels?.[0]?.textContent ?? it.textContent ?? "").trim(); });
  const reach = async (name, key = "Tab") => {
    for (let i = 0; i < MAX_TABS; i++) {
      if (name.test(await focused())) return;
      await page.keyboard.press(key);
    }
    throw new Error(`${name} is not reached with ${key}`);
  };
  return {
    press: async (name) => { await reach(name); await page.keyboard.press("Enter"); },
    open: async (name) => { await reach(name); await page.keyboard.press("Enter"); },
    write: async (name, text) => { await reach(name); await page.keyboard.type(text); },
    send: async (text) => { await reach(/^Message/); await page.keyboard.type(text); await page.keyboard.press("Enter"); },
    choose: async (name, value) => {
      await reach(name);
      const at = await page.evaluate((it) => { const all = [...document.activeElement.options].map((one) => one.value); return all.indexOf(it) - document.activeElement.selectedIndex; }, value);
      for (let i = 0; i < Math.abs(at); i++) await page.keyboard.press(at > 0 ? "ArrowDown" : "ArrowUp");
    },
    answer: async (key) => { await page.waitForSelector(".question:not([hidden])"); await page.waitForTimeout(800); await page.keyboard.press(key); },
    stop: async () => { await page.keyboard.press("Escape"); },
    find: async (words) => { await page.keyboard.press("Control+k"); await page.keyboard.type(words); },
    changes: async () => { await page.keyboard.press("Control+Shift+D"); },
    leave: async () => { await page.keyboard.press("Escape"); },
  };
}

/** A person who gets roles and names. */
function tree(page) {
  const one = async (roles, name) => {
    for (let i = 0; i < 100; i++) {
      // What lies behind a dialog is not in the tree.
      const within = (await page.locator("dialog[open]").count()) ? page.locator("dialog[open]") : page;
      for (const role of roles) {
        const all = within.getByRole(role, { name });
        for (let place = 0; place < (await all.count()); place++) if (await all.nth(place).isVisible()) return all.nth(place);
      }
      await page.waitForTimeout(100);
    }
    throw new Error(`no ${roles} ${name}`);
  };
  const pressable = ["button", "link", "option", "group", "generic"];
  return {
    press: async (name) => (await one(pressable, name)).click(),
    // The summary of a card has no role of its own in every browser.
    open: async (name) => page.locator("summary", { hasText: name }).last().click(),
    write: async (name, text) => (await one(["textbox", "searchbox", "combobox"], name)).fill(text),
    send: async (text) => { await (await one(["textbox", "combobox"], /^Message/)).fill(text); await (await one(["button"], /^(Send|Steer)/)).click(); },
    choose: async (name, value) => (await one(["combobox"], name)).selectOption(value),
    answer: async (key) => { await page.waitForTimeout(800); await (await one(["button"], { y: /^Approve once/, n: /^Deny\b(?!, say)/, r: /^Deny, say why/ }[key])).click(); },
    stop: async () => (await one(["button"], /^Stop/)).click(),
    find: async (words) => (await one(["textbox", "searchbox"], /Search|Find|sessions/i)).fill(words),
    changes: async () => (await one(["button"], /^Changes/)).click(),
    leave: async () => (await one(["button"], /^Close/)).click(),
  };
}

export async function tasks({ person, api, base, project, links, say, told, idle, wait, before }) {
  for (const [way, made] of [["keyboard alone", keyboard], ["accessibility tree", tree]]) {
    const page = await person(1280, "light", links[0]);
    await page.waitForSelector("#start .welcome");
    const act = made(page);
    const place = join(project, "places.txt");
    const file = async (text) => {
      for (let i = 0; i < 60; i++) {
        if (readFileSync(place, "utf8") === text) return true;
        await wait(50);
      }
      return false;
    };
    const lines = (others = {}) => Array.from({ length: 40 }, (_, i) => `${others[i + 1] ?? `line ${i + 1}`}\n`).join("");
    writeFileSync(place, lines());
    writeFileSync(join(project, "slug.py"), before);
    const task = async (name, what) => {
      try {
        say((await what()) !== false, `${way}: ${name}`);
      } catch (error) {
        say(false, `${way}: ${name}`, error.message.split("\n")[0]);
      }
    };
    await task("1 send a message, and read the answer", async () => { await act.send("hear me first"); await told(page, "I heard you."); await idle(page); });
    await task("2 look at a question, and approve it", async () => { await act.send("two places"); await act.answer("y"); await idle(page); return file(lines({ 2: "two", 38: "thirty-eight" })); });
    await task("3 deny, and say why", async () => {
      await act.send("danger");
      await act.answer("r");
      await act.write(/Why not/, "not now");
      await page.keyboard.press("Enter");
      await idle(page);
      await told(page, "Denied:");
    });
    await task("4 open what a call did", async () => { await act.open(/^Wrote.*places/s); await page.waitForSelector("details.tool[open] .diff .added"); });
    await task("5 see the changes, revert one, and undo that", async () => {
      await act.changes();
      await page.waitForSelector("#review .hunk-tools button");
      await act.press(/^Revert change 2 of 2/);
      await page.waitForFunction(() => document.querySelectorAll("#review .hunk-tools button").length === 1);
      if (!(await file(lines({ 2: "two" })))) return false;
      await act.press(/^Undo revert/);
      await page.waitForFunction(() => document.querySelectorAll("#review .hunk-tools button").length === 2);
      return file(lines({ 2: "two", 38: "thirty-eight" }));
    });
    await task("6 comment on a line", async () => {
      await act.press(/^Comment on a line/);
      await act.write(/^Comment$/, "why two?");
      await act.press(/^Add to message/);
      const text = await page.inputValue("#say");
      await page.fill("#say", "");
      return /`places.txt:2`\n> two\n\nwhy two\?/.test(text);
    });
    await task("7 choose a mode and a model", async () => {
      await act.choose(/^Permission mode/, "accept_edits");
      await page.waitForFunction(() => document.getElementById("mode").value === "accept_edits");
      await act.press(/^Model:/);
      await page.waitForSelector("#panel .choices button");
      await act.press(/^m1|^test\/m1/);
      await page.waitForFunction(() => !document.getElementById("panel").open);
    });
    await task("8 stop a turn", async () => { await act.send("count sheep"); await told(page, "20 sheep"); await act.stop(); await told(page, "Stopped."); await idle(page); });
    await task("9 rewind to before it", async () => {
      await page.fill("#say", "");
      await act.press(/^Menu/);
      await act.press(/^Rewind/);
      await page.waitForSelector("#panel .choices button");
      await act.press(/^count sheep/);
      await act.press(/^Conversation and files/);
      await page.waitForFunction(() => !document.getElementById("messages").textContent.includes("count sheep"));
      await page.fill("#say", "");
    });
    await task("10 find another session, and go there", async () => {
      const { body: { opened } } = await api("process/open", { interactive: true, detach: "keep" });
      await api(`sessions/${opened.session}/send`, { content: [{ text: { text: `needle of ${way}` } }] });
      await wait(900);
      await act.find(`needle of ${way}`);
      await wait(500);
      await act.press(new RegExp(`needle of ${way}`));
      await page.waitForFunction((it) => location.hash === "#/" + it, opened.session);
    });
    await page.context().close();
  }
}
