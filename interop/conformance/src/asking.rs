//! Tools and a prompt that ask in rounds, as since 2026-07-28. This is what the seam is about: the state that a round ends
//! with is written here as plain text, and what the next one begins with is read as it is, because nobody else can write it.

use handfast::rmcp::accepted;
use rmcp::{
    ErrorData,
    model::{ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses},
};
use serde_json::{Value, json};

use crate::{fixture::Context, wire};

/// What a client sent back, and what it can be asked for.
pub struct Round<'r> {
    state: Option<&'r str>,
    responses: Option<&'r InputResponses>,
    client: ClientCapabilities,
}

pub enum Next {
    Told(String),
    Asked(InputRequiredResult),
}

type Asking = Result<Option<Next>, ErrorData>;

pub fn tool(name: &str, round: &Round<'_>) -> Asking {
    let next = match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => round.greeting()?,
        "test_input_required_result_sampling" => match round.sampled("capital_question") {
            Some(text) => told(format!("The model says: {text}")),
            None => round.ask(vec![sampling("capital_question", "What is the capital of France?")], None)?,
        },
        "test_input_required_result_list_roots" => match round.roots() {
            Some(roots) => told(format!("The roots are {roots}.")),
            None => round.ask(vec![client_roots()], None)?,
        },
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            // The state says what was asked, so an answer without it answers nothing.
            match (round.state, round.elicited("confirm").map(|content| &content["ok"])) {
                (Some(CONFIRMING), Some(Value::Bool(true))) => told("state-ok: confirmed".to_owned()),
                (Some(CONFIRMING), Some(Value::Bool(false))) => told("state-ok: not confirmed".to_owned()),
                _ => round.ask(vec![form("confirm", "Please confirm", "ok", "boolean")], Some(CONFIRMING))?,
            }
        }
        "test_input_required_result_multiple_inputs" => {
            match (round.text("user_name", "name"), round.sampled("greeting"), round.roots()) {
                (Some(name), Some(greeting), Some(roots)) => told(format!("{greeting} {name}, at {roots}")),
                _ => {
                    let questions = vec![user_name(), sampling("greeting", "Generate a greeting"), client_roots()];
                    round.ask(questions, Some("greeting"))?
                }
            }
        }
        "test_input_required_result_multi_round" => round.steps()?,
        "test_input_required_result_capabilities" => {
            let questions = vec![user_name(), sampling("capital_question", "What is the capital of France?")];
            let (possible, rest): (Vec<_>, Vec<_>) =
                questions.into_iter().partition(|(_, question)| round.can(question));
            if possible.is_empty() {
                rest.iter().try_for_each(|(_, question)| round.need(question))?;
            }
            match (round.text("user_name", "name"), round.sampled("capital_question")) {
                (None, None) => round.ask(possible, None)?,
                (name, text) => told(format!("{} {}", name.unwrap_or_default(), text.unwrap_or_default())),
            }
        }
        "test_missing_capability" => {
            round.need(&sampling("needed", "Is anybody there?").1)?;
            told("The client can be asked for a sample.".to_owned())
        }
        _ => return Ok(None),
    };
    Ok(Some(next))
}

pub fn prompt(name: &str, round: &Round<'_>) -> Asking {
    if name != "test_input_required_result_prompt" {
        return Ok(None);
    }
    let question = || form("user_context", "What context should the prompt use?", "context", "string");
    Ok(Some(match round.text("user_context", "context") {
        Some(context) => told(format!("The context is: {context}")),
        None => round.ask(vec![question()], None)?,
    }))
}

impl<'r> Round<'r> {
    pub fn new(state: Option<&'r str>, responses: Option<&'r InputResponses>, context: &Context) -> Self {
        Self { state, responses, client: context.client_capabilities().unwrap_or_default() }
    }

    pub fn greeting(&self) -> Result<Next, ErrorData> {
        match self.text("user_name", "name") {
            Some(name) => Ok(told(format!("Hello, {name}!"))),
            None => self.ask(vec![user_name()], None),
        }
    }

