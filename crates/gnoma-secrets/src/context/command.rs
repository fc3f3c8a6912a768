//! Passwords among the arguments of commands: `mysql -pX`, `curl -u user:X`, `sshpass -p X`.
//!
//! A table says which option of which program takes one. Long options that say so themselves
//! (`--password=X`) are found by their name.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_password, word_at},
};

pub(super) const PASSWORD_OPTION: SecretContext = SecretContext {
    id: "command-line-password",
    keywords: &[
        "mysql",
        "mariadb",
        "sshpass",
        "curl ",
        "docker login",
        "podman login",
        "registry login",
        "redis-cli",
        "psexec",
        "smbclient",
        "sqlcmd",
        "mongo",
        "ldap",
        "openssl",
        "keytool",
        "gpg",
        "7z ",
        "unzip ",
        "zip ",
        "freerdp",
        "rdesktop",
        "az login",
        "lftp",
    ],
    find: password_option,
};

/// The way in which an option holds its password.
#[derive(Clone, Copy)]
enum PasswordForm {
    /// In the next word: `-p X`.
    Next,
    /// In the same word: `-pX`.
    Attached,
    /// In the next word after a sign: `-u user:X`. The whole word is hidden: API keys are users too.
    After(u8),
}

/// Programs (by the start of their name), their option, and where its password is.
const OPTIONS: &[(&str, &str, PasswordForm)] = &[
    ("mysql", "-p", PasswordForm::Attached),
    ("mariadb", "-p", PasswordForm::Attached),
    ("sshpass", "-p", PasswordForm::Next),
    ("sshpass", "-p", PasswordForm::Attached),
    ("curl", "-u", PasswordForm::After(b':')),
    ("curl", "--user", PasswordForm::After(b':')),
    ("curl", "-U", PasswordForm::After(b':')),
    ("curl", "--proxy-user", PasswordForm::After(b':')),
    ("docker login", "-p", PasswordForm::Next),
    ("podman login", "-p", PasswordForm::Next),
    ("registry login", "-p", PasswordForm::Next),
    ("redis-cli", "-a", PasswordForm::Next),
    ("psexec", "-p", PasswordForm::Next),
    ("smbclient", "-U", PasswordForm::After(b'%')),
    ("sqlcmd", "-P", PasswordForm::Next),
    ("mongo", "-p", PasswordForm::Next),
    ("ldap", "-w", PasswordForm::Next),
    ("openssl", "-passin", PasswordForm::After(b':')),
    ("openssl", "-passout", PasswordForm::After(b':')),
    ("openssl", "-pass", PasswordForm::After(b':')),
    ("keytool", "-storepass", PasswordForm::Next),
    ("keytool", "-keypass", PasswordForm::Next),
    ("gpg", "--passphrase", PasswordForm::Next),
    ("7z", "-p", PasswordForm::Attached),
    ("unzip", "-P", PasswordForm::Next),
    ("zip", "-P", PasswordForm::Next),
    ("freerdp", "/p:", PasswordForm::Attached),
    ("rdesktop", "-p", PasswordForm::Next),
    ("az login", "-p", PasswordForm::Next),
    ("lftp", "-u", PasswordForm::After(b',')),
];

/// Long options that people write with one dash.
const LONG_OPTIONS: [&[u8]; 4] = [b"-password", b"-port", b"-prompt", b"-protocol"];
/// Arguments of one command that are looked at.
const MAX_ARGUMENTS: usize = 64;
/// The length of the longest argument, in bytes.
const MAX_ARGUMENT_BYTES: usize = 1024;

