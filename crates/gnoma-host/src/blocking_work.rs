//! Work that blocks, such as reading files and databases, away from the loops of sessions.

use std::pin::Pin;

use tokio::{runtime::Handle, sync::oneshot, task::spawn_blocking};

use crate::{HostError, Result};

/// Work with its result sent elsewhere. Boxed, so that the runtime's code for a task is compiled once, not for each kind
/// of work.
type BoxedWork = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Makes and does what may block, on a thread that only the caller waits for. Where the caller is
/// dropped, the work continues to its end.
pub(crate) async fn off_loop<T: Send + 'static, F: Future<Output = Result<T>> + 'static>(
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    let (sender, result) = oneshot::channel();
    spawn_off_loop(Box::new(move || {
        let work = make();
        Box::pin(async move {
            // The caller may have been dropped.
            let _unwanted = sender.send(work.await);
        })
    }));
    result.await.unwrap_or_else(|_| Err(HostError::failure("it crashed; this is a bug in gnoma")))
}

fn spawn_off_loop(work: BoxedWork) {
    let runtime = Handle::current();
    drop(spawn_blocking(move || runtime.block_on(work())));
}
