//! Elfs in a host: side by side and in the background, asked for, spoken to, stopped; nothing of them is
//! left when their parent is gone.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Event, Message, Provider,
    ledger::{Ledger as _, Total},
    protocol::{Overrides, Question, Recent, Reply, Request, RequestErrorKind, SessionSpec, Topic},
    session::{PermissionAnswer, PermissionMode, SessionState},
    store::SessionId,
    tool::Access,
};
use gnoma_host::live::Host;
use gnoma_router::pool::Caps;
use gnoma_testkit::{FakeLedger, FakeTool};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    obedient::{Asked, Obedient, words},
    support::{Window, World, kept, kind, say, truth, writer},
};

/// Nothing takes longer that waits for nobody.
const QUIET: Duration = Duration::from_secs(60);
/// Random walks.
const WALKS: u32 = 24;
/// Steps of one.
const STEPS: usize = 25;

struct Family {
    host: Host,
    window: Window,
    writer: FakeTool,
    ledger: FakeLedger,
    asked: Asked,
    parent: SessionId,
}

fn tasks(tasks: &[&str], background: bool) -> String {
    let tasks: Vec<Value> = tasks.iter().map(|task| json!({ "task": task })).collect();
    format!("spawn {}", json!({ "tasks": tasks, "background": background }))
}

fn elf(action: &str, names: &[&str]) -> String {
    format!("elf {}", json!({ "action": action, "names": names, "text": "be quick" }))
}

impl Family {
    async fn new(mode: PermissionMode, interactive: bool) -> Self {
        Self::with(writer(), mode, interactive).await
    }

    async fn with(writer: FakeTool, mode: PermissionMode, interactive: bool) -> Self {
        let (ledger, asked) = (FakeLedger::default(), Asked::default());
        let given = Arc::clone(&asked);
        let make = Box::new(move |_: &SessionId| {
            Arc::new(Obedient(Arc::clone(&given))) as Arc<dyn Provider>
        });
        let spending = (ledger.clone(), Caps::default());
        let world = World::spending(make, vec![Arc::new(writer.clone())], spending).with_elfs();
        let host = world.host();
        let mut window = Window::new(&host, "person");
        let overrides = Overrides { mode: Some(mode), ..Overrides::default() };
        let parent = window.open(SessionSpec { overrides, interactive, ..kept() }).await;
        window.attach(&parent).await;
        Self { host, window, writer, ledger, asked, parent }
    }

    async fn say(&mut self, text: &str) {
        let parent = self.parent.clone();
        self.window.ask(Some(&parent), say(text)).await.unwrap();
    }

    /// Says something and waits for the end of the turn: its last words.
    async fn turn(&mut self, text: &str) -> String {
        let parent = self.parent.clone();
        self.window.turn(&parent, text).await;
        self.messages().await.last().unwrap().text_content()
    }

    async fn messages(&mut self) -> Vec<Arc<Message>> {
        let parent = self.parent.clone();
        let all = Request::History { before: None, max: 1_000 };
        match self.window.ask(Some(&parent), all).await {
            Ok(Reply::History { messages, .. }) => messages,
            other => panic!("{other:?}"),
        }
    }

    fn living(&self) -> usize {
        self.host.sessions().len()
    }

    async fn until_living(&mut self, count: usize) {
        for _ in 0..2_000 {
            if self.living() == count {
                return;
            }
            self.window.settle(Duration::from_millis(5)).await;
        }
        panic!("{} live, not {count}", self.living());
    }

    /// The question that the parent is asked.
    async fn question(&mut self) -> Question {
        let parent = self.parent.clone();
        self.window.until(|own| own.views[&parent].questions().next().is_some()).await;
        self.window.views[&parent].questions().next().unwrap().clone()
    }

    async fn answer(&mut self, question: Question, answer: PermissionAnswer) {
        let (parent, call) = (self.parent.clone(), question.call.id);
        self.window.ask(Some(&parent), Request::Answer { call, answer }).await.unwrap();
    }

    fn notices(&self) -> String {
        let recent = self.window.views[&self.parent].recent.iter();
        let notice = |recent: &Recent| match &recent.event {
            Event::Notice { text, .. } => Some(text.clone()),
            _ => None,
        };
        recent.filter_map(notice).collect::<Vec<_>>().join("\n")
    }

