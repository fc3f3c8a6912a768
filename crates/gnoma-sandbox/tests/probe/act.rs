//! Attempts that a shell cannot make: system calls with arguments of one's own choice.
//!
//! Each ends with 0 when it succeeded, which inside the walls is an escape, and else with 1 and the
//! system's answer.
#![expect(unsafe_code, reason = "raw system calls, made to be refused")]

use std::{
    ffi::CString,
    fs,
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixStream},
    },
    process::ExitCode,
    time::Duration,
};

use libc::{c_int, c_long};

type Attempt = Result<(), String>;

pub(crate) fn main(args: &mut impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match attempt(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(answer) => {
            writeln!(std::io::stderr(), "{args:?}: {answer}").ok();
            ExitCode::FAILURE
        }
    }
}

fn attempt(args: &[&str]) -> Attempt {
    match args {
        ["call", name, args @ ..] => call(name, args),
        ["socket", family, kind, protocol] => {
            let [family, kind, protocol] = [family, kind, protocol].map(|text| number(text));
            // SAFETY: no memory is passed.
            answer(unsafe { libc::syscall(libc::SYS_socket, family, kind, protocol) })
        }
        ["tcp", address] => told(TcpStream::connect(address).map(drop)),
        ["udp", address] => udp(address),
        ["unix", path] => told(UnixStream::connect(path).map(drop)),
        ["unix-datagram", path] => {
            told(UnixDatagram::unbound().and_then(|socket| socket.send_to(b"out", path)).map(drop))
        }
        ["abstract", name] => told(
            SocketAddr::from_abstract_name(name)
                .and_then(|address| UnixStream::connect_addr(&address))
                .map(drop),
        ),
        ["loopback"] => told(loopback()),
        ["read-memory", process] => read_memory(number(process)),
        ["clone", flags] => clone(number(flags)),
        ["clone3", flags] => clone3(number(flags)),
        ["unnamed-file", folder, name] => unnamed_file(folder, name),
        ["memory-program"] => memory_program(),
        ["type-into-terminal"] => type_into_terminal(),
        ["forks", number_of, seconds] => forks(number(number_of), number(seconds)),
        ["inherited"] => inherited(),
        ["foreign-call"] => foreign_call(),
        _ => Err("no such attempt".to_owned()),
    }
}

fn told<T>(result: std::io::Result<T>) -> Attempt {
    result.map(drop).map_err(|error| error.to_string())
}

fn answer(result: c_long) -> Attempt {
    if result < 0 { Err(std::io::Error::last_os_error().to_string()) } else { Ok(()) }
}

fn number(text: &str) -> c_long {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => c_long::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or(-1)
}

/// Makes a call by its name. Arguments are numbers, `s:TEXT` for a string, and `x:HEX` for bytes
/// that are followed by zeros.
fn call(name: &str, args: &[&str]) -> Attempt {
    const ROOM: usize = 512;
    let mut buffers: Vec<Vec<u8>> = args
        .iter()
        .map(|arg| match arg.split_once(':') {
            Some(("s", text)) => [text.as_bytes(), &[0]].concat(),
            Some(("x", digits)) => {
                let mut bytes = bytes(digits);
                bytes.resize(ROOM, 0);
                bytes
            }
            _ => Vec::new(),
        })
        .collect();
    let mut values = [0; 6];
    for ((value, arg), buffer) in values.iter_mut().zip(args).zip(&mut buffers) {
        *value = match buffer.is_empty() {
            true => number(arg),
            false => buffer.as_mut_ptr() as c_long,
        };
    }
    let [a, b, c, d, e, f] = values;
    let number = number_of(name).ok_or("no such call")?;
    // SAFETY: pointers lead to buffers that outlive the call and are larger than what it writes.
    answer(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

fn bytes(digits: &str) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.as_bytes().chunks(2).filter_map(pair).collect()
}

fn number_of(name: &str) -> Option<c_long> {
    Some(match name {
        "ptrace" => libc::SYS_ptrace,
        "unshare" => libc::SYS_unshare,
        "mount" => libc::SYS_mount,
        "umount2" => libc::SYS_umount2,
        "pivot_root" => libc::SYS_pivot_root,
        "chroot" => libc::SYS_chroot,
        "open_tree" => libc::SYS_open_tree,
        "move_mount" => libc::SYS_move_mount,
        "fsopen" => libc::SYS_fsopen,
        "mount_setattr" => libc::SYS_mount_setattr,
        "keyctl" => libc::SYS_keyctl,
        "add_key" => libc::SYS_add_key,
        "request_key" => libc::SYS_request_key,
        "bpf" => libc::SYS_bpf,
        "perf_event_open" => libc::SYS_perf_event_open,
        "userfaultfd" => libc::SYS_userfaultfd,
        "kexec_load" => libc::SYS_kexec_load,
        "init_module" => libc::SYS_init_module,
        "io_uring_setup" => libc::SYS_io_uring_setup,
        "name_to_handle_at" => libc::SYS_name_to_handle_at,
        "open_by_handle_at" => libc::SYS_open_by_handle_at,
        "pidfd_open" => libc::SYS_pidfd_open,
        "pidfd_getfd" => libc::SYS_pidfd_getfd,
        "kcmp" => libc::SYS_kcmp,
        "personality" => libc::SYS_personality,
        "fchmodat" => libc::SYS_fchmodat,
        "fchmodat2" => 452,
        "openat" => libc::SYS_openat,
        "openat2" => libc::SYS_openat2,
        "mknodat" => libc::SYS_mknodat,
        "fanotify_init" => libc::SYS_fanotify_init,
        "syslog" => libc::SYS_syslog,
        "reboot" => libc::SYS_reboot,
        "swapon" => libc::SYS_swapon,
        "settimeofday" => libc::SYS_settimeofday,
        "prlimit64" => libc::SYS_prlimit64,
        "sethostname" => libc::SYS_sethostname,
        _ => return None,
    })
}

fn udp(address: &str) -> Attempt {
    let from = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    told(UdpSocket::bind(from).and_then(|socket| socket.send_to(b"out", address)))
}

/// A server and a client of it, as tests of programs have them.
fn loopback() -> std::io::Result<()> {
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(server.local_addr()?)?;
    let (mut accepted, _) = server.accept()?;
    client.write_all(b"in")?;
    accepted.read_exact(&mut [0; 2])
}

/// Reads a word of another process's memory, at the place where ours is: they may be the same
/// program.
fn read_memory(process: c_long) -> Attempt {
    let maps = fs::read_to_string(format!("/proc/{process}/maps"));
    let maps = maps.map_err(|error| error.to_string())?;
    let start = maps.split('-').next().unwrap_or_default();
    let address = usize::from_str_radix(start, 16).unwrap_or(0x40_0000);
    let mut word = [0_u8; 8];
    let ours = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
    let theirs = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: word.len() };
    // SAFETY: `ours` leads to `word`; the kernel checks `theirs`.
    answer(unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            process,
            &raw const ours,
            1_usize,
            &raw const theirs,
            1_usize,
            0_usize,
        )
    })
}

