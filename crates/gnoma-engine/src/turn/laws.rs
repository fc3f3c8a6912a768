//! Random walks: every fact at any time, fitting, late, twice or out of the blue.

use std::collections::{BTreeMap, BTreeSet};

use gnoma_core::{
    Content, ErrorKind, ToolOutcome,
    lifecycle::{PointAnswer, PreparedPrompt, PromptCall, PromptPart},
    session::{PermissionAnswer as Reply, Scope},
    tool::{CommandReport, ToolOutput},
};

use super::{
    tests::steps::{assert_paired, turn},
    *,
};
use crate::{
    call::laws::{answers as answers_call, arm, failure, reply, stream_event},
    compaction,
    context::Strategy,
    dice::{Dice, walks},
    effect::{CallEffect, CompactionRequest, Effect, Timer},
    routing::verify::Finding,
};

/// Facts of a walk.
const STEPS: u64 = 64;
/// Facts after the end.
const LATE: u64 = 8;

/// A machine, and what the driver would be doing for it.
struct Walk {
    turn: Turn,
    dice: Dice,
    state: SessionState,
    /// Answers are owed to these wishes.
    waits: Option<Effect>,
    streams: bool,
    timer: Option<Timer>,
    /// A call to a model is not settled yet.
    is_owed: bool,
    judging: Vec<CallId>,
    running: BTreeSet<CallId>,
    /// How often a call was run, and how often it was let outside.
    runs: HashMap<CallId, (u32, u32)>,
    questions: BTreeSet<CallId>,
    ended: BTreeSet<CallId>,
    /// Ids of the answer that is being written, in order.
    drafted: Vec<CallId>,
    calls: u32,
    seen: BTreeMap<&'static str, u64>,
}

/// One wish of each kind.
fn wishes() -> [Effect; 9] {
    let error = failure(ErrorKind::ContextTooLong);
    let fails = CallEffect::FailOver { error, attempt: 1, has_content: false, was_called: true };
    let request = CompactionRequest {
        focus: String::new(),
        whatever_it_wins: true,
        strategy: Strategy::Full,
        is_asked: true,
    };
    [
        CallEffect::Choose.into(),
        CallEffect::Reserve { may_compact: true }.into(),
        fails.into(),
        Effect::Summarize(request),
        Effect::Confer,
        Effect::Check(Outcome::Cancelled),
        Effect::Conclude { finding: Finding::without_check(""), may_continue: true },
        Effect::Prepare(String::new()),
        Effect::BeforeStop { is_again: false, last_words: String::new() },
    ]
}

