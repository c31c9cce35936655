//! The verbs that delete: one object, or all that a selector finds.

use http::Response;

use super::answer;
use super::body::Body;
use super::call::Call;
use super::decode;
use crate::kinds::Kind;
use crate::registry::options::{DeleteOptions, ListOptions};
use crate::registry::{Deleted, fields};
use crate::status::Status;

impl Call {
    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let body = if self.body.is_empty() {
            None
        } else {
            Some(decode::delete_options(&self.headers, &self.body)?)
        };
        let options = DeleteOptions::parse(&self.query, body.as_ref())?;
        Ok(DeleteOptions { user: Some(self.user.clone()), ..options })
    }

    pub(super) async fn delete(self) -> Result<Response<Body>, Status> {
        let options = self.delete_options()?;
        self.settle(&options.inquiry, || self.delete_now(&options)).await
    }

    fn delete_now(&self, options: &DeleteOptions) -> Result<Response<Body>, Status> {
        let kind = &self.target.kind;
        let warnings = delete_warnings(kind, options);
        let deleted = match self.registry.delete(&self.target, options) {
            Ok(deleted) => deleted,
            Err(status) => return Err(status.warned(warnings)),
        };
        if let Deleted::Gone(object) = &deleted
            && !kind.strategy.returns_deleted
        {
            let value = object.value();
            let uid = crate::registry::metadata::uid(&value);
            let status = Status::success(kind, &self.target.name, uid);
            let mut response = answer::value(200, &status.to_value(), self.accepted.encoding);
            answer::warn(&mut response, &warnings);
            return Ok(response);
        }
        let bytes = self.view_of_one()?.object(kind, deleted.object());
        let mut response = answer::document(200, bytes, self.accepted.encoding);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }

    pub(super) async fn delete_collection(self) -> Result<Response<Body>, Status> {
        let options = self.delete_options()?;
        let kind = &self.target.kind;
        let list = ListOptions::parse(&self.query, |selector| fields::check(kind, selector))?;
        self.settle(&options.inquiry, || self.delete_all(&list, &options)).await
    }

    fn delete_all(
        &self,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Response<Body>, Status> {
        let warnings = delete_warnings(&self.target.kind, options);
        let items = match self.registry.delete_collection(&self.target, list, options) {
            Ok(items) => items,
            Err(status) => return Err(status.warned(warnings)),
        };
        let listed = crate::registry::Listed {
            revision: self.registry.store.revision(),
            items,
            continue_token: String::new(),
            remaining: None,
        };
        let bytes = self.view_of_many()?.list(&self.target.kind, &listed);
        let mut response = answer::document(200, bytes, self.accepted.encoding);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }
}

/// Jobs leave their Pods behind unless told otherwise, which surprises people.
fn delete_warnings(kind: &Kind, options: &DeleteOptions) -> Vec<String> {
    if kind.resource() != "jobs.batch" || options.propagation.is_some() {
        return Vec::new();
    }
    vec![
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning"
            .to_owned(),
    ]
}
