//! Templates that review pull and merge requests.

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use gnoma_host::HostError;

use super::super::common::print_raw_data;
use crate::{
    args::{InitArgs, Template, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
};

const GITHUB: &str = include_str!("../../../ci/github.yml");
const GITHUB_COMMENTS: &str = include_str!("../../../ci/github-comments.yml");
const GITLAB: &str = include_str!("../../../ci/gitlab.yml");
const CONTAINER: &str = include_str!("../../../ci/Containerfile");

/// Writes or prints a template.
///
/// # Errors
/// There is such a file already, or none can be written.
pub(super) fn run(what: &InitArgs, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    if what.comments && what.template != Template::Github {
        return Err(HostError::usage("--comments is for the template `github`").into());
    }
    let text = render_template(what);
    if what.print {
        return print_raw_data(&text);
    }
    let (name, next) = template_location(what.template);
    let path = launch_request::spec_from_args(args, around).folder.join(name);
    write_template(&path, &text, what.force)?;
    report::print_line(format_args!("wrote {}", path.display()));
    report::print_line(next.replace("@KEY@", &what.key_env));
    Ok(Exit::Done)
}

fn render_template(what: &InitArgs) -> String {
    let text = match what.template {
        Template::Github if what.comments => {
            format!(
                "{}{GITHUB_COMMENTS}",
                GITHUB
                    .replace("--format sarif", "--format github")
                    .replace("review.sarif", "review.json")
            )
        }
        Template::Github => GITHUB.to_owned(),
        Template::Gitlab => GITLAB.to_owned(),
        Template::Container => CONTAINER.to_owned(),
    };
    text.replace("@KEY@", &what.key_env)
        .replace("@SOURCE@", env!("CARGO_PKG_REPOSITORY"))
        .replace("@REF@", concat!("v", env!("CARGO_PKG_VERSION")))
        .replace("@RUST@", env!("CARGO_PKG_RUST_VERSION"))
}

/// Returns the path where a template belongs, and the steps that are left to do.
fn template_location(template: Template) -> (&'static str, &'static str) {
    match template {
        Template::Github => (
            ".github/workflows/gnoma-review.yml",
            "next: add the secret @KEY@ to the repository, and commit the file",
        ),
        Template::Gitlab => (
            ".gitlab/gnoma-review.yml",
            "next: add the masked variable @KEY@ to the project, and to .gitlab-ci.yml:\n\
             include:\n  - local: .gitlab/gnoma-review.yml",
        ),
        Template::Container => (
            "Containerfile",
            "next: build it with `podman build -t gnoma .` or `docker build -t gnoma -f Containerfile .`",
        ),
    }
}

/// Writes a file as a whole; one that is there only with `force`, and a link in its place, never through it.
fn write_template(path: &Path, text: &str, force: bool) -> Result<()> {
    let folder = path.parent().context("the template has no folder")?;
    let failed = |error: std::io::Error| {
        HostError::failure(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::Builder::new().tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    make_readable(file.as_file()).map_err(failed)?;
    let written = if force { file.persist(path) } else { file.persist_noclobber(path) };
    match written {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            let text = format!(
                "{} is there already; --print shows the template, --force replaces the file",
                path.display()
            );
            Err(HostError::usage(text).into())
        }
        Err(error) => Err(failed(error.error).into()),
    }
}

/// Lets all users read the file: temporary files are private, and this one belongs to the project.
fn make_readable(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(template: Template, comments: bool) -> String {
        let key_env = "OPENAI_API_KEY".to_owned();
        render_template(&InitArgs { template, print: true, force: false, comments, key_env })
    }

    #[test]
    fn templates_are_complete_and_grant_little() {
        for (template, comments) in [
            (Template::Github, false),
            (Template::Github, true),
            (Template::Gitlab, false),
            (Template::Container, false),
        ] {
            let text = of(template, comments);
            assert!(!text.contains('@') || !text.contains("@KEY@"), "{text}");
            for word in ["@SOURCE@", "@REF@", "@RUST@", "pull_request_target", "write-all"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
            let writes = text.lines().filter(|line| line.trim_end().ends_with(": write")).count();
            assert_eq!(writes, usize::from(comments), "{text}");
            // An action is named by its whole commit: tags move.
            for action in text.lines().filter_map(|line| line.split_once("uses: ")).map(|it| it.1) {
                let commit = action.split(['@', ' ']).nth(1).unwrap();
                assert!(
                    commit.len() == 40 && commit.bytes().all(|it| it.is_ascii_hexdigit()),
                    "{action}"
                );
            }
            // What events bring must not be put into a shell's text.
            let in_shell = text.lines().filter(|line| line.contains("${{") && !line.contains(": "));
            assert_eq!(in_shell.count(), 0, "{text}");
        }
        assert!(
            of(Template::Github, false).contains("OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}")
        );
    }
}
