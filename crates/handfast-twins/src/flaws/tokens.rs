//! Servers with a gate: the sound one, and those that forget one thing about tokens.

use crate::gate::Gate;

/// Every guard in place.
pub(super) struct Sound;

impl Gate for Sound {}

pub(super) struct OptionalToken;

impl Gate for OptionalToken {
    // FLAW: whoever shows no token at all is let in.
    fn minds_absence(&self) -> bool {
        false
    }
}

pub(super) struct OpenGate;

impl Gate for OpenGate {
    // FLAW: the gate is open: with any token, or none.
    fn minds_absence(&self) -> bool {
        false
    }

    fn minds_who_issued(&self) -> bool {
        false
    }
}

pub(super) struct AnyAudience;

impl Gate for AnyAudience {
    // FLAW: for whom a token was issued is not looked at, as long as it was for a server.
    fn minds_audience(&self) -> bool {
        false
    }
}

pub(super) struct ClientAsAudience;

impl Gate for ClientAsAudience {
    // FLAW: a token for the client, as an ID token is, passes for one for the server.
    fn minds_client_as_audience(&self) -> bool {
        false
    }
}

pub(super) struct NeverExpires;

impl Gate for NeverExpires {
    // FLAW: a token that was good once is good for ever.
    fn minds_time(&self) -> bool {
        false
    }
}

pub(super) struct TokenInQuery;

impl Gate for TokenInQuery {
    // FLAW: a token is taken from the query string, which stands in logs and histories.
    fn takes_query(&self) -> bool {
        true
    }
}

/// Sound as well, and its tokens are signed texts.
pub(super) struct Signed;

impl Gate for Signed {
    fn knows_signed(&self) -> bool {
        true
    }
}

pub(super) struct UnverifiedSignature;

impl Gate for UnverifiedSignature {
    fn knows_signed(&self) -> bool {
        true
    }

    // FLAW: what stands in a token is believed, whoever has written it.
    fn minds_signature(&self) -> bool {
        false
    }
}

pub(super) struct NoChallenge;

impl Gate for NoChallenge {
    // FLAW: whoever is refused is not told where to get a token.
    fn says_where(&self) -> bool {
        false
    }
}
