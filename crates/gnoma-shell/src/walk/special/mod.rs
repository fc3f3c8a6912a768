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
use super::command_facts::CommandFacts;

/// Returns the effects of the program of `call`, by the code that its table entry names.
pub(super) fn look_closer(
    walker: &mut Walker<'_>,
    by: &str,
    call: &ProgramCall<'_>,
) -> CommandFacts {
    match by {
        "rm" => files::analyse_rm(walker, call),
        "copy" => files::analyse_copy(walker, call),
        "mode" => files::analyse_chmod(walker, call),
        "dd" => files::analyse_dd(walker, call),
        "temporary" => files::analyse_mktemp(walker, call),
        "tar" => archives::analyse_tar(walker, call),
        "zip" => archives::analyse_zip(walker, call),
        "unzip" => archives::analyse_unzip(walker, call),
        "compress" => archives::analyse_compressor(walker, call),
        "seven" => archives::analyse_7z(walker, call),
        "ar" => archives::analyse_ar(walker, call),
        "sed" => sed::analyse_sed(walker, call),
        "awk" => awk::analyse_awk(walker, call),
        "find" => find::analyse_find(walker, call),
        "fd" => find::analyse_fd(walker, call),
        "xargs" => xargs::analyse_xargs(walker, call),
        "parallel" => xargs::analyse_parallel(walker, call),
        "interpreter" => interpreters::analyse_interpreter(walker, call),
        "git-cat-file" => git::cat_file(walker, call),
        "git-reflog" => git::analyse_reflog(walker, call),
        "git-symbolic-ref" => git::symbolic_ref(walker, call),
        "git-list" => git::analyse_list(walker, call),
        "git-config" => git::analyse_config(walker, call),
        "git-checkout" => git::analyse_checkout(walker, call),
        "git-restore" => git::analyse_restore(walker, call),
        "ssh" => remote::analyse_ssh(call),
        "transfer" => remote::analyse_transfer(walker, call),
        "fetch" => remote::analyse_download(walker, call),
        "cluster" => remote::analyse_cluster(walker, call),
        "install" => remote::analyse_installer(walker, call),
        "database" => remote::analyse_database(walker, call),
        "container-run" => containers::analyse_run(call),
        "elevate" => walker.walk_elevated(call.title, call.words),
        _ => text_or_system(walker, by, call),
    }
}

fn text_or_system(walker: &mut Walker<'_>, by: &str, call: &ProgramCall<'_>) -> CommandFacts {
    match by {
        "jq" => text::analyse_jq(walker, call),
        "yq" => text::analyse_yq(walker, call),
        "dos2unix" => text::only_with(walker, call, &["O", "to-stdout", "info"]),
        "espeak" => text::analyse_espeak(walker, call),
        "highlight" => text::only_with(walker, call, &["stdout"]),
        "cloc" => text::analyse_cloc(walker, call),
        "tic" => text::only_with(walker, call, &["C", "I", "L", "c"]),
        "xxd" => text::analyse_xxd(walker, call),
        "pandoc" => text::analyse_pandoc(walker, call),
        "pdfimages" => text::only_with(walker, call, &["list"]),
        "uudecode" => text::only_with(walker, call, &["o", "output-file"]),
        "pdftotext" => text::pdf_to_text(walker, call),
        "probe" => text::analyse_probe(walker, call),
        "openssl" => text::analyse_openssl(walker, call),
        "top" => text::only_with(walker, call, &["b", "batch"]),
        "ps" => system::analyse_ps(call),
        "lsof" => system::analyse_lsof(walker, call),
        "network-settings" => system::network_settings(call),
        "printenv" => system::analyse_printenv(call),
        "package-query" => system::package_query(walker, call),
        "history" => system::analyse_history(walker, call),
        "sysctl" => system::analyse_sysctl(walker, call),
        "man" => system::analyse_man(walker, call),
        "kill" => system::analyse_kill(walker, call),
        "mount" => system::analyse_mount(walker, call),
        "getent" => system::analyse_getent(walker, call),
        _ => {
            CommandFacts::unknown_effect(format!("gnoma does not know what `{}` does", call.title))
        }
    }
}
