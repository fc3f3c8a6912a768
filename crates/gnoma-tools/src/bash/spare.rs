//! A launcher that stands ready for the next command, so that walls need not be waited for.
//!
//! At most one is kept. It waits on its input and ends when that is closed, by whoever drops it.

use std::{fs::File, io::Write, os::fd::OwnedFd};

use tokio::{
    net::unix::pipe,
    process::{Child, Command},
};

use super::process::Process;

/// Most bytes of an order: a pipe takes so many at once.
const MAX_ORDER_BYTES: usize = 48 * 1024;

/// A launcher that waits for its command.
#[derive(Debug)]
pub(super) struct Spare {
    child: Child,
    input: OwnedFd,
    output: pipe::Receiver,
}

impl Spare {
    /// Starts a launcher whose input is a pipe. `None` when it cannot be started.
    pub(super) fn start(mut launcher: Command, output: pipe::Receiver) -> Option<Self> {
        let mut child = launcher.spawn().ok()?;
        let input = child.stdin.take()?.into_owned_fd().ok()?;
        Some(Self { child, input, output })
    }

    /// Has it run a command. `None` when it cannot any more; then nothing was run.
    pub(super) fn run(mut self, order: &[u8]) -> Option<Process> {
        let waits = matches!(self.child.try_wait(), Ok(None));
        if !waits || order.len() > MAX_ORDER_BYTES {
            return None;
        }
        // A part of an order is none.
        let written = File::from(self.input).write(order).ok()?;
        (written == order.len()).then(|| Process::new(self.child, self.output))
    }
}

#[cfg(test)]
mod tests {
    use std::{io, process::Stdio};

    use super::*;
    use crate::bash::process::ShellEnd;

    fn spare(script: &str) -> Spare {
        let (reader, writer) = io::pipe().unwrap();
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let mut launcher = Command::new("sh");
        launcher.args(["-c", script]).stdin(Stdio::piped()).stdout(writer).process_group(0);
        Spare::start(launcher, output).unwrap()
    }

    #[tokio::test]
    async fn it_is_told_a_whole_order_and_then_no_more() {
        let mut process = spare("cat; exit 3").run(b"order").unwrap();
        let mut text = String::new();
        let ending = process.finish(|piece| text.push_str(piece)).await;
        assert_eq!((ending, text.as_str()), (ShellEnd::Code(3), "order"));
    }

    #[tokio::test]
    async fn one_that_has_ended_runs_nothing() {
        let mut gone = spare("exit 0");
        gone.child.wait().await.unwrap();
        assert!(gone.run(b"order").is_none());
    }

    #[tokio::test]
    async fn an_order_that_would_have_to_be_waited_for_is_not_given() {
        assert!(spare("cat").run(&vec![0; MAX_ORDER_BYTES + 1]).is_none());
    }
}
