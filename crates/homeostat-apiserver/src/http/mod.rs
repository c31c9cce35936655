//! The front door: paths, media types, verbs and streams. It decides nothing about objects.
//!
//! A request becomes a route, is answered by the registry, and is rendered in the form
//! the client accepts.

pub(crate) mod answer;
pub(crate) mod body;
mod call;
mod connect;
mod decode;
mod delete;
mod discovery;
mod dressed;
mod events;
mod health;
mod log_options;
mod marks;
pub(crate) mod negotiate;
pub(crate) mod node;
mod parts;
mod patches;
mod proxy;
mod render;
pub(crate) mod route;
mod settle;
mod shown;
mod subresource;
mod verbs;
mod watch;
pub(crate) mod websocket;

pub use body::Body;
pub(crate) use marks::Marks;
pub use node::NodeConnector;
pub(crate) use verbs::handle;
pub(crate) use watch::IsWatch;
