//! The server that the client sees, on either wire.

use std::{borrow::Cow, sync::Arc};

use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CompleteRequestParams,
    CompleteResult, ConstString, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams, PromptsCapability,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ResourcesCapability, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, ToolsCapability, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::begin::begin;
use crate::client::capabilities::{Able, WireKind};
use crate::client::watch;
use crate::gateway::{Gateway, NoBeginning};
use crate::governed::flight::{Flight, RetryInput};
use crate::governed::passing::{self, Asked};
use crate::governed::{calls, disown, refusal};
use crate::token::{news, renewal};

/// Longest instructions to models, in characters, of all servers together.
const INSTRUCTIONS_MAX: usize = 16_384;

pub(crate) struct Face {
    pub(crate) gateway: Arc<Gateway>,
}

impl Face {
    async fn begin(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.gateway.client.see(context);
        begin(&self.gateway, Able::of(context)).await.map_err(|error| no_beginning(&error))
    }

    /// Checks that resources are allowed.
    fn expect_resources(&self) -> Result<(), ErrorData> {
        let off = || ErrorData::resource_not_found("no resource is passed on", None);
        self.gateway.options.resources.then_some(()).ok_or_else(off)
    }

    /// Checks that prompts are allowed.
    fn expect_prompts(&self) -> Result<(), ErrorData> {
        let off = || ErrorData::invalid_params("no prompt is passed on", None);
        self.gateway.options.prompts.then_some(()).ok_or_else(off)
    }

    async fn asked(
        &self,
        context: &RequestContext<RoleServer>,
        input: Option<RetryInput>,
    ) -> Result<Asked, ErrorData> {
        self.begin(context).await?;
        Ok(Asked::new(&self.gateway, Flight::new(context, input), &context.id))
    }

    /// The servers' capabilities, as far as they are passed on.
    fn capabilities(&self) -> ServerCapabilities {
        let connections: Vec<_> =
            self.gateway.servers.iter().filter_map(|server| server.connection()).collect();
        let mut all = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        all.tools = Some(tools);
        // Those that have not said yet may have all there is.
        let unknown = self.gateway.servers.iter().any(|server| !server.settled.is_cancelled());
        let unknown = unknown.then(anything);
        let all_have = connections.iter().map(|connection| &connection.capabilities);
        for has in all_have.chain(&unknown) {
            if has.prompts.is_some() && self.gateway.options.prompts {
                let mut prompts = PromptsCapability::default();
                prompts.list_changed = Some(true);
                all.prompts = Some(prompts);
            }
            if let (Some(has), true) = (&has.resources, self.gateway.options.resources) {
                let resources = all.resources.get_or_insert_with(ResourcesCapability::default);
                resources.list_changed = Some(true);
                if has.subscribe == Some(true) {
                    resources.subscribe = Some(true);
                }
            }
            let either = self.gateway.options.prompts || self.gateway.options.resources;
            if has.completions.is_some() && either {
                all.completions = Some(Default::default());
            }
            if has.logging.is_some() {
                all.logging = Some(Default::default());
            }
        }
        all
    }

    /// The servers' instructions to models; with several, under their names.
    fn instructions(&self) -> Option<String> {
        let mut all = String::new();
        for server in &self.gateway.servers {
            let Some(says) =
                server.connection().and_then(|connection| connection.instructions.clone())
            else {
                continue;
            };
            if self.gateway.options.is_prefixed() {
                all.push_str(&format!("{}:\n", server.name));
            }
            all.push_str(&disown::not_ours(&says));
            all.push('\n');
        }
        let mut all: String = all.trim_end().chars().take(INSTRUCTIONS_MAX).collect();
        if let Some(told) = news::told_at_start(&self.gateway) {
            all = if all.is_empty() { told } else { format!("{told}\n\n{all}") };
        }
        (!all.is_empty()).then_some(all)
    }
}

/// The capabilities that a server may turn out to have.
fn anything() -> ServerCapabilities {
    let mut all = ServerCapabilities::default();
    let mut resources = ResourcesCapability::default();
    resources.subscribe = Some(true);
    (all.prompts, all.resources) = (Some(PromptsCapability::default()), Some(resources));
    (all.completions, all.logging) = (Some(Default::default()), Some(Default::default()));
    all
}

fn no_beginning(error: &NoBeginning) -> ErrorData {
    ErrorData::internal_error(error.for_client(), None)
}

/// A server's answer as what it should be, made complete for the newer wire; the older wire's
/// form is made of it on its way.
fn typed<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    if let Some(map) = value.as_object_mut() {
        disown::disown(map);
        map.entry("resultType").or_insert_with(|| Value::from("complete"));
    }
    let odd = |_| ErrorData::internal_error("the server's answer has not its form", None);
    serde_json::from_value(value).map_err(odd)
}

