//! Addresses for Pods: each gets its own loopback address, which Linux answers without set-up.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The first address of the range and how many there are: 127.64.0.0 to 127.95.255.255.
const FIRST: u32 = 0x7f40_0000;
const COUNT: u32 = 0x0020_0000;

/// Hands out addresses, none twice at the same time.
#[derive(Debug)]
pub struct Addresses {
    next: u32,
    taken: BTreeSet<Ipv4Addr>,
}

impl Addresses {
    /// Starts at a place given by `seed`, so that two agents on one host rarely meet.
    #[must_use]
    pub fn starting_at(seed: u64) -> Self {
        let next = u32::try_from(seed % u64::from(COUNT)).unwrap_or_default();
        Self { next, taken: BTreeSet::new() }
    }

    /// A free address; `None` when two million Pods run.
    pub fn take(&mut self) -> Option<Ipv4Addr> {
        for _ in 0..COUNT {
            let address = Ipv4Addr::from(FIRST + self.next);
            self.next = (self.next + 1) % COUNT;
            let usable = !matches!(address.octets()[3], 0 | 255);
            if usable && self.taken.insert(address) {
                return Some(address);
            }
        }
        None
    }

    /// Gives an address back.
    pub fn release(&mut self, address: Ipv4Addr) {
        self.taken.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pods_share_an_address_and_none_comes_back_at_once() {
        let mut addresses = Addresses::starting_at(u64::from(COUNT) - 2);
        let first = addresses.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(127, 95, 255, 254));
        let second = addresses.take().unwrap();
        assert_eq!(second, Ipv4Addr::new(127, 64, 0, 1));
        addresses.release(second);
        assert_ne!(addresses.take().unwrap(), second);
    }
}
