//! `gnoma doctor`: what holds on this machine, and whether the providers that are set up answer. Sends no prompt and
//! changes nothing, but for the archive that `--bundle` names. What cannot be checked does not keep it from the rest.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use gnoma_config::{
    LoadedConfig,
    settings::{Otel, Sandbox, arm_named},
};
use gnoma_core::{
    protocol::{Environment, SessionSpec},
    quantity::describe_count,
};
use gnoma_host::{
    Folders as _, HostError, ProcessResources, Project, crate_options,
    found_extensions::find_extensions,
    guard_setup,
    project_history::refuse_in_incognito,
    project_settings::ProjectSettings,
    providers::{self, Answer, ProviderState},
    reachable_hosts::{self, ReachableHost},
    routing, sessions, telemetry, unused_settings, write_obstacle,
};
use gnoma_sandbox::{Strength, Support, TEMPORARY};

use super::{
    bundle,
    common::{load_settings, print_safe_text},
    extend,
};
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
};

/// Programs that tools use if they are installed, each with its purpose.
const PROGRAMS: [(&str, &str); 2] =
    [("bash", "runs commands; `sh` is used instead"), ("git", "most projects use it")];

/// Most models of a provider that are named.
const MAX_NAMED: usize = 3;

/// Prints the report; with `bundle`, writes it into an archive instead.
pub(crate) async fn run(
    bundle: Option<&Path>,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let (spec, loaded, broken) = load_usable_settings(args, around)?;
    let foreign = crate_options::ignored_controls(&spec);
    let settings = ProjectSettings::from(loaded);
    let otel = settings.otel.clone();
    let (notices, shared) = (report::stderr_notices(), ProcessResources::default());
    let project = Project::with_settings(spec, settings, notices, shared)?;
    if bundle.is_some() {
        refuse_in_incognito(&project, "doctor --bundle")?;
    }
    let unused = unused_settings::find(&project);
    let mut text = format!("gnoma {}\n", env!("CARGO_PKG_VERSION"));
    describe_configuration(&project, broken.as_ref(), &mut text);
    describe_models(&project, broken.is_some(), &mut text).await;
    let sound = describe_sandbox(project.guard.sandbox.mode, &mut text);
    describe_trials(&project, &mut text);
    describe_extensions(&project, &mut text);
    describe_idle_settings(&foreign, &unused, &mut text);
    describe_privacy(project.is_incognito(), &mut text);
    describe_telemetry(&otel, &project, &mut text);
    describe_hosts(&reachable_hosts::list_hosts(&project, &otel), &mut text);
    describe_notifications(&project, &mut text);
    let unreadable = sessions::list_sessions(&project).await.err();
    describe_saved_files(&project, unreadable.as_ref(), &mut text);
    describe_folders(project.environment(), &project.spec.folder, &mut text);
    describe_programs(project.environment(), &mut text);
    describe_agents(&project, &mut text);
    let printed = match bundle {
        Some(file) => return bundle::write_bundle(&project, &text, file, around),
        None => print_safe_text(&text)?,
    };
    Ok(match broken {
        Some(_) => Exit::Misused,
        None if sound && !has_fault(&text) => printed,
        None => Exit::Failed,
    })
}

