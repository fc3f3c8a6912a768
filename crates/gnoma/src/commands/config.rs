//! `gnoma config show|path`.

use anyhow::Result;
use gnoma_config::paths;

use super::{cwd, print};
use crate::{
    args::{ConfigSub, TurnArgs},
    report::Exit,
    surroundings::Surroundings,
    wire,
};

pub(crate) fn run(what: &ConfigSub, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let cwd = cwd(args, around)?;
    match what {
        ConfigSub::Show { origin } => {
            print(&wire::configuration(args, around, &cwd)?.show(*origin))
        }
        ConfigSub::Path => {
            let sources = wire::sources(args, around, &cwd);
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
