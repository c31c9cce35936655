//! What the cluster looks like, as of a moment ago: informers that follow the API and stores to
//! read from. Bytes are kept, not types; a typed view is made when somebody asks for it.
//!
//! With a [`crate::queue::Queue`] this is enough to write a controller by hand:
//!
//! ```
//! use homeostat::cache::{Caches, Scope};
//! use homeostat::k8s_openapi::api::core::v1::ConfigMap;
//! use homeostat::queue::Queue;
//! use homeostat::{Key, Kind, Trigger};
//!
//! # async fn example(cluster: homeostat_testing::TestCluster) -> homeostat::Result<()> {
//! # let (client, env) = (cluster.client.clone(), cluster.env.clone());
//! # cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
//! let caches = Caches::new(client, env.clone());
//! let configs = caches.informer(Kind::of::<ConfigMap>(), Scope::default());
//! let queue: Queue<Key> = Queue::new(env);
//!
//! let keys = queue.clone();
//! configs.on_event(move |delta| keys.add(delta.key().clone(), Trigger::Initial));
//! configs.start();
//! configs.wait_for_sync().await;
//!
//! while let Some(item) = queue.get().await {
//!     if let Some(config) = configs.get::<ConfigMap>(&item.key)? {
//!         // make the world look like `config`
//!         let _ = config.data;
//!     }
//!     queue.done(&item.key);
//! #   queue.shut_down();
//! }
//! # Ok(())
//! # }
//! # homeostat_testing::on_cluster(async |cluster| example(cluster).await.unwrap());
//! ```

mod audience;
mod body;
mod caches;
mod entry;
mod group;
mod header;
mod index;
mod informer;
mod intern;
mod maker;
mod marks;
mod namespaces;
mod owners;
mod pattern;
mod reach;
mod reads;
mod recent;
pub mod revision;
mod scan;
pub mod selector;
pub(crate) mod share;
mod store;
mod task;
#[cfg(test)]
mod tests;
mod waits;

pub use audience::Subscription;
pub use caches::{Caches, Scope, Transform};
pub use entry::Entry;
pub use group::Group;
pub use header::{Header, Labels, Owner};
pub(crate) use index::{Extract, field};
#[cfg(test)]
pub(crate) use informer::CUT_OFF;
pub use informer::{Informer, SourceState};
pub(crate) use maker::{Form, Maker};
pub use namespaces::Namespaces;
pub(crate) use reach::KindCache;
pub(crate) use scan::Scan;
pub use store::{Delta, Store};
pub use waits::Expect;
pub(crate) use waits::Wanted;
