//! Lists of what a session can choose from: providers, profiles and models.

use std::sync::Arc;

use gnoma_config::profile;
use gnoma_core::info::Choice;
use gnoma_engine::Routes;
use gnoma_router::Arm;

use crate::{Folders as _, Project, providers};

/// Returns the configured providers: those of the files as they are now, as another program may have added one.
pub(crate) fn provider_choices(project: &Project) -> Vec<Choice> {
    let current = &project.routing.provider;
    let saved = providers::saved_settings(project);
    let provider = saved.as_ref().map_or(current, |saved| &saved.provider);
    let choice = |name: String| Choice {
        about: provider.endpoints.get(&name).cloned().unwrap_or_default(),
        current: current.default.as_ref() == Some(&name),
        name,
        ..Choice::default()
    };
    providers::configured_providers(provider).into_iter().map(choice).collect()
}

/// Returns the profiles of the settings.
pub(crate) fn profile_choices(project: &Project) -> Vec<Choice> {
    let current = &project.keeping.profile;
    let choice = |name: String| Choice {
        current: current.as_ref() == Some(&name),
        name,
        ..Choice::default()
    };
    profile::list_profiles(&project.environment().config_dir()).into_iter().map(choice).collect()
}

/// Returns the models that the session can be pinned to.
pub(crate) fn arm_choices(routes: &Routes, current: Option<&str>) -> Vec<Choice> {
    let choice = |arm: &Arc<Arm>| {
        let name = arm.id.to_string();
        Choice {
            current: current == Some(&*name),
            about: String::new(),
            arm: Some(arm.id.clone()),
            window: arm.context_window.map(u64::from),
            name,
        }
    };
    routes.arms().iter().map(choice).collect()
}
