//! Skills that come with gnoma. Only people use them: models do not see them, so they cost nothing.

use std::path::PathBuf;

use super::skill::Skill;
use crate::places::ExtensionSource;

const INIT: &str = "\
Write AGENTS.md at the root of this project: what an assistant that has never seen it needs to know to \
work in it. Look before you write: the README, the build files, the settings of checks and of CI, how \
the folders are laid out and how the tests are written. If there are already an AGENTS.md, a CLAUDE.md or \
notes for other assistants, keep what is true in them and fix what is not.

It contains, in no more than 100 lines:
- what the project is, in a sentence or two
- the commands that build it, check it, run it, run all tests and run one test
- where things are: the folders and files that matter, and what depends on what
- conventions that cannot be guessed from a single file, and traps

Write only what you have seen in this project: no general advice, no lists of every file. Leave out \
commands that you have not seen written down or run.";

const REVIEW: &str = "\
Review the changes named below; if none are named, those that are not committed yet, and if \
there are none, the last commit. Change nothing.

Read the whole diff first, then what surrounds each change: callers, tests, the types it relies on. \
Look for what would break or hurt: wrong results, unhandled cases, lost data, races, leaks of secrets, \
holes in security, missing tests for what changed. Style counts only where the project writes it down.

Report what you found, the worst first, each as path:line, what is wrong, when it shows, and a fix in \
a sentence. Leave out what you are not sure of, or say that you are not. If there is nothing, say so.";

const COMMIT: &str = "\
Commit the work that is in this working tree.

Look at `git status`, the diff, and the last ten messages of the log. Leave out what does not belong to \
the work, what contains secrets, and build output. If there are several separate changes, make several \
commits. Write messages in the style of this project's log: what the change does, and why if that cannot \
be seen. Commit no other files, do not push, do not amend, and do not skip hooks. Then show the log of \
what you committed.";

const BATCH: &str = "\
Do the work named below in parts, with elfs that work side by side (`elf.spawn`).

Look first at everything that it touches, and split it into 2 to 30 independent parts that change different \
files; describe each in one line. Give each part to an elf, up to ten in a call: its task says what to change \
and in which files, what must stay as it is, which example in this project to follow, and how to check it. An \
elf knows nothing but that.

Check the result of each part. Let those that failed continue, or do them yourself. Then run all of the \
project's checks, fix what does not fit together, and report what was changed, part by part, and what is left.

If the work does not fall into such parts, say why and do it yourself.";

/// Returns all skills that come with gnoma.
pub(super) fn bundled_skills() -> Vec<Skill> {
    let skill = |name: &str, hint: &str, description: &str, body: &str| Skill {
        name: name.to_owned(),
        by: ExtensionSource::Bundled,
        path: PathBuf::new(),
        has_folder: false,
        description: description.to_owned(),
        hint: hint.to_owned(),
        tools: None,
        model: None,
        is_for_people: true,
        fork: None,
        arguments: Vec::new(),
        body: body.to_owned(),
        unsupported: Vec::new(),
        warnings: Vec::new(),
    };
    vec![
        skill("batch", "<what>", "split large work among sub-agents", BATCH),
        skill("commit", "[what]", "commit your changes", COMMIT),
        skill(
            "init",
            "[what matters]",
            "write AGENTS.md, the project's notes for assistants",
            INIT,
        ),
        skill("review", "[what]", "review changes and change nothing", REVIEW),
    ]
}
