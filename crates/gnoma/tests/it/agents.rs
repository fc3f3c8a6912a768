//! Another program's agent as a model. The agent is a shell script that does what it is told to: each line
//! of a prompt is an order.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::json;

use crate::{
    acp::Editor,
    support::{Run, World, exists, says},
};

/// Nothing outlives the program by more.
const MAX_LINGER: Duration = Duration::from_secs(30);

/// Speaks the protocol. It notes each start and each line that it gets.
const AGENT: &str = r##"#!/bin/sh
here=$(dirname "$0")
echo $$ >> "$here/started"
[ -e "$here/mute" ] && exec sleep 100
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
update() {
  printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"
}
say() {
  update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"
}
ask() {
  printf '{"jsonrpc":"2.0","id":"q","method":"%s","params":%s}\n' "$1" "$2"
  IFS= read -r answer
  printf '%s\n' "$answer" >> "$here/got"
}
permission() {
  ask session/request_permission "{\"sessionId\":\"s1\",\"toolCall\":{\"toolCallId\":\"c1\",$1},\"options\":[{\"optionId\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"},{\"optionId\":\"n\",\"name\":\"No\",\"kind\":\"reject_once\"}]}"
}
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$here/got"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  stop=end_turn
  case $line in
    *'"method":"initialize"'*) reply "$id" '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*) reply "$id" '{"sessionId":"s1"}' ;;
    *'"method":"session/prompt"'*)
      case $line in
        *ORDER:run*)
          permission '"title":"Run it","kind":"execute","rawInput":{"command":"touch ran"}'
          case $answer in
            *'"optionId":"y"'*)
              touch ran
              update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"it ran"}}]}' ;;
            *) update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed"}' ;;
          esac ;;
        *ORDER:edit*)
          update '{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Change a.txt","kind":"edit","status":"in_progress"}'
          printf 'changed\n' > a.txt
          update '{"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"completed","content":[{"type":"diff","path":"a.txt","oldText":"first\n","newText":"changed\n"}]}' ;;
        *ORDER:write*) ask fs/write_text_file "{\"sessionId\":\"s1\",\"path\":\"$PWD/a.txt\",\"content\":\"written\\n\"}" ;;
        *ORDER:read*) ask fs/read_text_file "{\"sessionId\":\"s1\",\"path\":\"$PWD/a.txt\"}" ;;
        *ORDER:plan*)
          update '{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"act","status":"pending"}]}' ;;
        *ORDER:crash*) say 'half an ans'; echo 'out of memory' >&2; exit 3 ;;
        *ORDER:garbage*) i=0; while [ $i -lt 50 ]; do echo "npm warn $i"; i=$((i+1)); done; echo '{"jsonrpc":"2.0"'; echo '[1,2]' ;;
        *ORDER:flood*) head -c 100000000 /dev/zero | tr '\0' 'x'; echo ;;
        *ORDER:wait*)
          say 'waiting '
          while IFS= read -r answer; do
            printf '%s\n' "$answer" >> "$here/got"
            case $answer in *session/cancel*) stop=cancelled; break ;; esac
          done ;;
      esac
      say 'done\u001b[31m.'
      reply "$id" "{\"stopReason\":\"$stop\",\"usage\":{\"inputTokens\":70,\"outputTokens\":7}}" ;;
  esac
done
"##;

/// A world with an agent `fake`, and the folder that it lies in.
struct Hired {
    world: World,
    folder: tempfile::TempDir,
}

impl Hired {
    fn new() -> Self {
        Self::with([], "")
    }

