//! Panics while the view has the terminal: a message in the middle of a frame could not be read and
//! would break the frame, and a panic in a tool does not even end the program. So messages are kept
//! and written when the terminal is given back.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    panic,
    sync::{Mutex, Once, PoisonError},
};

/// More messages than this are not kept; the first ones tell what happened.
const MAX_KEPT: usize = 8;

static INSTALL: Once = Once::new();
/// Messages of panics, while they are kept.
static KEPT: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Installs the hook that keeps messages while the view has the terminal, once. A hook that is to see every panic must
/// be installed after it.
pub fn capture_panics() {
    INSTALL.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !record_panic(panic) {
                before(panic);
            }
        }));
    });
}

/// Keeps messages from now on.
pub(super) fn capture_messages() {
    capture_panics();
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Lets panics be reported as usual again, and gives what was kept.
pub(super) fn release_messages() -> Vec<String> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

/// False when messages are not kept now.
fn record_panic(panic: &panic::PanicHookInfo) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = kept.as_mut() else { return false };
    if kept.len() < MAX_KEPT {
        let backtrace = Backtrace::capture();
        let mut message = panic.to_string();
        if backtrace.status() == BacktraceStatus::Captured {
            message = format!("{message}\n{backtrace}");
        }
        kept.push(message);
    }
    true
}
