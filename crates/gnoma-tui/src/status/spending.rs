//! What all sessions spent today and this week, and how full the caps are, in the line at the bottom.

use gnoma_core::json_value::json;
use serde_json::Value;

use super::cost::{Cost, MICRO_USD};

/// The parts of the spending that the person wants to see; `None` hides one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingParts {
    /// The cost of today.
    pub today: Option<Cost>,
    /// The cost of this week.
    pub week: Option<Cost>,
    /// The part of the fullest cap that is used, in percent.
    pub cap_percent: Option<u64>,
}

impl SpendingParts {
    /// Describes a cost, such as `today $1.20`; empty if it is hidden or nothing of it is known.
    pub(super) fn describe_cost(name: &str, cost: Option<Cost>) -> String {
        let amount = cost.and_then(Cost::describe_amount);
        amount.map_or_else(String::new, |amount| format!("{name} {amount}"))
    }

    /// Describes the cap, such as `cap 62%`.
    pub(super) fn describe_cap(&self) -> String {
        self.cap_percent.map_or_else(String::new, |percent| format!("cap {percent}%"))
    }

    /// Returns the facts as a script gets them.
    pub(crate) fn to_json(self) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "money that is shown")]
        let dollars = |cost: Option<Cost>| {
            cost.filter(|cost| cost.describe_amount().is_some())
                .map(|cost| cost.micro_usd as f64 / MICRO_USD)
        };
        json!({
            "today_usd": dollars(self.today),
            "week_usd": dollars(self.week),
            "cap_used_percentage": self.cap_percent,
        })
    }
}