impl Walk {
    fn new(mut dice: Dice, seen: BTreeMap<&'static str, u64>) -> Self {
        let is_added = dice.one_in(3);
        let stops = ExtensionStops { prompts: is_added, commands: is_added, end: is_added };
        let turn = turn(Limits { rounds: 6, ..Limits::default() }).stopping_at(stops);
        Self {
            turn,
            dice,
            state: SessionState::Idle,
            waits: None,
            streams: false,
            timer: None,
            is_owed: false,
            judging: Vec::new(),
            running: BTreeSet::new(),
            runs: HashMap::new(),
            questions: BTreeSet::new(),
            ended: BTreeSet::new(),
            drafted: Vec::new(),
            calls: 0,
            seen,
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Mostly a fact that something was wished for, sometimes any other.
    fn input(&mut self) -> Input {
        if self.dice.one_in(5) {
            return self.any();
        }
        if let Some(wish) = self.waits.clone() {
            return self.reply(&wish);
        }
        if self.streams {
            return CallInput::Stream(stream_event(&mut self.dice, &mut self.calls)).into();
        }
        if let Some(call) = self.judging.first().cloned() {
            return self.judged(call);
        }
        if let Some(call) = self.questions.first().cloned() {
            return Input::Answered(call, self.answer());
        }
        if let Some(call) = self.running.first().cloned() {
            return self.run_of(call);
        }
        match self.timer {
            Some(Timer::Backoff) => CallInput::BackoffOver.into(),
            Some(Timer::Grace) => Input::GraceOver,
            None => self.any(),
        }
    }

    fn any(&mut self) -> Input {
        let call = self.dice.below(u64::from(self.calls) + 1);
        let call = CallId::new(format!("c{call}"));
        match self.dice.below(19) {
            18 => Input::SideUsage(Usage { input: 1, ..Usage::default() }),
            17 => Input::Run(SeparateWork::Checks(self.checks())),
            16 => Input::News("n".into()),
            13 => CallInput::Authored(arm("x")).into(),
            14 => Input::GraceOver,
            0 | 1 => Input::Say(Message::user_text("p")),
            2 => Input::Summary(SummaryCommand::Compact { focus: String::new() }),
            12 => {
                let was = if self.dice.one_in(2) {
                    Vec::new()
                } else {
                    vec![vec![Content::from_text("p")]]
                };
                Input::Queue { was, now: vec![Message::user_text("q")] }
            }
            3 => Input::Cancel,
            4 => CallInput::BackoffOver.into(),
            5 => CallInput::Stream(stream_event(&mut self.dice, &mut self.calls)).into(),
            6 | 15 => self.judged(call),
            7 => Input::Answered(call, self.answer()),
            8 | 9 => self.run_of(call),
            _ => {
                let wish = self.dice.pick(&wishes());
                self.reply(&wish)
            }
        }
    }

    fn reply(&mut self, wish: &Effect) -> Input {
        let dice = self.dice.below(4);
        match (wish, dice) {
            (Effect::Call(wish), _) => reply(&mut self.dice, wish).into(),
            (Effect::Summarize(_), _) => compaction::laws::reply(&mut self.dice).into(),
            (Effect::Prepare(_), _) => {
                Input::Prepared(Box::new(self.prepared(dice)), "bash".into())
            }
            (Effect::BeforeStop { .. }, _) => FinishInput::MayStop(Box::new(PointAnswer {
                block: (dice == 0).then(|| "go on".into()),
                ..PointAnswer::default()
            }))
            .into(),
            (Effect::Confer, _) => FinishInput::Conferred { note: "go".into() }.into(),
            (Effect::Check(_), 1 | 2) => FinishInput::Prove(self.checks()).into(),
            (Effect::Check(_), 3) | (Effect::Review, _) => {
                FinishInput::Found(Finding::without_check("w")).into()
            }
            (Effect::Conclude { .. }, 0) => {
                FinishInput::Checked(WorkCheckOutcome::Again { note: "no".into() }).into()
            }
            (_, _) => FinishInput::Checked(WorkCheckOutcome::Deliver).into(),
        }
    }

    fn checks(&mut self) -> Checks {
        Checks {
            tool: "bash".into(),
            commands: vec!["make".into(); usize::try_from(self.dice.below(3)).unwrap()],
            else_review: self.dice.one_in(2),
        }
    }

    fn prepared(&mut self, dice: u64) -> PreparedPrompt {
        let command = || PromptPart::Command("ls".into());
        PreparedPrompt {
            block: (dice == 0).then(|| "no".into()),
            parts: (dice > 1).then(|| vec![command(), PromptPart::Text(" x ".into()), command()]),
            call: self.dice.one_in(3).then(|| PromptCall {
                tool: "start".into(),
                arguments: serde_json::json!({ "task": "" }),
                words: "/task",
                done: "h".into(),
                failed: "f".into(),
            }),
            context: self.dice.one_in(2).then(|| "c".into()).into_iter().collect(),
            ..PreparedPrompt::default()
        }
    }

    fn verdict(&mut self) -> Verdict {
        let reason = String::from("r");
        match self.dice.below(5) {
            0 => Verdict::Deny { reason },
            1 => Verdict::Fail { text: reason },
            2 => Verdict::Ask { reason, preview: None, always: None, dangers: Vec::new() },
            _ => Verdict::Allow { reason },
        }
    }

    fn answer(&mut self) -> Reply {
        match self.dice.below(4) {
            0 => Reply::Allow,
            1 => Reply::Always,
            2 => Reply::Rule { rule: "bash(x)".into(), scope: Scope::Session },
            _ => Reply::Deny { reason: String::new() },
        }
    }

    fn run_of(&mut self, call: CallId) -> Input {
        let code = i32::from(self.dice.one_in(3));
        let report = CommandReport {
            command: "make".into(),
            exit_code: Some(code),
            walled: None,
            trial: None,
        };
        let text = format!("r{}", self.dice.below(99));
        let outcome = ToolOutcome::Done(ToolOutput {
            report: Some(report).filter(|_| !self.dice.one_in(4)),
            ..ToolOutput::from_text(text)
        });
        Input::ToolEnded {
            call,
            outcome,
            duration_ms: 1,
            sandbox_denial: self.dice.one_in(4).then(|| "w".into()),
            stop_after: self.dice.one_in(16).then(|| "w".into()),
        }
    }

    fn judged(&mut self, call: CallId) -> Input {
        let amended = ToolCall::new(call.clone(), "bash", gnoma_core::RawJson::empty_object());
        let said = HookInstructions {
            amended: self.dice.one_in(8).then_some(amended),
            context: self.dice.one_in(8).then(|| "n".into()).into_iter().collect(),
            stop: self.dice.one_in(16).then(|| "w".into()),
        };
        Input::Judged(call, self.verdict(), Box::new(said))
    }

    /// What the driver does before it feeds a fact.
    fn feed(&mut self, input: Input) -> Effects {
        if self.waits.as_ref().is_some_and(|wish| answers(&input, wish)) {
            self.waits = None;
        }
        match &input {
            Input::Judged(call, ..) => self.judging.retain(|it| it != call),
            Input::ToolEnded { call, .. } => {
                self.running.remove(call);
            }
            Input::Call(CallInput::BackoffOver) if self.timer == Some(Timer::Backoff) => {
                self.timer = None;
            }
            Input::GraceOver if self.timer == Some(Timer::Grace) => self.timer = None,
            _ => (),
        }
        let mut fx = Vec::new();
        self.turn.handle_input(input, &mut fx);
        fx
    }

    fn step(&mut self, input: Input) {
        let (before, was) = (self.state, input.clone());
        let answered = match &input {
            Input::Answered(call, _) => Some(self.questions.remove(call)),
            _ => None,
        };
        let fx = self.feed(input);
        if answered == Some(false) {
            let told = |effect: &Effect| matches!(effect, Effect::Emit(Event::Notice { .. }));
            assert!(fx.len() == 1 && fx.iter().all(told), "a second effect: {fx:?}");
        }
        if matches!(was, Input::Cancel) && before == SessionState::Active {
            let state = |effect: &Effect| match effect {
                Effect::Emit(Event::State(state)) => Some(*state),
                _ => None,
            };
            assert_eq!(fx.iter().find_map(state), Some(SessionState::Cancelling));
        }
        let mut grows = false;
        for effect in fx {
            grows |= matches!(effect, Effect::Emit(Event::Appended(_)));
            self.perform(effect);
        }
        if grows || self.turn.is_idle() {
            assert_paired(self.turn.history(), !self.turn.is_idle());
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Call(CallEffect::OpenStream { .. }) => {
                assert!(!std::mem::replace(&mut self.streams, true), "two streams");
                assert!(!std::mem::replace(&mut self.is_owed, true), "a call was not settled");
                self.drafted.clear();
            }
            Effect::Call(CallEffect::CloseStream) => self.streams = false,
            Effect::Call(CallEffect::Settle(_)) => {
                self.saw("settled");
                assert!(std::mem::take(&mut self.is_owed) && !self.streams, "settled twice");
            }
            Effect::StopWaiting => self.waits = None,
            Effect::Judge(call) => self.judging.push(call.id),
            Effect::Remember { .. } => self.saw("remembered"),
            Effect::LetOutside(call) => {
                self.saw("outside");
                self.runs.entry(call).or_default().1 += 1;
            }
            Effect::RunTool(call) => self.run(call.id, "run"),
            Effect::RunCheck(call) => self.run(call.id, "check"),
            Effect::StopTools => self.judging.clear(),
            Effect::AbortTools => self.running.clear(),
            Effect::SetTimer(timer) => self.timer = timer.map(|(timer, _)| timer),
            Effect::Emit(event) => self.hear(event),
            wish @ (Effect::Call(_)
            | Effect::Prepare(_)
            | Effect::BeforeStop { .. }
            | Effect::Summarize(_)
            | Effect::Confer
            | Effect::Check(_)
            | Effect::Review
            | Effect::Conclude { .. }) => {
                assert!(!self.streams, "{wish:?} beside a stream");
                self.saw(name_of(&wish));
                assert_eq!(self.waits.replace(wish), None, "one wait at a time");
            }
        }
    }

    fn run(&mut self, call: CallId, what: &'static str) {
        self.saw(what);
        assert!(!self.ended.contains(&call), "it was over");
        let (runs, outside) = self.runs.entry(call.clone()).or_default();
        *runs += 1;
        assert!(*runs <= 1 + *outside, "{call} ran twice");
        self.running.insert(call);
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::State(state) => self.moves(state),
            Event::PermissionAsked { call, .. } => {
                self.saw("asked");
                assert!(self.questions.insert(call.id), "asked twice");
            }
            Event::ToolEnded { call, result, .. } => {
                assert_eq!(call.id, result.call_id);
                self.questions.remove(&call.id);
                self.running.remove(&call.id);
                assert!(self.ended.insert(call.id), "ended twice");
            }
            Event::ToolCallDrafted { call, .. } => self.drafted.push(call),
            Event::ToolCallDelta { call, .. } => assert!(self.drafted.contains(&call)),
            Event::Appended(message) => {
                let calls: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
                assert!(calls.is_empty() || calls == self.drafted, "{calls:?}");
            }
            Event::Compacted { .. } => self.saw("compacted"),
            Event::ArmChanged { .. } => self.saw("moved"),
            Event::Retrying { retracted, .. } => {
                self.saw(if retracted { "taken back" } else { "backoff" });
            }
            Event::Continuing { .. } => self.saw("continued"),
            Event::TurnEnded { outcome, .. } => {
                self.saw("ended");
                if outcome == Outcome::Cancelled {
                    self.saw("cancelled");
                }
            }
            _ => (),
        }
    }

    fn moves(&mut self, to: SessionState) {
        use SessionState::{Active, Cancelling, Closed, Idle};
        let diagram = [
            (Idle, Active),
            (Active, Idle),
            (Active, Cancelling),
            (Cancelling, Idle),
            (Idle, Closed),
        ];
        assert!(diagram.contains(&(self.state, to)), "{:?} → {to:?}", self.state);
        self.state = to;
        // Who works is never idle, and who is idle does nothing.
        if to == Idle {
            assert!(!self.streams && !self.is_owed && self.timer.is_none());
            assert!(self.questions.is_empty());
        }
    }

    /// Closes the session, and sees that all of it is over.
    fn close(&mut self) {
        self.step(Input::Close);
        if !self.turn.is_idle() {
            self.saw("stopping");
            self.step(Input::GraceOver);
        }
        assert!(self.turn.is_idle() && self.state == SessionState::Idle);
        assert_paired(self.turn.history(), false);
        for _ in 0..LATE {
            let input = self.any();
            for effect in self.feed(input) {
                let told =
                    matches!(effect, Effect::Emit(Event::Notice { .. } | Event::Usage { .. }));
                assert!(told, "{effect:?} after the end");
            }
        }
        let owed = (&self.waits, self.streams, self.timer, &self.judging, &self.running);
        assert_eq!(owed, (&None, false, None, &vec![], &BTreeSet::new()));
        self.step(Input::Closed);
        assert_eq!(self.state, SessionState::Closed);
    }
}

/// Whether the fact is an answer to the wish.
fn answers(input: &Input, wish: &Effect) -> bool {
    match (wish, input) {
        (Effect::Call(wish), Input::Call(input)) => answers_call(input, wish),
        (Effect::Summarize(_), Input::Compaction(CompactionInput::Ended(_)))
        | (Effect::Prepare(_), Input::Prepared(..))
        | (Effect::Confer, Input::Finish(FinishInput::Conferred { .. }))
        | (Effect::BeforeStop { .. }, Input::Finish(FinishInput::MayStop(_))) => true,
        (Effect::Check(_) | Effect::Review | Effect::Conclude { .. }, Input::Finish(input)) => {
            matches!(input, FinishInput::Prove(_) | FinishInput::Found(_) | FinishInput::Checked(_))
        }
        _ => false,
    }
}

fn name_of(wish: &Effect) -> &'static str {
    match wish {
        Effect::Summarize(_) => "compact",
        Effect::Confer => "confer",
        Effect::Check(_) => "look",
        Effect::Review => "review",
        Effect::Conclude { .. } => "conclude",
        Effect::Prepare(_) => "prepare",
        Effect::BeforeStop { .. } => "stop",
        _ => "other",
    }
}

#[test]
fn random_turn_inputs_never_violate_the_turn_invariants() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut seen = BTreeMap::new();
    let walks = walks();
    for _ in 0..walks {
        let mut walk = Walk::new(dice, seen);
        for _ in 0..STEPS {
            let input = walk.input();
            walk.step(input);
        }
        walk.close();
        Walk { dice, seen, .. } = walk;
    }
    let every_phase = [
        "ended",
        "cancelled",
        "stopping",
        "run",
        "asked",
        "remembered",
        "outside",
        "check",
        "compact",
        "compacted",
        "confer",
        "look",
        "review",
        "conclude",
        "moved",
        "settled",
        "backoff",
        "taken back",
        "continued",
        "prepare",
        "stop",
    ];
    for what in every_phase {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times >= walks / 100, "{what} happened {times} times: {seen:?}");
    }
}
