//! Tasks whose runs fail at the same step again and again.

use super::*;

const BYPASS: [&str; 2] = ["--permission", "bypass"];

async fn run(world: &World, line: &[&str]) -> crate::support::Run {
    world.run(&[&BYPASS, line].concat()).await
}

#[tokio::test]
async fn step_that_failed_three_times_is_split_into_its_lines() {
    let world = World::new([]);
    let task = "## Check\n\n```sh\ntrue\ncat missing.txt\n```\n";
    world.put_home(".config/gnoma/tasks/t.md", task);
    let early = run(&world, &["task", "repair", "t"]).await;
    assert_eq!(early.code, Some(2), "{early:?}");
    assert!(early.err.contains("did not fail at the same step"), "{early:?}");
    for _ in 0..3 {
        assert_eq!(run(&world, &["task", "run", "t"]).await.code, Some(1));
    }
    let history = run(&world, &["task", "history", "t"]).await;
    assert!(history.out.contains("`gnoma task repair t` proposes a change"), "{history:?}");
    let unasked = run(&world, &["task", "repair", "t"]).await;
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert!(unasked.out.contains("-## Check\n") && unasked.out.contains("+## cat missing.txt\n"));
    let saved = run(&world, &["task", "repair", "t", "--yes"]).await;
    assert_eq!(saved.code, Some(0), "{saved:?}");
    let failed = run(&world, &["task", "run", "t"]).await;
    assert!(failed.err.contains("step 2 of 2 (cat missing.txt)"), "{failed:?}");
    // The file has another step now, so the runs before do not count.
    let again = run(&world, &["task", "repair", "t"]).await;
    assert_eq!(again.code, Some(2), "{again:?}");
}
