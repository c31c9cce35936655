//! The one error type of the runtime, and which of its cases are worth a retry.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::client::LONGEST_WAIT;

/// Any error of a reconciler's own code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong in a reconcile.
///
/// Every case is transient (retried with backoff) unless it says otherwise.
///
/// An error type of your own becomes one where it says how, and then `?` does the rest:
///
/// ```
/// use homeostat::Error;
///
/// #[derive(Debug, thiserror::Error)]
/// enum Trouble {
///     #[error("the schedule makes no sense: {0}")]
///     Schedule(String),
///     #[error("the copy was not made")]
///     Copy(#[from] homeostat::kube::Error),
/// }
///
/// impl From<Trouble> for Error {
///     fn from(trouble: Trouble) -> Self {
///         match trouble {
///             Trouble::Schedule(_) => Self::terminal(trouble),
///             Trouble::Copy(_) => Self::transient(trouble),
///         }
///     }
/// }
///
/// fn due(schedule: &str) -> Result<u32, Trouble> {
///     schedule.parse().map_err(|_| Trouble::Schedule(schedule.to_owned()))
/// }
///
/// fn reconcile(schedule: &str) -> homeostat::Result<u32> {
///     Ok(due(schedule)?)
/// }
/// assert!(reconcile("never").unwrap_err().is_terminal());
/// ```
///
/// A conflict, a stale cache, a lost lease and the time for which the API wants to be left alone are
/// seen among the causes of such an error, too: its `source`s, of which `#[error(transparent)]` hides
/// the first.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API refused or could not be reached. A conflict (409) is a quick retry, not a failure.
    #[error(transparent)]
    Api(kube::Error),

    /// A request had no answer within its time limit. Whether it did anything is not known.
    #[error("the API did not answer within {0:?}")]
    NoAnswer(Duration),

    /// Another process leads; a write was held back, or the reconcile was given up. No failure: the
    /// key runs when this process leads again.
    #[error("this process is not the leader")]
    NotLeader,

    /// The cache has not caught up with what this reconcile wrote or read: a quick retry.
    #[error("the cache is behind: {0}")]
    Stale(String),

    /// Retrying cannot help; wait until the object changes.
    #[error(transparent)]
    Terminal(BoxError),

    /// An error of the reconciler's own code.
    #[error(transparent)]
    Transient(BoxError),

    /// An object of that name exists and belongs to somebody else. Terminal; an object of the API
    /// is followed, so the key runs again when that one changes or goes, and a thing outside is
    /// looked at again every 30 s.
    #[error("{object} exists and is {owner}; {remedy}")]
    NotOurs {
        /// The object in the way: `Pod default/example-pod`.
        object: String,
        /// Who has it: `controlled by Job other (uid ...)`, or `not owned by anyone`.
        owner: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// An object could not be read as the type it was asked for. Terminal; where it is not the
    /// primary, whoever mends it does not change the primary, so the key looks again every 30 s.
    #[error("{object} cannot be decoded")]
    Decode {
        /// The object in question.
        object: String,
        /// What the decoder says.
        #[source]
        source: serde_json::Error,
    },

    /// An owner reference that Kubernetes does not allow. Terminal.
    #[error("{0}")]
    InvalidOwner(String),

    /// The reconcile function panicked, or what decodes its object.
    #[error("reconcile panicked: {0}")]
    Panicked(String),

    /// The reconcile function ran over its time limit.
    #[error("reconcile took longer than {0:?}")]
    TimedOut(Duration),
}

/// The error and its causes in words, as [`Error::chain`]: this is what a `main` that returns it shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

/// An error and its causes in one line, each said once. What the API answered is told in its own
/// words: those of the client repeat them and add their debug form.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let (mut text, mut next) = (String::new(), Some(error));
    while let Some(error) = next {
        let answer = answer(error);
        next = if answer.is_some() { None } else { error.source() };
        let said = answer.unwrap_or_else(|| error.to_string());
        if text.is_empty() {
            text = said;
        } else if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
    }
    text
}

/// What the API said, if the error is its answer.
fn answer(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let api = match error.downcast_ref::<Error>() {
        Some(Error::Api(inner)) => Some(inner),
        _ => error.downcast_ref::<kube::Error>(),
    };
    let Some(kube::Error::Api(status)) = api else { return None };
    Some(match (status.message.as_str(), status.code) {
        ("", code) => format!("{} ({code})", status.reason),
        (message, _) => message.to_owned(),
    })
}

