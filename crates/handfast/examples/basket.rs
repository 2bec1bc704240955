//! A stateful MCP server on the official SDK: baskets that only their owner can use, and a checkout that asks first.
//!
//! `cargo run --release --example basket` serves on HTTP and says where, with tokens for two users; `-- --help` says what else
//! it can do. Handles are kept in a store, and baskets in memory: after a restart a handle leads to no basket any more. Yours
//! are where your objects are.

use std::{
    collections::BTreeMap,
    error::Error,
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header::AUTHORIZATION, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use handfast::{
    Asked, Audience, BackendDown, Caller, ClientId, Grant, Handles, JsonLines, Keys, Loaded, Need, NotAuthorized,
    Object, ObjectAuthority, ObjectRef, ObjectVersion, Policy, Principal, Resolved, ScopeSet, Setup, Tenant, Why,
    async_trait,
    rmcp::{Sealed, accepted},
    seal::Sealer,
    store::{self, OpenOptions, Store},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::{
        router::tool::ToolRouter,
        tool::{InputResponses, RequestState},
        wrapper::Parameters,
    },
    model::{
        CallToolResponse, CallToolResult, ElicitRequest, ElicitRequestParams, Implementation, InputRequest,
        InputRequiredResult, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::{
        StreamableHttpService,
        streamable_http_server::{StreamableHttpServerConfig, session::local::LocalSessionManager},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const POLICY: &str = r#"
version = "2026-11"

[objects.basket]
lifetime = "7d"
idle = "24h"
scopes = ["basket:read", "basket:write"]
created_by = "create_basket"
prefix = "bsk"
"#;

type Basket = Vec<String>;

/// What the shop has, under names of its own. In memory here; yours are where your objects are.
#[derive(Default)]
struct Baskets(Mutex<BTreeMap<ObjectRef, Basket>>);

impl Baskets {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<ObjectRef, Basket>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl ObjectAuthority for Baskets {
    type Object = Basket;

    async fn load(&self, object: &Object) -> Result<Option<Loaded<Basket>>, BackendDown> {
        let basket = self.with(|baskets| baskets.get(&object.reference).cloned());
        Ok(basket.map(|object| Loaded { object, version: ObjectVersion::unversioned() }))
    }

    async fn authorize(&self, _: Asked<'_, Basket>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

#[derive(Clone)]
struct Shop {
    tool_router: ToolRouter<Self>,
    baskets: Arc<Baskets>,
    handles: Arc<Handles<Arc<Baskets>>>,
    read: Need,
    write: Need,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The basket, as `create_basket` named it
    basket_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Adding {
    /// The basket, as `create_basket` named it
    basket_id: String,
    /// What to put into it
    #[schemars(length(min = 1, max = 200))]
    item: String,
}

impl Shop {
    fn new(store: Arc<dyn Store>, keys: Keys) -> Result<Self, Box<dyn Error>> {
        let (policy, baskets) = (Policy::from_toml(POLICY)?, Arc::new(Baskets::default()));
        let (read, write) = (policy.need("basket", "basket:read")?, policy.need("basket", "basket:write")?);
        let (authority, audit) = (baskets.clone(), Arc::new(JsonLines::new(std::io::stderr())));
        let handles = Arc::new(Handles::new(Setup { store, policy, keys, authority, audit }));
        let mut tool_router = Self::tool_router();
        // How long a basket lives stands where the model reads it, in the words of the policy.
        if let Some(create) = tool_router.map.get_mut("create_basket") {
            let retention = handles.policy().rules_for("basket").ok_or("no rules")?.retention_sentence("basket");
            create.attr.description = Some(format!("Start a new, empty basket. {retention}").into());
        }
        Ok(Self { tool_router, baskets, handles, read, write })
    }

    async fn resolved(
        &self,
        context: &RequestContext<RoleServer>,
        basket_id: &str,
        need: &Need,
    ) -> Result<(Caller, Resolved<Basket>), CallToolResult> {
        let caller = caller(context);
        match self.handles.resolve(&caller, basket_id, need).await {
            Ok(resolved) => Ok((caller, resolved)),
            Err(refused) => Err(result(refused.tool_result())),
        }
    }

    /// Revokes the handle first, so that nobody gets in any more, and then takes the basket away.
    async fn end(&self, caller: &Caller, basket_id: &str, resolved: &Resolved<Basket>, reason: &str) -> CallToolResult {
        let why = Why { reason: reason.parse().expect("a reason"), receipt: "the owner".parse().expect("a receipt") };
        match self.handles.revoke(caller, &resolved.named().kind, basket_id, why).await {
            // Whoever takes the basket away has it: of two who end it at once one is too late. And what is ended is what
            // was seen.
            Ok(_) => match self.baskets.with(|baskets| baskets.remove(&resolved.named().reference)) {
                Some(items) if items == *resolved.object() => said(&format!("{reason}: {} items", items.len())),
                Some(_) => failed("the basket has changed meanwhile, and is closed; start a new one"),
                None => failed("somebody else was quicker: it is done already"),
            },
            Err(refused) => result(refused.tool_result()),
        }
    }
}

#[tool_router]
impl Shop {
    #[tool(description = "Start a new, empty basket.", annotations(destructive_hint = false))]
    async fn create_basket(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        let (reference, kind) = (ObjectRef::random(), "basket".parse().expect("a type"));
        let object = Object { kind, reference: reference.clone(), version: ObjectVersion::unversioned() };
        let scopes = ScopeSet::new(["basket:read", "basket:write"]).expect("two scopes");
        match self.handles.mint(&caller(&context), Grant { object, scopes }).await {
            Ok(minted) => {
                self.baskets.with(|baskets| baskets.insert(reference, Basket::new()));
                result(minted.tool_result())
            }
            Err(error) => result(error.tool_result()),
        }
    }

    #[tool(description = "Put something into a basket.", annotations(destructive_hint = false))]
    async fn add_item(
        &self,
        Parameters(Adding { basket_id, item }): Parameters<Adding>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        if item.chars().count() > 200 {
            return failed("an item has at most 200 characters");
        }
        let (_, resolved) = match self.resolved(&context, &basket_id, &self.write).await {
            Ok(resolved) => resolved,
            Err(refused) => return refused,
        };
        let told = format!("{item} is in the basket");
        self.baskets.with(|baskets| baskets.entry(resolved.named().reference.clone()).or_default().push(item));
        said(&told)
    }

    #[tool(description = "Show what is in a basket.", annotations(read_only_hint = true))]
    async fn list_items(
        &self,
        Parameters(Which { basket_id }): Parameters<Which>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        match self.resolved(&context, &basket_id, &self.read).await {
            Ok((_, resolved)) => said(&format!("in the basket: {}", resolved.object().join(", "))),
            Err(refused) => refused,
        }
    }

    #[tool(description = "Order what is in a basket. Asks its owner first.", annotations(destructive_hint = false))]
    async fn checkout(
        &self,
        Parameters(Which { basket_id }): Parameters<Which>,
        RequestState(state): RequestState,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (caller, resolved) = match self.resolved(&context, &basket_id, &self.write).await {
            Ok(resolved) => resolved,
            Err(refused) => return Ok(refused.into()),
        };
        let items = resolved.object().join(", ");
        let Some(shown) = state else {
            // What the owner is shown is what is ordered: it goes along, sealed, and comes back with the answer.
            return Ok(InputRequiredResult::new(Some(question(&items)), Some(items)).into());
        };
        let yes = accepted(responses.as_ref(), "approve").is_some_and(|content| content["approve"] == true);
        if !yes {
            return Ok(said("not approved, and nothing was ordered").into());
        }
        if shown != items {
            return Ok(failed("the basket has changed since it was approved; check out again").into());
        }
        Ok(self.end(&caller, &basket_id, &resolved, "ordered").await.into())
    }

    #[tool(description = "Throw a basket away.", annotations(destructive_hint = true))]
    async fn end_basket(
        &self,
        Parameters(Which { basket_id }): Parameters<Which>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        match self.resolved(&context, &basket_id, &self.write).await {
            Ok((caller, resolved)) => self.end(&caller, &basket_id, &resolved, "thrown away").await,
            Err(refused) => refused,
        }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(offers).with_server_info(Implementation::new("basket", env!("CARGO_PKG_VERSION")))
    }
}

/// Whom the token was issued to, as the layer in front has found out; on standard input whoever started the server.
fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let verified = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    verified.cloned().unwrap_or_else(|| user("local"))
}

fn user(name: &str) -> Caller {
    let principal = Principal::new("https://id.example".parse().expect("an issuer"), name).expect("a name");
    Caller::trusted(principal)
        .in_tenant(Tenant::new("shop").expect("a tenant"))
        .by_client(ClientId::new("basket-example").expect("a client"))
}

fn question(items: &str) -> BTreeMap<String, InputRequest> {
    let schema = json!({
        "type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]
    });
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Order {items}?"),
        requested_schema: serde_json::from_value(schema).expect("a schema"),
    };
    BTreeMap::from([("approve".to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))])
}

/// A result as the library writes it, for the SDK; it is the end of the call.
fn result(mut value: Value) -> CallToolResult {
    value["resultType"] = "complete".into();
    serde_json::from_value(value).expect("the result of a tool")
}

fn said(text: &str) -> CallToolResult {
    result(json!({"content": [{"type": "text", "text": text}]}))
}

fn failed(text: &str) -> CallToolResult {
    result(json!({"content": [{"type": "text", "text": text}], "isError": true}))
}

/// Baskets that only their owner can use, and a checkout that asks first.
#[derive(clap::Parser)]
#[command(name = "basket")]
struct Args {
    /// Where handles are kept: sqlite:FILE, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", default_value = "sqlite:baskets.db")]
    store: String,
    /// The file of keys, as `handfast keys new` makes it; without one, a key that dies with this process
    #[arg(long, value_name = "FILE")]
    keys: Option<std::path::PathBuf>,
    /// The port on 127.0.0.1; 0 takes any. States and handles are good for one address, so keep it where keys are kept
    #[arg(long, default_value_t = 0, conflicts_with = "stdio")]
    port: u16,
    /// Serve one user on standard input and output
    #[arg(long)]
    stdio: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = serve(clap::Parser::parse()).await;
    ended.map_or_else(
        |error| {
            let _ = writeln!(std::io::stderr(), "basket: {error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

async fn serve(args: Args) -> Result<(), Box<dyn Error>> {
    let store = store::open(&args.store, OpenOptions::default()).await?;
    let keys = match args.keys {
        Some(path) => Keys::from_file(path)?,
        None => Keys::dangerous_for_this_process_only(),
    };
    let audit = Arc::new(JsonLines::new(std::io::stderr()));
    let (shop, sealer) = (Shop::new(store.clone(), keys.clone())?, |audience| Sealer::new(keys, audience));
    if args.stdio {
        let sealed = Sealed::stdio(shop, sealer(Audience::new("basket")?)).once(store, &["checkout"]).audited(audit);
        sealed.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port)).await;
    let listener = listener.map_err(|error| format!("cannot listen on 127.0.0.1:{}: {error}", args.port))?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    // This is the line that seals states: the shop knows nothing of it.
    let shop = Sealed::http(shop, sealer(Audience::new(&*url)?)).once(store, &["checkout"]).audited(audit);
    let mcp = StreamableHttpService::new(
        move || Ok(shop.clone()),
        Arc::new(LocalSessionManager::default()),
        // Nothing here hangs on a session, and the SDK's own do not ask whose they are.
        StreamableHttpServerConfig::default().with_legacy_session_mode(false),
    );
    let tokens = Arc::new(test_tokens(&["alice", "bob"]));
    let app =
        axum::Router::new().route_service("/mcp", mcp).layer(middleware::from_fn_with_state(tokens.clone(), admit));
    let mut out = std::io::stdout();
    writeln!(out, "listening on {url}")?;
    tokens.iter().try_for_each(|(token, name)| writeln!(out, "{name}: {token}"))?;
    out.flush()?;
    axum::serve(listener, app).await?;
    Ok(())
}

/// Random tokens for these users. For a test: a server of yours verifies tokens that somebody else has issued.
fn test_tokens(users: &[&str]) -> BTreeMap<String, String> {
    users.iter().map(|name| (Keys::generate().expose().replacen("hfk1", name, 1), (*name).to_owned())).collect()
}

/// Lets in whoever has a token, and says who that is.
async fn admit(State(tokens): State<Arc<BTreeMap<String, String>>>, mut request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match token.and_then(|value| value.strip_prefix("Bearer ")).and_then(|token| tokens.get(token)) {
        Some(name) => {
            request.extensions_mut().insert(user(name));
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response(),
    }
}
