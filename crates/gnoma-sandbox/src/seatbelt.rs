//! A policy as a profile for `sandbox-exec` on macOS. Pure text.
//!
//! The profile language decides by the last rule that matches. Absent paths can be protected as well,
//! since rules are about names. There are no namespaces: processes of the user can be seen, though
//! not touched.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use crate::policy::Policy;

/// The program that runs a command under a profile.
pub const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Files that every program writes to.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/dtracehelper",
    "/dev/stdout",
    "/dev/stderr",
];

/// Services of the system that programs cannot start without.
const SERVICES: [&str; 6] = [
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.system.logger",
    "com.apple.trustd.agent",
    "com.apple.SystemConfiguration.configd",
];

/// The profile. Paths should be real ones: the system compares them after following links.
#[must_use]
pub fn profile(policy: &Policy) -> String {
    let mut text = String::from(
        "(version 1)\n\
         (deny default)\n\
         (allow process-exec)\n\
         (allow process-fork)\n\
         (allow signal (target same-sandbox))\n\
         (allow process-info* (target same-sandbox))\n\
         (allow sysctl-read)\n\
         (allow ipc-posix-sem)\n\
         (allow ipc-posix-shm)\n\
         (allow pseudo-tty)\n\
         (allow file-ioctl (regex #\"^/dev/(ptmx|ttys[0-9]+)$\"))\n\
         (allow file-read* file-write* (regex #\"^/dev/(ptmx|ttys[0-9]+)$\"))\n\
         (allow file-read*)\n",
    );
    for service in SERVICES {
        write_rule(&mut text, "allow mach-lookup", "global-name", service);
    }
    for path in policy.readable.hidden_paths().iter().chain(&policy.sealed) {
        path_rule(&mut text, "deny file-read* file-write*", "subpath", path);
    }
    for device in DEVICES {
        write_rule(&mut text, "allow file-write*", "literal", device);
    }
    for path in &policy.writable {
        path_rule(&mut text, "allow file-write*", "subpath", path);
    }
    for path in policy.readable.hidden_paths().iter().chain(&policy.sealed) {
        path_rule(&mut text, "deny file-write*", "subpath", path);
    }
    for path in &policy.protected {
        path_rule(&mut text, "deny file-write*", "subpath", path);
        for folder in folders_up_to_root(path, &policy.writable) {
            // A folder that is moved away takes what protects it along.
            path_rule(&mut text, "deny file-write-unlink", "literal", folder);
        }
    }
    // No file runs as its owner instead of its user.
    text.push_str("(deny file-write-setugid)\n");
    text.push_str(network_rules(policy));
    text
}

fn network_rules(policy: &Policy) -> &'static str {
    if policy.network {
        "(allow network*)\n(allow system-socket)\n(allow mach-lookup (global-name \"com.apple.dnssd.service\"))\n"
    } else if policy.loopback {
        "(allow network-bind (local ip \"localhost:*\"))\n\
         (allow network-inbound (local ip \"localhost:*\"))\n\
         (allow network-outbound (remote ip \"localhost:*\"))\n"
    } else {
        ""
    }
}

/// The folders above `path` up to its root, the root itself included.
fn folders_up_to_root<'a>(path: &'a Path, roots: &[PathBuf]) -> Vec<&'a Path> {
    let root = roots.iter().find(|root| path.starts_with(root));
    let is_below = |folder: &&Path| root.is_some_and(|root| folder.starts_with(root));
    path.ancestors().skip(1).take_while(is_below).collect()
}

fn path_rule(text: &mut String, action: &str, kind: &str, path: &Path) {
    write_rule(text, action, kind, &path.to_string_lossy());
}

fn write_rule(text: &mut String, action: &str, kind: &str, value: &str) {
    let value = quote_string(value);
    // Writing to a string cannot fail.
    let _written = writeln!(text, "({action} ({kind} {value}))");
}

/// A string of the profile language: only quotes and backslashes mean something in it.
fn quote_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::ReadScope;

    fn policy() -> Policy {
        Policy {
            writable: vec!["/Users/a/work".into(), "/private/tmp".into()],
            protected: vec!["/Users/a/work/.git/hooks".into()],
            readable: ReadScope::Except(vec!["/Users/a/.ssh".into()]),
            ..Policy::default()
        }
    }

    fn place(profile: &str, line: &str) -> usize {
        profile.find(line).unwrap_or_else(|| panic!("`{line}` is not in\n{profile}"))
    }

    #[test]
    fn seatbelt_deny_rules_follow_the_allow_rules_that_they_restrict() {
        let profile = profile(&policy());
        let all = place(&profile, "(allow file-read*)\n");
        let hidden = place(&profile, r#"(deny file-read* file-write* (subpath "/Users/a/.ssh"))"#);
        let root = place(&profile, r#"(allow file-write* (subpath "/Users/a/work"))"#);
        let hooks = place(&profile, r#"(deny file-write* (subpath "/Users/a/work/.git/hooks"))"#);
        assert!(all < hidden && hidden < root && root < hooks);
        assert!(profile.starts_with("(version 1)\n(deny default)\n"));
    }

    #[test]
    fn folders_above_a_protected_path_cannot_be_moved_away() {
        let profile = profile(&policy());
        place(&profile, r#"(deny file-write-unlink (literal "/Users/a/work/.git"))"#);
        place(&profile, r#"(deny file-write-unlink (literal "/Users/a/work"))"#);
        assert!(!profile.contains(r#"(literal "/Users/a")"#));
    }

    #[test]
    fn seatbelt_profile_grants_loopback_or_the_whole_network() {
        let with = |network, loopback| profile(&Policy { network, loopback, ..policy() });
        assert!(!with(false, false).contains("network-"));
        assert!(with(false, true).contains("localhost:*"));
        assert!(!with(false, true).contains("(allow network*)"));
        assert!(with(true, false).contains("(allow network*)"));
    }

    #[test]
    fn seatbelt_profile_escapes_quotes_in_paths() {
        let path = r#"/tmp/a") (allow default) ("\"#;
        let profile = profile(&Policy { writable: vec![path.into()], ..Policy::default() });
        place(&profile, r#"(subpath "/tmp/a\") (allow default) (\"\\"))"#);
    }

    proptest! {
        #[test]
        fn seatbelt_profile_has_balanced_quotes_and_brackets_for_any_path(path in "/[ -~\n]{0,30}") {
            let text = profile(&Policy { writable: vec![path.into()], ..Policy::default() });
            let (mut depth, mut in_string, mut escaped) = (0_i32, false, false);
            for character in text.chars() {
                match character {
                    _ if escaped => escaped = false,
                    '\\' if in_string => escaped = true,
                    '"' => in_string = !in_string,
                    '(' if !in_string => depth += 1,
                    ')' if !in_string => depth -= 1,
                    _ => {}
                }
                prop_assert!(depth >= 0);
            }
            prop_assert!(depth == 0 && !in_string);
        }
    }
}
