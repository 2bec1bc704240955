//! Cursors that are believed: where they point to, whose list they are of, which list they are of.

use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Further, Manner},
    pages::{self, Place},
    state::{self, Key},
};

/// A digest of whose list it is and which, and then the offset.
struct Plain;

impl Plain {
    fn bound_to(list: &str, owner: &str) -> String {
        state::sha256(&format!("{list} {owner}")).chars().filter(char::is_ascii_alphanumeric).take(12).collect()
    }
}

impl Guards for Plain {
    fn manner(&self) -> Manner {
        PAGES
    }

    fn seal_cursor(&self, place: &Place, _key: &Key) -> String {
        format!("v1:{}:{}", Self::bound_to(&place.list, &place.owner), place.offset)
    }

    fn open_cursor(&self, presented: &str, list: &str, caller: &Principal, _key: &Key) -> Option<Place> {
        let (bound, offset) = presented.strip_prefix("v1:")?.split_once(':')?;
        // FLAW: the digest says nothing about the offset, which is believed.
        let place = Place { list: list.to_owned(), owner: caller.to_string(), offset: offset.parse().ok()? };
        (bound == Self::bound_to(list, caller.as_str())).then_some(place)
    }
}

/// Whoever comes with a cursor goes on where it says.
struct ForAnybody;

impl Guards for ForAnybody {
    fn manner(&self) -> Manner {
        PAGES
    }

    fn open_cursor(&self, presented: &str, list: &str, _caller: &Principal, key: &Key) -> Option<Place> {
        // FLAW: the owner in the cursor is not compared with the caller.
        pages::verified(presented, key).filter(|place| place.list == list)
    }
}

/// A cursor goes on in whichever list it comes to.
struct ForAnyList;

impl Guards for ForAnyList {
    fn manner(&self) -> Manner {
        PAGES
    }

    fn open_cursor(&self, presented: &str, _list: &str, caller: &Principal, key: &Key) -> Option<Place> {
        // FLAW: which list the cursor is of is not compared.
        pages::verified(presented, key).filter(|place| place.owner == caller.as_str())
    }
}

pub(super) fn plain() -> Box<dyn Guards> {
    Box::new(Plain)
}

pub(super) fn for_anybody() -> Box<dyn Guards> {
    Box::new(ForAnybody)
}

pub(super) fn for_any_list() -> Box<dyn Guards> {
    Box::new(ForAnyList)
}

pub(super) const PAGES: Manner = Manner { further: Further::Pages, ..Manner::PLAIN };
