//! Servers with sessions: the sound one, and those that forget one guard.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    caller::Principal,
    clock::Clock,
    sessions::{ELSEWHERE, EXPIRED, Missing, SessionGuards, Unknown},
    workspaces,
};

/// Every guard in place.
pub(super) struct Sound;

impl SessionGuards for Sound {}

pub(super) struct BindsToken;

impl SessionGuards for BindsToken {
    // FLAW: whoever renews a token has lost what they had.
    fn is_owner(&self, owner: &Principal, caller: &Principal) -> bool {
        owner.token() == caller.token()
    }
}

pub(super) struct RevivesUnknown;

impl SessionGuards for RevivesUnknown {
    // FLAW: what is not known is carried out all the same, as if it had been opened.
    fn on_unknown(&self) -> Unknown {
        Unknown::Revived
    }
}

pub(super) struct AdoptsUnknown;

impl SessionGuards for AdoptsUnknown {
    // FLAW: what is not known is opened under the id that the client chose.
    fn on_unknown(&self) -> Unknown {
        Unknown::Adopted
    }
}

pub(super) struct AdoptsOnRefusal;

impl SessionGuards for AdoptsOnRefusal {
    // FLAW: what is refused is kept all the same, under the id that the client chose.
    fn on_unknown(&self) -> Unknown {
        Unknown::RefusedAndKept
    }
}

pub(super) struct AdoptsClientId;

impl SessionGuards for AdoptsClientId {
    // FLAW: `initialize` takes over the id that the client came with.
    fn takes_presented_id(&self) -> bool {
        true
    }
}

pub(super) struct MintsOnRefusal;

impl SessionGuards for MintsOnRefusal {
    // FLAW: a session is opened before it is decided whether the request is allowed.
    fn mints_on_refusal(&self) -> bool {
        true
    }
}

pub(super) struct Unbound;

impl SessionGuards for Unbound {
    // FLAW: the owner is never compared.
    fn minds_owner(&self, _verb: &str, _tool: Option<&str>) -> bool {
        false
    }
}

pub(super) struct UnboundGet;

impl SessionGuards for UnboundGet {
    // FLAW: the owner is not compared where a stream is attached.
    fn minds_owner(&self, verb: &str, _tool: Option<&str>) -> bool {
        verb != "GET"
    }
}

pub(super) struct UnboundDelete;

impl SessionGuards for UnboundDelete {
    // FLAW: the owner is not compared where a session is ended.
    fn minds_owner(&self, verb: &str, _tool: Option<&str>) -> bool {
        verb != "DELETE"
    }
}

pub(super) struct UnboundWrites;

impl SessionGuards for UnboundWrites {
    // FLAW: the owner is compared where something is shown, and not where something is kept.
    fn minds_owner(&self, _verb: &str, tool: Option<&str>) -> bool {
        tool != Some("remember")
    }
}

pub(super) struct UnboundListing;

impl SessionGuards for UnboundListing {
    // FLAW: the owner is compared where a tool is called, and nowhere else.
    fn minds_owner(&self, verb: &str, tool: Option<&str>) -> bool {
        verb != "POST" || tool.is_some()
    }
}

pub(super) struct MissingAccepted;

impl SessionGuards for MissingAccepted {
    // FLAW: a request without an id is carried out.
    fn on_missing(&self, _live: usize) -> Missing {
        Missing::Served
    }
}

pub(super) struct SingleSessionFallback;

impl SessionGuards for SingleSessionFallback {
    // FLAW: where one session alone is open, a request without an id is taken to mean that one.
    fn on_missing(&self, live: usize) -> Missing {
        if live == 1 { Missing::TheOpenOne } else { Missing::Refused }
    }
}

pub(super) struct OutlivesDelete;

impl SessionGuards for OutlivesDelete {
    // FLAW: DELETE is answered and ends nothing.
    fn ends(&self) -> bool {
        false
    }
}

pub(super) struct CounterIds;

impl SessionGuards for CounterIds {
    // FLAW: ids count up.
    fn new_id(&self, made: u64, _is_live: &dyn Fn(&str) -> bool) -> String {
        format!("session-{:08}", 4711 + made)
    }
}

pub(super) struct EncodedCounterIds;

impl SessionGuards for EncodedCounterIds {
    // FLAW: ids count up, in another writing.
    fn new_id(&self, made: u64, _is_live: &dyn Fn(&str) -> bool) -> String {
        URL_SAFE_NO_PAD.encode(format!("session-{:08}", 4711 + made))
    }
}

/// Ids that say whose they are and bear a signature, and the server that looks at nothing but what they say.
pub(super) struct UnverifiedIds;

