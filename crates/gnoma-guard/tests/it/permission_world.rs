//! A made-up machine on which calls are judged, and a short way to say what is expected.

use std::{
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    RawJson, ToolCall, ToolSpec,
    message::CallId,
    places::makes_repository,
    session::PermissionMode,
    tool::{Access, Grant, Tier, ToolKind, TouchedResource},
};
use gnoma_guard::{
    git::Repositories,
    permission::{JudgementContext, Origin, Permissions, Rule, RuleAction, Verdict},
};
use serde_json::json;

pub(crate) const HOME: &str = "/home/ada";
pub(crate) const WORKSPACE: &str = "/home/ada/work/app";

/// Where calls are judged. The workspace is the working folder.
pub(crate) struct Desk {
    pub(crate) mode: PermissionMode,
    pub(crate) permissions: Permissions,
    pub(crate) trusted: bool,
    links: Vec<(PathBuf, PathBuf)>,
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    home: PathBuf,
    own: Vec<PathBuf>,
    programs: Vec<PathBuf>,
    copies: Vec<(PathBuf, PathBuf)>,
    /// Files, where it is told which there are.
    files: Option<Vec<PathBuf>>,
    repository: Repository,
}

/// The only repository: it begins in the workspace.
#[derive(Default)]
struct Repository {
    program: Option<&'static str>,
    secrets: Vec<PathBuf>,
    own_compiler: Option<PathBuf>,
    has_hooks: bool,
    /// What the only other one of its kind has: a folder with these entries.
    other: Option<(PathBuf, Vec<&'static str>)>,
    /// Links that earlier commands have left for later ones.
    left: Vec<(PathBuf, PathBuf)>,
}

impl Repositories for Repository {
    fn find_program_setting(&self, folder: &Path) -> Option<String> {
        self.program.filter(|_| folder.starts_with(WORKSPACE)).map(str::to_owned)
    }

    fn secret_files(&self, folder: &Path) -> Arc<[PathBuf]> {
        if folder.starts_with(WORKSPACE) { self.secrets.clone().into() } else { Arc::default() }
    }

    fn own_compiler(&self, folder: &Path) -> Option<PathBuf> {
        self.own_compiler.clone().filter(|_| folder.starts_with(WORKSPACE))
    }

    fn settings_files(&self, folder: &Path) -> Vec<PathBuf> {
        let is_own = folder.starts_with(WORKSPACE);
        is_own.then(|| Path::new(WORKSPACE).join(".git/config")).into_iter().collect()
    }

    fn has_hooks(&self, _: &Path) -> bool {
        self.has_hooks
    }

    fn is_git_folder(&self, folder: &Path, and: &OsStr) -> bool {
        let entries = self.other.iter().filter(|(at, _)| at == folder).flat_map(|(_, has)| has);
        makes_repository(|name| and == name || entries.clone().any(|entry| *entry == name))
    }

    fn seen_by_commands(&self, path: &Path) -> Option<PathBuf> {
        (!self.left.is_empty()).then(|| through(&self.left, path))
    }
}

impl Desk {
    pub(crate) fn new(mode: PermissionMode) -> Self {
        Self {
            mode,
            permissions: Permissions::default(),
            trusted: true,
            links: Vec::new(),
            cwd: WORKSPACE.into(),
            roots: vec![WORKSPACE.into()],
            home: HOME.into(),
            own: vec![PathBuf::from(HOME).join(".config/gnoma")],
            programs: Vec::new(),
            copies: Vec::new(),
            files: None,
            repository: Repository::default(),
        }
    }

    /// Adds rules of the user, such as `allow bash(git status)`.
    pub(crate) fn with(mut self, rules: &[&str]) -> Self {
        for text in rules {
            self.permissions.add_rule(rule(text, Origin::User));
        }
        self
    }

    /// Adds a link, both ends from the root.
    pub(crate) fn link(mut self, from: &str, to: &str) -> Self {
        self.links.push((from.into(), to.into()));
        self
    }

    /// An earlier command on trial has left a link in the workspace.
    pub(crate) fn left(mut self, from: &str, to: &str) -> Self {
        self.repository.left.push((Path::new(WORKSPACE).join(from), to.into()));
        self
    }

