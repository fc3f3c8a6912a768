//! Performs the face's wishes that need files or programs.

mod image;
mod programs;

use std::{path::PathBuf, sync::Arc, sync::mpsc};

use gnoma_guard::firewall::Firewall;
use gnoma_host::{Folders as _, Project};
use gnoma_tui::{
    Input,
    complete::{Limits, Lister},
    composer::Draft,
    run::{self, Deed, Job},
    wish::Wish,
};

use self::image::{MAX_IMAGE_BYTES, image};
use self::programs::Programs;
pub(super) use self::programs::Shells;
use super::files::Files;
use crate::{demo, report, surroundings::Surroundings};

/// Performs the view's effects that need files or programs.
pub(super) struct Hands<'a> {
    programs: Programs,
    shells: &'a Shells,
    home: Option<PathBuf>,
    around: Surroundings,
    firewall: Arc<Firewall>,
    files: Files,
}

impl<'a> Hands<'a> {
    pub(super) fn new(
        project: &Project,
        full_screen: bool,
        around: &Surroundings,
        files: Files,
        shells: &'a Shells,
    ) -> Self {
        Self {
            programs: Programs::of(project, full_screen, around),
            shells,
            home: around.environment.home(),
            around: around.clone(),
            firewall: Arc::clone(&project.firewall),
            files,
        }
    }

    fn save(&self, drafts: Vec<Draft>) -> Deed {
        let drafts: Vec<_> = drafts.into_iter().map(|draft| self.without_secrets(draft)).collect();
        told(
            self.files
                .save(&drafts)
                .map_err(|error| format!("what is written cannot be kept: {error}")),
        )
    }

    fn without_secrets(&self, draft: Draft) -> Draft {
        let text = self.firewall.text(&draft.text);
        if *text == draft.text {
            return draft;
        }
        // Places of chips mean nothing in another text.
        let text = text.into_owned();
        Draft { text, folds: Vec::new(), ..draft }
    }

    fn remember(&self, line: &str) -> Deed {
        let kept = self.files.remember(&self.firewall.text(line));
        told(kept.map_err(|error| format!("the history cannot be kept: {error}")))
    }

    fn list(&self) -> Job {
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
            let is_gone = |file: &String| !root.join(file).exists();
            Input::Missing(files.into_iter().filter(is_gone).collect())
        })
    }

    /// The demonstration prints as it does without a screen.
    fn demo(&self) -> Job {
        let around = self.around.clone();
        Box::new(move || {
            report::release();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let shown = runtime
                .map_err(Into::into)
                .and_then(|runtime| runtime.block_on(demo::run(&around)));
            report::hold();
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
                Ok(bytes) => match image(&bytes) {
                    Some(image) => {
                        Input::Image { instead: text, image, name: name.unwrap_or_default() }
                    }
                    None => failed("it is no PNG, JPEG, GIF or WebP image"),
                },
            }
        })
    }
}

impl run::Hands for Hands<'_> {
    type Wish = Wish;

    fn perform(&mut self, wish: Wish) -> Deed {
        let wish = match wish.into_deed() {
            Ok(deed) => return deed,
            Err(wish) => *wish,
        };
        match wish {
            Wish::OpenEditor(text) => Deed::Lend(self.programs.edit(text, self.shells)),
            Wish::RunShell(line) => Deed::Work(self.programs.run(line, self.shells)),
            Wish::StopShell => {
                self.shells.end();
                Deed::Done
            }
            Wish::HandOver(program) => Deed::Lend(self.programs.hand_over(program, self.shells)),
            Wish::PasteClipboard => Deed::Work(self.programs.clipboard()),
            Wish::ReadImage { path, text } => Deed::Work(self.read_image(path, text)),
            Wish::Save(drafts) => self.save(drafts),
            Wish::Remember(line) => self.remember(&line),
            Wish::List => Deed::Work(self.list()),
            Wish::LookFor(files) => Deed::Work(self.look_for(files)),
            Wish::Demo => Deed::Lend(self.demo()),
            Wish::Ask(_)
            | Wish::LastWords(_)
            | Wish::Copy(_)
            | Wish::Suspend
            | Wish::Quit
            | Wish::Notify(_)
            | Wish::Title(_)
            | Wish::Theme(_)
            | Wish::Redraw
            | Wish::Scroll(_) => Deed::Done,
        }
    }
}

fn told(outcome: Result<(), String>) -> Deed {
    match outcome {
        Ok(()) => Deed::Done,
        Err(text) => Deed::Hear(Input::Failed(text)),
    }
}
