//! Work that blocks, such as reading files and databases, away from the loops of sessions.

use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{HostError, Result};

/// Makes and does what may block, on a thread that only the caller waits for. Where the caller is
/// dropped, the work continues to its end.
pub(crate) async fn off_loop<T: Send + 'static, F: Future<Output = Result<T>>>(
    make: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    let runtime = Handle::current();
    let done = spawn_blocking(move || runtime.block_on(make())).await;
    done.unwrap_or_else(|_| Err(HostError::failure("it crashed; this is a bug in gnoma")))
}
