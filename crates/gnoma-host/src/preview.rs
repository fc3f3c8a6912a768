//! Previews which model would do a task, and why. No model is asked.

use gnoma_core::{
    ledger::{Ledger as _, Level},
    session::Routing,
};
use gnoma_engine::{Routes, tokens};
use gnoma_router::pool::Scope;

use crate::{
    Project, Result,
    routing::{self, PreparedRoutes, RoutesRequest, roster::UnusableModel},
};

/// A preview of how a task would be routed.
#[derive(Debug)]
pub struct Preview {
    /// The route; or the reasons why no model can do the task.
    pub routing: Result<Routing, Vec<String>>,
    /// Models that cannot be asked, and why.
    pub left: Vec<UnusableModel>,
}

/// Routes a task without doing it. `seed` parts equals: the same gives the same.
///
/// # Errors
/// No model can be asked.
pub async fn preview_route(project: &Project, words: &str, seed: Option<u64>) -> Result<Preview> {
    let mut ready = prepare_preview(project, seed).await?;
    ready.discover_once().await;
    let levels = limit_levels(project, &ready.routes).await;
    let (tokens, now_ms) = (tokens::estimate(words) as u64, ready.routes.now_ms());
    let routing =
        ready.routes.with_state(|state| state.preview_routing(words, tokens, &levels, now_ms));
    Ok(Preview { routing, left: ready.left })
}

/// The routes as a session of this project would have them.
///
/// # Errors
/// No model can be asked.
pub async fn prepare_preview(project: &Project, seed: Option<u64>) -> Result<PreparedRoutes> {
    let wanted = RoutesRequest { seed, grows: true, ..RoutesRequest::default() };
    let ready = routing::prepare_routes(project, &wanted).await?;
    if let Some(heard) = ready.routes.hear_others()
        && let Err(error) = heard.await
    {
        project.notices.warning(error);
    }
    Ok(ready)
}

/// Returns how much of each limit is used; empty, with a notice, if the ledger cannot be read.
pub async fn limit_levels(project: &Project, routes: &Routes) -> Vec<Level> {
    let limited = routes.with_state(|state| state.limited_draws(&Scope::new("")));
    if limited.is_empty() {
        return Vec::new();
    }
    let ledger = routing::ledger_to_look_at(project);
    ledger.limit_levels(limited, project.now_ms()).await.unwrap_or_else(|error| {
        project.notices.warning(error.sentence);
        Vec::new()
    })
}