/// Loads the settings. If the files cannot be used, returns the settings without them, and the error.
fn load_usable_settings(
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<(SessionSpec, LoadedConfig, Option<HostError>), HostError> {
    match load_settings(args, around) {
        Ok((spec, loaded)) => Ok((spec, loaded, None)),
        Err(error) => {
            let spec = launch_request::spec_from_args(args, around);
            let (spec, loaded) = crate_options::load_without_files(spec)?;
            Ok((spec, loaded, Some(error)))
        }
    }
}

/// Says what is wrong with the configuration files and with the rules in them.
fn describe_configuration(project: &Project, broken: Option<&HostError>, text: &mut String) {
    if let Some(error) = broken {
        text.push_str("\nconfiguration\n");
        push_check_line(text, false, "not used", &error.to_string().replace('\n', "\n    "));
        text.push_str("    Everything below is checked as if there were no configuration file\n");
    }
    if let Err(error) = guard_setup::parse_permissions(&project.guard) {
        text.push_str("\nconfiguration\n");
        let note = format!("{error}; correct or remove the rule");
        push_check_line(text, false, "permissions", &note);
    }
}

/// Begins what holds, what does not, and what the settings turn off.
const HOLDS: &str = "  ✓ ";
const FAULT: &str = "  ✗ ";
const TURNED_OFF: &str = "  - ";

fn push_check_line(text: &mut String, holds: bool, name: &str, note: &str) {
    let mark = if holds { HOLDS } else { FAULT };
    let _infallible = writeln!(text, "{mark}{name}: {note}");
}

/// True if a line of the report marks a failed check.
fn has_fault(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(FAULT))
}

/// Says which providers are set up, whether they answer, and whether they have the model that is to be used.
async fn describe_models(project: &Project, is_broken: bool, text: &mut String) {
    text.push_str("\nmodels\n");
    let provider = &project.routing.provider;
    let configured = providers::configured_providers(provider);
    let answers =
        |state: &Answer| matches!(state, Answer::Models { models, .. } if !models.is_empty());
    let all = providers::query_providers(project).await;
    let classifier = routing::classifier_arm(&project.routing);
    let (mut has_any, mut is_down) = (false, false);
    for ProviderState { name, is_default, state } in all {
        let classifier = classifier.as_ref().filter(|arm| arm.provider == name);
        let is_set_up = is_default || classifier.is_some() || configured.contains(&name);
        if !is_set_up && !answers(&state) {
            continue;
        }
        has_any |= answers(&state);
        let default = if is_default { " (default)" } else { "" };
        let model = provider.model.as_deref().filter(|_| is_default);
        let wanted = model.map(|model| (model, "provider.model"));
        // A role is checked with the arms.
        let own = classifier.filter(|_| project.routing.slm.model.is_some());
        let wanted = wanted.or(own.map(|arm| (&*arm.model, "slm.model")));
        let unlisted = unlisted_arms(project, &name, &state);
        let (holds, note) = match state {
            Answer::Unusable(why) => {
                is_down |= is_set_up && why.contains("cannot connect");
                (false, why)
            }
            Answer::Models { url, models } if models.is_empty() => {
                (false, format!("works at {url} but lists no models"))
            }
            Answer::Models { url, models } => describe_provider(&name, &url, &models, wanted),
        };
        push_check_line(text, holds, &format!("{name}{default}"), &note);
        unlisted.iter().for_each(|(setting, said)| push_check_line(text, false, setting, said));
    }
    if !has_any {
        let note = no_provider(project, is_broken, configured.is_empty(), is_down);
        push_check_line(text, false, "providers", &note);
    }
}

/// Returns the reason why no provider can be asked, with advice on how to set one up.
fn no_provider(project: &Project, is_broken: bool, is_none_set_up: bool, is_down: bool) -> String {
    let note = match (is_broken, is_none_set_up) {
        (true, _) => "no provider from the environment answers",
        (false, true) => {
            "none is set up: `gnoma` shows a list, `gnoma providers add NAME` adds one"
        }
        (false, false) if is_down => {
            "none of those that are set up answers: start the server, or check its address"
        }
        (false, false) => {
            "none of those that are set up can be used: `gnoma providers add NAME` repairs one"
        }
    };
    let meant = routing::misnamed_setup(project.environment()).filter(|_| is_none_set_up);
    meant.map_or_else(|| note.to_owned(), |meant| format!("{note}. {meant}"))
}

