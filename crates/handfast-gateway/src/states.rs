//! `requestState`: what the server behind asked a client to echo is sealed for this caller and this request, and only what we
//! have sealed goes back to it. Where it sent none with its questions, one is added: an answer to what was never asked does
//! not reach it.

use std::{ops::Range, sync::Arc};

use handfast::{
    AuditEvent, AuditSink, Caller, Keys,
    seal::{Method, Progress, RequestDigest, Sealer, StateContext, StateDenial, StateRefused, undeclared},
    store::Store,
};
use handfast_wire::{
    meta,
    span::{Kind, Member, Node},
};
use serde_json::{Map, Value};

use crate::{admit::Message, respond::Rejection};

/// Seals states, and opens them.
pub(crate) struct States {
    pub(crate) sealer: Sealer,
    pub(crate) keys: Keys,
    /// Where it is kept which of them was used, if each may be used once only.
    pub(crate) once: Option<Arc<dyn Store>>,
    pub(crate) audit: Arc<dyn AuditSink>,
}

/// A request that may ask for more input, as far as states are bound to it.
pub(crate) struct Round {
    method: Method,
    name: String,
    arguments: Option<Map<String, Value>>,
    /// What the client can be asked.
    declared: Value,
    progress: Option<Progress>,
    /// The state of the server behind that came back with it.
    state: Option<String>,
}

/// What of a request has to be changed before the server behind sees it.
struct Opened {
    /// Its own state, or `None` where it had none.
    state: Option<String>,
    /// The keys of what it asked.
    asked: Vec<String>,
}

impl Round {
    /// `None` where the method is not one that may ask; then there is no state to send back either.
    pub(crate) fn of(message: &Message<'_, '_>, text: &str) -> Result<Option<Self>, Rejection> {
        let method = match message.method {
            Some("tools/call") => Method::ToolsCall,
            Some("prompts/get") => Method::PromptsGet,
            Some("resources/read") => Method::ResourcesRead,
            _ if message.params.is_some_and(|params| params.get("requestState").is_some()) => {
                return Err(Rejection::State);
            }
            _ => return Ok(None),
        };
        let name = message.name().unwrap_or_default().to_owned();
        let arguments = message.params.and_then(|params| params.get("arguments"));
        let arguments = arguments.and_then(|arguments| serde_json::from_str(arguments.raw(text)).ok());
        let declared = message.params.and_then(|params| params.get("_meta")?.get(meta::CLIENT_CAPABILITIES));
        let declared = declared.and_then(|declared| serde_json::from_str(declared.raw(text)).ok()).unwrap_or_default();
        Ok(Some(Self { method, name, arguments, declared, progress: None, state: None }))
    }

    /// The state of the server behind that came back with it.
    pub(crate) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    fn digest(&self) -> RequestDigest<'_> {
        RequestDigest::new(self.method, &self.name, self.arguments.as_ref(), &[])
    }
}

