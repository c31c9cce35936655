//! Streams to a node, a Pod or a Service: what admission has to say before one is opened.

use serde_json::Value;

use super::options::WriteOptions;
use super::{Registry, Target};
use crate::admission::{self, Operation, Review, Wish};
use crate::status::Status;

impl Registry {
    /// Asks admission about a stream to the subresource `part`; gives the options it may be opened
    /// with.
    ///
    /// # Errors
    /// Whatever admission refuses it with.
    pub(crate) fn connect(
        &self,
        target: &Target,
        part: &str,
        parameters: Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let writer = self.writer_at(&options.inquiry);
        let mut review = Review {
            subresource: part,
            namespace: &target.namespace,
            name: &target.name,
            object: parameters,
            ..Review::new(&writer, &target.kind, Operation::Connect, Wish::Write(options))
        };
        admission::mutate(&mut review)?;
        admission::validate(&review)?;
        Ok(review.object)
    }
}