/// The models that `[[arms]]` and roles name for a provider and that it does not list, each after the setting that
/// names it: a misspelt one may be chosen, too.
fn unlisted_arms(project: &Project, provider: &str, state: &Answer) -> Vec<(&'static str, String)> {
    let Answer::Models { models, .. } = state else { return Vec::new() };
    let settings = &project.routing;
    let named = settings.provider.models.get(provider);
    let roles = settings.router.roles.named_arms().map(|(key, arm)| (key, arm.clone()));
    let arms = settings.arms.iter().filter(|(_, arm)| arm.enabled);
    let arms = arms.filter_map(|(id, _)| Some(("[[arms]]", arm_named(id)?)));
    let arms = arms.chain(roles).filter(|(_, arm)| {
        arm.provider == provider && !named.is_some_and(|named| named.contains(&arm.model))
    });
    let unlisted = arms.filter_map(|(setting, arm)| {
        let near = providers::has_model(provider, models, &arm.model).err()?;
        let near =
            near.map_or_else(String::new, |near| format!("; did you mean `{provider}/{near}`?"));
        let said = format!("`{arm}` may be chosen, but `{provider}` does not list it{near}");
        Some((setting, said))
    });
    unlisted.collect()
}

/// Describes the models that a provider has, and reports whether the model that is to be used is among them. `wanted`:
/// that model, and the setting that names it.
fn describe_provider(
    name: &str,
    url: &str,
    models: &[String],
    wanted: Option<(&str, &str)>,
) -> (bool, String) {
    let named = models.get(..MAX_NAMED).unwrap_or(models).join(", ");
    let more = if models.len() > MAX_NAMED { ", …" } else { "" };
    let count = describe_count(models.len(), "model");
    let note = format!("answers at {url}, {count}: {named}{more}");
    let Some((wanted, setting)) = wanted else { return (true, note) };
    match providers::has_model(name, models, wanted) {
        Ok(()) => (true, format!("{note}; `{wanted}` is there")),
        Err(near) => {
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            (false, format!("{note}. It does not list `{wanted}`, which `{setting}` names{near}"))
        }
    }
}

/// Says what the sandbox can do here, and returns whether it is as strong as the settings want it.
fn describe_sandbox(mode: Sandbox, text: &mut String) -> bool {
    if mode == Sandbox::Off {
        text.push_str("\nsandbox: turned off by `sandbox.mode`\n");
        return true;
    }
    let support = Support::detect();
    let _infallible = writeln!(text, "\nsandbox: {}", support.strength);
    for part in &support.parts {
        push_check_line(text, part.holds, part.name, &part.note);
    }
    let (held, note) = unasked_command_limits(support.strength);
    push_check_line(text, held, "commands that only read", note);
    match (mode, support.strength) {
        (Sandbox::Required, Strength::Partial | Strength::None) => {
            text.push_str("  `sandbox.mode` is `required`: no command will run here\n");
            false
        }
        (_, Strength::None) => {
            text.push_str("  commands run without a sandbox; permissions still apply\n");
            false
        }
        (_, Strength::Partial | Strength::Full) => true,
    }
}

/// Reports whether a command that runs without approval is restricted to reading, and describes what it can reach.
fn unasked_command_limits(strength: Strength) -> (bool, &'static str) {
    match strength {
        Strength::Full => (
            true,
            "see the workspace, programs and tool chains; open no secret file, change nothing that lasts, \
             reach no network",
        ),
        Strength::Partial => (
            false,
            "are only partly contained: one that is misjudged can do what is missing above; \
             `sandbox.mode = \"required\"` refuses to run commands here",
        ),
        Strength::None => (
            false,
            "are not contained, only judged one by one; `--permission default` asks before every command",
        ),
    }
}

/// Says whether commands that may change files run in a layer first, unless there is no sandbox.
fn describe_trials(project: &Project, text: &mut String) {
    let Project { guard, places, spec, .. } = project;
    let Some(trials) = guard_setup::build_trials(guard, places, spec, Vec::new(), None) else {
        return;
    };
    let why = trials
        .unavailable_reason()
        .map(|why| format!("not available here, so such commands need approval: {why}"));
    let note = "commands that may change files run in a separate layer first, and their changes are kept or discarded";
    push_check_line(text, why.is_none(), "trials", why.as_deref().unwrap_or(note));
    let missing = unseen_names_reason(&spec.folder).filter(|_| why.is_none());
    if let Some(missing) = missing {
        let _infallible = writeln!(text, "{TURNED_OFF}names beside the workspace: {missing}");
    }
}

