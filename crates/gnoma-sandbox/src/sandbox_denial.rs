//! Guesses from a failed command's output whether the sandbox denied something. Pure.
//!
//! A guess is an offer to a person to run the command outside, never a permission. So it may be
//! wrong, but should not be made for failures that the walls have nothing to do with.

/// The end of the output that is looked at, in bytes.
const TAIL_BYTES: usize = 8 * 1024;

/// Words that programs use for one of the wall's answers, in lower case, and what was stopped.
const SIGNS: [(&[&str], &str); 6] = [
    (
        &["gnoma: the sandbox could not"],
        "the sandbox could not be built, so the command was not run",
    ),
    (
        &[
            "could not resolve host",
            "couldn't resolve host",
            "temporary failure in name resolution",
            "name or service not known",
            "nodename nor servname",
            "getaddrinfo enotfound",
            "getaddrinfo eai_again",
            "network is unreachable",
            "enetunreach",
            "dns error",
            "no such host",
            "failed to lookup address",
            "socket: operation not permitted",
            "error sending request for url",
        ],
        "network access, which the sandbox does not allow",
    ),
    (
        &["read-only file system", "erofs", "readonly filesystem"],
        "writing outside the workspace, or to a file that is protected in it",
    ),
    (
        &[
            "could not write config file .git/config",
            "could not lock config file .git/config",
            "device or resource busy",
        ],
        "changing or moving a file that is protected in the workspace",
    ),
    (
        &["permission denied", "eacces", "operation not permitted", "eperm", "access is denied"],
        "something that the sandbox does not permit: a path outside the workspace, a hidden file, \
         another process or a system call",
    ),
    (
        &["resource temporarily unavailable", "cannot fork", "eagain"],
        "more processes than the sandbox allows",
    ),
];

/// One sentence on what the walls probably stopped, for a command that failed.
///
/// `stderr_tail` is the end of its output. `exit_code` is `None` when a signal ended it.
#[must_use]
pub fn describe_sandbox_denial(stderr_tail: &str, exit_code: Option<i32>) -> Option<String> {
    /// The words with which a shell reports that a program was ended for a forbidden call.
    const BAD_CALL: &str = "bad system call";
    if exit_code == Some(0) {
        return None;
    }
    let tail = end_of(stderr_tail).to_lowercase();
    if tail.contains(BAD_CALL) {
        return Some(denial_sentence("a program for another kind of processor"));
    }
    let (_, what) =
        SIGNS.iter().find(|(signs, _)| signs.iter().any(|sign| contains_word(&tail, sign)))?;
    Some(denial_sentence(what))
}

fn denial_sentence(what: &str) -> String {
    format!("The sandbox probably blocked this: {what}.")
}

/// True if the sign occurs as words of its own: `eperm` is not in `whiteperm`.
fn contains_word(text: &str, sign: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.match_indices(sign).any(|(start, _)| {
        let before = start.checked_sub(1).and_then(|place| bytes.get(place));
        !is_word(before) && !is_word(bytes.get(start + sign.len()))
    })
}

fn end_of(text: &str) -> &str {
    let from = text.len().saturating_sub(TAIL_BYTES);
    let from = (from..=text.len()).find(|place| text.is_char_boundary(*place));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sandbox_denial_is_recognized_from_command_output() {
        let network = [
            "curl: (6) Could not resolve host: example.com",
            "fatal: unable to access 'https://example.com/a.git/': Could not resolve host: example.com",
            "npm ERR! errno EAI_AGAIN\nnpm ERR! request failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
            "ping: connect: Network is unreachable",
            "dial tcp: lookup proxy.golang.org: no such host",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        ];
        for output in network {
            assert!(
                describe_sandbox_denial(output, Some(1)).unwrap().contains("network"),
                "{output}"
            );
        }
        let files = [
            "touch: cannot touch '/etc/x': Read-only file system",
            "Error: EROFS: read-only file system, open '/home/a/.npmrc'",
            "OSError: [Errno 30] Read-only file system: '/usr/lib/x'",
        ];
        for output in files {
            assert!(
                describe_sandbox_denial(output, Some(1)).unwrap().contains("writing outside"),
                "{output}"
            );
        }
        let protected = "error: could not write config file .git/config: Device or resource busy";
        assert!(describe_sandbox_denial(protected, Some(4)).unwrap().contains("protected"));
        let denied = "bash: /home/a/.ssh/id_ed25519: Permission denied";
        assert!(describe_sandbox_denial(denied, Some(1)).unwrap().contains("hidden"));
        assert!(describe_sandbox_denial("bash: line 1: 12 Bad system call", Some(159)).is_some());
    }

    #[test]
    fn ordinary_command_failures_are_not_reported_as_sandbox_denials() {
        let ordinary = [
            "error[E0308]: mismatched types",
            "AssertionError: expected 1 to be 2",
            "make: *** [Makefile:3: all] Error 1",
            "bash: frobnicate: command not found",
            "ls: cannot access 'x': No such file or directory",
            "error: whiteperms not found in eagainst",
        ];
        for output in ordinary {
            assert_eq!(describe_sandbox_denial(output, Some(1)), None, "{output}");
        }
    }

    #[test]
    fn successful_command_is_not_reported_as_a_sandbox_denial() {
        assert_eq!(describe_sandbox_denial("warning: Permission denied (ignored)", Some(0)), None);
    }

    proptest! {
        #[test]
        fn sandbox_denial_is_searched_only_in_the_end_of_the_output(before in ".{0,40}", after in ".{0,40}") {
            let long = format!("{before} erofs {}{after}", "é".repeat(TAIL_BYTES));
            prop_assert_eq!(describe_sandbox_denial(&long, Some(1)), describe_sandbox_denial(&after, Some(1)));
        }
    }
}
