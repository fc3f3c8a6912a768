//! What the status line shows of a session before it says anything itself.

use std::path::Path;

use gnoma_config::Loaded;
use gnoma_llm::KNOWN;
use gnoma_tui::status::Facts;

use super::files::read;
use crate::surroundings::Surroundings;

/// Most bytes of the file that names the branch.
const MAX_HEAD_BYTES: u64 = 4096;

pub(super) fn of(loaded: &Loaded, around: &Surroundings, cwd: &Path) -> Facts {
    let settings = &loaded.settings;
    let provider = settings.provider.default.as_deref();
    let window = provider.and_then(|name| settings.provider.context.get(name));
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder: short(cwd, around),
        branch: branch(cwd),
        profile: loaded.profile.clone(),
        incognito: settings.privacy.incognito,
        model: provider.and_then(|name| model(loaded, name)),
        window: window.copied().unwrap_or(0).into(),
        mode: settings.permission.mode,
        ..Facts::default()
    }
}

fn model(loaded: &Loaded, provider: &str) -> Option<String> {
    let known = KNOWN.iter().find(|known| known.name == provider);
    let usual = known.map(|known| known.default_model).filter(|model| !model.is_empty());
    let model = loaded.settings.provider.model.as_deref().or(usual)?;
    Some(format!("{provider}/{model}"))
}

/// A folder with `~` for the home.
pub(super) fn short(folder: &Path, around: &Surroundings) -> String {
    let home = around.home();
    match home.as_deref().and_then(|home| folder.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => folder.display().to_string(),
    }
}

/// The branch that is checked out, or the start of the commit; not asked of git, which takes long.
fn branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let git = match read(&git, MAX_HEAD_BYTES) {
        // A worktree: the file names the folder.
        Ok(Some(text)) => git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        _ => git,
    };
    let head = read(&git.join("HEAD"), MAX_HEAD_BYTES).ok()??;
    let head = head.trim();
    let branch = head.strip_prefix("ref: refs/heads/").map(str::to_owned);
    branch.or_else(|| head.get(..8).map(str::to_owned))
}
