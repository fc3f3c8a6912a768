//! The choice of the arms of a turn, from its words to the arm that goes on after a failure. Pure.
//!
//! [`Task`] is what a turn is about, [`RoutingState`] what is known of the arms, [`RouterSettings`] what the user wants, and
//! [`RoutePlan`] what comes of it: the arms, their order, and what each of them used and achieved. [`failover`] decides
//! whether a failed call goes to another arm. Calling the arms, saving outcomes and reserving money happen elsewhere.

mod arm_contributions;
mod arm_selection;
mod choice_reasons;
pub mod failover;
mod offers;
mod route_plan;
mod routing_state;
mod settings;
mod turn_task;

pub use self::{
    arm_contributions::ArmContributions,
    offers::{
        ChoiceContext, LIMIT_PATIENCE, OVERHEAD_TOKENS, TYPICAL_ANSWER, WarmPrompt, cache_savings,
        expected_amount,
    },
    route_plan::{CollaborationMode, NoArm, PanelAuthors, RoutePlan},
    routing_state::RoutingState,
    settings::{RouterSettings, Strategy, Verify},
    turn_task::Task,
};