impl ServerHandler for Face {
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.gateway.client.see(&context);
        let able = Able::new(WireKind::Session, request.capabilities.clone());
        self.gateway.client.begins(able.clone());
        begin(&self.gateway, able).await.map_err(|error| no_beginning(&error))?;
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        self.begin(&context).await?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities());
        info.server_info = Implementation::new("syscap", env!("CARGO_PKG_VERSION"));
        info.instructions = self.instructions();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.begin(&context).await?;
        let granted = self.gateway.granted();
        let mut listed = ListToolsResult::with_all_items(self.gateway.catalog().list(&granted));
        let ended = renewal::ended(&self.gateway).await.map(Value::from);
        let told = [(refusal::TOKEN_KEY, ended), (refusal::MISSING_KEY, news::told(&self.gateway))];
        let told = told.into_iter().filter_map(|(key, told)| Some((key.to_owned(), told?)));
        let told: JsonObject = told.collect();
        listed.meta = (!told.is_empty()).then_some(MetaObject(told));
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.begin(&context).await?;
        calls::call(&self.gateway, request, &context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != CallToolRequestMethod::VALUE {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        self.begin(&context).await?;
        let mut result = calls::malformed(&self.gateway, request.params, &context).await?;
        if Able::of(&context).wire == WireKind::Session
            && let Some(map) = result.as_object_mut()
        {
            map.remove("resultType");
        }
        Ok(CustomResult(result))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.begin(&context).await?;
        let prompts = if self.gateway.options.prompts {
            passing::prompts(&self.gateway).await?
        } else {
            Vec::new()
        };
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let input = passing::input(request.input_responses.clone(), request.request_state.clone());
        let asked = self.asked(&context, input).await?;
        self.expect_prompts()?;
        let value = passing::prompt(&self.gateway, request, &asked).await?;
        if crate::governed::result::asks_for_input(&value) {
            return Ok(GetPromptResponse::InputRequired(typed(value)?));
        }
        Ok(GetPromptResponse::Complete(typed(value)?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let asked = self.asked(&context, None).await?;
        let resources = if self.gateway.options.resources {
            passing::resources(&self.gateway, &asked).await?
        } else {
            Vec::new()
        };
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let asked = self.asked(&context, None).await?;
        let templates = if self.gateway.options.resources {
            passing::templates(&self.gateway, &asked).await?
        } else {
            Vec::new()
        };
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let input = passing::input(request.input_responses.clone(), request.request_state.clone());
        let asked = self.asked(&context, input).await?;
        self.expect_resources()?;
        let value = passing::resource(&self.gateway, request, &asked).await?;
        if crate::governed::result::asks_for_input(&value) {
            return Ok(ReadResourceResponse::InputRequired(typed(value)?));
        }
        Ok(ReadResourceResponse::Complete(typed(value)?))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let asked = self.asked(&context, None).await?;
        match &request.r#ref {
            Reference::Prompt(_) => self.expect_prompts()?,
            _ => self.expect_resources()?,
        }
        typed(passing::complete(&self.gateway, request, &asked).await?)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let asked = self.asked(&context, None).await?;
        passing::expect_going(&self.gateway).await?;
        watch::set_level(&self.gateway, request.level, &asked.flight).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let asked = self.asked(&context, None).await?;
        self.expect_resources()?;
        watch::subscribe(&self.gateway, &request.uri, &asked).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let asked = self.asked(&context, None).await?;
        watch::unsubscribe(&self.gateway, &request.uri, &asked.flight).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if !self.gateway.options.prompts {
            accepted.prompts_list_changed = None;
        }
        if !self.gateway.options.resources {
            accepted.resources_list_changed = None;
            accepted.resource_subscriptions = None;
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let asked = self.asked(context.request_context(), None).await?;
        if !self.gateway.client.subscribe(context.sink().clone()) {
            return Err(ErrorData::internal_error("too many subscriptions", None));
        }
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let mut watched = Vec::new();
        for uri in &uris {
            // A resource that no server lets be watched is simply silent; and what was not joined
            // is not left, since another subscription may hold it.
            if watch::subscribe(&self.gateway, uri, &asked.part(&self.gateway)).await.is_ok() {
                watched.push(uri);
            }
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gateway.closing.cancelled() => {}
        }
        self.gateway.client.unsubscribe(context.sink());
        for uri in watched {
            watch::unsubscribe(&self.gateway, uri, &asked.flight).await.ok();
        }
        Ok(())
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        watch::roots_changed(&self.gateway).await;
    }
}
