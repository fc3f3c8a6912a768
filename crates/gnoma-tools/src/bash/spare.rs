//! A launcher that is ready for the next command, so that nothing waits for the sandbox.
//!
//! At most one is kept. It waits for its input and ends when whoever dropped it closes that.

use std::{
    io::Write,
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use tokio::{
    net::unix::pipe,
    process::{Child, Command},
};

use super::process::Process;

/// Most bytes of an order.
const MAX_ORDER_BYTES: usize = 1 << 20;
/// The time that a launcher may take to read an order that a socket does not take at once.
const ORDER_PATIENCE: Duration = Duration::from_secs(5);

/// A launcher that waits for its command.
#[derive(Debug)]
pub(super) struct Spare {
    child: Child,
    input: UnixStream,
    output: pipe::Receiver,
}

impl Spare {
    /// Starts a launcher. `None` when it cannot be started.
    pub(super) fn start(mut launcher: Command, output: pipe::Receiver) -> Option<Self> {
        let (input, theirs) = UnixStream::pair().ok()?;
        input.set_write_timeout(Some(ORDER_PATIENCE)).ok()?;
        let child = launcher.stdin(OwnedFd::from(theirs)).spawn().ok()?;
        Some(Self { child, input, output })
    }

    /// Has it run a command. `None` when it cannot any more; then nothing was run.
    pub(super) fn run(mut self, order: &[u8]) -> Option<Process> {
        let waits = matches!(self.child.try_wait(), Ok(None));
        if !waits || order.len() > MAX_ORDER_BYTES {
            return None;
        }
        // A part of an order is none.
        self.input.write_all(order).ok()?;
        self.input.set_nonblocking(true).ok()?;
        self.input.shutdown(Shutdown::Write).ok();
        Some(Process::new(self.child, self.output).told_by(self.input))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::bash::process::{ProcessEvent, ShellEnd};

    fn spare(script: &str) -> Spare {
        let (reader, writer) = io::pipe().unwrap();
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let mut launcher = Command::new("sh");
        launcher.args(["-c", script]).stdout(writer).process_group(0);
        Spare::start(launcher, output).unwrap()
    }

    #[tokio::test]
    async fn spare_shell_receives_one_order_and_then_end_of_input() {
        let mut process = spare("cat; exit 3").run(b"order").unwrap();
        let mut text = String::new();
        let ending = process.wait_for_end(|piece| text.push_str(piece)).await;
        assert_eq!((ending, text.as_str()), (ShellEnd::Code(3), "order"));
    }

    #[tokio::test]
    async fn spare_shell_reports_the_command_exit_before_its_launcher_ends() {
        // It never ends by itself, and lets go of its output.
        let script = r"exec >&2; cat >/dev/null; printf '\0\3\1' >&0; exec sleep 600";
        let mut process = spare(script).run(b"order").unwrap();
        let ending = loop {
            if let ProcessEvent::Ended(ending) = process.next().await {
                break ending;
            }
        };
        assert_eq!(ending, ShellEnd::Code(3));
    }

    #[tokio::test]
    async fn spare_shell_that_has_exited_runs_no_command() {
        let mut gone = spare("exit 0");
        gone.child.wait().await.unwrap();
        assert!(gone.run(b"order").is_none());
    }

    #[tokio::test]
    async fn spare_shell_rejects_an_order_above_the_size_limit() {
        assert!(spare("cat").run(&vec![0; MAX_ORDER_BYTES + 1]).is_none());
    }
}
