//! A policy on its way to the launcher: a list of arguments, so that every path survives as it is.
//!
//! The list ends with `--` and the command. Whatever stands behind that is the command's and is
//! never read as policy, so nothing a model writes can widen it.

use std::{
    ffi::{OsStr, OsString},
    fmt,
};

use crate::policy::{CommandLimits, Overlay, Policy, ReadScope};

/// Stands for the process that should hold the session's namespaces and does not: nothing may run without it.
pub(crate) const MISSING_SESSION: u32 = 0;

/// Stands between the policy and the command.
const END: &str = "--";

/// All that the launcher must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchPlan {
    /// The process that asked for the command; everything ends with it.
    pub(crate) owner: u32,
    /// The process that holds the session's namespaces; without one there are none.
    pub(crate) session: Option<u32>,
    /// The policy of the sandbox for the command.
    pub(crate) policy: Policy,
}

/// A plan that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnreadablePlan(String);

impl fmt::Display for UnreadablePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LaunchPlan {
    /// The plan as arguments, up to and including the mark before the command.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let policy = &self.policy;
        let mut list = ArgsWriter(Vec::new());
        list.add("owner", self.owner.to_string());
        if let Some(session) = self.session {
            list.add("session", session.to_string());
        }
        list.add_all("write", &policy.writable);
        list.add_all("protect", &policy.protected);
        if let Some(shown) = policy.readable.shown_paths() {
            list.add("only", encode_switch(true));
            list.add_all("show", shown);
        }
        list.add_all("hide", policy.readable.hidden_paths());
        list.add_all("exact", &policy.exact);
        list.add_all("seal", &policy.sealed);
        list.add_all("outside", &policy.outside_names);
        list.add_all("absent", &policy.absent);
        list.add("machine", encode_switch(policy.shows_machine));
        list.add_all("temporary", policy.temporary.as_slice());
        list.add_all("beside", &policy.shown_temporary);
        list.add_all("device", &policy.devices);
        list.add_all("scrub", &policy.scrub);
        list.add("network", encode_switch(policy.network));
        list.add("loopback", encode_switch(policy.loopback));
        list.add("alone", encode_switch(policy.alone));
        for overlay in &policy.overlays {
            list.add("overlay", &overlay.at);
            list.add_all("lower", &overlay.lower);
            list.add("upper", &overlay.upper);
            list.add("work", &overlay.work);
            list.add("frozen", encode_switch(overlay.is_frozen));
        }
        list.add("sockets", encode_switch(policy.local_sockets));
        list.add("git", encode_switch(policy.git_hardening));
        list.add("bare", encode_switch(policy.bare_repository));
        list.add("processes", policy.limits.processes.to_string());
        if let Some(umask) = policy.umask {
            list.add("umask", umask.to_string());
        }
        list.add_all("span", policy.traceparent.as_slice());
        list.0.push(END.into());
        list.0
    }

    /// Reads the plan and leaves `args` at the command.
    pub(crate) fn from_args(
        args: &mut impl Iterator<Item = OsString>,
    ) -> Result<Self, UnreadablePlan> {
        let mut plan = Self { owner: 0, session: None, policy: Policy::default() };
        loop {
            let key =
                args.next().ok_or_else(|| UnreadablePlan("the plan has no end".to_owned()))?;
            if key == END {
                return Ok(plan);
            }
            let value = args
                .next()
                .ok_or_else(|| UnreadablePlan(format!("`{}` has no value", display_lossy(&key))))?;
            plan.set_key(&key, value)?;
        }
    }

    fn set_key(&mut self, key: &OsStr, value: OsString) -> Result<(), UnreadablePlan> {
        let policy = &mut self.policy;
        match key.to_str().unwrap_or_default() {
            "owner" => self.owner = parse_number(&value)?,
            "session" => self.session = Some(parse_number(&value)?),
            "write" => policy.writable.push(value.into()),
            "protect" => policy.protected.push(value.into()),
            "only" => policy.readable = ReadScope::Only { shown: Vec::new(), hidden: Vec::new() },
            "show" => show_too(&mut policy.readable, value)?,
            "hide" => hide_path(&mut policy.readable, value),
            "exact" => policy.exact.push(value.into()),
            "seal" => policy.sealed.push(value.into()),
            "outside" => policy.outside_names.push(value.into()),
            "absent" => policy.absent.push(value.into()),
            "machine" => policy.shows_machine = is_on(&value),
            "temporary" => policy.temporary = Some(value.into()),
            "beside" => policy.shown_temporary.push(value.into()),
            "device" => policy.devices.push(value.into()),
            "scrub" => policy.scrub.push(value.to_string_lossy().into_owned()),
            "network" => policy.network = is_on(&value),
            "loopback" => policy.loopback = is_on(&value),
            "alone" => policy.alone = is_on(&value),
            "overlay" => policy.overlays.push(Overlay { at: value.into(), ..Overlay::default() }),
            "lower" => last_overlay(policy)?.lower.push(value.into()),
            "upper" => last_overlay(policy)?.upper = value.into(),
            "work" => last_overlay(policy)?.work = value.into(),
            "frozen" => last_overlay(policy)?.is_frozen = is_on(&value),
            "sockets" => policy.local_sockets = is_on(&value),
            "git" => policy.git_hardening = is_on(&value),
            "bare" => policy.bare_repository = is_on(&value),
            "processes" => policy.limits = CommandLimits { processes: parse_number(&value)? },
            "umask" => policy.umask = Some(parse_number(&value)?),
            "span" => policy.traceparent = Some(value.to_string_lossy().into_owned()),
            _ => {
                return Err(UnreadablePlan(format!(
                    "`{}` is not part of a plan",
                    display_lossy(key)
                )));
            }
        }
        Ok(())
    }
}