/// Returns the reason why commands on trial do not find what is beside a workspace, if there is one.
fn unseen_names_reason(folder: &Path) -> Option<&'static str> {
    if !gnoma_sandbox::reports_tried_files() {
        return Some(
            "`/dev/fuse` cannot be opened, so commands on trial do not find them, and gnoma goes by what programs print: it asks if one says that a name is not there, or that a secret file cannot be opened; load the kernel module `fuse`, or give gnoma the right to open the device",
        );
    }
    TEMPORARY.iter().any(|place| folder.starts_with(place)).then_some(
        "this workspace is among temporary files, which are the session's own, so commands on trial do not find them; gnoma asks if a program says that one is not there",
    )
}

/// Says how many extensions there are, and which of them do not work.
fn describe_extensions(project: &Project, text: &mut String) {
    let found = find_extensions(project);
    let summary = extend::summarize_extensions(&found);
    let _infallible = writeln!(text, "\nextensions\n{HOLDS}{summary}");
    for (mark, lines) in [(FAULT, &found.faults), (TURNED_OFF, &found.unsupported)] {
        for said in lines {
            let _infallible = writeln!(text, "{mark}{said}");
        }
    }
}

/// Names what is configured and does nothing: settings of other agents, and own ones that name nothing.
fn describe_idle_settings(foreign: &[String], unused: &[String], text: &mut String) {
    if foreign.is_empty() && unused.is_empty() {
        return;
    }
    text.push_str("\nconfigured, but without effect\n");
    for (mark, lines) in [(FAULT, unused), (TURNED_OFF, foreign)] {
        for said in lines {
            let _infallible = writeln!(text, "{mark}{said}");
        }
    }
}

fn describe_privacy(is_incognito: bool, text: &mut String) {
    let said = if is_incognito { "incognito: nothing is saved" } else { "normal" };
    let _infallible = writeln!(text, "\nprivacy: {said}");
}

/// Names the hosts that telemetry goes to, if it is turned on.
fn describe_telemetry(otel: &Otel, project: &Project, text: &mut String) {
    if !otel.enabled {
        return;
    }
    text.push_str("\ntelemetry\n");
    let (holds, note) = match telemetry::export_hosts(otel, project.environment()) {
        _ if project.is_incognito() => (true, "off: incognito".to_owned()),
        Err(error) => (false, error.to_string()),
        Ok(hosts) if hosts.is_empty() => (true, "off: a variable `OTEL_*` turns it off".to_owned()),
        Ok(hosts) => {
            let content = if otel.content { "with" } else { "without" };
            let hosts = hosts.join(", ");
            (true, format!("sent to {hosts}, {content} texts of messages and results"))
        }
    };
    push_check_line(text, holds, "spans, metrics and log records", &note);
}

/// Says where notifications go besides the terminal, if the person wants any.
fn describe_notifications(project: &Project, text: &mut String) {
    let notify = &project.personal.notify;
    if notify.command.is_none() && notify.ntfy.is_none() {
        return;
    }
    text.push_str("\nnotifications\n");
    if notify.command.is_some() {
        push_check_line(text, true, "command", "`notify.command` is run in the sandbox of hooks");
    }
    if let Some(url) = &notify.ntfy {
        let sent = format!("sent to {}", telemetry::host_of(url));
        let note = if project.is_incognito() { "off: incognito" } else { &sent };
        push_check_line(text, true, "ntfy", note);
    }
}

/// Names every host that gnoma itself may contact.
fn describe_hosts(hosts: &[ReachableHost], text: &mut String) {
    text.push_str("\nhosts that gnoma may contact\n");
    for ReachableHost { host, uses } in hosts {
        let _infallible = writeln!(text, "    {host}: {}", uses.join("; "));
    }
}

