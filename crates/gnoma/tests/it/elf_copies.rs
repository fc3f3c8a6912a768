//! Elfs that work in a copy of the project, in the whole program: what they changed comes back whole or
//! not at all, nothing of the person's is touched besides, and nothing is left behind.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gnoma_testkit::{Reply, Request, Server};

use crate::support::{Run, World, calls, says};

const BYPASS: [&str; 2] = ["--permission", "bypass"];

fn spawn(name: &str) -> Reply {
    let tasks =
        format!(r#"{{"tasks":[{{"task":"work","name":"{name}","isolation":"worktree"}}]}}"#);
    calls("elf_spawn", &tasks)
}

fn writes(path: &str, content: &str) -> Reply {
    let arguments = serde_json::json!({ "path": path, "content": content });
    calls("fs_write", &arguments.to_string())
}

fn bash(command: &str) -> Reply {
    calls("bash", &serde_json::json!({ "command": command }).to_string())
}

fn is_done(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// What the parent's model was told last.
fn told(world: &World) -> String {
    world.last_request().pop().unwrap().1
}

fn copies(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.home.path().join(".cache/gnoma/elfs"));
    entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn git(world: &World, line: &str) -> String {
    git_at(world.project.path(), line)
}

fn git_at(folder: &Path, line: &str) -> String {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(line.split(' '));
    git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.env("GIT_OPTIONAL_LOCKS", "0");
    let done = git.output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with a stash, a branch, something staged and something that is not.
fn repository(world: &World) {
    git(world, "init -q -b main .");
    world.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    world.write("b.txt", "b\n");
    git(world, "add .");
    git(world, "commit -qm first");
    git(world, "branch other");
    world.write("b.txt", "stashed\n");
    git(world, "stash -q");
    world.write("b.txt", "staged\n");
    git(world, "add b.txt");
    world.write("b.txt", "not staged\n");
    world.write("new.txt", "untracked\n");
}

/// All that is git's: what it says, and the bytes of the index.
fn of_git(world: &World) -> (Vec<String>, Vec<u8>, Vec<PathBuf>) {
    let said =
        ["stash list", "for-each-ref", "log --all --format=%H", "worktree list", "diff --cached"];
    let said = said.iter().map(|line| git(world, line)).collect();
    let own = world.project.path().join(".git");
    let mut files: Vec<_> = fs::read_dir(&own).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    (said, fs::read(own.join("index")).unwrap(), files)
}

#[tokio::test]
async fn elf_worktree_changes_are_merged_and_git_state_is_unchanged() {
    let world = World::new([
        spawn("smith"),
        bash("git log --format=%s; git status --porcelain; cat b.txt new.txt; pwd"),
        bash(
            "sed -i s/five/FIVE/ a.txt; git commit -qam mine; git branch more; mkdir -p sub; echo deep >sub/deep",
        ),
        writes("made.txt", "made\n"),
        says("all done"),
        says("merged"),
        says("more"),
    ]);
    repository(&world);
    let (before, status) = (of_git(&world), git(&world, "status --porcelain"));
    let log = world.home.path().join("gnoma.log");
    let mut run = vec!["--log", log.to_str().unwrap(), "have it done"];
    run.splice(0..0, BYPASS);
    is_done(&world.run(&run).await);
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.contains(" merge landed=true ms="), "{lines}");
    let requests = world.server.requests();
    let seen = requests[2].json().to_string();
    assert!(seen.contains("first") && seen.contains("not staged\\nuntracked"), "{seen}");
    assert!(seen.contains("/.cache/gnoma/elfs/"), "it works elsewhere: {seen}");
    let system = requests[1].json()["messages"][0]["content"].to_string();
    assert!(system.contains("private copy of the project"), "{system}");
    let told = told(&world);
    assert!(told.contains("merged: a.txt, made.txt, sub/deep"), "{told}");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(
        (world.read("made.txt"), world.read("sub/deep")),
        ("made\n".into(), "deep\n".into())
    );
    assert_eq!(of_git(&world), before);
    let now = git(&world, "status --porcelain");
    assert_eq!(
        now,
        format!(
            " M a.txt\n{}?? made.txt\n?? new.txt\n?? sub/\n",
            &status[..status.find("??").unwrap()]
        )
    );
    assert_eq!(copies(&world), Vec::<PathBuf>::new(), "nothing is left");

    is_done(&world.run(&["rewind"]).await);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    assert_eq!(git(&world, "status --porcelain"), status);
    is_done(&world.run(&["redo"]).await);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nfour\nFIVE\n");
}

#[tokio::test]
async fn rewind_reverts_changes_of_one_elf() {
    let world = World::new([
        spawn("one"),
        bash("sed -i s/one/ONE/ a.txt; echo 1 >first"),
        says("done"),
        spawn("two"),
        bash("sed -i s/five/FIVE/ a.txt"),
        says("done"),
        says("so"),
    ]);
    world.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    let both = "ONE\ntwo\nthree\nfour\nFIVE\n";
    assert_eq!(world.read("a.txt"), both);
    let run = world.run(&["rewind", "--elf", "one"]).await;
    let in_the_way = run.err.contains("changed again since") && run.err.contains("a.txt");
    assert!(run.code == Some(2) && in_the_way, "{run:?}");
    assert!(!run.err.contains("first"), "{run:?}");
    is_done(&world.run(&["rewind", "--elf", "two"]).await);
    assert_eq!(world.read("a.txt"), "ONE\ntwo\nthree\nfour\nfive\n");
    is_done(&world.run(&["redo"]).await);
    assert_eq!(world.read("a.txt"), both);
    is_done(&world.run(&["rewind", "--elf", "two"]).await);
    is_done(&world.run(&["rewind", "--elf", "one"]).await);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
    assert!(!world.project.path().join("first").exists());
    let run = world.run(&["rewind", "--elf", "nobody"]).await;
    assert!(run.err.contains("no changes of an elf `nobody` were merged"), "{run:?}");
    is_done(&world.run(&["rewind"]).await);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\nfour\nfive\n");
}

#[tokio::test]
async fn nested_elf_merges_into_the_worktree_of_its_parent() {
    let outer =
        r#"{"tasks":[{"task":"work","name":"outer","isolation":"worktree","may_spawn":true}]}"#;
    let world = World::new([
        calls("elf_spawn", outer),
        bash("echo outer >outer"),
        spawn("inner"),
        bash("cat outer; echo more >>lib/code; echo inner >inner"),
        says("inner is done"),
        bash("cat inner lib/code"),
        says("outer is done"),
        says("so"),
    ]);
    repository(&world);
    let library = world.home.path().join("library");
    fs::create_dir(&library).unwrap();
    git_at(&library, "init -q -b main .");
    fs::write(library.join("code"), "code\n").unwrap();
    git_at(&library, "add .");
    git_at(&library, "commit -qm library");
    let add = format!("-c protocol.file.allow=always submodule -q add {} lib", library.display());
    git(&world, &add);
    let before = of_git(&world);
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    let requests = world.server.requests();
    let said = |at: usize| requests[at].json()["messages"].to_string();
    assert!(said(4).contains("outer"), "it begins with what the one above has: {}", said(4));
    assert!(said(5).contains("merged: inner, lib/code"), "{}", said(5));
    assert!(said(6).contains("inner\\ncode\\nmore"), "{}", said(6));
    assert!(told(&world).contains("merged: inner, lib/code, outer"), "{}", told(&world));
    assert_eq!(
        (world.read("inner"), world.read("lib/code")),
        ("inner\n".into(), "code\nmore\n".into())
    );
    assert_eq!(of_git(&world), before);
    assert_eq!(git_at(&world.project.path().join("lib"), "status --porcelain"), " M code\n");
    assert!(copies(&world).is_empty());
    let workspaces = world.kept().join("workspaces");
    assert_eq!(fs::read_dir(workspaces).unwrap().count(), 1, "nothing is known of copies any more");
}

#[tokio::test]
async fn background_elf_merge_is_rewound_with_the_session() {
    let tasks =
        r#"{"tasks":[{"task":"work","name":"late","isolation":"worktree"}],"background":true}"#;
    // The parent and its elf ask in no certain order: who waits is told by what was said.
    let server = Server::start(move |request: &Request| {
        let body = request.json().to_string();
        if request.method == "GET" {
            return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
        }
        match () {
            () if body.contains("You are an elf") && body.contains("\"role\":\"tool\"") => {
                says("done")
            }
            () if body.contains("You are an elf") => bash("sleep 0.3; echo late >late"),
            () if body.contains("merged: late") => says("so"),
            () if body.contains("started `late`") => calls("elf", r#"{"action":"wait"}"#),
            () => calls("elf_spawn", tasks),
        }
    });
    let world = World::with(server.unwrap());
    world.write("a", "a\n");
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert!(told(&world).contains("merged: late"), "{}", told(&world));
    assert_eq!(world.read("late"), "late\n");
    let run = world.run(&["rewind"]).await;
    is_done(&run);
    assert!(!run.out.contains("you or another program"), "{run:?}");
    assert!(!world.project.path().join("late").exists());
}

#[tokio::test]
async fn sandboxed_elf_writes_only_to_its_worktree() {
    let world = World::new([
        spawn("smith"),
        bash("git log --format=%s; cat a.txt"),
        writes("made.txt", "made\n"),
        says("done"),
        says("so"),
    ])
    .among_files();
    repository(&world);
    is_done(&world.run(&["--permission", "accept_edits", "go"]).await);
    let seen = world.server.requests()[2].json()["messages"].to_string();
    assert!(seen.contains("first\\none\\ntwo"), "{seen}");
    assert!(told(&world).contains("merged: made.txt"), "{}", told(&world));
    assert_eq!(world.read("made.txt"), "made\n");
}

#[tokio::test]
async fn file_written_by_a_shared_elf_is_free_once_the_elf_ends() {
    let shared = |name: &str| {
        calls("elf_spawn", &format!(r#"{{"tasks":[{{"task":"work","name":"{name}"}}]}}"#))
    };
    let reads = || calls("fs_read", r#"{"path":"f"}"#);
    let world = World::new([
        writes("f", "parent\n"),
        shared("one"),
        reads(),
        writes("f", "one\n"),
        says("done"),
        shared("two"),
        reads(),
        writes("f", "two\n"),
        says("done"),
        reads(),
        writes("f", "parent again\n"),
        says("so"),
    ]);
    let began = std::time::Instant::now();
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert_eq!(world.read("f"), "parent again\n");
    assert!(began.elapsed() < Duration::from_secs(9), "nobody waited: {:?}", began.elapsed());
}

/// A world whose model answers with these, and before one of them something happens in the project.
fn with_deed(
    replies: Vec<Reply>,
    at: usize,
    deed: impl Fn(&Path) + Send + Sync + 'static,
) -> World {
    static NONE: &str = "";
    let place = std::sync::Arc::<OnceLock<PathBuf>>::default();
    let (given, nth) = (place.clone(), AtomicUsize::new(0));
    let replies: Vec<_> =
        replies.into_iter().map(|reply| std::sync::Mutex::new(Some(reply))).collect();
    let server = Server::start(move |request: &Request| {
        if request.method == "GET" {
            return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#.to_owned() + NONE);
        }
        let nth = nth.fetch_add(1, Ordering::SeqCst);
        if nth == at {
            deed(given.get().unwrap());
        }
        let reply = replies.get(nth).and_then(|reply| reply.lock().unwrap().take());
        reply.unwrap_or_else(|| says("nothing is left to say"))
    });
    let mut world = World::with(server.unwrap());
    world.project = tempfile::tempdir_in(world.home.path()).unwrap();
    place.set(world.project.path().to_owned()).unwrap();
    world
}

#[tokio::test]
async fn elf_merge_respects_concurrent_edits_of_the_person() {
    let elf = || {
        vec![spawn("smith"), bash("sed -i s/one/ONE/ a.txt; echo x >x"), says("done"), says("so")]
    };
    let apart = with_deed(elf(), 2, |project| {
        let text = fs::read_to_string(project.join("a.txt")).unwrap().replace("five", "5");
        fs::write(project.join("a.txt"), text).unwrap();
    });
    apart.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    is_done(&apart.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert!(told(&apart).contains("merged: a.txt, x"), "{}", told(&apart));
    assert_eq!(apart.read("a.txt"), "ONE\ntwo\nthree\nfour\n5\n", "no git is needed");

    let at_odds =
        with_deed(elf(), 2, |project| fs::write(project.join("a.txt"), "mine\n").unwrap());
    at_odds.write("a.txt", "one\n");
    is_done(&at_odds.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    let told = told(&at_odds);
    assert!(told.contains("not merged, nothing was changed; conflicts: a.txt"), "{told}");
    assert!(
        told.contains("<<<<<<< the project now\nmine\n||||||| before\none\n=======\nONE\n"),
        "{told}"
    );
    assert!(told.contains("What it changed in its copy:") && told.contains("+x"), "{told}");
    assert_eq!(at_odds.read("a.txt"), "mine\n");
    assert!(!at_odds.project.path().join("x").exists() && copies(&at_odds).is_empty());
}

/// An elf that makes `a`, where the project gets `b` meanwhile and a check says what must hold.
async fn checked(check: &str, deed: impl Fn(&Path) + Send + Sync + 'static) -> World {
    let replies = vec![spawn("smith"), writes("a", "a\n"), says("done"), says("so")];
    let world = with_deed(replies, 2, deed);
    world.write("c", "c\n");
    world.configure(&format!("[router]\nchecks = ['{check}']\n"));
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert!(copies(&world).is_empty());
    world
}

#[tokio::test]
async fn elf_merge_runs_the_project_checks_on_the_merged_files_first() {
    // Each side holds by itself, both together do not.
    let check = "test ! -e a -o ! -e b || { echo a and b do not go together; exit 1; }";
    let makes_b = |project: &Path| fs::write(project.join("b"), "b\n").unwrap();
    let world = checked(check, makes_b).await;
    let told_of = told(&world);
    let why = "not merged, nothing was changed: the project's checks fail on the merged files";
    assert!(told_of.contains(why), "{told_of}");
    assert!(told_of.contains("says:\nExit code 1\na and b do not go together"), "{told_of}");
    assert!(
        told_of.contains("What it changed in its copy:") && told_of.contains("+a"),
        "{told_of}"
    );
    assert!(!told_of.contains("+b"), "only its own: {told_of}");
    assert!(!world.project.path().join("a").exists());

    let world = checked("test -e a", makes_b).await;
    assert!(told(&world).contains("merged: a"), "{}", told(&world));
    assert_eq!((world.read("a"), world.read("b")), ("a\n".into(), "b\n".into()));

    // Where nothing else changed, they ran on the same files already.
    let world = checked("test -e a && test ! -e once && touch once", |_| ()).await;
    assert!(told(&world).contains("merged: a, once"), "{}", told(&world));
}

#[tokio::test]
async fn elf_worktree_that_cannot_be_created_is_reported_to_the_parent() {
    let world = World::new([spawn("smith"), says("so")]);
    is_done(&world.run(&["--incognito", BYPASS[0], BYPASS[1], "go"]).await);
    let told_of = told(&world);
    assert!(
        told_of.contains("incognito saves no files") && told_of.contains("`shared`"),
        "{told_of}"
    );
    let world = World::new([spawn("smith"), says("so")]);
    world.configure("[checkpoints]\nenabled = false\n");
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert!(told(&world).contains("`checkpoints.enabled` is off"), "{}", told(&world));

    let unknown = r#"{"tasks":[{"task":"x","isolation":"vm"}]}"#;
    let world = World::new([calls("elf_spawn", unknown), says("so")]);
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    assert!(told(&world).contains("there is no `isolation` `vm`"), "{}", told(&world));
}

#[tokio::test]
async fn elf_with_a_deleted_worktree_merges_nothing() {
    let replies =
        vec![spawn("smith"), writes("b", "b\n"), writes("c", "c\n"), says("done"), says("so")];
    let world = with_deed(replies, 2, |project| {
        let all = project.join("../.cache/gnoma/elfs");
        for copy in fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()) {
            drop(fs::remove_dir_all(copy));
        }
    });
    world.write("a", "a\n");
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go"]).await);
    let told = told(&world);
    assert!(
        told.contains("not merged, nothing was changed: its copy of the project was deleted"),
        "{told}"
    );
    assert_eq!(world.read("a"), "a\n");
    assert!(!world.project.path().join("b").exists());
}

#[tokio::test]
async fn elf_may_end_or_call_tools_before_its_worktree_is_ready() {
    let reads = || bash("cat f1999.txt; ls f*.txt | wc -l; echo more > f1.txt");
    for calls_first in [false, true] {
        let of_elf = if calls_first { vec![reads(), says("read")] } else { vec![says("no need")] };
        let replies = [spawn("smith")].into_iter().chain(of_elf).chain([says("done")]);
        let world = World::new(replies);
        for number in 0..2_000 {
            world.write(&format!("f{number}.txt"), "here\n");
        }
        is_done(&world.run(&["--permission", "bypass", "have it read"]).await);
        if calls_first {
            let seen = world.server.requests()[2].json().to_string();
            assert!(seen.contains("here\\n2000"), "{seen}");
            assert_eq!(world.read("f1.txt"), "more\n");
        }
        assert!(told(&world).contains("elf `smith`: completed"), "{}", told(&world));
        assert_eq!(copies(&world), Vec::<PathBuf>::new(), "nothing is left");
    }
}

#[tokio::test]
async fn worktrees_of_a_killed_program_are_removed_at_the_next_start() {
    let world = World::new([spawn("smith"), bash("echo more >>a"), bash("sleep 30"), says("next")]);
    world.write("a", "a\n");
    let mut child = world.command(&[BYPASS[0], BYPASS[1], "go"]).spawn().unwrap();
    for _ in 0..600 {
        if world.server.requests().len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(copies(&world).len(), 2, "the copy and its lock");
    child.kill().await.unwrap();
    assert_eq!(copies(&world).len(), 2);
    is_done(&world.run(&[BYPASS[0], BYPASS[1], "go on"]).await);
    for _ in 0..200 {
        if copies(&world).is_empty() {
            break;
        }
        is_done(&world.run(&["sessions", "list"]).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(copies(&world), Vec::<PathBuf>::new());
    assert_eq!(world.read("a"), "a\n", "nothing of it is merged");
}
