//! Attempts to reach anything by a socket.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::Path,
    process::Stdio,
    time::Duration,
};

use crate::{
    attempts,
    cell::{Cell, is_walled},
};

attempts! {
    refuses raw_sockets: "$P act socket 2 3 1";
    refuses raw_sockets_of_the_new_internet: "$P act socket 10 3 58";
    refuses raw_sockets_with_flags: "$P act socket 2 0x80803 255";
    refuses packets: "$P act socket 17 3 768";
    refuses old_packets: "$P act socket 2 10 768";
    holds auditing: "$P act socket 16 3 9";
    refuses netfilter: "$P act socket 16 3 12";
    holds events_of_devices: "$P act socket 16 2 15";
    refuses machines_outside: "$P act socket 40 1 0";
    refuses the_kernels_ciphers: "$P act socket 38 5 0";
    refuses bluetooth: "$P act socket 31 3 1";
    refuses keys_of_the_network: "$P act socket 15 3 2";
    refuses buses_of_cars: "$P act socket 29 3 1";
    refuses clusters: "$P act socket 30 1 0";
    refuses express_data: "$P act socket 44 3 0";
    refuses shared_memory_streams: "$P act socket 43 1 0";
    refuses reliable_datagrams: "$P act socket 21 5 0";
    refuses routers_of_phones: "$P act socket 42 2 0";
    refuses families_with_high_bits: "$P act socket 0x100000011 3 768";
    refuses a_name_on_the_internet: "getent ahosts example.com";
    refuses an_address_on_the_internet: "$P act tcp 192.0.2.1:443";
    refuses a_datagram_to_the_internet: "$P act udp 192.0.2.1:53";
    refuses a_multicast_to_neighbours: "$P act udp 224.0.0.251:5353";
}

#[test]
fn sandbox_cannot_connect_to_tcp_servers_of_the_host() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(server) = TcpListener::bind(address) else {
            continue;
        };
        cell.holds(&format!("$P act tcp {}", server.local_addr().unwrap()));
    }
}

#[test]
fn sandbox_sends_no_udp_datagrams_to_the_host() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(server) = UdpSocket::bind(address) else {
            continue;
        };
        server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let send = format!("$P act udp {}", server.local_addr().unwrap());
        cell.inside(&send);
        assert!(server.recv(&mut [0; 8]).is_err(), "it got out");
        assert!(cell.freely(&send).succeeded());
        assert!(server.recv(&mut [0; 8]).is_ok());
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn sandbox_cannot_connect_to_unix_sockets() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    for folder in [&cell.outside, &cell.workspace] {
        let stream = folder.join("docker.sock");
        let _server = UnixListener::bind(&stream).unwrap();
        open_to_all(&stream);
        cell.holds(&format!("$P act unix {}", stream.display()));
        cell.holds(&format!("ln -sf {} link; $P act unix link", stream.display()));
        let datagram = folder.join("log.sock");
        let _server = UnixDatagram::bind(&datagram).unwrap();
        open_to_all(&datagram);
        cell.holds(&format!("$P act unix-datagram {}", datagram.display()));
    }
}

#[test]
fn sandbox_cannot_reach_a_unix_socket_by_moving_or_linking_it() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let path = cell.workspace.join("agent.sock");
    let _server = UnixListener::bind(&path).unwrap();
    cell.give(&path);
    cell.holds("mv agent.sock moved && $P act unix moved");
    let _server = UnixListener::bind(&path).unwrap();
    cell.give(&path);
    cell.holds("ln agent.sock linked && $P act unix linked");
}

#[test]
fn sandbox_cannot_connect_to_abstract_unix_sockets() {
    if !is_walled() {
        return;
    }
    let name = format!("walls-{}", std::process::id());
    let _server = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    for network in [&[][..], &["network"]] {
        Cell::new().with(network).holds(&format!("$P act abstract {name}"));
    }
}

#[test]
fn sandbox_hides_sockets_below_run() {
    if is_walled() {
        let listed =
            Cell::new().permits("find /run/ -type s | wc -l; ls /run/user 2>/dev/null | wc -l");
        assert_eq!(listed.stdout, "0\n0\n");
    }
}

#[test]
fn sandbox_without_loopback_denies_internet_sockets() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new().with(&["no-loopback"]);
    for family in [2, 10, 16] {
        cell.holds(&format!("$P act socket {family} 2 0"));
    }
    cell.permits("$P act socket 1 1 0");
}

#[test]
fn granted_network_is_that_of_the_host_without_raw_sockets() {
    if !is_walled() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let cell = Cell::new().with(&["network"]);
    cell.permits(&format!("$P act tcp {}", server.local_addr().unwrap()));
    cell.refuses("$P act socket 2 3 1");
    cell.refuses("$P act socket 16 3 12");
    cell.holds("echo out > $OUT/new");
}

#[test]
fn the_loopback_works_inside() {
    if is_walled() {
        Cell::new().permits("$P act loopback");
    }
}

/// Listens at a name in a folder, bound by a path that leads nowhere afterwards.
fn listener_in(folder: &Path, name: &str) -> UnixListener {
    let opened = fs::File::open(folder).unwrap();
    let path = format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o666)).unwrap();
    listener
}

#[test]
fn trial_cannot_connect_to_unix_sockets_of_other_programs() {
    if !is_walled() {
        return;
    }
    let cell = Cell::for_reading();
    let served = cell.outside.join("served");
    fs::create_dir(&served).unwrap();
    let _before = listener_in(&served, "before");
    let words = ["sockets", &format!("show={}", served.display())];
    let cell = cell.with(&words);
    cell.holds("$P act unix $OUT/served/before");
    let late = "until test -S $OUT/served/late; do sleep 0.02; done; echo found; \
                exec $P act unix $OUT/served/late";
    let mut command = cell.inside_command(late);
    let waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _late = listener_in(&served, "late");
    let ended = waiting.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stdout).starts_with("found"), "{ended:?}");
    assert!(!ended.status.success(), "{ended:?}");
}
