//! Turns settings into the router's input: rules, limits, worth, strategies. Pure, with one sentence for each
//! setting that cannot apply.

use std::path::Path;

use gnoma_config::{
    Place,
    settings::{self, Priority, RateLimits, RoutingRule, Share},
};
use gnoma_core::{ModelRef, home};
use gnoma_router::{
    RouterSettings, Strategy, Verify,
    pool::{Caps, PoolLimits, Rates},
    rules::{self, Day, Hours, Roles, Rule, RuleConditions, RuleEffect},
};

use super::slm;
use crate::{agents::PROVIDER, project_settings::RoutingSettings};

/// By how many percent of a task's worth an arm may be the worse choice where it is said to be good.
const STRENGTH_PERCENT: u32 = 10;

/// The settings of the router, and warnings about what is wrong with them.
pub(super) struct RouterInput {
    pub settings: RouterSettings,
    pub warnings: Vec<String>,
}

/// Returns what the settings want of the router, and what of it cannot hold. `home` shortens the places that
/// messages name.
pub(super) fn convert_settings(settings: &RoutingSettings, home: Option<&Path>) -> RouterInput {
    let router = &settings.router;
    let mut rules: Vec<Rule> =
        (1..).zip(&router.rules).map(|(number, rule)| self::to_rule(number, rule, home)).collect();
    let mut warnings = rules::check_rules(&rules);
    rules.extend(strength_rules(settings));
    let limits = pool_limits(settings, &mut warnings);
    let classifier = slm::classifier_arm(settings);
    let only_classifies = classifier.as_ref().is_some_and(|arm| slm::only_sorts(settings, arm));
    let settings = RouterSettings {
        rules,
        roles: to_roles(&router.roles),
        value_micro_usd: result_value(router.value_micro_usd, router.priority),
        second_micro_usd: router.second_micro_usd,
        strategy: to_strategy(router.strategy),
        max_attempts: usize::try_from(router.max_attempts).unwrap_or(usize::MAX),
        verify: to_verify(router.verify),
        checks: router.checks.clone(),
        failover: router.failover,
        local_only: settings.privacy.incognito && settings.privacy.local_only,
        classifier,
        only_classifies,
        limits,
        ..RouterSettings::default()
    };
    RouterInput { settings, warnings }
}

/// Reports whether any rule asks for the time.
pub(super) fn ask_the_time(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.when.hours.is_some())
}

/// Returns the worth of a right result to a user with this priority.
fn result_value(value_micro_usd: u64, priority: Priority) -> u64 {
    let percent: u128 = match priority {
        Priority::Low => 50,
        Priority::Normal => 100,
        Priority::High => 200,
        Priority::Critical => 500,
    };
    u64::try_from(u128::from(value_micro_usd) * percent / 100).unwrap_or(u64::MAX)
}

fn to_rule(number: usize, rule: &RoutingRule, home: Option<&Path>) -> Rule {
    let name = if rule.name.is_empty() { format!("number {number}") } else { rule.name.clone() };
    let mut then: Vec<RuleEffect> = rule.pin.iter().cloned().map(RuleEffect::Pin).collect();
    if !rule.forbid.is_empty() {
        then.push(RuleEffect::Forbid(rule.forbid.clone()));
    }
    if !rule.prefer.is_empty() {
        then.push(RuleEffect::Prefer { arms: rule.prefer.clone(), percent: rule.prefer_percent });
    }
    then.extend(rule.max_cost_micro_usd.map(RuleEffect::MaxCostMicroUsd));
    then.extend(rule.max_seconds.map(RuleEffect::MaxSeconds));
    let when = RuleConditions {
        tasks: rule.task.clone(),
        paths: rule.path.clone(),
        hours: to_hours(rule),
        min_complexity: rule.complexity.map(|Share { from, .. }| from),
        max_complexity: rule.complexity.map(|Share { to, .. }| to),
    };
    Rule { name, origin: display_place(&rule.place, home), when, then }
}

/// The place of a rule: file and line, the home as `~`.
fn display_place(place: &Place, home: Option<&Path>) -> String {
    let Place::File { path, position } = place else { return place.to_string() };
    let shown = home::shorten(path, home);
    match position {
        Some(position) => format!("{}:{}", shown.display(), position.line),
        None => shown.display().to_string(),
    }
}

