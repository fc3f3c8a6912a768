//! Time that this thread has spent on a core. On a machine that does other things as well it says more
//! than the time on the wall.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Runs `work` and returns the processor time it took, together with its result.
pub fn cpu_time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let before = thread_cpu_time();
    let done = work();
    (thread_cpu_time().saturating_sub(before), done)
}

fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
