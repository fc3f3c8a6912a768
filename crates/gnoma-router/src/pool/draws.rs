//! The pools a call draws on, and their limits.

use std::{collections::BTreeMap, fmt};

use gnoma_core::{
    ModelRef,
    ledger::{Amount, ExhaustedLimit, Limit, PoolDraw, Unit, Window},
};

use super::{
    learnt_limits::LearntLimits,
    limit_status::describe_refusal,
    names::Pool,
    rates::Rates,
    scope::Scope,
    tiers::{self, Tier},
};
use crate::{arm::Arm, clock::Zone};

/// The most that may be spent, in micro-dollars; `None` sets no cap, 0 leaves free arms only.
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
    /// A day, for a project.
    pub project_day: Option<u64>,
    /// A month, for a project.
    pub project_month: Option<u64>,
}

/// A set of rate limits by its name.
#[derive(Clone, Debug, Default)]
struct RateLimitSet {
    rates: Rates,
    vendor: String,
    tier: Option<&'static Tier>,
}

impl RateLimitSet {
    /// The limits that `rates` mean at the set's vendor.
    fn vendor_limits(&self, rates: &Rates) -> Vec<Limit> {
        let counted =
            |limit: Limit| Limit { unit: tiers::counted_unit(limit.unit, &self.vendor), ..limit };
        rates.limits().into_iter().map(counted).collect()
    }
}

/// All limits that are set or known.
#[derive(Clone, Debug, Default)]
pub struct PoolLimits {
    caps: Caps,
    sets: BTreeMap<String, RateLimitSet>,
    /// The budget of the run that the session is for, in millionths of a dollar.
    run_budget: Option<u64>,
}

/// A tier that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTier {
    /// The set it stands in.
    pub set: String,
    /// Whose plan it would be.
    pub vendor: String,
    /// The name of the tier.
    pub tier: String,
}

impl fmt::Display for UnknownTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, vendor, tier } = self;
        write!(f, "`rate_limits.{set}.tier` names `{tier}`, ")?;
        let known: Vec<String> = tiers::tiers_of(vendor).map(|tier| format!("`{tier}`")).collect();
        if known.is_empty() {
            write!(f, "but no plan of `{vendor}` is known")?;
        } else {
            write!(f, "of `{vendor}` are known: {}", known.join(", "))?;
        }
        write!(f, "; state your limits one by one, such as `rpm` and `tpm`")
    }
}

impl PoolLimits {
    /// With caps and no rate limits.
    #[must_use]
    pub fn new(caps: Caps) -> Self {
        Self { caps, sets: BTreeMap::new(), run_budget: None }
    }

    /// With the budget of the run that the session is for, so that refusals name it.
    #[must_use]
    pub fn with_run_budget(self, run_budget: Option<u64>) -> Self {
        Self { run_budget, ..self }
    }

    /// Describes a ledger's refusal of a call that takes `need`. A cap on the session may be the budget of a run.
    #[must_use]
    pub fn describe_full_limit(
        &self,
        full: &ExhaustedLimit,
        need: &Amount,
        now_ms: i64,
        zone: Zone,
    ) -> String {
        let is_budget = self.run_budget == Some(full.limit.most);
        describe_refusal(full, need.in_unit(full.limit.unit), (now_ms, zone), is_budget)
    }

