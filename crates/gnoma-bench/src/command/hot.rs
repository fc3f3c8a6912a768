//! One hot path at a time, the same work in every run: `bench/budgets` counts its instructions, which do not
//! depend on what else the machine does.

use std::hint::black_box;

use anyhow::{Result, bail};
use gnoma_bench::{
    reading,
    stream::{self, Prose},
};
use gnoma_core::{
    Event,
    protocol::{Envelope, Epoch, SessionView},
    store::SessionId,
};
use gnoma_guard::{
    secrets::{Scanner, ScannerOptions},
    shell::{StartContext, analyse_command},
};
use gnoma_llm::Protocol;
use gnoma_tui::{
    Frame, Size,
    screen::{Layout, Screen, Traits},
    text::{Line, Style},
    theme::{Depth, Shade, Theme},
};

use super::{parse_number_argument, router};

/// A line of source text as models read it, without a secret.
const SOURCE: &str =
    "    let reply = client.request(&address, body.as_bytes()).await?; // 42 of 1024 \"words\"\n";
const COMMAND: &str =
    "cd src && grep -rn \"fn main\" --include='*.rs' . | head -20 && git status --short";
const TERMINAL: Size = Size { width: 100, height: 30 };

/// Does the work of `NAME` `COUNT` times; `draw` prints the bytes that went to the terminal.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let count = parse_number_argument(arguments, 1, 1_000)?;
    match arguments.first().map(String::as_str) {
        Some("decode") => reading::read_answer(
            Protocol::OpenAi,
            &stream::generate_answer(Protocol::OpenAi, count, Prose::Flat),
        ),
        Some("scan") => scan_lines(count),
        Some("shell") => {
            analyse_commands(count);
            Ok(())
        }
        Some("choose") => {
            router::choose_repeatedly(count);
            Ok(())
        }
        Some("fold") => {
            fold_deltas(count);
            Ok(())
        }
        Some("draw") => draw_answer(count),
        _ => bail!("name what to do: decode, scan, shell, choose, fold, draw"),
    }
}

fn scan_lines(count: usize) -> Result<()> {
    let scanner = Scanner::new(ScannerOptions::default())?;
    black_box(scanner.scan(SOURCE.repeat(count).as_bytes()));
    Ok(())
}

fn analyse_commands(count: usize) {
    let start = StartContext { cwd: "/home/me/project".into(), home: Some("/home/me".into()) };
    for _ in 0..count {
        black_box(analyse_command(COMMAND, &start).commands.len());
    }
}

fn fold_deltas(count: usize) {
    let (session, epoch) = (SessionId::new("s"), Epoch(1));
    let mut view = SessionView::new(session.clone(), epoch, None);
    for seq in 1..=count as u64 {
        let event = Event::Text { text: "word ".to_owned() };
        view.apply_envelope(&Envelope {
            session: session.clone(),
            epoch,
            parent: None,
            seq,
            at_ms: 0,
            event,
        });
    }
    black_box(view);
}

/// Draws an answer that grows by one line a frame.
#[expect(clippy::print_stdout, reason = "the bytes are the figure")]
fn draw_answer(count: usize) -> Result<()> {
    let theme = Theme::from_name("gnoma", Shade::Dark, Depth::Indexed)?;
    let mut screen =
        Screen::new(Layout::Inline, theme, Traits { synchronized: true, reflows: true });
    let mut bytes = Vec::new();
    let line = |text: String| Line::new(text, Style::default());
    for number in 0..count {
        let finished =
            (number > 0).then(|| line(format!("line {} of the answer: some words", number - 1)));
        let live = vec![
            line(format!("line {number} of the answer")),
            line("> ".to_owned()),
            line("auto · model".to_owned()),
        ];
        screen.draw(
            &Frame { finished: finished.into_iter().collect(), live, cursor: None },
            TERMINAL,
            &mut bytes,
        );
    }
    println!("{}", bytes.len());
    Ok(())
}