fn password_option(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let is_word_start = hit.start == 0
        || text
            .get(hit.start - 1)
            .is_some_and(|&byte| !byte.is_ascii_alphanumeric() && byte != b'-' && byte != b'_');
    let program = text.get(hit.clone()).unwrap_or_default();
    // `xfreerdp`, `mysqldump`, `ldapsearch`: the keyword may be a part of the program's name.
    let is_part = program.eq_ignore_ascii_case(b"freerdp");
    if !is_word_start && !is_part {
        return;
    }
    let mut at = end_at(text, hit.start, MAX_ARGUMENT_BYTES, |byte| byte.is_ascii_whitespace());
    let mut option: Option<PasswordForm> = None;
    for _ in 0..MAX_ARGUMENTS {
        at = skip_blanks(text, at);
        let word = word_at(text, at, MAX_ARGUMENT_BYTES);
        let Some(value) = text.get(word.clone()).filter(|_| !ends_command(text, at)) else {
            return;
        };
        if let Some(form) = option.take() {
            take_value(form, value, word.clone(), found);
        } else if let Some(quoted) = attached_quote(text, program, &word) {
            if text.get(quoted.clone()).is_some_and(is_password) {
                found(quoted.clone());
            }
            at = after_word(text, &quoted);
            continue;
        } else {
            option = open_option(program, value, word.clone(), found);
        }
        at = after_word(text, &word);
    }
}

/// Returns the text between quotes right behind an option that holds its password: `-p'X'`.
fn attached_quote(text: &[u8], program: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let option = text.get(word.clone())?;
    let holds_password = OPTIONS.iter().any(|(name, known, form)| {
        matches!(form, PasswordForm::Attached)
            && known.as_bytes() == option
            && starts_with_ignoring_case(program, name)
    });
    let quote = text.get(word.end).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let quoted = word_at(text, word.end, MAX_ARGUMENT_BYTES);
    (holds_password && text.get(quoted.end) == Some(quote)).then_some(quoted)
}

/// Returns the form of the password that the word announces for the next word. A password in the word itself is
/// reported at once.
fn open_option(
    program: &[u8],
    word: &[u8],
    span: Range<usize>,
    found: SpanSink,
) -> Option<PasswordForm> {
    let options = OPTIONS.iter().filter(|(name, ..)| starts_with_ignoring_case(program, name));
    for &(_, option, form) in options {
        let Some(rest) = word.strip_prefix(option.as_bytes()) else { continue };
        match form {
            PasswordForm::Next | PasswordForm::After(_) if rest.is_empty() => return Some(form),
            PasswordForm::Attached if is_password(rest) && !LONG_OPTIONS.contains(&word) => {
                found(span.end - rest.len()..span.end);
                return None;
            }
            PasswordForm::After(_) => {
                let value = rest.strip_prefix(b"=").unwrap_or(rest);
                take_value(form, value, span.end - value.len()..span.end, found);
                return None;
            }
            _ => {}
        }
    }
    None
}

fn take_value(form: PasswordForm, value: &[u8], span: Range<usize>, found: SpanSink) {
    let is_secret = match form {
        PasswordForm::Next | PasswordForm::Attached => {
            is_password(value) && !value.starts_with(b"-")
        }
        PasswordForm::After(sign) => memchr::memchr(sign, value).is_some_and(|at| {
            let (user, password) = (value.get(..at), value.get(at + 1..).unwrap_or_default());
            match password {
                [] => user.is_some_and(|user| user.len() >= 8 && is_password(user)),
                _ => {
                    is_password(password) && !password.starts_with(b"/") && !value.starts_with(b"<")
                }
            }
        }),
    };
    if is_secret {
        found(span);
    }
}

/// Blanks and continued lines.
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    loop {
        at = end_at(text, at, MAX_ARGUMENT_BYTES, |byte| byte != b' ' && byte != b'\t');
        let rest = text.get(at..).unwrap_or_default();
        at += if rest.starts_with(b"\\\n") {
            2
        } else if rest.starts_with(b"\\\r\n") {
            3
        } else {
            return at;
        };
    }
}

fn ends_command(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b'|' | b';' | b'&' | b')'))
}

fn after_word(text: &[u8], word: &Range<usize>) -> usize {
    let is_quote = text.get(word.end).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    word.end + usize::from(is_quote)
}

fn starts_with_ignoring_case(text: &[u8], start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}
