//! Which address a Pod means: a pure function.
//!
//! Inside a Pod "every address" and "localhost" are the Pod's own. Addresses of Pods and Services,
//! and those of other machines, mean what they say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a program is about to do with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Take it: `bind`.
    Bind,
    /// Go there: `connect`, or `sendto` of a datagram.
    Reach,
}

/// What to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What the program asked for.
    AsAsked,
    /// The same call with this address.
    Instead(SocketAddr),
    /// Nothing: nobody listens there.
    Refused,
}

/// Translates `address` for a program of the Pod at `pod`. `only_v6` is whether the socket speaks
/// nothing but IPv6, which no Pod has: what it listens on is reached by nobody. It matters for IPv6
/// addresses only, and never to whether the answer is [`Verdict::AsAsked`].
pub(super) fn translate(call: Call, address: SocketAddr, pod: Ipv4Addr, only_v6: bool) -> Verdict {
    let port = address.port();
    let wildcard = address.ip().to_canonical().is_unspecified();
    if !wildcard && !is_localhost(address.ip().to_canonical()) {
        return Verdict::AsAsked;
    }
    match call {
        // Any port on every address takes no port from anybody, and such a socket may well send to
        // another machine next, which one with a loopback address cannot.
        Call::Bind if wildcard && port == 0 => return Verdict::AsAsked,
        Call::Reach if is_resolver(address) => return Verdict::AsAsked,
        Call::Bind | Call::Reach => {}
    }
    match (address, call) {
        (SocketAddr::V4(_), _) => Verdict::Instead(SocketAddr::new(pod.into(), port)),
        (SocketAddr::V6(_), _) if !only_v6 => {
            Verdict::Instead(SocketAddr::new(pod.to_ipv6_mapped().into(), port))
        }
        (SocketAddr::V6(_), Call::Bind) => {
            Verdict::Instead(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0))
        }
        (SocketAddr::V6(_), Call::Reach) => Verdict::Refused,
    }
}

/// A loopback address that is not a Pod's or a Service's: those are in 127.64.0.0/10.
fn is_localhost(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() && !(64..128).contains(&ip.octets()[1]),
        IpAddr::V6(ip) => ip.is_loopback(),
    }
}

/// The host's own resolver, where `/etc/resolv.conf` points to one (127.0.0.53, 127.0.0.11).
fn is_resolver(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    address.port() == 53 && ip.is_ipv4() && ip != Ipv4Addr::LOCALHOST && !ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    const POD: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 7);

    fn said(call: Call, address: &str, only_v6: bool) -> String {
        match translate(call, address.parse().unwrap(), POD, only_v6) {
            Verdict::AsAsked => "as asked".into(),
            Verdict::Instead(address) => address.to_string(),
            Verdict::Refused => "refused".into(),
        }
    }

    #[test]
    fn a_pod_listens_on_its_own_address() {
        for (asked, only_v6, got) in [
            ("0.0.0.0:80", false, "127.64.0.7:80"),
            ("127.0.0.1:80", false, "127.64.0.7:80"),
            ("127.0.0.1:0", false, "127.64.0.7:0"),
            ("127.9.9.9:80", false, "127.64.0.7:80"),
            ("[::]:80", false, "[::ffff:127.64.0.7]:80"),
            ("[::1]:80", false, "[::ffff:127.64.0.7]:80"),
            ("[::ffff:0.0.0.0]:80", false, "[::ffff:127.64.0.7]:80"),
            ("[::]:80", true, "[::1]:0"),
            ("[::1]:80", true, "[::1]:0"),
            ("0.0.0.0:0", false, "as asked"),
            ("[::]:0", true, "as asked"),
            ("127.64.0.7:80", false, "as asked"),
            ("127.96.0.1:80", false, "as asked"),
            ("192.0.2.1:80", false, "as asked"),
            ("[2001:db8::1]:80", false, "as asked"),
        ] {
            assert_eq!(said(Call::Bind, asked, only_v6), got, "{asked}");
        }
    }

    #[test]
    fn localhost_of_a_pod_is_its_own() {
        for (asked, only_v6, got) in [
            ("127.0.0.1:80", false, "127.64.0.7:80"),
            ("0.0.0.0:80", false, "127.64.0.7:80"),
            ("127.1.2.3:80", false, "127.64.0.7:80"),
            ("[::1]:80", false, "[::ffff:127.64.0.7]:80"),
            ("[::ffff:127.0.0.1]:80", false, "[::ffff:127.64.0.7]:80"),
            ("[::1]:80", true, "refused"),
            ("127.64.0.9:80", false, "as asked"),
            ("127.126.0.1:443", false, "as asked"),
            ("192.0.2.1:80", false, "as asked"),
        ] {
            assert_eq!(said(Call::Reach, asked, only_v6), got, "{asked}");
        }
    }

    #[test]
    fn the_resolver_of_the_host_is_left_alone() {
        assert_eq!(said(Call::Reach, "127.0.0.53:53", false), "as asked");
        assert_eq!(said(Call::Reach, "127.0.0.1:53", false), "127.64.0.7:53");
        assert_eq!(said(Call::Bind, "127.0.0.53:53", false), "127.64.0.7:53");
    }

    fn addresses() -> impl Strategy<Value = SocketAddr> {
        let loopback = any::<[u8; 3]>().prop_map(|[b, c, d]| Ipv4Addr::new(127, b, c, d));
        let v4 = prop_oneof![any::<Ipv4Addr>(), loopback];
        let mapped = v4.clone().prop_map(|ip| IpAddr::from(ip.to_ipv6_mapped()));
        let first = (0_u128..3).prop_map(Ipv6Addr::from);
        let few = prop_oneof![any::<Ipv6Addr>(), first].prop_map(IpAddr::from);
        let ip = prop_oneof![v4.prop_map(IpAddr::from), mapped, few];
        (ip, any::<u16>()).prop_map(SocketAddr::from)
    }

    proptest! {
        #[test]
        fn no_pod_takes_or_reaches_an_address_of_the_host_by_localhost(
            address in addresses(), binds in any::<bool>(), only_v6 in any::<bool>()
        ) {
            let call = if binds { Call::Bind } else { Call::Reach };
            let verdict = translate(call, address, POD, only_v6);
            if let Verdict::Instead(other) = verdict {
                assert_eq!(other.is_ipv4(), address.is_ipv4(), "a socket has one family");
                let own = other.ip().to_canonical() == POD && other.port() == address.port();
                assert!(own || (other.port() == 0 && only_v6), "{other}");
                assert_eq!(translate(call, other, POD, false) == Verdict::AsAsked, own, "settled");
            }
            let asked = verdict == Verdict::AsAsked;
            let other_mode = translate(call, address, POD, !only_v6) == Verdict::AsAsked;
            assert_eq!(asked, other_mode, "the sort of socket does not matter to that");
        }
    }
}
