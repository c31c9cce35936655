//! Loopback addresses for Services that no other cluster on this host uses.

use std::net::{Ipv4Addr, SocketAddr};

use homeostat::Env;
use homeostat_apiserver::{AddressRange, DataDirectory};
use tokio::net::TcpListener;

use crate::failure::Failure;

/// The ranges for Services: 127.96.0.0/16 to 127.126.0.0/16.
const FIRST: u8 = 96;
const RANGES: u8 = 31;

/// Any port will do: nobody connects there.
const RESERVATION_PORT: u16 = 6443;

/// A range, reserved for as long as this lives.
pub(crate) struct ServiceRange {
    pub(crate) addresses: AddressRange,
    /// Listening here is what reserves the range; the system gives it back however we end.
    _reservation: Option<TcpListener>,
}

impl ServiceRange {
    /// The first free one, beginning anywhere; with none free, one that is shared.
    ///
    /// A data directory keeps its range, because the Services in it have addresses of it.
    ///
    /// # Errors
    /// When the range of the directory is in use.
    pub(crate) async fn reserve(env: &Env, data: Option<&DataDirectory>) -> Result<Self, Failure> {
        let start = u8::try_from(env.random_below(RANGES.into())).unwrap_or_default();
        let mut found = Self::any(start).await;
        if let Some(directory) = data {
            let octet = found.addresses.base.octets()[1];
            let kept = directory.keep("services", || Ok(format!("127.{octet}.0.0/16\n")));
            let kept = kept.map_err(|error| Failure::data(directory.path(), error))?;
            let octet = kept.split('.').nth(1).and_then(|octet| octet.parse().ok());
            let octet = octet.filter(|octet| (FIRST..FIRST + RANGES).contains(octet));
            let no_range =
                || Failure::damaged(directory, "services", "it is no range of addresses");
            let octet = octet.ok_or_else(no_range)?;
            if octet != found.addresses.base.octets()[1] {
                found = Self::exactly(octet).await.ok_or(Failure::RangeTaken { range: kept })?;
            }
        }
        Ok(found)
    }

    async fn any(start: u8) -> Self {
        for octet in (0..RANGES).map(|n| FIRST + (start + n) % RANGES) {
            if let Some(range) = Self::exactly(octet).await {
                return range;
            }
        }
        Self { addresses: range(FIRST), _reservation: None }
    }

    async fn exactly(octet: u8) -> Option<Self> {
        // The last address of the range, which is never given to a Service.
        let lock = SocketAddr::from((Ipv4Addr::new(127, octet, 255, 255), RESERVATION_PORT));
        let listener = TcpListener::bind(lock).await.ok()?;
        Some(Self { addresses: range(octet), _reservation: Some(listener) })
    }
}

fn range(octet: u8) -> AddressRange {
    AddressRange { base: Ipv4Addr::new(127, octet, 0, 0), prefix: 16 }
}
