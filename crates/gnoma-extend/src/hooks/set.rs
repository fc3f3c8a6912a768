//! The hooks of one session: which run at a point, side by side, and what they say together.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use gnoma_core::{
    Event,
    lifecycle::{Point, PointAnswer, PointKind, SideModel},
    session::PermissionMode,
    sync::Mutex,
    task::box_future,
};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::Instant,
};

use super::{
    answer::{self, HookEnd, HookRun},
    hook::{Hook, HookContract, HookKind},
    input::{self, HookSession},
    pipes::BackgroundRun,
    remote_hooks::HookReach,
    run::HookRunner,
    transcript::Transcript,
};
use crate::places::ExtensionSource;

/// Most hooks that run beside the session at once.
const MAX_BESIDE: usize = 16;

/// The path of the transcript where there is none, because nothing may be saved: a file that is there and empty.
const NO_TRANSCRIPT: &str = "/dev/null";
/// Most hooks of which it is known how they ran last.
const MAX_RUNS: usize = 1_000;

/// The last run of each hook: the milliseconds, and the end in words. Clones share the runs, so that they outlive a
/// session.
#[derive(Clone, Default)]
pub struct HookRuns {
    runs: Arc<Mutex<HashMap<RunKey, (u64, String)>>>,
    report: Option<HookReporter>,
}

/// Takes the run of a hook; must not wait.
type HookReporter = Arc<dyn Fn(&HookRunReport<'_>) + Send + Sync>;

/// A run of a hook that is over, without anything that it wrote.
#[derive(Clone, Copy, Debug)]
pub struct HookRunReport<'a> {
    /// The event that it ran at, as it was written.
    pub event: &'a str,
    /// The time that the hook ran, in milliseconds.
    pub took_ms: u64,
    /// The exit code of a program.
    pub exit_code: Option<i32>,
    /// `timeout` or `hook_error` if it did not run to its end.
    pub error: Option<&'static str>,
}

impl fmt::Debug for HookRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookRuns").field(&self.runs).finish()
    }
}

/// The event, what is done, and where that was written.
type RunKey = (String, String, PathBuf);

impl HookRuns {
    fn run_key(hook: &Hook) -> RunKey {
        (hook.event.clone(), hook.to_line(), hook.origin.clone())
    }

    /// The same, with each run reported from now on.
    #[must_use]
    pub fn reported_to(self, report: impl Fn(&HookRunReport<'_>) + Send + Sync + 'static) -> Self {
        Self { report: Some(Arc::new(report)), ..self }
    }

    fn report_run(&self, hook: &Hook, took_ms: u64, end: &HookEnd) {
        let Some(report) = &self.report else { return };
        let (exit_code, error) = match end {
            HookEnd::Code(code) => (Some(*code).filter(|_| hook.kind == HookKind::Command), None),
            HookEnd::TimedOut => (None, Some("timeout")),
            HookEnd::Failed(_) => (None, Some("hook_error")),
        };
        report(&HookRunReport { event: &hook.event, took_ms, exit_code, error });
    }

    fn record_run(&self, hook: &Hook, ran: (u64, String)) {
        let (mut runs, key) = (self.runs.lock(), Self::run_key(hook));
        if runs.len() < MAX_RUNS || runs.contains_key(&key) {
            runs.insert(key, ran);
        }
    }

    fn last_run(&self, hook: &Hook) -> Option<(u64, String)> {
        self.runs.lock().get(&Self::run_key(hook)).cloned()
    }
}

/// The hooks of one session.
#[derive(Debug, Default)]
pub struct Hooks {
    hooks: Vec<Arc<Hook>>,
    points: HashSet<PointKind>,
    runner: Option<Arc<HookRunner>>,
    reach: HookReach,
    session: Mutex<HookSession>,
    transcript: Option<Arc<Transcript>>,
    /// The number of messages that the person has sent.
    prompts: AtomicU64,
    last: HookRuns,
    /// Those that nobody waits for.
    beside: BackgroundHooks,
}

type BackgroundHooks = Arc<Mutex<JoinSet<()>>>;

/// A hook as it is shown.
#[derive(Clone, Debug)]
pub struct HookSummary {
    /// The event, as it was written.
    pub event: String,
    /// The work of the hook: the shell line, or its kind with the question or address.
    pub command: String,
    /// The party that provides the hook.
    pub by: ExtensionSource,
    /// The file in which the hook was written.
    pub origin: PathBuf,
    /// The duration of the last run, in milliseconds, and how it ended.
    pub last: Option<(u64, String)>,
}

impl Hooks {
    /// Hooks that are run by `runner`, and reach what is no program by `reach`.
    #[must_use]
    pub fn new(
        hooks: Vec<Hook>,
        runner: HookRunner,
        reach: HookReach,
        session: HookSession,
        last: HookRuns,
    ) -> Self {
        let transcript = runner.folder().and_then(|folder| Transcript::create_in(folder, &reach));
        let transcript = transcript.map(Arc::new);
        let path = transcript.as_ref().map(|it| it.path().display().to_string());
        Self {
            points: hooks.iter().map(|hook| hook.point).collect(),
            hooks: hooks.into_iter().map(Arc::new).collect(),
            runner: Some(Arc::new(runner)),
            reach,
            session: Mutex::new(HookSession {
                transcript: path.unwrap_or(NO_TRANSCRIPT.to_owned()),
                ..session
            }),
            transcript,
            prompts: AtomicU64::new(0),
            last,
            beside: BackgroundHooks::default(),
        }
    }

