//! JSON-RPC 2.0 messages over raw JSON: parsed just far enough to route them, with every unknown field kept.

use serde_json::{Map, Number, Value, json};
use thiserror::Error;

/// A JSON object, in the order in which it was received.
pub type Object = Map<String, Value>;

/// The id of a request. "Requests MUST include a string or integer ID. The ID MUST NOT be null."
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A numeric id.
    Number(Number),
    /// A textual id.
    Text(String),
}

impl RequestId {
    /// The id as JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
        }
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(Self::Number(number.clone())),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

/// A request that expects an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Chosen by the sender, echoed by the receiver.
    pub id: RequestId,
    /// For example `tools/call`.
    pub method: String,
    /// The parameters; MCP knows only the named form.
    pub params: Object,
}

impl Request {
    /// The request as one JSON object.
    pub fn to_value(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id.to_value(), "method": self.method, "params": self.params})
    }
}

/// A message that expects no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// For example `notifications/progress`.
    pub method: String,
    /// The parameters, empty when there were none.
    pub params: Object,
}

impl Notification {
    /// The notification as one JSON object.
    pub fn to_value(&self) -> Value {
        json!({"jsonrpc": "2.0", "method": self.method, "params": self.params})
    }
}

/// The error member of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// For example -32602.
    pub code: i64,
    /// One sentence, by intent.
    pub message: String,
    /// Whatever else the sender added.
    pub data: Option<Value>,
}

impl RpcError {
    /// The error as JSON.
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("code".into(), self.code.into());
        object.insert("message".into(), self.message.clone().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        Value::Object(object)
    }
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Absent only on errors about a request whose id could not be read.
    pub id: Option<RequestId>,
    /// The result, whole, or the error.
    pub outcome: Result<Value, RpcError>,
}

impl Response {
    /// The answer as one JSON object. Without an id it has no such member: MCP, unlike JSON-RPC, knows no null there.
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("jsonrpc".into(), "2.0".into());
        if let Some(id) = &self.id {
            object.insert("id".into(), id.to_value());
        }
        match &self.outcome {
            Ok(result) => object.insert("result".into(), result.clone()),
            Err(error) => object.insert("error".into(), error.to_value()),
        };
        Value::Object(object)
    }
}

/// Anything that may legally stand alone on the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Expects an answer.
    Request(Request),
    /// Expects none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// Why bytes are not a JSON-RPC message.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not JSON, or nested deeper than the parser's bound of 128 levels.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
}

/// Reads one message. Batches are refused: no revision since 2025-06-18 has them.
///
/// # Errors
/// [`ParseError::Json`] when the bytes are no JSON text, [`ParseError::Shape`] when the text is no message.
pub fn parse(bytes: &[u8]) -> Result<Message, ParseError> {
    from_value(serde_json::from_slice(bytes)?)
}

/// Reads one message from JSON that is parsed already.
///
/// # Errors
/// [`ParseError::Shape`] when the value is no message.
pub fn from_value(value: Value) -> Result<Message, ParseError> {
    let Value::Object(mut object) = value else {
        return Err(ParseError::Shape("not an object"));
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(ParseError::Shape("`jsonrpc` is not \"2.0\""));
    }
    match object.remove("method") {
        Some(Value::String(method)) => call(method, object),
        Some(_) => Err(ParseError::Shape("`method` is not a string")),
        None => answer(object),
    }
}

fn call(method: String, mut object: Object) -> Result<Message, ParseError> {
    let params = match object.remove("params") {
        None => Object::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(ParseError::Shape("`params` is not an object")),
    };
    match object.get("id") {
        None => Ok(Message::Notification(Notification { method, params })),
        Some(id) => {
            let id = RequestId::from_value(id).ok_or(ParseError::Shape("`id` is neither a string nor an integer"))?;
            Ok(Message::Request(Request { id, method, params }))
        }
    }
}

fn answer(mut object: Object) -> Result<Message, ParseError> {
    let id = match object.get("id") {
        None | Some(Value::Null) => None,
        Some(id) => {
            Some(RequestId::from_value(id).ok_or(ParseError::Shape("`id` is neither a string nor an integer"))?)
        }
    };
    match (object.remove("result"), object.remove("error")) {
        (Some(result), None) if id.is_some() => Ok(Message::Response(Response { id, outcome: Ok(result) })),
        (Some(_), None) => Err(ParseError::Shape("a result without an `id`")),
        (None, Some(Value::Object(mut error))) => {
            let code =
                error.get("code").and_then(Value::as_i64).ok_or(ParseError::Shape("`error.code` is not an integer"))?;
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            let data = error.remove("data");
            Ok(Message::Response(Response { id, outcome: Err(RpcError { code, message, data }) }))
        }
        (None, Some(_)) => Err(ParseError::Shape("`error` is not an object")),
        (Some(_), Some(_)) => Err(ParseError::Shape("both `result` and `error`")),
        (None, None) => Err(ParseError::Shape("neither `method`, `result` nor `error`")),
    }
}
