//! A server's requests to the client, passed on for a decision.

use rmcp::model::{
    ClientConfig, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, ListRootsRequest,
    ListRootsResult,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Most questions of one server that are open.
const OPEN_MAX: usize = 16;

/// A question of a server's that waits for an answer.
pub(crate) struct Asking {
    pub(crate) request: InputRequest,
    /// Cancelled when the server does not wait any more.
    pub(crate) withdrawn: CancellationToken,
    /// The receiver of the answer.
    pub(crate) answer: oneshot::Sender<Result<Value, ErrorData>>,
}

/// Our side of a connection to a server.
pub(crate) struct ServerRequests {
    config: ClientConfig,
    questions: mpsc::Sender<Asking>,
    open: Semaphore,
}

impl ServerRequests {
    pub(crate) fn new(config: ClientConfig) -> (Self, mpsc::Receiver<Asking>) {
        let (questions, asked) = mpsc::channel(OPEN_MAX);
        (Self { config, questions, open: Semaphore::new(OPEN_MAX) }, asked)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: InputRequest,
        context: &RequestContext<RoleClient>,
    ) -> Result<T, ErrorData> {
        let error = |words: &'static str| ErrorData::internal_error(words, None);
        let _open = self.open.try_acquire().map_err(|_| error("too many questions are open"))?;
        let (answer, answered) = oneshot::channel();
        let withdrawn = context.ct.child_token();
        let asking = Asking { request, withdrawn, answer };
        self.questions.try_send(asking).map_err(|_| error("nobody can be asked"))?;
        let answered = tokio::select! {
            answer = answered => answer.map_err(|_| error("nobody can be asked"))??,
            () = context.ct.cancelled() => return Err(error("the question was withdrawn")),
        };
        serde_json::from_value(answered)
            .map_err(|_| error("the client's answer is none to that question"))
    }
}

impl ClientHandler for ServerRequests {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = InputRequest::CreateMessage(CreateMessageRequest::new(params));
        self.ask(request, &context).await
    }

    async fn list_roots(
        &self,
        context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let request = InputRequest::ListRoots(ListRootsRequest {
            method: Default::default(),
            extensions: Default::default(),
        });
        self.ask(request, &context).await
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        self.ask(request, &context).await
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
