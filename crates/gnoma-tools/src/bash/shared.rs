//! What the shell tools share.

use std::time::Duration;

use super::{jobs::Jobs, shell::Shell};

/// The state that the shell tools share.
#[derive(Debug)]
pub(super) struct ShellTools {
    pub(super) shell: Shell,
    pub(super) default_timeout: Duration,
    pub(super) jobs: Jobs,
}
