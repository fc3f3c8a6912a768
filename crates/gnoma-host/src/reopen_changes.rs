//! Changes for which a session is opened again: whether they are possible, what they do to what is stored, and with
//! what the session continues.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    home,
    protocol::{Request, SessionSpec, Start, Switch},
    store::SessionId,
};

use crate::{
    HostError, Notices, Project, Result, crate_options,
    live::{Change, SessionChangeResult},
    provider_names, providers, redo,
    revert_file::FileRevert,
    rewind::{self, Rewind, RewindOutcome, RewindPart, RewindTarget},
    rewind_elf, routing,
};

/// The error of a change that needs a saved session.
fn not_saved(project: &Project, verb: &str, participle: &str) -> HostError {
    HostError::usage(match project.is_incognito() {
        true => format!("this session is not saved, so it cannot be {participle}"),
        false => format!("nothing to {verb} yet"),
    })
}

/// Behind the name of a model: it is used although its provider does not list it.
const UNCHECKED: char = '!';

/// Lets a copy of the session continue in its place.
fn fork_session(id: &SessionId, spec: SessionSpec) -> SessionChangeResult {
    let start = Start::Stored { id: id.to_string(), fork: true };
    SessionChangeResult {
        spec: SessionSpec { start, ..spec },
        keeps_messages: true,
        told: String::new(),
    }
}

/// Does what a change wants while no engine is open, and says what is opened next.
pub(crate) async fn apply_change(
    project: Arc<Project>,
    stored: Option<SessionId>,
    Change { request, spec }: Change,
) -> Result<SessionChangeResult> {
    let next_spec = continued_spec(spec, stored.as_ref());
    let same =
        |told: String| SessionChangeResult { spec: next_spec.clone(), keeps_messages: true, told };
    let missing = || not_saved(&project, "rewind", "rewound");
    Ok(match request {
        Request::Rewind { turns, files, conversation } => {
            let id = stored.clone().ok_or_else(missing)?;
            let how = build_rewind(&id, turns, files, conversation)?;
            same(describe_outcome(rewind::rewind_session(&project, &how).await?))
        }
        Request::RewindElf { name } => {
            let id = stored.clone().ok_or_else(missing)?;
            same(describe_outcome(
                rewind_elf::rewind_elf(&project, Some(id.as_str()), &name).await?,
            ))
        }
        Request::RevertFile { since, path, hunk } => {
            let id = stored.clone().ok_or_else(missing)?;
            let wanted = FileRevert { since, path: &path, hunk: hunk.as_deref() };
            same(describe_outcome(wanted.revert(&project, id.as_str()).await?))
        }
        Request::Redo => {
            let id = stored.clone().ok_or_else(|| not_saved(&project, "redo", "rewound"))?;
            let told =
                describe_outcome(redo::redo_rewind(&project, Some(id.as_str()), true).await?);
            // In the session, its id says nothing new.
            same(told.strip_prefix(&format!("session {id}: ")).map_or(told.clone(), str::to_owned))
        }
        Request::Fork => {
            let id = stored.clone().ok_or_else(|| not_saved(&project, "copy", "copied"))?;
            fork_session(&id, next_spec)
        }
        Request::Switch(switch) => apply_switch(&project, next_spec, switch),
        _ => return Err(HostError::usage("this request does not change the session")),
    })
}

/// Builds the rewind of so many turns, of their files, their conversation or both.
fn build_rewind(id: &SessionId, turns: usize, files: bool, conversation: bool) -> Result<Rewind> {
    let part = match (files, conversation) {
        (true, false) => RewindPart::Files,
        (false, true) => RewindPart::Conversation,
        (true, true) => RewindPart::Both,
        (false, false) => {
            return Err(HostError::usage("nothing to rewind: choose files, conversation or both"));
        }
    };
    let (session, to) = (Some(id.to_string()), RewindTarget::Turns(turns));
    Ok(Rewind { session, to, part, dry_run: false, overwrite: true, in_session: true })
}

/// Checks that a change can be done, as far as that is known while the session continues: a change that fails later
/// costs the session its background jobs.
pub(crate) async fn check_change(
    project: Arc<Project>,
    stored: Option<SessionId>,
    Change { request, spec }: Change,
) -> Result<()> {
    let missing = || not_saved(&project, "rewind", "rewound");
    match request {
        Request::Rewind { turns, files, conversation } => {
            let id = stored.ok_or_else(missing)?;
            rewind::check_rewind(&project, &build_rewind(&id, turns, files, conversation)?).await
        }
        Request::RewindElf { name } => {
            rewind_elf::check_rewind(&project, stored.ok_or_else(missing)?.as_str(), &name).await
        }
        Request::RevertFile { since, path, hunk } => {
            let wanted = FileRevert { since, path: &path, hunk: hunk.as_deref() };
            wanted.check(&project, stored.ok_or_else(missing)?.as_str()).await
        }
        Request::Redo => {
            let id = stored.ok_or_else(|| not_saved(&project, "redo", "rewound"))?;
            redo::check_redo(&project, id.as_str()).await
        }
        Request::Switch(switch) => {
            let is_model = matches!(&switch, Switch::Model(name) if !name.ends_with(UNCHECKED));
            let SessionChangeResult { spec, .. } =
                apply_switch(&project, continued_spec(spec, stored.as_ref()), switch);
            let spec = crate_options::resolve_folders(spec)?;
            let project = Project::open(spec, Notices::without_sink(), project.shared.clone())?;
            project.refuse_whole_system()?;
            if is_model {
                providers::check_model(&project).await?;
            }
            routing::prepare_routes(&project, &routing::RoutesRequest::default()).await.map(drop)
        }
        _ => Ok(()),
    }
}