impl SessionGuards for UnverifiedIds {
    fn new_id(&self, _made: u64, _is_live: &dyn Fn(&str) -> bool) -> String {
        format!("{}.{}", workspaces::random_hex(), workspaces::random_hex())
    }

    // FLAW: the signature is cut off, and not verified.
    fn known_as<'i>(&self, presented: &'i str) -> &'i str {
        presented.rsplit_once('.').map_or(presented, |(id, _)| id)
    }
}

pub(super) struct PointerIds;

impl SessionGuards for PointerIds {
    // FLAW: an id is the address of an object: aligned steps, and what was freed is used again.
    fn new_id(&self, _made: u64, is_live: &dyn Fn(&str) -> bool) -> String {
        let mut addresses = (0_u64..).map(|slot| format!("{:012x}", 0x55d3_1c40_02a0_u64 + slot * 0x40));
        addresses.find(|id| !is_live(id)).unwrap_or_default()
    }
}

pub(super) struct TimestampIds;

impl SessionGuards for TimestampIds {
    // FLAW: an id is the time at which it was made, in milliseconds.
    fn new_id(&self, _made: u64, is_live: &dyn Fn(&str) -> bool) -> String {
        (Clock::default().milliseconds()..).map(|at| at.to_string()).find(|id| !is_live(id)).unwrap_or_default()
    }
}

pub(super) struct SnowflakeIds;

impl SessionGuards for SnowflakeIds {
    // FLAW: an id is the time in milliseconds, and then which machine has made it.
    fn new_id(&self, _made: u64, is_live: &dyn Fn(&str) -> bool) -> String {
        let written = |at: u64| ((at << 22) | (7 << 12)).to_string();
        (Clock::default().milliseconds()..).map(written).find(|id| !is_live(id)).unwrap_or_default()
    }
}

pub(super) struct ObjectIds;

impl SessionGuards for ObjectIds {
    // FLAW: an id is the time in seconds, what names the process, and a counter.
    fn new_id(&self, made: u64, _is_live: &dyn Fn(&str) -> bool) -> String {
        format!("{:08x}5f3a9c01d7{:06x}", Clock::default().milliseconds() / 1000, (0xff_ff00 + made) % (1 << 24))
    }
}

pub(super) struct HealthListsSessions;

impl SessionGuards for HealthListsSessions {
    // FLAW: a page that everybody may read tells which sessions are open.
    fn tells_sessions(&self) -> bool {
        true
    }
}

pub(super) struct ChecksTokenOnce;

impl SessionGuards for ChecksTokenOnce {
    // FLAW: whether a token is still good is asked at `initialize` only.
    fn is_good(&self, token: &str, opening: bool) -> bool {
        (!opening || !token.starts_with(EXPIRED)) && !token.starts_with(ELSEWHERE)
    }
}

/// Knows its tokens: whose, and for whom.
pub(super) struct KnownTokens;

impl SessionGuards for KnownTokens {
    fn is_good(&self, token: &str, _opening: bool) -> bool {
        USERS.contains(&token)
    }
}

pub(super) struct ChecksAudienceOnce;

impl SessionGuards for ChecksAudienceOnce {
    // FLAW: for whom a token was issued is asked at `initialize` only.
    fn is_good(&self, token: &str, opening: bool) -> bool {
        let user = token.strip_prefix(ELSEWHERE).filter(|_| !opening);
        USERS.contains(&user.unwrap_or(token))
    }
}

/// Whom the token's issuer knows.
const USERS: [&str; 3] = ["alice", "bob", "renewed-alice"];

pub(super) struct NoTokenInSession;

impl SessionGuards for NoTokenInSession {
    // FLAW: within a session no token is wanted: the id says who is calling.
    fn minds_missing_token(&self) -> bool {
        false
    }
}

pub(super) struct Oracle403;

impl SessionGuards for Oracle403 {
    // FLAW: somebody else's session is refused in another way than one that does not exist.
    fn foreign_status(&self) -> u16 {
        403
    }
}

pub(super) struct UnknownIs(pub(super) u16);

impl SessionGuards for UnknownIs {
    // FLAW: 400 tells no client to start over, 401 tells it to log in again, and 200 tells it nothing.
    fn on_unknown(&self) -> Unknown {
        Unknown::Refused(self.0)
    }
}

pub(super) struct TwoReplicas;

impl SessionGuards for TwoReplicas {
    // Not a flaw of one process: two take requests in turn, and neither knows the sessions of the other.
    fn replicas(&self) -> usize {
        2
    }
}

pub(super) struct OneEach;

impl SessionGuards for OneEach {
    // Sound, and stricter than it has to be.
    fn keeps_one_each(&self) -> bool {
        true
    }
}