/// Days without hours are whole days.
fn to_hours(rule: &RoutingRule) -> Option<Hours> {
    let days: Vec<Day> = rule.days.iter().copied().map(to_day).collect();
    match rule.hours {
        Some(hours) => Some(Hours { from: hours.from_min, to: hours.to_min, days }),
        None if days.is_empty() => None,
        None => Some(Hours { from: 0, to: 0, days }),
    }
}

fn to_day(day: settings::Weekday) -> Day {
    match day {
        settings::Weekday::Mon => Day::Mon,
        settings::Weekday::Tue => Day::Tue,
        settings::Weekday::Wed => Day::Wed,
        settings::Weekday::Thu => Day::Thu,
        settings::Weekday::Fri => Day::Fri,
        settings::Weekday::Sat => Day::Sat,
        settings::Weekday::Sun => Day::Sun,
    }
}

/// Arms that are said to be good at something are preferred for it.
fn strength_rules(settings: &RoutingSettings) -> impl Iterator<Item = Rule> {
    let strong = settings.arms.iter().filter(|(_, arm)| arm.enabled && !arm.strengths.is_empty());
    strong.map(|(name, arm)| Rule {
        name: format!("strengths of {name}"),
        origin: "[[arms]]".to_owned(),
        when: RuleConditions { tasks: arm.strengths.clone(), ..RuleConditions::default() },
        then: vec![RuleEffect::Prefer { arms: vec![name.clone()], percent: STRENGTH_PERCENT }],
    })
}

fn to_roles(roles: &settings::Roles) -> Roles {
    let settings::Roles { small, planner, editor, reviewer } = roles.clone();
    Roles { small, planner, editor, reviewer }
}

fn to_strategy(strategy: settings::Strategy) -> Strategy {
    match strategy {
        settings::Strategy::Auto => Strategy::Auto,
        settings::Strategy::Single => Strategy::Single,
        settings::Strategy::Cascade => Strategy::Cascade,
        settings::Strategy::Ensemble => Strategy::Ensemble,
        settings::Strategy::Synthesis => Strategy::Synthesis,
    }
}

fn to_verify(verify: settings::Verify) -> Verify {
    match verify {
        settings::Verify::Auto => Verify::Auto,
        settings::Verify::Checks => Verify::Checks,
        settings::Verify::Reviewer => Verify::Reviewer,
        settings::Verify::Off => Verify::Off,
    }
}

fn pool_limits(settings: &RoutingSettings, warnings: &mut Vec<String>) -> PoolLimits {
    let settings::Caps { turn, session, day, month, project_day, project_month } =
        settings.router.caps;
    let mut limits =
        PoolLimits::new(Caps { turn, session, day, month, project_day, project_month });
    for (name, stated) in &settings.rate_limits {
        if let Err(unknown) = limits.add_rates(name, to_rates(stated), name, stated.tier.as_deref())
        {
            warnings.push(unknown.to_string());
        }
    }
    limits
}

/// Rates as they are stated. A 0 lifts what the plan says; without a plan there is nothing to lift.
fn to_rates(stated: &RateLimits) -> Rates {
    let has_plan = stated.tier.is_some();
    let lifted = |rate: Option<u64>| match rate {
        Some(0) => has_plan.then_some(u64::MAX),
        rate => rate,
    };
    Rates {
        rps: match stated.rps {
            Some(rps) if rps <= 0.0 => has_plan.then_some(f64::INFINITY),
            rps => rps,
        },
        rpm: lifted(stated.rpm),
        rpd: lifted(stated.rpd),
        tpm: lifted(stated.tpm),
        itpm: lifted(stated.itpm),
        otpm: lifted(stated.otpm),
        tokens_month: lifted(stated.tokens_month),
        spend_day_micro_usd: stated.spend_day_micro_usd,
        spend_month_micro_usd: stated.spend_month_micro_usd,
        custom: stated.custom,
        custom_month: lifted(stated.custom_month),
    }
}

