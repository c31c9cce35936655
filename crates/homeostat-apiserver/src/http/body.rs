//! Bodies: what comes in is read whole and bounded, what goes out is boxed.

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use tower::BoxError;

use crate::status::Status;

/// The body of every answer, and of requests passed on to a node.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Larger request bodies are refused.
const LARGEST: usize = 3 * 1024 * 1024;

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The whole body of a request.
pub(crate) async fn read(mut body: Body) -> Result<Bytes, Status> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > LARGEST {
            return Err(Status::too_large(format!("limit is {LARGEST}")));
        }
        if whole.is_empty() {
            whole = BytesMut::from(data);
        } else {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}
