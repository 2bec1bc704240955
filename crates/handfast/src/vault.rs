//! What a server behind calls something, as a store keeps it: sealed, and good for one record alone.

use std::time::Duration;

use crate::{
    caller::{Audience, Caller},
    keys::Keys,
    record::{Digest, ObjectRef},
    seal::{RequestDigest, Sealer, SealerOptions, StateContext},
};

/// Seals what is kept in records, and opens it.
pub(crate) struct Vault(Sealer);

impl Vault {
    /// For records that live so long: the store's clock says when they end, and no seal ends before that.
    pub(crate) fn new(keys: &Keys, audience: &Audience, longest: Duration) -> Self {
        let lifetime = longest.saturating_add(Duration::from_secs(3600));
        let options = SealerOptions { lifetime, all_rounds: lifetime, ..SealerOptions::default() };
        Self(Sealer::with(keys.opening_all(), audience.clone(), options))
    }

    /// The text that the record of this digest keeps; `None` where there is too much of it.
    pub(crate) fn keep(&self, digest: Digest, secret: &[u8]) -> Option<ObjectRef> {
        let (nobody, name) = (Caller::anonymous(), digest.to_string());
        let context = StateContext { caller: &nobody, request: &RequestDigest::resource(&name) };
        self.0.seal(secret, &[], &context).ok()?.expose().parse().ok()
    }

    /// What the record of this digest keeps; `None` where its key is gone, or it is another record's.
    pub(crate) fn take(&self, digest: Digest, kept: &ObjectRef) -> Option<Vec<u8>> {
        let (nobody, name) = (Caller::anonymous(), digest.to_string());
        let context = StateContext { caller: &nobody, request: &RequestDigest::resource(&name) };
        Some(self.0.open(kept.as_str(), &context).ok()?.replayable().bytes().to_vec())
    }
}