    /// Three rounds; what the first one found out goes along in the state of the second.
    fn steps(&self) -> Result<Next, ErrorData> {
        let first = || form("step1", "Step 1: What is your name?", "name", "string");
        let second = || form("step2", "Step 2: What is your favorite color?", "color", "string");
        let Some(state) = self.state else { return self.ask(vec![first()], Some("step1")) };
        match (state.strip_prefix("step2 "), self.text("step1", "name"), self.text("step2", "color")) {
            (Some(name), _, Some(color)) => Ok(told(format!("{name} likes {color}."))),
            (Some(_), _, None) => self.ask(vec![second()], Some(state)),
            (None, Some(name), _) => self.ask(vec![second()], Some(&format!("step2 {name}"))),
            (None, None, _) => self.ask(vec![first()], Some("step1")),
        }
    }

    fn ask(&self, questions: Vec<(String, InputRequest)>, state: Option<&str>) -> Result<Next, ErrorData> {
        if self.is_refused() {
            return Ok(told("No, then: nothing was done.".to_owned()));
        }
        questions.iter().try_for_each(|(_, question)| self.need(question))?;
        let questions: InputRequests = questions.into_iter().collect();
        Ok(Next::Asked(InputRequiredResult::new(Some(questions), state.map(str::to_owned))))
    }

    /// Whether the person said no to something. Who says no is not asked again.
    fn is_refused(&self) -> bool {
        let refused = |response: &Value| matches!(response["action"].as_str(), Some("decline" | "cancel"));
        self.responses.is_some_and(|responses| responses.values().any(refused))
    }

    fn can(&self, question: &InputRequest) -> bool {
        match question {
            InputRequest::CreateMessage(_) => self.client.sampling.is_some(),
            InputRequest::Elicitation(_) => self.client.elicitation.is_some(),
            InputRequest::ListRoots(_) => self.client.roots.is_some(),
            _ => false,
        }
    }

    /// What a client does not say that it can do, it is not asked for.
    fn need(&self, question: &InputRequest) -> Result<(), ErrorData> {
        if self.can(question) {
            return Ok(());
        }
        let missing = match question {
            InputRequest::CreateMessage(_) => "sampling",
            InputRequest::ListRoots(_) => "roots",
            _ => "elicitation",
        };
        Err(ErrorData::missing_required_client_capability(wire(json!({ missing: {} }))))
    }

    fn elicited(&self, key: &str) -> Option<&'r Value> {
        accepted(self.responses, key)
    }

    fn text(&self, key: &str, field: &str) -> Option<&'r str> {
        self.elicited(key)?[field].as_str()
    }

    fn sampled(&self, key: &str) -> Option<&'r str> {
        self.responses?.get(key)?["content"]["text"].as_str()
    }

    fn roots(&self) -> Option<String> {
        let roots = self.responses?.get("client_roots")?["roots"].as_array()?;
        let roots: Option<Vec<&str>> = roots.iter().map(|root| root["uri"].as_str()).collect();
        Some(roots?.join(", "))
    }
}

const CONFIRMING: &str = "asked to confirm";

fn told(text: String) -> Next {
    Next::Told(text)
}

fn user_name() -> (String, InputRequest) {
    form("user_name", "What is your name?", "name", "string")
}

pub fn form(key: &str, message: &str, field: &str, kind: &str) -> (String, InputRequest) {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    (key.to_owned(), wire(json!({ "method": "elicitation/create", "params": params })))
}

fn sampling(key: &str, question: &str) -> (String, InputRequest) {
    let message = json!({ "role": "user", "content": { "type": "text", "text": question } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    (key.to_owned(), wire(json!({ "method": "sampling/createMessage", "params": params })))
}

fn client_roots() -> (String, InputRequest) {
    ("client_roots".to_owned(), wire(json!({ "method": "roots/list", "params": {} })))
}