    /// Reports whether any hook runs at such a point.
    #[must_use]
    pub fn has_hook_at(&self, kind: PointKind) -> bool {
        let has_beside =
            || self.hooks.iter().any(|hook| hook.is_async) || !self.beside.lock().is_empty();
        self.points.contains(&kind)
            || (kind == PointKind::SessionEnd && has_beside())
            // The transcript that hooks can read has people's messages and the model's last words.
            || (matches!(kind, PointKind::Prompt | PointKind::BeforeStop)
                && self.transcript.is_some())
    }

    /// The session lends its models.
    pub(crate) fn set_model(&self, model: Arc<dyn SideModel>) {
        let _is_first = self.reach.model.set(model);
    }

    /// A person has said something, whether hooks are asked about it or not.
    pub(crate) fn count_prompt(&self, text: &str) {
        self.prompts.fetch_add(1, Ordering::Relaxed);
        self.record_in_transcript(&Point::Prompt { text: text.to_owned() });
    }

    fn record_in_transcript(&self, point: &Point) {
        if let Some(transcript) = &self.transcript {
            transcript.record_point(&self.session.lock().id, point);
        }
    }

    /// Records an event of the session: which model is asked, and how much it thinks.
    pub(crate) fn observe_event(&self, event: &Event) {
        self.session.lock().observe_event(event);
    }

    /// All of them, with what came of their last run.
    #[must_use]
    pub fn hook_overview(&self) -> Vec<HookSummary> {
        let look = |hook: &Arc<Hook>| HookSummary {
            event: hook.event.clone(),
            command: hook.to_line(),
            by: hook.by,
            origin: hook.origin.clone(),
            last: self.last.last_run(hook),
        };
        self.hooks.iter().map(look).collect()
    }

    /// Runs the hooks of a point, and puts their answers together.
    pub fn run_at(
        &self,
        point: Point,
        mode: PermissionMode,
    ) -> impl Future<Output = PointAnswer> + Send + 'static + use<> {
        if !matches!(point, Point::Prompt { .. }) {
            self.record_in_transcript(&point);
        }
        let fitting: Vec<(usize, Arc<Hook>)> =
            self.matching_hooks(&point).map(|(at, hook)| (at, Arc::clone(hook))).collect();
        let (runner, last) = (&self.runner, self.last.clone());
        let is_end = matches!(point, Point::SessionEnd);
        let mut running = JoinSet::new();
        if let Some(runner) = runner.as_ref().filter(|_| !fitting.is_empty()) {
            let point = Arc::new(point);
            for (at, hook) in fitting {
                let given = self.prepare_input(&hook, &point, mode);
                let is_async = hook.is_async;
                let beside = (!is_async).then(|| Arc::clone(&self.beside));
                let reach = self.reach.clone();
                let means = HookBackends { runner: Arc::clone(runner), reach, beside };
                let run = run_hook(at, hook, given, means, last.clone());
                if is_async {
                    put_beside(&self.beside, async move { drop(run.await) });
                } else {
                    running.spawn(box_future(run));
                }
            }
        }
        // Those that nobody waited for have a moment at the end.
        let mut late =
            if is_end { std::mem::take(&mut *self.beside.lock()) } else { JoinSet::new() };
        async move {
            while late.join_next().await.is_some() {}
            let mut answers = Vec::new();
            while let Some(answer) = running.join_next().await {
                answers.extend(answer.ok());
            }
            // Their order is the order they were written in, whichever ended first.
            gnoma_core::sort::by_key(&mut answers, |(at, _)| *at);
            answer::merge_answers(answers.into_iter().map(|(_, answer)| answer))
        }
    }

    fn prepare_input(&self, hook: &Hook, point: &Arc<Point>, mode: PermissionMode) -> HookInput {
        let prompt = self.prompts.load(Ordering::Relaxed);
        HookInput {
            point: Arc::clone(point),
            input: input::build_input(hook, point, mode, &self.session.lock(), prompt).to_string(),
            transcript: self.transcript.clone(),
        }
    }

