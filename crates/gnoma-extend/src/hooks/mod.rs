//! Hooks: people's own programs that run at points of a session's life and can influence it; a hook may also ask a
//! model, or an address, instead of a program.
//!
//! They come from gnoma's settings and from the files of two other programs, and follow their contract: facts as
//! JSON on standard input; exit code 2 blocks, any other failure does not unless the hook says so; JSON on standard
//! output says more. All hooks of a point run side by side, and the strictest answer applies.

mod answer;
mod callbacks;
mod codex;
mod entry;
mod error;
mod files;
mod folder;
mod hook;
mod input;
mod matcher;
mod output;
mod pipes;
mod remote_hooks;
mod restrictions;
mod run;
mod set;
mod transcript;

pub use self::{
    answer::merge_answers,
    callbacks::{Callback, CallbackResult, Callbacks, HookCaller, MAX_CALLBACKS},
    error::{HookCallError, HookError, HookLineError},
    files::{FoundHooks, of_plugin, read_hook_files},
    folder::remove_left_files,
    hook::{Hook, HookContract, HookKind, OWN_TIMEOUT, OwnHook},
    input::{HookAgent, HookSession, effort_name},
    remote_hooks::HookReach,
    restrictions::Restrictions,
    run::{HookRunner, HookSandbox},
    set::{HookRunReport, HookRuns, HookSummary, Hooks},
};