fn apply_switch(project: &Project, mut spec: SessionSpec, switch: Switch) -> SessionChangeResult {
    let mut keeps_messages = true;
    let mut told = String::new();
    match switch {
        Switch::Model(name) => override_model(project, &mut spec, &name),
        Switch::Provider(name) => {
            spec.overrides.provider = Some(name);
            spec.overrides.model = None;
        }
        Switch::Profile(name) => {
            spec.profile = Some(name);
            (spec.start, keeps_messages) = (Start::New, false);
        }
        Switch::Incognito(incognito) => {
            spec.overrides.incognito = Some(incognito);
            spec.start = Start::New;
            // What was kept may continue unseen; what was said unseen is never kept.
            keeps_messages = incognito;
            told = if incognito {
                "Nothing is saved from now on. The model still remembers the conversation so far"
            } else {
                "Started a new conversation, which is saved. The previous one was not"
            }
            .to_owned();
        }
        Switch::Folder(folder) => {
            let folder = added_folder(&spec, &folder);
            told = format!("This session works in {} as well", folder.display());
            if folder != spec.folder && !spec.more_folders.contains(&folder) {
                spec.more_folders.push(folder);
            }
        }
        Switch::New => (spec.start, keeps_messages) = (Start::New, false),
        Switch::Stored(id) => (spec.start, keeps_messages) = (start_from_stored(id, false), false),
        Switch::Copy(id) => (spec.start, keeps_messages) = (start_from_stored(id, true), false),
    }
    SessionChangeResult { spec, keeps_messages, told }
}

/// Makes a session ask the model of that name, which may have its provider and a slash before it.
fn override_model(project: &Project, spec: &mut SessionSpec, name: &str) {
    let name = name.strip_suffix(UNCHECKED).unwrap_or(name);
    let providers = provider_names::provider_names(&project.routing.provider);
    let is_provider = |before: &str| providers.iter().any(|known| known == before);
    let named = name.split_once('/').filter(|(before, _)| is_provider(before));
    if let Some((provider, _)) = named {
        spec.overrides.provider = Some(provider.to_owned());
    }
    spec.overrides.model = Some(named.map_or(name, |(_, model)| model).to_owned());
}

/// A folder as a person names it, from the folder of the session on; without symbolic links where it is there.
fn added_folder(spec: &SessionSpec, named: &Path) -> PathBuf {
    let home = spec.environment.get("HOME").filter(|home| !home.is_empty());
    let folder = home::expand(named, home.map(Path::new), &spec.folder);
    folder.canonicalize().unwrap_or(folder)
}

/// A start from the stored session of that id, or the newest.
fn start_from_stored(id: Option<String>, fork: bool) -> Start {
    id.map_or(Start::Newest { fork }, |id| Start::Stored { id, fork })
}

/// The spec with which a session of a project continues the stored one of that id.
pub(crate) fn continued_spec(spec: SessionSpec, stored: Option<&SessionId>) -> SessionSpec {
    let start = match stored {
        Some(id) => Start::Stored { id: id.to_string(), fork: false },
        None => Start::New,
    };
    SessionSpec { start, ..spec }
}

fn describe_outcome(outcome: RewindOutcome) -> String {
    match outcome {
        RewindOutcome::Done(text) => text,
        RewindOutcome::Conflict(paths) => rewind::render_paths(&paths),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::protocol::Environment;

    use super::*;

    #[test]
    fn added_folder_path_is_relative_to_the_session_or_home() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        for name in ["work", "more", "home/notes"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let home = base.join("home").display().to_string();
        let spec = SessionSpec {
            folder: base.join("work"),
            environment: Environment::new([("HOME".to_owned(), home)].into()),
            ..SessionSpec::default()
        };
        let added = |named: &str| added_folder(&spec, Path::new(named));
        assert_eq!(added("../more"), base.join("more"));
        assert_eq!(added("~/notes"), base.join("home/notes"));
        assert_eq!(added(base.join("more").to_str().unwrap()), base.join("more"));
        assert_eq!(added("missing"), base.join("work/missing"), "opening it says what is wrong");
    }
}
