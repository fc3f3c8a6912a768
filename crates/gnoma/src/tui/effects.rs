//! Performs the view's effects that need files or programs.

mod image;
mod programs;

use std::{io, path::PathBuf, sync::Arc, sync::mpsc};

use gnoma_core::{names, protocol::SessionSpec};
use gnoma_host::{
    Folders as _, Notices, ProcessResources, Project,
    status_script::StatusScript,
    usage::{self, UsageSums},
};
use gnoma_tools::Disk;
use gnoma_tui::{
    Input,
    complete::{Limits, Lister},
    composer::Draft,
    effect::Effect,
    run::{self, Job, LoopAction},
    status::{Cost, SpendingParts},
};
use serde_json::Value;
use tokio::runtime::Handle;

use self::image::{MAX_IMAGE_BYTES, parse_image};
use self::programs::Programs;
pub(super) use self::programs::RunningShells;
use super::files::ViewFiles;
use crate::{demo, environment::ProcessEnvironment, report};

/// Performs the view's effects that need files or programs.
pub(super) struct EffectHandler<'a> {
    programs: Programs,
    shells: &'a RunningShells,
    home: Option<PathBuf>,
    around: ProcessEnvironment,
    spec: SessionSpec,
    /// The project with the settings of the profile in use.
    project: Project,
    files: ViewFiles,
    /// The script that writes the line at the bottom, if the person has set one.
    status: Option<Arc<StatusScript>>,
}

impl<'a> EffectHandler<'a> {
    pub(super) fn new(
        project: &Project,
        full_screen: bool,
        around: &ProcessEnvironment,
        files: ViewFiles,
        shells: &'a RunningShells,
    ) -> Self {
        Self {
            programs: Programs::for_project(project, full_screen, around),
            shells,
            home: around.environment.home(),
            around: around.clone(),
            spec: project.spec.clone(),
            project: project.clone(),
            files,
            status: StatusScript::from_project(project).map(Arc::new),
        }
    }

    /// Reports whether a script writes the line at the bottom, and whether it shows spending.
    pub(super) fn status_sources(&self) -> (bool, bool) {
        (self.status.is_some(), !self.project.personal.status_parts.is_empty())
    }

    fn read_spending(&self) -> LoopAction {
        let project = self.project.clone();
        LoopAction::Work(Box::new(move || {
            let read = Handle::current().block_on(usage::read_spending(&project));
            let wants = |name: &str| project.personal.status_parts.iter().any(|part| part == name);
            let cost = |name: &str, sums: &UsageSums| {
                let is_partial = sums.unpriced_calls() > 0;
                wants(name).then_some(Cost { micro_usd: sums.amount.micro_usd, is_partial })
            };
            Input::Spending(read.ok().map(|read| SpendingParts {
                today: cost("today", &read.today),
                week: cost("week", &read.week),
                cap_percent: read.cap_percent.filter(|_| wants("cap")),
            }))
        }))
    }

    fn write_status(&self, facts: Value) -> LoopAction {
        let Some(script) = self.status.clone() else { return LoopAction::Done };
        let job = move || match Handle::current().block_on(script.run(facts)) {
            Ok(line) => Input::StatusLine(line),
            Err(error) => Input::StatusScriptFailed(error.to_string()),
        };
        LoopAction::Work(Box::new(job))
    }

    /// Switches to the settings of this profile: its firewall for all that is written from now on, and what the line at
    /// the bottom shows. If the settings cannot be read, those before stay in use.
    fn change_profile(&mut self, profile: Option<String>) -> LoopAction {
        let spec = SessionSpec { profile, ..self.spec.clone() };
        let opened = Project::open(spec, Notices::without_sink(), ProcessResources::default());
        match opened {
            Ok(project) => {
                self.status = StatusScript::from_project(&project).map(Arc::new);
                self.project = project;
                let (has_script, has_spending) = self.status_sources();
                LoopAction::Hear(Input::StatusSources { has_script, has_spending })
            }
            Err(error) => LoopAction::Hear(Input::Failed(error.to_string())),
        }
    }