struct ArgsWriter(Vec<OsString>);

impl ArgsWriter {
    fn add(&mut self, key: &str, value: impl Into<OsString>) {
        self.0.extend([key.into(), value.into()]);
    }

    fn add_all<T: AsRef<OsStr>>(&mut self, key: &str, values: &[T]) {
        for value in values {
            self.add(key, value.as_ref());
        }
    }
}

/// The overlay that a part belongs to.
fn last_overlay(policy: &mut Policy) -> Result<&mut Overlay, UnreadablePlan> {
    let none = || UnreadablePlan("a part of an overlay has no overlay".to_owned());
    policy.overlays.last_mut().ok_or_else(none)
}

fn hide_path(readable: &mut ReadScope, path: OsString) {
    match readable {
        ReadScope::All => *readable = ReadScope::Except(vec![path.into()]),
        ReadScope::Except(hidden) | ReadScope::Only { hidden, .. } => hidden.push(path.into()),
    }
}

fn show_too(readable: &mut ReadScope, path: OsString) -> Result<(), UnreadablePlan> {
    match readable {
        ReadScope::Only { shown, .. } => shown.push(path.into()),
        ReadScope::All | ReadScope::Except(_) => {
            return Err(UnreadablePlan("`show` stands where everything is".to_owned()));
        }
    }
    Ok(())
}

fn encode_switch(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

fn is_on(value: &OsStr) -> bool {
    value == "1"
}

fn parse_number(value: &OsStr) -> Result<u32, UnreadablePlan> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| UnreadablePlan(format!("`{}` is not a number", display_lossy(value))))
}

fn display_lossy(text: &OsStr) -> impl fmt::Display {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::ffi::OsStringExt, path::PathBuf};

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn paths() -> impl Strategy<Value = Vec<PathBuf>> {
        vec(vec(1_u8.., 0..12).prop_map(|bytes| OsString::from_vec(bytes).into()), 0..4)
    }

    fn readables() -> impl Strategy<Value = ReadScope> {
        (proptest::option::of(paths()), paths()).prop_map(|(shown, hidden)| match shown {
            Some(shown) => ReadScope::Only { shown, hidden },
            None if hidden.is_empty() => ReadScope::All,
            None => ReadScope::Except(hidden),
        })
    }

    prop_compose! {
        fn overlays()(
            at in paths(),
            lower in paths(),
            upper in "[ -~]{0,8}",
            is_frozen: bool,
        ) -> Vec<Overlay> {
            let overlay = |at| Overlay {
                at,
                lower: lower.clone(),
                upper: upper.clone().into(),
                work: upper.clone().into(),
                is_frozen,
            };
            at.into_iter().map(overlay).collect()
        }
    }

    prop_compose! {
        fn plans()(
            owner: u32,
            session: Option<u32>,
            writable in paths(),
            protected in paths(),
            readable in readables(),
            exact in paths(),
            [sealed, outside_names, absent, devices] in [paths(), paths(), paths(), paths()],
            temporary in paths(),
            shown_temporary in paths(),
            overlays in overlays(),
            [network, loopback, alone, local_sockets, git_hardening, bare_repository, shows_machine]: [bool; 7],
            scrub in vec("[ -~]{0,8}", 0..4),
            processes: u32,
            umask: Option<u32>,
            spans in vec("[ -~]{0,8}", 0..2),
        ) -> LaunchPlan {
            let temporary = temporary.into_iter().next();
            let limits = CommandLimits { processes };
            let policy = Policy {
                writable, protected, readable, exact, sealed, outside_names, absent, shows_machine, devices, network,
                loopback, alone, overlays, local_sockets, temporary, shown_temporary, scrub, git_hardening,
                bare_repository, limits, umask, traceparent: spans.into_iter().next(),
            };
            LaunchPlan { owner, session, policy }
        }
    }

    proptest! {
        #[test]
        fn launch_plan_round_trips_through_arguments_and_preserves_the_command(
            plan in plans(),
            command in vec("[ -~]{0,8}", 0..6),
        ) {
            let command: Vec<OsString> = command.into_iter().map(Into::into).collect();
            let mut args = plan.to_args().into_iter().chain(command.clone());
            prop_assert_eq!(LaunchPlan::from_args(&mut args).unwrap(), plan);
            prop_assert_eq!(args.collect::<Vec<_>>(), command);
        }

        #[test]
        fn malformed_launch_plan_arguments_are_rejected(words in vec("[ -~]{0,8}", 0..8)) {
            let mut args = words.iter().filter(|word| *word != END).map(Into::into);
            prop_assert!(LaunchPlan::from_args(&mut args).is_err());
        }
    }
}
