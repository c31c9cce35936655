//! Lists and maps that were given and are empty. They are as good as not there and fall away when an
//! object is read; but who may not give them at all is told so, and what is shown of an object that
//! is refused shows them.

use serde_json::{Map, Value};

/// Where they were, as JSON pointers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emptied {
    lists: Vec<String>,
    maps: Vec<String>,
}

impl Emptied {
    /// Notes what is about to go from that path (`spec.volumes[0].secret.items`).
    pub(super) fn note(&mut self, path: &str, value: &Value) {
        let pointer = || format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        match value {
            Value::Array(_) => self.lists.push(pointer()),
            Value::Object(_) => self.maps.push(pointer()),
            _ => {}
        }
    }

    /// Whether there was one.
    pub(crate) fn has(&self, pointer: &str) -> bool {
        self.lists.iter().chain(&self.maps).any(|noted| noted == pointer)
    }

    /// The object with those of them that are wanted, if there are any.
    pub(crate) fn restored(
        &self,
        object: &Value,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<Value> {
        let empty = |is_list: bool| {
            if is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) }
        };
        let lists = self.lists.iter().map(|pointer| (pointer, true));
        let all = lists.chain(self.maps.iter().map(|pointer| (pointer, false)));
        let mut restored: Option<Value> = None;
        for (pointer, is_list) in all.filter(|(pointer, _)| is_wanted(pointer)) {
            let whole = restored.get_or_insert_with(|| object.clone());
            let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
            if let Some(fields) = whole.pointer_mut(parent).and_then(Value::as_object_mut) {
                fields.entry(name).or_insert_with(|| empty(is_list));
            }
        }
        restored
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_given_and_is_empty_can_be_put_back_where_it_was() {
        let mut emptied = Emptied::default();
        emptied.note("spec.containers[0].args", &json!([]));
        emptied.note("spec.nodeSelector", &json!({}));
        emptied.note("spec.gone.list", &json!([]));
        let object = json!({"spec": {"containers": [{"name": "c"}]}});
        let all = emptied.restored(&object, |_| true);
        let whole =
            json!({"spec": {"containers": [{"name": "c", "args": []}], "nodeSelector": {}}});
        assert_eq!(all, Some(whole));
        assert!(emptied.has("/spec/nodeSelector") && !emptied.has("/spec/volumes"));
        assert_eq!(emptied.restored(&object, |pointer| pointer == "/spec/volumes"), None);
    }
}