    fn save_drafts(&self, drafts: Vec<Draft>) -> LoopAction {
        let drafts: Vec<_> = drafts.into_iter().map(|draft| self.without_secrets(draft)).collect();
        to_loop_action(self.files.save_drafts(&drafts), "save your draft")
    }

    fn without_secrets(&self, draft: Draft) -> Draft {
        let text = self.project.firewall.redact_text(&draft.text);
        if *text == draft.text {
            return draft;
        }
        // Places of chips mean nothing in another text.
        let text = text.into_owned();
        Draft { text, folds: Vec::new(), ..draft }
    }

    fn add_to_history(&self, line: &str) -> LoopAction {
        let kept = self.files.append_history(&self.project.firewall.redact_text(line));
        to_loop_action(kept, "save the input history")
    }

    fn list_files(&self) -> Job {
        let root = self.programs.cwd.clone();
        Box::new(move || {
            let (done, listed) = mpsc::channel();
            let _lister =
                Lister::start(root, Limits::default(), move |listing| drop(done.send(listing)));
            let listing = listed.recv().unwrap_or_default();
            Input::Listing(listing.paths)
        })
    }

    fn look_for(&self, files: Vec<String>) -> Job {
        let root = self.programs.cwd.clone();
        Box::new(move || {
            let is_gone = |file: &String| {
                !names::find_typed_path(file, &root, &Disk).is_some_and(|found| found.is_whole)
            };
            Input::Missing(files.into_iter().filter(is_gone).collect())
        })
    }

    /// The demonstration prints as it does without a screen.
    fn run_demo(&self) -> Job {
        let around = self.around.clone();
        Box::new(move || {
            report::release_lines();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let shown = runtime
                .map_err(Into::into)
                .and_then(|runtime| runtime.block_on(demo::run(&around)));
            report::hold_lines();
            shown.map_or_else(|error| Input::Failed(format!("{error:#}")), |_| Input::Resumed)
        })
    }

    fn read_image(&self, path: PathBuf, text: String) -> Job {
        let path = match (path.strip_prefix("~/"), &self.home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => self.programs.cwd.join(path),
        };
        Box::new(move || {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let failed = |why: &str| Input::Failed(format!("{} stays text: {why}", path.display()));
            match programs::read_at_most(&path, MAX_IMAGE_BYTES) {
                Err(error) => failed(&error.to_string()),
                Ok(bytes) => match parse_image(&bytes) {
                    Some(image) => {
                        Input::Image { instead: text, image, name: name.unwrap_or_default() }
                    }
                    None => failed("it is not a PNG, JPEG, GIF or WebP image"),
                },
            }
        })
    }
}

impl run::EffectHandler for EffectHandler<'_> {
    type Effect = Effect;

    fn perform(&mut self, effect: Effect) -> LoopAction {
        let effect = match effect.into_action() {
            Ok(action) => return action,
            Err(effect) => *effect,
        };
        match effect {
            Effect::OpenEditor(text) => {
                LoopAction::Lend(self.programs.edit_text(text, self.shells))
            }
            Effect::RunShell(line) => LoopAction::Work(self.programs.run_line(line, self.shells)),
            Effect::StopShell => {
                self.shells.kill_all();
                LoopAction::Done
            }
            Effect::HandOver(program) => {
                LoopAction::Lend(self.programs.hand_over(program.as_deref(), self.shells))
            }
            Effect::RunGnoma(command) => {
                LoopAction::Lend(self.programs.run_gnoma(command, self.shells))
            }
            Effect::PasteClipboard => LoopAction::Work(self.programs.read_clipboard()),
            Effect::ReadImage { path, text } => LoopAction::Work(self.read_image(path, text)),
            Effect::Save(drafts) => self.save_drafts(drafts),
            Effect::Remember(line) => self.add_to_history(&line),
            Effect::List => LoopAction::Work(self.list_files()),
            Effect::LookFor(files) => LoopAction::Work(self.look_for(files)),
            Effect::Profile(name) => self.change_profile(name),
            Effect::Demo => LoopAction::Lend(self.run_demo()),
            Effect::StatusLine(facts) => self.write_status(facts),
            Effect::ReadSpending => self.read_spending(),
            Effect::Ask(_)
            | Effect::CrashNote(_)
            | Effect::Copy(_)
            | Effect::Suspend
            | Effect::Quit
            | Effect::Notify(_)
            | Effect::Title(_)
            | Effect::Theme(_)
            | Effect::Redraw
            | Effect::Scroll(_) => LoopAction::Done,
        }
    }
}

