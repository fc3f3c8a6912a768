//! Two sessions over one set of arms: neither sees the other's secrets or placeholders.

use std::sync::Arc;

use gnoma_core::{
    Command, Content, Event, ToolOutcome,
    session::{PermissionMode, SessionState},
    tool::{Access, TouchedResource},
};
use gnoma_engine::{Handle, PersistenceOptions, Routes, connect_arm};
use gnoma_guard::{
    firewall::{self, Connection, Firewall, Policy},
    secrets::Scanner,
};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{MAX_WAIT, history, spawn};

/// A session, its own secret, and the tool that gets it.
struct Side {
    handle: Handle,
    secret: String,
    writer: FakeTool,
    provider: Arc<FakeProvider>,
    /// What stands in the requests of this session only.
    mark: &'static str,
}

fn side(
    routes: &Arc<Routes>,
    provider: &Arc<FakeProvider>,
    mark: &'static str,
    first_placeholder: u64,
) -> Side {
    let firewall = Arc::new(Firewall::new(firewall::FirewallOptions {
        scanner: Scanner::new(Default::default()).unwrap(),
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder,
    }));
    let writer = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("done"))
        .with_touches(TouchedResource::path("path"));
    let tools = vec![Arc::new(writer.clone()) as _];
    let mode = (PermissionMode::Bypass, false);
    let handle =
        spawn(Arc::clone(routes), firewall, tools, mode, PersistenceOptions::default(), Vec::new());
    let tail = if mark == "left" { "L5m6N7o8P9q0R1" } else { "R4m5N6o7P8q9R0" };
    let secret = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1", tail].concat();
    Side { handle, secret, writer, provider: Arc::clone(provider), mark }
}

impl Side {
    fn say(&self, text: &str) {
        let content = vec![Content::from_text(format!("{} {text}", self.mark))];
        assert!(self.handle.send_command(Command::Send { content }));
    }

    async fn until_idle(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while events.last() != Some(&Event::State(SessionState::Idle)) {
            let next = tokio::time::timeout(MAX_WAIT, self.handle.next()).await;
            events.push(next.expect("the session hangs").expect("the session closed"));
        }
        events
    }

    /// Tells the secret to the model and gives the placeholder that the model got for it.
    async fn tell_secret(&mut self) -> String {
        self.provider.push(Answer::text("I see"));
        self.say(&format!("my token is {}", self.secret));
        self.until_idle().await;
        let seen = self.sent().pop().unwrap();
        let start = seen.find("{{secret:").unwrap();
        let end = start + seen[start..].find("}}").unwrap() + 2;
        seen[start..end].to_owned()
    }

    /// The model writes `text`. Gives the tool's result.
    async fn write(&mut self, text: &str) -> String {
        let arguments = format!(r#"{{"path":"/a","content":"key = {text}"}}"#);
        self.provider.push(Answer::calls(&[("c", "write", &arguments)]));
        self.provider.push(Answer::text("ok"));
        self.say("go on");
        let events = self.until_idle().await;
        history(&events)[2].tool_results().next().unwrap().joined_text()
    }

    /// What was sent for this session.
    fn sent(&self) -> Vec<String> {
        let requests = self.provider.requests();
        let sent = requests.iter().map(|request| format!("{:?}", request.messages));
        sent.filter(|sent| sent.contains(self.mark)).collect()
    }
}

fn sides(firsts: [u64; 2]) -> [Side; 2] {
    let provider = Arc::new(FakeProvider::default());
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let routes = Arc::new(Routes::with_single_arm(arm));
    [side(&routes, &provider, "left", firsts[0]), side(&routes, &provider, "right", firsts[1])]
}

#[tokio::test(start_paused = true)]
async fn session_does_not_restore_another_sessions_secret_placeholder() {
    let [mut left, mut right] = sides([1, 5_000]);
    let (of_left, of_right) = (left.tell_secret().await, right.tell_secret().await);
    assert_ne!(of_left, of_right);

    for (side, own, foreign) in
        [(&mut left, &of_left, &of_right), (&mut right, &of_right, &of_left)]
    {
        let refused = side.write(foreign).await;
        assert!(refused.contains("does not stand for any secret of this session"), "{refused}");
        assert!(side.writer.calls().is_empty());
        assert_eq!(side.write(own).await, "done");
        assert!(side.writer.calls()[0].arguments.get().contains(&side.secret));
    }
}

#[tokio::test(start_paused = true)]
async fn request_contains_only_secret_placeholders_of_its_own_session() {
    let [mut left, mut right] = sides([1, 5_000]);
    let (of_left, of_right) = (left.tell_secret().await, right.tell_secret().await);
    for round in 0..3 {
        // Both at once, and every other time a summary of all of it is asked for as well.
        for side in [&left, &right] {
            side.provider.push(Answer::text("a long answer ".repeat(400)));
            side.say(&format!("again {round}: {}", side.secret));
        }
        left.until_idle().await;
        right.until_idle().await;
        for side in [&mut left, &mut right] {
            side.provider.push(Answer::text("in short"));
            assert!(side.handle.send_command(Command::Compact { focus: String::new() }));
            side.until_idle().await;
        }
    }
    for (side, own, other, foreign) in
        [(&left, &of_left, &right, &of_right), (&right, &of_right, &left, &of_left)]
    {
        let sent = side.sent();
        assert!(sent.len() > 4 && sent.iter().all(|sent| !sent.contains(foreign)));
        assert!(sent.iter().any(|sent| sent.contains(own)));
        assert!(
            sent.iter()
                .all(|sent| { !sent.contains(&side.secret) && !sent.contains(&other.secret) })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn equal_placeholders_in_two_sessions_restore_each_sessions_secret() {
    let [mut left, mut right] = sides([1, 1]);
    let (of_left, of_right) = (left.tell_secret().await, right.tell_secret().await);
    assert_eq!(of_left, of_right);
    for side in [&mut left, &mut right] {
        assert_eq!(side.write(&of_left).await, "done");
        assert!(side.writer.calls()[0].arguments.get().contains(&side.secret));
    }
}