/// Says what is saved of sessions and files, and where. `unreadable`: the error if saved sessions cannot be read.
fn describe_saved_files(project: &Project, unreadable: Option<&HostError>, text: &mut String) {
    let Project { keeping: settings, places, .. } = project;
    if settings.privacy.incognito {
        return;
    }
    text.push_str("\nsaved\n");
    let is_in_home = settings.session.folder.is_none();
    let home_trouble = unsaved_reason(project.environment()).filter(|_| is_in_home);
    if let Some(trouble) = home_trouble.or_else(|| project.save_obstacle()) {
        push_check_line(text, false, "sessions and files", &trouble);
        return;
    }
    let sessions = places.database_path().display().to_string();
    match unreadable {
        _ if !settings.session.keep => {
            let _infallible = writeln!(text, "{TURNED_OFF}sessions: no: `session.keep` is off");
        }
        None => push_check_line(text, true, "sessions", &sessions),
        Some(why) => {
            push_check_line(text, false, "sessions", &format!("{sessions} cannot be read: {why}"));
        }
    }
    let name = "files, for `gnoma rewind`";
    match &places.workspace {
        _ if !settings.checkpoints.enabled => {
            let _infallible =
                writeln!(text, "{TURNED_OFF}{name}: no: `checkpoints.enabled` is off");
        }
        Some(root) => {
            push_check_line(
                text,
                true,
                name,
                &format!("of {}, in {}", root.display(), places.vault.display()),
            );
        }
        None => {
            let why = places.checkpoint_hindrance(&settings.checkpoints).unwrap_or_default();
            push_check_line(text, false, name, &format!("no: {why}; work in a project's folder"));
        }
    }
}

/// Returns the reason why nothing can be saved in the home folder; `None` if it can.
fn unsaved_reason(environment: &Environment) -> Option<String> {
    environment.home_trouble().filter(|_| environment.cannot_save())
}

fn describe_folders(environment: &Environment, cwd: &Path, text: &mut String) {
    let (config, state) = (environment.config_dir(), environment.state_dir());
    text.push_str("\nfolders\n");
    for (name, folder) in [("workspace", cwd), ("configuration", &*config), ("state", &*state)] {
        let obstacle = if name == "workspace" { None } else { write_obstacle(folder) };
        let note = match (&obstacle, folder.exists()) {
            (Some(why), _) => format!(" (cannot be written: {why})"),
            (None, true) => String::new(),
            (None, false) => " (not created yet)".to_owned(),
        };
        push_check_line(text, obstacle.is_none(), name, &format!("{}{note}", folder.display()));
    }
}

/// Says which other programs' agents are configured, and whether they are there. Starts none.
fn describe_agents(project: &Project, text: &mut String) {
    let paths = project.environment().get("PATH").unwrap_or_default();
    let mut agents = project.routing.agents.locate_programs(paths).peekable();
    if agents.peek().is_some() {
        text.push_str("\nagents\n");
    }
    for (name, program) in agents {
        match program {
            Ok(file) => push_check_line(text, true, name, &file.display().to_string()),
            Err(error) => push_check_line(text, false, name, &error.to_string()),
        }
    }
}

fn describe_programs(environment: &Environment, text: &mut String) {
    text.push_str("\nprograms\n");
    let path = environment.get("PATH").unwrap_or_default();
    for (program, what_for) in PROGRAMS {
        let found = path.split(':').map(|folder| Path::new(folder).join(program));
        match found.into_iter().find(|file| file.is_file()) {
            Some(file) => push_check_line(text, true, program, &file.display().to_string()),
            None => push_check_line(text, false, program, &format!("not found ({what_for})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_counts_only_failed_checks_as_faults() {
        let mut text = String::new();
        push_check_line(&mut text, true, "sessions", "a note with ✗ in it");
        text.push_str(&format!("{TURNED_OFF}files: no\n"));
        assert!(!has_fault(&text), "{text}");
        push_check_line(&mut text, false, "git", "not found");
        assert!(has_fault(&text), "{text}");
    }
}
