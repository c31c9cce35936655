//! The verbs that delete: one object, or all that a selector finds.

use std::sync::Arc;

use http::Response;

use super::answer;
use super::body::Body;
use super::call::Call;
use super::{decode, shown};
use crate::kinds::Kind;
use crate::registry::options::{DeleteOptions, ListOptions};
use crate::registry::{Deleted, Target, fields};
use crate::status::Status;
use crate::store::Stored;

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
        let kind = &self.target.kind;
        let mut warnings = delete_warnings(kind, &options);
        let delete = || self.in_place(|| self.registry.delete(&self.target, &options));
        let deleted = match self.settle(&options.inquiry, delete).await {
            Ok((deleted, mut said)) => {
                warnings.append(&mut said);
                deleted
            }
            Err(status) => return Err(status.warned(warnings)),
        };
        if let Deleted::Gone(object) = &deleted
            && !kind.strategy.returns_deleted
        {
            let status = Status::success(kind, &self.target.name, &object.uid());
            let mut response = answer::value(200, &status.to_value(), self.accepted.encoding);
            answer::warn(&mut response, &warnings);
            return Ok(response);
        }
        let object = shown::object(&self.registry, kind, deleted.object().clone()).await?;
        let bytes = self.view_of_one()?.object(kind, &object);
        let mut response = answer::document(200, bytes, self.accepted.encoding);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }

    pub(super) async fn delete_collection(self) -> Result<Response<Body>, Status> {
        let options = self.delete_options()?;
        let kind = &self.target.kind;
        let list = ListOptions::parse(&self.query, |selector| fields::check(kind, selector))?;
        let mut warnings = delete_warnings(kind, &options);
        let selected = shown::list(&self.registry, &self.target, &list).await?;
        let mut items = Vec::new();
        for object in selected.items {
            match self.delete_one(&object, &options).await {
                Ok(mut said) => {
                    warnings.append(&mut said);
                    items.push(object);
                }
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status.warned(warnings)),
            }
        }
        let listed =
            crate::registry::Listed { revision: self.registry.store.revision(), items, ..selected };
        let bytes = self.view_of_many()?.list(&self.target.kind, &listed);
        let mut response = answer::document(200, bytes, self.accepted.encoding);
        answer::warn(&mut response, &warnings);
        Ok(response)
    }

    /// Deletes one object of a collection, with webhooks asked about it alone.
    async fn delete_one(
        &self,
        object: &Stored,
        options: &DeleteOptions,
    ) -> Result<Vec<String>, Status> {
        let target = Target {
            kind: self.target.kind.clone(),
            namespace: object.key.namespace.clone(),
            name: object.key.name.clone(),
        };
        let options = DeleteOptions { inquiry: Arc::default(), of_many: true, ..options.clone() };
        let delete = || self.registry.delete(&target, &options);
        Ok(self.settle(&options.inquiry, delete).await?.1)
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
