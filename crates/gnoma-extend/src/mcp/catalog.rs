//! What tools that look through all servers know of them.

use std::sync::Arc;

use gnoma_core::tool::BoxFuture;

use super::server::ManagedServer;

/// All tools and servers of a session.
pub(super) trait Catalog: Send + Sync {
    /// Names and descriptions of all tools that may be offered.
    fn tool_descriptions(&self) -> Vec<(String, String)>;

    /// Waits a moment for servers whose tools nobody has seen yet; gives the names of those that are still
    /// awaited then.
    fn wait_for_servers(&self) -> BoxFuture<'_, Vec<String>>;

    /// Puts tools on offer that were found, and waits until they are.
    fn offer_tools(&self, names: Vec<String>) -> BoxFuture<'_, ()>;

    /// The server of that name.
    fn find_server(&self, name: &str) -> Option<Arc<ManagedServer>>;
}
