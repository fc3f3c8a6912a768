//! Weighs what a simple command does: its effects, the places they touch, and how to describe them.

use gnoma_core::{home, tool::MachineView};
use gnoma_shell::{Effect, FilePlace, Invocation, Risk};

pub(super) use super::command_words::program_of;
use super::{JudgementContext, git_lookups, machine, metadata, one_line};
use crate::places::{
    self, FileAccess, JudgedPath, MAX_PATH_BYTES, PlaceConcern, Severity, without_dots,
};

/// Longest piece of a command that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Programs that decide what runs later, with the words that make them do so (none: all do).
const LASTING: &[(&str, &[&str])] = &[
    ("at", &[]),
    ("batch", &[]),
    ("chsh", &[]),
    ("crontab", &[]),
    ("launchctl", &["load", "bootstrap", "enable", "submit"]),
    ("passwd", &[]),
    ("systemctl", &["edit", "enable", "link", "reenable", "set-environment", "set-property"]),
    ("systemd-run", &[]),
    ("useradd", &[]),
    ("usermod", &[]),
    ("visudo", &[]),
];

/// Programs that take text for commands. It is asked about even when it looks harmless: two readers
/// of such text seldom agree on every letter.
const INTERPRETING: &[&str] = &[
    ".", "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "mksh", "rbash", "sh", "source",
    "tcsh", "yash", "zsh",
];

/// The description of a command that runs text as commands.
const SHELL_TEXT: &str = "runs text as commands";

/// Programs that are for nothing but destroying, so that seeing nothing they do means little.
const DESTROYING: &[&str] = &["rm", "rmdir", "shred", "srm", "unlink", "wipe", "wipefs"];

/// One effect of a command.
#[derive(Clone, Debug)]
pub(super) struct CommandEffect {
    pub(super) effect: Effect,
    pub(super) worry: PlaceConcern,
    spot: Option<(FileAccess, JudgedPath)>,
    /// True if nothing comes of the effect.
    harmless: bool,
    /// True if the effect shows something that only a program outside the sandbox can tell.
    asks_outside: bool,
}

impl CommandEffect {
    /// Returns how and where the effect acts, if the place is known.
    pub(super) fn touched_path(&self) -> Option<(FileAccess, &JudgedPath)> {
        self.spot.as_ref().map(|(touch, spot)| (*touch, spot))
    }

    /// The file tools that could do the same, for rules about paths. Nothing deletes like a command.
    pub(super) fn file_tools(&self) -> &'static [&'static str] {
        match self.effect {
            Effect::Read(_) | Effect::Look(_) => &["fs.read"],
            Effect::Write(_) => &["fs.write", "fs.edit"],
            _ => &[],
        }
    }

    pub(super) fn is_harmless(&self) -> bool {
        self.harmless
    }

    /// Reports whether the effect is at a place that only running would show.
    pub(super) fn is_unknown_place(&self) -> bool {
        match &self.effect {
            Effect::Read(place) | Effect::Look(place) => matches!(place, FilePlace::Unknown(_)),
            _ => false,
        }
    }

    /// Reports whether the effect is only that a shell runs text.
    pub(super) fn is_shell_text(&self) -> bool {
        matches!(&self.effect, Effect::Unknown(what) if what == SHELL_TEXT)
    }

    /// Reports whether the effect runs code that is not in the line, or that cannot be judged by its words.
    pub(super) fn runs_code(&self) -> bool {
        matches!(self.effect, Effect::Runs(_) | Effect::Unknown(_))
    }

    /// Reports whether the effect loses something, lets something leave the machine, or cannot be told from the words.
    pub(super) fn is_danger(&self) -> bool {
        self.worry.gravity > Severity::Plain
            || self.is_shell_text()
            || (!self.harmless
                && matches!(
                    self.effect,
                    Effect::Delete(_) | Effect::Network(_) | Effect::Secret(_)
                ))
    }

    /// Reports whether the effect shows something and changes nothing.
    pub(super) fn is_reading(&self) -> bool {
        self.harmless
            || self.asks_outside
            || self.effect.is_reading()
            || matches!(self.effect, Effect::Secret(_) | Effect::Settings(_))
    }
}

