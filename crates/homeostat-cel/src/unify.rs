//! What type parameters stand for, as it turns out while a call is checked.

use std::collections::BTreeMap;

use super::types::Type;

/// The meaning of variables so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings {
    known: BTreeMap<usize, Type>,
    next: usize,
}

impl Bindings {
    /// A variable that nothing is known of.
    pub(super) fn fresh(&mut self) -> Type {
        self.next += 1;
        Type::Variable(self.next)
    }

    /// The type with all that is known put in; what is not known is `dyn` in the end.
    pub(super) fn resolved(&self, ty: &Type, to_the_end: bool) -> Type {
        ty.replaced(&mut |part| match part {
            Type::Variable(number) => match self.known.get(number) {
                Some(known) => Some(self.resolved(known, to_the_end)),
                None if to_the_end => Some(Type::Dyn),
                None => None,
            },
            _ => None,
        })
    }

    /// Whether a value of type `from` can be used where `to` is wanted; learns what that takes.
    pub(super) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Variable(number) = to {
            let (fits, known) = self.substitute(*number, from);
            if fits {
                return true;
            }
            if known {
                return false;
            }
        }
        if let Type::Variable(number) = from {
            return self.substitute(*number, to).0;
        }
        match (from, to) {
            (a, b) if a.is_dyn_or_error() || b.is_dyn_or_error() => true,
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.assign(a, b)
            }
            (Type::Map(a), Type::Map(b)) => self.assign(&a.0, &b.0) && self.assign(&a.1, &b.1),
            (Type::Object(a), Type::Object(b)) => a.name == b.name,
            (a, b) => a == b,
        }
    }

    /// Whether the variable may stand for the type, and whether it stood for something before.
    fn substitute(&mut self, number: usize, ty: &Type) -> (bool, bool) {
        if let Some(known) = self.known.get(&number).cloned() {
            if known == *ty {
                return (true, true);
            }
            if !self.assign(ty, &known) {
                return (false, true);
            }
            let general = self.most_general(ty, &known);
            if !self.mentions(&general, number) {
                self.known.insert(number, general);
            }
            return (true, true);
        }
        if *ty == Type::Variable(number) {
            return (true, false);
        }
        if self.mentions(ty, number) {
            return (false, false);
        }
        self.known.insert(number, ty.clone());
        (true, false)
    }

    fn mentions(&self, ty: &Type, number: usize) -> bool {
        let mut found = false;
        let _ = ty.replaced(&mut |part| {
            if let Type::Variable(other) = part {
                let deeper = || self.known.get(other).is_some_and(|ty| self.mentions(ty, number));
                found |= *other == number || deeper();
            }
            None
        });
        found
    }

    /// The one of two compatible types that says less.
    pub(super) fn most_general(&self, a: &Type, b: &Type) -> Type {
        if self.is_less_specific(a, b) { a.clone() } else { b.clone() }
    }

    fn is_less_specific(&self, a: &Type, b: &Type) -> bool {
        match (a, b) {
            (a, _) if a.is_dyn_or_error() || matches!(a, Type::Variable(_)) => true,
            (_, b) if b.is_dyn_or_error() || matches!(b, Type::Variable(_)) => false,
            // What may be null is more than nothing.
            (Type::Null, _) => false,
            (_, Type::Null) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.is_less_specific(a, b)
            }
            (Type::Map(a), Type::Map(b)) => {
                self.is_less_specific(&a.0, &b.0) && self.is_less_specific(&a.1, &b.1)
            }
            (a, b) => a == b,
        }
    }
}
