//! `gnoma config show|path`.

use anyhow::Result;
use gnoma_config::paths;
use gnoma_host::wire;

use super::common::{print, settings, unbuilt};
use crate::{
    args::{ConfigSub, TurnArgs},
    lowering,
    report::Exit,
    surroundings::Surroundings,
};

pub(crate) fn run(what: &ConfigSub, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    match what {
        ConfigSub::Show { origin } => {
            let (spec, loaded) = settings(args, around)?;
            let idle = unbuilt(&spec, &loaded).into_iter().map(|said| format!("# {said}\n"));
            print(&(idle.collect::<String>() + &loaded.show(*origin)))
        }
        ConfigSub::Path => {
            let sources = wire::sources(&wire::found(lowering::spec(args, around))?);
            let mut files = vec![paths::user_file(&sources.config_dir)];
            files.extend(
                sources.profile.map(|name| paths::profile_file(&sources.config_dir, &name)),
            );
            files.extend(sources.project_root.map(|root| paths::project_file(&root)));
            let line = |file: std::path::PathBuf| {
                let absent = if file.exists() { "" } else { "  (not there)" };
                format!("{}{absent}\n", file.display())
            };
            print(&files.into_iter().map(line).collect::<String>())
        }
    }
}