/// `what` names the work that may have failed, as in "cannot save your draft".
fn to_loop_action(done: io::Result<()>, what: &str) -> LoopAction {
    match done {
        Ok(()) => LoopAction::Done,
        Err(error) => LoopAction::Hear(Input::Failed(format!("cannot {what}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use gnoma_core::protocol::Environment;
    use gnoma_tui::run::EffectHandler as _;

    use super::*;

    const KEY: &str = "ACME-1234567890";

    /// A person whose profile `strict` takes a form of secrets for one that nothing else knows.
    fn around(home: &Path) -> ProcessEnvironment {
        let config = home.join(".config/gnoma");
        let profiles = config.join("profiles");
        fs::create_dir_all(&profiles).unwrap();
        fs::write(config.join("config.toml"), "default_profile = \"plain\"\n").unwrap();
        fs::write(profiles.join("plain.toml"), "").unwrap();
        let strict = "[[security.patterns]]\nname = \"acme\"\nregex = \"ACME-[0-9]{10}\"\n";
        fs::write(profiles.join("strict.toml"), strict).unwrap();
        fs::write(profiles.join("broken.toml"), "security.patterns = 1\n").unwrap();
        let variables = [("HOME".to_owned(), home.display().to_string())];
        ProcessEnvironment {
            environment: Environment::new(variables.into()),
            line: Vec::new(),
            cwd: home.to_owned(),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            ignores_hangup: false,
            umask: None,
        }
    }

    #[test]
    fn profile_change_applies_its_redaction_rules_to_history_and_drafts() {
        let home = tempfile::tempdir().unwrap();
        let around = around(home.path());
        let (environment, folder) = (around.environment.clone(), home.path().to_owned());
        let spec = SessionSpec { folder, environment, ..SessionSpec::default() };
        let project =
            Project::open(spec, Notices::without_sink(), ProcessResources::default()).unwrap();
        let (files, shells) = (ViewFiles::new(&around, "p"), RunningShells::default());
        let mut effects = EffectHandler::new(&project, false, &around, files, &shells);
        let state = around.environment.state_dir().join("tui");
        let mut written = |profile: Option<&str>| {
            let profile = profile.map(str::to_owned);
            let changed = effects.perform(Effect::Profile(profile));
            effects.perform(Effect::Remember(format!("use {KEY}")));
            let draft = Draft { text: format!("and {KEY}"), ..Draft::default() };
            effects.perform(Effect::Save(vec![draft]));
            let of = |file: fs::DirEntry| fs::read_to_string(file.path()).unwrap();
            let files = fs::read_dir(&state).unwrap().map(|file| of(file.unwrap()));
            let shown = files.map(|text| text.matches(KEY).count()).sum::<usize>();
            (shown, matches!(changed, LoopAction::Hear(Input::Failed(_))))
        };
        // Each time a line of the history, and the draft in place of the one before.
        assert_eq!(written(None), (2, false));
        assert_eq!(written(Some("strict")), (1, false), "of before");
        assert_eq!(written(Some("broken")), (1, true), "the one before goes on");
        assert_eq!(written(None), (3, false));
    }
}
