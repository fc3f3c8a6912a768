//! Waiting from where nothing can wait: the face asks its desk in the middle of the loop.

use std::thread;

use anyhow::{Context as _, Result};

/// Does something that waits, on a thread and a runtime of its own, and gives what comes of it.
pub(super) fn wait<F, T>(work: impl FnOnce() -> F + Send) -> Result<T>
where
    F: Future<Output = Result<T>>,
    T: Send,
{
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("cannot start a thread's runtime")?.block_on(work())
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("gnoma-desk".to_owned()).spawn_scoped(scope, run);
        let worker = worker.context("the system gives no thread")?;
        let broken = |_| anyhow::anyhow!("what was asked for broke down inside");
        worker.join().map_err(broken)?
    })
}
