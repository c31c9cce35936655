//! Objects that were kept and that no operator looks after this time, because it was not asked for.
//! They would look dead without a word. Never changes any.

use homeostat::Kind;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};

use crate::operators::{self, Operator};

/// What to say of them, in a line; nothing when there are none.
pub(crate) async fn untended(client: &Client, chosen: &[Operator]) -> kube::Result<Option<String>> {
    let (mut kinds, mut all) = (Vec::new(), Vec::new());
    for operator in operators::ALL {
        if chosen.iter().any(|one| one.name == operator.name) {
            all.push(operator.name);
            continue;
        }
        let kind = (operator.kind)();
        if is_there(client, &kind).await? {
            kinds.push(kind.kind().to_owned());
            all.push(operator.name);
        }
    }
    let words = |kinds: &[String]| {
        let (kinds, all) = (kinds.join(", "), all.join(","));
        format!("there are objects of {kinds} and no operator for them: add --with {all}")
    };
    Ok((!kinds.is_empty()).then(|| words(&kinds)))
}

/// Whether there is any object of that kind; one that nobody has defined has none.
async fn is_there(client: &Client, kind: &Kind) -> kube::Result<bool> {
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &kind.api_resource());
    match objects.list_metadata(&ListParams::default().limit(1)).await {
        Ok(found) => Ok(!found.items.is_empty()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}
