//! Measures how fast files are scanned: `throughput FOLDER [FAMILY_SWITCHED_OFF...]`.

use std::{
    error::Error,
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use gnoma_secrets::{Scanner, ScannerOptions};

/// What is read at most.
const MAX_BYTES: usize = 64 << 20;
/// Size of the texts whose slowest times are reported.
const REQUEST_BYTES: usize = 1 << 20;

/// Numbers of values that are known.
const KNOWN: [usize; 4] = [1, 10, 100, 500];
/// Makes numbers that look like nothing else.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c17;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: throughput FOLDER [FAMILY...]")?;
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files)?;
    let total: usize = files.iter().map(Vec::len).sum();

    let options =
        ScannerOptions { disabled_families: arguments.collect(), ..ScannerOptions::default() };
    let began = Instant::now();
    let scanner = Scanner::new(options)?;
    let made = began.elapsed();
    let first = scanner.scan(b"nothing here").len();
    report(&format!("made in {made:?}, first scan after {:?} ({first} found)", began.elapsed()));

    for round in ["cold", "warm"] {
        let began = Instant::now();
        let found: usize = files.iter().map(|file| scanner.scan(file).len()).sum();
        let rate = total as f64 / 1e6 / began.elapsed().as_secs_f64();
        report(&format!(
            "{round}: {} files, {:.1} MB, {rate:.0} MB/s, {found} found",
            files.len(),
            total as f64 / 1e6
        ));
    }
    let mut numbers = 1_u64..;
    for known in KNOWN {
        let missing = known.saturating_sub(scanner.known_count());
        for number in numbers.by_ref().take(missing) {
            let value =
                format!("{:x}Zq{:x}", number.wrapping_mul(SPREAD), number.wrapping_mul(!SPREAD));
            scanner.learn_secret(&"known".into(), &value);
        }
        let began = Instant::now();
        let found: usize = files.iter().map(|file| scanner.scan(file).len()).sum();
        let rate = total as f64 / 1e6 / began.elapsed().as_secs_f64();
        report(&format!("with {known} known values: {rate:.0} MB/s, {found} found"));
    }
    let joined = files.concat();
    let mut times: Vec<Duration> = joined
        .chunks_exact(REQUEST_BYTES)
        .map(|request| {
            let began = Instant::now();
            scanner.scan(request);
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let share = |percent: usize| {
        times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)))
    };
    report(&format!(
        "1 MB requests: best {:?}, median {:?}, p99 {:?}, worst {:?}",
        times.first(),
        share(50),
        share(99),
        times.last()
    ));
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<Vec<u8>>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if files.iter().map(Vec::len).sum::<usize>() >= MAX_BYTES {
            return Ok(());
        }
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(fs::read(path)?);
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program that prints what it measured")]
fn report(line: &str) {
    println!("{line}");
}