    fn matching_hooks(&self, point: &Point) -> impl Iterator<Item = (usize, &Arc<Hook>)> {
        let kind = point.kind();
        let name = match point {
            Point::SessionStart { is_resumed: true } => "resume".to_owned(),
            Point::SessionStart { is_resumed: false } => "startup".to_owned(),
            Point::BeforeCompaction { is_asked, .. } => {
                if *is_asked { "manual" } else { "auto" }.to_owned()
            }
            Point::Notification { .. } => "permission_prompt".to_owned(),
            Point::ChildStart { name, .. } | Point::ChildStop { name, .. } => name.clone(),
            point => point.tool_call().map(|call| call.name.clone()).unwrap_or_default(),
        };
        let mut lines = HashSet::new();
        let all = self.hooks.iter().enumerate();
        let reach = &self.reach;
        let fits = move |hook: &Hook| {
            let is_free =
                matches!(kind, PointKind::Prompt | PointKind::BeforeStop | PointKind::SessionEnd);
            hook.point == kind
                && (is_free || hook.matcher.matches_name(&name))
                && reach.can_run(hook)
        };
        // The same line written twice runs once.
        let line = |hook: &Hook| (hook.to_line(), hook.root.clone(), hook.condition.clone());
        all.filter(move |(_, hook)| fits(hook) && lines.insert(line(hook)))
    }
}

type IndexedAnswer = (usize, PointAnswer);

/// The data given to a hook for one run.
struct HookInput {
    point: Arc<Point>,
    input: String,
    transcript: Option<Arc<Transcript>>,
}

/// The runner and the resources with which a hook is run.
struct HookBackends {
    runner: Arc<HookRunner>,
    reach: HookReach,
    /// The tasks in which the hook may continue when it says that the session need not wait for it.
    beside: Option<BackgroundHooks>,
}

/// Runs one hook and returns its answer.
async fn run_hook(
    at: usize,
    hook: Arc<Hook>,
    given: HookInput,
    means: HookBackends,
    last: HookRuns,
) -> IndexedAnswer {
    let HookInput { point, input, transcript } = given;
    if !means.reach.condition_holds(&hook, &point).await {
        return (at, PointAnswer::default());
    }
    if let Some(transcript) = transcript {
        spawn_blocking(move || transcript.flush()).await.ok();
    }
    let started = Instant::now();
    let run = match &hook.kind {
        HookKind::Command => run_program(&hook, &input, means).await,
        HookKind::Prompt { model } => {
            means.reach.ask_model(&hook, model.clone(), false, &input).await
        }
        HookKind::Agent { model } => {
            means.reach.ask_model(&hook, model.clone(), true, &input).await
        }
        HookKind::Http { headers, variables } => {
            means.reach.post_facts(&hook, headers, variables, &input).await
        }
    };
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let how = match &run.end {
        HookEnd::Code(_) if hook.kind != HookKind::Command => "answered".to_owned(),
        HookEnd::Code(code) => format!("exit code {code}"),
        HookEnd::TimedOut => "timed out".to_owned(),
        HookEnd::Failed(why) => why.clone(),
    };
    last.report_run(&hook, took, &run.end);
    last.record_run(&hook, (took, how));
    (at, answer::interpret_hook_exit_code(&hook, &point, &run))
}

/// Runs a hook's program. One that says so continues beside the session, and changes nothing there.
async fn run_program(
    hook: &Hook,
    input: &str,
    HookBackends { runner, beside, .. }: HookBackends,
) -> HookRun {
    let mut running = match runner.start_hook(&hook.shell_line(), input) {
        Ok(running) => running,
        Err(run) => return run,
    };
    let until = Instant::now() + hook.timeout;
    let beside = beside.filter(|_| hook.contract == HookContract::Claude);
    match (running.wait_for_end(until, beside.is_some()).await, beside) {
        (Err(BackgroundRun { limit }), Some(beside)) => {
            let until = limit.map_or(until, |limit| Instant::now() + limit);
            put_beside(&beside, async move {
                if let Ok(end) = running.wait_for_end(until, false).await {
                    drop(running.collect_run(end));
                }
            });
            let (stdout, stderr) = (String::new(), String::new());
            HookRun { end: HookEnd::Code(0), stdout, stderr }
        }
        (end, _) => running.collect_run(end.unwrap_or(HookEnd::TimedOut)),
    }
}

/// Has work done that nobody waits for. Where there is too much of it already, it is left.
fn put_beside(beside: &BackgroundHooks, work: impl Future<Output = ()> + Send + 'static) {
    let mut beside = beside.lock();
    while beside.try_join_next().is_some() {}
    if beside.len() < MAX_BESIDE {
        beside.spawn(box_future(work));
    }
}