impl States {
    /// What of a request has to be changed so that the server behind gets its own state back, and no answer to what it has
    /// not asked.
    pub(crate) async fn take_back(
        &self,
        caller: &Caller,
        round: &mut Round,
        params: &Node<'_>,
        text: &str,
    ) -> Result<Vec<(Range<usize>, String)>, Rejection> {
        let opened = match params.get("requestState") {
            None => Opened { state: None, asked: Vec::new() },
            Some(shown) => {
                let shown = shown.text().ok_or(Rejection::State)?;
                self.open(caller, round, shown, params.get("inputResponses")).await?
            }
        };
        round.state.clone_from(&opened.state);
        let value = |member: &Member<'_>| match &*member.name {
            "requestState" => Some(opened.state.as_ref().map(|state| Value::from(state.as_str()).to_string())),
            // This is the line: what was not asked is not answered.
            "inputResponses" if opened.asked.is_empty() => Some(None),
            "inputResponses" => {
                let asked = |name: &str| opened.asked.iter().any(|asked| asked == name);
                let kept = member.value.members().iter().filter(|member| asked(&member.name));
                let kept: Vec<&str> = kept.map(|m| &text[m.name_at.start..m.value.at.end]).collect();
                Some(Some(format!("{{{}}}", kept.join(","))))
            }
            _ => None,
        };
        let new: Vec<Option<Option<String>>> = params.members().iter().map(value).collect();
        let mut changes = without(params, |at| new[at] == Some(None));
        let places = params.members().iter().map(|member| member.value.at.clone());
        changes.extend(places.zip(new).filter_map(|(place, new)| Some((place, new??))));
        Ok(changes)
    }

    /// Opens what a client sent back.
    async fn open(
        &self,
        caller: &Caller,
        round: &mut Round,
        shown: &str,
        answers: Option<&Node<'_>>,
    ) -> Result<Opened, Rejection> {
        let answer = self.try_open(caller, round, shown, answers).await;
        let denial = answer.as_ref().err().map(StateRefused::denial);
        let event = AuditEvent::of_state(caller, &self.keys, &round.digest(), denial);
        self.audit.record(&event).map_err(|_| Rejection::Store)?;
        Ok(answer?)
    }

    async fn try_open(
        &self,
        caller: &Caller,
        round: &mut Round,
        shown: &str,
        answers: Option<&Node<'_>>,
    ) -> Result<Opened, StateRefused> {
        let request = round.digest();
        let opened = self.sealer.open(shown, &StateContext { caller, request: &request })?;
        let answered = opened.asked().all(|key| answers.is_some_and(|answers| answers.get(key).is_some()));
        let state = match &self.once {
            Some(store) if answered => opened.once(&**store).await?,
            _ => opened.replayable(),
        };
        round.progress = Some(state.progress());
        // What happens once does not happen on half an answer, which could be sent again and again.
        let heard = answered || self.once.is_none();
        let asked = state.asked().filter(|_| heard).map(str::to_owned).collect();
        let state = match state.bytes().split_first() {
            Some((&STATE, text)) => {
                Some(String::from_utf8(text.to_vec()).map_err(|_| StateRefused::from(StateDenial::Malformed))?)
            }
            _ => None,
        };
        Ok(Opened { state, asked })
    }

    /// Seals what the server behind asks with; `None` where this result asks nothing.
    pub(crate) fn seal(
        &self,
        caller: &Caller,
        round: &Round,
        result: &Node<'_>,
        text: &str,
    ) -> Result<Option<String>, Rejection> {
        let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
        if requests.is_none() && state.is_none() {
            return Ok(None);
        }
        let unreadable = || Rejection::Upstream("the server's questions cannot be read");
        let state = match state.map(|state| &state.kind) {
            Some(Kind::Text(state)) => [&[STATE], state.as_bytes()].concat(),
            Some(_) => return Err(unreadable()),
            None => NO_STATE.to_vec(),
        };
        if let Some(requests) = requests {
            if !matches!(requests.kind, Kind::Object(_)) {
                return Err(unreadable());
            }
            let questions = requests.members().iter().map(|member| serde_json::from_str(member.value.raw(text)));
            let questions: Vec<Value> = questions.collect::<Result<_, _>>().map_err(|_| unreadable())?;
            if let Some(missing) = undeclared(&questions, &round.declared) {
                return Err(Rejection::Undeclared(missing));
            }
        }
        let asked: Vec<&str> = requests.map_or(&[][..], Node::members).iter().map(|member| &*member.name).collect();
        let request = round.digest();
        let context = StateContext { caller, request: &request };
        let envelope = match round.progress {
            None => self.sealer.seal(&state, &asked, &context),
            Some(progress) => self.sealer.seal_next(&state, &asked, &context, progress),
        };
        let too_much = |_| Rejection::Upstream("the server's state is too large, or there were too many rounds");
        Ok(Some(envelope.map_err(too_much)?.expose().to_owned()))
    }
}

/// An object without some of its members, and without the commas between them.
pub(crate) fn without(object: &Node<'_>, goes: impl Fn(usize) -> bool) -> Vec<(Range<usize>, String)> {
    let (members, mut changes, mut at) = (object.members(), Vec::new(), 0);
    while at < members.len() {
        let end = (at..members.len()).find(|at| !goes(*at)).unwrap_or(members.len());
        if end > at {
            let from = if at > 0 { members[at - 1].value.at.end } else { members[0].name_at.start };
            let to =
                if at == 0 && end < members.len() { members[end].name_at.start } else { members[end - 1].value.at.end };
            changes.push((from..to, String::new()));
        }
        at = end + 1;
    }
    changes
}

/// What stands before the server's own state, and alone where it had none.
const STATE: u8 = 1;
const NO_STATE: &[u8] = &[0];

#[cfg(test)]
mod tests {
    use handfast_wire::span::{parse, spliced};

    use super::without;

    #[test]
    fn members_go_with_their_commas() {
        let text = r#"{"a": 1 , "b":2,"c":[3] }"#;
        let node = parse(text).expect("JSON");
        for goes in 0..8_usize {
            let told = spliced(text, without(&node, |at| goes >> at & 1 == 1));
            let read: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            let kept: Vec<&str> = ["a", "b", "c"]
                .into_iter()
                .enumerate()
                .filter(|(at, _)| goes >> at & 1 == 0)
                .map(|(_, name)| name)
                .collect();
            let names: Vec<&String> = read.as_object().expect("an object").keys().collect();
            assert_eq!(names, kept, "{told}");
        }
    }
}
