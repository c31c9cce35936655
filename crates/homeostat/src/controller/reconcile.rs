//! What a controller runs: a reconcile function, or a type that has one.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::context::Context;
use crate::error::Result;
use crate::kind::AnyObject;
use crate::outcome::Outcome;

/// A reconcile function with its types made uniform.
pub(crate) type Boxed<K> =
    Arc<dyn Fn(Arc<K>, Context<K>) -> BoxFuture<'static, Result<Outcome>> + Send + Sync>;

/// A type that reconciles objects of kind `K`, for those that carry state of their own.
pub trait Reconciler<K: AnyObject>: Send + Sync + 'static {
    /// One pass of the loop for one object.
    ///
    /// # Errors
    /// Whatever the reconciler says; see [`crate::Error`] for what becomes of it.
    fn reconcile(
        &self,
        object: Arc<K>,
        context: Context<K>,
    ) -> impl Future<Output = Result<Outcome>> + Send;
}

/// What [`crate::Controller::new`] accepts: an async function of an object and its [`Context`],
/// or an `Arc` of a [`Reconciler`]. Implemented for both; not to be implemented by hand.
///
/// A function that returns something else does not compile:
///
/// ```compile_fail,E0277
/// use std::sync::Arc;
/// use homeostat::{Context, Controller};
/// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) {}
/// let controller = Controller::new(reconcile);
/// ```
///
/// nor does one without a context:
///
/// ```compile_fail,E0593
/// use std::sync::Arc;
/// use homeostat::{Controller, Outcome, Result};
/// use homeostat::k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn reconcile(_: Arc<ConfigMap>) -> Result<Outcome> { Ok(Outcome::Done) }
/// let controller = Controller::<ConfigMap>::new(reconcile);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reconcile `{K}`",
    label = "not a reconcile function of `{K}`",
    note = "a controller wants `async fn reconcile(object: Arc<K>, ctx: Context<K>) -> homeostat::Result<Outcome>`",
    note = "what it captures and holds across `.await` must be `Send`",
    note = "a type that implements `homeostat::Reconciler<K>` is given as `Arc::new(it)`"
)]
pub trait IntoReconcile<K, How> {
    #[doc(hidden)]
    fn into_reconcile(self) -> Boxed<K>;
}

/// The mark of a function.
#[derive(Debug)]
pub struct ByFunction;

/// The mark of a [`Reconciler`].
#[derive(Debug)]
pub struct ByReconciler;

// What is wrong is said by the trait itself, not by whatever in here does not fit.
#[diagnostic::do_not_recommend]
impl<K, F, Fut> IntoReconcile<K, ByFunction> for F
where
    K: AnyObject,
    F: Fn(Arc<K>, Context<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome>> + Send + 'static,
{
    fn into_reconcile(self) -> Boxed<K> {
        Arc::new(move |object, context| self(object, context).boxed())
    }
}

#[diagnostic::do_not_recommend]
impl<K: AnyObject, R: Reconciler<K>> IntoReconcile<K, ByReconciler> for Arc<R> {
    fn into_reconcile(self) -> Boxed<K> {
        Arc::new(move |object, context| {
            let reconciler = self.clone();
            async move { reconciler.reconcile(object, context).await }.boxed()
        })
    }
}
