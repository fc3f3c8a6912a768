//! What every process of the launcher does first.

use std::ffi::OsString;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::fault::{Fault, FaultStep};
use crate::plan::LaunchPlan;

/// Reads the plan and leaves the rest.
pub(super) fn read_plan(args: &mut impl Iterator<Item = OsString>) -> Result<LaunchPlan, Fault> {
    LaunchPlan::from_args(args).map_err(|error| Fault::new("read its plan", error))
}

/// Keeps others from looking into this process, which holds more rights than they do.
pub(super) fn hide_memory() -> Result<(), Fault> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).with_step(|| "hide its memory".to_owned())
}
