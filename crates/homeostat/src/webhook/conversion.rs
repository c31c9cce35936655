//! Conversion between the versions of a kind: every version knows the way to one of them, the hub,
//! and back. No IO.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::Status;
use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::kind::{Kind, Object};

type Step = Arc<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

/// The versions of one kind and the ways between them, for [`super::Webhooks::converts`].
///
/// All are converted through `Hub`: the version that is stored, or the newest.
#[derive(Debug, Clone)]
pub struct Conversion<Hub> {
    pub(super) ways: Ways,
    hub: PhantomData<fn() -> Hub>,
}

/// The same without its type.
#[derive(Clone)]
pub(super) struct Ways {
    pub(super) group: String,
    pub(super) kind: String,
    /// To the hub and back, by version; the hub's own do nothing.
    by_version: BTreeMap<String, (Step, Step)>,
}

impl<Hub: Object> Default for Conversion<Hub> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Hub: Object> Conversion<Hub> {
    /// The hub alone.
    #[must_use]
    pub fn new() -> Self {
        let kind = Kind::of::<Hub>();
        let same: Step = Arc::new(|object| Ok(object.clone()));
        let by_version = BTreeMap::from([(kind.api_version(), (same.clone(), same))]);
        let ways =
            Ways { group: kind.group().to_owned(), kind: kind.kind().to_owned(), by_version };
        Self { ways, hub: PhantomData }
    }

    /// Adds a version with its way to the hub and back. Metadata is carried over by the runtime:
    /// the functions need not care, and what they do to it is ignored.
    #[must_use]
    pub fn version<V: Object>(
        mut self,
        to_hub: impl Fn(&V) -> Result<Hub> + Send + Sync + 'static,
        from_hub: impl Fn(&Hub) -> Result<V> + Send + Sync + 'static,
    ) -> Self {
        let there: Step = Arc::new(move |object| step(object, &to_hub));
        let back: Step = Arc::new(move |object| step(object, &from_hub));
        self.ways.by_version.insert(Kind::of::<V>().api_version(), (there, back));
        self
    }
}

impl Ways {
    fn convert(&self, object: &Value, to: &str) -> Result<Value> {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if from == to {
            return Ok(object.clone());
        }
        let way = |version: &str| {
            self.by_version.get(version).ok_or_else(|| {
                Error::terminal(format!("{} has no version {version} here", self.kind))
            })
        };
        let hub = way(from)?.0(object)?;
        let mut converted = way(to)?.1(&hub)?;
        converted["apiVersion"] = to.into();
        converted["kind"] = self.kind.as_str().into();
        if let Some(metadata) = object.get("metadata") {
            converted["metadata"] = metadata.clone();
        }
        Ok(converted)
    }
}

fn step<A: Object, B: Object>(object: &Value, way: &impl Fn(&A) -> Result<B>) -> Result<Value> {
    let typed = A::deserialize(object)
        .map_err(|source| Error::Decode { object: Kind::of::<A>().to_string(), source })?;
    serde_json::to_value(way(&typed)?).map_err(Error::terminal)
}

/// Answers a whole request: all objects, or the first thing that went wrong.
pub(super) fn answer(all: &[Ways], body: &[u8]) -> Result<Value> {
    let review: ConversionReview = serde_json::from_slice(body)
        .map_err(|source| Error::Decode { object: "the ConversionReview".to_owned(), source })?;
    let request = ConversionRequest::from_review(review).map_err(Error::terminal)?;
    let to = request.desired_api_version.clone();
    let group = to.split_once('/').map_or("", |(group, _)| group).to_owned();
    let convert = |object: &Value| {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let conversion = all.iter().find(|one| one.group == group && one.kind == kind);
        let conversion = conversion
            .ok_or_else(|| Error::terminal(format!("{kind}.{group} is not converted here")))?;
        conversion.convert(object, &to)
    };
    let converted: Result<Vec<Value>> = request.objects.iter().map(convert).collect();
    let response = ConversionResponse::for_request(request);
    let response = match converted {
        Ok(objects) => response.success(objects),
        Err(error) => response.failure(Status::failure(&error.chain(), "ConversionFailed")),
    };
    serde_json::to_value(response.into_review()).map_err(Error::terminal)
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<&String> = self.by_version.keys().collect();
        f.debug_struct("Ways").field("kind", &self.kind).field("versions", &versions).finish()
    }
}