    /// Beside the agent there is a model that answers with these. `more` in the agent's settings.
    fn with(replies: impl IntoIterator<Item = gnoma_testkit::Reply>, more: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(folder.path().join("agent.sh"), AGENT).unwrap();
        let hired = Self { world: World::new(replies).among_files(), folder };
        hired.world.configure(&format!(
            "[[cli_agents]]\nname = \"fake\"\ncommand = \"sh\"\nargs = [{}]\nwritable = [{}]\n{more}",
            json!(hired.at("agent.sh")),
            json!(hired.folder.path()),
        ));
        hired
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it was sent.
    fn got(&self) -> String {
        fs::read_to_string(self.at("got")).unwrap_or_default()
    }

    async fn says(&self, mode: &str, words: &str) -> Run {
        self.world.run(&["--model", "fake", "--permission", mode, words]).await
    }

    fn processes(&self) -> Vec<i32> {
        let started = fs::read_to_string(self.at("started")).unwrap_or_default();
        started.lines().map(|line| line.parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn cli_agent_runs_a_turn_and_its_output_is_sanitized() {
    let hired = Hired::new();
    assert!(hired.processes().is_empty(), "nothing is started before it is wanted");
    let run = hired.says("auto", "hello agent").await;
    assert_eq!((run.code, run.out.trim()), (Some(0), "done[31m."), "{run:?}");
    let got = hired.got();
    assert!(got.contains(r#""readTextFile":true"#) && got.contains(r#""terminal":false"#), "{got}");
    assert!(
        got.contains(r#"[{"text":"hello agent","type":"text"}]"#) || got.contains("hello agent")
    );
    assert_eq!(hired.world.server.requests().len(), 0, "no model was asked");
    // It ends with the program.
    let (one, since) = (hired.processes()[0], std::time::Instant::now());
    while std::path::Path::new(&format!("/proc/{one}/cmdline")).exists()
        && fs::read_to_string(format!("/proc/{one}/cmdline"))
            .is_ok_and(|it| it.contains("agent.sh"))
    {
        assert!(since.elapsed() < MAX_LINGER, "it goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn cli_agent_requests_follow_permission_rules() {
    let hired = Hired::new();
    let run = hired.says("auto", "ORDER:run").await;
    assert!(run.err.contains("nobody is there"), "unattended it is refused: {}", run.err);
    assert!(
        hired.got().contains(r#""optionId":"n""#) && !exists(hired.world.project.path(), "ran")
    );
    let rule = |action: &str, rule: &str| {
        format!("[[permission.rules]]\ntool = \"{rule}\"\naction = \"{action}\"\n")
    };
    let ways = [
        ("bypass", String::new(), true),
        ("plan", String::new(), false),
        ("auto", rule("allow", "bash(touch ran)"), true),
        ("bypass", rule("deny", "bash(touch *)"), false),
    ];
    for (mode, rules, runs) in ways {
        let hired = Hired::with([], &rules);
        let run = hired.says(mode, "ORDER:run").await;
        let has_run = exists(hired.world.project.path(), "ran");
        assert_eq!(has_run, runs, "{mode} {rules}: {run:?}");
        assert_eq!(hired.got().contains(r#""optionId":"y""#), runs, "{mode} {rules}");
    }
}

#[tokio::test]
async fn rewind_restores_files_that_a_cli_agent_changed_itself() {
    let hired = Hired::new();
    hired.world.write("a.txt", "first\n");
    let run = hired.says("auto", "ORDER:edit").await;
    assert_eq!((run.code, &*hired.world.read("a.txt")), (Some(0), "changed\n"), "{run:?}");
    let changes = hired.world.run(&["changes"]).await;
    assert!(changes.out.contains("a.txt"), "{changes:?}");
    let back = hired.world.run(&["rewind"]).await;
    assert_eq!((back.code, &*hired.world.read("a.txt")), (Some(0), "first\n"), "{back:?}");
}

#[tokio::test]
async fn cli_agent_cannot_change_files_in_plan_mode() {
    let hired = Hired::new();
    hired.world.write("a.txt", "first\n");
    let run = hired.says("plan", "ORDER:edit").await;
    assert_eq!(hired.world.read("a.txt"), "first\n", "{run:?}");
    let run = hired.says("plan", "ORDER:write").await;
    assert_eq!(hired.world.read("a.txt"), "first\n", "{run:?}");
    assert!(hired.got().contains("only reads run while planning"), "{}", hired.got());
}

#[tokio::test]
async fn cli_agent_file_access_redacts_secrets_and_can_be_rewound() {
    let token = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
    let hired = Hired::new();
    hired.world.write("a.txt", &format!("token = {token}\nlast\n"));
    let run = hired.says("auto", "ORDER:read").await;
    let got = hired.got();
    assert!(got.contains(r"last\n") && !got.contains(&token), "{run:?} {got}");
    hired.says("accept_edits", "ORDER:write").await;
    assert_eq!(hired.world.read("a.txt"), "written\n", "{}", hired.got());
    let back = hired.world.run(&["rewind"]).await;
    assert!(hired.world.read("a.txt").contains(&token), "{back:?}");
}

#[tokio::test]
async fn cli_agent_plan_becomes_the_session_plan() {
    let hired = Hired::new();
    let run =
        hired.world.run(&["--model", "fake", "--output-format", "stream-json", "ORDER:plan"]).await;
    assert!(run.out.contains("look") && run.out.contains("act"), "{run:?}");
    assert!(run.out.contains("70"), "its tokens are counted: {}", run.out);
}

#[tokio::test]
async fn cli_agent_gets_earlier_turns_as_text() {
    let hired = Hired::with([says("the answer is 42")], "");
    assert_eq!(hired.world.run(&["what is it?"]).await.code, Some(0));
    let run = hired.world.run(&["--continue", "--model", "fake", "go on"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let got = hired.got();
    for part in ["User: what is it?", "Assistant: the answer is 42", "go on"] {
        assert!(got.contains(part), "{part}: {got}");
    }
}

/// The router asks the agent first, and the model where it fails.
const FIRST: &str =
    "automatic = true\n[[router.rules]]\nname = \"agent first\"\nprefer = [\"agent/*\"]\n";

#[tokio::test]
async fn turn_fails_over_to_a_model_when_a_cli_agent_crashes() {
    for (order, why) in [
        ("ORDER:crash", "ended unexpectedly; its last output: out of memory"),
        ("ORDER:flood", "sent a message of more than 4 MB"),
    ] {
        let hired = Hired::with([says("I go on")], FIRST);
        let run = hired.world.run(&[order]).await;
        assert_eq!((run.code, run.out.contains("I go on")), (Some(0), true), "{run:?}");
        let told = hired.world.last_request();
        assert!(told.iter().any(|(_, text)| text.contains(order)), "{told:?}");
        assert_eq!(hired.processes().len(), 1, "it is not started again");
        let alone = hired.says("auto", order).await;
        assert_eq!(alone.code, Some(7), "{alone:?}");
        assert!(alone.err.contains(why), "{why}: {}", alone.err);
    }
}

#[tokio::test]
async fn router_never_picks_a_cli_agent_that_was_not_chosen() {
    let hired = Hired::with([says("by the model")], "");
    let run = hired.world.run(&["hello"]).await;
    assert!(run.out.contains("by the model"), "{run:?}");
    let models = hired.world.run(&["models"]).await;
    assert!(models.out.contains("agent/fake"), "{models:?}");
}

#[tokio::test]
async fn cli_agent_garbage_on_stdout_is_ignored() {
    let hired = Hired::new();
    let run = hired.says("auto", "ORDER:garbage").await;
    assert_eq!((run.code, run.out.contains("done")), (Some(0), true), "{run:?}");
}

#[tokio::test]
async fn missing_or_unresponsive_cli_agent_is_reported() {
    let world = World::new([]);
    world.configure("[[cli_agents]]\nname = \"gone\"\ncommand = \"no-such-agent\"\n");
    let run = world.run(&["--model", "gone", "hello"]).await;
    assert_eq!(run.code, Some(7), "{run:?}");
    assert!(run.err.contains("`no-such-agent` is not installed"), "{}", run.err);
    let run = world.run(&["--model", "agent/nosuch", "hello"]).await;
    assert_eq!((run.code, world.server.requests().len()), (Some(2), 0), "{run:?}");
    assert!(run.err.contains("there is no agent `nosuch`"), "{}", run.err);
    assert!(run.err.contains("there are: gone"), "{}", run.err);
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.out.contains("✗ gone: the program `no-such-agent`"), "{}", doctor.out);
    let hired = Hired::new();
    fs::write(hired.at("mute"), "").unwrap();
    let run = hired.says("auto", "hello").await;
    assert!(run.err.contains("did not answer within"), "{run:?}");
}

#[tokio::test]
async fn a_signal_ends_the_turn_of_an_agent() {
    let hired = Hired::new();
    let mut child = hired.world.command(&["--model", "fake", "ORDER:wait"]).spawn().unwrap();
    let since = std::time::Instant::now();
    while !hired.got().contains("ORDER:wait") {
        assert!(since.elapsed() < Duration::from_secs(30), "it does not begin");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    let status = ended.expect("it does not stop").unwrap();
    assert_eq!(status.code(), Some(130));
}

/// A session in an editor whose model is the agent.
async fn edited(hired: &Hired) -> (Editor, String) {
    let mut editor = Editor::start(&hired.world).await;
    let session = editor.session(&hired.world).await;
    let chosen = json!({ "sessionId": session, "configId": "model", "value": "agent/fake" });
    let chosen = editor.ask("session/set_config_option", chosen).await;
    assert!(chosen.get("error").is_none(), "{chosen}");
    (editor, session)
}

#[tokio::test]
async fn person_approves_or_denies_a_cli_agent_permission_request() {
    for (option, runs) in [("allow_once", true), ("reject_once", false)] {
        let hired = Hired::new();
        let (mut editor, session) = edited(&hired).await;
        let prompt = editor.prompt(&session, "ORDER:run").await;
        let asked = editor.until(|it| it["method"] == "session/request_permission").await;
        assert!(asked.to_string().contains("fake.run"), "the agent is named: {asked}");
        assert!(asked.to_string().contains("touch ran"), "{asked}");
        let options = asked["params"]["options"].as_array().unwrap();
        let chosen = options.iter().find(|it| it["kind"] == option).unwrap()["optionId"].clone();
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": chosen } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome });
        editor.write(&answer.to_string()).await;
        assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");
        assert_eq!(exists(hired.world.project.path(), "ran"), runs, "{option}");
        let told = editor.updates();
        let told = told.iter().map(ToString::to_string).collect::<String>();
        assert_eq!(told.contains("it ran"), runs, "{told}");
        editor.end().await;
    }
}

#[tokio::test]
async fn cli_agent_process_is_reused_across_turns_and_after_a_cancel() {
    let hired = Hired::new();
    let (mut editor, session) = edited(&hired).await;
    let first = editor.prompt(&session, "hello").await;
    assert_eq!(editor.answer(first).await["result"]["stopReason"], "end_turn");
    let waits = editor.prompt(&session, "ORDER:wait").await;
    editor.until(|it| it["params"]["update"]["content"]["text"] == "waiting ").await;
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(editor.answer(waits).await["result"]["stopReason"], "cancelled");
    // It is told, and has a moment to stop.
    let since = std::time::Instant::now();
    while !hired.got().contains("session/cancel") {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", hired.got());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let third = editor.prompt(&session, "and again").await;
    assert_eq!(editor.answer(third).await["result"]["stopReason"], "end_turn");
    assert_eq!(hired.processes().len(), 1, "{}", hired.got());
    let got = hired.got();
    let last = got.lines().last().unwrap_or_default();
    assert!(last.contains("and again") && !last.contains("hello"), "it knows the rest: {last}");
    // A question that was open when the turn was stopped is withdrawn.
    let asks = editor.prompt(&session, "ORDER:run").await;
    editor.until(|it| it["method"] == "session/request_permission").await;
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(editor.answer(asks).await["result"]["stopReason"], "cancelled");
    let last = editor.prompt(&session, "at last").await;
    assert_eq!(editor.answer(last).await["result"]["stopReason"], "end_turn");
    assert!(hired.got().contains(r#""outcome":"cancelled""#), "{}", hired.got());
    assert!(!exists(hired.world.project.path(), "ran"));
    editor.end().await;
}