    /// A folder of the workspace has these entries.
    pub(crate) fn with_folder(mut self, folder: &str, entries: &[&'static str]) -> Self {
        self.repository.other = Some((Path::new(WORKSPACE).join(folder), entries.to_vec()));
        self
    }

    /// The project has compilers of its own.
    pub(crate) fn with_own_compiler(mut self) -> Self {
        self.repository.own_compiler = Some(Path::new(WORKSPACE).join("rust-toolchain.toml"));
        self
    }

    /// Looking at the repository would run what this setting names.
    pub(crate) fn running(mut self, setting: &'static str) -> Self {
        self.repository.program = Some(setting);
        self
    }

    /// git runs hooks in the repository.
    pub(crate) fn with_hooks(mut self) -> Self {
        self.repository.has_hooks = true;
        self
    }

    /// This file of the workspace was committed once.
    pub(crate) fn committed(mut self, file: &str) -> Self {
        self.repository.secrets.push(Path::new(WORKSPACE).join(file));
        self
    }

    /// Programs are searched for in this folder.
    pub(crate) fn searching(mut self, folder: &str) -> Self {
        self.programs.push(folder.into());
        self
    }

    /// The workspace is a copy of this folder.
    pub(crate) fn copy_of(mut self, folder: &str) -> Self {
        self.copies.push((self.cwd.clone(), folder.into()));
        self
    }

    /// Moves to a workspace elsewhere.
    pub(crate) fn at(mut self, workspace: &str) -> Self {
        self.cwd = workspace.into();
        self.roots = vec![workspace.into()];
        self
    }

    /// Gives the user another home.
    pub(crate) fn living_at(mut self, home: &str) -> Self {
        self.home = home.into();
        self
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&JudgementContext<'_>) -> T) -> T {
        look(&JudgementContext {
            cwd: &self.cwd,
            home: Some(&self.home),
            roots: &self.roots,
            config_dirs: &self.own,
            programs: &self.programs,
            copies: &self.copies,
            trusted: self.trusted,
            sandboxed: true,
            network_on_grant: true,
            resolve: &|path| self.resolve(path),
            list: &|folder| self.list(folder),
            repositories: &self.repository,
        })
    }

    pub(crate) fn judge(&self, call: &str) -> Verdict {
        let (tool, call) = parse(call);
        self.judge_call(&tool, &call)
    }

    pub(crate) fn judge_call(&self, tool: &ToolSpec, call: &ToolCall) -> Verdict {
        self.look(|world| self.permissions.judge(self.mode, world, tool, call))
    }

    /// The verdict in a word.
    pub(crate) fn says(&self, call: &str) -> &'static str {
        word(&self.judge(call))
    }

    pub(crate) fn reason(&self, call: &str) -> String {
        match self.judge(call) {
            Verdict::Allow { reason, .. }
            | Verdict::Deny { reason }
            | Verdict::Ask { reason, .. } => reason,
        }
    }

    /// The rules that "always" would add.
    pub(crate) fn always(&self, call: &str) -> Vec<Rule> {
        match self.judge(call) {
            Verdict::Ask { always, .. } => always,
            Verdict::Allow { .. } | Verdict::Deny { .. } => Vec::new(),
        }
    }

    /// The parts of the question that name a danger.
    pub(crate) fn dangers(&self, call: &str) -> Vec<String> {
        match self.judge(call) {
            Verdict::Ask { dangers, .. } => dangers,
            Verdict::Allow { .. } | Verdict::Deny { .. } => Vec::new(),
        }
    }

    pub(crate) fn grant(&self, call: &str) -> Grant {
        match self.judge(call) {
            Verdict::Allow { grant, .. } | Verdict::Ask { grant, .. } => grant,
            Verdict::Deny { .. } => Grant::default(),
        }
    }

    /// These files are in the workspace, and no others anywhere.
    pub(crate) fn with_files(mut self, files: &[&str]) -> Self {
        self.files = Some(files.iter().map(|file| self.cwd.join(file)).collect());
        self
    }

    fn list(&self, folder: &Path) -> Option<Vec<OsString>> {
        let files = self.files.as_ref()?.iter().chain(self.links.iter().map(|(from, _)| from));
        let below = files.filter_map(|file| file.strip_prefix(folder).ok());
        Some(below.filter_map(|rest| rest.iter().next()).map(OsStr::to_owned).collect())
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        through(&self.links, path)
    }
}

/// Follows links name by name, as a kernel does.
fn through(links: &[(PathBuf, PathBuf)], path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                real.pop();
            }
            other => real.push(other),
        }
        if let Some((_, to)) = links.iter().find(|(from, _)| *from == real) {
            real.clone_from(to);
        }
    }
    real
}

pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

/// A rule as `ACTION RULE`.
pub(crate) fn rule(text: &str, origin: Origin) -> Rule {
    let (action, text) = text.split_once(' ').unwrap();
    let action = match action {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        _ => RuleAction::Deny,
    };
    Rule::parse(action, text, origin).unwrap()
}

/// A call as `TOOL ARGUMENT`, of a tool that touches what such a tool touches.
pub(crate) fn parse(call: &str) -> (ToolSpec, ToolCall) {
    let (name, argument) = call.split_once(' ').unwrap_or((call, ""));
    let (access, touches) = match name {
        "bash" => (Access::Execute, Some(TouchedResource::command("command"))),
        "web.fetch" => (Access::Read, Some(TouchedResource::url("url"))),
        "fs.write" | "fs.edit" => (Access::Edit, Some(TouchedResource::path("path"))),
        _ if name.starts_with("fs.") => (Access::Read, Some(TouchedResource::path("path"))),
        "todo" => (Access::Read, None),
        _ => (Access::Execute, None),
    };
    let arguments = match &touches {
        Some(touches) if !argument.is_empty() => json!({ touches.argument(): argument }),
        _ => json!({}),
    };
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
        access,
        touches: touches.into_iter().collect(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    };
    let arguments = RawJson::from_value(&arguments).unwrap();
    (spec, ToolCall::new(CallId::new("call"), name, arguments))
}