/// The effects of a command, in the order of its effects.
pub(super) fn command_effects(
    command: &Invocation,
    world: &JudgementContext<'_>,
) -> Vec<CommandEffect> {
    let is_metadata = metadata::is_all(command);
    let weigh = |effect| weigh_effect(effect, is_metadata, world);
    let mut effects: Vec<_> = command.effects.iter().filter_map(weigh).collect();
    let shows_links = metadata::shows_links(command);
    let led = command.effects.iter().flat_map(|it| effects_led_outside(it, shows_links, world));
    effects.extend(led.filter_map(|effect| weigh_effect(&effect, is_metadata, world)));
    if let Some(place) = crooked_path(command, world) {
        effects.push(unclear_effect(
            format!("goes through a link and back up in `{place}`"),
            Severity::Guarded,
        ));
    }
    if let Some(what) = runs_more_than_it_says(command, &effects) {
        effects.push(unclear_effect(what.to_owned(), Severity::Plain));
    }
    if program_of(command) == "git" {
        add_git_effects(command, world, &mut effects);
    }
    if machine::view_for_command(command, world) == MachineView::Outside {
        effects.push(outside_only());
    }
    if let Some(worry) = git_lookups::at_compiler(program_of(command), command, world) {
        effects.push(unclear_effect(worry, Severity::Plain));
    }
    if decides_later_runs(command) {
        effects.push(unclear_effect("decides what runs later".to_owned(), Severity::Guarded));
    }
    let risk = risk_effect(command, &effects);
    effects.extend(risk);
    effects
}

/// Adds what a git command does to repositories besides its own effects.
fn add_git_effects(
    command: &Invocation,
    world: &JudgementContext<'_>,
    effects: &mut Vec<CommandEffect>,
) {
    // What changes a repository or leaves is asked about anyway.
    let goes_further = |effect: &CommandEffect| {
        matches!(effect.effect, Effect::Repository(_) | Effect::Network(_) | Effect::Delete(_))
    };
    effects.extend(at_foreign_repository(command, world));
    if git_lookups::locks_outside(command, world) {
        let what = "takes the lock of a repository outside the workspace".to_owned();
        let effect = Effect::Repository(what.clone());
        let worry = PlaceConcern { gravity: Severity::Plain, what };
        effects.push(CommandEffect {
            effect,
            worry,
            spot: None,
            harmless: false,
            asks_outside: false,
        });
    }
    if !effects.iter().any(goes_further) {
        let looking = git_lookups::git_effects(command, world).into_iter();
        effects.extend(looking.map(|(effect, worry)| CommandEffect {
            effect,
            worry,
            spot: None,
            harmless: false,
            asks_outside: false,
        }));
    }
}

/// Returns an effect for the risk of a command, as far as its other effects do not show it.
fn risk_effect(command: &Invocation, effects: &[CommandEffect]) -> Option<CommandEffect> {
    if command.risk == Risk::Critical {
        let what = effects
            .iter()
            .find(|effect| !effect.is_reading())
            .map(|effect| effect.worry.what.clone());
        let what = what.unwrap_or_else(|| "can lose everything or give control away".to_owned());
        return Some(unclear_effect(what, Severity::Guarded));
    }
    let is_shown = command.risk < Risk::Medium
        || !effects.iter().all(CommandEffect::is_harmless)
        || deletes_temporary_files(command, effects);
    (!is_shown).then(|| unclear_effect("is risky".to_owned(), Severity::Plain))
}

/// Returns what a git command reads, and changes, of a repository that does not belong to the workspace.
fn at_foreign_repository(command: &Invocation, world: &JudgementContext<'_>) -> Vec<CommandEffect> {
    let changes = command.effects.iter().any(|effect| matches!(effect, Effect::Repository(_)));
    let found = git_lookups::at_foreign_repository(command, world).into_iter();
    let both = found.flat_map(|(path, worry)| {
        let place = FilePlace::Path(path.clone());
        let effect = |touch, effect, worry| {
            let spot = Some((touch, JudgedPath::from_path(&path, world)));
            CommandEffect { effect, worry, spot, harmless: false, asks_outside: false }
        };
        let read = effect(FileAccess::Read, Effect::Read(place.clone()), worry.clone());
        let worry = PlaceConcern { gravity: Severity::Beyond, ..worry };
        let written = changes.then(|| effect(FileAccess::Write, Effect::Write(place), worry));
        [Some(read), written]
    });
    both.flatten().collect()
}

fn unclear_effect(what: String, gravity: Severity) -> CommandEffect {
    let effect = Effect::Unknown(what.clone());
    let worry = PlaceConcern { gravity, what };
    CommandEffect { effect, worry, spot: None, harmless: false, asks_outside: false }
}

