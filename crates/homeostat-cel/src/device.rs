//! `device` in expressions: what selectors of devices may speak of, and how large it can be.

use super::decl::Decl;
use super::types::Type;

/// How many attributes and capacities a device has at most.
const MOST_PROPERTIES: u64 = 32;
const LONGEST_DOMAIN: u64 = 63;
const LONGEST_NAME: u64 = 32;
const LONGEST_DRIVER: u64 = 63;
const LONGEST_ATTRIBUTE: u64 = 64;

/// A device that a driver offers.
#[must_use]
pub fn device() -> Decl {
    let by_domain = |inner: Decl| Decl::map(LONGEST_DOMAIN, inner, MOST_PROPERTIES);
    let attributes =
        Decl::map(LONGEST_NAME, Decl::plain(Type::Any, LONGEST_ATTRIBUTE), MOST_PROPERTIES);
    let quantity = Decl::plain(Type::Opaque("kubernetes.Quantity"), 0);
    let capacities = Decl::map(LONGEST_NAME, quantity, MOST_PROPERTIES);
    let fields = [
        ("driver", Decl::plain(Type::String, LONGEST_DRIVER)),
        ("allowMultipleAllocations", Decl::plain(Type::Bool, 1)),
        // Whatever an attribute is called, it is no longer than that.
        ("attributes", by_domain(Decl { is_open: true, ..attributes })),
        ("capacity", by_domain(capacities)),
    ];
    Decl::of_fields(
        "DRADevice".to_owned(),
        fields.map(|(name, field)| (name.to_owned(), field)).into(),
        0,
    )
}

#[cfg(test)]
mod tests {
    use super::device;
    use crate::{Source, check, most_cost};

    fn most(text: &str) -> u64 {
        let (source, device) = (Source::parse(text).unwrap(), device());
        let checked = check(&source, &[("device", device.ty.clone())]).unwrap();
        most_cost(&source.root, &checked, &device)
    }

    /// The limit of Kubernetes for one selector lies between three and four walks.
    #[test]
    fn walks_within_walks_cost_the_number_of_attributes_each() {
        let walk = |inner: &str| format!("device.attributes.all(a, {inner})");
        let three = walk(&walk(&walk("a != ''")));
        assert!(most(&three) < 1_000_000, "{}", most(&three));
        assert!(most(&walk(&three)) > 1_000_000, "{}", most(&walk(&three)));
    }

    #[test]
    fn a_domain_is_bound_to_a_name() {
        let text = "cel.bind(dra, device.attributes['a.b'], dra.one && dra.two)";
        assert!(Source::parse(text).and_then(|source| check(&source, &[])).is_err());
        let source = Source::parse_binding(text).unwrap();
        assert_eq!(check(&source, &[("device", device().ty)]).unwrap().ty, crate::Type::Bool);
    }

    #[test]
    fn an_attribute_is_short_whatever_its_name() {
        let known = most("device.attributes['a'].b.matches('x')");
        assert!(known < 100, "{known}");
    }
}
