//! What one process saw of an arm holds for the others, and for the next start.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    ErrorKind, ProviderError,
    store::{StoreError, StoreErrorKind, StoreFuture},
};
use gnoma_engine::routing::{Exchange, VitalsStore};
use gnoma_router::Strategy;
use gnoma_testkit::Answer;

use super::team::{Team, TeamOptions, by, member, team, used};

/// Longer than any rest that nobody asked for.
const ASKED_FOR: Duration = Duration::from_secs(600);

/// The text that all processes share.
#[derive(Default)]
struct Wall {
    text: Mutex<Option<String>>,
    is_broken: AtomicBool,
}

impl VitalsStore for Wall {
    fn is_empty(&self) -> bool {
        self.text.lock().unwrap().is_none()
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, ()> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Box::pin(async {
                Err(StoreError::new(StoreErrorKind::Io, "the wall has fallen"))
            });
        }
        let mut text = self.text.lock().unwrap();
        if let Some(new) = exchange(text.as_deref()) {
            *text = Some(new);
        }
        Box::pin(async { Ok(()) })
    }
}

/// The better arm, and one that goes on in its place.
fn pair(wall: &Arc<Wall>, best: Vec<Answer>, other: Vec<Answer>) -> Team {
    let members = vec![member("best", 0.95, 0.1, best), member("other", 0.5, 0.1, other)];
    let board = Arc::clone(wall) as Arc<dyn VitalsStore>;
    let options = TeamOptions { board: Some(board), ..by(Strategy::Single).into() };
    team(members, options, Vec::new())
}

fn limited() -> Answer {
    let mut error = ProviderError::new(ErrorKind::RateLimited, "fake", "slow down");
    error.retry_after = Some(ASKED_FOR);
    Answer::from_events(vec![Err(error)])
}

fn done() -> Answer {
    used("done", 100)
}

#[tokio::test(start_paused = true)]
async fn rate_limit_cooldown_holds_in_another_process() {
    let wall = Arc::default();
    let mut one = pair(&wall, vec![limited()], vec![done()]);
    one.turn("explain the parser").await;
    assert_eq!((one.asked(0), one.asked(1)), (1, 1));
    one.learnt().await;

    let mut two = pair(&wall, vec![done()], vec![done()]);
    two.pass(ASKED_FOR - Duration::from_secs(1));
    two.turn("explain the parser").await;
    assert_eq!((two.asked(0), two.asked(1)), (0, 1), "it still rests");
    two.pass(Duration::from_secs(1));
    two.turn("explain the lexer").await;
    assert_eq!((two.asked(0), two.asked(1)), (1, 1), "it is well rested");
}

#[tokio::test(start_paused = true)]
async fn running_processes_learn_a_shared_cooldown_at_the_next_turn() {
    let wall = Arc::default();
    let mut one = pair(&wall, vec![done(), limited()], vec![done(), done()]);
    let mut two = pair(&wall, vec![done()], vec![done()]);
    one.turn("explain the parser").await;
    two.turn("explain the parser").await;
    assert_eq!((one.asked(0), two.asked(0)), (1, 1));
    one.turn("explain the lexer").await;
    two.turn("explain the lexer").await;
    assert_eq!((two.asked(0), two.asked(1)), (1, 1));
    let speed = two.speed("best").unwrap();
    assert_eq!(speed.answers, 2, "what both saw of its speed is one");
}

#[tokio::test(start_paused = true)]
async fn model_not_found_cooldown_ends_with_a_restart() {
    let wall = Arc::default();
    let mut one = pair(&wall, vec![Answer::from_error(ErrorKind::NotFound)], vec![done()]);
    one.turn("explain the parser").await;
    one.turn("explain the lexer").await;
    assert_eq!(one.asked(0), 1, "here it is known");
    one.learnt().await;
    let mut two = pair(&wall, vec![done()], vec![done()]);
    two.turn("explain the parser").await;
    assert_eq!(two.asked(0), 1);
}

#[tokio::test(start_paused = true)]
async fn shared_cooldown_dated_ahead_is_ignored_after_a_clock_change() {
    let wall = Arc::default();
    let mut one = pair(&wall, vec![limited()], vec![done()]);
    one.pass(Duration::from_secs(86_400));
    one.turn("explain the parser").await;
    one.learnt().await;
    let mut two = pair(&wall, vec![done()], vec![done()]);
    two.turn("explain the parser").await;
    assert_eq!(two.asked(0), 1, "it failed tomorrow");
}

#[tokio::test(start_paused = true)]
async fn unreadable_or_broken_shared_health_file_does_not_stop_turns() {
    let wall: Arc<Wall> = Arc::default();
    *wall.text.lock().unwrap() = Some("{".to_owned());
    let mut one = pair(&wall, vec![done(), done()], vec![done()]);
    one.turn("explain the parser").await;
    wall.is_broken.store(true, Ordering::SeqCst);
    one.turn("explain the lexer").await;
    assert_eq!(one.asked(0), 2);
}
