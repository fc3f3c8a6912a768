//! The tools as a session needs them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use gnoma_core::{
    Tool, ToolSpec,
    tool::{Access, Tier, ToolKind},
};

use crate::turn::{Input, SpawningTools};

/// Returns the form of a tool that a small model is offered, if there is one.
fn lean_of(tool: &Arc<dyn Tool>, spec: &Arc<ToolSpec>) -> Option<Arc<ToolSpec>> {
    let less = || tool.lean_spec().cloned().map(Arc::new);
    if spec.tier == Tier::Lean && !spec.kind.is_of_agent() {
        Some(Arc::clone(spec))
    } else {
        less()
    }
}

pub(super) struct Toolset {
    pub(super) by_name: HashMap<String, Arc<dyn Tool>>,
    /// Those of agents, which models are not offered.
    of_agents: Vec<Arc<ToolSpec>>,
    pub(super) full: Arc<[Arc<ToolSpec>]>,
    lean: Arc<[Arc<ToolSpec>]>,
    /// Those of the next turn, where they are others.
    pub(super) next: Option<Vec<Arc<dyn Tool>>>,
}

impl Toolset {
    /// The tools in this order; of two with one name the first.
    pub(super) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut by_name = HashMap::new();
        let (mut full, mut lean, mut of_agents) = (Vec::new(), Vec::new(), Vec::new());
        for tool in tools {
            let spec = tool.spec();
            if let Entry::Vacant(free) = by_name.entry(spec.name.clone()) {
                let spec = Arc::new(spec.clone());
                lean.extend(lean_of(&tool, &spec));
                let set = if spec.kind.is_of_agent() { &mut of_agents } else { &mut full };
                set.push(spec);
                free.insert(tool);
            }
        }
        Self { by_name, of_agents, full: full.into(), lean: lean.into(), next: None }
    }

    /// All that can be called.
    fn callable_specs(&self) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.full.iter().chain(&self.of_agents)
    }

    /// Returns the input that offers these tools to the turn.
    pub(super) fn to_input(&self) -> Input {
        Input::SetTools(self.callable_specs().cloned().collect(), self.may_start())
    }

    /// These tools instead. Those that stay keep their order and those that come follow them, so that
    /// what providers have cached of a request's beginning stays good as far as it can. A list that
    /// says what it said before stays the very same one.
    pub(super) fn replace(&mut self, mut tools: Vec<Arc<dyn Tool>>) {
        let place = |tool: &Arc<dyn Tool>| {
            let name = &tool.spec().name;
            self.full.iter().position(|spec| spec.name == *name).unwrap_or(usize::MAX)
        };
        gnoma_core::sort::by_key(&mut tools, place);
        let Self { by_name, of_agents, full, lean, next: _ } = Self::new(tools);
        let kept = |new: Arc<[Arc<ToolSpec>]>, old: &mut Arc<[Arc<ToolSpec>]>| {
            if new != *old {
                *old = new;
            }
        };
        (self.by_name, self.of_agents) = (by_name, of_agents);
        kept(full, &mut self.full);
        kept(lean, &mut self.lean);
    }

    /// Those of the next turn that are not there yet come behind those that are. Says whether there were
    /// any.
    pub(super) fn add_next(&mut self) -> bool {
        let Some(next) = &self.next else { return false };
        let is_new = |tool: &&Arc<dyn Tool>| !self.by_name.contains_key(&tool.spec().name);
        let new: Vec<_> = next.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return false;
        }
        let mut full = self.full.to_vec();
        let mut lean = self.lean.to_vec();
        for tool in new {
            let spec = Arc::new(tool.spec().clone());
            lean.extend(lean_of(&tool, &spec));
            self.by_name.insert(spec.name.clone(), tool);
            full.push(spec);
        }
        (self.full, self.lean) = (full.into(), lean.into());
        true
    }

    pub(super) fn specs(&self, tier: Tier) -> &Arc<[Arc<ToolSpec>]> {
        match tier {
            Tier::Full => &self.full,
            Tier::Lean => &self.lean,
        }
    }

    /// All but the one of that name.
    pub(super) fn specs_without(&self, tier: Tier, name: Option<&str>) -> Arc<[Arc<ToolSpec>]> {
        match name {
            None => Arc::clone(self.specs(tier)),
            Some(name) => {
                self.specs(tier).iter().filter(|spec| spec.name != name).cloned().collect()
            }
        }
    }

    /// Those that only read.
    pub(super) fn read_only_specs(&self, tier: Tier) -> Arc<[Arc<ToolSpec>]> {
        let reads = |spec: &&Arc<ToolSpec>| spec.access == Access::Read;
        self.specs(tier).iter().filter(reads).cloned().collect()
    }

    /// The first of that kind.
    pub(super) fn of_kind(&self, tier: Tier, kind: ToolKind) -> Option<&Arc<ToolSpec>> {
        self.specs(tier).iter().find(|spec| spec.kind == kind)
    }

    /// The tool that starts sessions.
    pub(super) fn session_starter(&self) -> Option<Arc<dyn Tool>> {
        // The one that speaks with them only reads.
        let starts = |spec: &&Arc<ToolSpec>| {
            spec.kind == ToolKind::StartsSessions && spec.access != Access::Read
        };
        let spec = self.full.iter().find(starts)?;
        self.by_name.get(&spec.name).map(Arc::clone)
    }

    /// The tools that only read, of which a call may start a session.
    fn may_start(&self) -> SpawningTools {
        let reads = |tool: &&Arc<dyn Tool>| tool.spec().access == Access::Read;
        let all = self.by_name.values().filter(|_| self.session_starter().is_some());
        SpawningTools(all.filter(reads).cloned().collect())
    }

    /// Reports whether a call of the tool may do more than read.
    pub(super) fn may_write(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|tool| tool.spec().access != Access::Read)
    }
}
