//! Runs of tasks in the server, without a window.

use std::time::Instant;

use super::*;
use crate::serve::Served;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread")]
async fn detached_run_goes_on_in_the_server_and_tells_hooks_of_its_end() {
    let world = world([says("the entry"), says("the sum")]);
    let told = world.project.path().join("told.json");
    let hook = "[[hooks]]\nname = \"mine\"\nevent = \"notification\"\nexec = \"cat > told.json\"\n";
    world.configure(hook);
    let line = ["task", "run", "release", "v1.2.0", "--detach"];
    let missing = world.run(&line).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing.err.contains("no gnoma server is running; `gnoma serve` starts one"),
        "{missing:?}"
    );
    let _served = Served::starts(&world, &[]);
    let wrong = world.run(&["task", "run", "release", "latest", "--detach"]).await;
    assert!(wrong.code == Some(2) && wrong.err.contains("not a version"), "{wrong:?}");
    let run = world.run(&line).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("release runs in session "), "{run:?}");
    let id = run.out.split_whitespace().nth(4).unwrap().trim_end_matches('.').to_owned();
    let listed = world.run(&["ps"]).await;
    assert!(listed.out.contains(&id), "{listed:?}");
    let end = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&told).is_ok_and(|it| it.contains("Task release is done")) {
        assert!(Instant::now() < end, "no end: {:?}", world.records());
        tokio::time::sleep(STEP).await;
    }
    assert_eq!(world.server.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn question_of_a_run_is_seen_in_the_list_of_what_runs() {
    let world = World::new([]);
    let text = "## Look\n```sh\necho looked\n```\n## Ask\n? Push it now?\n- yes\n- no\n";
    world.put_home(".config/gnoma/tasks/t.md", text);
    let _served = Served::starts(&world, &[]);
    let run = world.run(&["task", "run", "t", "--detach"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let end = Instant::now() + PATIENCE;
    loop {
        let listed = world.run(&["ps"]).await;
        if listed.out.contains("  asks  ") && listed.out.contains("(asks: Push it now?)") {
            break;
        }
        assert!(Instant::now() < end, "no question: {listed:?}");
        tokio::time::sleep(STEP).await;
    }
}