    /// Returns the caps on spending.
    #[must_use]
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Adds a set of rate limits: those stated, and where none is, the tier's of `vendor`. A stated 0 lifts what the tier
    /// says, except that 0 micro-dollars are none to spend.
    ///
    /// # Errors
    /// Nobody knows that tier; the stated rates are added all the same.
    pub fn add_rates(
        &mut self,
        set: &str,
        rates: Rates,
        vendor: &str,
        tier: Option<&str>,
    ) -> Result<(), UnknownTier> {
        let known = tier.and_then(|name| tiers::find_tier(vendor, name));
        let rates = rates.with_zeros_lifted(tier.is_some());
        let vendor_name = vendor.to_owned();
        self.sets.insert(set.to_owned(), RateLimitSet { rates, vendor: vendor_name, tier: known });
        match tier {
            Some(name) if known.is_none() => Err(UnknownTier {
                set: set.to_owned(),
                vendor: vendor.to_owned(),
                tier: name.to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The pools of a call of `arm` in a session's turn and a project. Those without limits are only counted, so that
    /// a limit that is set later finds what was spent before.
    #[must_use]
    pub fn draws_for_call(
        &self,
        arm: &Arm,
        scope: &Scope,
        project: &str,
        learnt: &LearntLimits,
    ) -> Vec<PoolDraw> {
        let caps = &self.caps;
        let mut draws = vec![
            cap_draw(&Pool::All, [(Window::Day, caps.day), (Window::Month, caps.month)]),
            cap_draw(
                &Pool::Project(project.to_owned()),
                [(Window::Day, caps.project_day), (Window::Month, caps.project_month)],
            ),
        ];
        for scope in scope.self_and_ancestors() {
            // The stricter of its own limit and of the cap that all sessions have.
            let most = [scope.limit(), caps.session].into_iter().flatten().min();
            draws
                .push(cap_draw(&Pool::Session(scope.session().to_owned()), [(Window::Ever, most)]));
            if caps.turn.is_some() {
                let turn = Pool::Turn(scope.turn().to_owned());
                draws.push(cap_draw(&turn, [(Window::Ever, caps.turn)]));
            }
        }
        let mut names: Vec<&str> = vec![&arm.id.provider];
        names.extend(arm.pools.iter().map(String::as_str));
        for (at, name) in names.iter().enumerate() {
            if !names.iter().take(at).any(|earlier| earlier == name) {
                draws.extend(self.rate_draws(name, &arm.id));
            }
        }
        let told = learnt.limits(&arm.id);
        if !told.is_empty() {
            draws.push(PoolDraw { pool: Pool::Arm(arm.id.clone()).to_string(), limits: told });
        }
        draws
    }

    fn rate_draws(&self, name: &str, arm: &ModelRef) -> Vec<PoolDraw> {
        let whole = Pool::Rates(name.to_owned()).to_string();
        let Some(set) = self.sets.get(name) else {
            return vec![PoolDraw { pool: whole, limits: Vec::new() }];
        };
        let part = set.tier.and_then(|tier| tier.part_for_model(&arm.model));
        let below = match (part, set.tier) {
            // What the plan counts apart does not count into the rest of the plan.
            (Some(_), _) | (None, None) => Rates::default(),
            (None, Some(tier)) => tier.rates.clone(),
        };
        let mut draws = vec![PoolDraw {
            pool: whole,
            limits: set.vendor_limits(&set.rates.with_fallback(&below)),
        }];
        if let Some(part) = part {
            let pool = Pool::Part(name.to_owned(), part.word.clone()).to_string();
            draws.push(PoolDraw { pool, limits: set.vendor_limits(&part.rates) });
        }
        draws
    }
}

fn cap_draw<const N: usize>(pool: &Pool, caps: [(Window, Option<u64>); N]) -> PoolDraw {
    let limits = caps
        .into_iter()
        .filter_map(|(window, most)| Some(Limit { unit: Unit::MicroUsd, window, most: most? }))
        .collect();
    PoolDraw { pool: pool.to_string(), limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(provider: &str, model: &str) -> Arm {
        Arm::new(ModelRef { provider: provider.into(), model: model.into() })
    }

    fn draws(limits: &PoolLimits, arm: &Arm, sets: &[String]) -> BTreeMap<String, Vec<Limit>> {
        let scope = Scope::new("s").in_turn("t");
        let arm = Arm { pools: sets.into(), ..arm.clone() };
        let draws = limits.draws_for_call(&arm, &scope, "p", &LearntLimits::default());
        for draw in &draws {
            assert!(
                Pool::parse(&draw.pool).is_some_and(|p| p.to_string() == draw.pool),
                "{draw:?}"
            );
        }
        draws.into_iter().map(|draw| (draw.pool, draw.limits)).collect()
    }

    #[test]
    fn spending_caps_apply_to_all_models_and_rate_limits_per_provider() {
        let mut limits = PoolLimits::new(Caps { turn: Some(5), day: Some(7), ..Caps::default() });
        let rates = Rates { rpm: Some(3), ..Rates::default() };
        limits.add_rates("one", rates.clone(), "one", None).unwrap();
        limits.add_rates("shared", rates, "shared", None).unwrap();
        let ours = draws(&limits, &arm("one", "m"), &["shared".into(), "one".into()]);
        let theirs = draws(&limits, &arm("two", "m"), &[]);
        let with_limits = |draws: &BTreeMap<String, Vec<Limit>>| -> Vec<String> {
            draws.iter().filter(|(_, limits)| !limits.is_empty()).map(|(p, _)| p.clone()).collect()
        };
        assert_eq!(with_limits(&ours), ["all", "rates:one", "rates:shared", "turn:t"]);
        assert_eq!(with_limits(&theirs), ["all", "turn:t"]);
        assert!(theirs.contains_key("rates:two") && theirs.contains_key("session:s"));
    }

    #[test]
    fn refusal_names_the_budget_flag_only_if_it_is_the_binding_limit() {
        let limit = Limit { unit: Unit::MicroUsd, window: Window::Ever, most: 50_000 };
        let (pool, used, free_at_ms) = (Pool::Session("s".into()).to_string(), 50_000, None);
        let full = ExhaustedLimit { pool, limit, used, free_at_ms };
        let told = |budget: u64| {
            let limits = PoolLimits::default().with_run_budget(Some(budget));
            limits.describe_full_limit(&full, &Amount::default(), 0, || jiff::tz::TimeZone::UTC)
        };
        assert!(told(50_000).contains("make it again with `--budget 0.05`"));
        assert!(told(90_000).contains("raise `router.caps.session`"));
    }

    /// A child's call counts in its own session and turn and in all above, each with its own limit.
    #[test]
    fn child_session_spends_from_the_caps_of_all_its_ancestors() {
        use std::sync::Arc;

        use super::super::scope::{MAX_DEPTH, TooDeep};

        let limits = PoolLimits::new(Caps { turn: Some(5), session: Some(50), ..Caps::default() });
        let root = Arc::new(Scope::new("s").in_turn("s-1"));
        let child = Arc::new(root.for_child("c", Some(20)).unwrap().in_turn("c-1"));
        let grandchild = child.for_child("g", Some(90)).unwrap().in_turn("g-1");
        let arm = arm("one", "m");
        let most = |scope: &Scope| -> Vec<(String, Vec<u64>)> {
            let draws = limits.draws_for_call(&arm, scope, "p", &LearntLimits::default());
            let draws = draws.into_iter();
            let most = |draw: &PoolDraw| draw.limits.iter().map(|limit| limit.most).collect();
            let kept = draws.filter(|draw| !draw.limits.is_empty());
            kept.map(|draw| (draw.pool.clone(), most(&draw))).collect()
        };
        let expected = |pools: &[(&str, u64)]| -> Vec<(String, Vec<u64>)> {
            pools.iter().map(|(pool, most)| ((*pool).to_owned(), vec![*most])).collect()
        };
        assert_eq!(most(&root), expected(&[("session:s", 50), ("turn:s-1", 5)]));
        let above = [("session:c", 20), ("turn:c-1", 5), ("session:s", 50), ("turn:s-1", 5)];
        assert_eq!(most(&child), expected(&above));
        let own = [("session:g", 50), ("turn:g-1", 5)];
        assert_eq!(most(&grandchild), expected(&[&own[..], &above].concat()));

        let mut last = root;
        for depth in 2..=MAX_DEPTH {
            last = Arc::new(last.for_child(format!("{depth}"), None).unwrap());
        }
        assert_eq!(last.self_and_ancestors().count(), MAX_DEPTH);
        assert_eq!(last.for_child("more", None), Err(TooDeep));
    }

    #[test]
    fn custom_rate_limit_units_are_counted_per_pool() {
        let mut limits = PoolLimits::default();
        for (set, custom) in [("one", 1), ("three", 3)] {
            let rates = Rates { custom: Some(custom), custom_month: Some(12), ..Rates::default() };
            limits.add_rates(set, rates, set, None).unwrap();
        }
        let both = draws(&limits, &arm("one", "m"), &["three".into()]);
        assert_eq!((both["rates:one"][0].most, both["rates:three"][0].most), (12, 4));
    }

    #[test]
    fn vendor_tier_fills_unset_rate_limits_and_separates_token_kinds() {
        let mut limits = PoolLimits::default();
        let stated = Rates { rpm: Some(7), ..Rates::default() };
        limits.add_rates("anthropic", stated, "anthropic", Some("tier-1")).unwrap();
        let large = draws(&limits, &arm("anthropic", "claude-opus"), &[]);
        assert_eq!(large["rates:anthropic"].len(), 3);
        assert_eq!(large["rates:anthropic"][0].most, 7);
        let units = |draws: &[Limit]| draws.iter().map(|limit| limit.unit).collect::<Vec<_>>();
        let anthropic = [Unit::Requests, Unit::Input, Unit::Output];
        assert_eq!(units(&large["rates:anthropic"]), anthropic, "cached tokens do not count");
        let small = draws(&limits, &arm("anthropic", "claude-haiku"), &[]);
        assert_eq!(small["rates:anthropic"].len(), 1, "what was stated holds for all");
        assert_eq!(small["part:anthropic/haiku"].len(), 3);
        limits.add_rates("openai", Rates::default(), "openai", Some("1")).unwrap();
        let openai = draws(&limits, &arm("openai", "gpt"), &[]);
        assert!(units(&openai["rates:openai"]).contains(&Unit::AllTokens));
        let unknown = limits.add_rates("x", Rates::default(), "google", Some("gold")).unwrap_err();
        assert!(unknown.to_string().contains("`free`"), "{unknown}");
    }
}
