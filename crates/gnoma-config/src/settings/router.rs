//! Router settings: how models are chosen, and the spending caps.

use std::time::Duration;

use gnoma_core::ModelRef;

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
    /// The reviewer that checks an attempt before it is delivered.
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

/// The way in which arms work together on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// As the router finds best.
    Auto,
    /// One arm does the task.
    Single,
    /// One does it, it is checked, and another goes on where it failed.
    Cascade,
    /// Several do it, and the best result is taken.
    Ensemble,
    /// Several do it in rounds, and one makes a whole of it.
    Synthesis,
}

/// The reviewer that checks an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The project's checks where there are any, else a reviewer.
    Auto,
    /// The project's checks only.
    Checks,
    /// A reviewer checks the attempt, never the project's checks.
    Reviewer,
    /// The attempt is not checked.
    Off,
}

/// The caps on spending, in micro-dollars; `None` sets no cap, 0 leaves free arms only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// The cap for a turn.
    pub turn: Option<u64>,
    /// The cap for a session.
    pub session: Option<u64>,
    /// The cap for a day.
    pub day: Option<u64>,
    /// The cap for a month.
    pub month: Option<u64>,
    /// A day, for this project.
    pub project_day: Option<u64>,
    /// A month, for this project.
    pub project_month: Option<u64>,
}

/// Arms for parts of the work; `None` leaves the part to the router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Summaries of long conversations.
    pub small: Option<ModelRef>,
    /// The arm that makes plans.
    pub planner: Option<ModelRef>,
    /// Edits what was planned.
    pub editor: Option<ModelRef>,
    /// Reviews what others did.
    pub reviewer: Option<ModelRef>,
}

impl Roles {
    /// Returns the arms that the settings name, each after the key that names it.
    pub fn named_arms(&self) -> impl Iterator<Item = (&'static str, &ModelRef)> {
        let Self { small, planner, editor, reviewer } = self;
        let all = [
            ("router.roles.small", small),
            ("router.roles.planner", planner),
            ("router.roles.editor", editor),
            ("router.roles.reviewer", reviewer),
        ];
        all.into_iter().filter_map(|(key, arm)| Some((key, arm.as_ref()?)))
    }
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
            caps: Caps::from_section(&Section::from_key(layers, "router.caps")),
            rules: rules::read_routing_rules(layers),
            roles: Roles::from_section(&Section::from_key(layers, "router.roles")),
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
    match router.text("strategy").as_deref() {
        Some("single") => Strategy::Single,
        Some("cascade") => Strategy::Cascade,
        Some("ensemble") => Strategy::Ensemble,
        Some("synthesis") => Strategy::Synthesis,
        _ => Strategy::Auto,
    }
}

fn read_verify(router: &Section<'_>) -> Verify {
    match router.text("verify").as_deref() {
        Some("checks") => Verify::Checks,
        Some("reviewer") => Verify::Reviewer,
        Some("off") => Verify::Off,
        _ => Verify::Auto,
    }
}

impl Caps {
    fn from_section(caps: &Section<'_>) -> Self {
        Self {
            turn: caps.micro_usd("turn"),
            session: caps.micro_usd("session"),
            day: caps.micro_usd("day"),
            month: caps.micro_usd("month"),
            project_day: caps.micro_usd("project_day"),
            project_month: caps.micro_usd("project_month"),
        }
    }
}

impl Roles {
    fn from_section(roles: &Section<'_>) -> Self {
        Self {
            small: roles.arm("small"),
            planner: roles.arm("planner"),
            editor: roles.arm("editor"),
            reviewer: roles.arm("reviewer"),
        }
    }
}
