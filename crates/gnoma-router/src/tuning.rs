//! Every number of the router that was chosen and not derived.
//!
//! *Facts* were fitted (least squares on the probit of pass rates and the log of costs) to published results of 43
//! models on five agentic benchmarks of 2026, or read off the spread of replayed outcomes. *Tuned* were set on
//! replayed outcomes of real agents: five sets of three or eight models, 264 to 625 tasks of one to five kinds,
//! mostly with priors from one half of the tasks and the stream from the other; drift and budgets on one set of
//! eight, with priors from the stream's own tasks. All five sets were looked at, so none of them is a clean test.
//! Trying a half to twice of the shared luck, prior weight and cold doubts moved results by about their noise; the
//! others were not all tried. *Chosen* say what we think.

/// The numbers. `Default` is what ships.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Facts: ability (probit of the pass rate) of a model of the reference price, as new as the newest.
    pub ability: f64,
    /// Facts: ability gained for each factor of `e` in output price.
    pub ability_per_log_price: f64,
    /// Facts: ability lost per year behind the newest model known.
    pub ability_per_year: f64,
    /// Facts: log of dollars per task at the reference price.
    pub log_cost: f64,
    /// Facts: log cost gained for each factor of `e` in output price.
    pub log_cost_per_log_price: f64,
    /// Facts: output price (dollars per million tokens) of the middle model.
    pub reference_price: f64,
    /// Facts: price assumed for a closed model without one.
    pub closed_price: f64,
    /// Facts: price assumed for an open model without one.
    pub open_price: f64,
    /// Chosen: years behind the newest assumed of a model without a date.
    pub assumed_age_years: f64,
    /// Facts (residual variances): doubt of ability where there are no priors.
    pub cold: LevelVariances,
    /// Tuned: doubt of ability where there are priors.
    pub warm: LevelVariances,
    /// Facts (residual variances): doubt of log cost where there are no priors.
    pub cost_cold: LevelVariances,
    /// Tuned: doubt of log cost where there are priors.
    pub cost_warm: LevelVariances,
    /// Tuned: most tasks a prior counts for.
    pub prior_tasks: f64,
    /// Tuned, and near the mean tetrachoric correlation of outcomes: the share of an outcome's variance that the
    /// task decides and not the arm (ρ).
    pub shared: f64,
    /// Facts: standard deviation of log cost within a pair.
    pub cost_spread: f64,
    /// Chosen: shape of the gamma distribution that costs are taken for.
    pub cost_shape: f64,
    /// Facts: how much of a cost surprise comes back with the next arm on the same task.
    pub cost_echo: f64,
    /// Facts: correlation between a task being dear and being hard.
    pub cost_hardness: f64,
    /// The assumed worth of a verifier before anything is known of it.
    pub verifier: VerifierTuning,
    /// Tuned: later tasks that the knowledge gained by a trial is taken to serve.
    pub trial_horizon: f64,
    /// Tuned: step of the shadow price.
    pub scarcity_step: f64,
    /// The test that notices an arm has changed.
    pub drift: DriftTuning,
}

/// The assumed worth of a verifier before anything is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerifierTuning {
    /// Chosen: chance that it passes a right attempt.
    pub passes_right: f64,
    /// Chosen: chance that it passes a wrong one.
    pub passes_wrong: f64,
    /// Chosen: attempts these two count for.
    pub weight: f64,
}

/// The test that notices an arm has changed (CUSUM).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftTuning {
    /// Chosen: drop of ability that the test looks for.
    pub drop: f64,
    /// Chosen: change of log cost, in standard deviations, below which the test sees none.
    pub slack: f64,
    /// Tuned: evidence (natural log of odds) at which an arm is taken for changed.
    pub alarm: f64,
    /// Tuned: doubt of ability added by the alarm.
    pub shaken: LevelVariances,
    /// Tuned: doubt of log cost added by the alarm.
    pub cost_shaken: LevelVariances,
}

/// The variances of beliefs, by level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelVariances {
    /// Of the arm, over all kinds.
    pub arm: f64,
    /// Of the kind, over all arms.
    pub kind: f64,
    /// Of the pair alone.
    pub pair: f64,
}

impl LevelVariances {
    const fn new(arm: f64, kind: f64, pair: f64) -> Self {
        Self { arm, kind, pair }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            ability: 0.45,
            ability_per_log_price: 0.22,
            ability_per_year: 0.7,
            log_cost: -0.7,
            log_cost_per_log_price: 0.45,
            reference_price: 5.75,
            closed_price: 15.0,
            open_price: 1.4,
            assumed_age_years: 0.3,
            cold: LevelVariances::new(0.03, 0.25, 0.05),
            warm: LevelVariances::new(0.003, 0.005, 0.0),
            cost_cold: LevelVariances::new(0.33, 0.4, 0.37),
            cost_warm: LevelVariances::new(0.02, 0.02, 0.01),
            prior_tasks: 300.0,
            shared: 0.72,
            cost_spread: 0.75,
            cost_shape: 1.0,
            cost_echo: 0.35,
            cost_hardness: 0.3,
            verifier: VerifierTuning { passes_right: 0.8, passes_wrong: 0.2, weight: 10.0 },
            trial_horizon: 15.0,
            scarcity_step: 0.02,
            drift: DriftTuning {
                drop: 0.6,
                slack: 1.0,
                alarm: 6.0,
                shaken: LevelVariances::new(0.25, 0.0, 0.05),
                cost_shaken: LevelVariances::new(1.0, 0.0, 0.1),
            },
        }
    }
}
