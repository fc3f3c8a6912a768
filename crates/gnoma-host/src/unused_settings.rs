//! Settings that name something which does not exist, so that they have no effect.

use gnoma_config::settings::arm_named;

use crate::{Project, agents, lowering::RoutingSettings, providers, setting};

/// Describes each setting of a project that has no effect because of a name in it, a sentence each.
#[must_use]
pub fn find(project: &Project) -> Vec<String> {
    let mut all = of_providers(&project.routing);
    all.extend(setting::unknown_theme(project));
    all
}

/// The same for settings by provider.
pub(crate) fn of_providers(settings: &RoutingSettings) -> Vec<String> {
    let provider = &settings.provider;
    let names = providers::named(provider);
    let mut all: Vec<(String, &str)> = Vec::new();
    let tables: [(&str, Vec<&String>); 5] = [
        ("api_keys", provider.api_keys.keys().chain(provider.unset_keys.keys()).collect()),
        ("key_commands", provider.key_commands.keys().collect()),
        ("protocols", provider.protocols.keys().collect()),
        ("context", provider.context.keys().collect()),
        ("models", provider.models.keys().collect()),
    ];
    for (table, keys) in tables {
        all.extend(
            keys.into_iter().map(|name| (format!("provider.{table}.{name}"), name.as_str())),
        );
    }
    let pools: Vec<&String> = settings.arms.values().flat_map(|arm| &arm.pools).collect();
    // Limits of agents, such as Claude Code, count them together.
    let is_pool = |name: &&String| pools.contains(name) || *name == agents::PROVIDER;
    let limits = settings.rate_limits.keys().filter(|name| !is_pool(name));
    all.extend(limits.map(|name| (format!("rate_limits.{name}"), name.as_str())));
    let arms: Vec<_> = settings.arms.keys().filter_map(|id| Some((id, arm_named(id)?))).collect();
    all.extend(
        arms.iter()
            .filter(|(_, arm)| arm.provider != agents::PROVIDER)
            .map(|(id, arm)| (format!("[[arms]] id = \"{id}\""), arm.provider.as_str())),
    );
    let unknown = all.into_iter().filter(|(_, name)| !names.iter().any(|known| known == name));
    let mut said: Vec<String> = unknown
        .map(|(key, name)| {
            let near = gnoma_config::nearest(name, names.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("`{key}`: no provider has the name `{name}`{near}")
        })
        .collect();
    said.dedup();
    said
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;

    use super::*;
    use crate::lowering::Lowered;

    #[test]
    fn names_of_no_provider_are_told_with_the_one_that_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[provider.endpoints]\nwork = \"http://127.0.0.1:1\"\n\
                    [provider.api_keys]\nwrk = \"abc\"\nwork = \"k\"\nmistral = \"k\"\n\
                    [rate_limits.wrk]\nrpm = 1\n[rate_limits.shared]\nrpm = 1\n\
                    [rate_limits.agent]\nrpm = 1\n\
                    [[arms]]\nid = \"nosuch/model\"\n[[arms]]\nid = \"work/m\"\npools = [\"shared\"]\n";
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        let settings = Lowered::from(gnoma_config::load(&sources).unwrap()).routing;
        let meant = "did you mean `work`?";
        assert_eq!(
            of_providers(&settings),
            [
                format!("`provider.api_keys.wrk`: no provider has the name `wrk`; {meant}"),
                format!("`rate_limits.wrk`: no provider has the name `wrk`; {meant}"),
                "`[[arms]] id = \"nosuch/model\"`: no provider has the name `nosuch`".to_owned(),
            ]
        );
    }
}
