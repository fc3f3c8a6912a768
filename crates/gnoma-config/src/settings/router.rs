//! Router settings: how models are chosen, and the spending caps.

use std::time::Duration;

use gnoma_router::{Strategy, Verify, pool::Caps, rules::Roles};

use super::{
    rules::{self, RoutingRule},
    section::Section,
};
use crate::layer::MergedLayers;

/// Seconds of an hour.
const HOUR_S: u64 = 3600;

/// The settings for choosing models.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// The mode of the router, which says whether there is a choice between models.
    pub mode: RouterMode,
    /// Micro-dollars that a right result of a normal task is worth.
    pub value_micro_usd: u64,
    /// Micro-dollars that a second of waiting is worth; 0 when nobody waits.
    pub second_micro_usd: u64,
    /// The importance of tasks.
    pub priority: Priority,
    /// The way in which arms work together.
    pub strategy: Strategy,
    /// Most attempts at a task; at least one.
    pub max_attempts: u32,
    /// The check of an attempt before it is delivered.
    pub verify: Verify,
    /// Commands that prove the project right; empty where none is known.
    pub checks: Vec<String>,
    /// Another arm goes on when one fails.
    pub failover: bool,
    /// `true` if the router learns from how tasks end.
    pub learn: bool,
    /// Time between looks for local models; `None`: at the start only.
    pub discovery_interval: Option<Duration>,
    /// File with models and prices that go over the built-in ones.
    pub catalogue: Option<String>,
    /// The caps on spending.
    pub caps: Caps,
    /// The user's rules, then the profile's, then the project's.
    pub rules: Vec<RoutingRule>,
    /// Arms for parts of the work.
    pub roles: Roles,
    /// Choose tools in a call of its own, whatever the window.
    pub force_two_stage: bool,
}

/// The mode of the router, which says whether there is a choice between models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterMode {
    /// Every configured provider is an arm, and each turn is routed.
    Auto,
    /// Only `provider.default` and `provider.model` are asked.
    Off,
}

/// The importance of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Less important than other tasks.
    Low,
    /// As important as other tasks.
    Normal,
    /// More important than other tasks.
    High,
    /// So important that cost hardly counts.
    Critical,
}

impl Router {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        let router = Section::from_key(layers, "router");
        Self {
            mode: match router.text("mode").as_deref() {
                Some("off") => RouterMode::Off,
                _ => RouterMode::Auto,
            },
            value_micro_usd: router.micro_usd("value").unwrap_or(0),
            second_micro_usd: router.micro_usd("waiting").unwrap_or(0) / HOUR_S,
            priority: read_priority(&router),
            strategy: read_strategy(&router),
            max_attempts: router.count("max_attempts").unwrap_or(1),
            verify: read_verify(&router),
            checks: router.texts("checks"),
            failover: layers.is_on("router.failover"),
            learn: layers.is_on("router.learn"),
            discovery_interval: router.duration("discovery_interval").filter(|t| !t.is_zero()),
            catalogue: router.text("catalogue"),
            caps: read_caps(&Section::from_key(layers, "router.caps")),
            rules: rules::read_routing_rules(layers),
            roles: read_roles(&Section::from_key(layers, "router.roles")),
            force_two_stage: layers.is_on("router.force_two_stage"),
        }
    }
}

fn read_priority(router: &Section<'_>) -> Priority {
    match router.text("priority").as_deref() {
        Some("low") => Priority::Low,
        Some("high") => Priority::High,
        Some("critical") => Priority::Critical,
        _ => Priority::Normal,
    }
}

fn read_strategy(router: &Section<'_>) -> Strategy {
    let name = router.text("strategy");
    let named = Strategy::ALL.into_iter().find(|it| Some(it.name()) == name.as_deref());
    named.unwrap_or_default()
}

fn read_verify(router: &Section<'_>) -> Verify {
    let name = router.text("verify");
    let named = Verify::ALL.into_iter().find(|it| Some(it.name()) == name.as_deref());
    named.unwrap_or_default()
}

fn read_caps(caps: &Section<'_>) -> Caps {
    Caps {
        turn: caps.micro_usd("turn"),
        session: caps.micro_usd("session"),
        day: caps.micro_usd("day"),
        month: caps.micro_usd("month"),
        project_day: caps.micro_usd("project_day"),
        project_month: caps.micro_usd("project_month"),
    }
}

fn read_roles(roles: &Section<'_>) -> Roles {
    Roles {
        small: roles.arm("small"),
        planner: roles.arm("planner"),
        editor: roles.arm("editor"),
        reviewer: roles.arm("reviewer"),
    }
}
