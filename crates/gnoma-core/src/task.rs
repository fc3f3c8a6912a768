//! Futures behind a pointer.

use crate::tool::BoxFuture;

/// Boxes a future. What the runtime keeps for a task is then compiled once for each kind of result, not once for each
/// future, about 2 KB a time; and a function that returns one is compiled in its own crate alone, where an `async fn` is
/// compiled again in each crate that awaits it.
pub fn box_future<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}
