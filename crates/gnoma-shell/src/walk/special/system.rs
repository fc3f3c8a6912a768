//! Programs that look at the machine, and options with which they do more.

use super::super::Walker;
use super::super::facts_of::Facts;
use super::super::program::Call;
use crate::expand::{Field, looks_secret};
use crate::facts::Effect;
use crate::programs::Role;

/// `ps` only looks; with `e` or `E` it shows environments.
pub(super) fn ps(call: &Call<'_>) -> Facts {
    let shows_environment = call.words.iter().any(|word| {
        let text = word.start();
        let bundle = !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_lowercase())
            && text.len() <= 6
            && text.contains('e');
        let columns = text.contains("environ") || text == "-E";
        bundle && !text.contains("exe") && !is_value(call, word) || columns
    });
    if shows_environment {
        return Facts::of(Effect::Secret("environments of processes".to_owned()));
    }
    Facts::default()
}

/// Whether a word is the value of the option before it.
fn is_value(call: &Call<'_>, word: &Field) -> bool {
    let at = call.words.iter().position(|other| std::ptr::eq(other, word));
    let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| call.words.get(at));
    before.and_then(Field::known).is_some_and(|text| {
        text.starts_with('-') && text.ends_with(['o', 'O', 'C', 'u', 'U', 'g', 'G', 'p', 't', 's'])
    })
}

/// `lsof` only looks; `+d` and `-D` with write access are rare enough to ask.
pub(super) fn lsof(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    if call.sorted.has(&["D", "k", "K"]) {
        facts.add(Effect::Unknown("lsof: it may write a cache".to_owned()));
    }
    facts
}

/// `ip`, `ifconfig`, `route`, `arp`: a few ways of calling them only show.
pub(super) fn network_settings(call: &Call<'_>) -> Facts {
    const SHOWING: [&str; 34] = [
        "addr",
        "address",
        "a",
        "link",
        "l",
        "route",
        "r",
        "neigh",
        "n",
        "neighbour",
        "rule",
        "ru",
        "maddr",
        "netns",
        "show",
        "list",
        "ls",
        "-br",
        "-brief",
        "-c",
        "-color",
        "-4",
        "-6",
        "-j",
        "-json",
        "-p",
        "-s",
        "-d",
        "-o",
        "-details",
        "-stats",
        "dev",
        "up",
        "status",
    ];
    let shows = match call.title {
        "ip" | "bridge" | "tc" => call.words.iter().enumerate().all(|(at, word)| {
            let after_dev = at > 0 && call.words.get(at - 1).and_then(Field::known) == Some("dev");
            word.known().is_some_and(|text| SHOWING.contains(&text)) || after_dev
        }),
        "ifconfig" | "iwconfig" | "ethtool" => {
            call.words.len() <= 1 && !call.words.iter().any(|word| word.start().starts_with("--"))
        }
        "route" | "arp" => call.words.iter().all(|word| {
            matches!(word.known(), Some("-n" | "-a" | "-v" | "-e" | "-an" | "-ne" | "-en"))
        }),
        _ => call.words.iter().all(|word| {
            matches!(
                word.known(),
                Some("status" | "show" | "list" | "device" | "connection" | "dev" | "con" | "-t")
            )
        }),
    };
    if shows {
        Facts::default()
    } else {
        Facts::of(Effect::System(format!("{} may change the network", call.title)))
    }
}

/// `printenv NAME` shows one variable; alone it shows all.
pub(super) fn printenv(call: &Call<'_>) -> Facts {
    let named = &call.sorted.operands;
    let secret = named.is_empty() || named.iter().any(|name| name.known().is_none_or(looks_secret));
    if secret { Facts::of(Effect::Secret("the environment".to_owned())) } else { Facts::default() }
}

/// `dpkg -l`, `rpm -q`: only with an option that asks.
pub(super) fn package_query(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let asks = match call.title {
        "dpkg" => call.words.first().and_then(Field::known).is_some_and(|word| {
            matches!(
                word,
                "-l" | "-L"
                    | "-s"
                    | "-S"
                    | "-p"
                    | "-I"
                    | "-c"
                    | "--list"
                    | "--listfiles"
                    | "--status"
                    | "--search"
                    | "--get-selections"
                    | "--print-architecture"
                    | "--version"
            )
        }),
        "rpm" => {
            call.words.first().and_then(Field::known).is_some_and(|word| {
                word.starts_with("-q")
                    && word.bytes().skip(1).all(|byte| b"qailfRcdp".contains(&byte))
            }) && call.words.iter().skip(1).all(|word| !word.start().starts_with('-'))
        }
        "pacman" => call.words.first().and_then(Field::known).is_some_and(|word| {
            word.starts_with("-Q")
                && word.bytes().skip(2).all(|byte| b"ilqosmneadtk".contains(&byte))
        }),
        _ => call.sorted.strange.is_empty(),
    };
    if asks {
        return Facts::default();
    }
    let mut facts = walker.generic(call);
    facts.add(Effect::System(call.title.to_owned()));
    facts
}

/// `history` shows; its options change it or write it.
pub(super) fn history(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.generic(call);
    if call.words.iter().any(|word| word.known().is_none_or(|text| text.starts_with('-'))) {
        facts.add(Effect::System("changes the history of commands".to_owned()));
    }
    facts
}

/// `man`: a page named by a path is a file that is read.
pub(super) fn man(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    for operand in call.sorted.operands.iter().filter(|word| word.start().contains('/')) {
        walker.act(call, Role::Read, operand, &mut facts);
    }
    walker.always(call, &mut facts);
    facts
}

/// `sysctl` shows, unless a word sets.
pub(super) fn sysctl(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let shows = |word: &Field| word.known().is_some_and(|text| !text.contains('='));
    let asks = call.words.iter().all(shows) && call.sorted.strange.is_empty();
    if !asks || call.words.is_empty() {
        return walker.generic(call);
    }
    let mut facts = Facts::default();
    for name in call.sorted.operands.iter().filter(|name| name.start().contains('/')) {
        let file = format!("/proc/sys/{name}");
        walker.act(call, Role::Read, &Field::Known(file), &mut facts);
    }
    facts
}
