//! The tools as a session needs them, and running them.

use std::{
    collections::{HashMap, hash_map::Entry},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use futures_util::FutureExt as _;
use gnoma_core::{
    Event, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    message::CallId,
    tool::{Access, Grant, Tier, ToolKind},
};
use tokio::time::Instant;

use super::{Closed, Held, Session, millis};
use crate::{
    checkpoint::{self, Files},
    routing::several,
    shelve::Shelving,
    turn::{Input, Verdict},
};

/// The tools as a session needs them.
pub(super) struct Toolset {
    pub(super) by_name: HashMap<String, Arc<dyn Tool>>,
    pub(super) full: Arc<[Arc<ToolSpec>]>,
    lean: Arc<[Arc<ToolSpec>]>,
    /// Those of the next turn, where they are others.
    pub(super) next: Option<Vec<Arc<dyn Tool>>>,
}

impl Toolset {
    /// The tools in this order; of two with one name the first.
    pub(super) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut by_name = HashMap::new();
        let mut full = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            if let Entry::Vacant(free) = by_name.entry(spec.name.clone()) {
                full.push(Arc::new(spec.clone()));
                free.insert(tool);
            }
        }
        let lean = full.iter().filter(|spec| spec.tier == Tier::Lean).cloned().collect();
        Self { by_name, full: full.into(), lean, next: None }
    }

    /// These tools instead. Those that stay keep their order and those that come follow them, so that
    /// what providers have cached of a request's beginning stays good as far as it can. A list that
    /// says what it said before stays the very same one.
    pub(super) fn replace(&mut self, mut tools: Vec<Arc<dyn Tool>>) {
        let place = |tool: &Arc<dyn Tool>| {
            let name = &tool.spec().name;
            self.full.iter().position(|spec| spec.name == *name).unwrap_or(usize::MAX)
        };
        tools.sort_by_cached_key(place);
        let Self { by_name, full, lean, next: _ } = Self::new(tools);
        let kept = |new: Arc<[Arc<ToolSpec>]>, old: &mut Arc<[Arc<ToolSpec>]>| {
            if new != *old {
                *old = new;
            }
        };
        self.by_name = by_name;
        kept(full, &mut self.full);
        kept(lean, &mut self.lean);
    }

    pub(super) fn specs(&self, tier: Tier) -> &Arc<[Arc<ToolSpec>]> {
        match tier {
            Tier::Full => &self.full,
            Tier::Lean => &self.lean,
        }
    }

    /// Those that only read.
    pub(super) fn reading(&self, tier: Tier) -> Arc<[Arc<ToolSpec>]> {
        let reads = |spec: &&Arc<ToolSpec>| spec.access == Access::Read;
        self.specs(tier).iter().filter(reads).cloned().collect()
    }

    /// The first of that kind.
    pub(super) fn of_kind(&self, tier: Tier, kind: ToolKind) -> Option<&Arc<ToolSpec>> {
        self.specs(tier).iter().find(|spec| spec.kind == kind)
    }

    /// Whether a call of the tool may do more than read.
    pub(super) fn may_write(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|tool| tool.spec().access != Access::Read)
    }
}

impl Session {
    /// A tool has ended. When the sandbox stopped it, a person is asked first whether it may run
    /// outside; until they answer it counts as running.
    pub(super) async fn ended(&mut self, done: Input) -> Result<Option<Input>, Closed> {
        let Input::ToolDone(id, outcome, duration_ms) = done else {
            return Ok(Some(done));
        };
        self.take_back(Some(&id)).await?;
        let (Some(why), true) = (walled(&outcome), self.gate.may_offer_outside(&id)) else {
            self.gate.forget(&id);
            return self.done(id, outcome, duration_ms).await;
        };
        // The question first: a long reason is cut at its end.
        let reason = format!("run it again outside the sandbox? {why}");
        let call = self.turn.call(&id).or_else(|| self.way.check_call(&id)).cloned();
        self.held.insert(id, Held { outcome, duration_ms });
        if let Some(call) = call {
            let asked = Event::PermissionAsked { call, reason, preview: None, always: None };
            self.emit(asked).await?;
        }
        Ok(None)
    }