/// The reasons the runtime gives in `Degraded` conditions; see [`Error::reason`]. A reconcile that
/// knows a better one reports the condition itself.
pub(crate) const REASONS: [&str; 6] =
    [CANNOT_BE_DONE, REJECTED, "NotOurs", "DecodeFailed", "InvalidOwner", GIVEN_UP];

/// The reason when a reconcile says that retrying cannot help: what is declared cannot be done.
const CANNOT_BE_DONE: &str = "CannotBeDone";

/// The reason when the API refuses what follows from the primary alone.
const REJECTED: &str = "RejectedByApi";

/// What the API says against something that follows from the primary alone.
#[derive(Debug, thiserror::Error)]
#[error(
    "the API refuses what this object asks for: {0}; edit it, or remove what is in its way, and it goes on"
)]
struct Rejected(String);

/// The reason when a key has failed as often as its controller allows.
pub(crate) const GIVEN_UP: &str = "GivenUp";

impl Error {
    /// One CamelCase word for conditions, events and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Api(_) => "ApiError",
            Self::NoAnswer(_) => "NoAnswer",
            Self::NotLeader => "NotLeader",
            Self::Stale(_) => "StaleCache",
            Self::Terminal(cause) if cause.is::<Rejected>() => REJECTED,
            Self::Terminal(_) => CANNOT_BE_DONE,
            Self::Transient(_) => "ReconcileError",
            Self::NotOurs { .. } => "NotOurs",
            Self::Decode { .. } => "DecodeFailed",
            Self::InvalidOwner(_) => "InvalidOwner",
            Self::Panicked(_) => "Panicked",
            Self::TimedOut(_) => "TimedOut",
        }
    }

    /// The error and its causes in one line, each said once; see [`chain()`].
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }

    /// Makes a refusal of what was sent (422 or 400) terminal, and leaves every other error alone.
    ///
    /// For a write that follows from the primary alone: only an edit can mend it, and the words say
    /// so. Without this a refusal is retried with backoff like any other error, since most are
    /// mended by somebody else: a permission, a quota, an admission webhook or policy, a namespace
    /// that is still missing.
    ///
    /// ```no_run
    /// # async fn example(ctx: homeostat::Context<homeostat::k8s_openapi::api::core::v1::ConfigMap>,
    /// #     child: homeostat::k8s_openapi::api::core::v1::Secret) -> homeostat::Result<()> {
    /// ctx.apply(child).await.map_err(homeostat::Error::terminal_if_invalid)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn terminal_if_invalid(self) -> Self {
        match self {
            refusal if refusal.is_refusal_of_content() => Self::terminal(Rejected(refusal.chain())),
            other => other,
        }
    }

    /// Whether the API refused what was sent, not who sent it or when.
    pub(crate) fn is_refusal_of_content(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
    }

    /// An error that retrying cannot mend: the key waits until the object changes.
    pub fn terminal(error: impl Into<BoxError>) -> Self {
        Self::Terminal(error.into())
    }

    /// An error worth retrying with backoff, whatever is in it: one that is terminal by itself is
    /// not any more. A conflict in it is still a quick retry, and a lost lease no failure.
    pub fn transient(error: impl Into<BoxError>) -> Self {
        Self::Transient(error.into())
    }

    /// Whether the key waits for a change instead of a retry.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Terminal(_) | Self::NotOurs { .. } | Self::Decode { .. } | Self::InvalidOwner(_)
        )
    }

    /// Whether a quick retry from fresh state is the answer: a 409 conflict or a stale cache, also
    /// as the cause of an error of the reconciler's own.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        match self.origin() {
            Some(Origin::Runtime(error)) => matches!(error, Self::Stale(_)),
            Some(Origin::Answer(status)) => status.code == 409,
            None => false,
        }
    }

    /// Whether it comes of a lost lease.
    pub(crate) fn is_lost_lease(&self) -> bool {
        matches!(self.origin(), Some(Origin::Runtime(Self::NotLeader)))
    }

    /// What the API answered, if that is what it comes of.
    pub(crate) fn answer(&self) -> Option<&Status> {
        match self.origin()? {
            Origin::Answer(status) => Some(status),
            Origin::Runtime(_) => None,
        }
    }

    /// Whether the same request may do better in a moment: the API has no time or cannot be reached.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Api(kube::Error::Api(status)) => status.code == 429 || status.code >= 500,
            Self::NoAnswer(_)
            | Self::Api(
                kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_),
            ) => true,
            _ => false,
        }
    }

    /// Whether the API says that this process may not.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.answer().is_some_and(|answer| answer.code == 403)
    }

    /// How long the API is to be left alone, by its answer; zero when it does not say.
    pub(crate) fn told_to_wait(&self) -> Duration {
        let details = self.answer().and_then(|answer| answer.details.as_ref());
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(seconds.into()).min(LONGEST_WAIT)
    }

    /// What the error comes of, as far as the runtime knows such things.
    fn origin(&self) -> Option<Origin<'_>> {
        match self {
            Self::Api(error) => origin(error),
            Self::Transient(error) => origin(&**error),
            // One that is called terminal is that, and nothing else.
            error => Some(Origin::Runtime(error)),
        }
    }
}

