//! The plugins of a project: where they are, and which of them are loaded.

use gnoma_config::{FileTrust, project_root};
use gnoma_core::protocol::SessionSpec;
use gnoma_extend::plugins::{
    FoundPlugin, PluginInstaller, PluginPlaces, PluginScan, PluginState, find_plugins,
};

use crate::{Folders as _, Project, trust_check};

/// The folder of a project's plugins, and of those of earlier versions among the settings.
const FOLDER: &str = "plugins";

/// Returns the installer of a user's plugins.
#[must_use]
pub fn installer(project: &Project) -> PluginInstaller {
    let SessionSpec { folder: cwd, environment, .. } = &project.spec;
    PluginInstaller {
        plugins: environment.plugins_dir(),
        state: environment.state_dir(),
        cwd: cwd.clone(),
        home: environment.home(),
        variables: environment.variables().iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
    }
}

/// The plugins that are found from a project, read once.
#[must_use]
pub fn project_plugins(project: &Project) -> &PluginScan {
    project.plugins.found.get_or_init(|| {
        let SessionSpec { folder: cwd, environment, .. } = &project.spec;
        let root = project_root(cwd, &environment.config_dir()).unwrap_or_else(|| cwd.clone());
        let is_home = environment.home().is_some_and(|home| home == root);
        let own = (!is_home).then(|| root.join(".gnoma").join(FOLDER));
        let mut found = find_plugins(&PluginPlaces {
            user: environment.plugins_dir(),
            state: environment.state_dir(),
            project: own.filter(|folder| folder.is_dir()),
            is_trusted: trust_check::project_trust(project.original_spec()) == FileTrust::Trusted,
            enabled: project.plugins.enabled.clone(),
            disabled: project.plugins.disabled.clone(),
        });
        let earlier = environment.config_dir().join(FOLDER);
        if earlier.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            found.faults.push(format!(
                "the plugins in {} are not loaded; `gnoma plugin install FOLDER` installs one",
                earlier.display()
            ));
        }
        found
    })
}

/// Describes the state of a plugin in a few words.
#[must_use]
pub fn describe_state(plugin: &FoundPlugin) -> String {
    let FoundPlugin { name, state, .. } = plugin;
    match state {
        PluginState::Active => "yes".to_owned(),
        PluginState::Disabled => "no: turned off in the settings".to_owned(),
        PluginState::New => format!("no: not approved; `gnoma plugin trust {name}`"),
        PluginState::Changed => {
            format!("no: changed since it was approved; `gnoma plugin trust {name}`")
        }
        PluginState::ProjectUntrusted => "needs `gnoma trust`".to_owned(),
        PluginState::Replaced => "no: the project has one with this name".to_owned(),
        PluginState::Broken(why) => format!("no: {why}"),
    }
}

/// Lists what the user must know about plugins that are not in force, and about the parts of the others that have
/// no effect.
#[must_use]
pub fn plugin_warnings(project: &Project) -> Vec<String> {
    let PluginScan { all, faults, .. } = project_plugins(project);
    let mut said = faults.clone();
    let names = || all.iter().map(|plugin| plugin.name.as_str());
    for wanted in &project.plugins.enabled {
        if names().all(|name| name != wanted) {
            let near = gnoma_config::nearest_name(wanted, names());
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            said.push(format!("`plugins.enabled`: no plugin has the name `{wanted}`{near}"));
        }
    }
    for plugin in all {
        let name = &plugin.name;
        let faults = plugin.faults.iter();
        said.extend(faults.map(|fault| format!("the plugin `{name}`: {fault}")));
        match &plugin.state {
            PluginState::Active | PluginState::Disabled | PluginState::Replaced => (),
            PluginState::New => said.push(format!(
                "the plugin `{name}` is not loaded: you have not approved its content; `gnoma \
                 plugin trust {name}` shows it and approves it"
            )),
            PluginState::Changed => said.push(format!(
                "the plugin `{name}` is not loaded: its content changed since it was approved; `gnoma plugin \
                 trust {name}` shows what changed and approves it"
            )),
            PluginState::ProjectUntrusted => said.push(format!(
                "this project has the plugin `{name}`, which is not used until you trust the \
                 project: `gnoma trust` shows what that would allow"
            )),
            PluginState::Broken(why) => said.push(format!("the plugin `{name}` is not loaded: {why}")),
        }
    }
    said
}