    /// A call is over for good: the machine's next fact, unless it is a check's.
    pub(super) async fn done(
        &mut self,
        id: CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Result<Option<Input>, Closed> {
        if self.way.check_call(&id).is_none() {
            return Ok(Some(Input::ToolDone(id, outcome, duration_ms)));
        }
        self.check_ended(outcome, duration_ms).await?;
        self.follow().await?;
        Ok(None)
    }

    pub(super) fn judge(&mut self, call: &ToolCall) -> Verdict {
        let Some(tool) = self.tools.by_name.get(&call.name).map(Arc::clone) else {
            return Verdict::Deny { reason: format!("there is no tool `{}`", call.name) };
        };
        if self.way.is_looking() && tool.spec().access != Access::Read {
            return Verdict::Deny { reason: several::ONLY_LOOKS.to_owned() };
        }
        let cx = self.tool_cx();
        self.gate.judge(tool.spec(), call, |call, grant| {
            tool.preview(call, &ToolCx { grant: grant.clone(), ..cx })
        })
    }

    pub(super) fn tool_cx(&self) -> ToolCx {
        ToolCx {
            cwd: Arc::clone(&self.cwd),
            roots: Arc::clone(&self.roots),
            grant: Grant::default(),
            stop: self.stop.child_token(),
            progress: self.progress.0.clone(),
            shelved: self.shelves.is_some() && self.keeper.shelving.is_some(),
            budget: self.budget(),
            session: Some(self.wishes.port()),
        }
    }

    pub(super) fn run_tool(&mut self, id: &CallId) {
        let Some((call, grant)) = self.gate.admitted(id) else {
            return;
        };
        let Some(tool) = self.tools.by_name.get(&call.name).map(Arc::clone) else {
            return;
        };
        let may_write = !checkpoint::only_reads(tool.spec(), &call, &grant);
        let is_check = self.way.check_call(id).is_some();
        if may_write && !is_check {
            self.may_write(tool.spec(), &call);
        }
        let keep_before = may_write.then(|| self.keep_before(tool.spec(), &call)).flatten();
        // No model reads a check's output back.
        let reader = self.shelves.clone().filter(|_| !is_check);
        let shelving = self.keeper.shelving.clone().zip(reader);
        self.wishes.in_turn(self.way.scope());
        let cx = ToolCx { grant, shelved: shelving.is_some(), ..self.tool_cx() };
        // What was read from the shelf stays whole.
        let shelving = shelving.filter(|_| tool.spec().kind != ToolKind::ReadsResults);
        self.running.spawn(run(Run { tool, call, cx, keep_before, shelving }));
    }

    /// A call may change files: who keeps them before it, and under which label.
    pub(super) fn keep_before(
        &mut self,
        spec: &ToolSpec,
        call: &ToolCall,
    ) -> Option<(Arc<Files>, String)> {
        let files = self.keeper.writes()?;
        // As the model wrote it: without the secrets that the tool is handed.
        let written = self.turn.call(&call.id).unwrap_or(call);
        Some((files, checkpoint::label(spec, written, &self.firewall)))
    }
}

/// One call, on its way through its own task.
struct Run {
    tool: Arc<dyn Tool>,
    call: ToolCall,
    cx: ToolCx,
    keep_before: Option<(Arc<Files>, String)>,
    /// Where a large result goes, and the tool that reads it back.
    shelving: Option<(Arc<Shelving>, Arc<ToolSpec>)>,
}

async fn run(run: Run) -> Input {
    let Run { tool, call, cx, keep_before, shelving } = run;
    let (id, name) = (call.id.clone(), call.name.clone());
    let mut started = Instant::now();
    let work = async {
        if let Some((files, label)) = keep_before {
            tokio::select! {
                biased;
                () = cx.stop.cancelled() => return ToolOutcome::Interrupted(String::new()),
                kept = files.keep_before(label) => if let Err(why) = kept {
                    return ToolOutcome::failed(why);
                },
            }
            started = Instant::now();
        }
        let outcome = tool.run(call, cx).await;
        match shelving {
            Some((shelving, reader)) => shelving.put_away(&reader.name, outcome).await,
            None => outcome,
        }
    };
    let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
        ToolOutcome::failed(format!("`{name}` broke down inside; its work may be half done"))
    });
    Input::ToolDone(id, outcome, millis(started.elapsed()))
}

/// What the sandbox seems to have stopped.
fn walled(outcome: &ToolOutcome) -> Option<&str> {
    match outcome {
        ToolOutcome::Failed(output) => output.report.as_ref()?.walled.as_deref(),
        ToolOutcome::Done(_) | ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => None,
    }
}
