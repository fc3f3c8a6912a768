//! Named switches of features that may still change, in one table. What a switch does is in the setting that it stands
//! for; the layers put that setting in its place.

use super::{
    kind::Kind::Bool,
    row::{
        Guard::{self, Open, Trusted},
        Row,
    },
};

/// The section of a settings file that has the switches.
const SECTION: &str = "features.";

/// The stage of a feature: how settled it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureStage {
    /// The feature may change or go at any time.
    Experimental,
    /// The feature stays, but details may change.
    Preview,
    /// The feature stays as it is.
    Stable,
    /// The feature is gone; its switch has no effect.
    Removed,
}

impl FeatureStage {
    /// Returns the name of the stage.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Experimental => "experimental",
            Self::Preview => "preview",
            Self::Stable => "stable",
            Self::Removed => "removed",
        }
    }
}

/// One switch.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The key of the setting that the switch stands for, such as `features.memory`.
    pub key: &'static str,
    /// The stage of the feature.
    pub stage: FeatureStage,
    /// The state of the switch if nothing sets it.
    pub default: bool,
    /// The setting that it stands for; empty if it was removed.
    pub setting: &'static str,
    /// The values of that setting for off and on; `None` if it is true or false.
    pub words: Option<[&'static str; 2]>,
    /// One line about it; if it was removed, what to use instead.
    pub about: &'static str,
    /// The version that has it first, or removed it.
    pub since: &'static str,
    guard: Guard,
}

impl Feature {
    /// Returns the name of the switch, which is its key without the section.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.strip_prefix(SECTION).unwrap_or(self.key)
    }

    pub(super) const fn row(&self) -> Row {
        let row = Row::new(self.key, Bool, self.about).with_guard(self.guard);
        if self.setting.is_empty() { row.without_effect(self.about) } else { row }
    }
}

/// All switches.
pub static FEATURES: [Feature; 4] = [TWO_STAGE, MEMORY, TASK_SUGGESTIONS, ENTROPY_THRESHOLD];

pub(super) const TWO_STAGE: Feature = Feature {
    key: "features.two_stage",
    stage: FeatureStage::Experimental,
    default: false,
    setting: "router.force_two_stage",
    words: None,
    about: "give every model the few tools of small ones",
    since: "0.1.0",
    guard: Open,
};
pub(super) const MEMORY: Feature = Feature {
    key: "features.memory",
    stage: FeatureStage::Preview,
    default: false,
    setting: "memory.enabled",
    words: None,
    about: "tell models what `/memory` says",
    since: "0.1.0",
    guard: Trusted,
};
pub(super) const TASK_SUGGESTIONS: Feature = Feature {
    key: "features.task_suggestions",
    stage: FeatureStage::Stable,
    default: true,
    setting: "tasks.suggest",
    words: Some(["off", "on"]),
    about: "offer to save repeated work as a task",
    since: "0.1.0",
    guard: Trusted,
};
pub(super) const ENTROPY_THRESHOLD: Feature = Feature {
    key: "features.entropy_threshold",
    stage: FeatureStage::Removed,
    default: false,
    setting: "",
    words: None,
    about: "`security.redact_high_entropy` decides about likely secrets",
    since: "0.1.0",
    guard: Trusted,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ROWS;

    #[test]
    fn switch_of_a_feature_has_the_default_and_the_guard_of_its_setting() {
        for feature in FEATURES {
            assert!(ROWS.iter().any(|row| row.path == feature.key), "{}", feature.key);
            let Some(row) = ROWS.iter().find(|row| row.path == feature.setting) else {
                assert_eq!(feature.stage, FeatureStage::Removed, "{}", feature.key);
                continue;
            };
            assert_eq!(row.guard, feature.guard, "{}", feature.key);
            let written = match feature.words {
                Some(words) => format!("\"{}\"", words[usize::from(feature.default)]),
                None => feature.default.to_string(),
            };
            assert_eq!(row.built_in(), Some(written), "{}", feature.key);
        }
    }
}
