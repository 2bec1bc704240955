//! Lists that come in pages: where the next one begins is written into a cursor, which comes back through somebody else's hands.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    answer::Refused,
    caller::Principal,
    server::Server,
    state::{self, Key},
    workspaces::Workspace,
};

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) list: String,
    pub(crate) owner: String,
    pub(crate) offset: usize,
}

/// One page of what the caller owns, each as it is shown, and the cursor of the next where there is one.
pub(crate) fn page(
    server: &Server,
    list: &str,
    caller: &Principal,
    cursor: Option<&str>,
    shown: impl Fn(&Workspace) -> Value,
) -> Result<(Vec<Value>, Option<String>), Refused> {
    let place = match cursor {
        None => Place { list: list.to_owned(), owner: caller.to_string(), offset: 0 },
        Some(presented) => server
            .guards
            .open_cursor(presented, list, caller, &server.key)
            .ok_or_else(|| Refused::params("invalid cursor"))?,
    };
    let keeper = server.keeper();
    let mut owned = keeper.everything().filter(|workspace| workspace.owner.as_str() == place.owner).skip(place.offset);
    let items: Vec<Value> = owned.by_ref().take(PAGE).map(shown).collect();
    let next = owned.next().map(|_| Place { offset: place.offset + PAGE, ..place });
    Ok((items, next.map(|place| server.guards.seal_cursor(&place, &server.key))))
}

/// base64url(JSON) and a dot and its tag.
pub(crate) fn signed(place: &Place, key: &Key) -> String {
    let body = json!({"list": place.list, "owner": place.owner, "offset": place.offset}).to_string();
    let body = URL_SAFE_NO_PAD.encode(body);
    let tag = key.tag(body.as_bytes());
    format!("{body}.{tag}")
}

/// Reads what [`signed`] wrote with the same key, and nothing else.
pub(crate) fn verified(presented: &str, key: &Key) -> Option<Place> {
    let (body, tag) = presented.split_once('.')?;
    key.verifies(body.as_bytes(), &state::decode(tag).ok()?).ok()?;
    let place: Value = serde_json::from_slice(&state::decode(body).ok()?).ok()?;
    let text = |name: &str| place[name].as_str().map(str::to_owned);
    Some(Place { list: text("list")?, owner: text("owner")?, offset: usize::try_from(place["offset"].as_u64()?).ok()? })
}

const PAGE: usize = 2;
