//! What a limit is worth: a shadow price on arms that draw on a budget which would not last.
//!
//! The price is the dual variable of "spend no more than the cap in each window". It climbs while tasks spend more
//! than an even share and falls while they spend less (dual ascent: Balseiro, Lu and Mirrokni, 2023), so a scarce
//! arm goes where it is worth most instead of to the first tasks of the day. Limits are kept elsewhere.

use std::collections::BTreeMap;

use crate::arm::PoolId;

/// A task that spends more than this many even shares counts for this many.
const MOST_SHARES: f64 = 10.0;
/// A price never passes this.
const MOST_PRICE: f64 = 50.0;
/// The factor by which the amount left late in a window moves the price at most.
const MOST_PRESSURE: f64 = 4.0;

/// The state of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolBudget {
    /// The dollars that may be spent per window.
    pub cap: f64,
    /// Dollars of it that are left.
    pub left: f64,
    /// Share of the window's work still to come, from 1 to 0.
    pub to_come: f64,
    /// Tasks expected in a window.
    pub tasks: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scarcity {
    /// Price on each dollar of the pool, beside the dollar itself, by how even its spending was.
    pub(crate) prices: BTreeMap<PoolId, f64>,
    budgets: BTreeMap<PoolId, PoolBudget>,
}

impl Scarcity {
    /// Takes in where the budget stands.
    pub(crate) fn set_budget(&mut self, pool: &PoolId, budget: PoolBudget) {
        self.budgets.insert(pool.clone(), budget);
    }

    /// Takes in what one task spent of every budgeted pool (nothing, for most).
    pub(crate) fn record_spend(&mut self, by_pool: &BTreeMap<PoolId, f64>, step: f64) {
        for (pool, budget) in &self.budgets {
            let even = budget.cap / budget.tasks.max(1.0);
            let shares = by_pool.get(pool).copied().unwrap_or(0.0) / even.max(f64::MIN_POSITIVE);
            let price = self.prices.entry(pool.clone()).or_insert(0.0);
            *price = (*price + step * (shares.min(MOST_SHARES) - 1.0)).clamp(0.0, MOST_PRICE);
        }
    }

    /// Goes on from prices learnt before.
    pub(crate) fn from_prices(prices: &BTreeMap<PoolId, f64>) -> Self {
        let sound = |price: f64| (0.0..=MOST_PRICE).contains(&price);
        Self {
            prices: gnoma_core::sort::to_map(
                prices
                    .iter()
                    .filter(|(_, price)| sound(**price))
                    .map(|(pool, price)| (pool.clone(), *price)),
            ),
            budgets: BTreeMap::new(),
        }
    }

    /// Returns the weight of a dollar that draws on all these pools.
    pub(crate) fn dollar_weight(&self, pools: &[PoolId]) -> f64 {
        1.0 + pools.iter().map(|pool| self.pool_price(pool)).sum::<f64>()
    }

    fn pool_price(&self, pool: &PoolId) -> f64 {
        let (Some(price), Some(budget)) = (self.prices.get(pool), self.budgets.get(pool)) else {
            return 0.0;
        };
        let pace = budget.cap * budget.to_come / budget.left.max(f64::MIN_POSITIVE);
        price * (pace * pace).clamp(0.0, MOST_PRESSURE)
    }
}
