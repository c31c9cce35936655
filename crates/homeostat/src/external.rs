//! Things outside the cluster that an object stands for: a bucket, a DNS record, an account.
//!
//! The world outside has no owner references, no garbage collection and no events, and an answer
//! may get lost after the thing was made. [`crate::Context::external`] keeps the book: what is about
//! to be made is on record in the object before the call goes out, and so is what came of it.

use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::context::Change;
use crate::error::Result;

/// One thing outside. Implement it on whatever holds the connection and the wish.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use homeostat::external::{External, Find, Outside, Policy};
/// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
/// use homeostat::{Context, Outcome, Result};
///
/// /// A list of buckets somewhere, each with the token it was made with.
/// #[derive(Clone, Default)]
/// struct Buckets(Arc<Mutex<Vec<(String, String)>>>);
///
/// struct Bucket<'a> {
///     all: &'a Buckets,
///     name: String,
/// }
///
/// impl External for Bucket<'_> {
///     type Found = String;
///
///     async fn find(&self, by: Find<'_>) -> Result<Option<String>> {
///         let all = self.all.0.lock().unwrap();
///         let found = all.iter().find(|(name, token)| match by {
///             Find::Name => *name == self.name,
///             Find::Id(id) => name == id,
///             Find::Token(given) => token == given,
///         });
///         Ok(found.map(|(name, _)| name.clone()))
///     }
///
///     fn id(&self, found: &String) -> String {
///         found.clone()
///     }
///
///     async fn create(&self, token: &str) -> Result<String> {
///         self.all.0.lock().unwrap().push((self.name.clone(), token.to_owned()));
///         Ok(self.name.clone())
///     }
///
///     async fn delete(&self, id: &str) -> Result<()> {
///         self.all.0.lock().unwrap().retain(|(name, _)| name != id);
///         Ok(())
///     }
/// }
///
/// async fn reconcile(all: &Buckets, ctx: &Context<ConfigMap>) -> Result<Outcome> {
///     let bucket = Bucket { all, name: ctx.key().name().to_owned() };
///     match ctx.external("bucket", Policy::default(), &bucket).await? {
///         Outside::Removed => Ok(Outcome::Done),
///         _ => Ok(Outcome::RequeueAfter(std::time::Duration::from_secs(60))),
///     }
/// }
/// # homeostat_testing::on_cluster(async |cluster| {
/// #     let buckets = Buckets::default();
/// #     let all = buckets.clone();
/// #     let controller = homeostat::Controller::new(move |_: Arc<ConfigMap>, ctx| {
/// #         let all = all.clone();
/// #         async move { reconcile(&all, &ctx).await }
/// #     });
/// #     let running = cluster.start(controller).await;
/// #     cluster.create::<ConfigMap>(serde_json::json!({ "metadata": { "name": "web" } })).await;
/// #     cluster.runs(&running.journal(), 1).await;
/// #     assert_eq!(buckets.0.lock().unwrap().len(), 1);
/// #     cluster.api::<ConfigMap>().delete("web", &Default::default()).await.unwrap();
/// #     cluster.until_gone::<ConfigMap>("web").await;
/// #     assert!(buckets.0.lock().unwrap().is_empty());
/// #     running.stop().await.unwrap();
/// # });
/// ```
pub trait External: Send + Sync {
    /// What the thing looks like out there.
    type Found: Send;

    /// Looks for it; `None` when it is not there.
    ///
    /// # Errors
    /// When the outside cannot be asked. That something is missing is no error.
    fn find(&self, by: Find<'_>) -> impl Future<Output = Result<Option<Self::Found>>> + Send;

    /// By what it is found again later; kept in the object.
    fn id(&self, found: &Self::Found) -> String;

    /// Makes it. `token` is on record already: leave it at the thing (a tag, a comment, an
    /// idempotency key), so that [`Find::Token`] finds it if this call's answer gets lost. The same
    /// token may come again.
    ///
    /// # Errors
    /// Whatever the outside says; it is not known whether the thing was made.
    fn create(&self, token: &str) -> impl Future<Output = Result<Self::Found>> + Send;

    /// Makes it as it should be; says whether anything changed. By default nothing is ever changed.
    ///
    /// # Errors
    /// Whatever the outside says.
    fn update(
        &self,
        found: Self::Found,
    ) -> impl Future<Output = Result<(Self::Found, Change)>> + Send {
        async { Ok((found, Change::Unchanged)) }
    }

    /// Removes it; it is gone already is success.
    ///
    /// # Errors
    /// Whatever the outside says; it is tried again, and the object stays until it succeeds.
    fn delete(&self, id: &str) -> impl Future<Output = Result<()>> + Send;
}

/// How a thing is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Find<'a> {
    /// By the name it should have: whoever made it.
    Name,
    /// By the token that was given to [`External::create`]: what an earlier call of ours made.
    Token(&'a str),
    /// By its id.
    Id(&'a str),
}

/// What may be done to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Look at it and touch nothing, neither there nor in the object. An object that was managed
    /// before and is deleted now is let go, and the thing stays.
    ObserveOnly,
    /// Make it, keep it as it should be, and see to it when the object is deleted.
    Manage {
        /// What if something of that name is there that we have no record of.
        existing: Existing,
        /// What becomes of it when the object is deleted.
        removal: Removal,
    },
}

/// Refuse strangers, delete what is ours.
impl Default for Policy {
    fn default() -> Self {
        Self::Manage { existing: Existing::default(), removal: Removal::default() }
    }
}

/// What to do with something of that name that is not on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It is a stranger's: [`crate::Error::NotOurs`], and it is looked at again every 30 s.
    #[default]
    Refuse,
    /// It is ours from now on.
    Adopt,
}

/// What becomes of the thing when its object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removal {
    /// It goes first; the object stays until it is gone.
    #[default]
    Delete,
    /// It stays.
    Retain,
}

/// How a thing was left by [`crate::Context::external`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outside<F> {
    /// It is there, and as it should be.
    Present {
        /// The thing.
        found: F,
        /// What this call did to it.
        change: Change,
    },
    /// It is not there, and is only looked at.
    Absent,
    /// The object is being deleted and the thing was seen to: the reconcile should ask for its other
    /// things, if it has any, and return [`crate::Outcome::Done`].
    Removed,
}

/// What the object remembers of a thing, in an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Given to the call that makes it.
    pub(crate) token: String,
    /// What came of the call; absent until its answer was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

/// The annotation that holds the entry of the thing called `name`.
pub(crate) fn annotation(name: &str) -> String {
    format!("external.homeostat.dev/{name}")
}

/// The finalizer that keeps the object until the thing called `name` is gone.
pub(crate) fn finalizer(name: &str) -> String {
    format!("homeostat.dev/external-{name}")
}
