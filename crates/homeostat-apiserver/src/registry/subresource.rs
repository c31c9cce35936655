//! Subresources that show the whole object and take one part of it.

use serde_json::{Value, json};

use super::create::Tracking;
use super::options::{FieldValidation, WriteOptions};
use super::update::{Area, Update};
use super::{Body, Patch, Registry, Target, Written, named, patched, rules};
use crate::kinds::Kind;
use crate::status::Status;

/// A write through a subresource: of the whole object, or of what stands for it.
#[derive(Debug)]
pub(crate) enum PartWrite {
    Replace(Body),
    Patch(Patch),
}

impl Registry {
    /// `PUT namespaces/finalize`: takes everything but the status.
    ///
    /// # Errors
    /// As any update.
    pub fn finalize(
        &self,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let mut body = body.clone();
        named::complete_type(&target.kind, &mut body.value);
        let mut new = rules::shape(&target.kind, body, FieldValidation::Ignore, &mut Vec::new())?;
        if !new["spec"].is_object() {
            new["spec"] = json!({});
        }
        self.replace_part(target, "finalize", options, |_| Ok(new))
    }

    /// A write through a subresource that shows the whole object and takes one part of it: the new
    /// form is read as strictly as any object, and `take` copies what may change into the live one.
    pub(crate) fn write_part(
        &self,
        target: &Target,
        subresource: &'static str,
        write: &PartWrite,
        options: &WriteOptions,
        take: fn(&Value, &mut Value),
    ) -> Result<Written, Status> {
        let kind = &target.kind;
        if let PartWrite::Patch(Patch::Apply(body)) = write {
            return self.apply_part(target, Area::Part(subresource), body, options, take);
        }
        let area = Area::Part(subresource);
        let writer = self.writer_at(&options.inquiry);
        // Ownership follows what was sent, even where nothing of it is taken.
        let take = Some(take);
        let update = Update { area, tracking: Tracking::Done, unconditional: true, take };
        writer.update(target, update, options, |live| {
            let mut new = read_part(kind, target, write, live, options)?;
            rules::default(kind, &mut new);
            rules::track(&writer, kind, Some(live), &mut new, &options.manager, area)?;
            Ok(new)
        })
    }

    /// A write of the part of the object that `subresource` stands for.
    fn replace_part(
        &self,
        target: &Target,
        subresource: &'static str,
        options: &WriteOptions,
        change: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        let area = Area::Part(subresource);
        let update = Update { area, tracking: Tracking::Update, unconditional: true, take: None };
        self.writer_at(&options.inquiry).update(target, update, options, change)
    }
}

/// What the client wants, read as strictly as any object of the kind `form`; `shown` is what it was
/// shown before.
pub(super) fn read_part(
    form: &Kind,
    target: &Target,
    write: &PartWrite,
    shown: &Value,
    options: &WriteOptions,
) -> Result<Value, Status> {
    let mut warnings = Vec::new();
    let new = match write {
        PartWrite::Replace(body) => {
            let mut body = body.clone();
            named::complete_type(form, &mut body.value);
            named::check_type(form, &body.value)?;
            let mut new = rules::shape_noting(form, body, Vec::new(), options, &mut warnings)
                .map_err(|status| rules::undecodable(form, &form.kind, status))?;
            super::update::check_name(target, &new)?;
            super::create::place(target, &mut new)?;
            new
        }
        PartWrite::Patch(patch) => patched::object(form, shown, patch, options, &mut warnings)?,
    };
    warnings.into_iter().for_each(|warning| options.inquiry.warn(warning));
    Ok(new)
}
