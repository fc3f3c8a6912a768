//! Programs whose options alone do not tell what they do.

mod archives;
mod awk;
mod brackets;
mod containers;
mod files;
mod find;
pub(super) mod git;
mod interpreters;
mod remote;
mod sed;
mod system;
mod text;
mod xargs;

use super::Walker;
use super::call::ProgramCall;
use super::facts_of::CommandFacts;

/// Returns the effects of the program of `call`, by the code that its table entry names.
pub(super) fn look_closer(
    walker: &mut Walker<'_>,
    by: &str,
    call: &ProgramCall<'_>,
) -> CommandFacts {
    match by {
        "rm" => files::remove(walker, call),
        "copy" => files::copy(walker, call),
        "mode" => files::mode(walker, call),
        "dd" => files::dd(walker, call),
        "temporary" => files::temporary(walker, call),
        "tar" => archives::tar(walker, call),
        "zip" => archives::zip(walker, call),
        "unzip" => archives::unzip(walker, call),
        "compress" => archives::compress(walker, call),
        "seven" => archives::seven(walker, call),
        "ar" => archives::ar(walker, call),
        "sed" => sed::look(walker, call),
        "awk" => awk::look(walker, call),
        "find" => find::look(walker, call),
        "fd" => find::fd(walker, call),
        "xargs" => xargs::look(walker, call),
        "parallel" => xargs::parallel(walker, call),
        "interpreter" => interpreters::look(walker, call),
        "git-cat-file" => git::cat_file(walker, call),
        "git-reflog" => git::reflog(walker, call),
        "git-symbolic-ref" => git::symbolic_ref(walker, call),
        "git-list" => git::list(walker, call),
        "git-config" => git::config(walker, call),
        "git-checkout" => git::checkout(walker, call),
        "git-restore" => git::restore(walker, call),
        "ssh" => remote::ssh(call),
        "transfer" => remote::transfer(walker, call),
        "fetch" => remote::fetch(walker, call),
        "cluster" => remote::cluster(walker, call),
        "install" => remote::install(walker, call),
        "database" => remote::database(walker, call),
        "container-run" => containers::run(call),
        "elevate" => walker.elevated(call.title, call.words),
        _ => text_or_system(walker, by, call),
    }
}

fn text_or_system(walker: &mut Walker<'_>, by: &str, call: &ProgramCall<'_>) -> CommandFacts {
    match by {
        "jq" => text::jq(walker, call),
        "yq" => text::yq(walker, call),
        "dos2unix" => text::only_with(walker, call, &["O", "to-stdout", "info"]),
        "espeak" => text::espeak(walker, call),
        "highlight" => text::only_with(walker, call, &["stdout"]),
        "cloc" => text::cloc(walker, call),
        "tic" => text::only_with(walker, call, &["C", "I", "L", "c"]),
        "xxd" => text::xxd(walker, call),
        "pandoc" => text::pandoc(walker, call),
        "pdfimages" => text::only_with(walker, call, &["list"]),
        "uudecode" => text::only_with(walker, call, &["o", "output-file"]),
        "pdftotext" => text::pdf_to_text(walker, call),
        "probe" => text::probe(walker, call),
        "openssl" => text::openssl(walker, call),
        "top" => text::only_with(walker, call, &["b", "batch"]),
        "ps" => system::ps(call),
        "lsof" => system::lsof(walker, call),
        "network-settings" => system::network_settings(call),
        "printenv" => system::printenv(call),
        "package-query" => system::package_query(walker, call),
        "history" => system::history(walker, call),
        "sysctl" => system::sysctl(walker, call),
        "man" => system::man(walker, call),
        _ => CommandFacts::unknown(format!("gnoma does not know what `{}` does", call.title)),
    }
}
