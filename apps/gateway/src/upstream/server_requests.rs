//! What a server asks of the client: passed on where the client said that it can be asked.

use std::sync::Arc;

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientConfig, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
        CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest,
        ListRootsRequest, ListRootsResult,
    },
    service::RequestContext,
};
use tokio::sync::Semaphore;

use crate::client::McpClient;

/// Most questions of one server that are open.
const OPEN_MAX: usize = 16;

/// Our side of a connection to a server.
pub(crate) struct ServerRequests {
    config: ClientConfig,
    client: Arc<McpClient>,
    open: Semaphore,
}

impl ServerRequests {
    pub(crate) fn new(config: ClientConfig, client: Arc<McpClient>) -> Self {
        Self { config, client, open: Semaphore::new(OPEN_MAX) }
    }

    async fn ask(
        &self,
        request: InputRequest,
        context: &RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let many = |_| ErrorData::internal_error("too many questions are open", None);
        let _open = self.open.try_acquire().map_err(many)?;
        let withdrawn = || ErrorData::internal_error("the question was withdrawn", None);
        tokio::select! {
            answer = self.client.ask(request) => answer,
            () = context.ct.cancelled() => Err(withdrawn()),
        }
    }
}

fn odd() -> ErrorData {
    ErrorData::internal_error("the client's answer is none to that question", None)
}

impl ClientHandler for ServerRequests {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = InputRequest::CreateMessage(CreateMessageRequest::new(params));
        match self.ask(request, &context).await? {
            ClientResult::CreateMessageResult(result) => Ok(*result),
            _ => Err(odd()),
        }
    }

    async fn list_roots(
        &self,
        context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let request = InputRequest::ListRoots(ListRootsRequest {
            method: Default::default(),
            extensions: Default::default(),
        });
        match self.ask(request, &context).await? {
            ClientResult::ListRootsResult(result) => Ok(result),
            _ => Err(odd()),
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        match self.ask(request, &context).await? {
            ClientResult::ElicitResult(result) => Ok(result),
            _ => Err(odd()),
        }
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
