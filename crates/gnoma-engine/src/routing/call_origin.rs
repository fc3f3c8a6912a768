//! The work that calls belong to, as the ledger records it.

use gnoma_core::ledger::CallOrigin;
use gnoma_router::{Arm, TaskKind, Wire, pool::Scope};

use super::routes::Routes;

/// The names of extensions that a turn has used so far, each with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsedExtensions {
    /// The skills.
    pub(crate) skills: String,
    /// The MCP servers whose tools were called.
    pub(crate) servers: String,
}

impl Routes {
    /// Returns the work that a call of the arm in this session and turn belongs to. Reads which branch is checked out.
    pub(crate) fn call_origin(
        &self,
        scope: &Scope,
        arm: &Arm,
        task: Option<&TaskKind>,
        used: UsedExtensions,
    ) -> CallOrigin {
        let root = scope.root();
        let elf = if scope.parent().is_some() { scope.session() } else { "" };
        let is_program = arm.wire == Wire::Agent && scope.agent().is_empty();
        let UsedExtensions { skills: skill, servers: mcp } = used;
        CallOrigin {
            project: self.settings.ground.root.clone(),
            branch: (self.ports.branch)().unwrap_or_default(),
            session: root.session().to_owned(),
            elf: elf.to_owned(),
            turn: root.turn().to_owned(),
            task: task.map_or_else(String::new, |kind| kind.0.to_string()),
            account: arm.account.to_string(),
            agent: if is_program { arm.id.model.as_str() } else { scope.agent() }.to_owned(),
            skill,
            mcp,
            part: String::new(),
        }
    }
}
