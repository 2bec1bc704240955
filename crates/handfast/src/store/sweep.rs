//! Revoking everything that a selector selects, in small batches, while traffic runs; and not before none is left.

use super::{Selector, Store, StoreError};
use crate::{
    clock::Timestamp,
    record::{Digest, Why},
};

/// How many records one statement touches.
const BATCH: u32 = 1000;

/// A bulk revocation on its way.
pub struct Sweep<'s> {
    store: &'s dyn Store,
    which: Selector,
    why: &'s Why,
    began: Timestamp,
    after: Option<Digest>,
}

impl<'s> Sweep<'s> {
    /// Begins one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn begin(store: &'s dyn Store, which: &Selector, why: &'s Why) -> Result<Self, StoreError> {
        let began = store.list(&Selector::everything(), None, 0).await?.now;
        Ok(Self { store, which: which.clone(), why, began, after: None })
    }

    /// Revokes some more, and names them. None: it is done, and of all that were there when it began none is left.
    /// Handles that are minted meanwhile may stay.
    ///
    /// # Errors
    /// The store cannot be reached, or does not let some of them be revoked; others were revoked by then.
    pub async fn next(&mut self) -> Result<Vec<Digest>, StoreError> {
        loop {
            let revoked = self.store.revoke(&self.which, self.why, self.after, BATCH).await?;
            // Fewer than asked for does not mean that there are no more: somebody else may be revoking the same.
            let Some(last) = revoked.iter().max() else {
                if self.after.is_none() {
                    return Ok(revoked);
                }
                // Once more from the start: what was passed over on the way must not stay. Of what is minted meanwhile
                // there may be no end, so it is left out.
                self.after = None;
                let until = self.which.minted_before.map_or(self.began, |time| time.min(self.began));
                self.which.minted_before = Some(until);
                continue;
            };
            self.after = Some(*last);
            return Ok(revoked);
        }
    }
}
