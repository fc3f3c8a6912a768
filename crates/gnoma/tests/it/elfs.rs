//! Elfs in the whole program: three at once at three vendors that refuse what the real ones would.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gnoma_core::{
    Price, StopReason, Usage,
    ledger::{Ledger as _, Total},
};
use gnoma_store::{OpenedLedger, SqliteLedger};
use gnoma_testkit::{IssuedTokens, Reply, Request, Script, Server, Wire};
use serde_json::Value;

use crate::support::{Run, World, calls, says};

/// How long each answer of an elf's vendor takes.
const ANSWER: Duration = Duration::from_millis(700);

/// No round number: sums must not be rounded.
const PRICE: Price =
    Price { input: 1_234_567, output: 9_876_543, cache_read: 123_457, cache_write: 0 };

/// Name, wire, protocol, model and the id of a call.
type Side = (&'static str, Wire, &'static str, &'static str, &'static str);

const SIDES: [Side; 3] = [
    ("alpha", Wire::Anthropic, "anthropic", "claude-3-7-sonnet", "toolu_01A09q90qw90lq917835lq9"),
    ("beta", Wire::Google, "google", "gemini-3-flash", ""),
    ("gamma", Wire::Mistral, "mistral", "mistral-large-latest", "D681PevKs"),
];

/// What a vendor has seen and told.
#[derive(Default)]
struct Books {
    issued: IssuedTokens,
    asked: Vec<(Instant, String)>,
    violations: Vec<String>,
    bill: Vec<Usage>,
}