    async fn micro_usd(&self) -> u64 {
        let totals = self.ledger.daily_totals(0).await.unwrap();
        totals.iter().map(|Total { amount, .. }| amount.micro_usd).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn elfs_run_in_parallel_and_a_failure_does_not_stop_the_others() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    let begun = tokio::time::Instant::now();
    let told = family.turn(&tasks(&["nap one", "fail", "nap two"], false)).await;
    assert!(begun.elapsed() < Duration::from_secs(6), "side by side: {:?}", begun.elapsed());
    assert!(told.starts_with("2 of 3 elfs completed for $0.018\n"), "{told}");
    assert!(
        told.contains("of=\"elf-1\">\nsaid nap one")
            && told.contains("of=\"elf-3\">\nsaid nap two"),
        "{told}"
    );
    assert!(told.contains("- `elf-2`: failed") && told.contains("as told"), "{told}");
    // Each knows its own task and nothing else, and all that was asked was paid.
    let asked = family.asked.lock().unwrap().clone();
    let of_elfs: Vec<_> =
        asked.iter().filter(|(who, _)| !who.ends_with(family.parent.as_str())).collect();
    assert!(of_elfs.iter().all(|(_, texts)| texts.len() == 1), "{of_elfs:?}");
    assert_eq!(family.living(), 1);
    assert_eq!(family.micro_usd().await, 5 * 6_000);
}

#[tokio::test(start_paused = true)]
async fn background_elf_outlives_the_turn_and_reports_with_the_next_message() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    let told = family.turn(&tasks(&["nap"], true)).await;
    assert!(told.starts_with("started `elf-1`"), "{told}");
    assert_eq!(family.living(), 2);
    let status = family.turn(&elf("status", &[])).await;
    assert!(status.contains("- `elf-1` (nap): working"), "{status}");
    family.until_living(1).await;
    family.window.settle(QUIET).await;
    assert!(family.notices().contains("elf `elf-1`: completed"), "{}", family.notices());
    let before = family.asked.lock().unwrap().len();
    assert_eq!(family.turn("hello").await, "said hello");
    let asked = family.asked.lock().unwrap()[before].1.clone();
    let news = &asked[asked.len() - 2];
    assert!(news.starts_with("[system] elf `elf-1`: completed"), "{asked:?}");
    let result = family.turn(&elf("wait", &[])).await;
    assert!(result.contains("said nap"), "{result}");
    let again = family.turn(&elf("wait", &["elf-1"])).await;
    assert_eq!(again, "the result of elf `elf-1` was already delivered");
}

#[tokio::test(start_paused = true)]
async fn rewind_ends_background_elfs_and_new_ones_can_start() {
    let deaf = FakeTool::new_unstoppable("write", Access::Edit);
    let mut family = Family::with(deaf, PermissionMode::Bypass, true).await;
    family.turn(&tasks(&["write"], true)).await;
    family.window.settle(Duration::from_millis(50)).await;
    assert_eq!(family.living(), 2);
    let rewind = Request::Rewind { turns: 1, files: true, conversation: true };
    let parent = family.parent.clone();
    family.window.ask(Some(&parent), rewind).await.unwrap();
    assert_eq!(family.living(), 1, "the elf has ended");
    let told = family.turn(&tasks(&["hello"], false)).await;
    assert!(told.contains("said hello"), "elfs can be started again: {told}");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_foreign_session_or_an_elf_is_rejected() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    family.turn(&tasks(&["hang"], true)).await;
    let ids: Vec<SessionId> =
        family.host.sessions().into_iter().map(|live| live.status.session).collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        let own = if id == family.parent { "/elsewhere".into() } else { kept().folder };
        let spec = SessionSpec { folder: own, ..kept() };
        let outcome = family.window.ask(None, Request::Delete { spec: Box::new(spec), id }).await;
        assert_eq!(kind(outcome), RequestErrorKind::NoSession);
    }
    family.window.settle(QUIET).await;
    assert_eq!(family.living(), 2);
}

