//! The kernel's counters of a network namespace: whether a command tried to reach a server that is not in it.
//!
//! Format: proc_pid_net(5), `/proc/self/net/snmp`: of each protocol a line of names, and a line of numbers below it.

use std::fs;

const COUNTERS: &str = "/proc/self/net/snmp";

/// True if a connection failed or had no way out in this process's network namespace, and no server in it took one.
pub(super) fn has_missed_server() -> bool {
    fs::read_to_string(COUNTERS).is_ok_and(|text| tells_missed_server(&text))
}

fn tells_missed_server(text: &str) -> bool {
    let of = |protocol: &str, name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
        let place = lines.next()?.split_whitespace().position(|known| known == name)?;
        lines.next()?.split_whitespace().nth(place)?.parse::<u64>().ok()
    };
    let missed = [of("Tcp:", "AttemptFails"), of("Ip:", "OutNoRoutes")];
    missed.into_iter().flatten().any(|count| count > 0) && of("Tcp:", "PassiveOpens") == Some(0)
}

#[cfg(test)]
mod tests {
    use super::tells_missed_server;

    #[test]
    fn a_refused_connection_counts_unless_a_server_inside_took_one() {
        let counters = |no_routes: u8, passive: u8, failed: u8| {
            format!(
                "Ip: Forwarding DefaultTTL OutNoRoutes\nIp: 2 64 {no_routes}\n\
                 Tcp: RtoAlgorithm MaxConn PassiveOpens AttemptFails\nTcp: 1 -1 {passive} {failed}\n"
            )
        };
        for (no_routes, passive, failed, missed) in
            [(0, 0, 0, false), (0, 0, 1, true), (2, 0, 0, true), (0, 3, 1, false)]
        {
            assert_eq!(tells_missed_server(&counters(no_routes, passive, failed)), missed);
        }
        assert!(!tells_missed_server("Ip: a\nTcp:"));
    }
}
