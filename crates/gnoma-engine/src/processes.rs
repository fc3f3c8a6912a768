//! The command lines of the machine's processes, as everybody on it can read them.

use std::{fs, io::Read};

/// Processes that are read.
const MAX_PROCESSES: usize = 4_096;
/// Bytes that are read of each.
const MAX_BYTES: u64 = 4 << 10;
/// Bytes of all together.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The command lines of all processes, one a line.
pub(crate) fn command_lines() -> String {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = processes.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let mut text = String::new();
    for process in processes.take(MAX_PROCESSES) {
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
        let mut bytes = Vec::new();
        let line = fs::File::open(process.path().join("cmdline"));
        let read = line.map(|line| line.take(MAX_BYTES).read_to_end(&mut bytes));
        if matches!(read, Ok(Ok(1..))) {
            text.push_str(&String::from_utf8_lossy(&bytes).replace('\0', " "));
            text.push('\n');
        }
    }
    text
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn process_list_includes_the_command_line_of_this_process() {
        let own = std::env::args().next().unwrap();
        assert!(super::command_lines().contains(&own));
    }
}
