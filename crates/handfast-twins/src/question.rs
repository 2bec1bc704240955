//! The questions that a twin can ask in `inputRequests`, and what counts as an answer to each.

use serde_json::{Value, json};

use crate::{conform::Capabilities, manner::Asks};

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Confirm,
    Name,
    Reason,
    Visit,
    Completion,
    Roots,
    Bare,
}

/// What came back under a question's key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judged {
    /// Go on; with what was said, where it matters.
    Yes(Option<String>),
    /// Leave it undone, and why.
    No(&'static str),
    /// Nothing came back: ask again.
    Missing,
    /// This is no answer to this question.
    Wrong(String),
}

/// The questions of one round, counted from 1.
pub(crate) fn of_round(asks: Asks, round: u64) -> &'static [Question] {
    match asks {
        Asks::ConfirmThenReason if round > 1 => &[Question::Reason],
        Asks::Confirm | Asks::ConfirmThenReason => &[Question::Confirm],
        Asks::Name => &[Question::Name],
        Asks::Url => &[Question::Visit],
        Asks::SamplingAndRoots => &[Question::Completion, Question::Roots],
        Asks::Bare => &[Question::Bare],
    }
}

/// How many rounds there are.
pub(crate) fn rounds(asks: Asks) -> u64 {
    if asks == Asks::ConfirmThenReason { 2 } else { 1 }
}

impl Question {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Confirm | Self::Bare => "confirm",
            Self::Name => "name",
            Self::Reason => "reason",
            Self::Visit => "visit",
            Self::Completion => "completion",
            Self::Roots => "roots",
        }
    }

    /// The request to embed, about something that is done to this workspace.
    pub(crate) fn request(self, about: &str, handle: &str) -> Value {
        match self {
            Self::Name => json!({"method": "elicitation/create", "params": {
                "mode": "form",
                "message": format!("Confirm which workspace you mean, to go on with {about}."),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"workspace": {"type": "string", "enum": [handle], "title": "The workspace"}},
                    "required": ["workspace"]
                }
            }}),
            Self::Confirm => json!({"method": "elicitation/create", "params": {
                "mode": "form",
                "message": format!("Go on with {about}?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"confirm": {"type": "boolean", "title": "Go on"}},
                    "required": ["confirm"]
                }
            }}),
            Self::Reason => json!({"method": "elicitation/create", "params": {
                "mode": "form",
                "message": format!("For what reason {about}?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"reason": {"type": "string", "minLength": 1, "maxLength": 200}},
                    "required": ["reason"]
                }
            }}),
            Self::Visit => json!({"method": "elicitation/create", "params": {
                "mode": "url",
                "message": format!("Visit this page to go on with {about}."),
                "url": "https://workspaces.invalid/confirm"
            }}),
            Self::Completion => json!({"method": "sampling/createMessage", "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": format!("One line about {about}")}}],
                "maxTokens": 50
            }}),
            Self::Roots => json!({"method": "roots/list"}),
            Self::Bare => json!({"method": "elicitation/create", "params": {
                "message": format!("Go on with {about}?"),
                "schema": {"type": "boolean"}
            }}),
        }
    }

    /// Whether the client said that it can answer this.
    pub(crate) fn answerable(self, client: &Capabilities<'_>) -> bool {
        match self {
            Self::Confirm | Self::Name | Self::Reason | Self::Bare => client.form(),
            Self::Visit => client.url(),
            Self::Completion => client.has("sampling"),
            Self::Roots => client.has("roots"),
        }
    }

    /// The capability to name in -32021.
    pub(crate) fn requires(self) -> (&'static str, Value) {
        match self {
            Self::Confirm | Self::Name | Self::Reason | Self::Bare => ("elicitation", json!({"form": {}})),
            Self::Visit => ("elicitation", json!({"url": {}})),
            Self::Completion => ("sampling", json!({})),
            Self::Roots => ("roots", json!({})),
        }
    }

    /// Reads an answer. `about` is the workspace that it has to name, if it has to.
    pub(crate) fn judge(self, answer: Option<&Value>, about: Option<&str>) -> Judged {
        let Some(answer) = answer else { return Judged::Missing };
        match self {
            Self::Confirm => elicited(answer, |content| match content.get("confirm") {
                Some(Value::Bool(true)) => Judged::Yes(None),
                Some(Value::Bool(false)) => Judged::No("not confirmed"),
                _ => Judged::Wrong("inputResponses.confirm: `content.confirm` must be a boolean".into()),
            }),
            Self::Name => elicited(answer, |content| match content.get("workspace").and_then(Value::as_str) {
                Some(named) if about.is_none_or(|about| about == named) => Judged::Yes(None),
                _ => Judged::Wrong(
                    "inputResponses.name: `content.workspace` must be the workspace that was asked about".into(),
                ),
            }),
            Self::Reason => elicited(answer, |content| match content.get("reason").and_then(Value::as_str) {
                Some(reason) if (1..=200).contains(&reason.chars().count()) => Judged::Yes(Some(reason.to_owned())),
                _ => Judged::Wrong("inputResponses.reason: `content.reason` must have 1 to 200 characters".into()),
            }),
            Self::Visit => elicited(answer, |_| Judged::Yes(None)),
            Self::Completion => {
                let whole = answer.get("role").is_some_and(Value::is_string)
                    && answer.get("content").is_some()
                    && answer.get("model").is_some_and(Value::is_string);
                yes_if(whole, "inputResponses.completion: not a CreateMessageResult")
            }
            Self::Roots => {
                let roots = answer.get("roots").and_then(Value::as_array);
                let whole = roots.is_some_and(|roots| roots.iter().all(|root| root["uri"].is_string()));
                yes_if(whole, "inputResponses.roots: not a ListRootsResult")
            }
            Self::Bare => match answer {
                Value::Bool(true) => Judged::Yes(None),
                Value::Bool(false) => Judged::No("not confirmed"),
                _ => Judged::Wrong("confirm must be a boolean".into()),
            },
        }
    }
}

/// Reads an `ElicitResult`; a bare value is none.
fn elicited(answer: &Value, accepted: impl Fn(&Value) -> Judged) -> Judged {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => accepted(answer.get("content").unwrap_or(&Value::Null)),
        Some("decline") => Judged::No("declined"),
        Some("cancel") => Judged::No("cancelled"),
        _ => Judged::Wrong("inputResponses: not an ElicitResult".into()),
    }
}

fn yes_if(whole: bool, otherwise: &str) -> Judged {
    if whole { Judged::Yes(None) } else { Judged::Wrong(otherwise.to_owned()) }
}