/// Returns the effect of a command that asks a service of the machine or looks into other processes.
fn outside_only() -> CommandEffect {
    let what = "asks what only a program outside the sandbox can answer".to_owned();
    let effect = Effect::System(what.clone());
    let worry = PlaceConcern { gravity: Severity::Plain, what };
    CommandEffect { effect, worry, spot: None, harmless: false, asks_outside: true }
}

/// Weighs one effect; of a file that is read only to show its metadata if `is_metadata`. `None` for a look that
/// every command may take.
fn weigh_effect(
    effect: &Effect,
    is_metadata: bool,
    world: &JudgementContext<'_>,
) -> Option<CommandEffect> {
    let (touch, place) = match effect {
        Effect::Read(place) | Effect::Look(place) => (FileAccess::Read, place),
        Effect::Write(place) => (FileAccess::Write, place),
        Effect::Delete(place) => (FileAccess::Delete, place),
        _ => return Some(effect_without_path(effect)),
    };
    let spot = match place {
        FilePlace::Path(path) if path.as_os_str().len() > MAX_PATH_BYTES => {
            return Some(unknown_place_effect(effect, touch, "a path longer than any file's"));
        }
        FilePlace::Pattern { pattern, .. } if pattern.len() > MAX_PATH_BYTES => {
            return Some(unknown_place_effect(effect, touch, "a path longer than any file's"));
        }
        FilePlace::Path(path) => JudgedPath::from_path(path, world),
        FilePlace::Pattern { base, pattern } => JudgedPath::from_pattern(base, pattern, world),
        FilePlace::Unknown(text) => return Some(unknown_place_effect(effect, touch, text)),
    };
    let is_of_shell = matches!(effect, Effect::Look(_));
    let is_look = is_of_shell || is_metadata && touch == FileAccess::Read;
    let in_secret_folder = is_look && shows_secret_folder(place, is_of_shell, world);
    if is_of_shell && places::is_found_unnamed(&spot, in_secret_folder, world) {
        return None;
    }
    let worry = if is_look && !in_secret_folder {
        places::weigh_metadata(&spot, world)
    } else {
        places::weigh_access(touch, &spot, world)
    };
    let is_kept = touch != FileAccess::Read && !spot.is_sink();
    let harmless =
        worry.gravity == Severity::Plain && (!is_kept || places::is_own_temporary(&spot, world));
    let spot = Some((touch, spot));
    Some(CommandEffect { effect: effect.clone(), worry, spot, harmless, asks_outside: false })
}

/// Returns the effects that a pattern of the shell has outside of the workspace, because links that fit it lead there.
/// A command that shows links themselves does not follow the last name.
fn effects_led_outside(
    effect: &Effect,
    shows_links: bool,
    world: &JudgementContext<'_>,
) -> Vec<Effect> {
    let is_look = matches!(effect, Effect::Look(_));
    let (Effect::Look(place) | Effect::Read(place)) = effect else { return Vec::new() };
    let FilePlace::Pattern { base, pattern } = place else { return Vec::new() };
    if pattern.len() > MAX_PATH_BYTES {
        return Vec::new();
    }
    let paths = places::match_led_outside((base, pattern), !is_look && !shows_links, world);
    let kind = if is_look { Effect::Look } else { Effect::Read };
    paths.into_iter().map(|path| kind(FilePlace::Path(path))).collect()
}

/// Reports whether a place is, or a pattern could name, a folder of secrets, in which even the names of files say
/// something. A pattern of the shell shows the names that fit it, and nothing of what is inside.
fn shows_secret_folder(place: &FilePlace, is_of_shell: bool, world: &JudgementContext<'_>) -> bool {
    /// No rule about the end of a path is about this name.
    const INSIDE: &str = "\u{1}";
    let inside = match place {
        FilePlace::Path(path) => JudgedPath::from_path(&path.join(INSIDE), world),
        FilePlace::Pattern { base, pattern } => {
            let folder = pattern.rsplit_once('/').map_or("", |(folder, _)| folder);
            let shown: &str = if is_of_shell { folder } else { pattern };
            JudgedPath::from_pattern(base, &format!("{shown}/{INSIDE}"), world)
        }
        FilePlace::Unknown(_) => return true,
    };
    places::secret_kind(&inside, world).is_some()
}

/// A place that only running would show. To delete there is a question in every mode.
fn unknown_place_effect(effect: &Effect, touch: FileAccess, text: &str) -> CommandEffect {
    let gravity = if touch == FileAccess::Delete { Severity::Guarded } else { Severity::Plain };
    let shown = one_line(text, MAX_SHOWN_CHARS);
    let what = format!("{} `{shown}`, which is only known when it runs", touch.verb());
    CommandEffect {
        effect: effect.clone(),
        worry: PlaceConcern { gravity, what },
        spot: None,
        harmless: false,
        asks_outside: false,
    }
}

