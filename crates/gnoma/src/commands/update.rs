//! `gnoma update`: how the installed form is updated. It downloads nothing and changes nothing.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::common::print_safe_text;
use crate::{environment::ProcessEnvironment, report::Exit};

/// The file in which Debian's package manager lists the files of the installed gnoma package.
const DEBIAN_LIST: &str = "/var/lib/dpkg/info/gnoma.list";
/// The page with the source and the releases.
const HOME_PAGE: &str = env!("CARGO_PKG_REPOSITORY");

/// The way in which the running program came onto the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallMethod {
    /// Installed by `cargo install`.
    Cargo,
    /// Installed by the Debian package.
    Debian,
    /// A build in a checkout of the source.
    Checkout,
    /// A file that was copied there by hand.
    File,
}

pub(crate) fn run(around: &ProcessEnvironment) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let package = std::fs::read_to_string(DEBIAN_LIST).unwrap_or_default();
    let form = installation_form(&program, around.var("CARGO_HOME"), &package);
    print_safe_text(&describe_update(form, &program))
}

fn installation_form(program: &Path, cargo_home: Option<&str>, package: &str) -> InstallMethod {
    let folder = program.parent().unwrap_or(program);
    let is_cargo = cargo_home.is_some_and(|home| folder == Path::new(home).join("bin"))
        || folder.ends_with(".cargo/bin");
    if is_cargo {
        InstallMethod::Cargo
    } else if package.lines().any(|file| Path::new(file) == program) {
        InstallMethod::Debian
    } else if folder.components().any(|part| part.as_os_str() == "target") {
        InstallMethod::Checkout
    } else {
        InstallMethod::File
    }
}

fn describe_update(form: InstallMethod, program: &Path) -> String {
    let (version, file) = (env!("CARGO_PKG_VERSION"), program.display());
    let (how, update, remove) = match form {
        InstallMethod::Cargo => (
            "installed by cargo",
            "run `git pull` in the checkout of gnoma, then `bench/package install`".to_owned(),
            "run `cargo uninstall gnoma`".to_owned(),
        ),
        InstallMethod::Debian => (
            "installed from the Debian package",
            format!(
                "install the newer .deb from {HOME_PAGE}/releases with `apt install ./FILE.deb`"
            ),
            "run `apt remove gnoma`".to_owned(),
        ),
        InstallMethod::Checkout => (
            "built in a checkout of the source",
            "run `git pull` there, then build it again".to_owned(),
            "delete the folder `target`".to_owned(),
        ),
        InstallMethod::File => (
            "a file of its own",
            format!("put the program of a newer archive from {HOME_PAGE}/releases in its place"),
            "delete the file".to_owned(),
        ),
    };
    format!(
        "gnoma {version}, {file} ({how})\nto update it: {update}\nto remove it: {remove}\n\
         Settings and sessions stay; `gnoma doctor` says where they are.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_method_is_detected_from_the_program_path() {
        let of = |program: &str| {
            installation_form(Path::new(program), Some("/opt/cargo"), "/.\n/usr/bin/gnoma\n")
        };
        assert_eq!(of("/home/a/.cargo/bin/gnoma"), InstallMethod::Cargo);
        assert_eq!(of("/opt/cargo/bin/gnoma"), InstallMethod::Cargo);
        assert_eq!(of("/usr/bin/gnoma"), InstallMethod::Debian);
        assert_eq!(of("/src/gnoma/target/dist/gnoma"), InstallMethod::Checkout);
        assert_eq!(of("/usr/local/bin/gnoma"), InstallMethod::File);
        assert!(
            describe_update(InstallMethod::Debian, Path::new("/usr/bin/gnoma"))
                .contains("apt install")
        );
    }
}