/// Where an error comes from.
enum Origin<'a> {
    /// The runtime said so.
    Runtime(&'a Error),
    /// The API did.
    Answer(&'a Status),
}

/// The first error of the runtime's or answer of the API among an error and its causes.
fn origin<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<Origin<'a>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = downcast::<Error>(error) {
            return error.origin();
        }
        if let Some(status) = downcast::<Status>(error) {
            return Some(Origin::Answer(status));
        }
        next = error.source();
    }
    None
}

/// The error as what it is, in a box or not: sources are often boxed.
fn downcast<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<E>>().map(|boxed| &**boxed))
}

impl From<kube::Error> for Error {
    /// An error of the runtime's own that travelled through the client comes out as itself.
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Service(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(inner) => Self::Api(kube::Error::Service(inner)),
            },
            other => Self::Api(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Caused(&'static str, #[source] BoxError);

    #[test]
    fn causes_are_told_in_one_line_each_once_and_the_api_in_its_own_words() {
        let inner = Caused("the disk is full", "the disk is full".into());
        assert_eq!(chain(&Caused("cannot write", inner.into())), "cannot write: the disk is full");
        let status = kube::core::Status::failure("pods \"p\" not found", "NotFound").with_code(404);
        let refused = kube::Error::Api(status.boxed());
        assert_eq!(
            chain(&Caused("cannot read", refused.into())),
            "cannot read: pods \"p\" not found"
        );
    }

    fn answer(code: u16) -> kube::Error {
        let status = kube::core::Status::failure("later", "Later").with_code(code);
        kube::Error::Api(status.boxed())
    }

    /// The same error in the ways a reconciler may hand it on.
    fn wrapped(error: impl Fn() -> Error) -> [Error; 4] {
        [
            Error::transient(error()),
            Error::transient(Box::new(error())),
            Error::transient(Caused("cannot write", error().into())),
            Error::transient(Caused("cannot go on", Box::new(Caused("no", error().into())))),
        ]
    }

    #[test]
    fn a_conflict_stays_one_whoever_wraps_it() {
        let stale = || Error::Stale("behind".to_owned());
        for error in wrapped(stale).into_iter().chain(wrapped(|| answer(409).into())) {
            assert!(error.is_conflict() && !error.is_terminal(), "{error:?}");
        }
        let plain = Caused("cannot write", answer(409).into());
        assert!(Error::transient(plain).is_conflict(), "as the client says it");
        #[derive(Debug, thiserror::Error)]
        #[error(transparent)]
        struct Transparent(#[from] kube::Error);
        assert!(Error::transient(Transparent(answer(409))).is_conflict());
        assert!(!Error::transient(Transparent(answer(500))).is_conflict());
    }

    #[test]
    fn a_lost_lease_stays_one_whoever_wraps_it() {
        // As it comes out of the plain client.
        let refused = kube::Error::Service(Box::new(Error::NotLeader));
        let plain = Error::transient(Caused("cannot write", refused.into()));
        for error in wrapped(|| Error::NotLeader).into_iter().chain([plain]) {
            assert!(error.is_lost_lease() && !error.is_conflict(), "{error:?}");
        }
    }

    #[test]
    fn what_is_called_transient_stays_so_whatever_is_in_it() {
        let conflict = || Error::terminal(Error::Stale("behind".to_owned()));
        assert!(conflict().is_terminal() && !conflict().is_conflict(), "it was called terminal");
        for error in wrapped(conflict) {
            assert!(!error.is_terminal() && !error.is_conflict(), "{error:?}");
        }
    }

    #[test]
    fn a_main_that_returns_it_shows_words() {
        let error = Error::transient(std::io::Error::other("the disk is full"));
        assert_eq!(format!("{error:?}"), "the disk is full");
    }
}