fn clone(flags: c_long) -> Attempt {
    // SAFETY: without a stack of its own the child continues here like after a fork, and ends.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags | c_long::from(libc::SIGCHLD),
            0_usize,
            0_usize,
            0_usize,
            0_usize,
        )
    };
    ended(child)
}

fn clone3(flags: c_long) -> Attempt {
    let mut request = [0_u64; 8];
    request[0] = flags.unsigned_abs();
    request[4] = u64::from(libc::SIGCHLD.unsigned_abs());
    // SAFETY: the kernel reads `request`; the child ends at once.
    let child = unsafe {
        libc::syscall(libc::SYS_clone3, request.as_ptr(), std::mem::size_of_val(&request))
    };
    ended(child)
}

fn ended(child: c_long) -> Attempt {
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) }
    }
    answer(child)
}

/// Makes a file without a name in a folder that can be written, and gives it one elsewhere.
fn unnamed_file(folder: &str, name: &str) -> Attempt {
    let [folder, name] = [folder, name].map(|text| CString::new(text).unwrap_or_default());
    let flags = libc::O_TMPFILE | libc::O_WRONLY;
    // SAFETY: strings end in zero.
    let file = unsafe { libc::open(folder.as_ptr(), flags, 0o600) };
    answer(file.into())?;
    let from = CString::new(format!("/proc/self/fd/{file}")).unwrap_or_default();
    // SAFETY: likewise.
    answer(
        unsafe {
            libc::linkat(
                libc::AT_FDCWD,
                from.as_ptr(),
                libc::AT_FDCWD,
                name.as_ptr(),
                libc::AT_SYMLINK_FOLLOW,
            )
        }
        .into(),
    )
}

/// Runs a program that is in no file; it tries to write outside.
fn memory_program() -> Attempt {
    // SAFETY: a string that ends in zero.
    let file = unsafe { libc::memfd_create(c"program".as_ptr(), 0) };
    answer(file.into())?;
    // SAFETY: just made.
    let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(file) });
    let shell = fs::read("/bin/sh").map_err(|error| error.to_string())?;
    file.write_all(&shell).map_err(|error| error.to_string())?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let status = std::process::Command::new(path).args(["-c", "echo out > $OUT/memory"]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn type_into_terminal() -> Attempt {
    for terminal in [1, 2] {
        for character in c"x".to_bytes() {
            // SAFETY: the kernel reads one byte.
            let result =
                unsafe { libc::ioctl(terminal, libc::TIOCSTI, std::ptr::from_ref(character)) };
            answer(result.into())?;
        }
    }
    Ok(())
}

/// Succeeds when so many processes can be had at once.
fn forks(wanted: c_long, seconds: c_long) -> Attempt {
    for made in 0..wanted {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            0 => {
                std::thread::sleep(Duration::from_secs(seconds.unsigned_abs()));
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) }
            }
            child if child < 0 => {
                return Err(format!("{made} made, then {}", std::io::Error::last_os_error()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Succeeds when there is an open file besides the standard streams.
fn inherited() -> Attempt {
    let open = |number: &c_int| {
        // SAFETY: asks about a number, whatever it stands for.
        unsafe { libc::fcntl(*number, libc::F_GETFD) >= 0 }
    };
    match (3..1024).find(open) {
        Some(number) => {
            fs::read_link(format!("/proc/self/fd/{number}")).map(drop).map_err(|e| e.to_string())
        }
        None => Err("none".to_owned()),
    }
}

/// Asks for the process number as a program for another instruction set does.
fn foreign_call() -> Attempt {
    #[cfg(target_arch = "x86_64")]
    {
        let result: c_long;
        // SAFETY: `getpid` by the old gate, which changes no memory and keeps these registers.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => result, options(nostack));
        }
        answer(result)
    }
    #[cfg(not(target_arch = "x86_64"))]
    Err("there is only one".to_owned())
}