/// Describes the models of roles that are no arm, for people who misspelt one. Those of no provider are told with the
/// other settings that name one.
pub(super) fn unknown_names(
    roles: &settings::Roles,
    arms: &[ModelRef],
    providers: &[String],
) -> Vec<String> {
    let is_unknown = |arm: &ModelRef| {
        !arms.contains(arm) && (arm.provider == PROVIDER || providers.contains(&arm.provider))
    };
    let unknown = roles.named_arms().filter(|(_, arm)| is_unknown(arm));
    unknown.map(|(key, arm)| format!("`{key}` names {arm}, which is not available")).collect()
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;
    use gnoma_core::ledger::Unit;
    use gnoma_router::{
        Arm,
        pool::{LearntLimits, Scope},
        rules::LocalTime,
    };

    use super::*;
    use crate::project_settings::ProjectSettings;

    fn wishes_of(text: &str) -> RouterInput {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        convert_settings(
            &ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing,
            Some(folder.path()),
        )
    }

    #[test]
    fn rules_keep_their_conditions_and_their_place() {
        let wishes = wishes_of(
            "[[router.rules]]\nname = \"nights\"\nhours = \"22:00-06:00\"\ndays = [\"fri\"]\n\
             complexity = \"10-40\"\nprefer = [\"a/*\"]\n\
             [[router.rules]]\ndays = [\"sun\"]\nforbid = [\"b/*\"]\n\
             [[arms]]\nid = \"a/b\"\nstrengths = [\"debug\"]\n",
        );
        let [nights, sundays, strong] = wishes.settings.rules.as_slice() else { unreachable!() };
        assert_eq!(nights.label(), "rule `nights` (~/config.toml:2)");
        assert_eq!((nights.when.min_complexity, nights.when.max_complexity), (Some(10), Some(40)));
        let at = |day, minute| LocalTime { day, minute };
        let holds = |rule: &Rule, time| rule.when.hours.as_ref().unwrap().contains_time(time);
        assert!(holds(nights, at(Day::Sat, 60)) && !holds(nights, at(Day::Fri, 60)));
        assert!(holds(sundays, at(Day::Sun, 1_439)) && !holds(sundays, at(Day::Mon, 0)));
        assert_eq!((sundays.name.as_str(), strong.when.tasks.len()), ("number 2", 1));
        assert!(ask_the_time(&wishes.settings.rules));
    }

    #[test]
    fn contradictions_are_told_once_with_both_places() {
        let wishes = wishes_of(
            "[[router.rules]]\nname = \"a\"\npin = \"x/*\"\n\
             [[router.rules]]\nname = \"b\"\nforbid = [\"x/*\"]\n",
        );
        let [warning] = wishes.warnings.as_slice() else { unreachable!("{:?}", wishes.warnings) };
        assert!(warning.contains("config.toml:2") && warning.contains("config.toml:5"));
    }

    #[test]
    fn who_is_named_for_sorting_alone_does_nothing_else() {
        let slm = "[slm]\nenabled = true\nbackend = \"ollama\"\nmodel = \"tiny\"\n";
        let alone = |more: &str| wishes_of(&format!("{slm}{more}")).settings.only_classifies;
        assert!(alone(""));
        assert!(!alone("[[arms]]\nid = \"ollama/tiny\"\n"));
        assert!(!alone("[router.roles]\nsmall = \"ollama/tiny\"\n"));
        assert!(!alone("[provider.models]\nollama = [\"tiny\"]\n"));
        assert!(!alone("[provider]\ndefault = \"ollama\"\nmodel = \"tiny\"\n"));
        assert!(alone("[provider]\ndefault = \"ollama\"\nmodel = \"large\"\n"));
        assert!(!wishes_of("").settings.only_classifies);
    }

    #[test]
    fn a_zero_lifts_a_limit_of_the_plan_and_no_other() {
        let stated = RateLimits { rpm: Some(0), tpm: Some(5), ..RateLimits::default() };
        assert_eq!(to_rates(&stated).rpm, None);
        let planned = RateLimits { tier: Some("1".to_owned()), ..stated };
        assert_eq!((to_rates(&planned).rpm, to_rates(&planned).tpm), (Some(u64::MAX), Some(5)));
    }

    #[test]
    fn caps_are_limits_and_an_unknown_plan_is_told() {
        let wishes = wishes_of(
            "[router]\npriority = \"high\"\nvalue = 4\n[router.caps]\nday = 2.5\n\
             [rate_limits.anthropic]\ntier = \"gold\"\n",
        );
        assert_eq!(wishes.settings.value_micro_usd, 8_000_000);
        assert_eq!(wishes.warnings.len(), 1);
        let arm = Arm::new(ModelRef { provider: "x".into(), model: "y".into() });
        let (scope, learnt) = (Scope::new("s"), LearntLimits::default());
        let draws = wishes.settings.limits.draws_for_call(&arm, &scope, "p", &learnt);
        let caps: Vec<_> = draws.iter().flat_map(|draw| &draw.limits).collect();
        assert_eq!(caps.len(), 1);
        assert_eq!((caps[0].unit, caps[0].most), (Unit::MicroUsd, 2_500_000));
    }
}