#[tokio::test(start_paused = true)]
async fn elf_result_reaches_a_busy_parent_once() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    family.turn(&tasks(&["nap", "hang"], true)).await;
    // The first ends while the parent waits for the second, in vain.
    let told = family.turn(r#"elf {"action":"wait","max_seconds":5}"#).await;
    assert!(told.starts_with("still at work: elf-2\n") && told.contains("said nap"), "{told}");
    let gone = family.turn(&elf("send", &["elf-1"])).await;
    assert_eq!(gone, "the result of elf `elf-1` was already delivered");
    let told = family.turn(&elf("cancel", &["elf-2"])).await;
    assert!(told.contains("elf `elf-2`: cancelled (as asked)"), "{told}");
    let texts: Vec<_> = family.messages().await.iter().map(|one| words(one)).collect();
    assert!(!texts.iter().any(|text| text.starts_with("[system]")), "{texts:?}");
    assert_eq!(family.living(), 1);
}

#[tokio::test(start_paused = true)]
async fn elf_result_is_reported_after_a_cancelled_wait() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    family.turn(&tasks(&["nap", "hang"], true)).await;
    family.say(&elf("wait", &[])).await;
    family.until_living(2).await;
    let parent = family.parent.clone();
    family.window.ask(Some(&parent), Request::Cancel).await.unwrap();
    family.window.settle(QUIET).await;
    let before = family.asked.lock().unwrap().len();
    family.turn("hello").await;
    let asked = family.asked.lock().unwrap()[before].1.join("\n");
    assert!(asked.contains("\nelf `elf-1`: completed"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn unread_elf_results_over_the_limit_are_reduced_to_one_line() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    for _ in 0..7 {
        family.turn(&tasks(&["hello"; 10], true)).await;
        family.until_living(1).await;
    }
    let status = family.turn(&elf("status", &[])).await;
    assert_eq!(status.lines().count(), 70, "{status}");
    let left = "; its result began: said hello; unread, and only this line was saved";
    assert!(status.contains("- `elf-1`: completed · ") && status.contains(left), "{status}");
    let told = family.turn(&elf("wait", &["elf-1"])).await;
    assert!(told.contains("was older than 64 unread") && told.ends_with("said hello"), "{told}");
    let told = family.turn(&elf("wait", &["elf-70"])).await;
    assert!(told.starts_with("elf `elf-70`: completed"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn message_is_sent_to_a_running_elf() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    family.turn(&tasks(&["nap"], true)).await;
    let told = family.turn(&elf("send", &["elf-1"])).await;
    assert_eq!(told, "sent to elf `elf-1`, which reads it if it calls its model again");
    let told = family.turn(&elf("wait", &[])).await;
    assert!(told.contains("\nsaid be quick\n"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn background_elf_permission_question_reaches_the_user_at_any_time() {
    for allow in [true, false] {
        let mut family = Family::new(PermissionMode::Auto, true).await;
        family.turn(&tasks(&["write"], true)).await;
        let question = family.question().await;
        assert!(question.reason.contains("elf `elf-1` needs approval for `write`"), "{question:?}");
        // It is still asked while a turn runs and when that is over.
        family.turn("hello").await;
        let again = family.question().await;
        assert_eq!((&again.call.id, again.preview.as_deref()), (&question.call.id, Some("{}")));
        assert_eq!(truth(&family.host, &family.parent).await.questions().count(), 1);
        let no = PermissionAnswer::Deny { reason: "no".to_owned() };
        family.answer(again, if allow { PermissionAnswer::Allow } else { no }).await;
        family.until_living(1).await;
        let told = family.turn(&elf("wait", &[])).await;
        assert_eq!(
            (family.writer.calls().len(), told.contains("done")),
            (usize::from(allow), allow)
        );
        assert!(allow || told.contains("permission denied"), "{told}");
        assert_eq!(family.window.views[&family.parent].questions().count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_elf_withdraws_its_permission_question() {
    for background in [true, false] {
        let mut family = Family::new(PermissionMode::Auto, true).await;
        family.say(&tasks(&["write"], background)).await;
        let question = family.question().await;
        if background {
            let told = family.turn(&elf("cancel", &["elf-1"])).await;
            assert!(told.contains("cancelled"), "{told}");
        } else {
            let parent = family.parent.clone();
            family.window.ask(Some(&parent), Request::Cancel).await.unwrap();
        }
        family.until_living(1).await;
        family.window.settle(QUIET).await;
        assert_eq!(family.window.views[&family.parent].questions().count(), 0, "{background}");
        assert_eq!(truth(&family.host, &family.parent).await.questions().count(), 0);
        let (parent, call) = (family.parent.clone(), question.call.id);
        let answer = PermissionAnswer::Allow;
        let _too_late = family.window.ask(Some(&parent), Request::Answer { call, answer }).await;
        assert!(family.turn("hello").await.ends_with("said hello"));
        assert!(family.writer.calls().is_empty(), "{background}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_or_closing_the_parent_ends_all_nested_elfs() {
    for end in [Request::Cancel, Request::Close] {
        for background in [true, false] {
            let mut family = Family::new(PermissionMode::Bypass, true).await;
            let below = json!({"tasks": [{"task": "hang"}], "background": background});
            let task = json!({"task": format!("spawn {below}"), "may_spawn": true});
            let all = json!({"tasks": [task, "hang"], "background": background});
            family.say(&format!("spawn {all}")).await;
            // An elf in the background ends with the elf that started it.
            family.until_living(if background { 2 } else { 4 }).await;
            let parent = family.parent.clone();
            family.window.ask(Some(&parent), end.clone()).await.unwrap();
            family.window.settle(QUIET).await;
            assert_eq!(family.living(), usize::from(end == Request::Cancel));
            if end == Request::Cancel {
                assert!(family.turn("hello").await.ends_with("said hello"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn elf_time_and_cost_limits_apply_and_invalid_starts_are_rejected() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    let late = json!({"tasks": [{"task": "hang", "max_seconds": 3}]});
    let told = family.turn(&format!("spawn {late}")).await;
    assert!(told.starts_with("elf `elf-1`: cancelled (its time limit of 3s is over)"), "{told}");
    let poor = json!({"tasks": [{"task": "hello", "max_usd": 0.0}]});
    let told = family.turn(&format!("spawn {poor}")).await;
    assert!(told.contains("failed") && told.contains("session"), "{told}");
    let inner = json!({"tasks": ["hello"]});
    let told = family.turn(&tasks(&[&format!("spawn {inner}")], false)).await;
    assert!(told.contains("unknown tool: elf.spawn"), "only where the parent said so: {told}");
    let told = family.turn(&tasks(&["x"; 11], false)).await;
    assert_eq!(told, "one call starts 1 to 10 elfs, not 11; nothing was started");
    assert_eq!(family.living(), 1);
}

#[tokio::test(start_paused = true)]
async fn elfs_are_listed_as_a_tree_and_can_be_cancelled_by_name() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    let parent = family.parent.clone();
    let shown = Request::Explain(Topic::Elfs);
    let told = family.window.ask(Some(&parent), shown.clone()).await;
    assert_eq!(told, Ok(Reply::Text("no elfs are at work".to_owned())));
    let below = json!({"tasks": [{"task": "hang", "name": "below"}, "hello"]});
    let above = json!({"task": format!("spawn {below}"), "name": "above", "may_spawn": true});
    family.turn(&format!("spawn {}", json!({"tasks": [above, "hang"], "background": true}))).await;
    family.until_living(4).await;
    family.window.settle(Duration::from_secs(1)).await;
    let Ok(Reply::Text(told)) = family.window.ask(Some(&parent), shown.clone()).await else {
        panic!()
    };
    let lines: Vec<_> = told.lines().collect();
    assert!(lines[0].starts_with("above · obedient/m · Start elfs"), "{told}");
    assert!(lines[1].starts_with("  below · obedient/m · waiting for the model"), "{told}");
    assert!(lines[2].starts_with("elf-1 · "), "{told}");
    assert!(lines[0].contains(" · $0.0060 ($0.0120 with its elfs) · "), "{told}");
    let cancel = |name: &str| Request::CancelElf { name: name.to_owned() };
    let none = family.window.ask(Some(&parent), cancel("nobody")).await;
    assert_eq!(none.unwrap_err().cause, "no elf `nobody` is at work");
    family.window.ask(Some(&parent), cancel("below")).await.unwrap();
    family.until_living(2).await;
    let told = family.turn(&elf("wait", &["above"])).await;
    assert!(told.contains("elf `above`: completed"), "it goes on with what is left: {told}");
    assert!(told.contains("- `below`: cancelled (by the user)"), "{told}");
    assert!(told.contains(" · $0.012 ($0.018031 with its elfs)\n"), "{told}");
}

/// Whoever reads that it was started looks for it at once.
#[tokio::test(start_paused = true)]
async fn starting_elf_can_be_listed_watched_and_cancelled() {
    let mut family = Family::new(PermissionMode::Bypass, true).await;
    let parent = family.parent.clone();
    let late = json!({"tasks": [{"task": "hang", "name": "late"}], "background": true});
    family.turn(&format!("spawn {late}")).await;
    assert_eq!(family.living(), 1, "it has no session yet");
    let told = family.window.ask(Some(&parent), Request::Explain(Topic::Elfs)).await;
    assert_eq!(told, Ok(Reply::Text("late · starting".to_owned())));
    let name = || "late".to_owned();
    let watched = family.window.ask(Some(&parent), Request::WatchElf { name: name() }).await;
    assert!(matches!(watched, Ok(Reply::Opened { .. })), "{watched:?}");
    family.window.ask(Some(&parent), Request::CancelElf { name: name() }).await.unwrap();
    family.until_living(1).await;
}

#[derive(Clone, Debug)]
enum Step {
    Spawn(Vec<&'static str>, bool),
    Speak(&'static str, usize),
    Cancel,
    Answer(bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let task = prop_oneof![Just("hello"), Just("write"), Just("fail"), Just("hang"), Just("nap")];
    let action = prop_oneof![Just("send"), Just("cancel"), Just("status"), Just("wait")];
    prop_oneof![
        4 => (prop::collection::vec(task, 1..4), any::<bool>())
            .prop_map(|(tasks, background)| Step::Spawn(tasks, background)),
        4 => (action, 0_usize..6).prop_map(|(action, which)| Step::Speak(action, which)),
        1 => Just(Step::Cancel),
        4 => any::<bool>().prop_map(Step::Answer),
        5 => (0_u64..1_500).prop_map(Step::Wait),
    ]
}

async fn walk(steps: Vec<Step>) {
    let mut family = Family::new(PermissionMode::Auto, true).await;
    let parent = family.parent.clone();
    for step in steps {
        let request = match step {
            Step::Spawn(of, background) => say(&tasks(&of, background)),
            Step::Speak(action, 0) => say(&elf(action, &[])),
            Step::Speak(action, which) => say(&elf(action, &[&format!("elf-{which}")])),
            Step::Cancel => Request::Cancel,
            Step::Wait(ms) => {
                family.window.settle(Duration::from_millis(ms)).await;
                continue;
            }
            Step::Answer(allow) => {
                let view = truth(&family.host, &parent).await;
                let Some(question) = view.questions().next() else { continue };
                let no = PermissionAnswer::Deny { reason: String::new() };
                let answer = if allow { PermissionAnswer::Allow } else { no };
                Request::Answer { call: question.call.id.clone(), answer }
            }
        };
        let _too_late = family.window.ask(Some(&parent), request).await;
    }
    let _idle = family.window.ask(Some(&parent), Request::Cancel).await;
    family.window.settle(QUIET).await;
    assert_eq!(family.living(), 1, "a cancel ends all that it started");
    assert_eq!(family.window.views[&parent].state, SessionState::Idle);
    assert_eq!(family.window.views[&parent].questions().count(), 0);
    let messages = family.messages().await;
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.tool_calls().map(|call| &call.id).collect();
        let results = messages.get(at + 1).map(|next| next.tool_results().collect::<Vec<_>>());
        let answered: Vec<_> = results.iter().flatten().map(|result| &result.call_id).collect();
        assert!(calls.is_empty() || calls == answered, "{calls:?}, {answered:?}");
    }
    assert!(family.ledger.held_reservations().is_empty(), "all is settled");
    family.window.ask(Some(&parent), Request::Close).await.unwrap();
    family.window.settle(QUIET).await;
    assert_eq!(family.living(), 0);
}

#[test]
fn random_elf_actions_give_each_call_one_result_and_leave_no_session() {
    let config =
        ProptestConfig { cases: WALKS, max_shrink_iters: 100, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), STEPS..=STEPS))| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(walk(steps));
    });
}
