//! Doubly linked lists whose links are in the things themselves: to the end, off the front or out
//! of the middle in constant time, and never an allocation. The things live elsewhere, by number.

use std::ops::IndexMut;

/// No neighbour.
const NOBODY: usize = usize::MAX;

/// The neighbours of a thing, while it is in a chain.
#[derive(Debug)]
pub(super) struct Link {
    before: usize,
    after: usize,
}

/// What can stand in a chain, one at a time.
pub(super) trait Linked {
    fn link(&mut self) -> &mut Link;
}

/// One list: its ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    first: usize,
    last: usize,
}

impl Link {
    pub(super) const NONE: Self = Self { before: NOBODY, after: NOBODY };
}

impl Chain {
    pub(super) const EMPTY: Self = Self { first: NOBODY, last: NOBODY };

    pub(super) fn is_empty(self) -> bool {
        self.first == NOBODY
    }

    /// Who is at the front.
    pub(super) fn first(self) -> Option<usize> {
        (!self.is_empty()).then_some(self.first)
    }

    /// One that is in no chain goes to the end of this one.
    pub(super) fn push<L: Linked>(
        &mut self,
        all: &mut impl IndexMut<usize, Output = L>,
        new: usize,
    ) {
        let before = std::mem::replace(&mut self.last, new);
        if before == NOBODY {
            self.first = new;
        } else {
            all[before].link().after = new;
        }
        *all[new].link() = Link { before, after: NOBODY };
    }

    /// Out of this chain, wherever in it.
    pub(super) fn remove<L: Linked>(
        &mut self,
        all: &mut impl IndexMut<usize, Output = L>,
        old: usize,
    ) {
        let Link { before, after } = *all[old].link();
        if before == NOBODY {
            self.first = after;
        } else {
            all[before].link().after = after;
        }
        if after == NOBODY {
            self.last = before;
        } else {
            all[after].link().before = before;
        }
    }

    /// From wherever it is in this chain to its end.
    pub(super) fn move_to_end<L: Linked>(
        &mut self,
        all: &mut impl IndexMut<usize, Output = L>,
        one: usize,
    ) {
        if self.last != one {
            self.remove(all, one);
            self.push(all, one);
        }
    }
}