/// A vendor whose model looks at a file, and then says what it thinks of it.
fn vendor((name, wire, _, model, id): Side) -> (Server, Arc<Mutex<Books>>) {
    let books = Arc::<Mutex<Books>>::default();
    let kept = Arc::clone(&books);
    let server = Server::start(move |request: &Request| {
        if request.method == "GET" {
            return Reply::json(200, format!(r#"{{"data":[{{"id":"{model}"}}],"models":[]}}"#));
        }
        let mut books = kept.lock().unwrap();
        let violations = wire.violations(request, &books.issued);
        books.violations.extend(violations.clone());
        books.asked.push((Instant::now(), request.json().to_string()));
        if !violations.is_empty() {
            return wire.refusal_reply(violations.join("; "));
        }
        let nth = books.asked.len() as u64;
        let usage = Usage { input: 1_000 * nth + 7, output: 10 * nth + 1, ..Usage::default() };
        let script = match nth {
            1 => Script::text([""; 0]).with_call(id, "fs_read", r#"{"path":"a.txt"}"#),
            _ => Script::text([format!("{name} has read it")]).with_stop(StopReason::EndTurn),
        };
        // Google wants its signature of a thought back with the call.
        let script =
            if wire == Wire::Google { script.with_thinking("hm", "Z29vZ2xl") } else { script };
        let script = script.with_usage(usage);
        books.issued.record_answer(&script);
        books.bill.push(usage);
        wire.stream_reply(&script).with_delay(ANSWER)
    });
    (server.unwrap(), books)
}

/// A home with a parent's vendor and those of elfs; all that they ask is priced.
fn home(parent: Server, elfs: &[(Side, String)]) -> World {
    let world = World::with(parent);
    let dollars = |micro: u64| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let mut arms = vec![("test/m1".to_owned(), world.server.url() + "/v1")];
    let (mut endpoints, mut protocols, mut models) = (String::new(), String::new(), String::new());
    for ((name, wire, protocol, model, _), url) in elfs {
        let version = if *wire == Wire::Google { "/v1beta" } else { "/v1" };
        endpoints.push_str(&format!("{name} = \"{url}{version}\"\n"));
        protocols.push_str(&format!("{name} = \"{protocol}\"\n"));
        models.push_str(&format!("{name} = [\"{model}\"]\n"));
        arms.push((format!("{name}/{model}"), url.clone()));
    }
    let (input, output) = (dollars(PRICE.input), dollars(PRICE.output));
    let arms: String = arms
        .iter()
        .map(|(id, _)| {
            format!(
                "[[arms]]\nid = \"{id}\"\ninput_price = {input}\noutput_price = {output}\n\
                 context = 200_000\n"
            )
        })
        .collect();
    let test = world.server.url();
    let text = format!(
        "[provider]\ndefault = \"test\"\n[provider.endpoints]\ntest = \"{test}/v1\"\n{endpoints}\
         [provider.protocols]\n{protocols}[provider.models]\ntest = [\"m1\"]\n{models}\
         [router]\nmode = \"auto\"\nstrategy = \"single\"\nverify = \"off\"\n\
         discovery_interval = \"0s\"\n\
         [[router.rules]]\nname = \"parent first\"\nprefer = [\"test/*\"]\nprefer_by = 100\n{arms}"
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    world.write("a.txt", "one\n");
    world
}

fn tasks() -> String {
    let task = |(name, _, _, model, _): &Side| {
        format!(
            r#"{{"task":"look at a.txt, {name}","name":"{name}","provider":"{name}","model":"{model}"}}"#
        )
    };
    format!(r#"{{"tasks":[{}]}}"#, SIDES.iter().map(task).collect::<Vec<_>>().join(","))
}

/// What the parent's vendor was sent last.
fn told(world: &World) -> String {
    world.last_request().pop().unwrap().1
}

async fn spent(world: &World) -> u64 {
    let path = world.home.path().join(".local/state/gnoma/ledger.db");
    let OpenedLedger { ledger, .. } = SqliteLedger::open(&path).unwrap();
    let totals = ledger.daily_totals(0).await.unwrap();
    totals.iter().map(|Total { amount, .. }| amount.micro_usd).sum()
}

fn is_done(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[tokio::test]
async fn three_elfs_at_three_vendors_work_at_once_and_know_nothing_of_each_other() {
    let vendors: Vec<_> = SIDES.into_iter().map(vendor).collect();
    let urls: Vec<_> =
        SIDES.into_iter().zip(vendors.iter().map(|(server, _)| server.url())).collect();
    let own = Usage { input: 500, output: 20, ..Usage::default() };
    let spawns = Script::text([""; 0]).with_call("call_a", "elf_spawn", tasks()).with_usage(own);
    let ends = Script::text(["all looked"]).with_stop(StopReason::EndTurn).with_usage(own);
    let replies = [Wire::OpenAi.stream_reply(&spawns), Wire::OpenAi.stream_reply(&ends)];
    let world = home(Server::start_with_replies(replies).unwrap(), &urls);
    let run = world.run(&["have three look at it"]).await;
    is_done(&run);

    let (mut bill, mut first) = (PRICE.cost_micro_usd(&own) * 2, Vec::new());
    for ((name, ..), (_, books)) in SIDES.iter().zip(&vendors) {
        let books = books.lock().unwrap();
        assert_eq!(books.violations, Vec::<String>::new(), "{name}");
        assert_eq!(books.asked.len(), 2, "{name}");
        bill += books.bill.iter().map(|usage| PRICE.cost_micro_usd(usage)).sum::<u64>();
        first.push(books.asked[0].0);
        // Its own task and its own result, and nothing of the others.
        for (_, body) in &books.asked {
            assert!(body.contains(&format!("look at a.txt, {name}")), "{body}");
            let others = SIDES.iter().filter(|(other, ..)| other != name);
            for (other, ..) in others {
                assert!(!body.contains(&format!("a.txt, {other}")), "{name} knows of {other}");
            }
            assert!(!body.contains("have three look"), "{name} knows what the person said");
            assert!(!body.contains("elf_spawn"), "{name} may not start elfs");
        }
    }
    let (earliest, latest) = (first.iter().min().unwrap(), first.iter().max().unwrap());
    assert!(*latest - *earliest < ANSWER, "all are asked before the first has answered");

    let told = told(&world);
    assert!(told.starts_with("3 of 3 elfs completed for $"), "{told}");
    for (name, _, _, model, _) in SIDES {
        assert!(told.contains(&format!("of=\"{name}\">\n{name} has read it")), "{told}");
        assert!(told.contains(&format!("- `{name}`: completed · ")), "{told}");
        assert!(told.contains(&format!("{name}/{model} · 2 calls")), "{told}");
    }
    assert_eq!(spent(&world).await, bill, "to the micro-dollar");
    let sums: u64 = vendors
        .iter()
        .flat_map(|(_, books)| books.lock().unwrap().bill.clone())
        .map(|usage| PRICE.cost_micro_usd(&usage))
        .sum();
    let text = format!("${}.{:06}", sums / 1_000_000, sums % 1_000_000);
    assert!(told.contains(text.trim_end_matches('0')), "{text}: {told}");
}

#[tokio::test]
async fn an_elf_of_a_vendor_that_is_gone_fails_in_a_sentence_and_the_others_go_on() {
    let (alive, books) = vendor(SIDES[0]);
    let gone = Server::unused_address().unwrap();
    let urls = [(SIDES[0], alive.url()), (SIDES[2], gone)];
    let tasks = r#"{"tasks":[{"task":"look","name":"alpha","provider":"alpha"},
        {"task":"look","name":"gamma","provider":"gamma"},{"task":"look","model":"nobody/none"},
        {"task":"look","name":"out","folder":".."}]}"#;
    let world =
        home(Server::start_with_replies([calls("elf_spawn", tasks), says("done")]).unwrap(), &urls);
    is_done(&world.run(&["look at it"]).await);
    let told = told(&world);
    assert!(told.starts_with("1 of 4 elfs completed"), "{told}");
    assert!(told.contains("alpha has read it") && told.contains("- `gamma`: failed ("), "{told}");
    assert!(told.contains("`nobody/none` is not one of this session's models: "), "{told}");
    assert!(told.contains("is outside the folders of the calling session"), "{told}");
    assert_eq!(books.lock().unwrap().violations, Vec::<String>::new());
}

#[tokio::test]
async fn an_elf_has_the_prompt_and_the_tools_of_its_agent() {
    let spawn = r#"{"tasks":[{"task":"look","agent":"reader"}]}"#;
    let writes = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let replies = [calls("elf_spawn", spawn), writes, says("looked"), says("done")];
    let world = World::new(replies);
    let folder = world.home.path().join(".config/gnoma/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: reader\ndescription: reads\ntools: Read, Grep\nmodel: inherit\n---\nYou read.\n";
    std::fs::write(folder.join("reader.md"), text).unwrap();
    is_done(&world.run(&["--permission", "bypass", "look at it"]).await);
    let requests = world.server.requests();
    let first = requests[0].json().to_string();
    assert!(first.contains("- reader: reads"), "the model is told of it");
    let of_elf = requests[1].json();
    let names: Vec<_> = of_elf["tools"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let system = of_elf["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("You are an elf") && system.ends_with("You read."), "{system}");
    assert!(!world.project.path().join("b.txt").exists(), "it has no tool that writes");
    assert!(told(&world).starts_with("elf `reader`: completed"), "{}", told(&world));
}

#[tokio::test]
async fn an_elf_of_an_elf_has_no_more_tools_than_the_elf() {
    let spawn = r#"{"tasks":[{"task":"look","tools":["fs.read","elf.spawn"],"may_spawn":true}]}"#;
    let deeper = r#"{"tasks":[{"task":"write it"}]}"#;
    let writes = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let replies = [
        calls("elf_spawn", spawn),
        calls("elf_spawn", deeper),
        writes,
        says("no"),
        says("no"),
        says("done"),
    ];
    let world = World::new(replies);
    is_done(&world.run(&["--permission", "bypass", "look at it"]).await);
    assert!(!world.project.path().join("b.txt").exists(), "no elf below has a tool that writes");
    let refused = world.server.requests()[3].json().to_string();
    assert!(refused.contains("given only these tools: fs.read, elf.spawn"), "{refused}");
}

#[tokio::test]
async fn subagent_start_and_stop_hooks_run_for_an_elf() {
    let spawn = || calls("elf_spawn", r#"{"tasks":[{"task":"look","name":"seen"}]}"#);
    let world = World::new([spawn(), says("done"), spawn(), says("looked"), says("done")]);
    let hook = |event: &str, exec: &str| {
        format!("[[hooks]]\nname = \"mine\"\nevent = \"{event}\"\nexec = \"{exec}\"\n")
    };
    world.configure(&hook("subagent_start", "exit 2"));
    is_done(&world.run(&["look at it"]).await);
    assert!(told(&world).contains("a hook refused to start it"), "{}", told(&world));
    assert_eq!(world.server.requests().len(), 2);
    world.configure(&hook("subagent_stop", "cat > stopped.json"));
    is_done(&world.run(&["look at it"]).await);
    let seen: Value = serde_json::from_str(&world.read("stopped.json")).unwrap();
    assert_eq!((&seen["agent"], &seen["output"]), (&"seen".into(), &"looked".into()));
}

#[tokio::test]
async fn subagent_stop_hook_runs_when_an_elf_stops_with_its_parent() {
    let answer = |request: &Request| {
        let body = request.json().to_string();
        match (body.contains("You are an elf"), body.contains("started `slow`")) {
            (true, _) => says("too late").with_delay(Duration::from_secs(30)),
            (false, true) => says("done").with_delay(ANSWER),
            (false, false) => {
                let tasks = r#"{"tasks":[{"task":"look","name":"slow"}],"background":true}"#;
                calls("elf_spawn", tasks)
            }
        }
    };
    let world = World::with(Server::start(answer).unwrap());
    world.configure(
        "[[hooks]]\nname = \"mine\"\nevent = \"subagent_stop\"\nexec = \"cat > stopped.json\"\n",
    );
    let hook = r#"{"hooks":{"SubagentStop":[{"hooks":[{"type":"command","command":"cat > theirs.json"}]}]}}"#;
    world.put_home(".claude/settings.json", hook);
    is_done(&world.run(&["look at it"]).await);
    let seen: Value = serde_json::from_str(&world.read("stopped.json")).unwrap();
    assert_eq!((&seen["agent"], &seen["output"]), (&"slow".into(), &"it was stopped".into()));
    let seen: Value = serde_json::from_str(&world.read("theirs.json")).unwrap();
    assert!(seen["agent_id"].as_str().is_some_and(|id| !id.is_empty()), "{seen}");
    assert_eq!(seen["agent_type"], "slow");
}

#[tokio::test]
async fn stream_json_has_the_lines_of_elfs_with_the_call_that_started_them() {
    let spawn = r#"{"tasks":[{"task":"look at a.txt","name":"seen"}]}"#;
    let reads = calls("fs_read", r#"{"path":"a.txt"}"#).with_delay(Duration::from_millis(100));
    let world = World::new([calls("elf_spawn", spawn), reads, says("looked"), says("done")]);
    world.write("a.txt", "one\n");
    let run = world.run(&["--output-format", "stream-json", "look at it"]).await;
    is_done(&run);
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_elf: Vec<_> = lines.iter().filter(|line| !line["elf"].is_null()).collect();
    let main = &lines.last().unwrap()["session_id"];
    assert!(of_elf.iter().all(|line| line["parent_tool_use_id"] == "call_a"), "{of_elf:?}");
    assert!(of_elf.iter().all(|line| line["session_id"] == *main), "{of_elf:?}");
    assert!(of_elf.iter().all(|line| line["elf"]["name"] == "seen"), "{of_elf:?}");
    let said: Vec<_> = of_elf
        .iter()
        .filter(|line| line["type"] == "assistant" || line["type"] == "user")
        .map(|line| line["message"]["content"][0]["type"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["text", "tool_use", "tool_result", "text"]);
    let results = lines.iter().filter(|line| line["type"] == "result");
    assert_eq!(results.count(), 1);
    let own = lines.iter().filter(|line| line["type"] == "assistant" && line["elf"].is_null());
    assert!(
        own.clone().count() == 2 && own.into_iter().all(|it| it["parent_tool_use_id"].is_null())
    );
}

#[tokio::test]
async fn a_session_works_as_the_bundled_coordinator() {
    let world =
        World::new([calls("elf_spawn", r#"{"tasks":["look"]}"#), says("looked"), says("done")]);
    is_done(&world.run(&["--agent", "coordinator", "look at it"]).await);
    let system = |at: usize| {
        let request = world.server.requests()[at].json();
        request["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    assert!(system(0).contains("You coordinate: elfs do the work"), "{}", system(0));
    assert!(!system(1).contains("You coordinate"), "its elfs are none: {}", system(1));
    let listed = world.run(&["agents", "list"]).await.out;
    assert!(listed.contains("coordinator  bundled"), "{listed}");
    let unknown = world.run(&["--agent", "nobody", "look at it"]).await;
    assert!(
        unknown.code != Some(0) && unknown.err.contains("choose one of: coordinator"),
        "{unknown:?}"
    );
}
