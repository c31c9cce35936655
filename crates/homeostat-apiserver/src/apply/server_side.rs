//! The apply itself.

use serde_json::{Map, Value};

use super::check::check;
use super::compare::same;
use super::forms::{Forms, Seen};
use super::managed::{self, Managed, Operation, Owned};
use super::merge::merge;
use super::ownership;
use super::prune::prune;
use super::remove::sweep;
use super::set::FieldSet;
use super::shape::Place;
use super::{ApplyError, Manager, last_applied};
use crate::decode::moment::seconds;
use crate::schema::Schema;

/// The owner of what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies `config` to `live` (`None` creates) and answers with the whole new object, its
/// `managedFields` brought up to date.
///
/// Fields that this manager applied before, leaves out now and shares with nobody are removed.
/// Fields in `reset` (say, `status`) are merged but never owned through this endpoint. When nothing
/// changes, the answer equals `live`, times included. Defaults are not applied and the result is not
/// validated; `null` in `config` is kept as `null`.
///
/// # Errors
/// [`ApplyError::Conflicts`] when others own fields that would change and `force` is not set;
/// the other variants when the request makes no sense.
pub fn apply<'a>(
    forms: impl Into<Forms<'a>>,
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
    reset: &FieldSet,
) -> Result<Value, ApplyError> {
    check_request(config, manager)?;
    let forms = forms.into();
    let (schema, place) = (forms.schema, forms.place());
    check(place, config).map_err(|faults| untypable(config, &faults))?;

    let absent = Value::Object(Map::new());
    let base = live.unwrap_or(&absent);
    let mut managed = managed::decode(base).map_err(ApplyError::ManagedFields)?;
    let time = seconds(manager.now);
    if managed.is_empty() && live.is_some() {
        let owner = manager.owner(BEFORE_FIRST_APPLY, Operation::Update);
        let blank = forms.blank.unwrap_or(&absent);
        ownership::update(forms, (blank, base), &mut managed, owner, &time, reset)?;
    }
    ownership::fit_to_schema(forms, manager.api_version, &mut managed);

    let attempt = Attempt { forms, place, live: base, config, manager, reset };
    let (mut object, managed) = match attempt.run(managed.clone(), force, &time) {
        Err(ApplyError::Conflicts(conflicts)) => {
            let allowed = last_applied::allowed_conflicts(schema, base, manager);
            let refused: Vec<_> = conflicts
                .into_iter()
                .filter(|conflict| allowed.as_ref().is_none_or(|set| !set.contains(&conflict.path)))
                .collect();
            if !refused.is_empty() {
                return Err(ApplyError::Conflicts(refused));
            }
            attempt.run(managed, true, &time)?
        }
        other => other?,
    };
    managed::encode(&mut object, managed);
    last_applied::refresh(&mut object, config, manager);
    Ok(object)
}

/// `live` with `config` merged into it; nobody owns the result.
///
/// # Errors
/// [`ApplyError::Untypable`] when the configuration does not fit the schema.
pub(crate) fn merged(
    schema: Schema<'_>,
    live: &Value,
    config: &Value,
) -> Result<Value, ApplyError> {
    let place = Place::root(schema);
    check(place, config).map_err(|faults| untypable(config, &faults))?;
    let mut object = live.clone();
    merge(place, &mut object, config);
    Ok(object)
}

/// What stays the same when an apply is tried a second time.
struct Attempt<'a> {
    forms: Forms<'a>,
    place: Place<'a>,
    live: &'a Value,
    config: &'a Value,
    manager: &'a Manager<'a>,
    reset: &'a FieldSet,
}

impl Attempt<'_> {
    fn run(
        &self,
        mut managed: Managed,
        force: bool,
        time: &str,
    ) -> Result<(Value, Managed), ApplyError> {
        let applier = self.manager.owner(self.manager.name, Operation::Apply);
        let mut object = self.live.clone();
        merge(self.place, &mut object, self.config);

        let fields =
            FieldSet::of_place(self.place, self.config).difference_with_descendants(self.reset);
        let last = managed.remove(&applier);
        let mut owned = Owned {
            fields,
            api_version: self.manager.api_version.to_owned(),
            time: last.as_ref().and_then(|last| last.time.clone()),
        };
        managed.insert(applier.clone(), owned.clone());
        let gone = match last {
            None => FieldSet::default(),
            Some(last) => prune(self.forms, &mut object, &last, &owned, &managed)?,
        };

        let change = (self.live, &object);
        let mut seen = Seen::new(self.forms, self.manager.api_version, change, self.reset);
        if !force {
            let conflicts = ownership::conflicts(&managed, &applier, &mut seen)?;
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflicts(conflicts));
            }
        }
        ownership::take(&mut managed, Some(&applier), &mut seen)?;
        owned.fields = ownership::ownable(owned.fields, self.reset);
        if !same(self.live, &object) {
            owned.time = Some(time.to_owned());
        }
        sweep(self.place, &mut object, &gone);
        managed.remove(&applier);
        if !owned.fields.is_empty() {
            managed.insert(applier, owned);
        }
        Ok((object, managed))
    }
}

fn check_request(config: &Value, manager: &Manager<'_>) -> Result<(), ApplyError> {
    if !config.is_object() {
        return Err(ApplyError::Invalid("the applied configuration is not an object".to_owned()));
    }
    if config.get("apiVersion").is_some_and(|version| version != manager.api_version) {
        return Err(ApplyError::Invalid(format!("invalid object type: {}", type_of(config))));
    }
    if managed::entries(config).is_some() {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

/// `apps/v1, Kind=Deployment`; the core group is empty: `/v1, Kind=Pod`.
fn type_of(config: &Value) -> String {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

fn untypable(config: &Value, faults: &str) -> ApplyError {
    let metadata = |name: &str| config.get("metadata")?.get(name)?.as_str();
    ApplyError::Untypable(format!(
        "failed to create typed patch object ({}/{}; {}): {faults}",
        metadata("namespace").unwrap_or_default(),
        metadata("name").unwrap_or_default(),
        type_of(config),
    ))
}
