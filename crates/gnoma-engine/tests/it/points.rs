//! Points of a session at which extensions listen beside the conversation: each is told when it comes, and what is
//! answered at one that can block counts.

use std::sync::{Arc, Mutex};

use gnoma_core::{
    Command, Event, ModelRef, ToolOutcome,
    lifecycle::{Lifecycle, Point, PointAnswer, PointKind, PreparedPrompt},
    session::PermissionMode,
    tool::{Access, BoxFuture},
};
use gnoma_engine::{PersistenceOptions, Routes, Session, connect_arm, session::Options};
use gnoma_guard::firewall::Connection;
use gnoma_testkit::{Answer, FakeProvider, FakeTool};
use tokio::time::{Duration, sleep};

use super::{Reply, Run, firewall, options};

/// Hooks that listen at some points, note what they are told, and block compaction if they are told to.
#[derive(Debug, Default)]
struct Listener {
    kinds: Vec<PointKind>,
    told: Mutex<Vec<Point>>,
    blocks: Mutex<Option<String>>,
}

impl Lifecycle for Listener {
    fn has_listener(&self, kind: PointKind) -> bool {
        self.kinds.contains(&kind)
    }

    fn run_hooks(&self, point: Point, _mode: PermissionMode) -> BoxFuture<'static, PointAnswer> {
        self.told.lock().unwrap().push(point);
        let block = self.blocks.lock().unwrap().clone();
        Box::pin(async { PointAnswer { block, ..PointAnswer::default() } })
    }

    fn prepare_prompt(
        &self,
        _text: String,
        _mode: PermissionMode,
        _starter: Option<String>,
    ) -> BoxFuture<'static, PreparedPrompt> {
        Box::pin(async { PreparedPrompt::default() })
    }

    fn held_to(&self) -> Option<Arc<[String]>> {
        None
    }

    fn hooks_told(&self) -> Vec<String> {
        Vec::new()
    }

    fn turn_ended(&self) {}
}

impl Listener {
    fn at(kinds: &[PointKind]) -> Arc<Self> {
        Arc::new(Self { kinds: kinds.to_vec(), ..Self::default() })
    }

    /// What was told since the last look.
    fn take(&self) -> Vec<Point> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

/// A call that changes something, and what is said after it.
fn writes() -> Vec<Answer> {
    vec![Answer::calls(&[("c1", "write", "{}")]), Answer::text("well then")]
}

fn begin(answers: Vec<Answer>, listener: &Arc<Listener>, mode: PermissionMode) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("done"));
    let options = options(
        Arc::new(Routes::with_single_arm(arm)),
        firewall(),
        vec![Arc::new(tool)],
        (mode, true),
        PersistenceOptions::default(),
        (Vec::new(), None),
    );
    let lifecycle = Some(Arc::clone(listener) as Arc<dyn Lifecycle>);
    let handle = Session::spawn(Options { lifecycle, ..options });
    Run { handle, provider }
}

async fn talk(run: &mut Run, times: usize) {
    for _ in 0..times {
        let words = "a long story about a parser that reads words one after the other and forgets none of them";
        run.provider.push(Answer::text(words));
        run.say(words);
        run.until_idle().await;
    }
}

async fn compact(run: &mut Run) -> Vec<Event> {
    assert!(run.handle.send_command(Command::Compact { focus: "names".to_owned() }));
    run.until(|event| matches!(event, Event::Compacted { .. } | Event::Notice { .. })).await
}

#[tokio::test(start_paused = true)]
async fn pre_compact_hook_can_block_and_post_compact_hook_gets_the_summary() {
    let listener = Listener::at(&[PointKind::BeforeCompaction, PointKind::AfterCompaction]);
    let mut run = begin(Vec::new(), &listener, PermissionMode::Auto);
    talk(&mut run, 4).await;
    assert!(listener.take().is_empty());

    *listener.blocks.lock().unwrap() = Some("not before the review".to_owned());
    let asked = run.provider.requests().len();
    let events = compact(&mut run).await;
    let told = |event: &Event| matches!(event, Event::Notice { text, .. } if text.contains("not before the review"));
    assert!(events.iter().any(told), "{events:?}");
    assert_eq!(run.provider.requests().len(), asked, "no summary was written");
    let before = Point::BeforeCompaction { is_asked: true, focus: "names".to_owned() };
    assert_eq!(listener.take(), std::slice::from_ref(&before));

    *listener.blocks.lock().unwrap() = None;
    run.provider.push(Answer::text("in short"));
    let events = compact(&mut run).await;
    assert!(matches!(events.last(), Some(Event::Compacted { .. })), "{events:?}");
    sleep(Duration::from_secs(1)).await;
    let told = listener.take();
    let [again, Point::AfterCompaction { summary }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(*again, before);
    assert!(summary.contains("in short"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn notification_hook_runs_for_a_permission_question() {
    let listener = Listener::at(&[PointKind::Notification, PointKind::PermissionDenied]);
    let mut run = begin(writes(), &listener, PermissionMode::Auto);
    run.say("write it");
    let events = run.until(|event| matches!(event, Event::PermissionAsked { .. })).await;
    let Some(Event::PermissionAsked { call, .. }) = events.last() else { panic!("{events:?}") };
    sleep(Duration::from_secs(1)).await;
    let text = "gnoma needs approval for write".to_owned();
    assert_eq!(listener.take(), [Point::Notification { text }]);

    // The person who denies a call knows it.
    let (call, reason) = (call.id.clone(), "not today".to_owned());
    assert!(run.handle.send_command(Command::Answer { call, answer: Reply::Deny { reason } }));
    run.until_idle().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(listener.take(), []);
}

#[tokio::test(start_paused = true)]
async fn permission_denied_hook_gets_the_call_and_the_reason() {
    let listener = Listener::at(&[PointKind::PermissionDenied]);
    let mut run = begin(writes(), &listener, PermissionMode::Plan);
    run.say("write it");
    run.until_idle().await;
    sleep(Duration::from_secs(1)).await;
    let told = listener.take();
    let [Point::PermissionDenied { call, reason }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(call.name, "write");
    assert!(reason.contains("plan"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn post_model_switch_hook_names_the_pinned_model_or_nothing() {
    let listener = Listener::at(&[PointKind::ModelSwitched]);
    let mut run = begin(Vec::new(), &listener, PermissionMode::Auto);
    let name = ModelRef { provider: "fake".into(), model: "m".into() };
    let unknown = ModelRef { provider: "fake".into(), model: "nobody".into() };
    for arm in [Some(name), Some(unknown), None] {
        assert!(run.handle.send_command(Command::Pin { arm }));
        run.until(|event| matches!(event, Event::Notice { .. })).await;
    }
    sleep(Duration::from_secs(1)).await;
    let named: Vec<_> = listener
        .take()
        .into_iter()
        .map(|point| match point {
            Point::ModelSwitched { to } => to,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(named, ["fake/m", ""]);
}

#[tokio::test(start_paused = true)]
async fn no_hook_runs_without_a_listener() {
    let listener = Listener::at(&[]);
    let mut run = begin(vec![Answer::text("hi")], &listener, PermissionMode::Auto);
    run.say("hello");
    run.until_idle().await;
    assert!(listener.take().is_empty());
}
