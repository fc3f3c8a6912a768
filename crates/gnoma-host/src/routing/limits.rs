//! Turns settings into the router's input: rules, limits, worth, strategies. Pure, with one sentence for each
//! setting that cannot apply.

use std::path::Path;

use gnoma_config::{
    Place,
    settings::{Priority, RateLimits, RoutingRule},
};
use gnoma_core::{ModelRef, home};
use gnoma_router::{
    RouterSettings,
    pool::PoolLimits,
    rules::{self, Roles, Rule, RuleConditions, RuleEffect},
};

use super::slm;
use crate::{agents::PROVIDER, project_settings::RoutingSettings};

/// By how many percent of a task's worth an arm may be the worse choice where it is said to be good.
const STRENGTH_PERCENT: u32 = 10;

/// Returns what the settings want of the router, with warnings about what of it cannot hold. `home` shortens the places
/// that messages name.
pub(super) fn convert_settings(settings: &RoutingSettings, home: Option<&Path>) -> RouterSettings {
    let router = &settings.router;
    let placed =
        |rule: &RoutingRule| Rule { origin: display_place(&rule.place, home), ..rule.rule.clone() };
    let mut rules: Vec<Rule> = router.rules.iter().map(placed).collect();
    let mut warnings = rules::check_rules(&rules);
    rules.extend(strength_rules(settings));
    let limits = pool_limits(settings, &mut warnings);
    let classifier = slm::classifier_arm(settings);
    let only_classifies = classifier.as_ref().is_some_and(|arm| slm::only_sorts(settings, arm));
    RouterSettings {
        rules,
        said: warnings,
        roles: router.roles.clone(),
        value_micro_usd: result_value(router.value_micro_usd, router.priority),
        second_micro_usd: router.second_micro_usd,
        strategy: router.strategy,
        max_attempts: usize::try_from(router.max_attempts).unwrap_or(usize::MAX),
        verify: router.verify,
        checks: router.checks.clone(),
        failover: router.failover,
        learn: router.learn,
        local_only: settings.privacy.incognito && settings.privacy.local_only,
        classifier,
        only_classifies,
        limits,
        ..RouterSettings::default()
    }
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

/// The place of a rule: file and line, the home as `~`.
fn display_place(place: &Place, home: Option<&Path>) -> String {
    let Place::File { path, position } = place else { return place.to_string() };
    let shown = home::shorten(path, home);
    match position {
        Some(position) => format!("{}:{}", shown.display(), position.line),
        None => shown.display().to_string(),
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

fn pool_limits(settings: &RoutingSettings, warnings: &mut Vec<String>) -> PoolLimits {
    let mut limits = PoolLimits::new(settings.router.caps);
    for (name, RateLimits { tier, rates }) in &settings.rate_limits {
        if let Err(unknown) = limits.add_rates(name, rates.clone(), name, tier.as_deref()) {
            warnings.push(unknown.to_string());
        }
    }
    limits
}

/// Describes the models of roles that are no arm, for people who misspelt one. Those of no provider are told with the
/// other settings that name one.
pub(super) fn unknown_names(roles: &Roles, arms: &[ModelRef], providers: &[String]) -> Vec<String> {
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
        rules::{Day, LocalTime},
    };

    use super::*;
    use crate::project_settings::ProjectSettings;

    fn wishes_of(text: &str) -> RouterSettings {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        convert_settings(
            &ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing,
            Some(folder.path()),
        )
    }

    #[test]
    fn router_learns_from_outcomes_unless_the_settings_say_no() {
        assert!(wishes_of("").learn && !wishes_of("[router]\nlearn = false\n").learn);
    }

    #[test]
    fn routing_rules_of_settings_keep_conditions_and_location() {
        let wishes = wishes_of(
            "[[router.rules]]\nname = \"nights\"\nhours = \"22:00-06:00\"\ndays = [\"fri\"]\n\
             complexity = \"10-40\"\nprefer = [\"a/*\"]\n\
             [[router.rules]]\ndays = [\"sun\"]\nforbid = [\"b/*\"]\n\
             [[arms]]\nid = \"a/b\"\nstrengths = [\"debug\"]\n",
        );
        let [nights, sundays, strong] = wishes.rules.as_slice() else { unreachable!() };
        assert_eq!(nights.label(), "rule `nights` (~/config.toml:2)");
        assert_eq!((nights.when.min_complexity, nights.when.max_complexity), (Some(10), Some(40)));
        let at = |day, minute| LocalTime { day, minute };
        let holds = |rule: &Rule, time| rule.when.hours.as_ref().unwrap().contains_time(time);
        assert!(holds(nights, at(Day::Sat, 60)) && !holds(nights, at(Day::Fri, 60)));
        assert!(holds(sundays, at(Day::Sun, 1_439)) && !holds(sundays, at(Day::Mon, 0)));
        assert_eq!((sundays.name.as_str(), strong.when.tasks.len()), ("number 2", 1));
        assert!(ask_the_time(&wishes.rules));
    }

    #[test]
    fn conflicting_routing_rules_warn_once_with_both_locations() {
        let wishes = wishes_of(
            "[[router.rules]]\nname = \"a\"\npin = \"x/*\"\n\
             [[router.rules]]\nname = \"b\"\nforbid = [\"x/*\"]\n",
        );
        let [warning] = wishes.said.as_slice() else { unreachable!("{:?}", wishes.said) };
        assert!(warning.contains("config.toml:2") && warning.contains("config.toml:5"));
    }

    #[test]
    fn model_configured_only_as_classifier_is_not_routed_work() {
        let slm = "[slm]\nenabled = true\nbackend = \"ollama\"\nmodel = \"tiny\"\n";
        let alone = |more: &str| wishes_of(&format!("{slm}{more}")).only_classifies;
        assert!(alone(""));
        assert!(!alone("[[arms]]\nid = \"ollama/tiny\"\n"));
        assert!(!alone("[router.roles]\nsmall = \"ollama/tiny\"\n"));
        assert!(!alone("[provider.models]\nollama = [\"tiny\"]\n"));
        assert!(!alone("[provider]\ndefault = \"ollama\"\nmodel = \"tiny\"\n"));
        assert!(alone("[provider]\ndefault = \"ollama\"\nmodel = \"large\"\n"));
        assert!(!wishes_of("").only_classifies);
    }

    #[test]
    fn spending_caps_become_limits_and_an_unknown_tier_warns() {
        let wishes = wishes_of(
            "[router]\npriority = \"high\"\nvalue = 4\n[router.caps]\nday = 2.5\n\
             [rate_limits.anthropic]\ntier = \"gold\"\n",
        );
        assert_eq!(wishes.value_micro_usd, 8_000_000);
        assert_eq!(wishes.said.len(), 1);
        let arm = Arm::new(ModelRef { provider: "x".into(), model: "y".into() });
        let (scope, learnt) = (Scope::new("s"), LearntLimits::default());
        let draws = wishes.limits.draws_for_call(&arm, &scope, "p", &learnt);
        let caps: Vec<_> = draws.iter().flat_map(|draw| &draw.limits).collect();
        assert_eq!(caps.len(), 1);
        assert_eq!((caps[0].unit, caps[0].most), (Unit::MicroUsd, 2_500_000));
    }
}