fn effect_without_path(effect: &Effect) -> CommandEffect {
    let line = |text: &str| one_line(text, MAX_SHOWN_CHARS);
    let what = match effect {
        Effect::Secret(what) | Effect::Settings(what) => format!("shows {}", line(what)),
        Effect::Network(Some(host)) => format!("talks to `{}`", line(host)),
        Effect::Network(None) => "uses the network".to_owned(),
        Effect::Runs(what) => format!("runs {}", line(what)),
        Effect::Environment(name) => format!("sets `{}` for what runs", line(name)),
        Effect::System(what) => format!("acts on the system: {}", line(what)),
        Effect::Repository(what) => format!("changes the repository: {}", line(what)),
        Effect::Unknown(why) => format!("cannot be judged: {}", line(why)),
        Effect::Read(_) | Effect::Look(_) | Effect::Write(_) | Effect::Delete(_) => String::new(),
    };
    let worry = PlaceConcern { gravity: Severity::Plain, what };
    let effect = effect.clone();
    CommandEffect { effect, worry, spot: None, harmless: false, asks_outside: false }
}

/// Returns the reason to ask about a program although its effects may show nothing.
fn runs_more_than_it_says(command: &Invocation, effects: &[CommandEffect]) -> Option<&'static str> {
    let program = program_of(command);
    if machine::acts_as_another(command) {
        Some("acts as another user")
    } else if INTERPRETING.contains(&program) {
        Some(SHELL_TEXT)
    } else if program == "find" && hands_over(command) {
        Some("runs a program for what it finds")
    } else if DESTROYING.contains(&program) && effects.iter().all(is_unseen) {
        Some("deletes files that cannot be known beforehand")
    } else {
        None
    }
}

/// Reports whether a command only deletes files, and deleting them is harmless.
fn deletes_temporary_files(command: &Invocation, effects: &[CommandEffect]) -> bool {
    DESTROYING.contains(&program_of(command)) && !effects.iter().all(is_unseen)
}

/// Reports whether an effect shows nothing of what a command deletes.
fn is_unseen(effect: &CommandEffect) -> bool {
    effect.is_harmless() && !matches!(effect.effect, Effect::Delete(_))
}

/// Reports whether `find` runs a program in other folders, at a prompt, or on something else than what it found. On
/// what it found, `-exec` is as harmless as the program that it runs.
fn hands_over(command: &Invocation) -> bool {
    let mut words = command.words.iter().flatten();
    let takes_found = command.words.iter().flatten().any(|word| word.contains("{}"));
    words.any(|word| {
        word.starts_with("-ok") || word == "-execdir" || (word == "-exec" && !takes_found)
    })
}

fn decides_later_runs(command: &Invocation) -> bool {
    let program = program_of(command);
    let rest: Vec<_> = command.words.iter().skip(1).flatten().map(String::as_str).collect();
    let acts = |effect: &Effect| {
        !effect.is_reading() && !matches!(effect, Effect::Secret(_) | Effect::Settings(_))
    };
    let lasting = LASTING.iter().any(|(name, needed)| {
        *name == program && (needed.is_empty() || needed.iter().any(|word| rest.contains(word)))
    });
    (lasting || (program == "git" && git_subcommand(&rest) == Some("config")))
        && command.effects.iter().any(acts)
}

fn git_subcommand<'w>(arguments: &[&'w str]) -> Option<&'w str> {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if matches!(*word, "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace") {
            rest.next();
        } else if !word.starts_with('-') {
            return Some(word);
        }
    }
    None
}

/// A path of the command that goes into a folder and back out by `..`, and by links ends elsewhere
/// than its letters say.
fn crooked_path(command: &Invocation, world: &JudgementContext<'_>) -> Option<String> {
    let cwd = command.cwd.as_deref()?;
    let is_border = |letter: char| letter.is_whitespace() || "'\"<>|&;()=`".contains(letter);
    let mut paths = command.text.split(is_border).filter(|word| word.contains("/.."));
    let is_crooked = |word: &&str| {
        let whole = home::expand(word, world.home, cwd);
        let plain = without_dots(&whole);
        without_dots(&(world.resolve)(&whole)) != without_dots(&(world.resolve)(&plain))
    };
    paths.find(is_crooked).map(|word| one_line(word, MAX_SHOWN_CHARS))
}
